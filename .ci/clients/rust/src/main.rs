//! A create, a PATCH, a list and a typed error with the client that progenitor makes.

progenitor::generate_api!(spec = "openapi.json", interface = Builder);

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use std::{env, error};
use types::{ErrorCode, VehicleStatus};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn error::Error>> {
    let bearer = HeaderValue::from_str(&format!("Bearer {}", env::var("RENTAL_API_KEY")?))?;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
    let http = reqwest::Client::builder().default_headers(headers).build()?;
    let client = Client::new_with_client(&env::var("RENTAL_BASE_URL")?, http);

    let wanted = types::VehicleCreate::builder().name("Red Corolla".to_owned()).daily_rate(1_234_567.89);
    let key = uuid::Uuid::new_v4().to_string();
    let created = client.create_vehicle().idempotency_key(key).body(wanted).send().await?;
    assert_eq!((created.daily_rate, created.status), (Some(1_234_567.89), VehicleStatus::Available));

    let update = types::VehicleUpdate::builder().status(VehicleStatus::Maintenance);
    let changed = client.update_vehicle().id(created.id).body(update).send().await?;
    assert_eq!(changed.status, VehicleStatus::Maintenance);

    let page = client.list_vehicles().limit(1).send().await?;
    assert_eq!((page.data[0].id, page.has_more), (created.id, true));

    match client.get_vehicle().id(uuid::Uuid::nil()).send().await {
        Err(Error::ErrorResponse(problem)) => {
            assert_eq!(problem.status(), 404);
            assert_eq!(problem.error.code, ErrorCode::ResourceMissing);
        }
        other => panic!("no error of the API: {other:?}"),
    }
    println!("Rust: compiled; a create, an update, a list and a typed error");
    Ok(())
}
