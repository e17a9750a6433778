//! What was read of a calendar feed becomes blocks: one for each event, and no others.

use super::{
    calendar_feeds::{Synced, Taken},
    calendar_nights::{Share, divide},
    create::insert,
    edge::Edge,
    edit::edit,
    holds,
    intent::{Intent, Prepared, Preparing},
    read::get,
    write_once::write,
};
use crate::{
    calendars::{ExternalCalendar, ExternalEvent},
    error::Error,
    resources::{
        Object,
        block::{self, Block, BlockReason, BlockSource, BlockStatus, feed_look_up},
        organization::BookingPolicy,
        parse,
    },
    rows::key,
    schema::Hold,
    store::{Batch, Check, DamagedRow, Order, Pages, Span, Store, get_each, get_one, key_of},
    value::{BlockId, Date, Holder, Id, Text},
};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

/// Blocks that are read at a time.
const PAGE: usize = 500;

/// Makes the blocks of a feed what its events say: all of them, and no others. Blocks that began before today stay, and those of
/// events that could not be read, except of a deleted feed. Damaged rows are added to `damaged`; the events and blocks that need them stay as they are.
///
/// # Errors
/// The store is not available, or somebody changed the feed during the reading.
pub async fn sync(
    store: &dyn Store,
    edge: &dyn Edge,
    taken: &Taken,
    calendar: &ExternalCalendar,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Synced, Error> {
    let today = taken.organization.time_zone.local(edge.now()).date();
    let present = present_blocks(store, taken, today, damaged).await?;
    let mut wanted = Vec::with_capacity(calendar.events.len());
    for event in &calendar.events {
        // A row of ours that is damaged has this name, too.
        let is_own = Error::note_damage(is_own(store, taken, event).await, damaged)?.unwrap_or(true);
        if event.end >= today && !is_own {
            wanted.push(event);
        }
    }
    let kept = kept(&present, &wanted, calendar);
    wanted.extend(&kept);
    let others = match wanted.is_empty() {
        true => Vec::new(),
        // Without what is damaged a clash is found when the block is written.
        false => Error::note_damage(others(store, taken, &wanted, &present).await, damaged)?.unwrap_or_default(),
    };
    let uids = wanted.iter().map(|event| event.uid.as_str()).collect();
    let plan = Plan { taken, wanted: &wanted, uids, present: &present, others: &others, today };
    let mut planned = plan.make(None);
    if let Some(stays) = planned.left.iter().find(|block| plan.stays(block) && block.status == BlockStatus::Active) {
        planned = plan.make(Some(stays.end_date));
    }
    // What frees days comes first, so that others can take them.
    for block in planned.left.iter().filter(|block| !plan.stays(block)) {
        let freed = SetBlock { taken, before: Some(block.id), share: None }.write(store, edge).await;
        Error::note_damage(freed, damaged)?;
    }
    let (mut conflicts, mut clashing) = (planned.conflicts, Vec::new());
    for change in &planned.changes {
        let written = Error::note_damage(change.write(store, edge).await, damaged)?;
        let Some((id, clashes)) = written else { continue };
        if clashes {
            let is_known = change.share.is_some_and(|share| share.clash.is_some());
            conflicts += usize::from(is_known);
            clashing.extend((!is_known).then_some(SetBlock { before: Some(id), ..*change }));
        }
    }
    // The clash of an event with another one that moved after it is over.
    let mut before = planned.changes.len();
    while !clashing.is_empty() && clashing.len() < before {
        before = clashing.len();
        let mut still = Vec::new();
        for change in clashing {
            let written = Error::note_damage(change.write(store, edge).await, damaged)?;
            still.extend(written.is_some_and(|(_, clashes)| clashes).then_some(change));
        }
        clashing = still;
    }
    Ok(Synced { events: wanted.len(), conflicts: conflicts + clashing.len(), problems: calendar.told() })
}

/// Events that could not be read, as the last reading found them: their days stay taken.
fn kept(present: &[Block], wanted: &[&ExternalEvent], calendar: &ExternalCalendar) -> Vec<ExternalEvent> {
    let uids: HashSet<&str> = wanted.iter().map(|event| event.uid.as_str()).collect();
    let is_kept = |block: &&Block| calendar.leaves_out(uid_of(block)) && !uids.contains(uid_of(block));
    let event = |block: &Block| ExternalEvent {
        uid: uid_of(block).to_owned(),
        start: block.start_date,
        end: block.end_date,
        summary: block.notes.as_ref().map(ToString::to_string).unwrap_or_default(),
    };
    present.iter().filter(is_kept).map(event).collect()
}

/// What holds the vehicle of a feed on the nights of these events, beside the blocks of the feed.
async fn others(
    store: &dyn Store,
    taken: &Taken,
    events: &[&ExternalEvent],
    present: &[Block],
) -> Result<Vec<Hold>, Error> {
    let Some(feed) = &taken.feed else { return Ok(Vec::new()) };
    if taken.organization.booking_policy == BookingPolicy::Open {
        return Ok(Vec::new());
    }
    let first = events.iter().map(|event| event.start.day_number()).min().unwrap_or_default();
    let last = events.iter().map(|event| event.end.day_number()).max().unwrap_or_default();
    let mut holds = holds::within(store, taken.organization.id, feed.vehicle_id, (first, last + 1)).await?;
    let own: HashSet<Holder> = present.iter().map(|block| Holder::Block(block.id)).collect();
    holds.retain(|hold| !own.contains(&hold.holder));
    Ok(holds)
}

/// What the plan of a reading follows from.
struct Plan<'a> {
    taken: &'a Taken,
    wanted: &'a [&'a ExternalEvent],
    /// The UIDs of the events.
    uids: HashSet<&'a str>,
    present: &'a [Block],
    others: &'a [Hold],
    today: Date,
}

