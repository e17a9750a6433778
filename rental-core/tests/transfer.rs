//! Lines of an export that somebody has changed: refused, or imported as something that fits together.

use bytes::Bytes;
use proptest::prelude::*;
use rental_core::{
    check::Audit,
    imports::{organization as transfer, organization::Importer},
    operations::{Create, Edge, Intent},
    resources::{
        self, Collection, Resource,
        organization::{Organization, SYSTEM},
    },
    store::{Batch, Check, Key, Order, Record, Span, Store, all_sound, memory::Memory},
    upgrade::{Billed, Members},
    value::{OrganizationId, Timestamp},
};
use serde_json::Value;
use std::{
    future::Future,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};
use uuid::Uuid;

const NOW: i64 = 1_795_288_412_007;

/// The memory store answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}

/// A clock that stands, and ids that count.
#[derive(Default)]
struct Fixed(AtomicU64);

impl Edge for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(NOW)
    }

    fn new_id(&self) -> Uuid {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128((NOW as u128 + u128::from(n)) << 80 | 7 << 76 | 2 << 62 | u128::from(n))
    }
}

fn organization(id: u128) -> Organization {
    Organization { id: OrganizationId::from_u128(id), ..Organization::system() }
}

fn store_with(organization: &Organization) -> Arc<Memory> {
    let store = Arc::new(Memory::default());
    let mut batch = Batch::default();
    let place = Organization::key(SYSTEM, organization.id);
    batch.insert(place, serde_json::to_vec(organization).expect("JSON").into());
    now(store.commit(batch)).expect("it is committed");
    store
}

fn every_row(store: &dyn Store) -> Vec<Record> {
    let all =
        Span { from: Key::from_bytes(&[]), to: Key::from_bytes(&[u8::MAX; 64]), order: Order::Ascending, follow: None };
    all_sound(now(store.scan(&all, usize::MAX)).expect("rows")).expect("sound rows")
}

fn lines_of(store: &dyn Store, organization: &Organization) -> Vec<String> {
    let spans = transfer::spans(organization.id);
    let rows = spans.iter().flat_map(|span| now(store.scan(span, usize::MAX)).expect("rows"));
    rows.map(|row| {
        String::from_utf8(transfer::line(&row.expect("a sound row").value)).expect("text").trim_end().to_owned()
    })
    .collect()
}

const INVOICES: Collection = resources::of::<resources::invoice::Invoice>().create().done();
const CREDIT_NOTES: Collection = resources::of::<resources::credit_note::CreditNote>().create().done();
const TOLLS: Collection = resources::of::<resources::toll::Toll>().create().done();
const VIOLATIONS: Collection = resources::of::<resources::violation::Violation>().create().done();

