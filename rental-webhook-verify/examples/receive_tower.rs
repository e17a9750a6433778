//! A receiver behind the tower layer, here in an axum router: the handler sees verified deliveries only.
//!
//! `WEBHOOK_SECRET=whsec_... cargo run --example receive_tower --features tower`

use std::env;
use std::error::Error;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use rental_webhook_verify::Receiver;
use rental_webhook_verify::tower::VerifyLayer;
use tokio::net::TcpListener;

/// Delivery is at-least-once: a real handler skips an event id that it has handled before.
async fn handle(headers: HeaderMap, raw_body: Bytes) -> StatusCode {
    println!("{:?}: {} bytes", headers.get("Service-Event-Id"), raw_body.len());
    StatusCode::NO_CONTENT
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::new(env::var("WEBHOOK_SECRET")?);
    let router = Router::new().route("/webhooks", post(handle)).layer(VerifyLayer::new(receiver));
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/webhooks", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}
