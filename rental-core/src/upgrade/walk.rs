//! The walk over the records, from the position in the marker, in windows of several batches.

use super::{
    derive,
    marker::{Marker, Phase},
    members::Members,
    state::{State, UpgradeError, state, yield_to_other_tasks},
    steps::{self, is_lifted, lift},
    submitted::Submitted,
    whole_pages::WholePages,
    window::{Sizes, Window},
};
use crate::{
    error::Error,
    resources::{
        Resource,
        organization::{self, Organization, SYSTEM},
        spec_of_tag,
    },
    rows::{Tag, key},
    schema::ResourceSpec,
    store::{
        Batch, Key, Order, Prior, Record, Revision, SCHEMA_VERSION, Scanned, Span, Store as _, StoreError, Versioned,
        Write, after, get_each, get_one, key_of, marks, move_behind, versioned,
    },
    tasks::{Progress, Step, organization_deletion},
    value::OrganizationId,
};
use bytes::Bytes;
use std::collections::{HashMap, HashSet, VecDeque};
use uuid::Uuid;

/// Records in one scan.
const PAGE: usize = 1024;
/// Records after which a window is committed, even if few of them change.
const WINDOW_RECORDS: u64 = 50_000;

/// An upgrade in progress.
pub struct Upgrade<'s> {
    pub(super) store: WholePages<'s>,
    /// The row of the marker. `None` in a trial, which commits nothing.
    row: Option<Progress>,
    pub(super) marker: Marker,
    /// Records that were read but not yet upgraded.
    page: VecDeque<Scanned>,
    /// The lifted record of the present organization, or why it cannot be read.
    context: Option<(OrganizationId, Result<Members, String>)>,
    /// The present organization, and whether a task deletes it: what its deletion has removed is not written again.
    leaving: Option<(OrganizationId, bool)>,
    /// The number of derived rows in the present window, by the prefix of their keys in hex.
    pub(super) pending: HashMap<String, u64>,
    submitted: Submitted<'s>,
    /// Claims in batches that are not yet committed.
    pub(super) claimed: HashSet<Key>,
    sizes: Sizes,
}

/// A record of the present version, with its rows.
pub(super) struct Lifted {
    pub(super) key: Key,
    /// The revision and the new bytes; `None` when the record does not change.
    pub(super) changed: Option<(Revision, Bytes)>,
    pub(super) rows: derive::Rows,
}

impl<'s> Upgrade<'s> {
    /// Sets the new version and writes the marker, or continues an interrupted upgrade. `None` when the store needs none.
    ///
    /// # Errors
    /// See [`state`].
    pub async fn begin(store: &'s dyn Versioned) -> Result<Option<Self>, UpgradeError> {
        // Another server may begin the upgrade, and even complete it, after the state was read.
        for _ in 0..100 {
            let from = match state(store).await? {
                State::Current => return Ok(None),
                State::Unfinished(marker) if marker.to == SCHEMA_VERSION => return Self::resume(store).await,
                // An older program began the upgrade. Its lifts are idempotent, so they run again.
                State::Unfinished(marker) => (store.version().await?, marker.from),
                State::Older(version) => (version, version),
            };
            let (present, from) = from;
            let marker = Marker::new(from, SCHEMA_VERSION, steps::name(from));
            let mut batch = Batch::default();
            batch.writes.push(Write::Put(marks::upgrade(), marks::UPGRADE_BEGUN, json(&marker)?, Prior::Any));
            store.change_version(present, SCHEMA_VERSION, batch).await?;
        }
        Err(UpgradeError::Refused("other programs keep claiming the store".into()))
    }

    /// Begins a trial: an upgrade that commits nothing. No other process may change the store during it.
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

    /// Begins the upgrade of a store of the present version to itself: it derives again what follows from records. It begins at the
    /// first record, also when an earlier one was interrupted. Until its end no program opens the store.
    ///
    /// # Errors
    /// As of [`state`]; the store has an older version, or an upgrade of it has begun.
    pub async fn again(store: &'s dyn Versioned) -> Result<Self, UpgradeError> {
        is_present(store).await?;
        let marker = Marker::new(SCHEMA_VERSION, SCHEMA_VERSION, steps::name(SCHEMA_VERSION));
        let mut batch = Batch::default();
        batch.writes.push(Write::Put(marks::upgrade(), marks::UPGRADE_BEGUN, json(&marker)?, Prior::Any));
        if !store.change_version(SCHEMA_VERSION, SCHEMA_VERSION, batch).await? {
            return Err(UpgradeError::Refused("another program has upgraded the store".into()));
        }
        let begun = Self::resume(store).await?;
        begun.ok_or_else(|| UpgradeError::Refused("another program has ended the walk through the store".into()))
    }

