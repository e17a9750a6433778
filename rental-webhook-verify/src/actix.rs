//! Feature `actix`: an extractor for actix-web 4.
//!
//! Register the [`Receiver`] with `App::app_data(receiver)`. To log why a request was turned away, take
//! `Result<VerifiedBody, actix_web::Error>` or read `Error::as_error::<Rejection>()` in a middleware.

use core::future::Future;
use core::pin::Pin;
use std::borrow::ToOwned;
use std::boxed::Box;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::web::Bytes;
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse, ResponseError, error, web};

use crate::receiver::{Receiver, Rejection, only};

/// The raw body of a delivery that verified.
#[derive(Clone, Debug)]
pub struct VerifiedBody(pub Bytes);

impl FromRequest for VerifiedBody {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Error>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let receiver = request.app_data::<Receiver>().cloned();
        let request = request.clone();
        let body = web::Payload::from_request(&request, payload);
        Box::pin(async move {
            let receiver = receiver.ok_or_else(|| error::ErrorInternalServerError("no Receiver in App::app_data"))?;
            let headers = request.headers().get_all(receiver.header_name());
            let signature = only(headers.map(HeaderValue::as_bytes))?.to_owned();
            let raw_body = body
                .await?
                .to_bytes_limited(receiver.body_limit())
                .await
                .map_err(|_| Rejection::BodyTooLarge)?
                .map_err(|_| Rejection::BodyUnreadable)?;
            receiver.verify(&signature, &raw_body).map_err(Rejection::from)?;
            Ok(Self(raw_body))
        })
    }
}

impl ResponseError for Rejection {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).body(self.response_text())
    }
}
