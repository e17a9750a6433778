//! What others name and is not there: a customer or vehicle gets a stand-in, anything else is no longer named.

use crate::{
    sound::{NOW, Waits, plan, repaired, rows, store},
    stores::{Rows, everything, wait},
};
use rental_core::{
    check::{
        expected_keys,
        repair::{self, Plan, kind},
    },
    resources::{
        Attributable, Resource,
        assignment::{VehicleAssignments, lacking},
        block,
        credit_note::{self, CreditNote},
        customer::{self, Customer},
        invoice::Invoice,
        rental,
        toll::{self, Toll},
        vehicle::{self, Vehicle},
    },
    rows::{
        Row, Tag,
        calendar_feed::ImportedFeed,
        key,
        recheck::{Marked, Recheck},
    },
    store::Key,
    value::{Id, Money, OrganizationId, Timestamp, VehicleId},
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
fn a_lost_customer_and_a_lost_vehicle_that_a_rental_names_get_stand_ins() {
    let (_, organization, of) = records(rows(), rental::SPEC.tag).pop().unwrap();
    let id = |field: &str| of[field].as_str().unwrap();
    let who = Customer::key(organization, Id::parse(id("customer_id")).unwrap());
    let what = Vehicle::key(organization, Id::parse(id("vehicle_id")).unwrap());
    let mut without = rows().clone();
    without.retain(|key, _| *key != who && *key != what);
    let store = store(&without);
    let made = repaired(&store);
    assert_eq!(made.left.listed, [], "nothing is left that no repair can mend");
    let after = wait(everything(&store));
    let (who_now, what_now) = (object(&after, &who), object(&after, &what));
    assert_eq!((&who_now["full_name"], &what_now["name"]), (&json!("Lost record"), &json!("Lost record")));
    assert!(who_now["notes"].as_str().unwrap().contains("store repair"), "{who_now}");
    assert_eq!(what_now["status"], "unavailable", "nobody rents it out");
    assert_eq!(after[&who].0, NOW.millis(), "no client has seen the revision");
    let changed = |key: &Key| rows().get(key) != after.get(key);
    let records: Vec<&Key> =
        after.keys().filter(|key| key.as_bytes()[0] == Tag::Record as u8 && changed(key)).collect();
    assert!(records.iter().all(|key| [&what, &who].contains(key)), "no other record is touched");
}

#[test]
fn an_invoice_lists_again_a_credit_note_that_it_lacks() {
    let (place, organization, note) = records(rows(), credit_note::SPEC.tag).pop().unwrap();
    let invoice = Invoice::key(organization, Id::parse(note["invoice_id"].as_str().unwrap()).unwrap());
    let whole = object(rows(), &invoice);
    let mut without: Invoice = serde_json::from_value(whole.clone()).unwrap();
    without.credit_note_ids.retain(|id| id.uuid() != place.id().unwrap());
    without.amount_credited = Money::default();
    let mut with = rows().clone();
    let revision = with[&invoice].0;
    with.insert(invoice.clone(), (revision, serde_json::to_vec(&without).unwrap().into()));
    let store = store(&with);
    let made = repaired(&store);
    assert!(made.left.listed.is_empty(), "{:?}", made.left.listed);
    let after = wait(everything(&store));
    let now = object(&after, &invoice);
    assert_eq!(
        [&now["credit_note_ids"], &now["amount_credited"]],
        [&whole["credit_note_ids"], &whole["amount_credited"]]
    );
    assert!(!now["credit_note_ids"].as_array().unwrap().is_empty());
    assert_eq!(after[&invoice].0, revision + 1);
}

#[test]
fn an_invoice_says_again_what_its_credit_notes_credit() {
    let (_, organization, note) = records(rows(), credit_note::SPEC.tag).pop().unwrap();
    let place = Invoice::key(organization, Id::parse(note["invoice_id"].as_str().unwrap()).unwrap());
    let (revision, whole) = (rows()[&place].0, object(rows(), &place));
    for wrong in [Money::default(), Money::parse("0.01", 2).unwrap(), Money::MAX] {
        let mut invoice: Invoice = serde_json::from_value(whole.clone()).unwrap();
        invoice.amount_credited = wrong;
        let mut with = rows().clone();
        with.insert(place.clone(), (revision, serde_json::to_vec(&invoice).unwrap().into()));
        let store = store(&with);
        let made = repaired(&store);
        assert!(made.left.listed.is_empty(), "{:?}", made.left.listed);
        let says = format!("its credit notes credit {}, and not {wrong}", whole["amount_credited"]);
        assert_eq!(made.changes[&place].why, says);
        let after = wait(everything(&store));
        assert_eq!(object(&after, &place)["amount_credited"], whole["amount_credited"]);
        assert_eq!(after[&place].0, revision + 1);
    }
    // A credit note that is not there may have credited the rest: what is credited never falls.
    let lost = CreditNote::key(organization, Id::parse(note["id"].as_str().unwrap()).unwrap());
    let mut without = rows().clone();
    without.remove(&lost);
    let store = store(&without);
    let made = repaired(&store);
    let [problem] = &*made.left.listed else { panic!("{:?}", made.left.listed) };
    let notes = records(rows(), credit_note::SPEC.tag).iter().filter(|(_, owner, _)| *owner == organization).count();
    assert!(problem.what.ends_with(&format!("but the counter stands at {notes}")), "{problem:?}");
    assert_eq!(object(&wait(everything(&store)), &place), whole);
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
        // The repair writes its derived rows, too.
        let (store, at) = (store(&rows), Timestamp::parse("2026-06-01T12:00:00Z").unwrap());
        let plan = || repair::plan(&store, &Waits, at, &mut |_| {}).unwrap();
        let made = plan();
        repair::apply(&store, &Waits, &made).unwrap();
        assert!(plan().changes.is_empty());
        (made, object(&wait(everything(&store)), &place))
    };
    let released = |(made, after): (Plan, Value)| {
        assert!(made.left.listed.is_empty(), "{:?}", made.left.listed);
        assert_eq!(after["start_date"], "2020-01-01", "{:#?}", made.changes);
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

#[test]
fn a_customer_nobody_names_gets_no_stand_in() {
    let (place, ..) = records(rows(), customer::SPEC.tag).pop().unwrap();
    let id = place.id().unwrap().to_string();
    let mut without = rows().clone();
    without.insert(place.clone(), (1, "?".into()));
    let is_named = |(key, row): (&Key, &(u64, bytes::Bytes))| {
        key.as_bytes()[0] == Tag::Record as u8 && String::from_utf8_lossy(&row.1).contains(&id)
    };
    let named: Vec<Key> = without.iter().filter(|row| is_named(*row)).map(|(key, _)| key.clone()).collect();
    named.iter().for_each(|key| drop(without.remove(key)));
    let store = store(&without);
    plan(&store);
    repaired(&store);
    assert!(!wait(everything(&store)).contains_key(&place));
}

#[test]
fn assignments_that_lack_the_plate_of_their_vehicle_are_completed_and_its_attachments_derived_again() {
    let named = |(_, _, one): &(Key, OrganizationId, Value)| one["plate"].is_string();
    let (place, organization, of) = records(rows(), vehicle::SPEC.tag).into_iter().find(named).unwrap();
    let vehicle = VehicleId::from_uuid(place.id().unwrap());
    let former = json!({"kind": "plate", "number": of["plate"], "state": of["plate_state"], "from": null, "to": of["created_at"]});
    let other = json!({"kind": "toll_tag", "number": "99887766554", "state": null, "from": null, "to": null});
    let own = lacking(&[], &serde_json::from_value(of.clone()).unwrap()).len();
    for list in [json!([former]), json!([other])] {
        let id = Id::from_u128(77);
        let all: VehicleAssignments = serde_json::from_value(json!({
            "id": id, "object": "vehicle_assignments", "vehicle_id": vehicle, "assignments": list,
            "created_at": of["created_at"], "updated_at": of["created_at"],
        }))
        .unwrap();
        let mut with = rows().clone();
        let (key, json) = (VehicleAssignments::key(organization, id), serde_json::to_vec(&all).unwrap());
        for entry in expected_keys(organization, VehicleAssignments::SPEC, id.uuid(), &json).unwrap() {
            with.insert(entry, (0, bytes::Bytes::new()));
        }
        with.insert(key.clone(), (3, json.into()));
        let store = store(&with);
        let made = repaired(&store);
        assert!(made.left.listed.is_empty(), "{:?}", made.left.listed);
        let after = wait(everything(&store));
        let assignments = object(&after, &key)["assignments"].as_array().unwrap().clone();
        let open: Vec<&Value> = assignments.iter().filter(|one| one["to"].is_null()).collect();
        assert!(open.iter().any(|one| one["number"] == of["plate"]), "{assignments:?}");
        assert_eq!((assignments.len(), after[&key].0), (1 + own, 4), "what it had stays");
        assert_eq!(after[&key::recheck(organization, Marked::vehicle(vehicle))].1, Recheck::of_all().value());
    }
}

#[test]
fn a_toll_of_a_lost_rental_is_attached_again_if_that_was_automatic() {
    for attribution in ["automatic", "manual"] {
        let mut with = rows().clone();
        let (place, organization, mut toll) = records(&with, toll::SPEC.tag).pop().unwrap();
        let vehicles = records(&with, vehicle::SPEC.tag);
        let vehicle = vehicles.iter().find(|(_, owner, _)| *owner == organization).unwrap().0.id().unwrap();
        let vehicle = VehicleId::from_uuid(vehicle);
        let customer = records(&with, customer::SPEC.tag).pop().unwrap().0.id().unwrap();
        for (field, value) in [
            ("vehicle_id", json!(vehicle)),
            ("customer_id", json!(customer)),
            ("attribution", json!(attribution)),
            ("rental_id", json!("0190d0f2-7c3a-7cc0-8000-0000000000ff")),
            ("occurred_at", json!("2026-06-02T14:03:00.000Z")),
            ("invoice_ids", json!([])),
            ("amount_billed", json!(0)),
        ] {
            toll[field] = value;
        }
        let revision = with[&place].0;
        let parsed: Toll = serde_json::from_value(toll.clone()).unwrap();
        with.insert(place.clone(), (revision, serde_json::to_vec(&parsed).unwrap().into()));
        with.remove(&key::recheck(organization, Marked::vehicle(vehicle)));
        let store = store(&with);
        let made = repaired(&store);
        let after = wait(everything(&store));
        assert_eq!(object(&after, &place)["rental_id"], Value::Null, "{:#?}", made.left.listed);
        assert!(after[&place].0 > revision && object(&after, &place)["updated_at"] != toll["updated_at"]);
        let mark = key::recheck(organization, Marked::vehicle(vehicle));
        assert_eq!(after.contains_key(&mark), attribution == "automatic", "{}", kind(&mark));
        assert!(!made.left.listed.iter().any(|problem| problem.what.contains("rental_id")), "{:?}", made.left.listed);
    }
}

#[test]
fn the_numbers_that_undecided_tolls_name_are_derived_again_when_a_vehicle_was_damaged() {
    let mut with = rows().clone();
    let (place, organization, mut toll) = records(&with, toll::SPEC.tag).pop().unwrap();
    let vehicles = records(&with, vehicle::SPEC.tag);
    let (vehicle, ..) = vehicles.into_iter().find(|(_, owner, _)| *owner == organization).unwrap();
    for field in ["customer_id", "vehicle_id", "attribution", "rental_id", "attribution_reason", "review_reason"] {
        toll[field] = Value::Null;
    }
    (toll["invoice_ids"], toll["amount_billed"]) = (json!([]), json!(0));
    (toll["plate"], toll["transponder_number"]) = (json!("ABC1234"), json!("00412345678"));
    let toll: Toll = serde_json::from_value(toll).unwrap();
    let numbers: Vec<Marked> = toll.decided_by().collect();
    assert!(numbers.len() == 2 && numbers.iter().all(|number| number.as_vehicle().is_none()));
    let revision = with[&place].0;
    with.insert(place, (revision, serde_json::to_vec(&toll).unwrap().into()));
    // The first repair writes the index entries of the toll.
    let first = store(&with);
    repaired(&first);
    let mut with = wait(everything(&first));
    let marks: Vec<Key> = numbers.iter().map(|number| key::recheck(organization, *number)).collect();
    assert!(!marks.iter().any(|mark| with.contains_key(mark)));
    with.insert(vehicle, (1, "?".into()));
    let second = store(&with);
    repaired(&second);
    let after = wait(everything(&second));
    assert!(marks.iter().all(|mark| after[mark].1 == Recheck::of_all().value()));
}
