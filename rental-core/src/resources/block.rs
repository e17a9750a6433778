//! Blocks: nights on which a vehicle is not for rent, such as for maintenance. A block holds its vehicle like a rental.

use crate::{
    error::{Error, FieldCode},
    resources::{
        Create, Portable, Resource, RuleContext, Update, event::EventType, fields, rental::dates_out_of_order,
    },
    schema::{
        BY_UPDATE, CREATED_AT, Effects, Fields, Hold, IndexPrefix, Kind, LookUpSpec, ResourceSpec, UPDATED_AT, field,
        filter, id, index, look_up, object, ordered_index,
    },
    value::{BlockId, CalendarFeedId, Date, Holder, OrganizationId, Text, Timestamp, VehicleId, words},
};
use serde::{Deserialize, Serialize};

words! {
    /// Why a vehicle is not for rent.
    pub enum BlockReason {
        /// It is in the workshop.
        Maintenance = "maintenance",
        /// Its owner uses it.
        Owner = "owner",
        /// It is booked on another marketplace.
        Booking = "booking",
        /// Another reason.
        Other = "other",
    }
}

words! {
    /// The states of a block.
    pub enum BlockStatus {
        /// It holds the vehicle.
        Active = "active",
        /// It was cancelled. Holds nothing.
        Cancelled = "cancelled",
        /// It was imported and clashes with a rental or another block. Holds nothing.
        Conflict = "conflict",
    }
}

words! {
    /// Where a block came from.
    pub enum BlockSource {
        /// The API.
        Api = "api",
        /// A calendar feed.
        CalendarFeed = "calendar_feed",
    }
}

/// The look-up of the blocks of a calendar feed that were not cancelled, by the day on which they end.
const FEED: LookUpSpec = look_up(128, "calendar_feed");

/// The prefix of the entries of a feed's blocks that end on a day and were not cancelled.
#[must_use]
pub(crate) fn feed_look_up(feed: CalendarFeedId, end: u32) -> IndexPrefix {
    FEED.of(&[feed.as_bytes(), &end.to_be_bytes()])
}

/// The description of a block.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "block",
    plural: "blocks",
    tag: Holder::BLOCK,
    doc: "Nights on which a vehicle is not for rent.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000015\""),
        object("\"block\""),
        field("vehicle_id", Kind::Reference("vehicle"), "Blocked vehicle.", "\"0190d0f2-7c3a-7cc0-8000-000000000001\"")
            .required(),
        field("start_date", Kind::Date, "First day.", "\"2099-07-01\"").required(),
        field(
            "end_date",
            Kind::Date,
            "Day on which the vehicle is free again, on or after the first day. A block of one day has the same date twice.",
            "\"2099-07-03\"",
        )
        .required(),
        field("reason", Kind::Word(BlockReason::WORDS), "Why the vehicle is not for rent.", "\"maintenance\"")
            .starts_as("\"other\""),
        field("notes", Kind::Paragraph(10_000, 10_000), "Notes for the fleet.", "\"New tires\"").optional(),
        field(
            "status",
            Kind::Word(BlockStatus::WORDS),
            "An `active` block holds the vehicle. `conflict` is one from a calendar feed that clashes; only the server sets it.",
            "\"active\"",
        )
        .starts_as("\"active\"")
        .update_only(),
        field("source", Kind::Word(BlockSource::WORDS), "Where it came from.", "\"api\""),
        field("calendar_feed_id", Kind::Id, "Calendar feed that it came from.", "null").or_null(),
        field("calendar_uid", Kind::Text(255), "Event of the feed that it came from.", "null").or_null(),
        field("conflicts_with", Kind::Text(255), "What held the vehicle when the feed was last read.", "null").or_null(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[
        filter("vehicle", "vehicle_id"),
        filter("status", "status"),
        filter("calendar_feed", "calendar_feed_id"),
    ],
    ranges: BY_UPDATE,
    indexes: &[
        index(1, &["vehicle_id"]),
        index(2, &["status"]),
        index(3, &["vehicle_id", "status"]),
        index(4, &["calendar_feed_id"]),
        index(5, &["calendar_feed_id", "status"]),
        ordered_index(16, "updated_at"),
    ],
    look_ups: &[FEED],
    usual_changes: &["end_date"],
};

fields! {
    /// Nights on which a vehicle is not for rent.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Block {
        pub id: BlockId,
        pub object: String,
        pub vehicle_id: VehicleId,
        pub start_date: Date,
        pub end_date: Date,
        pub reason: BlockReason,
        pub notes: Option<Text>,
        pub status: BlockStatus,
        pub source: Option<BlockSource>,
        pub calendar_feed_id: Option<CalendarFeedId>,
        pub calendar_uid: Option<Text>,
        pub conflicts_with: Option<Text>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Block {
    fn check_dates(&self) -> Result<(), Error> {
        if self.start_date.nights_until(self.end_date) < 0 { Err(dates_out_of_order()) } else { Ok(()) }
    }
}

impl Resource for Block {
    const SPEC: &'static ResourceSpec = &SPEC;

    fn effects(&self) -> Effects {
        let hold = Hold::new(self.vehicle_id, Holder::Block(self.id), self.start_date, self.end_date);
        let holds = if self.status == BlockStatus::Active { vec![hold] } else { Vec::new() };
        let feed = self.calendar_feed_id.filter(|_| self.status != BlockStatus::Cancelled);
        let entries = feed.map(|feed| feed_look_up(feed, self.end_date.day_number())).into_iter().collect();
        Effects { holds, entries, ..Effects::default() }
    }
}

impl Portable for Block {
    /// An export has no calendar feeds: what came from one is a block like others there.
    fn adopt(&mut self, _: OrganizationId) {
        self.calendar_feed_id = None;
    }

    fn arrive(&self, _: &RuleContext<'_>) -> Result<(), Error> {
        self.check_dates()
    }
}

impl Create for Block {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.check_dates()?;
        self.source = Some(BlockSource::Api);
        Ok(Vec::new())
    }
}

impl Update for Block {
    fn apply(&mut self, before: &Self, _: &Fields, context: &RuleContext<'_>) -> Result<(), Error> {
        let days = |block: &Self| (block.start_date, block.end_date, block.vehicle_id);
        // Of an event that began, the calendar may not tell any more that it is over.
        let has_begun = before.start_date < context.organization.time_zone.local(context.now).date();
        let is_freed = has_begun && self.status == BlockStatus::Cancelled;
        let follows = days(self) == days(before) && (self.status == before.status || is_freed);
        if before.calendar_feed_id.is_some() && !follows {
            let rule = "follows its calendar feed: change it there, or delete the feed; a block that began before today can be cancelled";
            return Err(Error::field("calendar_feed_id", FieldCode::Invalid, rule));
        }
        if self.status == BlockStatus::Conflict && before.status != BlockStatus::Conflict {
            let rule = "must be `active` or `cancelled`: only the server sets `conflict`";
            return Err(Error::field("status", FieldCode::Invalid, rule));
        }
        self.check_dates()
    }

    /// None: the specification has no event for it.
    fn events(&self, _: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        Vec::new()
    }
}
