//! The walk over the records: batch by batch, from wherever the marker stands.

use super::{
    derive,
    marker::{Marker, Phase},
    members::Members,
    state::{State, UpgradeError, others_first, state},
    steps::{self, is_lifted, lift},
    window::{Sizes, Work},
};
use crate::{
    error::Error,
    resources::{
        Resource,
        organization::{self, Organization, SYSTEM},
        spec_of_tag,
    },
    rows::Tag,
    schema::ResourceSpec,
    store::{
        Answer, Batch, Commit, Key, Order, Prior, Record, Revision, SCHEMA_VERSION, Scanned, Span, Versioned, Write,
        after, get_each, key_of, marks, versioned,
    },
    tasks::{Progress, Step},
    value::OrganizationId,
};
use bytes::Bytes;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    task::{Context, Poll, Waker},
};
use uuid::Uuid;

/// Records that are read at a time.
const PAGE: usize = 1024;
/// Records after which a window is committed, however few of them change.
const WINDOW_RECORDS: u64 = 50_000;
/// Most batches that the engine has and has not answered.
const IN_FLIGHT: usize = 16;

/// One upgrade, from the claim to the end.
pub struct Upgrade<'s> {
    pub(super) store: &'s dyn Versioned,
    /// The row of the marker. `None` in a trial, which commits nothing.
    row: Option<Progress>,
    pub(super) marker: Marker,
    /// Records that were read and are not done.
    page: VecDeque<Scanned>,
    /// The organization whose records are being lifted.
    context: Option<(OrganizationId, Result<Members, String>)>,
    /// Derived rows of the organization that are in no committed batch.
    pub(super) pending: HashMap<String, u64>,
    /// Commits that are not answered yet, in order. Each expects the one before it.
    in_flight: VecDeque<Answer<'s, Commit>>,
    /// Batches that are handed over when these have been answered.
    waiting: VecDeque<Batch>,
    /// Claims in these commits.
    pub(super) claimed: HashSet<Key>,
    sizes: Sizes,
}

/// What becomes of one record.
pub(super) struct Lifted {
    pub(super) key: Key,
    /// The new bytes, where they differ.
    pub(super) changed: Option<(Revision, Bytes)>,
    pub(super) rows: derive::Rows,
}

impl<'s> Upgrade<'s> {
    /// Claims the store, or goes on with an upgrade that was begun. `None` when there is nothing to do.
    ///
    /// # Errors
    /// See [`state`].
    pub async fn begin(store: &'s dyn Versioned) -> Result<Option<Self>, UpgradeError> {
        // Another server may claim it, and even finish, between the question and the claim.
        for _ in 0..100 {
            let from = match state(store).await? {
                State::Current => return Ok(None),
                State::Unfinished(marker) if marker.to == SCHEMA_VERSION => return Self::resume(store).await,
                // The program that began it knew fewer versions: its lifts are done again, which changes nothing.
                State::Unfinished(marker) => (store.version().await?, marker.from),
                State::Older(version) => (version, version),
            };
            let (present, from) = from;
            let marker = Marker::new(from, SCHEMA_VERSION, steps::name(from));
            let mut batch = Batch::default();
            batch.writes.push(Write::Put(marks::upgrade(), 1, json(&marker)?, Prior::Any));
            store.change_version(present, SCHEMA_VERSION, batch).await?;
        }
        Err(UpgradeError::Refused("other programs keep claiming the store".into()))
    }

    /// Does everything but commit, on a store of an older version that nobody changes.
    ///
    /// # Errors
    /// See [`state`].
    pub async fn trial(store: &'s dyn Versioned) -> Result<Option<Self>, UpgradeError> {
        let from = match state(store).await? {
            State::Current => return Ok(None),
            State::Unfinished(marker) => marker.from,
            State::Older(version) => version,
        };
        Ok(Some(Self::new(store, None, Marker::new(from, SCHEMA_VERSION, steps::name(from)))))
    }

    fn new(store: &'s dyn Versioned, row: Option<Progress>, marker: Marker) -> Self {
        Self {
            store,
            row,
            marker,
            page: VecDeque::new(),
            context: None,
            pending: HashMap::new(),
            in_flight: VecDeque::new(),
            waiting: VecDeque::new(),
            claimed: HashSet::new(),
            sizes: Sizes::of(store),
        }
    }

    async fn resume(store: &'s dyn Versioned) -> Result<Option<Self>, UpgradeError> {
        let Some(record) = store.get(&[marks::upgrade()]).await?.pop().flatten() else { return Ok(None) };
        let marker = Marker::read(&record).map_err(UpgradeError::Refused)?;
        Ok(Some(Self::new(store, Some(Progress::of(&record)), marker)))
    }

