//! Idempotency keys. The first response is stored in the transaction of the change, so a crash can neither repeat a request
//! nor apply a part of it (`docs/decisions.md`, "Keys, plans, idempotency").

use crate::{
    error::Error,
    rows::key,
    store::{Batch, Check, DamagedRow, Key, Prior, Record, Revision, Span, Store, after, get_each, key_of},
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
pub struct Ticket {
    /// The idempotency key, without quotes.
    pub name: String,
    fingerprint: String,
}

impl Ticket {
    /// The ticket of one request. `header` is the value of `Idempotency-Key`, with or without quotes.
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

/// A memo: the stored response of an idempotency key.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub struct Memo {
    fingerprint: String,
    /// HTTP status of the stored response, replayed for a repeated idempotency key.
    pub status: u16,
    /// Revision of the object in the response; `None` for an error.
    pub revision: Option<Revision>,
    kept_at: Timestamp,
    /// Body of the response.
    pub body: Box<RawValue>,
}

impl Memo {
    /// The time from which the response is no longer replayed.
    pub(crate) fn expires_at(&self) -> Timestamp {
        self.kept_at.plus_millis(KEPT_MILLIS)
    }
}

/// The result of [`look_up`].
pub enum Known {
    /// There is no stored response. Contains the expired one, which [`remember`] must replace.
    Fresh(Option<Record>),
    /// The stored response of an earlier request.
    Answered(Memo),
}

/// Looks up the stored response of a ticket.
///
/// # Errors
/// [`Error::IdempotencyReused`] when the key was used for another request.
pub async fn look_up(
    store: &dyn Store,
    organization: OrganizationId,
    ticket: &Ticket,
    now: Timestamp,
) -> Result<Known, Error> {
    let keys = [key::memo(organization, &ticket.name)];
    let Some(record) = store.get(&keys).await?.pop().flatten() else { return Ok(Known::Fresh(None)) };
    let memo: Memo = serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?;
    if memo.kept_at.plus_millis(KEPT_MILLIS) <= now {
        return Ok(Known::Fresh(Some(record)));
    }
    if memo.fingerprint == ticket.fingerprint { Ok(Known::Answered(memo)) } else { Err(Error::IdempotencyReused) }
}

/// Adds the stored response to `batch`. The batch is stale if another request has stored one for the same key.
///
/// The body of the response must be JSON: an object that the batch writes, or an error.
pub fn remember(
    batch: &mut Batch,
    organization: OrganizationId,
    ticket: &Ticket,
    outdated: Option<Record>,
    answer: (u16, Option<Revision>, &Bytes),
    now: Timestamp,
) {
    let value = memo(ticket, answer, now);
    let place = key::memo(organization, &ticket.name);
    let prior = if outdated.is_some() { Prior::Any } else { Prior::New };
    match outdated {
        Some(record) => batch.replace(place, record.revision, value),
        None => batch.insert(place, value),
    }
    batch.mark(key::memo_expiry(now.plus_millis(KEPT_MILLIS).millis(), organization, &ticket.name), prior);
}

/// The JSON of a [`Memo`]. The body is copied without parsing it.
fn memo(ticket: &Ticket, (status, revision, body): (u16, Option<Revision>, &Bytes), now: Timestamp) -> Bytes {
    let revision = revision.map_or_else(|| "null".to_owned(), |revision| revision.to_string());
    let head = format!(
        "{{\"fingerprint\":\"{}\",\"status\":{status},\"revision\":{revision},\"kept_at\":\"{now}\",\"body\":",
        ticket.fingerprint
    );
    let mut value = Vec::with_capacity(head.len() + body.len() + 1);
    value.extend_from_slice(head.as_bytes());
    value.extend_from_slice(body);
    value.push(b'}');
    debug_assert!(serde_json::from_slice::<Memo>(&value).is_ok(), "an answer is JSON");
    value.into()
}

/// The result of one step of [`sweep`].
#[derive(Debug)]
pub struct Sweep {
    /// The removals of expired responses. Commit it before the next step.
    pub batch: Batch,
    /// Damaged rows. They and their expiries stay in the store.
    pub damaged: Vec<Box<DamagedRow>>,
    /// The key at which the next step begins.
    pub behind: Key,
}

/// Removes responses that were stored more than 24 hours ago. Reads at most `most` expiries of `span`; `None` when there are
/// none. Begin with [`key::memo_expiries_until`] and continue from [`Sweep::behind`].
///
/// # Errors
/// The store is not available.
pub async fn sweep(store: &dyn Store, span: &Span, now: Timestamp, most: usize) -> Result<Option<Sweep>, Error> {
    let found = store.scan(span, most).await?;
    let Some(behind) = found.last().map(|row| after(key_of(row))) else { return Ok(None) };
    let (mut expired, mut memos, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
    for row in found {
        let named = row.and_then(|row| match key::memo_of_expiry(&row.key) {
            Some(memo) => Ok((row.key, memo)),
            None => Err(DamagedRow::new(row.key, "it names no idempotency key")),
        });
        match named {
            Ok((expiry, memo)) => {
                expired.push(expiry);
                memos.push(memo);
            }
            Err(row) => damaged.push(row),
        }
    }
    let mut batch = Batch::default();
    for (expiry, memo) in expired.into_iter().zip(get_each(store, &memos).await?) {
        let outdated = memo.and_then(|record| match record {
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
            Err(row) => damaged.push(row),
        }
    }
    Ok(Some(Sweep { batch, damaged, behind }))
}

fn is_outdated(record: &Record, now: Timestamp) -> Result<bool, Box<DamagedRow>> {
    let memo: Result<Memo, _> = serde_json::from_slice(&record.value);
    let memo = memo.map_err(|error| DamagedRow::new(record.key.clone(), format!("it does not parse: {error}")))?;
    Ok(memo.expires_at() <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(header: &str, body: &str) -> Result<Ticket, &'static str> {
        Ticket::new(header.as_bytes(), "POST", "/v1/leads", body.as_bytes())
    }

    #[test]
    fn a_memo_has_the_members_and_the_order_of_its_struct() {
        let ticket = ticket("abc", "{}").unwrap();
        for (status, revision, body) in [(200, Some(7), "{\"a\": 1.50}"), (400, None, "{}")] {
            let body = Bytes::from_static(body.as_bytes());
            let written = memo(&ticket, (status, revision, &body), Timestamp::from_millis(1_999));
            let read: Memo = serde_json::from_slice(&written).unwrap();
            assert_eq!((read.status, read.revision, read.body.get().as_bytes()), (status, revision, &body[..]));
            assert_eq!(serde_json::to_vec(&read).unwrap(), written);
        }
    }

    #[test]
    fn a_quoted_key_is_the_same_as_a_bare_one() {
        assert_eq!(ticket("\"abc\"", ""), ticket("abc", ""));
        assert_ne!(ticket("abc", "{}"), ticket("abc", ""));
    }

    #[test]
    fn a_key_is_1_to_255_visible_characters() {
        let (longest, longer) = ("k".repeat(255), "k".repeat(256));
        assert!(ticket(&longest, "").is_ok());
        for bad in ["", "\"\"", "a b", "é", "tab\t", &longer] {
            assert!(ticket(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_of_a_request_cannot_run_into_each_other() {
        let one = Ticket::new(b"k", "POST", "/v1/leads", b"x");
        let other = Ticket::new(b"k", "POST", "/v1/lead", b"sx");
        assert_ne!(one, other);
    }
}
