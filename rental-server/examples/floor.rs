//! The floor that the server is measured against: the least that warp can do for a request.
//!
//! `GET /v1/vehicles/{id}` answers a constant vehicle, `GET /v1/vehicles` a constant list of 20, and any POST, such as a webhook, nothing.
//! It prints its address.

use bytes::Bytes;
use warp::{Filter, http::Response};

const VEHICLE: &str = r#"{"id":"0190d0f2-7c3a-7cc0-8000-000000000001","object":"vehicle","name":"White Tesla","make":"Tesla","model":"Model 3","year":2023,"color":null,"plate":"ABC1234","transponder_number":null,"turo_listing_id":null,"daily_rate":89.5,"deposit_amount":null,"currency":"USD","status":"available","organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}"#;

fn json(body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", warp::http::HeaderValue::from_static("application/json"));
    response
}

#[tokio::main]
async fn main() {
    let head = r#"{"object":"list","has_more":true,"next_cursor":"0190d0f2-7c3a-7cc0-8000-000000000001","data":"#;
    let list = Bytes::from(format!("{head}[{}]}}", [VEHICLE; 20].join(",")));
    let one = warp::path!("v1" / "vehicles" / String).map(|_| json(Bytes::from_static(VEHICLE.as_bytes())));
    let all = warp::path!("v1" / "vehicles").map(move || json(list.clone()));
    let post = warp::post().and(warp::body::bytes()).map(|_: Bytes| Response::new(Bytes::new()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("http://{}", listener.local_addr().expect("a bound address"));
    warp::serve(warp::get().and(one.or(all)).or(post)).incoming(listener).run().await;
}
