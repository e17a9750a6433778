//! A plan: its rounds, its changes, and how they are written.

use super::{
    change::{Action, Change, Found},
    decide::Decider,
    view::View,
    waiter::Waiter,
};
use crate::{
    check::{
        audit::Audit,
        report::{Remedy, Report},
    },
    resources::{row_words::in_words, spec_of_tag},
    rows::{Marker, Row},
    store::{Batch, Check, Commit, Key, Prior, Store, StoreError, Write},
    value::Timestamp,
};
use std::{collections::BTreeMap, fmt};

/// Most changes of one plan, which is in memory.
const MOST_CHANGES: usize = 100_000;
/// Most rounds of one plan. Damage of a row leads to that of rows that refer to it, which is at most four steps; rows that were
/// put off take two rounds more.
const MOST_ROUNDS: usize = 12;
/// Most changes and bytes of one batch.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 4 << 20;

/// The changes that make a store consistent, and what remains.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The changes by key.
    pub changes: BTreeMap<Key, Change>,
    /// The check of the store after the changes: the problems that cannot be repaired.
    pub left: Report,
    /// Whether there are more changes than one plan has, so that another plan must follow.
    pub more: bool,
}

/// A name for the kind of a row, for counts: the resource of a record, or what the row is.
#[must_use]
pub fn kind(key: &Key) -> &'static str {
    match Row::decode(key) {
        None => "row of no known kind",
        Some(Row::Record { resource, .. }) => {
            spec_of_tag(resource).map_or("record of no known resource", |spec| spec.object)
        }
        Some(Row::Marker(Marker::Loading)) => "mark of a copy",
        Some(Row::Marker(Marker::MasterKey)) => "fingerprint of the master key",
        Some(Row::Marker(Marker::Upgrade)) => "mark of an upgrade",
        Some(Row::Access { .. }) => "way from a key or token to its record",
        Some(Row::Calendar { .. }) => "calendar of a vehicle",
        Some(Row::Due { .. }) => "due row of a delivery",
        Some(Row::Erased { .. }) => "mark of an erased object",
        Some(Row::Hold { .. }) => "hold of a vehicle",
        Some(Row::IndexEntry { .. }) => "index entry",
        Some(Row::Bell { .. }) => "bell of a server",
        Some(Row::Recheck { .. }) => "mark of tolls and violations to derive again",
        Some(Row::Heartbeat { .. }) => "heartbeat of a server",
        Some(Row::IdempotencyRecord { .. }) => "idempotency record",
        Some(Row::Counter { .. }) => "counter",
        Some(Row::Outbox { .. }) => "outbox row",
        Some(Row::VehicleFeed { .. }) => "calendar feed of a vehicle",
        Some(Row::CalendarFeed { .. }) => "address of a calendar feed",
        Some(Row::Logo { .. }) => "logo of an organization",
        Some(Row::Subscribed { .. }) => "mark of webhook endpoints",
        Some(Row::Secrets { .. }) => "secrets of a webhook endpoint",
        Some(Row::Task { .. }) => "task",
        Some(Row::Usage { .. }) => "usage of an organization",
        Some(Row::Identity { .. }) => "identity claim",
        Some(Row::Owner { .. }) => "owner of a webhook endpoint",
        Some(Row::IdempotencyExpiry { .. }) => "expiry of an idempotency record",
    }
}