/// What a reading does.
struct Planned<'a> {
    /// The blocks that become other than they are, in the order in which they are written.
    changes: Vec<SetBlock<'a>>,
    /// The blocks that no event needs.
    left: Vec<&'a Block>,
    /// The events that clash and whose blocks say so.
    conflicts: usize,
}

impl<'a> Plan<'a> {
    /// Whether a block without an event stays: it began before today, and its event is gone.
    fn stays(&self, block: &Block) -> bool {
        block.start_date < self.today && self.taken.feed.is_some() && !self.uids.contains(uid_of(block))
    }

    /// `until` is the end of a block that stays.
    fn make(&self, until: Option<Date>) -> Planned<'a> {
        let shares = self.shares(until);
        let uids: HashSet<&str> = shares.iter().map(|share| share.event.uid.as_str()).collect();
        let by_uid: HashMap<&str, &Block> = self.present.iter().map(|block| (uid_of(block), block)).collect();
        let is_known = |block: &&Block| by_uid.get(uid_of(block)).is_some_and(|known| known.id == block.id);
        let mut left: Vec<&Block> =
            self.present.iter().filter(|block| !(uids.contains(uid_of(block)) && is_known(block))).collect();
        let (mut changes, mut conflicts) = (Vec::new(), 0);
        for share in shares {
            // Some calendars have other UIDs at each reading: a block of the same days is the same event.
            let same_days = |block: &&Block| (block.start_date, block.end_date) == (share.start, share.end);
            // The block of an event whose nights another event takes: what it holds stays held.
            let covered = |block: &&Block| {
                self.uids.contains(uid_of(block)) && share.start <= block.start_date && block.end_date <= share.end
            };
            let gone = |block: &&Block| same_days(block) && !self.uids.contains(uid_of(block));
            let place = |left: &[&Block]| left.iter().position(same_days).or_else(|| left.iter().position(covered));
            let before = match by_uid.get(share.event.uid.as_str()).copied() {
                None => place(&left).map(|at| left.swap_remove(at)),
                // It moved to the days of an event that is gone: that block may have begun, and then it stays.
                Some(known) if !same_days(&known) => match left.iter().position(gone) {
                    Some(at) => Some(std::mem::replace(&mut left[at], known)),
                    None => Some(known),
                },
                known => known,
            };
            if before.is_some_and(|block| is_as_wanted(block, &share)) {
                conflicts += usize::from(share.clash.is_some());
                continue;
            }
            let shrinks = before.is_some_and(|old| old.start_date <= share.start && share.end <= old.end_date);
            let change = SetBlock { taken: self.taken, before: before.map(|block| block.id), share: Some(share) };
            changes.push((!shrinks, change));
        }
        // A block that gets shorter is written before those that take its nights.
        changes.sort_by_key(|(later, _)| *later);
        Planned { changes: changes.into_iter().map(|(_, change)| change).collect(), left, conflicts }
    }

    /// The nights of each event. Where bookings may clash, each event has all its nights.
    fn shares(&self, until: Option<Date>) -> Vec<Share<'a>> {
        if self.taken.organization.booking_policy == BookingPolicy::Open {
            let whole = |event: &&'a ExternalEvent| Share { event, start: event.start, end: event.end, clash: None };
            return self.wanted.iter().map(whole).collect();
        }
        divide(self.wanted, self.others, until, self.today)
    }
}

