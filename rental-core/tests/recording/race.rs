//! Imports beside writes of vehicles: whichever happens between two calls of the store by the other one, each toll ends with the vehicle
//! that has its number.

use super::{Ids, empty, import_rows, now, organization, text, toll_row, tolls};
use rental_core::{
    attachments::{Deriving, again},
    fleet::VehicleMatch,
    imports::{
        recording::{CHUNK, Options, Recorder},
        statements::TollRow,
    },
    operations::{self, Create, Intent, Update},
    resources::{self, Collection, toll::Toll},
    rows::key,
    store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store, memory::Memory},
    tasks::Step,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The store; before one of its calls, something else happens.
struct Between<'s> {
    store: &'s Memory,
    calls: AtomicU64,
    before: u64,
    then: &'s (dyn Fn() + Sync),
}

impl Between<'_> {
    fn pass(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.before {
            // On a thread of its own, because it waits.
            std::thread::scope(|scope| scope.spawn(|| (self.then)()).join().unwrap());
        }
    }
}

impl Store for Between<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.pass();
        self.store.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.pass();
        self.store.scan(span, limit)
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        self.pass();
        self.store.scan_each(scans)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        self.pass();
        self.store.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}

fn vehicles() -> &'static Collection {
    resources::api().find(|one| one.spec.object == "vehicle").unwrap()
}

fn write(store: &dyn Store, edge: &Ids, intent: &dyn Intent) -> operations::Written {
    let render: operations::Render<'_> = &|error| panic!("{error:?}");
    now(operations::write(store, edge, organization().id, None, intent, (200, render))).unwrap()
}

fn create(store: &dyn Store, edge: &Ids, body: &'static str) -> String {
    let owner = organization();
    let intent = Create { collection: vehicles(), organization: &owner, body: body.as_bytes().into(), given: &[] };
    let body: serde_json::Value = serde_json::from_slice(&write(store, edge, &intent).body).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

fn update(store: &dyn Store, edge: &Ids, id: &str, body: &'static str) {
    let owner = organization();
    let body = body.as_bytes().into();
    let intent = Update { collection: vehicles(), organization: &owner, id, body, expected: &|_| true };
    write(store, edge, &intent);
}

/// A change of the vehicles of a fleet with two of them: the first one has the plate ABC1234 at the beginning, if it `is_known`.
type Change = fn(&dyn Store, &Ids, &[String; 2]);

const CHANGES: [(&str, bool, Change); 5] = [
    ("a new one", false, |store, edge, _| {
        create(
            store,
            edge,
            r#"{"name":"New","plate":"ABC 1234","plate_state":"NY","transponder_number":"00412345678"}"#,
        );
    }),
    ("one gets it", false, |store, edge, [first, _]| update(store, edge, first, r#"{"plate":"ABC1234"}"#)),
    ("one loses it", true, |store, edge, [first, _]| update(store, edge, first, r#"{"plate":null}"#)),
    ("two have it", true, |store, edge, [_, second]| update(store, edge, second, r#"{"plate":"ABC1234"}"#)),
    ("it moves", true, |store, edge, [first, second]| {
        update(store, edge, first, r#"{"plate":"ZZZ9999"}"#);
        update(store, edge, second, r#"{"plate":"ABC1234"}"#);
    }),
];

fn rows(numbers: std::ops::Range<u8>) -> Vec<TollRow> {
    let row = |number: u8| TollRow {
        transponder_number: (number % 2 == 1).then(|| text("00412345678")),
        ..toll_row(&(Some(number), number, 5, false))
    };
    numbers.map(row).collect()
}

/// A fleet of two vehicles. With `is_named`, tolls named the numbers before.
fn fleet(edge: &Ids, (is_known, is_named): (bool, bool)) -> (Arc<Memory>, [String; 2]) {
    let store = empty();
    if is_named {
        import_rows::<Toll>(&store, edge, &rows(100..102), (CHUNK, false));
    }
    let first = if is_known { r#"{"name":"First","plate":"ABC1234"}"# } else { r#"{"name":"First"}"# };
    let both = [first, r#"{"name":"Second","plate":"BBB2222"}"#].map(|body| create(&*store, edge, body));
    follow(&store, edge);
    (store, both)
}

/// Derives everything that is marked again, as a server does it.
fn follow(store: &Memory, edge: &Ids) {
    loop {
        let marks = now(store.scan(&key::rechecks(), 100)).unwrap();
        if marks.is_empty() {
            break;
        }
        for mark in marks {
            let mut damaged = Vec::new();
            let step = now(again::step(store, edge, &mark.unwrap(), &mut damaged)).unwrap();
            assert!(damaged.is_empty() && step != Step::Overtaken, "{damaged:?}");
        }
    }
}

/// Imports tolls in two transactions, so the second one has what the first one has read.
fn import(store: &dyn Store, edge: &Ids) {
    let owner = organization();
    let mut recorder = Recorder::<Toll>::new(store, edge, &owner, Options::default());
    for rows in [rows(0..4), rows(4..6)] {
        now(recorder.record(rows.into_iter().map(|row| (1, row)).collect())).unwrap();
    }
    now(recorder.finish()).unwrap();
    assert_eq!(recorder.counts.created, 6);
}

fn all_tolls_have_their_vehicle(store: &Memory, context: &str) {
    let owner = organization();
    for toll in tolls(store) {
        let expected = match now(Deriving::new(store, &owner).whose(&toll)).unwrap() {
            VehicleMatch::One(vehicle) => Some(vehicle),
            VehicleMatch::None | VehicleMatch::Unclear(..) => None,
        };
        assert_eq!(toll.vehicle_id, expected, "{context}: {toll:?}");
    }
}

/// An import or a change, with the ids of both vehicles.
type Deed<'d> = dyn Fn(&dyn Store, &Ids, &[String; 2]) + Sync + 'd;

/// Performs `outer` as often as it calls the store, each time with `inner` before another one of its calls.
fn at_each_call((change, is_known, is_named): (&str, bool, bool), outer: &Deed<'_>, inner: &Deed<'_>) {
    for before in 0.. {
        let edge = Ids::default();
        let (store, both) = fleet(&edge, (is_known, is_named));
        let then = || {
            inner(&*store, &edge, &both);
            follow(&store, &edge);
        };
        let between = Between { store: &store, calls: AtomicU64::new(0), before, then: &then };
        outer(&between, &edge, &both);
        if between.calls.load(Ordering::Relaxed) <= before {
            assert!(before >= 4, "{change} calls the store {before} times");
            return;
        }
        follow(&store, &edge);
        assert!(tolls(&store).len() >= 6);
        all_tolls_have_their_vehicle(&store, &format!("{change}, before call {before}, named before: {is_named}"));
    }
}

#[test]
fn tolls_that_are_imported_while_a_vehicle_changes_have_its_vehicle() {
    for (name, is_known, change) in CHANGES {
        for is_named in [false, true] {
            at_each_call((name, is_known, is_named), &|store, edge, _| import(store, edge), &|store, edge, both| {
                change(store, edge, both);
            });
        }
    }
}

#[test]
fn a_vehicle_that_changes_while_tolls_are_imported_gets_them() {
    for (name, is_known, change) in CHANGES {
        for is_named in [false, true] {
            at_each_call(
                (name, is_known, is_named),
                &|store, edge, both| change(store, edge, both),
                &|store, edge, _| {
                    import(store, edge);
                },
            );
        }
    }
}
