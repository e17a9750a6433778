//! Reads and changes the schema version of a database, for an upgrade.

use super::{
    connections::unanswered,
    engine::Postgres,
    schema,
    session::{self, QueryError, describe},
};
use crate::store::{Answer, Batch, StoreError, Versioned, Write, versioned};
use std::sync::atomic::Ordering;
use tokio::time::timeout;
use tokio_postgres::Error;

impl Versioned for Postgres {
    fn version(&self) -> Answer<'_, u64> {
        Box::pin(async move {
            let client = session::take(&self.connections.pool).await?;
            let asked = timeout(self.connections.patience, schema::version(&client)).await;
            let version = asked.map_err(|_| unanswered())?.map_err(|error| QueryError::from(&error))?;
            let version =
                version.ok_or_else(|| StoreError::DamagedStore("the database has no schema version".into()))?;
            // A newer server may have upgraded the store.
            versioned::known(version).map_err(StoreError::Unavailable)?;
            self.connections.version.store(version, Ordering::Release);
            Ok(version)
        })
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        Box::pin(async move {
            let client = session::take(&self.connections.pool).await?;
            let changed =
                timeout(self.connections.patience, change(&client, self.connections.begin, from, to, &batch)).await;
            match changed {
                Ok(Ok(changed)) => {
                    if changed {
                        self.connections.version.store(to, Ordering::Release);
                    }
                    Ok(changed)
                }
                Ok(Err(error)) => {
                    session::discard(client);
                    Err(StoreError::Unknown(describe(&error)))
                }
                Err(_) => {
                    session::discard(client);
                    Err(StoreError::Unknown("the database did not answer in time".into()))
                }
            }
        })
    }
}

/// Changes the version and applies `batch` in one transaction, which locks the row of `rental.store` like every commit.
async fn change(client: &session::Client, begin: &str, from: u64, to: u64, batch: &Batch) -> Result<bool, Error> {
    client.batch_execute(begin).await?;
    let claim =
        "UPDATE rental.store SET schema_version = $2, commits = commits + 1 WHERE id = 1 AND schema_version = $1";
    let mut holds = client.execute(claim, &[&from.cast_signed(), &to.cast_signed()]).await? == 1;
    for check in &batch.checks {
        let found =
            client.query_opt("SELECT revision FROM rental.rows WHERE key = $1", &[&check.key().as_bytes()]).await?;
        let revision = found.map(|row| row.try_get::<_, i64>(0)).transpose()?.map(i64::cast_unsigned);
        holds &= check.holds(revision);
    }
    for write in batch.writes.iter().filter(|_| holds) {
        match write {
            Write::Put(key, revision, value, _) => {
                let put = "INSERT INTO rental.rows (key, revision, value) VALUES ($1, $2, $3) \
                           ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
                client.execute(put, &[&key.as_bytes(), &revision.cast_signed(), &value.as_ref()]).await?;
            }
            Write::Delete(key) => {
                client.execute("DELETE FROM rental.rows WHERE key = $1", &[&key.as_bytes()]).await?;
            }
        }
    }
    client.batch_execute(if holds { "COMMIT" } else { "ROLLBACK" }).await?;
    Ok(holds)
}
