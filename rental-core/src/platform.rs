//! The platform as a library: open a store, create organizations, and work with typed objects.
//!
//! [`Platform`] is one store with a clock, ids and randomness. [`Fleet`] is one organization on it: its vehicles,
//! customers, rentals, invoices, tolls, violations, leads and events. The rules are those of [`crate::operation`], which
//! the HTTP server uses too, so an object looks the same whichever way it was written.
//!
//! Every call that touches the store is `async`. Memory and file stores work with any executor and perform reads on the
//! calling thread; a PostgreSQL store needs a Tokio runtime.

mod engine;
mod event;
mod export;
mod fleet;
mod kept;
mod key;
mod list;
mod stored;
#[cfg(feature = "system")]
mod system;
mod write;

pub use engine::Engine;
pub use event::Event;
pub use export::ExportError;
pub use fleet::Fleet;
pub use key::{Access, IssuedKey};
pub use list::{ListRequest, Listed, Page, Walk};
pub use stored::Stored;
#[cfg(feature = "system")]
pub use system::SystemEdge;
pub use write::{CreateOrganization, CreateRequest, UpdateRequest};

use crate::{
    access::Principal,
    edge::Edge,
    error::{Error, FieldCode},
    idempotency, operation,
    resources::organization::{self, Organization, SYSTEM},
    store::Store,
    webhook::{secret, signature},
};
use serde::Serialize;
use std::{fmt::Display, sync::Arc};

/// Page cache of a store that [`Platform::open_file`] opens, in bytes: 256 MiB.
#[cfg(feature = "redb")]
pub const FILE_CACHE_BYTES: usize = 256 << 20;
/// Most stored responses that one transaction removes.
const REMOVED_AT_ONCE: usize = 256;

/// What a platform takes from outside: the time, ids and random bytes.
///
/// `SystemEdge` (feature `system`) reads those of the operating system. Write your own for tests, or to take them from
/// elsewhere. `now` must not go back. Each id must be a UUID of version 7, greater than every one before it, and carry the
/// present time: lists are ordered by id, and the time in an object's id is its `created_at`.
pub trait PlatformEdge: Edge {
    /// 32 bytes that nobody can guess; API keys and webhook secrets are made of them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no randomness.
    fn random_bytes(&self) -> Result<[u8; 32], Error>;
}

/// A rental platform on one store. Clones share the store; the last one that is dropped closes it.
///
/// # Examples
///
/// Open a store, create an organization and its first vehicle:
///
/// ```
/// use rental_core::{Platform, resources::vehicle::Vehicle};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("fleet.redb");
/// let platform = Platform::open_file(&path)?; // or Platform::in_memory()
/// let fleet = platform.create_organization(json!({"name": "Sunrise Rentals"})).await?;
/// let tesla = fleet.create::<Vehicle>(json!({"name": "White Tesla", "daily_rate": 89.5})).await?;
/// assert_eq!((tesla.status.as_str(), tesla.revision()), ("available", 1));
///
/// // Everything that was acknowledged is there when the store is opened again.
/// let id = fleet.id();
/// drop(fleet);
/// platform.close().await?;
/// let fleet = Platform::open_file(&path)?.fleet(id).await?;
/// assert_eq!(fleet.get::<Vehicle>(tesla.id).await?.name, "White Tesla");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Platform(Arc<Parts>);

struct Parts {
    engine: Engine,
    edge: Box<dyn PlatformEdge>,
}

#[cfg(feature = "system")]
impl Platform {
    /// A platform whose objects live as long as it does, for tests and trials.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_edge(crate::store::memory::Memory::default(), SystemEdge::new())
    }

    /// Opens the store in the file at `path`, or creates the file. One process at a time can have it open.
    ///
    /// The call blocks while the file is opened. Its page cache grows to [`FILE_CACHE_BYTES`]; for another size open the
    /// file with [`crate::store::redb::Redb::open`] and give it to [`Platform::with_edge`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the file is in use by another process or cannot be read or written;
    /// [`Error::Internal`] when its content is damaged or of another version.
    #[cfg(feature = "redb")]
    pub fn open_file(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        let store = crate::store::redb::Redb::open(path.as_ref(), FILE_CACHE_BYTES)?;
        Ok(Self::with_edge(store, SystemEdge::new()))
    }
}

