//! Stores: exports, files that are open or were closed.

use super::super::{customer, fleet, on_each, runtime, vehicle};
use rental_core::{
    Platform,
    error::Error,
    imports::organization,
    platform::Stored,
    resources::{invoice::Invoice, organization::Organization, rental::Rental, toll::Toll, vehicle::Vehicle},
};
use serde_json::json;
use std::io;
use uuid::Uuid;

#[test]
fn an_export_is_whole_and_in_order_on_every_store() {
    on_each(|platform| async move {
        // Others before and after it, of which nothing may be exported.
        let before = fleet(&platform).await;
        vehicle(&before).await;
        let fleet_of_ours = fleet(&platform).await;
        let (van, ada) = (vehicle(&fleet_of_ours).await, customer(&fleet_of_ours).await);
        let after = fleet(&platform).await;
        vehicle(&after).await;
        let body =
            json!({"agency": "E-ZPass", "amount": 6.94, "vehicle_id": van.id, "occurred_at": "2027-06-01T10:00:00Z"});
        let toll = fleet_of_ours.create::<Toll>(body).await.unwrap();
        let line = json!({"description": "Cleaning", "amount": 40});
        let invoice = fleet_of_ours.create::<Invoice>(json!({"customer_id": ada.id, "lines": [line]})).await.unwrap();
        let rental = json!({"vehicle_id": van.id, "customer_id": ada.id});
        let rental = fleet_of_ours.create::<Rental>(rental).await.unwrap();

        let mut file = Vec::new();
        assert_eq!(fleet_of_ours.export(&mut file).await.unwrap(), 5);
        let organization = fleet_of_ours.organization().await.unwrap();
        let inspected = organization::inspect(file.as_slice(), &organization).unwrap();
        assert_eq!((inspected.source, inspected.objects), (fleet_of_ours.id(), 5));
        let ids: Vec<Uuid> = String::from_utf8(file)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str()?.parse().ok())
            .collect();
        assert_eq!(
            ids,
            [
                fleet_of_ours.id().uuid(),
                van.id.uuid(),
                ada.id.uuid(),
                rental.id.uuid(),
                toll.id.uuid(),
                invoice.id.uuid()
            ]
        );
    });
}

#[test]
fn an_export_to_a_writer_that_fails_says_so() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "no room"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    on_each(|platform| async move {
        let error = fleet(&platform).await.export(Full).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot write the export: no room");
    });
}

#[test]
fn a_file_that_is_open_is_refused_and_one_that_was_closed_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fleet.redb");
    runtime().block_on(async {
        let platform = Platform::open_file(&path).unwrap();
        let fleet = fleet(&platform).await;
        let van = vehicle(&fleet).await;
        let second = Platform::open_file(&path);
        assert!(matches!(&second, Err(Error::Unavailable(why)) if why.contains("in use")), "{second:?}");
        let refused = platform.clone().close().await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "a fleet is still there: {refused:?}");
        let id = fleet.id();
        drop(fleet);
        platform.close().await.unwrap();

        let platform = Platform::open_file(&path).unwrap();
        platform.ready().await.unwrap();
        assert_eq!(platform.fleet(id).await.unwrap().get::<Vehicle>(van.id).await.unwrap(), van);
        let organizations: Vec<Stored<Organization>> = platform.organizations().walk().collect().await.unwrap();
        assert_eq!(organizations.len(), 1);
    });
}
