//! Creates the tables. The first server that connects does it.

use super::session::{Client, describe};
use crate::store::{SCHEMA_VERSION, versioned};
use std::time::Duration;
use tokio_postgres::{Error, error::SqlState};

/// `store` has one row. Every commit changes it first, which serializes commits. `writers` records the last commit of each
/// server, which resolves a commit with an unknown outcome. Plain SQL, for every database that speaks the protocol.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS rental.store (id smallint PRIMARY KEY, schema_version bigint NOT NULL, commits bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS rental.rows (key bytea PRIMARY KEY, revision bigint NOT NULL, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS rental.writers (id bytea PRIMARY KEY, last bigint NOT NULL, seen timestamptz NOT NULL);";
/// How often a server tries to create the tables while other servers do the same.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Creates missing tables, refuses versions that cannot be upgraded, and returns the version.
pub(super) async fn prepare(client: &Client) -> Result<u64, String> {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match version(client).await {
            Ok(Some(version)) => return versioned::known(version).map(|()| version),
            Ok(None) => {}
            Err(error) => return Err(refused(&error)),
        }
        match make(client).await {
            Ok(()) => continue,
            // Another server creates them at the same time: PostgreSQL reports a duplicate in its catalogue.
            Err(error) if is_race(&error) => last = describe(&error),
            Err(error) => return Err(refused(&error)),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(format!("cannot make its tables, because another server is in the way: {last}"))
}

/// The schema version of the database; `None` when it has no tables.
pub(super) async fn version(client: &Client) -> Result<Option<u64>, Error> {
    let there = "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'rental' AND c.relname = 'store'";
    if client.query_one(there, &[]).await?.try_get::<_, i64>(0)? == 0 {
        return Ok(None);
    }
    let row = client.query_opt("SELECT schema_version FROM rental.store WHERE id = 1", &[]).await?;
    row.map(|row| row.try_get::<_, i64>(0).map(i64::cast_unsigned)).transpose()
}

async fn make(client: &Client) -> Result<(), Error> {
    let there = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'rental'";
    // Checked first, because a user without the right to create schemas may use an existing one.
    let schema = match client.query_one(there, &[]).await?.try_get::<_, i64>(0)? {
        0 => "CREATE SCHEMA IF NOT EXISTS rental;",
        _ => "",
    };
    let first = "INSERT INTO rental.store (id, schema_version, commits) VALUES (1, ";
    // YugabyteDB distributes keys by hash by default, but every list reads a range of keys. Other databases reject this
    // setting.
    let _ = client.batch_execute("SET yb_use_hash_splitting_by_default = off").await;
    let made = client
        .batch_execute(&format!(
            "BEGIN; {schema} {TABLES} {first}{SCHEMA_VERSION}, 0) ON CONFLICT (id) DO NOTHING; COMMIT"
        ))
        .await;
    if made.is_err() {
        // Some databases fail here because nothing is left to roll back. The first error is the one to report.
        let _ = client.batch_execute("ROLLBACK").await;
    }
    made
}

fn is_race(error: &Error) -> bool {
    const RACES: [SqlState; 6] = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_SCHEMA,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| RACES.contains(code))
}

fn refused(error: &Error) -> String {
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => format!(
            "does not let this user have its tables ({}): let it CREATE in the database, or make the schema `rental` with \
             this user as its owner",
            describe(error)
        ),
        _ => format!("cannot be prepared: {}", describe(error)),
    }
}
