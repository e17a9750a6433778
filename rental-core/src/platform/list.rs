//! Lists: filters, pages, and iteration over all pages.

use super::{context::Context, stored::Stored};
use crate::{
    error::Error,
    request::page::{ListQuery, MAX_LIMIT},
    resources::Resource,
    schema::ResourceSpec,
    store::{Record, key_of},
    value::{Id, OrganizationId, Timestamp},
};
use std::{
    collections::VecDeque,
    fmt::{Display, Write},
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
};

/// The items of a list: [`Stored`] objects of any resource, and events.
pub trait Listed: Sized + Send + 'static {
    /// What the ids of the objects name.
    type Kind: 'static;

    /// The description of the resource, which names its filters.
    const SPEC: &'static ResourceSpec;

    /// Reads one record of the list.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the record is no such object.
    fn read(record: Record) -> Result<Self, Error>;
}

impl<T: Resource> Listed for Stored<T> {
    type Kind = T::Kind;

    const SPEC: &'static ResourceSpec = T::SPEC;

    fn read(record: Record) -> Result<Self, Error> {
        Self::of(record)
    }
}

/// One page of a list, newest object first.
#[derive(Clone, Debug)]
pub struct Page<T: Listed> {
    /// The objects, at most as many as the limit.
    pub objects: Vec<T>,
    /// The cursor of the next page, for [`ListRequest::starting_after`]; `None` on the last page.
    pub next: Option<Id<T::Kind>>,
}

/// The rows of a page, and where the next page begins.
type Rows<T> = (Vec<Result<T, Error>>, Option<Id<<T as Listed>::Kind>>);

/// Reads a page of a list when it is awaited; [`ListRequest::walk`] reads all of them.
///
/// # Examples
///
/// ```
/// use rental_core::{Platform, resources::{customer::Customer, rental::Rental, vehicle::Vehicle}};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rental_core::error::Error> {
/// let fleet = Platform::in_memory().create_organization(json!({"name": "Sunrise Rentals"})).await?;
/// let van = fleet.create::<Vehicle>(json!({"name": "Van"})).await?;
/// let ada = fleet.create::<Customer>(json!({"full_name": "Ada Lovelace"})).await?;
/// for _ in 0..45 {
///     fleet.create::<Rental>(json!({"vehicle_id": van.id, "customer_id": ada.id})).await?;
/// }
///
/// // One page after the other:
/// let first = fleet.list::<Rental>().filter("status", "NEW").limit(20).await?;
/// assert_eq!(first.objects.len(), 20);
/// let next = first.next.expect("25 rentals follow");
/// let second = fleet.list::<Rental>().filter("status", "NEW").limit(20).starting_after(next).await?;
/// assert!(second.objects[0].id < first.objects[19].id);
///
/// // All pages, without holding them in memory:
/// let mut rentals = fleet.list::<Rental>().filter("customer", ada.id).walk();
/// let mut count = 0;
/// while let Some(rental) = rentals.next().await? {
///     assert_eq!(rental.customer_id, ada.id);
///     count += 1;
/// }
/// assert_eq!(count, 45);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is read until the request is awaited"]
pub struct ListRequest<T: Listed> {
    context: Context,
    owner: OrganizationId,
    /// The parameters as a URL has them, for the one parser of queries.
    parameters: String,
    limit: Option<usize>,
    starting_after: Option<Id<T::Kind>>,
    created: (Option<Timestamp>, Option<Timestamp>),
    object: PhantomData<fn() -> T>,
}

impl<T: Listed> ListRequest<T> {
    pub(super) fn new(context: Context, owner: OrganizationId) -> Self {
        Self {
            context,
            owner,
            parameters: String::new(),
            limit: None,
            starting_after: None,
            created: (None, None),
            object: PhantomData,
        }
    }

