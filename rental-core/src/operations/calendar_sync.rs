//! What was read of a calendar feed becomes blocks: one for each event, and no others.

use super::{
    calendar_feeds::{Synced, Taken},
    create::insert,
    edge::Edge,
    edit::edit,
    intent::{Intent, Prepared, Preparing},
    read::get,
    write_once::write,
};
use crate::{
    calendars::ExternalEvent,
    error::Error,
    resources::{
        Object,
        block::{self, Block, BlockReason, BlockSource, BlockStatus, feed_look_up},
        parse,
    },
    rows::key,
    store::{Batch, Check, DamagedRow, Order, Pages, Span, Store, get_each, get_one, key_of},
    value::{BlockId, Date, Holder, Id, Text},
};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

/// Blocks that are read at a time.
const PAGE: usize = 500;

/// Makes the blocks of a feed what its events say: all of them, and no others. Blocks that began before today stay, except of a
/// deleted feed. Damaged rows are added to `damaged`; the events and blocks that need them stay as they are.
///
/// # Errors
/// The store is not available, or somebody changed the feed during the reading.
pub async fn sync(
    store: &dyn Store,
    edge: &dyn Edge,
    taken: &Taken,
    events: &[ExternalEvent],
    damaged: &mut Vec<DamagedRow>,
) -> Result<Synced, Error> {
    let today = taken.organization.time_zone.local(edge.now()).date();
    let present = present_blocks(store, taken, today, damaged).await?;
    let mut wanted = Vec::with_capacity(events.len());
    for event in events {
        // A row of ours that is damaged has this name, too.
        let is_own = Error::note_damage(is_own(store, taken, event).await, damaged)?.unwrap_or(true);
        if event.end >= today && !is_own {
            wanted.push(event);
        }
    }
    let uids: HashSet<&str> = wanted.iter().map(|event| event.uid.as_str()).collect();
    let by_uid: HashMap<&str, &Block> = present.iter().map(|block| (uid_of(block), block)).collect();
    let is_known = |block: &&Block| by_uid.get(uid_of(block)).is_some_and(|known| known.id == block.id);
    // Some calendars have other UIDs at each reading: a block of the same days is the same event.
    let mut left: Vec<&Block> =
        present.iter().filter(|block| !(uids.contains(uid_of(block)) && is_known(block))).collect();
    let mut changes = Vec::new();
    for event in &wanted {
        let same_days = |block: &&Block| (block.start_date, block.end_date) == (event.start, event.end);
        let known = by_uid.get(event.uid.as_str()).copied();
        let before = known.or_else(|| Some(left.swap_remove(left.iter().position(same_days)?)));
        if !before.is_some_and(|block| is_as_wanted(block, event)) {
            changes.push(SetBlock { taken, before: before.map(|block| block.id), event: Some(event) });
        }
    }
    // What frees days comes first, so that others can take them.
    for block in left.iter().filter(|block| block.start_date >= today || taken.feed.is_none()) {
        let freed = SetBlock { taken, before: Some(block.id), event: None }.write(store, edge).await;
        Error::note_damage(freed, damaged)?;
    }
    let mut clashing = Vec::new();
    for change in &changes {
        let written = Error::note_damage(change.write(store, edge).await, damaged)?;
        let Some((id, clashes)) = written else { continue };
        clashing.extend(clashes.then_some(SetBlock { before: Some(id), ..*change }));
    }
    let mut conflicts = clashing.len();
    if conflicts < changes.len() {
        // The clash of an event with another one that moved after it is over.
        for change in &clashing {
            let written = Error::note_damage(change.write(store, edge).await, damaged)?;
            conflicts -= usize::from(written.is_some_and(|(_, clashes)| !clashes));
        }
    }
    Ok(Synced { events: wanted.len(), conflicts })
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

fn is_as_wanted(block: &Block, event: &ExternalEvent) -> bool {
    let days = (block.start_date, block.end_date) == (event.start, event.end);
    days && block.status == BlockStatus::Active && uid_of(block) == event.uid && block.notes == notes(event)
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
    event: Option<&'a ExternalEvent>,
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
        let made: Made = serde_json::from_slice(&written.body).map_err(|error| Error::Internal(error.to_string()))?;
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
        let conflicts_with = conflict.map(|holder| Text::fit(&holder.to_string(), 255));
        if let Some(id) = self.before {
            let record = get(store, organization.id, &block::SPEC, &id.to_string()).await?;
            return edit(store, edge, organization, record, |block: &mut Block| {
                let before = block.clone();
                if let Some(event) = self.event {
                    (block.start_date, block.end_date, block.notes) = (event.start, event.end, notes(event));
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
        let Some((event, feed)) = self.event.zip(self.taken.feed.as_ref()) else {
            return Err(Error::Internal("a block without an event is not made".into()));
        };
        let id = edge.new_id();
        let created = super::created_at(id);
        let block = Block {
            id: BlockId::from_uuid(id),
            object: block::SPEC.object.into(),
            vehicle_id: feed.vehicle_id,
            start_date: event.start,
            end_date: event.end,
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
            let status = if self.event.is_some() { BlockStatus::Active } else { BlockStatus::Cancelled };
            let mut prepared = match self.prepared(store, edge, (status, None)).await {
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
