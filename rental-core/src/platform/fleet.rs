//! One organization and its objects.

use super::{
    context::Context,
    event::Event,
    export::{self, ExportError},
    id_of::IdOf,
    key::{self, IssuedKey},
    list::{ListRequest, Listed},
    stored::Stored,
    write::{CreateRequest, Response, UpdateRequest},
};
use crate::{
    error::Error,
    operations,
    resources::{
        Create, Portable, Update,
        api_key::Scope,
        event,
        organization::{Organization, SYSTEM},
    },
    value::{OrganizationId, Timestamp, kinds},
};
use serde::Serialize;
use std::{future::IntoFuture, io};

/// One organization on a [`Platform`](crate::Platform): its vehicles, customers, rentals, invoices, tolls, violations, leads and events.
/// Nothing of another organization can be read or changed through it.
///
/// A fleet is a handle: it is cheap to clone and holds no objects.
#[derive(Clone, Debug)]
pub struct Fleet {
    context: Context,
    id: OrganizationId,
}

impl Fleet {
    pub(super) fn new(context: Context, id: OrganizationId) -> Self {
        Self { context, id }
    }

    /// The id of the organization.
    #[must_use]
    pub fn id(&self) -> OrganizationId {
        self.id
    }

    /// The organization's record: name, plan, currency, booking policy and time zone.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the store is not available.
    pub async fn organization(&self) -> Result<Stored<Organization>, Error> {
        self.context.organization(&self.id.to_string()).await
    }

    /// Changes the organization. `body` has the fields to change: `name`, `plan`, `booking_policy`, `time_zone`.
    ///
    /// # Errors
    /// When awaited: those of [`Fleet::update`].
    pub fn update_organization(&self, body: impl Serialize) -> UpdateRequest<Organization> {
        UpdateRequest::new(self.context.clone(), SYSTEM, self.id.to_string(), &body)
    }

    /// Creates an object. `body` is anything that serializes to the JSON of a POST, such as a `serde_json::json!` value
    /// or a struct of your own; the platform sets `id`, `object`, `currency` and the times.
    ///
    /// The object, its index entries, its events and its holds are durable together when the response arrives.
    ///
    /// # Errors
    /// When awaited: [`Error::Invalid`] with every wrong field; [`Error::Conflict`] when the object can exist only once;
    /// [`Error::VehicleUnavailable`] for a rental that holds a vehicle on a night when another one does;
    /// [`Error::IdempotencyReused`] when the idempotency key was used for another write; [`Error::Unavailable`] when
    /// the store is not available.
    pub fn create<T: Portable + Create>(&self, body: impl Serialize) -> CreateRequest<T> {
        CreateRequest::new(self.context.clone(), self.id, &body)
    }

    /// Reads one object. `id` is an [`Id`](crate::value::Id) of its kind, or text.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an id that is unknown, malformed or of another organization; [`Error::Unavailable`] when
    /// the store is not available.
    pub async fn get<T: Portable>(&self, id: impl IdOf<T::Kind>) -> Result<Stored<T>, Error> {
        let record = operations::get(self.context.store(), self.id, T::SPEC, &id.to_string()).await?;
        Stored::of(record)
    }

    /// Lists objects, newest first; see [`ListRequest`] for filters and pages.
    ///
    /// # Errors
    /// When awaited: [`Error::Invalid`] for a filter or limit that the list does not take; [`Error::Unavailable`] when
    /// the store is not available.
    pub fn list<T: Portable>(&self) -> ListRequest<Stored<T>> {
        ListRequest::new(self.context.clone(), self.id)
    }

