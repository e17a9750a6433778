//! Feature `warp`.

use ::http::Request;
use ::warp::{Filter, reject, test};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use rental_webhook_verify::warp::{answer, verified};
use tower::ServiceExt;

use crate::deliveries::{self, NAME};
use crate::endless::Endless;
use crate::http::header_map;
use crate::support::{BODY, SECRET, header};

#[tokio::test]
async fn each_delivery_gets_its_verdict_from_the_filter() {
    let route = verified(deliveries::receiver()).map(|body: Bytes| body.to_vec()).recover(answer);
    for delivery in deliveries::all() {
        let mut request = Request::new(Full::new(Bytes::from(delivery.body.clone())));
        *request.headers_mut() = header_map(&delivery.headers);
        let response = ::warp::service(route.clone()).oneshot(request).await.expect("infallible");
        assert_eq!(response.status(), delivery.status(), "{}", delivery.rule);
        let answer = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(answer, delivery.answer(), "{}", delivery.rule);
    }
}

#[tokio::test]
async fn the_filter_stops_reading_at_the_limit() {
    let route = verified(deliveries::receiver()).map(|body: Bytes| body.to_vec()).recover(answer);
    let mut request = Request::new(Endless::default());
    *request.headers_mut() = header_map(&[(NAME, header(SECRET, deliveries::now(), BODY).into_bytes())]);
    let response = ::warp::service(route).oneshot(request).await.expect("infallible");
    assert_eq!(response.status(), 413);
}

#[tokio::test]
async fn rejections_of_other_filters_are_passed_on() {
    let route = ::warp::any().and_then(async || Err::<String, _>(reject::not_found())).recover(answer);
    let response = test::request().reply(&route).await;
    assert_eq!(response.status(), 404);
}