/// The blocks of a feed that have not ended and were not cancelled.
async fn present_blocks(
    store: &dyn Store,
    taken: &Taken,
    today: Date,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Vec<Block>, Error> {
    let organization = taken.organization.id;
    let ends = |day| feed_look_up(taken.id, day).prefix(organization, &block::SPEC);
    let span = Span { from: ends(today.day_number()), to: ends(u32::MAX), order: Order::Ascending, follow: None };
    let (mut pages, mut present) = (Pages::of(store, span, PAGE), Vec::new());
    while let Some(page) = pages.next().await? {
        let ids = page.iter().filter_map(|row| key_of(row).id());
        let keys: Vec<_> = ids.map(|id| key::record(organization, &block::SPEC, id)).collect();
        for row in get_each(store, &keys).await? {
            let row = row.map_err(Error::Damaged);
            let block = row.and_then(|row| row.map(|row| parse(&row.key, &row.value)).transpose());
            present.extend(Error::note_damage(block, damaged)?.flatten());
        }
    }
    Ok(present)
}

/// Errors are not stored: there is no idempotency key.
fn never(_: &Error) -> (u16, Bytes) {
    (500, Bytes::new())
}

fn uid_of(block: &Block) -> &str {
    block.calendar_uid.as_deref().unwrap_or_default()
}

fn is_as_wanted(block: &Block, share: &Share<'_>) -> bool {
    let days = (block.start_date, block.end_date) == (share.start, share.end);
    let status = match share.clash {
        None => block.status == BlockStatus::Active,
        Some(_) => block.status == BlockStatus::Conflict && block.conflicts_with == share.clash.map(name),
    };
    days && status && uid_of(block) == share.event.uid && block.notes == notes(share.event)
}

fn name(holder: Holder) -> Text {
    Text::fit(&holder.to_string(), 255)
}

fn notes(event: &ExternalEvent) -> Option<Text> {
    (!event.summary.is_empty()).then(|| Text::fit(&event.summary, 255))
}

/// Whether the event is a rental or block of this organization: another calendar imported our feed, and we import that one.
async fn is_own(store: &dyn Store, taken: &Taken, event: &ExternalEvent) -> Result<bool, Error> {
    let Some((kind, id)) = event.own_name().and_then(|name| name.split_once('-')) else { return Ok(false) };
    let id = id.get(..36).and_then(|id| uuid::Uuid::try_parse(id).ok());
    let holder = match (kind, id) {
        ("rental" | "out", Some(id)) => Holder::Rental(Id::from_uuid(id)),
        ("block", Some(id)) => Holder::Block(Id::from_uuid(id)),
        _ => return Ok(false),
    };
    Ok(get_one(store, &key::holder(taken.organization.id, holder)).await?.is_some())
}

/// Makes a block what an event says, or cancels it.
#[derive(Clone, Copy)]
struct SetBlock<'a> {
    taken: &'a Taken,
    before: Option<BlockId>,
    share: Option<Share<'a>>,
}

