//! Connections: made, bounded in time, thrown away when in doubt; and what their errors mean.

use super::address::{self, Address};
use crate::store::StoreError;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use std::{sync::Arc, time::Duration};
use tokio_postgres::{Error, config::SslMode, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) type Client = Object;

/// Longest time for a new connection.
const CONNECT: Duration = Duration::from_secs(5);
/// After so much silence the system asks whether the other end is there; after three times that it is taken for gone.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Makes a pool of at most `size` connections; none is made yet.
pub(super) fn pool(address: &Address, roots: Option<&[u8]>, size: usize, patience: Duration) -> Result<Pool, String> {
    let connect = CONNECT.min(patience);
    let mut config = address.config.clone();
    config.keepalives(true).keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE);
    config.keepalives_retries(3).tcp_user_timeout(patience * 2);
    if let hosts @ 2.. = config.get_hosts().len() {
        config.connect_timeout(connect / u32::try_from(hosts).unwrap_or(u32::MAX));
    }
    let manager = Manager::from_config(
        config,
        MakeRustlsConnect::new(tls(address, roots)?),
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    let builder = Pool::builder(manager).max_size(size).runtime(Runtime::Tokio1);
    let builder = builder.wait_timeout(Some(patience)).create_timeout(Some(connect)).recycle_timeout(Some(connect));
    let greet = Hook::async_fn(move |client, _| {
        Box::pin(async move {
            let greeting = greet(client, patience);
            tokio::time::timeout(connect, greeting)
                .await
                .map_err(|_| HookError::message("the database did not answer in time"))?
                .map_err(HookError::Backend)
        })
    });
    builder.post_create(greet).build().map_err(|error| error.to_string())
}

/// What every session begins with.
async fn greet(client: &tokio_postgres::Client, patience: Duration) -> Result<(), Error> {
    let millis = patience.as_millis();
    // Whoever holds the lock of all commits and goes silent loses it after this time.
    let bounds = format!(
        "SET statement_timeout = {millis}; SET lock_timeout = {millis}; SET idle_in_transaction_session_timeout = {millis}"
    );
    client.batch_execute(&bounds).await?;
    let durable = client.query_one("SELECT current_setting('synchronous_commit', true)", &[]).await?;
    // Said even where it is so already: a default can change under a session. Stronger settings stay.
    if matches!(durable.try_get::<_, Option<String>>(0)?.as_deref(), Some("off" | "on")) {
        client.batch_execute("SET synchronous_commit = on").await?;
    }
    // Every statement here is a look-up or a range of the one index. A planner that has not seen the table grow yet may
    // think otherwise. Other engines may not know these words, and do not need them.
    for setting in
        ["enable_seqscan = off", "enable_bitmapscan = off", "enable_sort = off", "plan_cache_mode = force_generic_plan"]
    {
        if client.batch_execute(&format!("SET {setting}")).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// A connection from the pool.
pub(super) async fn take(pool: &Pool) -> Result<Client, Trouble> {
    pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => Trouble::from(&error),
        PoolError::Timeout(_) => Trouble::Refused("no connection could be had in time".into()),
        other => Trouble::Again(address::describe(&other)),
    })
}

/// Closes a connection instead of giving it back.
pub(super) fn discard(client: Client) {
    drop(Object::take(client));
}

/// What an error of a statement means for whoever sent it.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// Worth another attempt, on another connection.
    Again(String),
    /// Another transaction was faster; worth another attempt at once, and many of them.
    Outrun(String),
    /// The database cannot do it now.
    Refused(String),
    /// The database cannot do it at all: what was sent is at fault.
    Fault(String),
}

impl Trouble {
    pub(super) fn detail(self) -> String {
        match self {
            Self::Again(detail) | Self::Outrun(detail) | Self::Refused(detail) | Self::Fault(detail) => detail,
        }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable(trouble.detail())
    }
}

impl From<&Error> for Trouble {
    fn from(error: &Error) -> Self {
        let detail = describe(error);
        // Without a code it comes from the connection.
        let Some(code) = error.code() else { return Self::Again(detail) };
        match code.code().get(..2) {
            // Another attempt would wait as long again.
            _ if [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(code) => Self::Refused(detail),
            // A demoted primary: the next connection may lead to the new one.
            _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Self::Again(detail),
            // Serialization failures and deadlocks.
            Some("40") => Self::Outrun(detail),
            // Lost connections, restarts.
            Some("08" | "57") => Self::Again(detail),
            // A value or a key that the engine has no room for.
            Some("22" | "54") => Self::Fault(detail),
            _ => Self::Refused(detail),
        }
    }
}

/// An error of the database in one line, with its code.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message().replace('\n', " "), db.code().code()),
        None => address::describe(error),
    }
}

/// Why no first connection came about, for the operator.
pub(super) fn refusal(error: &PoolError) -> String {
    let error = match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error,
        PoolError::Timeout(_) => return "did not answer in time; check its host and port, and that it runs".into(),
        other => return format!("cannot be reached: {}", address::describe(other)),
    };
    let said = describe(error);
    let Some(code) = error.code() else {
        return match said.as_str() {
            said if said.contains("does not allow writes") || said.contains("read-write") => {
                "is read-only, such as a replica: give the address of the primary".into()
            }
            said if said.contains("certificate") => {
                format!("is not trusted ({said}): name its certificate authority with sslrootcert=FILE")
            }
            said if said.contains("password missing") => {
                "asks for a password: give one in PGPASSWORD or in a file named by PGPASSFILE".into()
            }
            said => format!("cannot be reached ({said}); check its host and port, and that it runs"),
        };
    };
    match code {
        code if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            format!("refused the login ({said}): check user and password")
        }
        code if *code == SqlState::INVALID_CATALOG_NAME => format!("refused ({said}): make the database first"),
        _ => format!("refused ({said})"),
    }
}

/// Certificates are checked against `roots`, or against what the system trusts; names always.
fn tls(address: &Address, roots: Option<&[u8]>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let trusting = |store| builder.clone().with_root_certificates(store).with_no_client_auth();
    if let Some(pem) = roots {
        let mut store = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate.map_err(|error| error.to_string()).map(|found| store.add(found));
            added?.map_err(|error| format!("sslrootcert holds a certificate that cannot be used: {error}"))?;
        }
        if store.is_empty() {
            return Err("sslrootcert holds no certificate".into());
        }
        return Ok(trusting(store));
    }
    match (address.config.get_ssl_mode(), rustls_platform_verifier::Verifier::new(provider)) {
        (SslMode::Disable, _) => Ok(trusting(RootCertStore::empty())),
        (_, Ok(verifier)) => {
            Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
        }
        // Without any, nothing is trusted: that matters only if the database offers TLS.
        (SslMode::Require, Err(error)) => {
            Err(format!("this system trusts no certificates ({error}): name some with sslrootcert=FILE"))
        }
        (_, Err(_)) => Ok(trusting(RootCertStore::empty())),
    }
}
