//! One turn at the database: the row of all commits, what a group expects and writes, the commit.

use super::{
    group::{Plan, Rows},
    link::{Client, Trouble, describe},
    version::outdated,
};
use crate::store::Revision;
use futures_util::future::{join, join4};
use std::collections::HashMap;
use tokio_postgres::{Error, Row, Statement, error::SqlState, types::ToSql};

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const LOCK: &str = "UPDATE rental.store SET commits = commits + 1 WHERE id = 1 RETURNING schema_version";
// What returns nothing is no table for CockroachDB, hence RETURNING.
const LOCK_AND_MARK: &str = "WITH mark AS (INSERT INTO rental.writers (id, last, seen) VALUES ($1, $2, now()) \
                             ON CONFLICT (id) DO UPDATE SET last = excluded.last, seen = excluded.seen RETURNING last) \
                             UPDATE rental.store SET commits = commits + 1 WHERE id = 1 RETURNING schema_version";
const REVISIONS: &str = "SELECT key, revision FROM rental.rows WHERE key = ANY($1)";
const NEW: &str = "INSERT INTO rental.rows (key, revision, value) \
                   SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[])";
// Fails, with a division by zero, unless all is as it is expected. Looks each key up: as a join, it would be a scan of all
// rows where the planner still takes the table for small.
const GUARD: &str = "SELECT 1 / (CASE WHEN count(*) = 0 THEN 1 ELSE 0 END) \
                     FROM unnest($1::bytea[], $2::bigint[]) u (key, expected) LEFT JOIN LATERAL \
                     (SELECT t.revision FROM rental.rows t WHERE t.key = u.key LIMIT 1) r ON true \
                     WHERE CASE u.expected WHEN -1 THEN r.revision IS NOT NULL WHEN -2 THEN r.revision IS NULL \
                     ELSE r.revision IS DISTINCT FROM u.expected END";
const OTHER: &str = "INSERT INTO rental.rows (key, revision, value) \
                     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) \
                     ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
const GONE: &str = "DELETE FROM rental.rows WHERE key = ANY($1)";
const LAST: &str = "SELECT last FROM rental.writers WHERE id = $1";

/// What a statement fails with when the store is not as it was expected.
const UNEXPECTED: [SqlState; 2] = [SqlState::UNIQUE_VIOLATION, SqlState::DIVISION_BY_ZERO];

/// How a commit that was sent did not succeed.
pub(super) enum Ending {
    /// Its transaction failed before it, because the store is not as the batches expect.
    Unexpected,
    /// Its transaction failed before it.
    Clean(Trouble),
    /// It may have happened all the same.
    Unclear(Trouble),
}

/// A transaction that holds the row of `rental.store`. Whoever lets it go without [`Turn::finish`] ends it.
pub(super) struct Turn {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

impl Turn {
    /// The revisions of those of `keys` that are there.
    pub(super) async fn revisions(&self, keys: &[&[u8]]) -> Result<HashMap<Vec<u8>, Revision>, Trouble> {
        let read = async {
            let rows = self.client.query(&self.statements.revisions, &[&keys]).await?;
            let revision = |row: &Row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?.cast_unsigned()));
            rows.iter().map(revision).collect::<Result<_, Error>>()
        };
        read.await.map_err(|error| Trouble::from(&error))
    }

    /// Writes what is planned, if what is expected is there, and commits: one round trip.
    pub(super) async fn finish(&self, plan: &Plan<'_>) -> Result<(), Ending> {
        // With nothing to write there is nothing to wait for the disk for.
        let end = if plan.is_empty() { "ROLLBACK" } else { "COMMIT" };
        let (written, ended) = join(self.write(plan), self.client.batch_execute(end)).await;
        match written {
            Ok(()) => ended.map_err(|error| unclear(&error)),
            // After an error of a statement its transaction cannot be committed any more. An error of the connection may
            // come from a proxy in between, which does not know what became of the rest.
            Err(error) => Err(match error.code() {
                Some(code) if UNEXPECTED.contains(code) => Ending::Unexpected,
                Some(code) if *code == SqlState::QUERY_CANCELED || !is_of_connection(code) => {
                    Ending::Clean(Trouble::from(&error))
                }
                _ => unclear(&error),
            }),
        }
    }

    /// Sends what `plan` looks at and writes, in this order, without waiting for answers.
    async fn write(&self, plan: &Plan<'_>) -> Result<(), Error> {
        let Self { client, statements } = self;
        let rows = async |statement: &Statement, rows: &Rows<'_>| match rows.keys.len() {
            0 => Ok(0),
            _ => client.execute(statement, &[&rows.keys, &rows.revisions, &rows.values]).await,
        };
        let (guarded, new, other, gone) = join4(
            async {
                let (keys, expected): (Vec<&[u8]>, Vec<i64>) = plan.guards.iter().copied().unzip();
                if keys.is_empty() { Ok(0) } else { client.execute(&statements.guard, &[&keys, &expected]).await }
            },
            rows(&statements.new, &plan.new),
            rows(&statements.other, &plan.other),
            async { if plan.gone.is_empty() { Ok(0) } else { client.execute(&statements.gone, &[&plan.gone]).await } },
        )
        .await;
        // The first error is the reason of those after it.
        [guarded, new, other, gone].into_iter().try_for_each(|done| done.map(drop))
    }
}

/// Takes the row of all commits and leaves the mark of this one: one round trip.
pub(super) async fn lock(client: &Client, id: &[u8], number: i64, expected: u64) -> Result<Statements, Trouble> {
    let taken = async {
        let statements = Statements::prepare(client).await?;
        let mark: [&(dyn ToSql + Sync); 2] = [&id, &number];
        // They are sent in this order, without waiting for answers.
        let (begun, locked) = join(client.batch_execute(BEGIN), client.query_opt(&statements.lock, &mark)).await;
        begun?;
        Ok((statements, locked?.map(|row| row.try_get::<_, i64>(0)).transpose()?))
    };
    let (statements, version) = taken.await.map_err(|error: Error| Trouble::from(&error))?;
    let version = version.map(i64::cast_unsigned);
    if version != Some(expected) {
        return Err(Trouble::Refused(outdated(expected, version)));
    }
    Ok(statements)
}

/// The statements of a turn, prepared on its connection.
pub(super) struct Statements {
    lock: Statement,
    revisions: Statement,
    guard: Statement,
    new: Statement,
    other: Statement,
    gone: Statement,
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            lock: client.prepare_cached(LOCK_AND_MARK).await?,
            revisions: client.prepare_cached(REVISIONS).await?,
            guard: client.prepare_cached(GUARD).await?,
            new: client.prepare_cached(NEW).await?,
            other: client.prepare_cached(OTHER).await?,
            gone: client.prepare_cached(GONE).await?,
        })
    }
}

/// Whatever is answered but success, it is looked up what happened: engines differ in what they call certain.
fn unclear(error: &Error) -> Ending {
    Ending::Unclear(match Trouble::from(error) {
        outrun @ Trouble::Outrun(_) => outrun,
        _ => Trouble::Again(format!("a commit was not answered: {}", describe(error))),
    })
}

fn is_of_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57")
}

/// The number of this server's last commit, once no other transaction writes: one round trip.
pub(super) async fn last_number(client: &Client, id: &[u8]) -> Result<Option<i64>, Error> {
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