    /// Changes one object. `body` has the fields to change, as in a PATCH: a field that is absent keeps its value, `null`
    /// clears it.
    ///
    /// # Errors
    /// When awaited: [`Error::NotFound`] for an id that is unknown, malformed or of another organization;
    /// [`Error::PreconditionFailed`] when [`UpdateRequest::if_revision`] does not match; otherwise those of
    /// [`Fleet::create`].
    ///
    /// # Examples
    ///
    /// An approved rental holds its vehicle for its nights. A second one that wants it on one of them is refused:
    ///
    /// ```
    /// use rental_core::{Platform, error::Error, resources::{customer::Customer, rental::Rental, vehicle::Vehicle}};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let fleet = Platform::in_memory().create_organization(json!({"name": "Sunrise Rentals"})).await?;
    /// let van = fleet.create::<Vehicle>(json!({"name": "Van", "daily_rate": 60})).await?;
    /// let ada = fleet.create::<Customer>(json!({"full_name": "Ada Lovelace"})).await?;
    /// let booking = |start: &str, end: &str| {
    ///     json!({"vehicle_id": van.id, "customer_id": ada.id, "start_date": start, "end_date": end})
    /// };
    /// let first = fleet.create::<Rental>(booking("2027-06-01", "2027-06-05")).await?;
    /// let second = fleet.create::<Rental>(booking("2027-06-04", "2027-06-08")).await?;
    ///
    /// let approved = fleet.update::<Rental>(first.id, json!({"status": "APPROVED"})).if_revision(1).await?;
    /// assert_eq!((approved.status.as_str(), approved.revision()), ("APPROVED", 2));
    /// assert_eq!(approved.final_price.map(|price| price.to_string()), Some("240".to_owned()));
    ///
    /// match fleet.update::<Rental>(second.id, json!({"status": "APPROVED"})).await {
    ///     Err(Error::VehicleUnavailable { holder, .. }) => assert_eq!(holder.uuid(), first.id.uuid()),
    ///     other => panic!("the vehicle is booked twice: {other:?}"),
    /// }
    ///
    /// // From the day on which the first one ends it is possible.
    /// let later = json!({"status": "APPROVED", "start_date": "2027-06-05"});
    /// assert_eq!(fleet.update::<Rental>(second.id, later).await?.rental_days, Some(3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<T: Portable + Update>(&self, id: impl IdOf<T::Kind>, body: impl Serialize) -> UpdateRequest<T> {
        UpdateRequest::new(self.context.clone(), self.id, id.to_string(), &body)
    }

    /// Lists the events of the organization, newest first. The filter is `type`: `rental.created`.
    pub fn events(&self) -> ListRequest<Event> {
        ListRequest::new(self.context.clone(), self.id)
    }

    /// Reads one event.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an id that is unknown, malformed or of another organization; [`Error::Unavailable`] when
    /// the store is not available.
    pub async fn event(&self, id: impl IdOf<kinds::Event>) -> Result<Event, Error> {
        let record = operations::get(self.context.store(), self.id, &event::SPEC, &id.to_string()).await?;
        Event::read(record)
    }

    /// Issues an API key of the organization. `name` says what it is for, in at most 255 characters; without `expires_at`
    /// it works until it is revoked.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is too long or a time that is not in the future; [`Error::Unavailable`] when
    /// the store is not available.
    ///
    /// # Examples
    ///
    /// ```
    /// use rental_core::{
    ///     Platform,
    ///     error::{Error, KeyProblem},
    ///     platform::Access,
    ///     resources::api_key::Scope,
    /// };
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let platform = Platform::in_memory();
    /// let fleet = platform.create_organization(serde_json::json!({"name": "Sunrise Rentals"})).await?;
    /// let issued = fleet.issue_key(Scope::Read, "Website", None).await?;
    ///
    /// let caller = platform.authenticate(&issued.key, Access::Read).await?;
    /// assert_eq!(caller.organization.id, fleet.id());
    /// assert_eq!(platform.authenticate(&issued.key, Access::Write).await.err(), Some(Error::ScopeRequired));
    /// let unknown = platform.authenticate("rk_live_unknown", Access::Read).await;
    /// assert_eq!(unknown.err(), Some(Error::Unauthenticated(KeyProblem::Invalid)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn issue_key(&self, scope: Scope, name: &str, expires_at: Option<Timestamp>) -> Result<IssuedKey, Error> {
        key::issue(&self.context, self.id, (scope, name, expires_at)).await
    }

    /// Writes all objects of the organization to `out` as lines of JSON, from one snapshot, and gives their number.
    ///
    /// The first line names the schema version, the second one is the organization, and the last one counts the lines
    /// before it. Each line between them is an object as [`Fleet::get`] returns it, and what an object names comes before
    /// it. `rental-cli import` reads the file. Events, API keys and webhook endpoints are not part of it.
    ///
    /// `out` is written on the calling task: wrap a file in a [`io::BufWriter`], and give a slow writer a thread of its
    /// own.
    ///
    /// # Errors
    /// [`ExportError`] says whether the store or the writer failed. What was written by then has no last line, so an
    /// import refuses it.
    ///
    /// # Examples
    ///
    /// ```
    /// use rental_core::{Platform, resources::vehicle::Vehicle};
    /// use serde_json::{Value, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let fleet = Platform::in_memory().create_organization(json!({"name": "Sunrise Rentals"})).await?;
    /// fleet.create::<Vehicle>(json!({"name": "White Tesla"})).await?;
    ///
    /// let mut file = Vec::new(); // or a std::io::BufWriter around a std::fs::File
    /// assert_eq!(fleet.export(&mut file).await?, 1);
    /// let lines: Vec<Value> = file.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
    /// let objects: Vec<&Value> = lines.iter().map(|line| &line["object"]).collect();
    /// assert_eq!(objects, ["export", "organization", "vehicle", "export_end"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export(&self, out: impl io::Write) -> Result<u64, ExportError> {
        self.organization().await?;
        export::export(&self.context, self.id, out).await
    }
}

/// Creates an organization when it is awaited, and gives its [`Fleet`].
#[must_use = "nothing is created until the request is awaited"]
pub struct CreateOrganization {
    context: Context,
    request: CreateRequest<Organization>,
}

impl CreateOrganization {
    pub(super) fn new(context: Context, body: &impl Serialize) -> Self {
        Self { request: CreateRequest::new(context.clone(), SYSTEM, body), context }
    }

    /// Performs the write at most once for this key; see [`CreateRequest::idempotency_key`].
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { request: self.request.idempotency_key(key), ..self }
    }
}

impl IntoFuture for CreateOrganization {
    type Output = Result<Fleet, Error>;
    type IntoFuture = Response<Fleet>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(Fleet::new(self.context, self.request.await?.id)) })
    }
}
