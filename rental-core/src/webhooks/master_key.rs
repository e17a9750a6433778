//! Which master key seals the secrets of webhook endpoints and the addresses of calendar feeds, and its change.
//!
//! The keys are in a file of each server, never in the store. One row of the store, [`InUse`], names the key in use by its
//! [`Fingerprint`]. Each batch that adds a sealed secret checks that row ([`sealing`]). So after the row names another key,
//! no secret is sealed with the former one, and one walk over all secrets ([`SealingAnew`]) ends the change. Until then
//! a server needs both keys.

use super::secret::{Fingerprint, MasterKey, MasterKeys, Sealed, SealedSecret, bound_to};
use crate::{
    error::Error,
    resources::to_json,
    rows::{Row, calendar_feed::ImportedFeed, key},
    store::{
        Batch, Check, DamagedRow, Pages, Prior, Record, Revision, Store, StoreError, Write, after, get_each, key_of,
    },
    value::{CalendarFeedId, EndpointId, OrganizationId, Timestamp},
};
use serde::{Deserialize, Serialize};

/// Endpoints whose secrets one batch seals anew, and calendar feeds whose addresses it does.
pub const BATCH: usize = 256;
/// Most ids in a [`Survey`]. Further endpoints are only counted.
pub const MOST_LISTED: usize = 100;
/// Endpoints whose secrets a survey reads at a time.
const PAGE: usize = 500;

/// The master key of a store: the value of its row.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct InUse {
    /// The key that seals new secrets.
    pub current: Fingerprint,
    /// The key before, while secrets that it sealed are sealed anew.
    pub former: Option<Fingerprint>,
}

impl InUse {
    /// The first key in use that is not among `keys`.
    #[must_use]
    pub fn missing_in(&self, keys: &MasterKeys) -> Option<&Fingerprint> {
        [Some(&self.current), self.former.as_ref()].into_iter().flatten().find(|name| keys.get(name).is_none())
    }
}

/// The row about the master key, as it was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stored {
    /// The key in use; `None` if the store does not say.
    pub in_use: Option<InUse>,
    /// The damage, if the row is damaged.
    pub damage: Option<Box<DamagedRow>>,
    revision: Revision,
}

impl Stored {
    /// Reads the row.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn read(store: &dyn Store) -> Result<Self, Error> {
        let found = get_each(store, &[key::master_key()]).await?.pop().unwrap_or(Ok(None));
        Ok(match found.and_then(|record| record.map(parse).transpose()) {
            Ok(Some((in_use, revision))) => Self { in_use: Some(in_use), damage: None, revision },
            Ok(None) => Self { in_use: None, damage: None, revision: 0 },
            Err(row) => Self { in_use: None, damage: Some(row), revision: 0 },
        })
    }

    /// Adds the check that the row has not changed. A damaged row cannot be checked.
    fn check(&self) -> Option<Check> {
        match (&self.in_use, &self.damage) {
            (_, Some(_)) => None,
            (Some(_), None) => Some(Check::At(key::master_key(), self.revision)),
            (None, None) => Some(Check::Absent(key::master_key())),
        }
    }

    /// Adds the change of the row to a batch, which fails if the row has changed since.
    ///
    /// # Errors
    /// Never for values that this program made.
    pub fn change(&self, batch: &mut Batch, to: &InUse) -> Result<(), Error> {
        batch.checks.extend(self.check());
        batch.writes.push(Write::Put(key::master_key(), self.revision + 1, to_json(to)?, Prior::Any));
        Ok(())
    }
}

fn parse(record: Record) -> Result<(InUse, Revision), Box<DamagedRow>> {
    let in_use = crate::value::read_json(&record.value);
    in_use
        .map(|in_use| (in_use, record.revision))
        .map_err(|error| DamagedRow::new(record.key, format!("it does not parse: {error}")))
}

/// The key with which a new secret is sealed. Adds the check that it is still in use to the batch of the secret.
///
/// # Errors
/// [`Error::Unavailable`] if the key in use is not among `keys`.
pub async fn sealing<'k>(store: &dyn Store, keys: &'k MasterKeys, batch: &mut Batch) -> Result<&'k MasterKey, Error> {
    let stored = Stored::read(store).await?;
    if let Some(row) = stored.damage {
        return Err(Error::Damaged(row));
    }
    batch.checks.extend(stored.check());
    let Some(in_use) = stored.in_use else { return Ok(keys.newest()) };
    keys.get(&in_use.current).ok_or_else(|| lacks(&in_use.current))
}

