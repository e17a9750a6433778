//! Opens a platform, and provides the operations that concern no single organization.

#[cfg(feature = "system")]
use super::system::SystemEdge;
use super::{
    context::Context,
    edge::PlatformEdge,
    engine::Engine,
    event::Event,
    fleet::{CreateOrganization, Fleet},
    id_of::IdOf,
    list::ListRequest,
    stored::Stored,
};
use crate::{
    error::{Error, FieldCode, KeyProblem},
    operations::{
        api_keys::{self, Access, Principal},
        idempotency,
    },
    resources::organization::{Organization, SYSTEM},
    value::kinds,
    webhooks::{secret, signature},
};
use serde::Serialize;

/// Page cache of a store that [`Platform::open_file`] opens, in bytes: 256 MiB.
#[cfg(feature = "redb")]
pub const FILE_CACHE_BYTES: usize = 256 << 20;
/// Most stored responses that one transaction removes.
const REMOVED_AT_ONCE: usize = 256;

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
#[derive(Clone, Debug)]
pub struct Platform(Context);

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
    ///     operations::edge::Edge,
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
        Self(Context::new(store.into(), Box::new(edge)))
    }

    /// Creates an organization. `body` has the fields of a POST to `/admin/v1/organizations`: `name` is required; `plan`
    /// (`pro`), `default_currency` (`USD`, never changed later), `booking_policy` (`exclusive`) and `time_zone`
    /// (`America/New_York`) have these defaults.
    ///
    /// # Errors
    /// When awaited: [`Error::Invalid`] with every wrong field; [`Error::IdempotencyReused`] when the idempotency key was
    /// used for another write; [`Error::Unavailable`] when the store is not available.
    pub fn create_organization(&self, body: impl Serialize) -> CreateOrganization {
        CreateOrganization::new(self.0.clone(), &body)
    }

    /// The organization with this id, which is an [`OrganizationId`](crate::value::OrganizationId) or its text.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none; [`Error::Unavailable`] when the store is not available.
    pub async fn fleet(&self, id: impl IdOf<kinds::Organization>) -> Result<Fleet, Error> {
        let organization = self.0.organization(&id.to_string()).await?;
        Ok(Fleet::new(self.0.clone(), organization.id))
    }

    /// Lists the organizations, newest first.
    pub fn organizations(&self) -> ListRequest<Stored<Organization>> {
        ListRequest::new(self.0.clone(), SYSTEM)
    }

    /// Finds out whose API key `presented` is and whether it may be used for `access` now.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for a key that is unknown, revoked or expired; [`Error::PlanRequired`] when the
    /// organization is not on the Pro plan; [`Error::ScopeRequired`] for a write with a read key;
    /// [`Error::Unavailable`] when the store is not available.
    pub async fn authenticate(&self, presented: &str, access: Access) -> Result<Principal, Error> {
        let unknown = || Error::Unauthenticated(KeyProblem::Invalid);
        let hash = api_keys::key_hash(presented).ok_or_else(unknown)?;
        let (principal, _) = api_keys::look_up(self.0.store(), &hash).await?.ok_or_else(unknown)?;
        principal.authorize(access, self.0.edge().now())?;
        Ok(principal)
    }

    /// A new secret for a receiver of webhooks: `whsec_` and 64 hexadecimal digits. The platform does not keep it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no randomness.
    pub fn new_webhook_secret(&self) -> Result<String, Error> {
        Ok(format!("{}{}", secret::PREFIX, hex::encode(self.0.edge().random_bytes()?)))
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
        Ok(signature::header(secrets, self.0.edge().now().seconds(), event.body()))
    }

    /// Removes the stored responses of idempotency keys that are older than 24 hours. Call it now and then, for example
    /// once an hour, when writes have idempotency keys; nothing else removes them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the store is not available; [`Error::Damaged`] with the first damaged row, which stays, when
    /// all others were removed.
    pub async fn remove_expired_responses(&self) -> Result<(), Error> {
        let (store, now) = (self.0.store(), self.0.edge().now());
        let mut damaged = None;
        idempotency::remove_expired(store, now, REMOVED_AT_ONCE, &mut |row| {
            damaged.get_or_insert(row);
        })
        .await?;
        damaged.map_or(Ok(()), |row| Err(Error::Damaged(row)))
    }

    /// Checks that the store can serve writes now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason. After an I/O error a file store stays unavailable until it is opened again.
    pub async fn ready(&self) -> Result<(), Error> {
        Ok(self.0.store().ready().await?)
    }

    /// Closes the store and reports what went wrong while closing. Dropping the last clone closes it too, silently.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another clone, a [`Fleet`] or a request still uses the store, which then stays open;
    /// [`Error::Unavailable`] when the last state could not be written. Acknowledged writes are still durable.
    pub async fn close(self) -> Result<(), Error> {
        let in_use = "The store is still in use. It stays open until the last clone of its platform is dropped.";
        Ok(self.0.close().await.ok_or_else(|| Error::Conflict(in_use.into()))??)
    }
}
