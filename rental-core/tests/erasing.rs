//! Erasing a person leaves no data of the person in the rows of a store, also when requests run at the same time.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "shared/between.rs"]
mod between;
#[path = "erasing/races.rs"]
mod races;
#[path = "erasing/returning.rs"]
mod returning;
#[path = "erasing/world.rs"]
mod world;

use rental_core::{
    check::Audit,
    erasing::report,
    resources::{event, invoice},
    rows::{Row, key},
    store::{Batch, Commit, Key, Record, Span, Store, memory::Memory},
    tasks::Step,
    value::CustomerId,
};
use serde_json::{Value, json};
use world::{ORGANIZATION, PERSON, World, keep_key, rows, step};

/// What the store knows about a person, as search terms. None of them is in another object.
pub(crate) const SECRETS: [&str; 8] = [
    "Grace Hopper",
    "grace@navy.example",
    "+12025550142",
    "sv-SE",
    "billboard-7",
    "allergic to cats",
    "BK-GRACE",
    "9 Harbor Lane",
];
/// What is in leads: of the person, and of someone whose customer is not known.
pub(crate) const IN_LEADS: [&str; 2] = ["license D1234567", "call Grace back"];
/// What an invoice says, which the law keeps.
pub(crate) const KEPT: &str = "Cleaning for Grace";

/// The rows whose key or value contains `word`.
pub(crate) fn found(rows: &[Record], word: &str) -> Vec<Key> {
    let is_in = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    rows.iter().filter(|row| is_in(&row.value) || is_in(row.key.as_bytes())).map(|row| row.key.clone()).collect()
}

/// The keys of the rows that contain the word, without the invoices, which keep the buyer as it was when they were issued.
pub(crate) fn found_outside_of_invoices(rows: &[Record], word: &str) -> Vec<Key> {
    let is_invoice =
        |key: &Key| matches!(Row::decode(key), Some(Row::Record { resource, .. }) if resource == invoice::SPEC.tag);
    found(rows, word).into_iter().filter(|key| !is_invoice(key)).collect()
}

/// A check of the whole store finds nothing.
pub(crate) async fn sound(store: &Memory) {
    let all = rows(store, &Span::everything()).await;
    let get = |wanted: &Key| Ok(all.iter().find(|row| row.key == *wanted).cloned());
    let mut audit = Audit::new(&get);
    all.iter().for_each(|row| audit.row(row));
    assert_eq!(audit.finish().listed, []);
}

/// Does all steps of the task; nothing but its row is kept between them, as after a kill.
pub(crate) async fn finish(store: &dyn Store) -> usize {
    let mut steps = 0;
    while let Some(record) = store.scan(&key::tasks(), 1).await.unwrap().pop() {
        assert_ne!(step(store, &record.unwrap()).await, Step::Overtaken);
        steps += 1;
    }
    steps
}

