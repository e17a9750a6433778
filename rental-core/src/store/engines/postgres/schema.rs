//! Reads the schema version, and creates the tables of a new store. The first server that connects does it.

use super::{
    address::Address,
    session::{Client, describe},
};
use crate::store::{Absent, SCHEMA_VERSION, StoreError, versioned};
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

/// Returns the version of the store, and refuses versions that cannot be upgraded. Creates the tables of a new store if
/// `absent` says so.
pub(super) async fn prepare(client: &Client, address: &Address, absent: Absent) -> Result<u64, StoreError> {
    let failed = |why: String| StoreError::Unavailable(format!("{address} {why}"));
    let refused = |error: &Error| failed(refused(error));
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        if let Some(version) = version(client).await.map_err(|error| refused(&error))? {
            return versioned::known(version).map(|()| version).map_err(failed);
        }
        // The version is read again: another server may have created the store between the two statements.
        if has_rows(client).await.map_err(|error| refused(&error))?
            && version(client).await.map_err(|error| refused(&error))?.is_none()
        {
            return Err(without_version(address));
        }
        if absent == Absent::Fail {
            return Err(failed("holds no store".into()));
        }
        match make(client).await {
            Ok(()) => continue,
            // Another server creates them at the same time: PostgreSQL reports a duplicate in its catalogue.
            Err(error) if is_race(&error) => last = describe(&error),
            Err(error) => return Err(refused(&error)),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(failed(format!("cannot make its tables, because another server is in the way: {last}")))
}

/// The error for rows without a version. The present version would be a guess, and rows of an older version would never be
/// upgraded.
fn without_version(address: &Address) -> StoreError {
    StoreError::DamagedStore(format!(
        "{address} has rows, but its table rental.store has no row with their schema version, as when a dump is being \
         loaded or was not loaded completely; nothing was changed. Drop the schema `rental` and load the dump again with \
         `psql --single-transaction` or `pg_restore --single-transaction`. Without a dump, add the row: INSERT INTO \
         rental.store (id, schema_version, commits) VALUES (1, VERSION, 0), where VERSION is the schema version of the \
         program that wrote the rows, which its CHANGELOG.md names; this program has {SCHEMA_VERSION}"
    ))
}

/// Whether a table exists in the schema `rental`.
async fn has_table(client: &Client, name: &str) -> Result<bool, Error> {
    let there = "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'rental' AND c.relname = $1";
    Ok(client.query_one(there, &[&name]).await?.try_get::<_, i64>(0)? > 0)
}

/// Whether the store has at least one row.
async fn has_rows(client: &Client) -> Result<bool, Error> {
    Ok(has_table(client, "rows").await? && client.query_opt("SELECT 1 FROM rental.rows LIMIT 1", &[]).await?.is_some())
}

/// The schema version of the database; `None` when it has no tables.
pub(super) async fn version(client: &Client) -> Result<Option<u64>, Error> {
    if !has_table(client, "store").await? {
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
    // Rows without a version are those of an unknown version.
    let first = format!(
        "INSERT INTO rental.store (id, schema_version, commits) SELECT 1, {SCHEMA_VERSION}, 0 \
         WHERE NOT EXISTS (SELECT 1 FROM rental.rows) ON CONFLICT (id) DO NOTHING;"
    );
    // YugabyteDB distributes keys by hash by default, but every list reads a range of keys. Other databases reject this
    // setting.
    let _ = client.batch_execute("SET yb_use_hash_splitting_by_default = off").await;
    let made = client.batch_execute(&format!("BEGIN; {schema} {TABLES} {first} COMMIT")).await;
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
