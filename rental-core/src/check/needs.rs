//! The rows that a row needs beside itself.

use super::expected::references;
use crate::{
    operations::{api_keys, idempotency::IdempotencyRecord},
    resources::{
        Object, Resource,
        api_key::ApiKey,
        block::{self, Block, BlockStatus},
        calendar_feed::CalendarFeed,
        delivery::Delivery,
        event,
        invoice::{self, Invoice},
        operator::Operator,
        organization::SYSTEM,
        parse,
        row_words::in_words,
        spec_of_tag, to_json,
        vehicle::Vehicle,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::{Row, calendar_feed::ImportedFeed, claim::read_claim, key},
    store::{Key, Record},
    value::{OrganizationId, Timestamp},
};
use bytes::Bytes;

/// What a row needs.
pub(super) struct Need {
    /// One of the rows at these keys.
    pub(super) any_of: Vec<Key>,
    /// What a repair does when none of them is there.
    pub(super) without: Without,
}

/// What a repair does with a row that lacks what it needs.
pub(super) enum Without {
    /// Removes the row, which only leads to the other one.
    Remove,
    /// Writes this row.
    Write(Record),
    /// Nothing: the object stays, and names what is gone. The text says so.
    Tell(String),
}

impl Need {
    /// What is missing, as a sentence.
    pub(super) fn missing(&self) -> String {
        match &self.without {
            Without::Tell(what) => what.clone(),
            Without::Remove | Without::Write(_) => {
                let place = self.any_of.first().map(in_words).unwrap_or_default();
                format!("{place} is not there")
            }
        }
    }
}

/// What a decoded row needs. The organization of a row is no part of it. `now` says whether a block has ended.
pub(super) fn needs(kind: &Row<'_>, row: &Record, now: Option<Timestamp>) -> Vec<Need> {
    let leads_to = |place: Key| vec![Need { any_of: vec![place], without: Without::Remove }];
    match *kind {
        Row::Record { organization, resource, .. } => of_object(organization, resource, row, now),
        Row::Access { .. } => entry(row).map(leads_to).unwrap_or_default(),
        Row::Due { delivery, .. } => OrganizationId::from_slice(&row.value)
            .map(|organization| leads_to(Delivery::key(organization, delivery)))
            .unwrap_or_default(),
        // Rentals of a lost vehicle hold it still.
        Row::Calendar { organization, vehicle } => {
            let place = Vehicle::key(organization, vehicle);
            let what = format!("{} is not there", in_words(&place));
            vec![Need { any_of: vec![place], without: Without::Tell(what) }]
        }
        Row::VehicleFeed { organization, vehicle } => leads_to(Vehicle::key(organization, vehicle)),
        Row::Recheck { organization, marked } => {
            marked.as_vehicle().map(|vehicle| leads_to(Vehicle::key(organization, vehicle))).unwrap_or_default()
        }
        // The row of a deleted feed stays until its blocks are cancelled.
        Row::CalendarFeed { organization, feed } => match ImportedFeed::read(row) {
            Ok(ImportedFeed { removed: false, .. }) => leads_to(CalendarFeed::key(organization, feed)),
            _ => Vec::new(),
        },
        Row::Outbox { organization, event } => leads_to(event::key(organization, event)),
        Row::Secrets { endpoint } => leads_to(WebhookEndpoint::key(SYSTEM, endpoint)),
        Row::Identity { organization, resource, .. } => {
            let object = spec_of_tag(resource).zip(read_claim(row).ok());
            object.map(|(spec, (id, _))| leads_to(key::record(organization, spec, id))).unwrap_or_default()
        }
        Row::IdempotencyExpiry { organization, name, .. } => leads_to(key::idempotency_record(organization, name)),
        Row::IdempotencyRecord { organization, name } => {
            let Ok(stored) = crate::value::read_json::<IdempotencyRecord>(&row.value) else { return Vec::new() };
            let place = key::idempotency_expiry(stored.expires_at().millis(), organization, name);
            let expiry = Record { key: place.clone(), revision: 0, value: Bytes::new() };
            vec![Need { any_of: vec![place], without: Without::Write(expiry) }]
        }
        Row::Marker(_)
        | Row::Erased { .. }
        | Row::Hold { .. }
        | Row::IndexEntry { .. }
        | Row::Bell { .. }
        | Row::Heartbeat { .. }
        | Row::Counter { .. }
        | Row::Logo { .. }
        | Row::Subscribed { .. }
        | Row::Task { .. }
        | Row::Usage { .. }
        | Row::Owner { .. } => Vec::new(),
    }
}

/// The record that a key or token leads to.
fn entry(row: &Record) -> Option<Key> {
    let hash: [u8; 32] = row.value.get(..32)?.try_into().ok()?;
    match api_keys::open_operator_entry(&row.value, &hash) {
        Some((id, _)) => Some(Operator::key(SYSTEM, id)),
        None => Some(ApiKey::key(SYSTEM, api_keys::open_entry(&row.value, &hash)?)),
    }
}

/// What an object names, what an invoice bills, and the calendar feed of a block.
fn of_object(organization: OrganizationId, resource: u8, row: &Record, now: Option<Timestamp>) -> Vec<Need> {
    let Some(spec) = spec_of_tag(resource) else { return Vec::new() };
    let mut found = Vec::new();
    for (field, target, id) in references(spec, &row.value) {
        let place = key::record(organization, target, id);
        let what = format!("its `{}` is {}, which is not there", field.name, in_words(&place));
        found.push(Need { any_of: vec![place], without: Without::Tell(what) });
    }
    if spec.tag == invoice::SPEC.tag
        && let Ok(invoice) = parse::<Invoice>(&row.key, &row.value)
    {
        for place in invoice.sources().into_iter().map(|source| source.key(organization)) {
            let what = format!("it bills {}, which is not there", in_words(&place));
            found.push(Need { any_of: vec![place], without: Without::Tell(what) });
        }
    }
    if spec.tag == block::SPEC.tag
        && let Ok(block) = parse::<Block>(&row.key, &row.value)
    {
        found.extend(feed_of(organization, block, row, now));
    }
    found
}

/// The calendar feed of a block that has not ended: without it nobody could free its days, so it becomes a block that people change.
fn feed_of(organization: OrganizationId, mut block: Block, row: &Record, now: Option<Timestamp>) -> Option<Need> {
    let now = now?;
    // In the last time zone it is still the day before.
    let has_ended = block.end_date.day_number() <= now.day_number();
    let feed = block.calendar_feed_id.filter(|_| block.status != BlockStatus::Cancelled && !has_ended)?;
    block.calendar_feed_id = None;
    block.touch(now);
    let freed = Record { key: row.key.clone(), revision: row.revision + 1, value: to_json(&block).ok()? };
    let any_of = vec![CalendarFeed::key(organization, feed), key::calendar_feed(organization, feed)];
    Some(Need { any_of, without: Without::Write(freed) })
}
