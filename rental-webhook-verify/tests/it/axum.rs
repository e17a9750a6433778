//! Feature `axum`.

use ::axum::Router;
use ::axum::body::{Body, Bytes, to_bytes};
use ::axum::extract::Request;
use ::axum::routing::post;
use rental_webhook_verify::axum::VerifiedBody;
use rental_webhook_verify::{Receiver, Rejection};
use tower::ServiceExt;

use crate::deliveries::{self, NAME};
use crate::endless::Endless;
use crate::http::header_map;
use crate::support::{BODY, SECRET, header};

async fn status_and_answer(router: Router, headers: &[(&str, Vec<u8>)], body: Vec<u8>) -> (u16, Bytes) {
    let mut request = Request::post("/webhooks").body(Body::from(body)).expect("a request");
    request.headers_mut().extend(header_map(headers));
    let response = router.oneshot(request).await.expect("infallible");
    let status = response.status().as_u16();
    (status, to_bytes(response.into_body(), usize::MAX).await.expect("a body"))
}

#[tokio::test]
async fn each_delivery_gets_its_verdict_from_the_extractor() {
    let router = Router::new()
        .route("/webhooks", post(async |VerifiedBody(body): VerifiedBody| body))
        .with_state(deliveries::receiver());
    for delivery in deliveries::all() {
        let body = delivery.body.clone();
        let (status, answer) = status_and_answer(router.clone(), &delivery.headers, body).await;
        assert_eq!(status, delivery.status(), "{}", delivery.rule);
        assert_eq!(answer, delivery.answer(), "{}", delivery.rule);
    }
}

#[tokio::test]
async fn the_extractor_stops_reading_at_the_limit() {
    let router = Router::new()
        .route("/webhooks", post(async |VerifiedBody(body): VerifiedBody| body))
        .with_state(deliveries::receiver());
    let mut request = Request::post("/webhooks").body(Body::new(Endless::default())).expect("a request");
    *request.headers_mut() = header_map(&[(NAME, header(SECRET, deliveries::now(), BODY).into_bytes())]);
    assert_eq!(router.oneshot(request).await.expect("infallible").status(), 413);
}

#[tokio::test]
async fn a_handler_may_look_at_the_rejection_itself() {
    async fn log(verified: Result<VerifiedBody, Rejection>) -> String {
        verified.map_or_else(|rejection| format!("{rejection:?}"), |_| "verified".to_owned())
    }
    let router = Router::new().route("/webhooks", post(log)).with_state(Receiver::new(" "));
    let headers = [("Service-Signature", b"t=1,v1=0".to_vec())];
    let (status, answer) = status_and_answer(router, &headers, vec![]).await;
    assert_eq!((status, &answer[..]), (200, &b"Refused(EmptySecret)"[..]));
}

#[cfg(feature = "tower")]
#[tokio::test]
async fn the_tower_layer_fits_a_router() {
    let router = Router::new()
        .route("/webhooks", post(async |body: Bytes| body))
        .layer(rental_webhook_verify::tower::VerifyLayer::new(deliveries::receiver()));
    for delivery in deliveries::all() {
        let body = delivery.body.clone();
        let (status, answer) = status_and_answer(router.clone(), &delivery.headers, body).await;
        assert_eq!(status, delivery.status(), "{}", delivery.rule);
        assert_eq!(answer, delivery.answer(), "{}", delivery.rule);
    }
}