    /// A trial of [`Upgrade::again`], which commits nothing.
    ///
    /// # Errors
    /// See [`Upgrade::again`].
    pub async fn again_trial(store: &'s dyn Versioned) -> Result<Self, UpgradeError> {
        is_present(store).await?;
        Ok(Self::new(store, None, Marker::new(SCHEMA_VERSION, SCHEMA_VERSION, steps::name(SCHEMA_VERSION))))
    }

    fn new(store: &'s dyn Versioned, row: Option<Progress>, marker: Marker) -> Self {
        Self {
            store: WholePages(store),
            row,
            marker,
            page: VecDeque::new(),
            context: None,
            leaving: None,
            pending: HashMap::new(),
            submitted: Submitted::to(store),
            claimed: HashSet::new(),
            sizes: Sizes::of(store),
        }
    }

    async fn resume(store: &'s dyn Versioned) -> Result<Option<Self>, UpgradeError> {
        let Some(record) = get_one(store, &marks::upgrade()).await? else { return Ok(None) };
        let marker = Marker::read(&record).map_err(UpgradeError::Refused)?;
        Ok(Some(Self::new(store, Some(Progress::of(&record)), marker)))
    }

    /// Limits batches to `rows` rows and windows to three batches, for tests of interruptions.
    #[must_use]
    pub fn in_batches_of(self, rows: usize) -> Self {
        Self { sizes: self.sizes.small(rows), ..self }
    }

    /// The progress of the upgrade.
    #[must_use]
    pub fn progress(&self) -> &Marker {
        &self.marker
    }

    /// Builds the next window and submits it to the engine. When this returns, the window before it is committed.
    /// [`Step::Done`] means that the upgrade is complete.
    ///
    /// # Errors
    /// The engine failed. Call [`Upgrade::begin`] again to continue from the marker.
    pub async fn step(&mut self) -> Result<Step, UpgradeError> {
        let mut window = Window::new(self.sizes);
        let before = self.marker.clone();
        let mut done = false;
        // Records without changes do not fill a window. The limit bounds the work that is repeated after a crash.
        while !window.is_full() && !done && self.marker.seen - before.seen < WINDOW_RECORDS {
            if !self.submitted.poll()? {
                return self.follow_other_process().await;
            }
            done = match self.marker.phase {
                Phase::Records => {
                    self.upgrade_records(&mut window).await?;
                    false
                }
                Phase::Sweep => {
                    // The sweep counts rows, so all submitted batches must be committed first.
                    if !self.wait_for_commits(0).await? {
                        return self.follow_other_process().await;
                    }
                    self.sweep(&mut window).await?
                }
            };
        }
        self.commit(window, before, done).await
    }

    /// Waits until at most `most` batches are not yet committed; false when one of them was stale.
    async fn wait_for_commits(&mut self, most: usize) -> Result<bool, UpgradeError> {
        let applied = self.submitted.wait(most).await?;
        if applied && self.submitted.is_empty() {
            self.claimed.clear();
        }
        Ok(applied)
    }

    /// Submits a window. Only its last batch advances the marker, so after a crash the upgrade repeats the whole window and
    /// skips rows that are already written.
    async fn commit(&mut self, window: Window, mut before: Marker, done: bool) -> Result<Step, UpgradeError> {
        let parts = window.into_parts();
        let batches = parts.len();
        for (at, writes) in parts.into_iter().enumerate() {
            let is_removal = |write: &&Write| matches!(write, Write::Delete(key) if derive::is_derived(key));
            let removed = writes.iter().filter(is_removal).count() as u64;
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
            self.submitted.push(batch);
        }
        if self.row.is_none() {
            (self.marker.removed, self.marker.written) = (before.removed, before.written);
            return Ok(if done { Step::Done } else { Step::Continue });
        }
        self.pending.clear();
        // A sweep reads the rows of this window, and the end must be durable, so both wait for all batches.
        let most = if done || self.marker.phase == Phase::Sweep { 0 } else { batches };
        match self.wait_for_commits(most).await? {
            true if done => Ok(Step::Done),
            true => Ok(Step::Continue),
            false => self.follow_other_process().await,
        }
    }

    /// Continues from the marker of another process that committed first.
    async fn follow_other_process(&mut self) -> Result<Step, UpgradeError> {
        // The submitted batches check a marker that was never written, so none of them is applied.
        self.submitted.clear();
        self.claimed.clear();
        self.page.clear();
        self.context = None;
        self.pending.clear();
        versioned::known(self.store.version().await?).map_err(UpgradeError::Refused)?;
        match get_one(&self.store, &marks::upgrade()).await? {
            None => Ok(Step::Done),
            Some(record) => {
                self.marker = Marker::read(&record).map_err(UpgradeError::Refused)?;
                self.row = Some(Progress::of(&record));
                Ok(Step::Overtaken)
            }
        }
    }

