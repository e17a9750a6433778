//! Feature `tower`: a layer that lets only verified deliveries through.
//!
//! It buffers the body, at most [`Receiver::max_body_bytes`], verifies it, and hands it to the inner service as
//! [`Full<Bytes>`]. A refused request is answered here, with the [`Rejection`] in the extensions of the response
//! for whoever logs it.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::boxed::Box;

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body::Body;
use http_body_util::Full;
use tower_layer::Layer;
use tower_service::Service;

use crate::body::{self, BoxError};
use crate::{Receiver, Rejection};

/// Wraps a service in a [`VerifyService`].
#[derive(Clone, Debug)]
pub struct VerifyLayer {
    receiver: Receiver,
}

impl VerifyLayer {
    /// A layer with these settings.
    #[must_use]
    pub const fn new(receiver: Receiver) -> Self {
        Self { receiver }
    }
}

impl<S> Layer<S> for VerifyLayer {
    type Service = VerifyService<S>;

    fn layer(&self, inner: S) -> VerifyService<S> {
        VerifyService { receiver: self.receiver.clone(), inner }
    }
}

/// Verifies each request before `S` sees it.
#[derive(Clone, Debug)]
pub struct VerifyService<S> {
    receiver: Receiver,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for VerifyService<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    R: From<&'static str>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was polled ready is the one to call; its clone takes its place for the next request.
        let clone = self.inner.clone();
        let mut inner = core::mem::replace(&mut self.inner, clone);
        let receiver = self.receiver.clone();
        Box::pin(async move {
            match verified(&receiver, request).await {
                Ok(request) => inner.call(request).await,
                Err(rejection) => Ok(response(rejection)),
            }
        })
    }
}

async fn verified<B>(receiver: &Receiver, request: Request<B>) -> Result<Request<Full<Bytes>>, Rejection>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let signature = receiver.signature(&parts.headers)?;
    let raw_body = body::read(body, receiver.body_limit()).await?;
    receiver.verify(signature, &raw_body)?;
    Ok(Request::from_parts(parts, Full::new(raw_body)))
}

fn response<R: From<&'static str>>(rejection: Rejection) -> Response<R> {
    let mut response = Response::new(R::from(rejection.response_text()));
    *response.status_mut() = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.extensions_mut().insert(rejection);
    response
}
