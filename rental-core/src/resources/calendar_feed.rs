//! Calendar feeds: calendars of others whose events become blocks of a vehicle. The address of a feed is a secret, so it has a row
//! of its own, and the object shows its host only.

use crate::{
    error::Error,
    resources::{Create, Resource, RuleContext, event::EventType, fields},
    schema::{
        BY_UPDATE, CREATED_AT, IndexPrefix, IndexSpec, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index,
        object, ordered_index,
    },
    value::{CalendarFeedId, Text, Timestamp, VehicleId, words},
};
use serde::{Deserialize, Serialize};

words! {
    /// Whether a feed can be read.
    pub enum FeedStatus {
        /// It was not read yet.
        Pending = "pending",
        /// The last reading succeeded.
        Ok = "ok",
        /// The last reading failed. The blocks of the feed stay as they are.
        Failing = "failing",
    }
}

/// The index by vehicle.
const OF_VEHICLE: IndexSpec = index(1, &["vehicle_id"]);

/// The description of a calendar feed.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "calendar_feed",
    plural: "calendar_feeds",
    tag: 24,
    doc: "A calendar of others whose events become blocks of a vehicle.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000018\""),
        object("\"calendar_feed\""),
        field(
            "vehicle_id",
            Kind::Reference("vehicle"),
            "Vehicle that gets the blocks.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000001\"",
        )
        .required()
        .fixed(),
        field(
            "url",
            Kind::Url,
            "Where the calendar is. `webcal://` and `webcals://` mean `https://`. Responses show its host only, because such an address is a secret.",
            "\"https://calendar.example.com/ical/1234.ics\"",
        )
        .required()
        .fixed(),
        field("interval_minutes", Kind::Integer(5, 1440), "Minutes between two readings.", "15")
            .starts_as("15")
            .fixed(),
        field("status", Kind::Word(FeedStatus::WORDS), "Whether it can be read.", "\"ok\""),
        field("last_success_at", Kind::Time, "When it was last read.", "null").or_null(),
        field("last_error", Kind::Text(255), "Why the last reading failed, or what in the calendar could not be read while the rest was.", "null").or_null(),
        field(
            "next_read_at",
            Kind::Time,
            "When it is read next. After a failure the interval doubles, up to a day.",
            "null",
        )
        .or_null(),
        field("events", Kind::Integer(0, 1_000_000), "Events in the last reading, of today and later.", "4"),
        field("conflicts", Kind::Integer(0, 1_000_000), "Blocks of the feed with the status `conflict`.", "0"),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("vehicle", "vehicle_id")],
    ranges: BY_UPDATE,
    indexes: &[OF_VEHICLE, ordered_index(16, "updated_at")],
    look_ups: &[],
    usual_changes: &[],
};

fields! {
    /// A calendar of others whose events become blocks of a vehicle.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct CalendarFeed {
        pub id: CalendarFeedId,
        pub object: String,
        pub vehicle_id: VehicleId,
        pub url: String,
        pub interval_minutes: i64,
        pub status: Option<FeedStatus>,
        pub last_success_at: Option<Timestamp>,
        pub last_error: Option<Text>,
        pub next_read_at: Option<Timestamp>,
        pub events: Option<i64>,
        pub conflicts: Option<i64>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// The prefix of the index entries of a vehicle's feeds.
pub(crate) fn of_vehicle(vehicle: VehicleId) -> IndexPrefix {
    IndexPrefix::new(OF_VEHICLE.number).with(vehicle.as_bytes())
}

impl Resource for CalendarFeed {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Create for CalendarFeed {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.url = shown(&self.url);
        (self.status, self.events, self.conflicts) = (Some(FeedStatus::Pending), Some(0), Some(0));
        Ok(Vec::new())
    }
}

/// A URL without what can be secret in it.
fn shown(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| Some((url.scheme(), url.host_str()?)));
    host.map_or_else(String::new, |(scheme, host)| format!("{scheme}://{host}/..."))
}
