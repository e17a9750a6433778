//! Idempotency keys. The first response is stored in the transaction of the change, so a crash can neither repeat a request
//! nor apply a part of it (`docs/decisions.md`, "Keys, plans, idempotency").

use crate::{
    error::Error,
    rows::key,
    store::{Batch, Check, Commit, DamagedRow, Prior, Record, Revision, Scanned, Store, get_each, get_one, key_of},
    value::{OrganizationId, Timestamp},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// How long a response is stored, in milliseconds: 24 hours.
pub const KEPT_MILLIS: i64 = 24 * 3600 * 1000;
/// Most characters of an idempotency key.
pub(crate) const MAX_KEY: usize = 255;

/// The idempotency key of a request, and a hash that identifies the request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IdempotencyKey {
    /// The idempotency key, without quotes.
    pub name: String,
    fingerprint: String,
}

impl IdempotencyKey {
    /// The key of one request. `header` is the value of `Idempotency-Key`, with or without quotes.
    ///
    /// # Errors
    /// A sentence for the client: the key is empty, too long, or contains other than visible ASCII characters.
    pub fn new(header: &[u8], method: &str, path: &str, body: &[u8]) -> Result<Self, &'static str> {
        let bare = match header {
            [b'"', inner @ .., b'"'] => inner,
            other => other,
        };
        if bare.is_empty() || bare.len() > MAX_KEY || !bare.iter().all(u8::is_ascii_graphic) {
            return Err("must be 1 to 255 visible ASCII characters");
        }
        let mut hash = Sha256::new();
        for part in [method.as_bytes(), path.as_bytes(), body] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Ok(Self { name: String::from_utf8_lossy(bare).into_owned(), fingerprint: hex::encode(hash.finalize()) })
    }
}

/// The stored response of an idempotency key.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub struct IdempotencyRecord {
    fingerprint: String,
    /// HTTP status of the stored response, replayed for a repeated idempotency key.
    pub status: u16,
    /// Revision of the object in the response; `None` for an error.
    pub revision: Option<Revision>,
    kept_at: Timestamp,
    /// Body of the response.
    pub body: Box<RawValue>,
}

impl IdempotencyRecord {
    /// The time from which the response is no longer replayed.
    pub(crate) fn expires_at(&self) -> Timestamp {
        self.kept_at.plus_millis(KEPT_MILLIS)
    }
}

/// The result of [`look_up`].
pub enum Lookup {
    /// There is no stored response. Contains the expired one, which [`remember`] must replace.
    NotStored(Option<Record>),
    /// The stored response of an earlier request.
    Stored(IdempotencyRecord),
}

/// Looks up the stored response of an idempotency key.
///
/// # Errors
/// [`Error::IdempotencyReused`] when the key was used for another request.
pub async fn look_up(
    store: &dyn Store,
    organization: OrganizationId,
    idempotency_key: &IdempotencyKey,
    now: Timestamp,
) -> Result<Lookup, Error> {
    let place = key::idempotency_record(organization, &idempotency_key.name);
    let Some(record) = get_one(store, &place).await? else { return Ok(Lookup::NotStored(None)) };
    let stored: IdempotencyRecord =
        crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    if stored.kept_at.plus_millis(KEPT_MILLIS) <= now {
        return Ok(Lookup::NotStored(Some(record)));
    }
    if stored.fingerprint == idempotency_key.fingerprint {
        Ok(Lookup::Stored(stored))
    } else {
        Err(Error::IdempotencyReused)
    }
}

/// Adds the stored response to `batch`. The batch is stale if another request has stored one for the same key.
///
/// The body of the response must be JSON: an object that the batch writes, or an error.
pub fn remember(
    batch: &mut Batch,
    organization: OrganizationId,
    idempotency_key: &IdempotencyKey,
    outdated: Option<Record>,
    answer: (u16, Option<Revision>, &Bytes),
    now: Timestamp,
) {
    let value = encode(idempotency_key, answer, now);
    let place = key::idempotency_record(organization, &idempotency_key.name);
    let prior = if outdated.is_some() { Prior::Any } else { Prior::New };
    match outdated {
        Some(record) => batch.replace(place, record.revision, value),
        None => batch.insert(place, value),
    }
    batch.mark(
        key::idempotency_expiry(now.plus_millis(KEPT_MILLIS).millis(), organization, &idempotency_key.name),
        prior,
    );
}

/// The JSON of a [`IdempotencyRecord`]. The body is copied without parsing it.
fn encode(
    idempotency_key: &IdempotencyKey,
    (status, revision, body): (u16, Option<Revision>, &Bytes),
    now: Timestamp,
) -> Bytes {
    let revision = revision.map_or_else(|| "null".to_owned(), |revision| revision.to_string());
    let head = format!(
        "{{\"fingerprint\":\"{}\",\"status\":{status},\"revision\":{revision},\"kept_at\":\"{now}\",\"body\":",
        idempotency_key.fingerprint
    );
    let mut value = Vec::with_capacity(head.len() + body.len() + 1);
    value.extend_from_slice(head.as_bytes());
    value.extend_from_slice(body);
    value.push(b'}');
    debug_assert!(serde_json::from_slice::<IdempotencyRecord>(&value).is_ok(), "an answer is JSON");
    value.into()
}