#[tokio::test]
async fn nothing_of_an_erased_person_remains_but_the_invoices_of_the_report() {
    let world = World::new().await;
    let person = world.person().await;
    let other = world.create("customer", json!({"full_name": "Other", "email": "other@x.example"})).await;
    let before = rows(&world.store, &Span::everything()).await;
    for word in SECRETS.iter().chain(&IN_LEADS).chain(&[KEPT]) {
        assert!(!found(&before, word).is_empty(), "{word} must be there to be erased");
    }
    world.erase(&person).await;
    let steps = finish(&world.store).await;
    assert!(steps >= 6, "each phase has a batch of its own: {steps}");
    let after = rows(&world.store, &Span::everything()).await;
    for word in SECRETS.iter().chain(&IN_LEADS) {
        assert_eq!(found_outside_of_invoices(&after, word), [], "{word}");
    }
    let report = report(&world.store, ORGANIZATION, CustomerId::parse(&person).unwrap()).await.unwrap().unwrap();
    let listed: Vec<Key> = report["invoices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| key::record(ORGANIZATION, &invoice::SPEC, one["id"].as_str().unwrap().parse().unwrap()))
        .collect();
    let sorted = |mut keys: Vec<Key>| {
        keys.sort();
        keys
    };
    assert_eq!(sorted(found(&after, KEPT)), sorted(listed.clone()), "exactly the listed invoices keep what they say");
    assert!(
        found(&after, SECRETS[0]).iter().all(|key| listed.contains(key)),
        "only the listed invoices keep the buyer"
    );
    assert_eq!((&report["status"], &report["kept"]), (&json!("complete"), &json!({"credit_notes": 0, "invoices": 2})));
    let rewritten = &report["rewritten"];
    for (what, least) in [
        ("customers", 1),
        ("rentals", 1),
        ("leads", 2),
        ("events", 6),
        ("stored_responses", 2),
        ("deliveries", 1),
        ("audit_entries", 1),
    ] {
        assert!(rewritten[what].as_u64().is_some_and(|count| count >= least), "{what}: {rewritten}");
    }
    assert_eq!(report["damaged"], 0);
    let text = |rows: &[Record]| found(rows, "other@x.example").len();
    assert_eq!(text(&after), text(&before), "another customer keeps everything: {other}");
    sound(&world.store).await;
}

#[tokio::test]
async fn from_the_first_batch_the_customer_is_redacted_and_a_second_request_gives_the_report() {
    let world = World::new().await;
    let person = world.person().await;
    let first = world.erase(&person).await;
    assert_eq!((&first["object"], &first["status"]), (&json!("erasure"), &json!("running")));
    let customer = world.get("customer", &person).await;
    for (field, value) in [
        ("full_name", json!("erased")),
        ("email", Value::Null),
        ("phone", Value::Null),
        ("preferred_language", json!("en")),
        ("notes", Value::Null),
        ("erased_at", first["erased_at"].clone()),
    ] {
        assert_eq!(customer[field], value, "{field}");
    }
    finish(&world.store).await;
    let again = world.erase(&person).await;
    assert_eq!((&again["status"], &again["erased_at"]), (&json!("complete"), &first["erased_at"]));
    assert!(world.store.scan(&key::tasks(), 1).await.unwrap().is_empty(), "the second request begins nothing");
    let events = rows(&world.store, &Span::under(key::records(ORGANIZATION, &event::SPEC))).await;
    let updated = events.iter().filter(|row| found(std::slice::from_ref(row), "customer.updated").len() == 1);
    let last: Value = serde_json::from_slice(&updated.last().unwrap().value).unwrap();
    assert_eq!((&last["data"]["full_name"], &last["data"]["erased_at"]), (&json!("erased"), &first["erased_at"]));
}

#[tokio::test]
async fn an_erasure_goes_on_from_its_row_after_a_kill_at_any_step() {
    // The steps that are done by another process after this one was killed in the middle of its work.
    for kill_at in 0..8 {
        let world = World::new().await;
        let person = world.person().await;
        world.erase(&person).await;
        for n in 0.. {
            let Some(record) = world.store.scan(&key::tasks(), 1).await.unwrap().pop() else { break };
            let record = record.unwrap();
            if n == kill_at {
                // This step reaches no commit.
                world.refused(&record).await;
            }
            step(&world.store, &record).await;
        }
        let after = rows(&world.store, &Span::everything()).await;
        assert!(
            SECRETS.iter().chain(&IN_LEADS).all(|word| found_outside_of_invoices(&after, word).is_empty()),
            "killed at {kill_at}"
        );
        sound(&world.store).await;
    }
}

#[tokio::test]
async fn many_events_take_many_bounded_steps() {
    let world = World::new().await;
    let person = world.person().await;
    for n in 0..1500 {
        world.update("customer", &person, json!({"notes": format!("allergic to cats {n}")})).await;
    }
    world.erase(&person).await;
    let steps = finish(&world.store).await;
    assert!(steps >= 8, "six phases, and three steps for the events: {steps}");
    assert_eq!(found(&rows(&world.store, &Span::everything()).await, "allergic to cats"), []);
}

#[tokio::test]
async fn many_deliveries_of_one_event_take_many_bounded_steps() {
    let world = World::new().await;
    let person = world.person().await;
    for _ in 0..1500 {
        // After the first step, nothing in the event of this lead leads to the person.
        world.delivery(IN_LEADS[1], SECRETS[0]).await;
    }
    world.erase(&person).await;
    let steps = finish(&world.store).await;
    assert!(steps >= 8, "six phases, and three steps for the deliveries: {steps}");
    let after = rows(&world.store, &Span::everything()).await;
    assert_eq!(found_outside_of_invoices(&after, SECRETS[0]), []);
    let report = report(&world.store, ORGANIZATION, CustomerId::parse(&person).unwrap()).await.unwrap().unwrap();
    assert_eq!((&report["rewritten"]["deliveries"], &report["damaged"]), (&json!(1501), &json!(0)));
}

#[tokio::test]
async fn what_receivers_answered_to_an_event_that_is_gone_is_erased_with_the_person() {
    let world = World::new().await;
    let person = world.person().await;
    for _ in 0..600 {
        world.delivery("customer.created", SECRETS[0]).await;
    }
    let events = rows(&world.store, &Span::under(key::records(ORGANIZATION, &event::SPEC))).await;
    let mut removal = Batch::default();
    events.iter().for_each(|row| removal.delete(row.key.clone()));
    assert_eq!(world.store.commit(removal).await, Ok(Commit::Applied));
    world.erase(&person).await;
    assert!(finish(&world.store).await >= 8, "seven phases, and two steps for the deliveries");
    assert_eq!(found_outside_of_invoices(&rows(&world.store, &Span::everything()).await, SECRETS[0]), []);
    let report = report(&world.store, ORGANIZATION, CustomerId::parse(&person).unwrap()).await.unwrap().unwrap();
    assert_eq!((&report["rewritten"]["deliveries"], &report["damaged"]), (&json!(601), &json!(0)));
}

#[tokio::test]
async fn a_damaged_row_is_counted_and_stops_nothing() {
    let world = World::new().await;
    let person = world.person().await;
    let events = rows(&world.store, &Span::under(key::records(ORGANIZATION, &event::SPEC))).await;
    let damaged = events.first().unwrap();
    world.overwrite(damaged, &format!("{{broken \"{person}\"")).await;
    world.erase(&person).await;
    finish(&world.store).await;
    let report = report(&world.store, ORGANIZATION, CustomerId::parse(&person).unwrap()).await.unwrap().unwrap();
    assert_eq!((&report["status"], &report["damaged"]), (&json!("complete"), &json!(1)));
    let after = rows(&world.store, &Span::everything()).await;
    assert!(SECRETS.iter().all(|word| found_outside_of_invoices(&after, word).is_empty()));
}

#[tokio::test]
async fn an_erased_customer_cannot_be_changed_or_rent_and_what_runs_can_end() {
    let world = World::new().await;
    let person = world.person().await;
    let rental = world.one_of("rental", &person).await;
    world.erase(&person).await;
    for body in [json!({"notes": "back again"}), json!({"full_name": "Grace"}), json!({})] {
        assert_eq!(world.refusal("customer", &person, body).await, "conflict");
    }
    let vehicle = world.vehicle.clone();
    for (object, body) in [
        ("rental", json!({"customer_id": person, "vehicle_id": vehicle})),
        ("lead", json!({"customer_id": person})),
        ("invoice", json!({"customer_id": person, "lines": [{"description": "x", "amount": 1}]})),
    ] {
        assert_eq!(world.creation_refused(object, body).await, "customer_id", "{object}");
    }
    for body in [json!({"delivery_location": "9 Harbor Lane"}), json!({"booking_id": "BK-GRACE"})] {
        assert_eq!(world.refusal("rental", &rental, body).await, "conflict");
    }
    // Before the task comes to the rental, its status can change. The event shows no personal data.
    world.update("rental", &rental, json!({"status": "COMPLETED"})).await;
    let events = rows(&world.store, &Span::under(key::records(ORGANIZATION, &event::SPEC))).await;
    let last: Value = serde_json::from_slice(&events.last().unwrap().value).unwrap();
    assert_eq!((&last["type"], &last["data"]["booking_id"]), (&json!("rental.completed"), &Value::Null));
    finish(&world.store).await;
    assert_eq!(world.get("rental", &rental).await["status"], "COMPLETED");
    world.update("rental", &rental, json!({"damage_at_return": true})).await;
    let toll = world.record("toll", json!({"amount": 1, "agency": "X", "customer_id": person})).await;
    assert_eq!(toll["customer_id"], json!(person), "what the person owes can still be recorded");
    let after = rows(&world.store, &Span::everything()).await;
    assert!(SECRETS.iter().all(|word| found_outside_of_invoices(&after, word).is_empty()));
}

#[tokio::test]
async fn an_invoice_of_an_erased_customer_can_still_be_credited() {
    for task_done in [false, true] {
        let world = World::new().await;
        let person = world.person().await;
        let invoice = world.one_of("invoice", &person).await;
        world.erase(&person).await;
        if task_done {
            finish(&world.store).await;
        }
        let body = json!({"invoice_id": invoice, "reason": "Grace complained"});
        let note = world.create_with_key("credit_note", &body, "key-of-the-note").await;
        assert_eq!((&note["customer_id"], &note["reason"]), (&json!(person), &json!("Grace complained")));
        let events = rows(&world.store, &Span::under(key::records(ORGANIZATION, &event::SPEC))).await;
        let last: Value = serde_json::from_slice(&events.last().unwrap().value).unwrap();
        let data = &last["data"];
        assert_eq!((&last["type"], &data["total"]), (&json!("credit_note.created"), &json!(5)));
        assert_eq!((&data["reason"], &data["lines"][0]["description"]), (&json!("erased"), &json!("erased")));
        let replayed = world.create_with_key("credit_note", &body, "key-of-the-note").await;
        assert_eq!((&replayed["id"], &replayed["reason"]), (&note["id"], &json!("erased")), "a replay is a copy");
        assert_eq!(world.get("invoice", &invoice).await["credit_note_ids"], json!([note["id"]]));
        finish(&world.store).await;
        sound(&world.store).await;
    }
}

#[tokio::test]
async fn leads_under_former_names_and_with_phones_in_other_spellings_are_erased() {
    let world = World::new().await;
    let first = json!({"full_name": "Grace Hopper", "email": "Grace@old.example", "phone": "+4915799887766"});
    let person = world.create("customer", first).await["id"].as_str().unwrap().to_owned();
    world.update("customer", &person, json!({"email": "hopper@mid.example", "phone": "+12025550142"})).await;
    world.update("customer", &person, json!({"email": null})).await;
    world.update("customer", &person, json!({"email": "grace@navy.example"})).await;
    for contact in ["gRACE@old.example", "hopper@mid.example", "+49 157 9988 7766", "(001) 202 555-0142"] {
        world.create("lead", json!({"raw_data": {"contact": contact, "text": IN_LEADS[1]}})).await;
    }
    let other = "disgrace@old.example, +49 157 9988 77661";
    world.create("lead", json!({"raw_data": {"contact": other}})).await;
    world.erase(&person).await;
    finish(&world.store).await;
    let after = rows(&world.store, &Span::everything()).await;
    assert_eq!(found(&after, IN_LEADS[1]), [], "in no lead and no event");
    assert_eq!(found(&after, other).len(), 2, "the lead of another person, and its event");
    sound(&world.store).await;
}

#[tokio::test]
async fn leads_with_an_address_or_phone_in_every_spelling_are_erased_and_the_report_says_what_is_not_searched() {
    let world = World::new().await;
    let person = json!({"full_name": "Zoë Ärger", "email": "zoe.z@exämple.com", "phone": "+4915799887766"});
    let person = world.create("customer", person).await["id"].as_str().unwrap().to_owned();
    for contact in [
        "ZOE.Z@EXÄMPLE.COM",
        "Mail: <zoe.z@exa\u{308}mple.com>",
        "zoe.z@xn--exmple-cua.com",
        "mailto:zoe.z%40ex%C3%A4mple.com",
        "0157 99887766",
        "(0157) 9988-7766",
        "+４９１５７９９８８７７６６",
    ] {
        world.create("lead", json!({"raw_data": {"contact": contact, "text": IN_LEADS[1]}})).await;
    }
    let others = ["zoe.z@example.com", "+43 157 99887766", "0157 99887767"];
    for contact in others {
        world.create("lead", json!({"raw_data": {"contact": contact, "text": "of others"}})).await;
    }
    world.erase(&person).await;
    finish(&world.store).await;
    let after = rows(&world.store, &Span::everything()).await;
    assert_eq!(found(&after, IN_LEADS[1]), [], "in no lead and no event");
    assert_eq!(found(&after, "of others").len(), 2 * others.len(), "each lead, and its event");
    let report = report(&world.store, ORGANIZATION, CustomerId::parse(&person).unwrap()).await.unwrap().unwrap();
    assert!(report["not_searched"].to_string().contains("Base64"), "{report}");
    sound(&world.store).await;
}

/// An address of a company, for example, which the next person gets.
#[tokio::test]
async fn a_lead_under_a_former_address_that_another_customer_has_now_stays() {
    let world = World::new().await;
    let first = json!({"full_name": "Grace Hopper", "email": "rentals@firm.example"});
    let person = world.create("customer", first).await["id"].as_str().unwrap().to_owned();
    world.update("customer", &person, json!({"email": "hopper@mid.example"})).await;
    world.update("customer", &person, json!({"email": "grace@navy.example"})).await;
    // Both have the present address of the person: it finds the leads of the person.
    for email in ["rentals@firm.example", "grace@navy.example"] {
        world.create("customer", json!({"full_name": "Ada", "email": email})).await;
    }
    for contact in ["hopper@mid.example", "grace@navy.example"] {
        world.create("lead", json!({"raw_data": {"contact": contact, "text": IN_LEADS[1]}})).await;
    }
    world.create("lead", json!({"raw_data": {"contact": "Rentals@firm.example", "text": "of Ada"}})).await;
    world.erase(&person).await;
    finish(&world.store).await;
    let after = rows(&world.store, &Span::everything()).await;
    assert_eq!(found(&after, IN_LEADS[1]), [], "in no lead and no event");
    assert_eq!(found(&after, "of Ada").len(), 2, "the lead of the other customer, and its event");
    sound(&world.store).await;
}

#[tokio::test]
async fn a_replay_shows_an_erased_person_before_and_after_its_row_is_rewritten_without_personal_data() {
    let world = World::new().await;
    let body = json!({"full_name": "Grace Hopper", "email": "grace@navy.example"});
    let made = world.create_with_key("customer", &body, PERSON).await;
    let person = made["id"].as_str().unwrap().to_owned();
    world.erase(&person).await;
    let replayed = world.create_with_key("customer", &body, PERSON).await;
    assert_eq!(
        (&replayed["id"], &replayed["full_name"], &replayed["email"]),
        (&made["id"], &json!("erased"), &Value::Null)
    );
    finish(&world.store).await;
    assert_eq!(world.create_with_key("customer", &body, PERSON).await, replayed);
    assert!(keep_key(&world.store, PERSON).await, "the key still protects from a repetition");
}

#[tokio::test]
async fn a_person_of_another_organization_is_not_found() {
    let world = World::new().await;
    let person = world.person().await;
    assert_eq!(world.erase_in_other(&person).await, Err("customer"));
    assert_eq!(world.get("customer", &person).await["full_name"], "Grace Hopper");
}
