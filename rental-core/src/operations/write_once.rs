//! Commits a write, once for each idempotency key, and prepares it again when something it read has changed.

use super::{
    commit_for::commit_for,
    edge::Edge,
    erased,
    idempotency::{self, IdempotencyKey, IdempotencyRecord, Lookup},
    intent::{Intent, Prepared},
    notices::{beside, look_up},
};
use crate::{
    error::Error,
    resources::AnyObject,
    rows::Tag,
    schema::Notice,
    store::{Batch, Commit, Revision, Store, Write},
    value::OrganizationId,
};
use bytes::Bytes;
use std::sync::Mutex;

/// The response of a write.
#[derive(Debug)]
pub struct Written {
    /// HTTP status of the response; of a replay, that of the stored response.
    pub status: u16,
    /// Body of the response.
    pub body: Bytes,
    /// Revision of the object in the response; `None` for an error.
    pub revision: Option<Revision>,
    /// The object that the write is about; `None` for an error, a replay, and a write about several objects.
    pub object: Option<Box<dyn AnyObject>>,
    /// Whether this is the stored response of an earlier request with the same idempotency key.
    pub replayed: bool,
    /// Whether an event was committed for which deliveries are to be made.
    pub announced: bool,
    /// What else the store has of the vehicle, customer or rental that was written; none after a replay.
    pub notices: Vec<Notice>,
}

/// Most attempts to commit a write whose objects are changed concurrently.
const MOST_ATTEMPTS: usize = 256;

/// Turns an error that is stored under an idempotency key into a status and body.
pub type Render<'a> = &'a (dyn Fn(&Error) -> (u16, Bytes) + Sync);

/// Performs `intent`, once for each idempotency key.
///
/// `render` makes the response for an error that is stored under the key; `success` is the status of a success.
///
/// # Errors
/// Errors of the intent that are not stored under an idempotency key; [`Error::NotFound`] when the organization was deleted;
/// [`Error::Unavailable`] when the outcome of the commit
/// is unknown or too many concurrent writes changed the same objects.
pub async fn write(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: OrganizationId,
    idempotency_key: Option<&IdempotencyKey>,
    intent: &dyn Intent,
    (success, render): (u16, Render<'_>),
) -> Result<Written, Error> {
    for _ in 0..MOST_ATTEMPTS {
        let mut outdated = None;
        if let Some(idempotency_key) = idempotency_key {
            match idempotency::look_up(store, organization, idempotency_key, edge.now()).await? {
                Lookup::Stored(stored) => return replay(store, organization, stored).await,
                Lookup::NotStored(record) => outdated = record,
            }
        }
        let (mut batch, mut written, asks) = match intent.prepare(store, edge).await {
            Ok(Prepared { batch, body, revision, object, asks }) => {
                (batch, response(success, body, Some(revision), object), asks)
            }
            Err(error) if idempotency_key.is_some() && error.is_final() => {
                let (status, body) = render(&error);
                (Batch::default(), response(status, body, None, None), Vec::new())
            }
            Err(error) => return Err(error),
        };
        if let Some(idempotency_key) = idempotency_key {
            let answer = (written.status, written.revision, &written.body);
            idempotency::remember(&mut batch, organization, idempotency_key, outdated, answer, edge.now());
        }
        if batch.is_empty() {
            return Ok(written);
        }
        let announces = batch.writes.iter().any(has_event);
        let commit = commit_for(store, organization, batch);
        let committed = match &written.object {
            Some(object) if !asks.is_empty() => {
                let found = Mutex::default();
                // Boxed: most writes ask nothing.
                let looking = Box::pin(look_up(store, organization, object.subject().1, &asks, &found));
                let committed = beside(commit, looking).await?;
                written.notices = found.into_inner().unwrap_or_default();
                committed
            }
            _ => commit.await?,
        };
        if committed == Commit::Applied {
            written.announced = announces;
            return Ok(written);
        }
    }
    Err(Error::Unavailable("others changed the same objects too often".into()))
}

fn has_event(write: &Write) -> bool {
    matches!(write, Write::Put(key, ..) if key.as_bytes().first() == Some(&(Tag::Outbox as u8)))
}

fn response(status: u16, body: Bytes, revision: Option<Revision>, object: Option<Box<dyn AnyObject>>) -> Written {
    Written { status, body, revision, object, replayed: false, announced: false, notices: Vec::new() }
}

/// The stored response, without personal data when its customer was erased since.
async fn replay(store: &dyn Store, organization: OrganizationId, stored: IdempotencyRecord) -> Result<Written, Error> {
    let body = Bytes::copy_from_slice(stored.body.get().as_bytes());
    let (body, _) = erased::present_copy(store, organization, body).await?;
    Ok(Written { replayed: true, ..response(stored.status, body, stored.revision, None) })
}
