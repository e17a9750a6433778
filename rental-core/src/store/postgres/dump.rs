//! One moment of the whole database, for a reader that takes its time.

use super::{
    connections::{Connections, unanswered},
    link::{Client, Trouble, discard, take},
    record::record,
    version,
};
use crate::store::{Record, Span, StoreError};
use std::time::Duration;
use tokio::time::timeout;

/// Rows that are read at a time.
const ROWS: i64 = 200;
const PAGE: &str = "SELECT key, revision, value FROM rental.rows WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3";
/// Longer than the pauses of whoever reads slowly on purpose.
const IDLE: Duration = Duration::from_secs(300);

/// All rows as they were when it was taken, whatever is written meanwhile.
///
/// While it lives, the database keeps the versions of rows that were replaced since. Let it go soon.
pub struct Snapshot {
    client: Option<Client>,
    /// Where the next rows begin, and where they end.
    from: Vec<u8>,
    to: Vec<u8>,
    patience: Duration,
}

impl Snapshot {
    pub(super) async fn take(connections: &Connections) -> Result<Self, StoreError> {
        let (pool, patience) = (&connections.pool, connections.patience);
        // From here on dropping it closes the connection, with whatever transaction is open in it.
        let mut snapshot = Self { client: Some(take(pool).await?), from: Vec::new(), to: Vec::new(), patience };
        snapshot.seek(&Span::everything());
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
            false => Trouble::from(&error).into(),
        })?;
        Ok(snapshot)
    }

    /// Goes to the first row of a span; entries are not followed.
    pub fn seek(&mut self, span: &Span) {
        self.from = span.from.as_bytes().to_vec();
        self.to = span.to.as_bytes().to_vec();
    }

    /// The next rows of the span, by rising key; none at the end.
    ///
    /// # Errors
    /// The database cannot serve; the snapshot is lost then.
    pub async fn next(&mut self) -> Result<Vec<Record>, StoreError> {
        let client = self.client.as_ref().ok_or_else(lost)?;
        let reading = async {
            let statement = client.prepare_cached(PAGE).await?;
            client.query(&statement, &[&self.from, &self.to, &ROWS]).await
        };
        let rows = match timeout(self.patience, reading).await {
            Ok(rows) => rows.map_err(|error| Trouble::from(&error).into()),
            Err(_) => Err(unanswered()),
        };
        if rows.is_err() {
            self.client.take().into_iter().for_each(discard);
        }
        let rows = rows?;
        let records = rows.iter().map(|row| record(row, 0)).collect::<Result<Vec<_>, _>>()?;
        if let Some(last) = records.last() {
            // The next key that there can be.
            self.from = [last.key.as_bytes(), &[0]].concat();
        }
        Ok(records)
    }
}

fn lost() -> StoreError {
    StoreError::Unavailable("the snapshot was lost".into())
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // Its transaction is open.
        self.client.take().into_iter().for_each(discard);
    }
}