fn lacks(name: &Fingerprint) -> Error {
    Error::Unavailable(format!("the file of master keys of this server lacks key {name}, which the store uses: add it"))
}

/// How many endpoints have secrets, and whose secrets cannot be opened.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Survey {
    /// Endpoints with secrets.
    pub endpoints: u64,
    /// Endpoints whose newest secret cannot be opened: their deliveries wait until the secret is rotated.
    pub unreadable: u64,
    /// The first [`MOST_LISTED`] of them.
    pub unreadable_ids: Vec<EndpointId>,
    /// Calendar feeds with an address.
    pub calendar_feeds: u64,
    /// Calendar feeds whose address cannot be opened: they are not read until they are made again.
    pub unreadable_calendar_feeds: u64,
}

/// Opens the newest secret of each endpoint, and the address of each calendar feed. Damaged rows are skipped.
///
/// # Errors
/// The store is not available.
pub async fn survey(store: &dyn Store, keys: &MasterKeys) -> Result<Survey, Error> {
    let (mut survey, mut span) = (Survey::default(), key::secrets_of_all());
    loop {
        let page = match store.scan(&span, PAGE).await {
            // Damaged pages are all that is left.
            Err(StoreError::Damaged(_)) => break,
            page => page?,
        };
        let Some(last) = page.last() else { break };
        span.from = after(key_of(last));
        for (endpoint, sealed) in page.into_iter().flatten().filter_map(|record| read(&record).ok()) {
            survey.endpoints += 1;
            if keys.open_all(endpoint, &sealed).is_err() {
                survey.unreadable += 1;
                if survey.unreadable_ids.len() < MOST_LISTED {
                    survey.unreadable_ids.push(endpoint);
                }
            }
        }
    }
    let mut pages = Pages::of(store, key::calendar_feeds(), PAGE);
    loop {
        let page = match pages.next().await {
            Err(StoreError::Damaged(_)) | Ok(None) => break,
            Ok(Some(page)) => page,
            Err(error) => return Err(error.into()),
        };
        for (feed, address) in page.into_iter().flatten().filter_map(|row| address(&row)) {
            survey.calendar_feeds += 1;
            survey.unreadable_calendar_feeds += u64::from(keys.open(bound_to(feed.id), &address).is_err());
        }
    }
    Ok(survey)
}

/// The place of a calendar feed in the walk over all of them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct FeedPlace {
    organization: OrganizationId,
    id: CalendarFeedId,
}

/// The address of a calendar feed, if its row has one.
fn address(row: &Record) -> Option<(FeedPlace, SealedSecret)> {
    let Some(Row::CalendarFeed { organization, feed }) = Row::decode(&row.key) else { return None };
    Some((FeedPlace { organization, id: feed }, ImportedFeed::read(row).ok()?.sealed?))
}

fn read(record: &Record) -> Result<(EndpointId, Sealed), Box<DamagedRow>> {
    let sealed = crate::value::read_json(&record.value);
    let sealed = sealed.map_err(|error| DamagedRow::new(record.key.clone(), format!("it does not parse: {error}")))?;
    let endpoint = record.key.id().ok_or_else(|| DamagedRow::new(record.key.clone(), "it names no endpoint"))?;
    Ok((EndpointId::from_uuid(endpoint), sealed))
}

/// How far the walk has come that seals all secrets with the key in use.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SealingAnew {
    /// The last endpoint of the walk so far.
    pub done_to: Option<EndpointId>,
    /// Whether the walk over the endpoints has ended. That over the calendar feeds follows.
    #[serde(default)]
    pub endpoints_done: bool,
    /// The last calendar feed of the walk so far.
    #[serde(default)]
    pub feeds_done_to: Option<FeedPlace>,
    /// Secrets that were sealed anew.
    pub sealed: u64,
    /// Secrets that no key opens. They stay as they are.
    pub unreadable: u64,
}

