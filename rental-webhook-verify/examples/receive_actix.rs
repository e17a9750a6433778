//! A receiver with actix-web 4.
//!
//! `WEBHOOK_SECRET=whsec_... cargo run --example receive_actix --features actix`

use std::env;
use std::error::Error;

use actix_web::rt::System;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use rental_webhook_verify::Receiver;
use rental_webhook_verify::actix::VerifiedBody;

/// Delivery is at-least-once: a real handler skips an event id that it has handled before.
async fn handle(request: HttpRequest, VerifiedBody(raw_body): VerifiedBody) -> HttpResponse {
    println!("{:?}: {} bytes", request.headers().get("Service-Event-Id"), raw_body.len());
    HttpResponse::NoContent().finish()
}

fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::new(env::var("WEBHOOK_SECRET")?);
    let app = move || App::new().app_data(receiver.clone()).route("/webhooks", web::post().to(handle));
    let server = HttpServer::new(app).workers(1).bind("127.0.0.1:3000")?;
    println!("http://127.0.0.1:3000/webhooks");
    Ok(System::new().block_on(server.run())?)
}
