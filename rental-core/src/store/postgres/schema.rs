//! The tables, made by whichever server comes first.

use super::link::{Client, describe};
use crate::store::{SCHEMA_VERSION, versioned};
use std::time::Duration;
use tokio_postgres::{Error, error::SqlState};

/// One row in `store` is what every commit changes first, so that commits come one after the other; `writers` tells a
/// server whether its last commit happened. Plain SQL, for every engine that speaks the protocol.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS rental.store (id smallint PRIMARY KEY, schema_version bigint NOT NULL, commits bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS rental.rows (key bytea PRIMARY KEY, revision bigint NOT NULL, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS rental.writers (id bytea PRIMARY KEY, last bigint NOT NULL, seen timestamptz NOT NULL);";
/// Times that a server looks again after another one was in its way.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Makes the tables if they are not there, and refuses those of versions that cannot be upgraded. Gives the version.
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
            // Another server makes them at this moment: PostgreSQL tells by a duplicate in its catalogue.
            Err(error) if is_race(&error) => last = describe(&error),
            Err(error) => return Err(refused(&error)),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(format!("cannot make its tables, because another server is in the way: {last}"))
}

/// The version of what is there; `None` without tables.
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
    // Asked first: whoever may not make schemas may still use one that was made for them.
    let schema = match client.query_one(there, &[]).await?.try_get::<_, i64>(0)? {
        0 => "CREATE SCHEMA IF NOT EXISTS rental;",
        _ => "",
    };
    let first = "INSERT INTO rental.store (id, schema_version, commits) VALUES (1, ";
    // YugabyteDB spreads keys by their hash unless it is told not to, and every list is a range of keys. Nobody else knows
    // this word.
    let _ = client.batch_execute("SET yb_use_hash_splitting_by_default = off").await;
    let made = client
        .batch_execute(&format!(
            "BEGIN; {schema} {TABLES} {first}{SCHEMA_VERSION}, 0) ON CONFLICT (id) DO NOTHING; COMMIT"
        ))
        .await;
    if made.is_err() {
        // Some engines say that there is nothing left to roll back. Why it was not made matters more.
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