    /// Adds the next records of the organization to the window; after the last one, begins its sweep.
    async fn upgrade_records(&mut self, window: &mut Window) -> Result<(), UpgradeError> {
        if self.page.is_empty() {
            let mut span = self.span();
            let page = self.store.scan(&span, PAGE).await?;
            move_behind(&mut span, &page);
            self.page = page.into();
        }
        let Some(first) = self.page.front() else {
            self.marker.phase = Phase::Sweep;
            return Ok(());
        };
        let organization = owner(key_of(first));
        if self.marker.organization.is_some_and(|current| current != organization) {
            self.marker.phase = Phase::Sweep;
            return Ok(());
        }
        self.marker.organization = Some(organization);
        let is_leaving = self.is_leaving().await?;
        yield_to_other_tasks().await;
        let mut lifted = Vec::with_capacity(self.sizes.chunk);
        while lifted.len() < self.sizes.chunk
            && self.page.front().is_some_and(|row| owner(key_of(row)) == organization)
            && let Some(row) = self.page.pop_front()
        {
            self.marker.seen += 1;
            self.marker.set_after(key_of(&row));
            let key = key_of(&row).clone();
            match self.lifted(organization, row).await? {
                Ok(one) if is_leaving => {
                    self.marker.damage_here = true;
                    lifted.push(Lifted { rows: derive::Rows::default(), ..one });
                }
                Ok(one) => {
                    if let Some((counter, number)) = one.rows.number {
                        let highest = self.marker.numbers.entry(counter.to_owned()).or_default();
                        *highest = number.max(*highest);
                    }
                    lifted.push(one);
                }
                Err(reason) => {
                    self.marker.note(&key, &reason);
                    self.marker.damage_here = true;
                }
            }
        }
        self.write(window, lifted).await
    }

    /// Whether a task deletes the present organization. Its record went first.
    pub(super) async fn is_leaving(&mut self) -> Result<bool, UpgradeError> {
        let Some(organization) = self.marker.organization.filter(|one| *one != SYSTEM) else { return Ok(false) };
        if let Some((_, leaving)) = self.leaving.filter(|(known, _)| *known == organization) {
            return Ok(leaving);
        }
        let places = [Organization::key(SYSTEM, organization), key::task(organization_deletion::task_id(organization))];
        let found = get_each(&self.store, &places).await?;
        let leaving = matches!(found.as_slice(), [Ok(None), Ok(Some(_))]);
        self.leaving = Some((organization, leaving));
        Ok(leaving)
    }

    /// The span of the records after the position in the marker.
    fn span(&self) -> Span {
        let first = Key::from_bytes(&[Tag::Record as u8]);
        let from = self.marker.after().map_or_else(|| first.clone(), |after| after.next());
        Span { from, to: after(&first), order: Order::Ascending, follow: None }
    }

    /// Lifts a record to the present version. The inner error says why the record cannot be upgraded.
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

    /// Reads and lifts the record of the present organization.
    pub(super) async fn load(&mut self, organization: OrganizationId) -> Result<(), UpgradeError> {
        if self.context.as_ref().is_some_and(|(known, _)| *known == organization) {
            return Ok(());
        }
        let members = if organization == SYSTEM {
            Ok(Members::default())
        } else {
            let place = Organization::key(SYSTEM, organization);
            match get_each(&self.store, std::slice::from_ref(&place)).await?.pop() {
                Some(Ok(Some(record))) => Members::parse(&record.value).and_then(|mut members| {
                    // In a trial the stored record is not lifted.
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

/// Checks that a store has the present version, and no upgrade of an older one has begun.
async fn is_present(store: &dyn Versioned) -> Result<(), UpgradeError> {
    let version = match state(store).await? {
        State::Current => return Ok(()),
        State::Unfinished(marker) if marker.from == SCHEMA_VERSION => return Ok(()),
        State::Unfinished(_) => SCHEMA_VERSION,
        State::Older(version) => version,
    };
    Err(StoreError::NeedsUpgrade(versioned::needs_upgrade(version)).into())
}

/// The resource and the id in the key of a record.
pub(super) fn parts(key: &Key) -> Option<(&'static ResourceSpec, Uuid)> {
    let bytes = key.as_bytes();
    (bytes.len() == 34).then_some(())?;
    Some((spec_of_tag(bytes[17])?, key.id()?))
}

/// The organization's id in the key of a record.
pub(super) fn owner(key: &Key) -> OrganizationId {
    key.as_bytes().get(1..17).and_then(OrganizationId::from_slice).unwrap_or(SYSTEM)
}

fn json(marker: &Marker) -> Result<Bytes, UpgradeError> {
    serde_json::to_vec(marker).map(Bytes::from).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> UpgradeError {
    UpgradeError::Refused(format!("the marker of the upgrade cannot be written: {error}"))
}

/// The description of a damaged record, for the operator.
pub(super) fn detail(error: Error) -> String {
    match error {
        Error::Damaged(row) => row.reason.clone(),
        Error::Internal(detail) => detail,
        other => format!("{other:?}"),
    }
}
