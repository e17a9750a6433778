//! A snapshot of the whole store, for long reads such as a backup.

use super::{
    connections::{Connections, unanswered},
    record::record,
    session::{Client, QueryError, discard, take},
    version,
};
use crate::store::{self, Answer, Record, Span, StoreError};
use std::time::Duration;
use tokio::time::timeout;

/// Rows in one statement.
const ROWS: i64 = 200;
const PAGE: &str = "SELECT key, revision, value FROM rental.rows WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3";
/// The database ends a transaction that is idle for longer. A reader that limits its own rate pauses for less time.
const IDLE: Duration = Duration::from_secs(300);

/// The rows as they were when the snapshot was taken. Later writes do not change it.
///
/// While a snapshot exists, the database cannot remove replaced rows. Drop it soon.
pub struct Snapshot {
    client: Option<Client>,
    patience: Duration,
}

impl Snapshot {
    pub(super) async fn take(connections: &Connections) -> Result<Self, StoreError> {
        let (pool, patience) = (&connections.pool, connections.patience);
        // From here on, a drop of the snapshot closes the connection and so ends its transaction.
        let snapshot = Self { client: Some(take(pool).await?), patience };
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = {}; \
             SELECT 1 / count(*) FROM rental.store WHERE id = 1 AND schema_version = {}",
            IDLE.as_millis(),
            connections.expected()
        );
        let client = snapshot.client.as_ref().ok_or_else(lost)?;
        let begun = timeout(patience, client.batch_execute(&begin)).await;
        begun.map_err(|_| unanswered())?.map_err(|error| match version::is_of_guard(&error) {
            true => StoreError::Unavailable(version::outdated(connections.expected().cast_unsigned(), None)),
            false => QueryError::from(&error).into(),
        })?;
        Ok(snapshot)
    }

    /// Reads at most 200 rows; see [`store::Snapshot::next`]. The snapshot cannot be used after an error.
    async fn part(&mut self, rest: &mut Span) -> Result<Vec<Record>, StoreError> {
        let client = self.client.as_ref().ok_or_else(lost)?;
        let reading = async {
            let statement = client.prepare_cached(PAGE).await?;
            client.query(&statement, &[&rest.from.as_bytes(), &rest.to.as_bytes(), &ROWS]).await
        };
        let rows = match timeout(self.patience, reading).await {
            Ok(rows) => rows.map_err(|error| QueryError::from(&error).into()),
            Err(_) => Err(unanswered()),
        };
        if rows.is_err() {
            self.client.take().into_iter().for_each(discard);
        }
        let rows = rows?;
        let records = rows.iter().map(|row| record(row, 0)).collect::<Result<Vec<_>, _>>()?;
        if let Some(last) = records.last() {
            rest.from = last.key.next();
        }
        Ok(records)
    }
}

impl store::Snapshot for Snapshot {
    fn next<'a>(&'a mut self, rest: &'a mut Span) -> Answer<'a, Vec<Record>> {
        Box::pin(self.part(rest))
    }
}

fn lost() -> StoreError {
    StoreError::Unavailable("the snapshot was lost".into())
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // The connection has an open transaction, so the pool must not use it again.
        self.client.take().into_iter().for_each(discard);
    }
}
