//! What others name and is gone: it is told, and what names it stays as it is.

use crate::{
    sound::{NOW, checked, repaired, rows, store},
    stores::{Rows, everything, wait},
};
use rental_core::{
    check::{
        Remedy, expected_keys,
        repair::{self, Found},
    },
    resources::{
        Resource, block,
        customer::Customer,
        invoice::{self, Invoice},
        rental,
        toll::{self, Toll},
        vehicle::Vehicle,
    },
    rows::{Row, Tag, calendar_feed::ImportedFeed, key},
    store::{Commit, Key},
    upgrade::Upgrade,
    value::{Id, OrganizationId, Timestamp},
};
use serde_json::{Value, json};

/// The records of a resource, with their organization.
fn records(rows: &Rows, tag: u8) -> Vec<(Key, OrganizationId, Value)> {
    let of = |(key, (_, value)): (&Key, &(u64, bytes::Bytes))| match Row::decode(key) {
        Some(Row::Record { organization, resource, .. }) if resource == tag => {
            Some((key.clone(), organization, serde_json::from_slice(value).unwrap()))
        }
        _ => None,
    };
    rows.iter().filter_map(of).collect()
}

fn object(rows: &Rows, key: &Key) -> Value {
    serde_json::from_slice(&rows[key].1).unwrap()
}

#[test]
fn a_lost_customer_and_a_lost_vehicle_are_told_and_their_rental_holds_its_nights() {
    let (rental, organization, of) = records(rows(), rental::SPEC.tag)
        .into_iter()
        .find(|(key, organization, of)| {
            let json = serde_json::to_vec(of).unwrap();
            let keys = expected_keys(*organization, &rental::SPEC, key.id().unwrap(), &json).unwrap();
            keys.iter().any(|key| key.as_bytes()[0] == Tag::Hold as u8)
        })
        .unwrap();
    let id = |field: &str| of[field].as_str().unwrap();
    let who = Customer::key(organization, Id::parse(id("customer_id")).unwrap());
    let what = Vehicle::key(organization, Id::parse(id("vehicle_id")).unwrap());
    let mut damaged = rows().clone();
    damaged.remove(&who);
    damaged.insert(what.clone(), (3, "?".into()));
    let store = store(&damaged);
    let (found, report) = repaired(&store);
    assert!(report.is_sound(), "{:#?}", report.remedies);
    let names = |field: &str, id: &str| {
        let told = |what: &str| what.starts_with(&format!("its `{field}` is ")) && what.contains(id);
        report.listed.iter().any(|one| one.place.contains(&rental.id().unwrap().to_string()) && told(&one.what))
    };
    assert!(names("customer_id", id("customer_id")) && names("vehicle_id", id("vehicle_id")), "{:#?}", report.listed);
    assert!(found.changes[&what].put.is_none());
    let after = wait(everything(&store));
    assert!(!after.contains_key(&who) && !after.contains_key(&what), "nothing is made up");
    let kept = |key: &&Key| {
        let kind = Row::decode(key).unwrap();
        matches!(kind, Row::Hold { .. } | Row::Calendar { .. } | Row::Record { .. }) && ![&who, &what].contains(key)
    };
    for key in rows().keys().filter(kept) {
        assert_eq!(after.get(key), rows().get(key), "{}", rental_core::resources::row_words::in_words(key));
    }
}

/// An import must not record it again, because it would be billed twice.
#[test]
fn a_lost_toll_that_an_invoice_bills_keeps_the_claim_of_its_identity() {
    for is_billed in [true, false] {
        let mut with = rows().clone();
        let (place, organization, toll) = records(&with, toll::SPEC.tag).pop().unwrap();
        let id = place.id().unwrap();
        let (invoice, ..) = records(&with, invoice::SPEC.tag)
            .into_iter()
            .find(|(_, owner, invoice)| *owner == organization && invoice["status"] != "void")
            .unwrap();
        for (key, ..) in records(&with, invoice::SPEC.tag) {
            let text = String::from_utf8_lossy(&with[&key].1).replace(&id.to_string(), &uuid::Uuid::nil().to_string());
            with.get_mut(&key).unwrap().1 = text.into();
        }
        if is_billed {
            let mut bills = object(&with, &invoice);
            let line = json!({"description": "Toll", "amount": toll["amount"], "toll_id": id});
            let mut whole = bills["lines"][0].clone();
            for (name, value) in line.as_object().unwrap() {
                whole[name] = value.clone();
            }
            (whole["rental_id"], whole["violation_id"]) = (Value::Null, Value::Null);
            bills["lines"] = json!([whole]);
            let parsed: Invoice = serde_json::from_value(bills).unwrap();
            with.get_mut(&invoice).unwrap().1 = serde_json::to_vec(&parsed).unwrap().into();
        }
        let toll: Toll = serde_json::from_value(toll).unwrap();
        assert!(Toll::SPEC.tag == toll::SPEC.tag && toll.id.uuid() == id);
        let value = id.as_bytes().to_vec();
        let claims = |rows: &Rows| {
            let is_claim = |key: &&Key| key.as_bytes()[0] == Tag::Identity as u8 && rows[*key].1.starts_with(&value);
            rows.keys().filter(is_claim).count()
        };
        let before = claims(&with);
        assert!(before > 0);
        with.insert(place.clone(), (1, "?".into()));
        let store = store(&with);
        repaired(&store);
        let after = wait(everything(&store));
        assert!(!after.contains_key(&place));
        assert_eq!(claims(&after), if is_billed { before } else { 0 });
    }
}

