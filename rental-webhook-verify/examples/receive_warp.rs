//! A receiver with warp 0.4.
//!
//! `WEBHOOK_SECRET=whsec_... cargo run --example receive_warp --features warp`

use std::env;
use std::error::Error;

use bytes::Bytes;
use rental_webhook_verify::Receiver;
use rental_webhook_verify::warp::{answer, verified};
use warp::Filter;
use warp::http::StatusCode;

/// Delivery is at-least-once: a real handler skips an event id that it has handled before.
fn handle(event_id: Option<String>, raw_body: Bytes) -> StatusCode {
    println!("{event_id:?}: {} bytes", raw_body.len());
    StatusCode::NO_CONTENT
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::new(env::var("WEBHOOK_SECRET")?);
    let webhooks = warp::post()
        .and(warp::path!("webhooks"))
        .and(warp::header::optional("Service-Event-Id"))
        .and(verified(receiver))
        .map(handle)
        .recover(answer);
    println!("http://127.0.0.1:3000/webhooks");
    warp::serve(webhooks).run(([127, 0, 0, 1], 3000)).await;
    Ok(())
}
