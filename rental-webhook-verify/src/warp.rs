//! Feature `warp`: a filter for warp 0.4.
//!
//! A refused request is rejected with the crate's [`Rejection`]; [`answer`] turns it into a response.

use core::pin::pin;
use std::vec::Vec;

use ::http::{HeaderMap, StatusCode};
use ::warp::filters::{body, header};
use ::warp::{Filter, reject, reply};
use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};

use crate::{Receiver, Rejection};

impl reject::Reject for Rejection {}

/// Extracts the raw body of a delivery that verified.
#[must_use]
pub fn verified(
    receiver: Receiver,
) -> impl Filter<Extract = (Bytes,), Error = ::warp::Rejection> + Clone + Send + Sync + 'static {
    header::headers_cloned().and(body::stream()).and_then(move |headers: HeaderMap, body| {
        let receiver = receiver.clone();
        async move { accept(&receiver, &headers, body).await.map_err(reject::custom) }
    })
}

/// For [`Filter::recover`]: answers a [`Rejection`] with its status and text, and passes on every other one.
///
/// # Errors
///
/// The rejection it was given, if that is not this crate's.
pub async fn answer(rejection: ::warp::Rejection) -> Result<impl ::warp::Reply, ::warp::Rejection> {
    let Some(&refused) = rejection.find::<Rejection>() else {
        return Err(rejection);
    };
    let status = StatusCode::from_u16(refused.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(reply::with_status(refused.response_text(), status))
}

async fn accept<D: Buf, E>(
    receiver: &Receiver,
    headers: &HeaderMap,
    body: impl Stream<Item = Result<D, E>>,
) -> Result<Bytes, Rejection> {
    let signature = receiver.signature(headers)?;
    let raw_body = read(body, receiver.body_limit()).await?;
    receiver.verify(signature, &raw_body)?;
    Ok(raw_body)
}

/// Stops reading at `limit` bytes. `content_length_limit` would refuse bodies without a Content-Length.
async fn read<D: Buf, E>(body: impl Stream<Item = Result<D, E>>, limit: usize) -> Result<Bytes, Rejection> {
    let mut body = pin!(body);
    let mut whole = Vec::new();
    while let Some(chunk) = body.next().await {
        let mut chunk = chunk.map_err(|_| Rejection::BodyUnreadable)?;
        if chunk.remaining() > limit - whole.len() {
            return Err(Rejection::BodyTooLarge);
        }
        while chunk.has_remaining() {
            let part = chunk.chunk();
            whole.extend_from_slice(part);
            let length = part.len();
            chunk.advance(length);
        }
    }
    Ok(Bytes::from(whole))
}
