//! The library's face on PostgreSQL: what it does on other stores it does here.

use super::super::{on_postgres, open};
use rental_core::{
    Platform,
    error::Error,
    imports::organization,
    platform::SystemEdge,
    resources::{customer::Customer, rental::Rental, vehicle::Vehicle},
};
use serde_json::json;

#[test]
fn a_platform_works_and_exports_and_is_there_when_it_is_opened_again() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        let platform = Platform::with_edge(open(&url).await, SystemEdge::new());
        let fleet = platform.create_organization(json!({"name": "Sunrise Rentals"})).await.unwrap();
        let van = fleet.create::<Vehicle>(json!({"name": "Van"})).idempotency_key("k").await.unwrap();
        let again = fleet.create::<Vehicle>(json!({"name": "Van"})).idempotency_key("k").await.unwrap();
        assert_eq!((again.id, again.is_replayed()), (van.id, true));
        let ada = fleet.create::<Customer>(json!({"full_name": "Ada Lovelace"})).await.unwrap();
        let body = json!({
            "vehicle_id": van.id, "customer_id": ada.id,
            "start_date": "2027-06-01", "end_date": "2027-06-03", "status": "APPROVED",
        });
        let rental = fleet.create::<Rental>(&body).await.unwrap();
        let refused = fleet.create::<Rental>(&body).await;
        assert!(matches!(refused, Err(Error::VehicleUnavailable { holder, .. }) if holder.uuid() == rental.id.uuid()));
        // More rows than the snapshot reads at a time.
        for _ in 0..250 {
            fleet.create::<Customer>(json!({"full_name": "Grace Hopper"})).await.unwrap();
        }
        let mut file = Vec::new();
        assert_eq!(fleet.export(&mut file).await.unwrap(), 253);
        let organization = fleet.organization().await.unwrap();
        assert_eq!(organization::inspect(file.as_slice(), &organization).unwrap().objects, 253);

        let id = fleet.id();
        drop(fleet);
        platform.close().await.unwrap();
        let platform = Platform::with_edge(open(&url).await, SystemEdge::new());
        let fleet = platform.fleet(id).await.unwrap();
        assert_eq!(fleet.list::<Rental>().filter("status", "APPROVED").await.unwrap().objects, [rental]);
        assert_eq!(fleet.list::<Customer>().walk().collect().await.unwrap().len(), 251);
    });
}
