//! The connections for reads. Each runs one statement at a time. When a connection is lost, another one repeats the
//! statement.

use super::{
    session::{self, QueryError},
    version,
};
use crate::store::StoreError;
use deadpool_postgres::Pool;
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::timeout;
use tokio_postgres::{Row, types::ToSql};

/// How often a read is tried when its connection is lost.
const READ_ATTEMPTS: usize = 3;

/// Connections for reads, with a time limit for each statement.
#[derive(Clone)]
pub(super) struct Connections {
    pub(super) pool: Pool,
    /// Longest wait for one response of the database.
    pub(super) patience: Duration,
    /// The schema version that statements expect.
    pub(super) version: version::Expected,
    /// The statement that begins a transaction that writes.
    pub(super) begin: &'static str,
}

impl Connections {
    /// The schema version, as a parameter of [`version::guard`].
    pub(super) fn expected(&self) -> i64 {
        self.version.load(Ordering::Acquire).cast_signed()
    }

    /// Runs one statement; repeats it on another connection when its connection is lost.
    pub(super) async fn read(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut last = None;
        for _ in 0..READ_ATTEMPTS {
            let client = match session::take(&self.pool).await {
                Ok(client) => client,
                Err(failure) => return Err(failure.into()),
            };
            let asking = async {
                let statement = client.prepare_cached(sql).await?;
                client.query(&statement, values).await
            };
            let error = match timeout(self.patience, asking).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) => error,
                Err(_) => {
                    session::discard(client);
                    return Err(unanswered());
                }
            };
            if version::is_of_guard(&error) {
                return Err(StoreError::Unavailable(version::outdated(self.expected().cast_unsigned(), None)));
            }
            session::discard(client);
            match QueryError::from(&error) {
                failure @ (QueryError::Retry(_) | QueryError::Conflict(_)) => last = Some(failure.into()),
                failure => return Err(failure.into()),
            }
        }
        Err(last.unwrap_or_else(unanswered))
    }
}

/// The error of a read that timed out.
pub(super) fn unanswered() -> StoreError {
    StoreError::Unavailable("the database did not answer in time".into())
}