impl SetBlock<'_> {
    /// Writes the block. Returns its id, and whether it clashes.
    async fn write(&self, store: &dyn Store, edge: &dyn Edge) -> Result<(BlockId, bool), Error> {
        #[derive(Deserialize)]
        struct Made {
            id: BlockId,
            status: BlockStatus,
        }
        let written = write(store, edge, self.taken.organization.id, None, self, (200, &never)).await?;
        let made: Made = crate::value::read_json(&written.body).map_err(|error| Error::Internal(error.to_string()))?;
        Ok((made.id, made.status == BlockStatus::Conflict))
    }

    /// Writes the block with a status; of one that clashes, with what.
    async fn prepared(
        &self,
        store: &dyn Store,
        edge: &dyn Edge,
        (status, conflict): (BlockStatus, Option<Holder>),
    ) -> Result<Prepared, Error> {
        let (organization, now) = (&self.taken.organization, edge.now());
        let conflicts_with = conflict.map(name);
        if let Some(id) = self.before {
            let record = get(store, organization.id, &block::SPEC, &id.to_string()).await?;
            return edit(store, edge, organization, record, |block: &mut Block| {
                let before = block.clone();
                if let Some(Share { event, start, end, .. }) = self.share {
                    (block.start_date, block.end_date, block.notes) = (start, end, notes(event));
                    block.calendar_uid = Some(Text::fit(&event.uid, 255));
                }
                (block.status, block.conflicts_with) = (status, conflicts_with);
                if *block != before {
                    block.touch(now);
                }
                Ok(Vec::new())
            })
            .await;
        }
        let Some((Share { event, start, end, .. }, feed)) = self.share.zip(self.taken.feed.as_ref()) else {
            return Err(Error::Internal("a block without an event is not made".into()));
        };
        let id = edge.new_id();
        let created = super::created_at(id, now);
        let block = Block {
            id: BlockId::from_uuid(id),
            object: block::SPEC.object.into(),
            vehicle_id: feed.vehicle_id,
            start_date: start,
            end_date: end,
            reason: BlockReason::Booking,
            notes: notes(event),
            status,
            source: Some(BlockSource::CalendarFeed),
            calendar_feed_id: Some(feed.id),
            calendar_uid: Some(Text::fit(&event.uid, 255)),
            conflicts_with,
            created_at: created,
            updated_at: created,
        };
        insert(store, edge, organization, block, Batch::default()).await
    }
}

impl Intent for SetBlock<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let place = self.taken.place();
            if get_one(store, &place).await?.is_none_or(|row| row.revision != self.taken.revision) {
                return Err(Error::Conflict("The calendar feed was changed while it was read.".into()));
            }
            let status = match self.share {
                Some(Share { clash: None, .. }) => BlockStatus::Active,
                Some(_) => BlockStatus::Conflict,
                None => BlockStatus::Cancelled,
            };
            let clash = self.share.and_then(|share| share.clash);
            let mut prepared = match self.prepared(store, edge, (status, clash)).await {
                Err(Error::VehicleUnavailable { holder, .. }) => {
                    self.prepared(store, edge, (BlockStatus::Conflict, Some(holder))).await?
                }
                other => other?,
            };
            if !prepared.batch.is_empty() {
                prepared.batch.checks.push(Check::At(place, self.taken.revision));
            }
            Ok(prepared)
        })
    }
}

#[cfg(test)]
mod tests;
