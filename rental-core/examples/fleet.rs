//! A small fleet in a file: bookings, a double booking that is refused, a report, an export and a signed event.
//!
//! `cargo run -p rental-core --example fleet [FOLDER]` writes `fleet.redb` and `fleet.ndjson` into the folder, by default
//! a temporary one that is removed at the end.

use rental_core::{
    Platform,
    error::Error,
    platform::Fleet,
    resources::{customer::Customer, rental::Rental, vehicle::Vehicle},
    value::Money,
};
use serde_json::json;
use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    let platform = Platform::open_file(folder.join("fleet.redb"))?;
    let fleet = platform.create_organization(json!({"name": "Sunrise Rentals", "time_zone": "Europe/Lisbon"})).await?;

    book(&fleet).await?;
    report(&fleet).await?;
    export(&fleet, &folder.join("fleet.ndjson")).await?;
    deliver(&platform, &fleet).await?;

    drop(fleet);
    platform.close().await?;
    Ok(())
}

/// Creates vehicles and rentals. The second rental of the van overlaps with the first one and is moved.
async fn book(fleet: &Fleet) -> Result<(), Error> {
    let van = fleet.create::<Vehicle>(json!({"name": "Van", "daily_rate": 64.5, "plate": "AA-01-BB"})).await?;
    let coupe = fleet.create::<Vehicle>(json!({"name": "Coupé", "daily_rate": 120})).await?;
    let ada = fleet.create::<Customer>(json!({"full_name": "Ada Lovelace", "preferred_language": "en-GB"})).await?;

    let bookings =
        [(&van, "2027-06-01", "2027-06-05"), (&coupe, "2027-06-02", "2027-06-04"), (&van, "2027-06-04", "2027-06-08")];
    for (number, (vehicle, start, end)) in bookings.into_iter().enumerate() {
        let body = json!({
            "vehicle_id": vehicle.id, "customer_id": ada.id, "start_date": start, "end_date": end, "status": "APPROVED",
        });
        // A booking that is repeated after a crash is not made twice.
        match fleet.create::<Rental>(&body).idempotency_key(format!("booking-{number}")).await {
            Ok(rental) => println!("{} from {start} to {end}: {}", vehicle.name, price(&rental)),
            Err(error @ Error::VehicleUnavailable { .. }) => {
                println!("{} from {start} to {end}: {error}", vehicle.name);
                let mut later = body;
                later["start_date"] = json!("2027-06-05");
                let moved = fleet.create::<Rental>(later).await?;
                println!("{} from 2027-06-05 to {end}: {}", vehicle.name, price(&moved));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

fn price(rental: &Rental) -> String {
    rental
        .final_price
        .map_or_else(|| "no price".to_owned(), |price| format!("{} {}", price.with_digits(2), rental.currency))
}

/// Adds up what the approved rentals cost.
async fn report(fleet: &Fleet) -> Result<(), Error> {
    let mut rentals = fleet.list::<Rental>().filter("status", "APPROVED").walk();
    let (mut count, mut total) = (0, Some(Money::default()));
    while let Some(rental) = rentals.next().await? {
        count += 1;
        total = total.and_then(|sum| sum.plus(rental.final_price.unwrap_or_default()));
    }
    println!(
        "{count} approved rentals, {} in all",
        total.map_or_else(|| "too much".to_owned(), |sum| sum.with_digits(2))
    );
    Ok(())
}

/// Writes all objects as lines of JSON.
async fn export(fleet: &Fleet, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let objects = fleet.export(BufWriter::new(File::create(path)?)).await?;
    println!("{objects} objects exported");
    Ok(())
}

/// Shows what a webhook delivery of the newest event has.
async fn deliver(platform: &Platform, fleet: &Fleet) -> Result<(), Error> {
    let secret = platform.new_webhook_secret()?;
    for event in fleet.events().limit(1).await?.objects {
        let signature = platform.sign(&event, &[&secret])?;
        println!("Service-Signature: {signature}");
        println!("{} with a body of {} bytes", event.event_type.as_str(), event.body().len());
    }
    Ok(())
}
