//! Feature `actix`.

use actix_web::body::to_bytes;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, rt, web};
use rental_webhook_verify::actix::VerifiedBody;

use crate::deliveries::{self, Delivery};

async fn echo(VerifiedBody(body): VerifiedBody) -> web::Bytes {
    body
}

fn request(delivery: &Delivery) -> TestRequest {
    let request = TestRequest::post().uri("/webhooks").set_payload(delivery.body.clone());
    delivery.headers.iter().fold(request, |request, (name, value)| {
        let name: HeaderName = name.parse().expect("a header name");
        request.append_header((name, HeaderValue::from_bytes(value).expect("a header value")))
    })
}

#[test]
fn each_delivery_gets_its_verdict_from_the_actix_extractor() {
    rt::System::new().block_on(async {
        let app = App::new().app_data(deliveries::receiver()).route("/webhooks", web::post().to(echo));
        let service = init_service(app).await;
        for delivery in deliveries::all() {
            let response = call_service(&service, request(&delivery).to_request()).await;
            assert_eq!(response.status().as_u16(), delivery.status(), "{}", delivery.rule);
            let answer = to_bytes(response.into_body()).await.expect("a body");
            assert_eq!(answer, delivery.answer(), "{}", delivery.rule);
        }
    });
}

#[test]
fn without_a_receiver_every_delivery_is_refused() {
    rt::System::new().block_on(async {
        let service = init_service(App::new().route("/webhooks", web::post().to(echo))).await;
        for delivery in deliveries::all() {
            let response = call_service(&service, request(&delivery).to_request()).await;
            assert_eq!(response.status().as_u16(), 500, "{}", delivery.rule);
        }
    });
}
