//! Feature `axum`: an extractor for axum 0.8.
//!
//! The state of the router is the [`Receiver`], or gives one through [`FromRef`]. To log why a request was turned
//! away, take `Result<VerifiedBody, Rejection>`.

use ::http::StatusCode;
use axum_core::extract::{FromRef, FromRequest, Request};
use axum_core::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::{Receiver, Rejection, body};

/// The raw body of a delivery that verified.
#[derive(Clone, Debug)]
pub struct VerifiedBody(pub Bytes);

impl<S> FromRequest<S> for VerifiedBody
where
    Receiver: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Rejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, Rejection> {
        let receiver = Receiver::from_ref(state);
        let (parts, body) = request.into_parts();
        let signature = receiver.signature(&parts.headers)?;
        let raw_body = body::read(body, receiver.body_limit()).await?;
        receiver.verify(signature, &raw_body)?;
        Ok(Self(raw_body))
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, self.response_text()).into_response()
    }
}