    /// Keeps the objects with this value of a filter, such as `status` of rentals; several filters must all match.
    /// The `SPEC` of each resource names its filters. An unknown filter or value is an error when the list is read.
    pub fn filter(mut self, name: &str, value: impl Display) -> Self {
        if !self.parameters.is_empty() {
            self.parameters.push('&');
        }
        percent_encode(&mut self.parameters, name);
        self.parameters.push('=');
        percent_encode(&mut self.parameters, &value.to_string());
        self
    }

    /// Most objects on a page, 1 to 100; 20 when it is not called. A walk reads pages of 100.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Begins behind the page whose [`Page::next`] this is.
    pub fn starting_after(mut self, cursor: Id<T::Kind>) -> Self {
        self.starting_after = Some(cursor);
        self
    }

    /// Keeps the objects that were created at this time or later.
    pub fn created_from(mut self, time: Timestamp) -> Self {
        self.created.0 = Some(time);
        self
    }

    /// Keeps the objects that were created before this time.
    pub fn created_before(mut self, time: Timestamp) -> Self {
        self.created.1 = Some(time);
        self
    }

    /// All objects of the list, read page by page as they are asked for.
    pub fn walk(mut self) -> Walk<T> {
        self.limit = self.limit.or(Some(MAX_LIMIT));
        Walk { request: self, ready: VecDeque::new(), ended: false }
    }

    fn query(&self) -> Result<ListQuery, Error> {
        let mut parameters = self.parameters.clone();
        if let Some(limit) = self.limit {
            let separator = if parameters.is_empty() { "" } else { "&" };
            parameters.push_str(&format!("{separator}limit={limit}"));
        }
        let mut query = ListQuery::parse(&parameters, T::SPEC)?;
        query.starting_after = self.starting_after.map(Id::uuid).or(query.starting_after);
        query.created_gte = self.created.0.or(query.created_gte);
        query.created_lt = self.created.1.or(query.created_lt);
        Ok(query)
    }

    /// The rows of a page, and where the next page begins.
    async fn read(&self) -> Result<Rows<T>, Error> {
        let query = self.query()?;
        let Some(span) = query.span(self.owner, T::SPEC) else { return Ok((Vec::new(), None)) };
        // One more than the page holds tells whether another page follows.
        let mut rows = self.context.store().scan(&span, query.limit + 1).await?;
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let next = rows.last().and_then(|row| key_of(row).id()).filter(|_| more).map(Id::from_uuid);
        Ok((rows.into_iter().map(|row| T::read(row.map_err(Error::Damaged)?)).collect(), next))
    }
}

impl<T: Listed> IntoFuture for ListRequest<T> {
    type Output = Result<Page<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (rows, next) = self.read().await?;
            Ok(Page { objects: rows.into_iter().collect::<Result<_, _>>()?, next })
        })
    }
}

/// A walk over all objects of a list, newest first.
///
/// The walk reads a page when all objects of the page before it were taken. Objects that are created during the walk are not
/// part of it. An object that changes during the walk is seen in the state that it has when its page is read.
#[must_use = "nothing is read until `next` is called"]
pub struct Walk<T: Listed> {
    request: ListRequest<T>,
    ready: VecDeque<Result<T, Error>>,
    ended: bool,
}

impl<T: Listed> Walk<T> {
    /// The next object; `None` after the last one.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a filter or limit that the list does not take; [`Error::Unavailable`] when the store
    /// is not available; [`Error::Damaged`] in the place of a damaged object. The next call continues after it.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        while self.ready.is_empty() && !self.ended {
            let (rows, next) = self.request.read().await?;
            self.ready = rows.into();
            self.ended = next.is_none();
            self.request.starting_after = next;
        }
        self.ready.pop_front().transpose()
    }

    /// All objects that are left.
    ///
    /// # Errors
    /// Those of [`Walk::next`].
    pub async fn collect(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(object) = self.next().await? {
            all.push(object);
        }
        Ok(all)
    }
}

/// Escapes every byte that could mean something in a query.
fn percent_encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}
