//! The transaction of a group: locks the row of `rental.store`, checks what the group expects, writes, and commits.

use super::{
    group::{Plan, Rows},
    session::{Client, QueryError, describe},
    version::outdated,
};
use crate::store::{Revision, tally::Changes};
use futures_util::future::{join, join4, join5};
use std::collections::HashMap;
use tokio_postgres::{Error, Row, Statement, error::SqlState, types::ToSql};

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
// A default of the role or of a pooler can change at any time, so each transaction says that its commit waits for the disk.
const BEGIN_DURABLE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = on";
const BEGIN_APPLIED: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = remote_apply";
const LOCK: &str = "UPDATE rental.store SET commits = commits + 1 WHERE id = 1 RETURNING schema_version";
// CockroachDB accepts a statement in WITH only if it returns rows, hence RETURNING.
const LOCK_AND_MARK: &str = "WITH mark AS (INSERT INTO rental.writers (id, last, seen) VALUES ($1, $2, now()) \
                             ON CONFLICT (id) DO UPDATE SET last = excluded.last, seen = excluded.seen RETURNING last) \
                             UPDATE rental.store SET commits = commits + 1 WHERE id = 1 RETURNING schema_version";
const REVISIONS: &str = "SELECT key, revision FROM rental.rows WHERE key = ANY($1)";
const INSERT: &str = "INSERT INTO rental.rows (key, revision, value) \
                   SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[])";
// Fails with a division by zero unless every key has its expected revision. LATERAL looks up each key: with a plain join
// and old statistics the planner may scan the whole table.
const GUARD: &str = "SELECT 1 / (CASE WHEN count(*) = 0 THEN 1 ELSE 0 END) \
                     FROM unnest($1::bytea[], $2::bigint[]) u (key, expected) LEFT JOIN LATERAL \
                     (SELECT t.revision FROM rental.rows t WHERE t.key = u.key LIMIT 1) r ON true \
                     WHERE CASE u.expected WHEN -1 THEN r.revision IS NOT NULL WHEN -2 THEN r.revision IS NULL \
                     ELSE r.revision IS DISTINCT FROM u.expected END";
const SIZES: &str = "SELECT key, octet_length(value) FROM rental.rows WHERE key = ANY($1)";
const UPSERT: &str = "INSERT INTO rental.rows (key, revision, value) \
                     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) \
                     ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
const DELETE: &str = "DELETE FROM rental.rows WHERE key = ANY($1)";
const LAST: &str = "SELECT last FROM rental.writers WHERE id = $1";

/// Error codes of statements when the store is not as the group expects.
const MISMATCH: [SqlState; 2] = [SqlState::UNIQUE_VIOLATION, SqlState::DIVISION_BY_ZERO];

/// How transactions that write begin, on a database with this `synchronous_commit`. The one stronger value than `on` stays;
/// other engines do not have the setting.
pub(super) fn begin(synchronous_commit: Option<&str>) -> &'static str {
    match synchronous_commit {
        None => BEGIN,
        Some("remote_apply") => BEGIN_APPLIED,
        Some(_) => BEGIN_DURABLE,
    }
}

/// Why a commit failed.
pub(super) enum CommitError {
    /// Nothing was written, because the store is not as the batches expect.
    Mismatch,
    /// Nothing was written, because a statement failed.
    NotCommitted(QueryError),
    /// The transaction may or may not have been committed.
    Unknown(QueryError),
}

