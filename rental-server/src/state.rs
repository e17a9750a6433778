//! State that all requests share: the store, the authenticator, the documents, and the limits.

use crate::{
    access::{
        authentication::Authenticator,
        failures::Failures,
        limiter::{Bucket, Limit, Pace},
        operators::Operators,
        quotas::Tenants,
    },
    backups::Backups,
    changed_feeds::ChangedFeeds,
    congestion::Congestion,
    http::{
        files::Files,
        reply::{Document, Problem},
    },
    limits::{FairShare, Holder},
    metrics::Metrics,
    supervisor::Supervisor,
    usage::Usage,
    webhooks::Hooks,
};
use rental_core::{
    error::Error,
    store::{Engine, Store},
    value::OrganizationId,
};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};
use subtle::ConstantTimeEq;
use tokio::sync::{Notify, Semaphore};

/// Most imports that run at the same time. More of them wait after their files were received.
const MOST_IMPORTS: usize = 2;

/// Requests of API keys that use the store at the same time, for all organizations: writes, and reads of a database. One organization
/// alone can have half.
const MOST_REQUESTS: usize = 512;
/// Bytes of request bodies in memory, for all organizations.
const MOST_BODY_BYTES: usize = 256 << 20;
/// The same, when bodies may be large: at least so many of the largest ones.
const LARGEST_BODIES: usize = 4;
/// Bytes of responses that clients have not read yet, for all organizations. One that has its share begins no further request;
/// those in progress are still answered.
const MOST_RESPONSE_BYTES: usize = 256 << 20;

/// Limits of every request. All of them are flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_body: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) rate: Option<Limit>,
}

/// The OpenAPI documents and their pages, as they are served.
pub(crate) struct Documents {
    pub(crate) openapi: Document,
    pub(crate) openapi_3_0: Document,
    pub(crate) openapi_admin: Document,
    pub(crate) pages: Files,
}

/// The server's state, shared by all connections.
pub(crate) struct App {
    pub(crate) store: Arc<dyn Engine>,
    /// The data file, if the store is one.
    pub(crate) store_path: Option<PathBuf>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) authenticator: Authenticator,
    pub(crate) operators: Operators,
    pub(crate) failures: Failures,
    pub(crate) tenants: Arc<Tenants>,
    /// Counts what organizations use.
    pub(crate) usage: Usage,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    /// Requests that use the store, divided among organizations: all writes, and reads of a store that others share.
    pub(crate) requests: Arc<FairShare>,
    /// Shares the processors among organizations.
    pub(crate) congestion: Congestion,
    /// Bytes of bodies, divided among organizations.
    pub(crate) bodies: Arc<FairShare>,
    /// Bytes of responses that clients have not read yet, divided among organizations; all operators are one of them.
    pub(crate) responses: Arc<FairShare>,
    /// Limits the log lines about requests that got no share.
    pub(crate) crowded_lines: Bucket,
    /// When clients are told that their key is unknown, or that they send too much.
    pub(crate) refusals: Pace,
    pub(crate) started: Instant,
    /// The URL under which clients reach this server, without a slash at its end; `None` when nobody has named it.
    pub(crate) public_url: Option<String>,
    /// Set when the shutdown begins.
    pub(crate) draining: Arc<AtomicBool>,
    /// Set while a backup runs.
    pub(crate) backing_up: Arc<AtomicBool>,
    /// The backups that the server makes by itself.
    pub(crate) backups: Arc<Backups>,
    /// Set while an export runs.
    pub(crate) exporting: Arc<AtomicBool>,
    pub(crate) documents: Documents,
    /// Limits the number of imports that run.
    pub(crate) imports: Arc<Semaphore>,
    /// Signalled when a long task was begun.
    pub(crate) tasks_begun: Notify,
    /// The calendar feeds that were made or changed.
    pub(crate) changed_feeds: ChangedFeeds,
    admin_token: [u8; 32],
    /// Idempotency keys whose first request still runs in this process.
    running: Mutex<HashSet<(OrganizationId, String)>>,
}

impl App {
    pub(crate) fn new(
        store: Arc<dyn Engine>,
        store_path: Option<PathBuf>,
        (supervisor, hooks): (Arc<Supervisor>, Arc<Hooks>),
        admin_token: &str,
        (limits, tenants): (Limits, Arc<Tenants>),
        (metrics, documents, failures): (Metrics, Documents, Failures),
    ) -> Self {
        Self {
            authenticator: Authenticator::new(store.is_shared(), Arc::clone(&tenants)),
            usage: Usage::new(Arc::clone(&store), Arc::clone(&tenants)),
            tenants,
            operators: Operators::default(),
            failures,
            requests: FairShare::new(MOST_REQUESTS),
            store,
            store_path,
            congestion: Congestion::new(metrics.turn_waits.clone()),
            metrics,
            supervisor,
            hooks,
            documents,
            crowded_lines: Bucket::default(),
            refusals: Pace::default(),
            bodies: FairShare::new(MOST_BODY_BYTES.max(limits.max_body.saturating_mul(LARGEST_BODIES))),
            responses: FairShare::new(MOST_RESPONSE_BYTES),
            limits,
            started: Instant::now(),
            public_url: None,
            draining: Arc::default(),
            backing_up: Arc::default(),
            backups: Arc::default(),
            exporting: Arc::default(),
            admin_token: Sha256::digest(admin_token.as_bytes()).into(),
            imports: Arc::new(Semaphore::new(MOST_IMPORTS)),
            tasks_begun: Notify::new(),
            changed_feeds: ChangedFeeds::default(),
            running: Mutex::default(),
        }
    }

    /// The present time for rate limits.
    pub(crate) fn nanos_since_start(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Whether this is the admin token. The hashes are compared, in constant time.
    pub(crate) fn is_admin(&self, presented: &str) -> bool {
        let hash: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        hash.ct_eq(&self.admin_token).into()
    }

    /// Waits a moment when the clients of this organization have not read what was sent to them.
    ///
    /// # Errors
    /// [`Problem::Crowded`]: they still have not.
    pub(crate) async fn room_for_response(&self, organization: OrganizationId) -> Result<(), Problem> {
        let holder = Holder::from(organization);
        if self.responses.has_room(holder) || self.responses.take(holder, 1).await.is_some() {
            return Ok(());
        }
        self.metrics.crowded.inc();
        Err(Problem::Crowded)
    }

    /// Writes into the records of API keys and operators when they were last used.
    pub(crate) async fn save_uses(&self) -> Result<(), Error> {
        self.authenticator.uses.flush(self.store(), &self.hooks.damaged).await?;
        self.operators.uses.flush(self.store(), &self.hooks.damaged).await
    }

    /// Marks an idempotency key as running until the guard is dropped.
    pub(crate) fn begin(&self, organization: OrganizationId, name: &str) -> Result<Running<'_>, Error> {
        let entry = (organization, name.to_owned());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.insert(entry.clone()) { Ok(Running { app: self, entry }) } else { Err(Error::IdempotencyInUse) }
    }
}

/// An idempotency key in use.
pub(crate) struct Running<'a> {
    app: &'a App,
    entry: (OrganizationId, String),
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.app.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.entry);
    }
}
