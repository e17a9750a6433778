//! A receiver with axum 0.8.
//!
//! `WEBHOOK_SECRET=whsec_... cargo run --example receive_axum --features axum`

use std::env;
use std::error::Error;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use rental_webhook_verify::axum::VerifiedBody;
use rental_webhook_verify::{Receiver, Rejection};
use tokio::net::TcpListener;

/// Delivery is at-least-once: a real handler skips an event id that it has handled before.
///
/// Taking `VerifiedBody` alone answers a refusal just the same, without the line in the log.
async fn handle(headers: HeaderMap, verified: Result<VerifiedBody, Rejection>) -> Result<StatusCode, Rejection> {
    let VerifiedBody(raw_body) = verified.inspect_err(|rejection| eprintln!("refused: {rejection}"))?;
    println!("{:?}: {} bytes", headers.get("Service-Event-Id"), raw_body.len());
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::new(env::var("WEBHOOK_SECRET")?);
    let router = Router::new().route("/webhooks", post(handle)).with_state(receiver);
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/webhooks", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}
