//! Reads: one organization alone, filters, walks over all pages, events.

use super::super::{Clock, Shared, customer, fleet, on_each, runtime, vehicle};
use rental_core::{
    Platform,
    error::Error,
    platform::Engine,
    resources::{Resource, customer::Customer, rental::Rental, vehicle::Vehicle},
    store::{Batch, Store, memory::Memory},
};
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

#[test]
fn a_fleet_sees_nothing_of_another_organization() {
    on_each(|platform| async move {
        let (ours, theirs) = (fleet(&platform).await, fleet(&platform).await);
        let van = vehicle(&theirs).await;
        let missing = Error::NotFound { object: "vehicle" };
        assert_eq!(ours.get::<Vehicle>(van.id).await.unwrap_err(), missing);
        assert_eq!(ours.update::<Vehicle>(van.id, json!({"name": "Ours"})).await.unwrap_err(), missing);
        assert!(ours.list::<Vehicle>().await.unwrap().objects.is_empty());
        let ada = customer(&ours).await;
        let rental = ours.create::<Rental>(json!({"vehicle_id": van.id, "customer_id": ada.id})).await.unwrap_err();
        assert!(rental.to_string().contains("`vehicle_id` names no vehicle that exists"), "{rental}");
        let event = theirs.events().await.unwrap().objects.remove(0);
        assert!(ours.event(event.id).await.is_err() && theirs.event(event.id).await.is_ok());
        for unknown in [Uuid::nil().to_string(), "vehicle 7".to_owned(), van.id.to_string().to_uppercase()] {
            assert_eq!(theirs.get::<Vehicle>(unknown).await.unwrap_err(), missing);
        }
        assert!(matches!(platform.fleet(van.id.to_string()).await, Err(Error::NotFound { object: "organization" })));
    });
}

#[test]
fn a_walk_gives_every_object_once_and_newest_first() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        for _ in 0..250 {
            vehicle(&fleet).await;
        }
        let all = fleet.list::<Vehicle>().walk().collect().await.unwrap();
        assert_eq!(all.len(), 250);
        assert!(all.is_sorted_by(|a, b| a.id > b.id));
        for limit in [1, 100] {
            let again = fleet.list::<Vehicle>().limit(limit).walk().collect().await.unwrap();
            assert_eq!(again, all, "pages of {limit}");
        }
        let page = fleet.list::<Vehicle>().limit(7).await.unwrap();
        assert_eq!((page.objects.as_slice(), page.next), (&all[..7], Some(all[6].id)));
        let middle = &all[124];
        let older = fleet.list::<Vehicle>().starting_after(middle.id).walk().collect().await.unwrap();
        assert_eq!(older, all[125..]);
        let time = middle.created_at;
        let from = fleet.list::<Vehicle>().created_from(time).walk().collect().await.unwrap();
        let before = fleet.list::<Vehicle>().created_before(time).walk().collect().await.unwrap();
        assert!(from.contains(middle) && from.iter().all(|one| one.created_at >= time));
        assert!(before.iter().all(|one| one.created_at < time));
        assert_eq!([from, before].concat(), all);
    });
}

#[test]
fn a_filter_takes_its_value_literally() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let ada = customer(&fleet).await;
        let by = |email: &str| fleet.list::<Customer>().filter("email", email).into_future();
        assert_eq!(by("ada+fleet@example.com").await.unwrap().objects[0].id, ada.id);
        for other in ["ada%2Bfleet@example.com", "ada fleet@example.com", "x&limit=1", "ünï@example.com"] {
            assert!(by(other).await.unwrap().objects.is_empty(), "{other}");
        }
        let unknown = fleet.list::<Customer>().filter("emial", "ada@example.com").await.unwrap_err();
        assert!(unknown.to_string().contains("did you mean `email`"), "{unknown}");
        for limit in [0, 101] {
            assert!(matches!(fleet.list::<Customer>().limit(limit).await, Err(Error::Invalid(_))), "{limit}");
        }
    });
}

#[test]
fn events_tell_of_every_change_and_carry_the_object() {
    on_each(|platform| async move {
        let fleet = fleet(&platform).await;
        let van = vehicle(&fleet).await;
        fleet.update::<Vehicle>(van.id, json!({"color": "White"})).await.unwrap();
        let events = fleet.events().await.unwrap().objects;
        let names: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
        assert_eq!(names, ["vehicle.updated", "vehicle.created"]);
        assert_eq!(events[1].data::<Vehicle>().unwrap(), *van);
        assert_eq!(events[0].data::<Vehicle>().unwrap().color.as_deref(), Some("White"));
        assert!(matches!(events[0].data::<Customer>(), Err(Error::Conflict(_))));
        assert_eq!(fleet.event(events[0].id).await.unwrap().body(), events[0].body());
    });
}

#[test]
fn a_damaged_object_fails_its_readers_alone() {
    runtime().block_on(async {
        let store = Arc::new(Memory::default());
        let fleet = fleet(&Platform::with_edge(Engine::custom(Shared(Arc::clone(&store))), Clock::default())).await;
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(vehicle(&fleet).await.id);
        }
        let mut batch = Batch::default();
        batch.replace(Vehicle::key(fleet.id(), ids[2]), 1, "junk".into());
        store.commit(batch).await.unwrap();

        assert!(matches!(fleet.get::<Vehicle>(ids[2]).await, Err(Error::Damaged(_))));
        assert!(matches!(fleet.list::<Vehicle>().await, Err(Error::Damaged(_))));
        let mut walk = fleet.list::<Vehicle>().limit(2).walk();
        let mut seen = Vec::new();
        loop {
            match walk.next().await {
                Ok(Some(object)) => seen.push(Some(object.id)),
                Ok(None) => break,
                Err(error) => {
                    assert!(matches!(error, Error::Damaged(_)), "{error}");
                    seen.push(None);
                }
            }
        }
        assert_eq!(seen, [Some(ids[4]), Some(ids[3]), None, Some(ids[1]), Some(ids[0])]);
    });
}
