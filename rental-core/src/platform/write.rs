//! Writes with their options, performed when they are awaited.

use super::{context::Context, kept, stored::Stored};
use crate::{
    error::{Error, FieldCode},
    operations::{self, Intent, idempotency::IdempotencyKey},
    resources::{Create, Resource, Update, of},
    store::Revision,
    value::OrganizationId,
};
use serde::Serialize;
use std::{
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
};

/// The future of a request.
pub(super) type Response<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// The common part of both kinds of writes.
struct Request {
    context: Context,
    owner: OrganizationId,
    body: Result<Vec<u8>, Error>,
    idempotency_key: Option<String>,
}

impl Request {
    fn new(context: Context, owner: OrganizationId, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::Malformed(format!("The body cannot be written as JSON: {error}.")));
        Self { context, owner, body, idempotency_key: None }
    }

    /// Performs `intent` once for each idempotency key; `operation` and `target` tell this write from others.
    async fn perform<T: Resource>(
        &self,
        (operation, target): (&str, &str),
        body: &[u8],
        intent: &dyn Intent,
    ) -> Result<Stored<T>, Error> {
        let idempotency_key = match &self.idempotency_key {
            Some(key) => Some(
                IdempotencyKey::new(key.as_bytes(), operation, target, body)
                    .map_err(|rule| Error::field("idempotency_key", FieldCode::Invalid, rule))?,
            ),
            None => None,
        };
        let (store, edge) = (self.context.store(), self.context.edge());
        let end = (kept::SUCCESS, &kept::write as operations::Render<'_>);
        let written = operations::write(store, edge, self.owner, idempotency_key.as_ref(), intent, end).await?;
        if written.status == kept::SUCCESS { Stored::written(written) } else { Err(kept::read(&written.body)?) }
    }
}

/// Creates an object when it is awaited.
#[must_use = "nothing is created until the request is awaited"]
pub struct CreateRequest<T> {
    request: Request,
    object: PhantomData<fn() -> T>,
}

impl<T> CreateRequest<T> {
    pub(super) fn new(context: Context, owner: OrganizationId, body: &impl Serialize) -> Self {
        Self { request: Request::new(context, owner, body), object: PhantomData }
    }

    /// Performs the write at most once for this key: a repetition within 24 hours gets the stored response, also when
    /// that was a final error such as [`Error::Invalid`]. `key` has 1 to 255 visible ASCII characters.
    ///
    /// The same key with another body fails with [`Error::IdempotencyReused`].
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.request.idempotency_key = Some(key.into());
        self
    }
}

impl<T: Create> IntoFuture for CreateRequest<T> {
    type Output = Result<Stored<T>, Error>;
    type IntoFuture = Response<Stored<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.request;
            let body = request.body.clone()?;
            let organization = request.context.owner(request.owner).await?;
            let collection = of::<T>().create().done();
            let intent = operations::Create {
                collection: &collection,
                organization: &organization,
                body: (&body).into(),
                given: &[],
            };
            request.perform(("create", T::SPEC.object), &body, &intent).await
        })
    }
}

/// Changes an object when it is awaited.
#[must_use = "nothing is changed until the request is awaited"]
pub struct UpdateRequest<T> {
    request: Request,
    id: String,
    revision: Option<Revision>,
    object: PhantomData<fn() -> T>,
}

impl<T> UpdateRequest<T> {
    pub(super) fn new(context: Context, owner: OrganizationId, id: String, body: &impl Serialize) -> Self {
        Self { request: Request::new(context, owner, body), id, revision: None, object: PhantomData }
    }

    /// Changes the object only if this is its present revision, and fails with [`Error::PreconditionFailed`] otherwise.
    pub fn if_revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Performs the write at most once for this key; see [`CreateRequest::idempotency_key`].
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.request.idempotency_key = Some(key.into());
        self
    }
}

impl<T: Update> IntoFuture for UpdateRequest<T> {
    type Output = Result<Stored<T>, Error>;
    type IntoFuture = Response<Stored<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { request, id, revision, .. } = self;
            let body = request.body.clone()?;
            let organization = request.context.owner(request.owner).await?;
            let collection = of::<T>().update().done();
            let expected = |present: Revision| revision.is_none_or(|revision| revision == present);
            let intent = operations::Update {
                collection: &collection,
                organization: &organization,
                id: &id,
                body: (&body).into(),
                expected: &expected,
            };
            let target = format!("{}/{id}", T::SPEC.object);
            request.perform(("update", &target), &body, &intent).await
        })
    }
}
