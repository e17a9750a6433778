//! A receiver with axum 0.8.
//!
//! `WEBHOOK_SECRET=whsec_... cargo run --example receive_axum --features axum`

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{FromRef, State};
use axum::http::StatusCode;
use axum::routing::post;
use rental_webhook_verify::axum::VerifiedBody;
use rental_webhook_verify::{Receiver, Rejection};
use serde_json::Value;
use tokio::net::TcpListener;

#[derive(Clone)]
struct Receiving {
    receiver: Receiver,
    /// Ids of the events that were handled. In production: a table whose unique key is the event's id.
    seen: Arc<Mutex<HashSet<String>>>,
}

/// Where `VerifiedBody` finds the receiver.
impl FromRef<Receiving> for Receiver {
    fn from_ref(receiving: &Receiving) -> Self {
        receiving.receiver.clone()
    }
}

/// Taking `VerifiedBody` alone answers a refusal just the same, without the line in the log.
async fn handle(
    State(receiving): State<Receiving>,
    verified: Result<VerifiedBody, Rejection>,
) -> Result<StatusCode, Rejection> {
    let VerifiedBody(raw_body) = verified.inspect_err(|rejection| eprintln!("refused: {rejection}"))?;
    let Ok(event) = serde_json::from_slice::<Value>(&raw_body) else { return Ok(StatusCode::BAD_REQUEST) };
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_new = receiving.seen.lock().is_ok_and(|mut seen| seen.insert(text("/id")));
    if is_new {
        println!("axum: {} {}", text("/type"), text("/data/id"));
    }
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret = env::var("WEBHOOK_SECRET").ok().filter(|secret| !secret.trim().is_empty());
    let secret = secret.ok_or("set WEBHOOK_SECRET to the secret of the webhook endpoint (whsec_...)")?;
    let receiving = Receiving { receiver: Receiver::new(secret), seen: Arc::default() };
    let router = Router::new().route("/webhooks", post(handle)).with_state(receiving);
    let listener = TcpListener::bind(env::var("ADDRESS").as_deref().unwrap_or("127.0.0.1:3000")).await?;
    println!("axum is ready: http://{}/webhooks", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}
