//! Commits a write, once for each idempotency key, and prepares it again when something it read has changed.

use super::{
    edge::Edge,
    idempotency::{self, Known, Memo, Ticket},
    intent::{Intent, Prepared},
};
use crate::{
    error::Error,
    store::{Batch, Commit, Revision, Store},
    value::OrganizationId,
};
use bytes::Bytes;

/// The response of a write.
#[derive(Debug)]
pub struct Written {
    /// HTTP status of the response; of a replay, that of the stored response.
    pub status: u16,
    /// Body of the response.
    pub body: Bytes,
    /// Revision of the object in the response; `None` for an error.
    pub revision: Option<Revision>,
    /// Whether this is the stored response of an earlier request with the same idempotency key.
    pub replayed: bool,
    /// Whether a batch was committed.
    pub committed: bool,
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
/// Errors of the intent that are not stored under an idempotency key; [`Error::Unavailable`] when the outcome of the commit
/// is unknown or too many concurrent writes changed the same objects.
pub async fn write(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: OrganizationId,
    ticket: Option<&Ticket>,
    intent: &dyn Intent,
    (success, render): (u16, Render<'_>),
) -> Result<Written, Error> {
    for _ in 0..MOST_ATTEMPTS {
        let mut outdated = None;
        if let Some(ticket) = ticket {
            match idempotency::look_up(store, organization, ticket, edge.now()).await? {
                Known::Answered(memo) => return Ok(replay(memo)),
                Known::Fresh(record) => outdated = record,
            }
        }
        let (mut batch, mut written) = match intent.prepare(store, edge).await {
            Ok(Prepared { batch, body, revision }) => {
                (batch, Written { status: success, body, revision: Some(revision), replayed: false, committed: false })
            }
            Err(error) if ticket.is_some() && error.is_final() => {
                let (status, body) = render(&error);
                (Batch::default(), Written { status, body, revision: None, replayed: false, committed: false })
            }
            Err(error) => return Err(error),
        };
        if let Some(ticket) = ticket {
            let answer = (written.status, written.revision, &written.body);
            idempotency::remember(&mut batch, organization, ticket, outdated, answer, edge.now());
        }
        if batch.is_empty() {
            return Ok(written);
        }
        if store.commit(batch).await? == Commit::Applied {
            written.committed = true;
            return Ok(written);
        }
    }
    Err(Error::Unavailable("others changed the same objects too often".into()))
}

fn replay(memo: Memo) -> Written {
    let body = Bytes::copy_from_slice(memo.body.get().as_bytes());
    Written { status: memo.status, body, revision: memo.revision, replayed: true, committed: false }
}
