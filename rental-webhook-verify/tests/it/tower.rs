//! Feature `tower`.

use core::convert::Infallible;
use core::task::{Context, Poll};

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use rental_webhook_verify::Rejection;
use rental_webhook_verify::tower::VerifyLayer;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::deliveries::{self, NAME};
use crate::endless::Endless;
use crate::http::header_map;
use crate::support::{BODY, SECRET, header};

fn request<B>(headers: &[(&str, Vec<u8>)], body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.headers_mut() = header_map(headers);
    request
}

async fn echo(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(request.into_body()))
}

#[tokio::test]
async fn each_delivery_gets_its_verdict_from_the_layer() {
    for delivery in deliveries::all() {
        let service = VerifyLayer::new(deliveries::receiver()).layer(service_fn(echo));
        let body = Full::new(Bytes::from(delivery.body.clone()));
        let response = service.oneshot(request(&delivery.headers, body)).await.expect("infallible");
        assert_eq!(response.status(), delivery.status(), "{}", delivery.rule);
        assert_eq!(response.extensions().get::<Rejection>().copied(), delivery.expected.err(), "{}", delivery.rule);
        let answer = response.into_body().collect().await.expect("infallible").to_bytes();
        assert_eq!(answer, delivery.answer(), "{}", delivery.rule);
    }
}

#[tokio::test]
async fn the_layer_stops_reading_at_the_limit() {
    let headers = [(NAME, header(SECRET, deliveries::now(), BODY).into_bytes())];
    let service = VerifyLayer::new(deliveries::receiver()).layer(service_fn(echo));
    let response = service.oneshot(request(&headers, Endless::default())).await.expect("infallible");
    assert_eq!(response.status(), 413);
}

/// The service that was polled ready must be the one that is called, not its clone.
#[tokio::test]
async fn the_layer_calls_the_service_that_was_ready() {
    let mut service = VerifyLayer::new(deliveries::receiver()).layer(ReadyOnce { ready: false });
    for _ in 0..2 {
        let headers = [(NAME, header(SECRET, deliveries::now(), BODY).into_bytes())];
        let request = request(&headers, Full::new(Bytes::from_static(BODY)));
        core::future::poll_fn(|context| poll_ready(&mut service, context)).await.expect("infallible");
        let response = service.call(request).await.expect("infallible");
        assert_eq!(response.status(), 200);
    }
}

fn poll_ready<S: Service<Request<Full<Bytes>>>>(
    service: &mut S,
    context: &mut Context<'_>,
) -> Poll<Result<(), S::Error>> {
    service.poll_ready(context)
}

/// Panics when called before it was ready; a clone is not ready.
struct ReadyOnce {
    ready: bool,
}

impl Clone for ReadyOnce {
    fn clone(&self) -> Self {
        Self { ready: false }
    }
}

impl Service<Request<Full<Bytes>>> for ReadyOnce {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = core::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        assert!(core::mem::take(&mut self.ready), "called before it was ready");
        core::future::ready(Ok(Response::new(request.into_body())))
    }
}