impl Platform {
    /// A platform on a store that is open already, with a clock, ids and randomness of your choice.
    ///
    /// # Examples
    ///
    /// A test that decides what time it is:
    ///
    /// ```
    /// use rental_core::{
    ///     Platform,
    ///     edge::Edge,
    ///     error::Error,
    ///     platform::PlatformEdge,
    ///     store::memory::Memory,
    ///     value::Timestamp,
    /// };
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// /// Each id takes a millisecond of the time since 2027-01-01.
    /// struct Steps(AtomicU64);
    ///
    /// impl Steps {
    ///     fn millis(&self) -> u64 {
    ///         1_798_761_600_000 + self.0.load(Ordering::SeqCst)
    ///     }
    /// }
    ///
    /// impl Edge for Steps {
    ///     fn now(&self) -> Timestamp {
    ///         Timestamp::from_millis(self.millis() as i64)
    ///     }
    ///
    ///     fn new_id(&self) -> uuid::Uuid {
    ///         self.0.fetch_add(1, Ordering::SeqCst);
    ///         uuid::Builder::from_unix_timestamp_millis(self.millis(), &[0; 10]).into_uuid()
    ///     }
    /// }
    ///
    /// impl PlatformEdge for Steps {
    ///     fn random_bytes(&self) -> Result<[u8; 32], Error> {
    ///         Ok([7; 32]) // a test may; a program must not
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let platform = Platform::with_edge(Memory::default(), Steps(AtomicU64::new(0)));
    /// let fleet = platform.create_organization(serde_json::json!({"name": "Sunrise Rentals"})).await?;
    /// assert_eq!(fleet.organization().await?.created_at.to_string(), "2027-01-01T00:00:00.001Z");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_edge(store: impl Into<Engine>, edge: impl PlatformEdge + 'static) -> Self {
        Self(Arc::new(Parts { engine: store.into(), edge: Box::new(edge) }))
    }

    /// Creates an organization. `body` has the fields of a POST to `/admin/v1/organizations`: `name` is required; `plan`
    /// (`pro`), `default_currency` (`USD`, never changed later), `booking_policy` (`exclusive`) and `time_zone`
    /// (`America/New_York`) have these defaults.
    ///
    /// # Errors
    /// When awaited: [`Error::Invalid`] with every wrong field; [`Error::IdempotencyReused`] when the idempotency key was
    /// used for another write; [`Error::Unavailable`] when the store cannot serve.
    pub fn create_organization(&self, body: impl Serialize) -> CreateOrganization {
        CreateOrganization::new(CreateRequest::new(self.clone(), SYSTEM, &body))
    }

    /// The organization with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none; [`Error::Unavailable`] when the store cannot serve.
    pub async fn fleet(&self, id: impl Display) -> Result<Fleet, Error> {
        let organization = self.organization(&id.to_string()).await?;
        Ok(Fleet::new(self.clone(), organization.id))
    }

    /// Lists the organizations, newest first.
    pub fn organizations(&self) -> ListRequest<Stored<Organization>> {
        ListRequest::new(self.clone(), SYSTEM)
    }

    /// Finds out whose API key `presented` is and whether it may be used for `access` now.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for a key that is unknown, revoked or expired; [`Error::PlanRequired`] when the
    /// organization is not on the Pro plan; [`Error::ScopeRequired`] for a write with a read key;
    /// [`Error::Unavailable`] when the store cannot serve.
    pub async fn authenticate(&self, presented: &str, access: Access) -> Result<Principal, Error> {
        let principal = key::principal(self.store(), presented).await?;
        principal.authorize(access == Access::Write, self.edge().now())?;
        Ok(principal)
    }

    /// A new secret for a receiver of webhooks: `whsec_` and 64 hexadecimal digits. The platform does not keep it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no randomness.
    pub fn new_webhook_secret(&self) -> Result<String, Error> {
        Ok(format!("{}{}", secret::PREFIX, hex::encode(self.edge().random_bytes()?)))
    }

    /// Signs a delivery of `event` made now: the value of the `Service-Signature` header, `t=<seconds>,v1=<hex>` with one
    /// `v1` for each of `secrets`. Send [`Event::body`] with it, byte for byte.
    ///
    /// A receiver accepts the signature for 300 seconds: sign each attempt anew. While a secret is being replaced, sign
    /// with the new one and the old one. The platform makes no HTTP requests; sending is up to you.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no secret, or one that is blank: anyone could sign with it.
    ///
    /// # Examples
    ///
    /// The receiver verifies with the crate `rental-webhook-verify`, which does not need this one:
    ///
    /// ```
    /// use rental_core::{Platform, resources::vehicle::Vehicle};
    /// use std::time::{SystemTime, UNIX_EPOCH};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let platform = Platform::in_memory();
    /// # let fleet = platform.create_organization(serde_json::json!({"name": "Sunrise Rentals"})).await?;
    /// fleet.create::<Vehicle>(serde_json::json!({"name": "White Tesla"})).await?;
    /// let page = fleet.events().filter("type", "vehicle.created").await?;
    /// let event = page.objects.first().ok_or("the creation is an event")?;
    ///
    /// // The sender:
    /// let secret = platform.new_webhook_secret()?;
    /// let signature = platform.sign(event, &[&secret])?;
    ///
    /// // The receiver, with the header, the raw body and its own clock:
    /// let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    /// assert_eq!(rental_webhook_verify::verify(secret.as_bytes(), &signature, event.body(), now), Ok(()));
    /// assert!(rental_webhook_verify::verify(b"whsec_another", &signature, event.body(), now).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn sign(&self, event: &Event, secrets: &[&str]) -> Result<String, Error> {
        if secrets.is_empty() || secrets.iter().any(|secret| secret.trim().is_empty()) {
            return Err(Error::field("secrets", FieldCode::Invalid, "must hold at least one secret, and no blank one"));
        }
        let secrets = secrets.iter().map(|secret| secret.as_bytes());
        Ok(signature::header(secrets, self.edge().now().seconds(), event.body()))
    }

    /// Removes the stored responses of idempotency keys that are older than 24 hours. Call it now and then, for example
    /// once an hour, when writes have idempotency keys; nothing else removes them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the store cannot serve.
    pub async fn remove_expired_responses(&self) -> Result<(), Error> {
        while let Some(batch) = idempotency::sweep(self.store(), self.edge().now(), REMOVED_AT_ONCE).await? {
            // A stale batch removed nothing: the next round reads again.
            self.store().commit(batch).await?;
        }
        Ok(())
    }

    /// Checks that the store can serve writes now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason. After an I/O error a file store stays unavailable until it is opened again.
    pub async fn ready(&self) -> Result<(), Error> {
        Ok(self.store().ready().await?)
    }

    /// Closes the store and reports what went wrong while closing. Dropping the last clone closes it too, silently.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another clone, a [`Fleet`] or a request still uses the store, which then stays open;
    /// [`Error::Unavailable`] when the last state could not be written. Acknowledged writes are durable all the same.
    pub async fn close(self) -> Result<(), Error> {
        match Arc::try_unwrap(self.0) {
            Ok(parts) => Ok(parts.engine.close().await?),
            Err(_) => Err(Error::Conflict(
                "The store is still in use. It stays open until the last clone of its platform is dropped.".into(),
            )),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.0.engine.store()
    }

    pub(crate) fn edge(&self) -> &dyn PlatformEdge {
        self.0.edge.as_ref()
    }

    /// The organization's record as it is now.
    async fn organization(&self, id: &str) -> Result<Stored<Organization>, Error> {
        let record = operation::get(self.store(), SYSTEM, &organization::SPEC, id).await?;
        Stored::of(record)
    }

    /// The organization that owns what is written under `owner`: the operator's own for [`SYSTEM`].
    async fn owner(&self, owner: uuid::Uuid) -> Result<Organization, Error> {
        if owner == SYSTEM {
            return Ok(Organization::system());
        }
        self.organization(&owner.to_string()).await.map(Stored::into_object)
    }
}

impl std::fmt::Debug for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Platform").field(&self.0.engine).finish()
    }
}
