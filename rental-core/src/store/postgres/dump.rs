//! One moment of the whole database, for a reader that takes its time.

use super::{
    link::{Client, Trouble, discard, take},
    record, unanswered,
};
use crate::store::{Key, Record, StoreError};
use deadpool_postgres::Pool;
use std::time::Duration;
use tokio::time::timeout;

/// Rows that are read at a time.
const ROWS: i64 = 200;
const PAGE: &str = "SELECT key, revision, value FROM rental.rows WHERE key > $1 ORDER BY key LIMIT $2";
/// Longer than the pauses of whoever reads slowly on purpose.
const IDLE: Duration = Duration::from_secs(300);

/// All rows as they were when it was taken, whatever is written meanwhile.
///
/// While it lives, the database keeps the versions of rows that were replaced since. Let it go soon.
pub struct Snapshot {
    client: Option<Client>,
    after: Vec<u8>,
    patience: Duration,
}

impl Snapshot {
    pub(super) async fn take(pool: &Pool, patience: Duration) -> Result<Self, StoreError> {
        // From here on dropping it closes the connection, with whatever transaction is open in it.
        let snapshot = Self { client: Some(take(pool).await?), after: Vec::new(), patience };
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = {}; \
             SELECT commits FROM rental.store WHERE id = 1",
            IDLE.as_millis()
        );
        let client = snapshot.client.as_ref().ok_or_else(lost)?;
        let begun = timeout(patience, client.batch_execute(&begin)).await;
        begun.map_err(|_| unanswered())?.map_err(|error| Trouble::from(&error))?;
        Ok(snapshot)
    }

    /// The next rows, by rising key; none at the end.
    ///
    /// # Errors
    /// The database cannot serve; the snapshot is lost then.
    pub async fn next(&mut self) -> Result<Vec<Record>, StoreError> {
        let client = self.client.as_ref().ok_or_else(lost)?;
        let reading = async {
            let statement = client.prepare_cached(PAGE).await?;
            client.query(&statement, &[&self.after, &ROWS]).await
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
            self.after = Key::as_bytes(&last.key).to_vec();
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