/// Removes responses that were stored more than 24 hours ago, with at most `most` in a batch. Calls `damaged` for each damaged
/// row: it and its expiry stay in the store.
///
/// # Errors
/// The store is not available.
pub async fn remove_expired(
    store: &dyn Store,
    now: Timestamp,
    most: usize,
    damaged: &mut (dyn FnMut(Box<DamagedRow>) + Send),
) -> Result<(), Error> {
    let mut span = key::idempotency_expiries_until(now.millis());
    loop {
        let found = store.scan(&span, most).await?;
        let Some(behind) = found.last().map(|row| key_of(row).next()) else { return Ok(()) };
        let batch = removal(store, found, now, damaged).await?;
        // Stale when an idempotency key was used again: the same expiries are read again.
        if batch.is_empty() || store.commit(batch).await? == Commit::Applied {
            span.from = behind;
        }
    }
}

/// The batch that removes the expired responses which these expiries name.
async fn removal(
    store: &dyn Store,
    found: Vec<Scanned>,
    now: Timestamp,
    damaged: &mut (dyn FnMut(Box<DamagedRow>) + Send),
) -> Result<Batch, Error> {
    let (mut expired, mut keys) = (Vec::new(), Vec::new());
    for row in found {
        let named = row.and_then(|row| match key::idempotency_record_of(&row.key) {
            Some(place) => Ok((row.key, place)),
            None => Err(DamagedRow::new(row.key, "it names no idempotency key")),
        });
        match named {
            Ok((expiry, place)) => {
                expired.push(expiry);
                keys.push(place);
            }
            Err(row) => damaged(row),
        }
    }
    let mut batch = Batch::default();
    for (expiry, stored) in expired.into_iter().zip(get_each(store, &keys).await?) {
        let outdated = stored.and_then(|record| match record {
            Some(record) if is_outdated(&record, now)? => Ok(Some(record)),
            _ => Ok(None),
        });
        match outdated {
            Ok(record) => {
                // The key may have been used again. Only an expired response is removed, and only if it is unchanged.
                if let Some(record) = record {
                    batch.checks.push(Check::At(record.key.clone(), record.revision));
                    batch.delete(record.key);
                }
                batch.delete(expiry);
            }
            Err(row) => damaged(row),
        }
    }
    Ok(batch)
}

fn is_outdated(record: &Record, now: Timestamp) -> Result<bool, Box<DamagedRow>> {
    let stored: Result<IdempotencyRecord, _> = crate::value::read_json(&record.value);
    let stored = stored.map_err(|error| DamagedRow::new(record.key.clone(), format!("it does not parse: {error}")))?;
    Ok(stored.expires_at() <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idempotency_key(header: &str, body: &str) -> Result<IdempotencyKey, &'static str> {
        IdempotencyKey::new(header.as_bytes(), "POST", "/v1/leads", body.as_bytes())
    }

    #[test]
    fn a_stored_response_has_the_members_and_the_order_of_its_struct() {
        let idempotency_key = idempotency_key("abc", "{}").unwrap();
        for (status, revision, body) in [(200, Some(7), "{\"a\": 1.50}"), (400, None, "{}")] {
            let body = Bytes::from_static(body.as_bytes());
            let written = encode(&idempotency_key, (status, revision, &body), Timestamp::from_millis(1_999));
            let read: IdempotencyRecord = serde_json::from_slice(&written).unwrap();
            assert_eq!((read.status, read.revision, read.body.get().as_bytes()), (status, revision, &body[..]));
            assert_eq!(serde_json::to_vec(&read).unwrap(), written);
        }
    }

    #[test]
    fn a_quoted_key_is_the_same_as_a_bare_one() {
        assert_eq!(idempotency_key("\"abc\"", ""), idempotency_key("abc", ""));
        assert_ne!(idempotency_key("abc", "{}"), idempotency_key("abc", ""));
    }

    #[test]
    fn a_key_is_1_to_255_visible_characters() {
        let (longest, longer) = ("k".repeat(255), "k".repeat(256));
        assert!(idempotency_key(&longest, "").is_ok());
        for bad in ["", "\"\"", "a b", "é", "tab\t", &longer] {
            assert!(idempotency_key(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_of_a_request_cannot_run_into_each_other() {
        let one = IdempotencyKey::new(b"k", "POST", "/v1/leads", b"x");
        let other = IdempotencyKey::new(b"k", "POST", "/v1/lead", b"sx");
        assert_ne!(one, other);
    }
}