/// Adds the next step to `batch`; true if it is the last one, which drops the former key. `now` decides which secrets still
/// matter: one whose overlap has ended is removed.
///
/// # Errors
/// [`Error::Unavailable`] if this server lacks a key: another server can do the step.
pub(crate) async fn step(
    store: &dyn Store,
    keys: &MasterKeys,
    state: &mut SealingAnew,
    (batch, now): (&mut Batch, Timestamp),
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    let stored = Stored::read(store).await?;
    if let Some(row) = stored.damage {
        return Err(Error::Damaged(row));
    }
    if let Some(missing) = stored.in_use.as_ref().and_then(|in_use| in_use.missing_in(keys)) {
        return Err(lacks(missing));
    }
    let current = stored.in_use.as_ref().and_then(|in_use| keys.get(&in_use.current)).unwrap_or_else(|| keys.newest());
    state.endpoints_done =
        state.endpoints_done || endpoints(store, (keys, current), state, (batch, now), damaged).await?;
    let done = state.endpoints_done && feeds(store, (keys, current), state, batch, damaged).await?;
    match stored.in_use.clone() {
        Some(in_use) if done && in_use.former.is_some() => stored.change(batch, &InUse { former: None, ..in_use })?,
        _ => batch.checks.extend(stored.check()),
    }
    Ok(done)
}

/// Seals the secrets of the next endpoints anew; true when no endpoints follow.
async fn endpoints(
    store: &dyn Store,
    (keys, current): (&MasterKeys, &MasterKey),
    state: &mut SealingAnew,
    (batch, now): (&mut Batch, Timestamp),
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    let mut span = key::secrets_of_all();
    if let Some(done) = state.done_to {
        span.from = after(&key::secrets(done));
    }
    let rows = store.scan(&span, BATCH).await?;
    let done = rows.len() < BATCH;
    state.done_to = rows.last().and_then(|row| key_of(row).id()).map(EndpointId::from_uuid).or(state.done_to);
    for row in rows {
        match row.and_then(|record| Ok((read(&record)?, record))) {
            Ok(((endpoint, sealed), record)) => {
                if let Some(anew) = sealed_anew((keys, current), state, endpoint, &sealed, now)? {
                    batch.replace(record.key, record.revision, to_json(&anew)?);
                }
            }
            Err(row) => damaged.push(*row),
        }
    }
    Ok(done)
}

/// Seals the addresses of the next calendar feeds anew; true when no feeds follow.
async fn feeds(
    store: &dyn Store,
    (keys, current): (&MasterKeys, &MasterKey),
    state: &mut SealingAnew,
    batch: &mut Batch,
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    let mut span = key::calendar_feeds();
    if let Some(FeedPlace { organization, id }) = state.feeds_done_to {
        span.from = after(&key::calendar_feed(organization, id));
    }
    let rows = store.scan(&span, BATCH).await?;
    let done = rows.len() < BATCH;
    if let Some(Row::CalendarFeed { organization, feed: id }) = rows.last().and_then(|row| Row::decode(key_of(row))) {
        state.feeds_done_to = Some(FeedPlace { organization, id });
    }
    for row in rows {
        let read = row.and_then(|record| Ok((ImportedFeed::read(&record).map_err(|_| unread(&record))?, record)));
        let (feed, record) = match read {
            Ok(read) => read,
            Err(row) => {
                damaged.push(*row);
                continue;
            }
        };
        let Some(Row::CalendarFeed { feed: id, .. }) = Row::decode(&record.key) else { continue };
        let Some(sealed) = feed.sealed.as_ref().filter(|sealed| sealed.key != *current.fingerprint()) else {
            continue;
        };
        match keys.open(bound_to(id), sealed) {
            Ok(text) => {
                let anew = current.seal_anew(bound_to(id), sealed, &text).map_err(Error::Internal)?;
                let anew = ImportedFeed { sealed: Some(anew), ..feed };
                batch.replace(record.key, record.revision, to_json(&anew)?);
                state.sealed += 1;
            }
            Err(_) => state.unreadable += 1,
        }
    }
    Ok(done)
}

fn unread(record: &Record) -> Box<DamagedRow> {
    DamagedRow::new(record.key.clone(), "it does not parse")
}

/// The secrets of an endpoint that are in force, all sealed with `current`; `None` if that changes nothing.
fn sealed_anew(
    (keys, current): (&MasterKeys, &MasterKey),
    state: &mut SealingAnew,
    endpoint: EndpointId,
    sealed: &Sealed,
    now: Timestamp,
) -> Result<Option<Sealed>, Error> {
    let mut anew = Sealed(sealed.in_force(now).cloned().collect());
    for secret in anew.0.iter_mut().filter(|secret| secret.key != *current.fingerprint()) {
        match keys.open(endpoint, secret) {
            Ok(text) => {
                *secret = current.seal_anew(endpoint, secret, &text).map_err(Error::Internal)?;
                state.sealed += 1;
            }
            Err(_) => state.unreadable += 1,
        }
    }
    Ok((anew != *sealed).then_some(anew))
}