/// An export with something of everything.
static EXPORT: LazyLock<Vec<String>> = LazyLock::new(|| {
    let (whose, edge) = (organization(7), Fixed::default());
    let store = store_with(&whose);
    let make = |object: &str, body: String| -> String {
        let rows = [&INVOICES, &CREDIT_NOTES, &TOLLS, &VIOLATIONS].into_iter().chain(resources::api());
        let collection =
            rows.into_iter().find(|row| row.spec.object == object && row.create.is_some()).expect("it works");
        let intent = Create { collection, organization: &whose, body: body.as_bytes().into(), given: &[] };
        let prepared = now((&intent as &dyn Intent).prepare(store.as_ref(), &edge)).expect("it works");
        now(store.commit(prepared.batch)).expect("it works");
        serde_json::from_slice::<Value>(&prepared.body).expect("it works")["id"].as_str().expect("it works").to_owned()
    };
    let vehicle = make(
        "vehicle",
        r#"{"name":"V","plate":"ABC1234","plate_state":"NY","transponder_number":"00412345678","daily_rate":89.5}"#
            .into(),
    );
    let customer = make("customer", r#"{"full_name":"Ada","email":"ada@example.com","phone":"+14155550123"}"#.into());
    for (start, end, status) in [
        ("2026-06-01", "2026-06-05", "APPROVED"),
        ("2026-06-05", "2026-06-09", "ACTIVE"),
        ("2026-06-09", "2026-06-09", "COMPLETED"),
    ] {
        make(
            "rental",
            format!(
                r#"{{"customer_id":"{customer}","vehicle_id":"{vehicle}","start_date":"{start}","end_date":"{end}","status":"{status}"}}"#
            ),
        );
    }
    let toll = make(
        "toll",
        format!(
            r#"{{"amount":6.94,"agency":"A","customer_id":"{customer}","vehicle_id":"{vehicle}","transaction_id":"1"}}"#
        ),
    );
    make("toll", r#"{"amount":1,"agency":"A","plate":"ABC1234","occurred_at":"2026-06-02T14:03:00Z"}"#.into());
    let violation = make(
        "violation",
        format!(r#"{{"summons_number":"1","issuer":"NYC","amount_due":50,"customer_id":"{customer}"}}"#),
    );
    let credited = make(
        "invoice",
        format!(
            r#"{{"customer_id":"{customer}","lines":[{{"toll_id":"{toll}"}},{{"description":"Fee","amount":2}}]}}"#
        ),
    );
    make("invoice", format!(r#"{{"customer_id":"{customer}","lines":[{{"violation_id":"{violation}"}}]}}"#));
    make("invoice", format!(r#"{{"customer_id":"{customer}","lines":[{{"description":"x","amount":0}}]}}"#));
    let lines = r#"[{"line":0,"amount":2,"rebill":true},{"line":1}]"#;
    make("credit_note", format!(r#"{{"invoice_id":"{credited}","reason":"x","lines":{lines}}}"#));
    make("credit_note", format!(r#"{{"invoice_id":"{credited}"}}"#));
    make("lead", format!(r#"{{"customer_id":"{customer}","raw_data":{{"a":[1,2.50]}}}}"#));
    lines_of(store.as_ref(), &whose)
});

/// Imports lines into a new store; gives it and how many became objects.
fn import(lines: &[String]) -> (Arc<Memory>, Organization, rental_core::imports::Counts) {
    let (target, edge) = (organization(9), Fixed::default());
    let store = store_with(&target);
    let source = OrganizationId::from_u128(7);
    let mut importer = now(Importer::new(Arc::clone(&store) as _, None, &edge, &target, source)).expect("it works");
    for (row, line) in lines.iter().enumerate().skip(1) {
        now(importer.line(row as u64 + 1, line.as_bytes())).expect("it works");
    }
    now(importer.finish()).expect("it works");
    let counts = importer.counts.clone();
    drop(importer);
    (store, target, counts)
}

/// Everything in the store fits together.
#[track_caller]
fn check(store: &Memory) {
    let get = |key: &Key| now(store.get(std::slice::from_ref(key))).map(|mut found| found.pop().flatten());
    let mut audit = Audit::new(&get);
    every_row(store).iter().for_each(|row| audit.row(row));
    let report = audit.finish();
    assert_eq!(report.problems, 0, "{report:?}");
}

fn in_target(lines: &[String]) -> Vec<String> {
    let (theirs, ours) = (Uuid::from_u128(7).to_string(), Uuid::from_u128(9).to_string());
    lines.iter().skip(1).map(|line| line.replace(&theirs, &ours)).collect()
}

#[test]
fn an_export_that_nobody_has_changed_is_imported_as_it_is() {
    let (store, target, counts) = import(&EXPORT);
    assert_eq!((counts.created as usize, counts.invalid), (EXPORT.len() - 1, 0), "{:?}", counts.errors);
    check(&store);
    assert_eq!(lines_of(store.as_ref(), &target)[1..], in_target(&EXPORT));
}

#[test]
fn an_import_goes_on_with_the_numbers_of_credit_notes() {
    let (store, target, _) = import(&EXPORT);
    let invoice = lines_of(store.as_ref(), &target).into_iter().find(|line| line.contains("INV-000002")).unwrap();
    let invoice: Value = serde_json::from_str(&invoice).unwrap();
    let body = format!(r#"{{"invoice_id":{}}}"#, invoice["id"]);
    let edge = Fixed(AtomicU64::new(1000));
    let intent = Create { collection: &CREDIT_NOTES, organization: &target, body: body.as_bytes().into(), given: &[] };
    let prepared = now((&intent as &dyn Intent).prepare(store.as_ref(), &edge)).unwrap();
    let note: Value = serde_json::from_slice(&prepared.body).unwrap();
    assert_eq!((&note["credit_note_number"], &note["total"]), (&Value::from("CN-000003"), &Value::from(50)));
}

#[test]
fn invoices_whose_credit_notes_the_file_has_lost_fit_together() {
    let lines: Vec<String> =
        EXPORT.iter().filter(|line| !line.contains(r#""object":"credit_note""#)).cloned().collect();
    assert_eq!(lines.len(), EXPORT.len() - 2);
    let (store, _, counts) = import(&lines);
    check(&store);
    assert_eq!(counts.created as usize, lines.len() - 1);
}

#[test]
fn what_credit_notes_make_billable_follows_from_the_file() {
    let mut billed = Billed::default();
    EXPORT.iter().for_each(|line| billed.add(line.as_bytes()));
    billed.sort();
    for line in EXPORT.iter().skip(1) {
        let mut members = Members::parse(line.as_bytes()).unwrap();
        let object: Value = serde_json::from_str(line).unwrap();
        let (name, id) = (object["object"].as_str().unwrap(), object["id"].as_str().unwrap());
        billed.fill(name, Uuid::parse_str(id).unwrap(), &mut members).unwrap();
        assert!(!members.is_changed(), "{name}: {}", members.json());
    }
}

/// `store repair` removes an invoice that cannot be read. Nobody knows any more what else was on it.
#[test]
fn what_an_invoice_bills_that_is_not_in_the_file_stays_billed() {
    let object = |line: &String| -> Value { serde_json::from_str(line).unwrap() };
    let invoices = EXPORT.iter().filter(|line| object(line)["object"] == "invoice");
    let mut found = 0;
    for lost in invoices {
        let id = object(lost)["id"].clone();
        let mut billed = Billed::default();
        EXPORT.iter().filter(|line| *line != lost).for_each(|line| billed.add(line.as_bytes()));
        billed.sort();
        let names_it = |line: &&String| object(line)["invoice_ids"].as_array().is_some_and(|ids| ids.contains(&id));
        for line in EXPORT.iter().filter(names_it) {
            let (before, mut members) = (object(line), Members::parse(line.as_bytes()).unwrap());
            let (name, id) = (before["object"].as_str().unwrap(), before["id"].as_str().unwrap());
            billed.fill(name, Uuid::parse_str(id).unwrap(), &mut members).unwrap();
            assert_eq!(object(&members.json()), before, "{name}");
            found += 1;
        }
    }
    assert!(found > 1, "{found}");
}

#[test]
fn two_imports_at_the_same_moment_make_each_object_once() {
    struct Racing(Arc<Memory>, std::sync::Mutex<Vec<String>>);
    impl Store for Racing {
        fn get<'a>(&'a self, keys: &'a [Key]) -> rental_core::store::Answer<'a, Vec<Option<Record>>> {
            self.0.get(keys)
        }
        fn scan<'a>(
            &'a self,
            span: &'a Span,
            limit: usize,
        ) -> rental_core::store::Answer<'a, Vec<rental_core::store::Scanned>> {
            self.0.scan(span, limit)
        }
        /// Another import commits first.
        fn commit(&self, batch: Batch) -> rental_core::store::Answer<'_, rental_core::store::Commit> {
            let lines = std::mem::take(&mut *self.1.lock().unwrap());
            if !lines.is_empty() {
                let (target, edge) = (organization(9), Fixed::default());
                let other = Importer::new(Arc::clone(&self.0) as _, None, &edge, &target, OrganizationId::from_u128(7));
                let mut other = now(other).unwrap();
                lines
                    .iter()
                    .enumerate()
                    .skip(1)
                    .for_each(|(row, line)| now(other.line(row as u64, line.as_bytes())).unwrap());
                now(other.finish()).unwrap();
            }
            assert!(batch.checks.iter().any(|check| matches!(check, Check::Absent(_))));
            self.0.commit(batch)
        }
        fn ready(&self) -> rental_core::store::Answer<'_, ()> {
            self.0.ready()
        }
    }
    let (target, edge) = (organization(9), Fixed::default());
    let inner = store_with(&target);
    let store = Arc::new(Racing(Arc::clone(&inner), std::sync::Mutex::new(EXPORT.clone())));
    let mut importer = now(Importer::new(store, None, &edge, &target, OrganizationId::from_u128(7))).unwrap();
    EXPORT.iter().enumerate().skip(1).for_each(|(row, line)| now(importer.line(row as u64, line.as_bytes())).unwrap());
    now(importer.finish()).unwrap();
    assert_eq!((importer.counts.created, importer.counts.duplicates as usize), (0, EXPORT.len() - 1));
    check(&inner);
}

/// One change of one line.
#[derive(Clone, Debug)]
enum Change {
    /// Bytes in the place of others.
    Bytes(prop::sample::Index, usize, Vec<u8>),
    /// A member has the value that the same or another member has in another line, or one from a list.
    Member(prop::sample::Index, Option<prop::sample::Index>),
    /// The line is another one, or gone.
    Line(prop::sample::Index),
    Gone,
}

fn change() -> impl Strategy<Value = Change> {
    let index = || any::<prop::sample::Index>();
    prop_oneof![
        2 => (index(), 0usize..3, proptest::collection::vec(any::<u8>(), 0..3)).prop_map(|(at, count, bytes)| Change::Bytes(at, count, bytes)),
        8 => (index(), proptest::option::of(index())).prop_map(|(member, from)| Change::Member(member, from)),
        1 => index().prop_map(Change::Line),
        1 => Just(Change::Gone),
    ]
}

const VALUES: [&str; 23] = [
    "null",
    "0",
    "-1",
    "1.005",
    "1e3",
    "99999999999",
    "true",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "\"void\"",
    "\"paid\"",
    "\"open\"",
    "\"manual\"",
    "\"automatic\"",
    "\"INV-000001\"",
    "\"INV-000002\"",
    "\"CN-000002\"",
    "\"APPROVED\"",
    "\"2026-06-03\"",
    "\"2026-06-03T00:00:00.000Z\"",
    "\"00000000-0000-7000-8000-000000000000\"",
];

fn apply(lines: &mut Vec<String>, at: usize, change: &Change) {
    match change {
        Change::Gone => drop(lines.remove(at)),
        Change::Line(other) => lines[at] = other.get(&lines.clone()).clone(),
        Change::Bytes(place, count, bytes) => {
            let mut line = lines[at].clone().into_bytes();
            let start = place.index(line.len());
            let end = (start + count).min(line.len());
            line.splice(start..end, bytes.iter().copied());
            lines[at] = String::from_utf8_lossy(&line).into_owned();
        }
        Change::Member(member, from) => {
            let mut object: serde_json::Map<String, Value> = serde_json::from_str(&lines[at]).unwrap_or_default();
            let Some(name) = object.keys().nth(member.index(object.len().max(1))).cloned() else { return };
            let value = match from {
                Some(other) => {
                    let other: Value = serde_json::from_str(other.get::<String>(lines)).unwrap_or_default();
                    other.get(&name).or_else(|| other.get("id")).cloned().unwrap_or_default()
                }
                None => serde_json::from_str(VALUES[member.index(VALUES.len())]).expect("JSON"),
            };
            object.insert(name, value);
            lines[at] = serde_json::to_string(&object).expect("JSON");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn whatever_is_changed_is_refused_or_fits_together(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), change()), 1..4)
    ) {
        let mut lines = EXPORT.clone();
        for (at, change) in &changes {
            let at = 1 + at.index(lines.len() - 1);
            apply(&mut lines, at, change);
        }
        let (store, target, counts) = import(&lines);
        check(&store);
        prop_assert_eq!(counts.received as usize, lines.len() - 1);
        let kept = lines_of(store.as_ref(), &target);
        prop_assert_eq!(kept.len() - 1, counts.created as usize);
        // What was taken is a fixed point: it goes out and comes in again as it is.
        let moved: Vec<String> = kept.iter().map(|line| line.replace(&Uuid::from_u128(9).to_string(), &Uuid::from_u128(7).to_string())).collect();
        let (second, target, counts) = import(&moved);
        prop_assert_eq!(counts.invalid, 0, "{:?}", counts.errors);
        prop_assert_eq!(lines_of(second.as_ref(), &target), kept);
    }
}

#[test]
fn line_breaks_between_tokens_become_spaces() {
    let value = Bytes::from_static(b"{\"a\":\r\n1}");
    assert_eq!(transfer::line(&value), b"{\"a\":  1}\n");
}