    /// Makes batches of so many rows, and windows of three of them, record by record.
    #[must_use]
    pub fn in_batches_of(self, rows: usize) -> Self {
        Self { sizes: self.sizes.small(rows), ..self }
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> &Marker {
        &self.marker
    }

    /// Does the next window. It is handed to the engine; the one before it has been committed when this returns. [`Step::Done`]
    /// means that the store is of the present version.
    ///
    /// # Errors
    /// The engine failed. Begin again: the marker tells how far it came.
    pub async fn step(&mut self) -> Result<Step, UpgradeError> {
        let mut work = Work::new(self.sizes);
        let before = self.marker.clone();
        let mut done = false;
        // Records that need no change fill no window: without a bound, a kill would repeat all of them.
        while !work.is_full() && !done && self.marker.seen - before.seen < WINDOW_RECORDS {
            if !self.advanced()? {
                return self.give_way().await;
            }
            done = match self.marker.phase {
                Phase::Records => self.records(&mut work).await?,
                Phase::Sweep => {
                    // A sweep counts rows: it has to see those that are on their way.
                    if !self.answered(0).await? {
                        return self.give_way().await;
                    }
                    self.sweep(&mut work).await?
                }
            };
        }
        self.commit(work, before, done).await
    }

    /// Waits until no more than so many commits are unanswered; false when one of them came too late.
    async fn answered(&mut self, most: usize) -> Result<bool, UpgradeError> {
        self.hand_over();
        while self.in_flight.len() + self.waiting.len() > most
            && let Some(commit) = self.in_flight.pop_front()
        {
            if matches!(commit.await?, Commit::Stale(_)) {
                return Ok(false);
            }
            self.hand_over();
        }
        if self.in_flight.is_empty() {
            self.claimed.clear();
        }
        Ok(true)
    }

    /// Takes the answers that have come, without waiting for others; false when a commit came too late.
    fn advanced(&mut self) -> Result<bool, UpgradeError> {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(first) = self.in_flight.front_mut()
            && let Poll::Ready(outcome) = first.as_mut().poll(&mut context)
        {
            self.in_flight.pop_front();
            if matches!(outcome?, Commit::Stale(_)) {
                return Ok(false);
            }
            self.hand_over();
        }
        Ok(true)
    }

    /// Engines commit what waits together. A bound keeps these transactions small: the pages that one of them replaces
    /// are used again only after it.
    fn hand_over(&mut self) {
        while self.in_flight.len() < IN_FLIGHT
            && let Some(batch) = self.waiting.pop_front()
        {
            self.in_flight.push_back(self.store.commit(batch));
        }
    }

    /// Hands a window to the engine. Only its last batch moves the marker on: after a crash the whole window is done again,
    /// which leaves what it finds done as it is.
    async fn commit(&mut self, work: Work, mut before: Marker, done: bool) -> Result<Step, UpgradeError> {
        let parts = work.into_parts();
        let batches = parts.len();
        for (at, writes) in parts.into_iter().enumerate() {
            let removed = writes.iter().filter(|write| matches!(write, Write::Delete(_))).count() as u64;
            before.removed += removed;
            before.written += writes.len() as u64 - removed;
            let Some(row) = &mut self.row else { continue };
            let mut batch = Batch { checks: Vec::new(), writes };
            if at + 1 < batches {
                row.advance(&mut batch, &before).map_err(unwritable)?;
            } else {
                (self.marker.removed, self.marker.written) = (before.removed, before.written);
                if done {
                    row.finish(&mut batch);
                } else {
                    row.advance(&mut batch, &self.marker).map_err(unwritable)?;
                }
            }
            self.waiting.push_back(batch);
        }
        if self.row.is_none() {
            (self.marker.removed, self.marker.written) = (before.removed, before.written);
            return Ok(if done { Step::Done } else { Step::Went });
        }
        self.pending.clear();
        // In a sweep, and at the end, the next window has to see this one.
        let most = if done || self.marker.phase == Phase::Sweep { 0 } else { batches };
        match self.answered(most).await? {
            true if done => Ok(Step::Done),
            true => Ok(Step::Went),
            false => self.give_way().await,
        }
    }

    /// Takes over what another process has done.
    async fn give_way(&mut self) -> Result<Step, UpgradeError> {
        // Those that are on their way expect a commit that did not happen: none of them is applied.
        self.in_flight.clear();
        self.waiting.clear();
        self.claimed.clear();
        self.page.clear();
        self.context = None;
        self.pending.clear();
        versioned::known(self.store.version().await?).map_err(UpgradeError::Refused)?;
        match self.store.get(&[marks::upgrade()]).await?.pop().flatten() {
            None => Ok(Step::Done),
            Some(record) => {
                self.marker = Marker::read(&record).map_err(UpgradeError::Refused)?;
                self.row = Some(Progress::of(&record));
                Ok(Step::Outrun)
            }
        }
    }

    /// Takes the next records of an organization; true after the last row of all.
    async fn records(&mut self, work: &mut Work) -> Result<bool, UpgradeError> {
        if self.page.is_empty() {
            self.page = self.store.scan(&self.span(), PAGE).await?.into();
        }
        let Some(first) = self.page.front() else {
            self.marker.phase = Phase::Sweep;
            return Ok(false);
        };
        let organization = owner(key_of(first));
        if self.marker.organization.is_some_and(|current| current != organization) {
            self.marker.phase = Phase::Sweep;
            return Ok(false);
        }
        self.marker.organization = Some(organization);
        others_first().await;
        let mut lifted = Vec::with_capacity(self.sizes.chunk);
        while lifted.len() < self.sizes.chunk
            && self.page.front().is_some_and(|row| owner(key_of(row)) == organization)
            && let Some(row) = self.page.pop_front()
        {
            self.marker.seen += 1;
            self.marker.set_after(key_of(&row));
            let key = key_of(&row).clone();
            match self.lifted(organization, row).await? {
                Ok(one) => lifted.push(one),
                Err(reason) => {
                    self.marker.note(&key, &reason);
                    self.marker.damage_here = true;
                }
            }
        }
        self.write(work, lifted).await?;
        Ok(false)
    }

    /// The records that are not done.
    fn span(&self) -> Span {
        let first = Key::from_bytes(&[Tag::Record as u8]);
        let from = self.marker.after().map_or_else(|| first.clone(), |after| after.next());
        Span { from, to: after(&first), order: Order::Ascending, follow: None }
    }

    /// A record as the present program would have written it; the inner error says why there is none.
    async fn lifted(
        &mut self,
        organization: OrganizationId,
        row: Scanned,
    ) -> Result<Result<Lifted, String>, UpgradeError> {
        let record = match row {
            Ok(record) => record,
            Err(damaged) => return Ok(Err(damaged.reason)),
        };
        let Some((spec, id)) = parts(&record.key) else { return Ok(Err("it is of no known resource".into())) };
        if is_lifted(self.marker.from, spec) {
            self.load(organization).await?;
        }
        Ok(self.apply(organization, spec, id, record))
    }

    pub(super) fn apply(
        &self,
        organization: OrganizationId,
        spec: &'static ResourceSpec,
        id: Uuid,
        record: Record,
    ) -> Result<Lifted, String> {
        if !is_lifted(self.marker.from, spec) {
            let rows = derive::rows(organization, spec, id, &record.value).map_err(detail)?;
            return Ok(Lifted { key: record.key, changed: None, rows });
        }
        let context = match &self.context {
            Some((_, Ok(members))) => members,
            Some((_, Err(why))) => return Err(format!("its organization cannot be read: {why}")),
            None => return Err("its organization was not read".into()),
        };
        let mut members = Members::parse(&record.value)?;
        lift(self.marker.from, spec.object, &mut members, context)?;
        let changed = members.is_changed().then(|| Bytes::from(members.json()));
        let rows = derive::rows(organization, spec, id, changed.as_ref().unwrap_or(&record.value)).map_err(detail)?;
        Ok(Lifted { key: record.key, changed: changed.map(|value| (record.revision + 1, value)), rows })
    }

    /// Reads the organization whose records come now.
    pub(super) async fn load(&mut self, organization: OrganizationId) -> Result<(), UpgradeError> {
        if self.context.as_ref().is_some_and(|(known, _)| *known == organization) {
            return Ok(());
        }
        let members = if organization == SYSTEM {
            Ok(Members::default())
        } else {
            let place = Organization::key(SYSTEM, organization);
            match get_each(self.store, std::slice::from_ref(&place)).await?.pop() {
                Some(Ok(Some(record))) => Members::parse(&record.value).and_then(|mut members| {
                    // In a trial it was not lifted before.
                    lift(self.marker.from, organization::SPEC.object, &mut members, &Members::default())?;
                    Ok(members)
                }),
                Some(Err(damaged)) => Err(damaged.reason),
                _ => Err("it is not there".into()),
            }
        };
        self.context = Some((organization, members));
        Ok(())
    }
}

/// Resource and id in the key of a record.
pub(super) fn parts(key: &Key) -> Option<(&'static ResourceSpec, Uuid)> {
    let bytes = key.as_bytes();
    (bytes.len() == 34).then_some(())?;
    Some((spec_of_tag(bytes[17])?, key.id()?))
}

/// The organization in the key of a record.
pub(super) fn owner(key: &Key) -> OrganizationId {
    key.as_bytes().get(1..17).and_then(OrganizationId::from_slice).unwrap_or(SYSTEM)
}

fn json(marker: &Marker) -> Result<Bytes, UpgradeError> {
    serde_json::to_vec(marker).map(Bytes::from).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> UpgradeError {
    UpgradeError::Refused(format!("the marker of the upgrade cannot be written: {error}"))
}

/// What is wrong with a record, for the operator.
pub(super) fn detail(error: Error) -> String {
    match error {
        Error::Damaged(row) => row.reason.clone(),
        Error::Internal(detail) => detail,
        other => format!("{other:?}"),
    }
}