/// Plans the repair of a closed store, and changes nothing. `now` is the creation time of new tasks; `progress` is called with
/// the number of rows checked so far.
///
/// # Errors
/// The store is not available.
pub fn plan<W: Waiter>(
    store: &dyn Store,
    waiter: &W,
    now: Timestamp,
    progress: &mut dyn FnMut(u64),
) -> Result<Plan, StoreError> {
    let view = View::new(store, waiter);
    let mut decider = Decider::new(&view, now);
    let (mut seen, mut settled, mut plan) = (0, false, Plan::default());
    for round in 1..=MOST_ROUNDS {
        let get = |key: &Key| view.get(key);
        let mut audit = Audit::new(&get).at(now);
        decider.begin(settled);
        view.walk(&mut |row| {
            seen += 1;
            if seen % 10_000 == 0 {
                progress(seen);
            }
            let (key, sound) = match &row {
                Ok(record) => (&record.key, Some(record)),
                Err(damaged) => (&damaged.key, None),
            };
            let is_hidden = row.as_ref().is_err_and(|damaged| damaged.pages);
            let checked = match &row {
                Ok(record) => audit.check_row(record),
                Err(damaged) => Err(damaged.reason.clone()),
            };
            match checked {
                Ok(()) => sound.into_iter().for_each(|record| decider.passed(record)),
                // Rows that damaged pages hide are no reason to remove this one.
                Err(why) if !is_hidden && decider.repairs(key, sound, &why) => {}
                Err(why) => {
                    audit.gaps |= sound.is_none();
                    let remedy = if sound.is_some() { audit.remedy } else { Remedy::Repair };
                    audit.report.add(in_words(key), why, remedy);
                }
            }
            view.planned() < MOST_CHANGES
        })?;
        plan.left = audit.finish().after_repair();
        plan.more = view.planned() >= MOST_CHANGES;
        settled = !view.take_progress();
        let is_last = plan.more || round == MOST_ROUNDS;
        if is_last || (settled && !decider.has_put_off()) {
            decider.mark_unattributed();
            view.failure()?;
            if is_last || !view.take_progress() {
                break;
            }
        }
    }
    drop(decider);
    plan.changes = view.into_changes();
    Ok(plan)
}

/// Why a plan was not written completely.
#[derive(Debug)]
pub enum RepairError {
    /// The store is not available. A new plan continues the repair.
    Store(StoreError),
    /// Another program changed this row after the plan was made.
    Changed(Key),
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Changed(key) => write!(f, "another program changed {}", in_words(key)),
        }
    }
}

impl std::error::Error for RepairError {}

/// Writes the changes of a plan in batches. Each batch checks that its rows are still those of the plan, except damaged ones,
/// of which the store cannot check anything.
///
/// # Errors
/// See [`RepairError`]. The batches before the failed one are written.
pub fn apply<W: Waiter>(store: &dyn Store, waiter: &W, plan: &Plan) -> Result<(), RepairError> {
    apply_in_batches_of(BATCH_ROWS, store, waiter, plan)
}

/// The same with smaller batches, for tests of interruptions.
#[doc(hidden)]
pub fn apply_in_batches_of<W: Waiter>(
    rows: usize,
    store: &dyn Store,
    waiter: &W,
    plan: &Plan,
) -> Result<(), RepairError> {
    let (mut batch, mut bytes) = (Batch::default(), 0);
    for (key, change) in &plan.changes {
        match change.found {
            Found::Nothing => batch.checks.push(Check::Absent(key.clone())),
            Found::Row(revision) => batch.checks.push(Check::At(key.clone(), revision)),
            Found::Damaged => {}
        }
        bytes += key.as_bytes().len();
        match &change.action {
            Action::Remove => batch.delete(key.clone()),
            Action::Put(revision, value) => {
                bytes += value.len();
                batch.writes.push(Write::Put(key.clone(), *revision, value.clone(), Prior::Any));
            }
        }
        if batch.writes.len() >= rows || bytes >= BATCH_BYTES {
            commit(store, waiter, std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    if batch.is_empty() { Ok(()) } else { commit(store, waiter, batch) }
}

fn commit(store: &dyn Store, waiter: &impl Waiter, batch: Batch) -> Result<(), RepairError> {
    match waiter.wait(store.commit(batch)).map_err(RepairError::Store)? {
        Commit::Applied => Ok(()),
        Commit::Stale(key) => Err(RepairError::Changed(key)),
    }
}
