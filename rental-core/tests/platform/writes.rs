//! Writes: once for each idempotency key, only at the expected revision, with what is wrong with a body.

use super::super::{Clock, Shared, customer, fleet, on_each, runtime, vehicle};
use rental_core::{
    Platform,
    error::Error,
    platform::Engine,
    resources::{rental::Rental, vehicle::Vehicle},
    store::{Span, Store, memory::Memory},
};
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

#[test]
fn a_write_with_the_same_idempotency_key_is_performed_once() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let body = json!({"name": "Van"});
        let first = fleet.create::<Vehicle>(&body).idempotency_key("k1").await.unwrap();
        let again = fleet.create::<Vehicle>(&body).idempotency_key("k1").await.unwrap();
        assert_eq!((first.id, first.is_replayed(), again.id, again.is_replayed()), (again.id, false, first.id, true));
        assert_eq!(fleet.list::<Vehicle>().await.unwrap().objects.len(), 1);
        let other = fleet.create::<Vehicle>(json!({"name": "Car"})).idempotency_key("k1").await;
        assert_eq!(other, Err(Error::IdempotencyReused));
        // An update is another write than a creation, and of another object.
        let other = fleet.update::<Vehicle>(first.id, &body).idempotency_key("k1").await;
        assert_eq!(other, Err(Error::IdempotencyReused));

        let changed = fleet.update::<Vehicle>(first.id, json!({"color": "White"})).idempotency_key("k2").await.unwrap();
        assert_eq!(changed.revision(), 2);
        fleet.update::<Vehicle>(first.id, json!({"color": "Red"})).await.unwrap();
        let again = fleet.update::<Vehicle>(first.id, json!({"color": "White"})).idempotency_key("k2").await.unwrap();
        assert_eq!((again.color.as_deref(), again.revision()), (Some("White"), 2));
        assert_eq!(fleet.get::<Vehicle>(first.id).await.unwrap().color.as_deref(), Some("Red"));
        let second = vehicle(&fleet).await;
        let other = fleet.update::<Vehicle>(second.id, json!({"color": "White"})).idempotency_key("k2").await;
        assert_eq!(other, Err(Error::IdempotencyReused));
    });
}

#[test]
fn an_organization_with_the_same_idempotency_key_is_created_once() {
    on_each(|platform| async move {
        let create = || platform.create_organization(json!({"name": "Sunrise Rentals"})).idempotency_key("k");
        assert_eq!(create().await.unwrap().id(), create().await.unwrap().id());
        assert_eq!(platform.organizations().await.unwrap().objects.len(), 1);
    });
}

#[test]
fn a_final_error_is_repeated_for_its_idempotency_key_even_when_the_cause_is_gone() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let (van, ada) = (vehicle(&fleet).await, customer(&fleet).await);
        let body = json!({
            "vehicle_id": van.id, "customer_id": ada.id,
            "start_date": "2027-06-01", "end_date": "2027-06-03", "status": "APPROVED",
        });
        let first = fleet.create::<Rental>(&body).await.unwrap();
        let refused = fleet.create::<Rental>(&body).idempotency_key("k").await.unwrap_err();
        assert!(
            matches!(&refused, Error::VehicleUnavailable { holder, .. } if holder.uuid() == first.id.uuid()),
            "{refused}"
        );
        fleet.update::<Rental>(first.id, json!({"status": "CANCELLED"})).await.unwrap();
        assert_eq!(fleet.create::<Rental>(&body).idempotency_key("k").await, Err(refused));
        assert!(fleet.create::<Rental>(&body).idempotency_key("k2").await.is_ok());
    });
}

#[test]
fn writes_that_race_with_one_idempotency_key_make_one_object() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let one = |_| tokio::spawn(fleet.create::<Vehicle>(json!({"name": "Van"})).idempotency_key("k").into_future());
        let tasks: Vec<_> = (0..16).map(one).collect();
        let mut ids = Vec::new();
        for task in tasks {
            ids.push(task.await.unwrap().unwrap().id);
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        assert_eq!(fleet.list::<Vehicle>().await.unwrap().objects.len(), 1);
    });
}

#[test]
fn a_malformed_idempotency_key_names_itself() {
    on_each(|platform| async move {
        for key in ["", "a b", "é"] {
            match fleet(&platform).await.create::<Vehicle>(json!({"name": "Van"})).idempotency_key(key).await {
                Err(error @ Error::Invalid(_)) => assert!(error.to_string().contains("`idempotency_key`"), "{error}"),
                other => panic!("{key}: {other:?}"),
            }
        }
    });
}

#[test]
fn stored_responses_are_removed_after_24_hours_and_not_before() {
    runtime().block_on(async {
        let (store, clock) = (Arc::new(Memory::default()), Clock::default());
        let platform = Platform::with_edge(Engine::custom(Shared(Arc::clone(&store))), clock.clone());
        let fleet = fleet(&platform).await;
        let create = |key: &str| fleet.create::<Vehicle>(json!({"name": "Van"})).idempotency_key(key).into_future();
        let rows = async || store.scan(&Span::everything(), usize::MAX).await.unwrap().len();
        // More than one transaction removes.
        for number in 0..300 {
            create(&number.to_string()).await.unwrap();
        }
        let first = create("0").await.unwrap();
        clock.advance_hours(23);
        let with_responses = rows().await;
        platform.remove_expired_responses().await.unwrap();
        assert_eq!(rows().await, with_responses);
        assert_eq!(create("0").await.unwrap().id, first.id);
        clock.advance_hours(2);
        platform.remove_expired_responses().await.unwrap();
        // Of each, the response and the entry by which it is found.
        assert_eq!(rows().await, with_responses - 600);
        assert_ne!(create("0").await.unwrap().id, first.id);
    });
}

#[test]
fn an_update_at_another_revision_changes_nothing() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let van = vehicle(&fleet).await;
        let rename = |name: &str| fleet.update::<Vehicle>(van.id, json!({"name": name})).if_revision(1).into_future();
        assert_eq!(rename("First").await.unwrap().revision(), 2);
        assert_eq!(rename("Second").await, Err(Error::PreconditionFailed));
        let stored = fleet.get::<Vehicle>(van.id).await.unwrap();
        assert_eq!((stored.name.as_str(), stored.revision()), ("First", 2));
    });
}

#[test]
fn a_body_that_is_no_json_object_is_refused() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let unkeyed: std::collections::BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
        for refused in [
            fleet.create::<Vehicle>(json!(["name"])).await,
            fleet.create::<Vehicle>("name").await,
            fleet.create::<Vehicle>(unkeyed).await,
        ] {
            assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
        }
        let set = fleet.create::<Vehicle>(json!({"name": "Van", "id": Uuid::nil()})).await.unwrap_err();
        assert!(set.to_string().contains("`id` is set by the server"), "{set}");
    });
}
