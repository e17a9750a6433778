//! Sessions of the database: creates and configures them, discards uncertain ones, and classifies their errors.

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

/// Time-out of a new connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Interval of TCP keepalive probes. After three probes without a response the connection is closed.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Creates a pool of at most `size` connections, without opening one.
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
    let hook = Hook::async_fn(move |client, _| {
        Box::pin(async move {
            let setup = configure_session(client, patience);
            tokio::time::timeout(connect, setup)
                .await
                .map_err(|_| HookError::message("the database did not answer in time"))?
                .map_err(HookError::Backend)
        })
    });
    builder.post_create(hook).build().map_err(|error| error.to_string())
}

/// Sets the time-outs and planner settings of a new session.
async fn configure_session(client: &tokio_postgres::Client, patience: Duration) -> Result<(), Error> {
    let millis = patience.as_millis();
    // A session that holds the lock of `rental.store` and becomes idle loses the lock after this time.
    let bounds = format!(
        "SET statement_timeout = {millis}; SET lock_timeout = {millis}; SET idle_in_transaction_session_timeout = {millis}"
    );
    client.batch_execute(&bounds).await?;
    // Every statement reads single keys or a range of the only index. With old statistics the planner may choose a scan of
    // the whole table. Other databases may not know these settings, and do not need them.
    for setting in
        ["enable_seqscan = off", "enable_bitmapscan = off", "enable_sort = off", "plan_cache_mode = force_generic_plan"]
    {
        if client.batch_execute(&format!("SET {setting}")).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Takes a connection from the pool.
pub(super) async fn take(pool: &Pool) -> Result<Client, QueryError> {
    pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => QueryError::from(&error),
        PoolError::Timeout(_) => QueryError::Unavailable("no connection could be had in time".into()),
        other => QueryError::Retry(address::describe(&other)),
    })
}

/// Closes a connection instead of returning it to the pool.
pub(super) fn discard(client: Client) {
    drop(Object::take(client));
}

/// What the caller of a failed statement can do.
#[derive(Clone, Debug)]
pub(super) enum QueryError {
    /// The connection failed: retry on another one.
    Retry(String),
    /// A serialization conflict with another transaction: retry at once, many times if necessary.
    Conflict(String),
    /// The database cannot run the statement now: do not retry.
    Unavailable(String),
    /// The statement's values are invalid: a retry cannot succeed.
    Invalid(String),
}

impl QueryError {
    pub(super) fn detail(self) -> String {
        match self {
            Self::Retry(detail) | Self::Conflict(detail) | Self::Unavailable(detail) | Self::Invalid(detail) => detail,
        }
    }
}

impl From<QueryError> for StoreError {
    fn from(failure: QueryError) -> Self {
        Self::Unavailable(failure.detail())
    }
}

impl From<&Error> for QueryError {
    fn from(error: &Error) -> Self {
        let detail = describe(error);
        // An error without a code is one of the connection.
        let Some(code) = error.code() else { return Self::Retry(detail) };
        match code.code().get(..2) {
            // A time-out: a retry would wait as long again.
            _ if [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(code) => Self::Unavailable(detail),
            // A demoted primary: the next connection may lead to the new one.
            _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Self::Retry(detail),
            // Serialization failures and deadlocks.
            Some("40") => Self::Conflict(detail),
            // Lost connections, restarts.
            Some("08" | "57") => Self::Retry(detail),
            // A value or a key that exceeds a limit of the database.
            Some("22" | "54") => Self::Invalid(detail),
            _ => Self::Unavailable(detail),
        }
    }
}

/// The text of a database error in one line, with its code.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message().replace('\n', " "), db.code().code()),
        None => address::describe(error),
    }
}

/// The message for the operator when the first connection fails.
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
            said if said.contains("does not support TLS") => {
                "offers no TLS, which the URL or its host asks for: turn TLS on in the database (`ssl = on`), or add sslmode=disable to the URL, which sends passwords and data in clear".into()
            }
            // As `openssl req -x509` makes it without extensions.
            said if said.contains("CaUsedAsEndEntity") => "has a certificate of an authority itself (self-signed, CA:TRUE), which is not taken as a server's; make another with `openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=HOST -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:HOST -keyout server.key -out server.crt` (IP: before an address), and name it with sslrootcert=FILE".into(),
            said if said.contains("not valid for name") => {
                format!("has a certificate for another host ({said}): connect to that name, or add this one to its subjectAltName")
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

/// The TLS settings. Certificates are checked against `roots` or those of the system, and host names are always checked.
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
        // Without trusted certificates TLS fails. This matters only when the database offers TLS.
        (SslMode::Require, Err(error)) => {
            Err(format!("this system trusts no certificates ({error}): name some with sslrootcert=FILE"))
        }
        (_, Err(_)) => Ok(trusting(RootCertStore::empty())),
    }
}