#[test]
fn of_two_objects_with_one_identity_the_first_has_the_claim_that_was_lost_and_both_stay() {
    let mut with = rows().clone();
    let (first, organization, mut toll) = records(&with, toll::SPEC.tag).remove(0);
    let second = Toll::key(organization, Id::from_uuid(uuid::Uuid::max()));
    toll["transaction_id"] = json!("a number of two");
    for key in [&first, &second] {
        toll["id"] = json!(key.id().unwrap());
        let one: Toll = serde_json::from_value(toll.clone()).unwrap();
        with.insert(key.clone(), (1, serde_json::to_vec(&one).unwrap().into()));
    }
    let store = store(&with);
    repaired(&store);
    let after = wait(everything(&store));
    assert!(after.contains_key(&first) && after.contains_key(&second));
    let is_new = |(key, _): &(&Key, &(u64, bytes::Bytes))| {
        key.as_bytes()[0] == Tag::Identity as u8 && !rows().contains_key(*key)
    };
    let claims: Vec<_> = after.iter().filter(is_new).collect();
    assert!(claims.len() == 1 && claims[0].1.1.starts_with(first.id().unwrap().as_bytes()), "{claims:?}");
}

#[test]
fn a_lost_counter_never_gives_a_number_again() {
    let (_, organization, _) = records(rows(), invoice::SPEC.tag).pop().unwrap();
    let counter = key::counter(organization, "invoices");
    let before = rows()[&counter].clone();
    for lost in [None, Some(0), Some(1)] {
        let mut with = rows().clone();
        match lost {
            None => drop(with.remove(&counter)),
            Some(number) => drop(with.insert(counter.clone(), (number, "".into()))),
        }
        let store = store(&with);
        repaired(&store);
        assert_eq!(wait(everything(&store)).get(&counter), Some(&before), "{lost:?}");
    }
}

/// A toll of an invoice that is gone stays billed.
#[test]
fn a_lost_invoice_is_told_and_what_it_billed_is_not_billed_again() {
    for (place, ..) in records(rows(), invoice::SPEC.tag) {
        let mut without = rows().clone();
        without.insert(place.clone(), (1, "?".into()));
        let store = store(&without);
        let (_, report) = repaired(&store);
        assert!(report.is_sound() && report.remedies[&Remedy::Gone] > 0, "{:#?}", report.listed);
        let after = wait(everything(&store));
        for key in rows().keys().filter(|key| key.as_bytes()[0] == Tag::Record as u8 && **key != place) {
            assert_eq!(after.get(key), rows().get(key));
        }
    }
    assert!(checked(rows()).is_sound());
}

#[test]
fn a_block_whose_calendar_feed_is_gone_keeps_its_days_and_can_be_changed_again() {
    let blocks = records(rows(), block::SPEC.tag);
    let (place, organization, of) = blocks.into_iter().find(|(_, _, block)| block["status"] == "active").unwrap();
    let id = place.id().unwrap();
    let feed = Id::from_uuid(uuid::Uuid::from_u128(77));
    let with = |end: &str, status: &str, row: Option<Vec<u8>>| {
        let mut changed = of.clone();
        (changed["calendar_feed_id"], changed["source"]) = (json!(feed), json!("calendar_feed"));
        (changed["start_date"], changed["end_date"], changed["status"]) =
            (json!("2020-01-01"), json!(end), json!(status));
        let mut rows = rows().clone();
        let before = serde_json::to_vec(&of).unwrap();
        for key in expected_keys(organization, &block::SPEC, id, &before).unwrap() {
            if !matches!(Row::decode(&key), Some(Row::Calendar { .. })) {
                rows.remove(&key);
            }
        }
        rows.insert(place.clone(), (1, serde_json::to_vec(&changed).unwrap().into()));
        rows.extend(row.map(|row| (key::calendar_feed(organization, feed), (1, row.into()))));
        let (store, at) = (store(&rows), Timestamp::parse("2026-06-01T12:00:00Z").unwrap());
        let find = || wait(repair::find(&store, at, &mut |_| {})).unwrap();
        let found = find();
        wait(Upgrade::again(&store)).unwrap();
        assert_eq!(wait(repair::apply(&store, &found)), Ok(Commit::Applied));
        assert!(find().changes.is_empty());
        (found, object(&wait(everything(&store)), &place))
    };
    let released = |(found, after): (Found, Value)| {
        assert!(found.left.listed.is_empty(), "{:?}", found.left.listed);
        assert_eq!(after["start_date"], "2020-01-01", "{:#?}", found.changes);
        after["calendar_feed_id"].is_null()
    };
    assert!(released(with("2099-01-01", "active", None)));
    assert!(released(with("2099-01-01", "conflict", None)));
    assert!(!released(with("2026-06-01", "active", None)), "it may have ended: a deleted feed leaves it");
    assert!(released(with("2026-06-02", "active", None)));
    assert!(!released(with("2099-01-01", "cancelled", None)));
    let deleted = ImportedFeed { removed: true, ..ImportedFeed::new(None, NOW) };
    let row = serde_json::to_vec(&deleted).unwrap();
    assert!(!released(with("2099-01-01", "active", Some(row))), "a server cancels it");
}
