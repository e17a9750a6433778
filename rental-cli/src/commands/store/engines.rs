//! Opens the engines of stores: cache of a file, connections to a database.

use super::failures::database_failure;
use crate::{
    config::{environment, private_file},
    edge,
    failure::Failure,
};
use rental_core::store::postgres::{Address, Postgres, Settings};
use std::{path::Path, time::Duration};
use tokio::runtime::{Builder, Runtime};

/// Cache of an open store file.
pub(super) const CACHE_BYTES: usize = 256 << 20;
/// Time-out of each database operation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Creates the runtime that database connections need.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let made = Builder::new_current_thread().enable_all().build();
    made.map_err(|error| Failure::Io { doing: "connect to the database".into(), error })
}

/// Connects to a database whose store has the current version.
pub(super) async fn connect(address: &Address) -> Result<Postgres, Failure> {
    let (address, roots, settings) = settings_of(address)?;
    Postgres::open(&address, roots.as_ref().map(String::as_bytes), settings).await.map_err(database_failure)
}

/// Connects to a database whose store may be of an older version.
pub(super) async fn connect_any_version(address: &Address) -> Result<Postgres, Failure> {
    let (address, roots, settings) = settings_of(address)?;
    Postgres::open_any_version(&address, roots.as_ref().map(String::as_bytes), settings).await.map_err(database_failure)
}

fn settings_of(address: &Address) -> Result<(Address, Option<String>, Settings), Failure> {
    // Fails if a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut address = address.clone();
    if address.lacks_password()
        && let Some(password) = password(&address)?
    {
        address.set_password(&password);
    }
    let roots = address.root_certificate().map(private_file::read);
    let roots = roots.transpose().map_err(|error| Failure::Io { doing: "read the root certificate".into(), error })?;
    Ok((address, roots, Settings { writer: edge::server_id(), patience: PATIENCE }))
}

/// Returns the password from `PGPASSWORD` or `PGPASSFILE`, as libpq does.
fn password(address: &Address) -> Result<Option<String>, Failure> {
    if let Some(password) = environment::variable("PGPASSWORD") {
        return Ok(password.into_string().ok());
    }
    let Some(path) = environment::variable("PGPASSFILE") else { return Ok(None) };
    let read = private_file::read(Path::new(&path));
    let text = read.map_err(|error| Failure::Io { doing: format!("read {}", path.to_string_lossy()), error })?;
    Ok(address.password_in(&text))
}
