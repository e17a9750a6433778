//! Verifying with nothing but the types of `http` 1, whatever the server.
//!
//! `cargo run --example receive_http --features http`

use http::{Request, Response, StatusCode};
use rental_webhook_verify::Receiver;

fn handle(receiver: &Receiver, request: &Request<&[u8]>) -> Result<Response<&'static str>, http::Error> {
    match receiver.verify_headers(request.headers(), request.body()) {
        Ok(()) => Response::builder().status(StatusCode::NO_CONTENT).body(""),
        Err(rejection) => {
            eprintln!("refused: {rejection}");
            Response::builder().status(rejection.status()).body(rejection.response_text())
        }
    }
}

fn main() -> Result<(), http::Error> {
    // This sample was signed in 2023, so any age will do here. Leave the tolerance alone in a real receiver.
    let receiver = Receiver::new("whsec_test_secret").tolerance_secs(u64::MAX);
    let signature = "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990";
    let genuine = br#"{"id":"evt_test_webhook","object":"event"}"#;
    let forged = br#"{"id":"evt_of_a_stranger","object":"event"}"#;
    for body in [&genuine[..], forged] {
        let request = Request::post("/webhooks").header("Service-Signature", signature).body(body)?;
        println!("{}", handle(&receiver, &request)?.status());
    }
    Ok(())
}