/// A transaction that has locked the row of `rental.store`. A caller that does not call [`Transaction::finish`] must end it.
pub(super) struct Transaction {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

impl Transaction {
    /// Reads the revisions of those keys that have a value.
    pub(super) async fn revisions(&self, keys: &[&[u8]]) -> Result<HashMap<Vec<u8>, Revision>, QueryError> {
        let read = async {
            let rows = self.client.query(&self.statements.revisions, &[&keys]).await?;
            let revision = |row: &Row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?.cast_unsigned()));
            rows.iter().map(revision).collect::<Result<_, Error>>()
        };
        read.await.map_err(|error| QueryError::from(&error))
    }

    /// Checks the guards of `plan`, writes its rows, and commits, in one round trip. Counts what the plan changes.
    pub(super) async fn finish(
        &self,
        plan: &Plan<'_>,
        mut changes: Option<Changes>,
    ) -> Result<Option<Changes>, CommitError> {
        // Without writes a commit would wait for the disk for nothing.
        let end = if plan.is_empty() { "ROLLBACK" } else { "COMMIT" };
        let (written, ended) = join(self.write(plan, changes.as_mut()), self.client.batch_execute(end)).await;
        match written {
            Ok(()) => ended.map(|()| changes).map_err(|error| unknown_outcome(&error)),
            // After the error of a statement the database cannot commit the transaction. An error of the connection may
            // come from a proxy, which does not know whether the database committed.
            Err(error) => Err(match error.code() {
                Some(code) if MISMATCH.contains(code) => CommitError::Mismatch,
                Some(code) if *code == SqlState::QUERY_CANCELED || !is_of_connection(code) => {
                    CommitError::NotCommitted(QueryError::from(&error))
                }
                _ => unknown_outcome(&error),
            }),
        }
    }

    /// Sends the guards, inserts, upserts and deletes of `plan` in this order, without waiting for responses in between. Reads
    /// the sizes of the rows that will be replaced or removed, if they are counted.
    async fn write(&self, plan: &Plan<'_>, changes: Option<&mut Changes>) -> Result<(), Error> {
        let Self { client, statements } = self;
        let rows = async |statement: &Statement, rows: &Rows<'_>| match rows.keys.len() {
            0 => Ok(0),
            _ => client.execute(statement, &[&rows.keys, &rows.revisions, &rows.values]).await,
        };
        let replaced: Vec<&[u8]> = match &changes {
            Some(changes) => plan.replaced().filter(|key| changes.counts(key)).collect(),
            None => Vec::new(),
        };
        let (guarded, sizes, inserts, upserts, deletes) = join5(
            async {
                let (keys, expected): (Vec<&[u8]>, Vec<i64>) = plan.guards.iter().copied().unzip();
                if keys.is_empty() { Ok(0) } else { client.execute(&statements.guard, &[&keys, &expected]).await }
            },
            async {
                if replaced.is_empty() { Ok(Vec::new()) } else { client.query(&statements.sizes, &[&replaced]).await }
            },
            rows(&statements.inserts, &plan.inserts),
            rows(&statements.upserts, &plan.upserts),
            async {
                if plan.deletes.is_empty() {
                    Ok(0)
                } else {
                    client.execute(&statements.deletes, &[&plan.deletes]).await
                }
            },
        )
        .await;
        // The first error causes the later ones.
        guarded?;
        let sizes = sizes?;
        [inserts, upserts, deletes].into_iter().try_for_each(|done| done.map(drop))?;
        if let Some(changes) = changes {
            let size = |row: &Row| Ok((row.try_get(0)?, row.try_get::<_, i32>(1)?));
            let before = sizes.iter().map(size).collect::<Result<HashMap<Vec<u8>, i32>, Error>>()?;
            plan.count(changes, |key| before.get(key).and_then(|size| usize::try_from(*size).ok()));
        }
        Ok(())
    }
}

/// Begins a transaction as `begin` says, locks the row of `rental.store`, and records the number of this commit, in one round
/// trip.
pub(super) async fn lock(
    client: &Client,
    begin: &str,
    id: &[u8],
    number: i64,
    expected: u64,
) -> Result<Statements, QueryError> {
    let taken = async {
        let statements = Statements::prepare(client).await?;
        let mark: [&(dyn ToSql + Sync); 2] = [&id, &number];
        // Both are sent in this order, without waiting for the first response.
        let (begun, locked) = join(client.batch_execute(begin), client.query_opt(&statements.lock, &mark)).await;
        begun?;
        Ok((statements, locked?.map(|row| row.try_get::<_, i64>(0)).transpose()?))
    };
    let (statements, version) = taken.await.map_err(|error: Error| QueryError::from(&error))?;
    let version = version.map(i64::cast_unsigned);
    if version != Some(expected) {
        return Err(QueryError::Unavailable(outdated(expected, version)));
    }
    Ok(statements)
}

/// The statements of a transaction, prepared on its connection.
pub(super) struct Statements {
    lock: Statement,
    revisions: Statement,
    guard: Statement,
    sizes: Statement,
    inserts: Statement,
    upserts: Statement,
    deletes: Statement,
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            lock: client.prepare_cached(LOCK_AND_MARK).await?,
            revisions: client.prepare_cached(REVISIONS).await?,
            guard: client.prepare_cached(GUARD).await?,
            sizes: client.prepare_cached(SIZES).await?,
            inserts: client.prepare_cached(INSERT).await?,
            upserts: client.prepare_cached(UPSERT).await?,
            deletes: client.prepare_cached(DELETE).await?,
        })
    }
}

/// Treats every failed COMMIT as unknown: databases differ in which errors mean that it was not committed.
fn unknown_outcome(error: &Error) -> CommitError {
    CommitError::Unknown(match QueryError::from(error) {
        conflict @ QueryError::Conflict(_) => conflict,
        _ => QueryError::Retry(format!("a commit was not answered: {}", describe(error))),
    })
}

fn is_of_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57")
}

/// Locks the row of `rental.store`, so that no other transaction is open, and reads the number of this server's last commit,
/// in one round trip.
pub(super) async fn last_commit_number(client: &Client, id: &[u8]) -> Result<Option<i64>, Error> {
    let (lock, last) = (client.prepare_cached(LOCK).await?, client.prepare_cached(LAST).await?);
    let (begun, locked, found, ended) = join4(
        client.batch_execute(BEGIN),
        client.query_opt(&lock, &[]),
        client.query_opt(&last, &[&id]),
        client.batch_execute("ROLLBACK"),
    )
    .await;
    begun?;
    locked?;
    let found = found?.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    ended.map(|()| found)
}
