//! Imports against a model: counts that add up, nothing twice, and trial runs that say what a real one does.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "recording/charged_again.rs"]
mod charged_again;
#[path = "recording/identity.rs"]
mod identity;
#[path = "recording/race.rs"]
mod race;

use proptest::prelude::*;
use rental_core::{
    imports::{
        Counts, Overlay,
        recording::{CHUNK, Importable, Options, Recorder},
        statements::{TollRow, ViolationRow},
    },
    operations::{Create, Intent, edge::Edge},
    resources::{
        self, Resource,
        organization::{Organization, SYSTEM},
        parse,
        toll::{self, Toll},
        violation::{self, Violation},
    },
    rows::key,
    store::{Answer, Batch, Commit, Key, Order, Prior, Record, Scanned, Span, Store, Write, all_sound, memory::Memory},
    value::{Money, Name, OrganizationId, SignedMoney, Text, Timestamp},
};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use uuid::Uuid;

/// A clock that stands still, and ids that rise.
#[derive(Default)]
struct Ids(AtomicU64);

impl Edge for Ids {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_795_288_412_000)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128((1_795_288_412_000_u128 << 80) | u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn organization() -> Organization {
    Organization { id: OrganizationId::from_u128(7), ..Organization::system() }
}

/// A store with the organization alone.
fn empty() -> Arc<Memory> {
    let (store, mut batch) = (Arc::new(Memory::default()), Batch::default());
    let owner = serde_json::to_vec(&organization()).unwrap();
    batch.insert(Organization::key(SYSTEM, organization().id), owner.into());
    now(store.commit(batch)).unwrap();
    store
}

fn money(units: u32) -> Money {
    Money::parse(&units.to_string(), 2).unwrap()
}

/// A store that counts the calls that read ranges. A database answers each of them over the network.
struct Counting {
    store: Arc<Memory>,
    calls: AtomicU64,
}

impl Store for Counting {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.store.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.store.scan(span, limit)
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.store.scan_each(scans)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        self.store.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}

/// A passage: its number, if it has one, its second, its amount, and whether it is money back.
type Passage = (Option<u8>, u8, u32, bool);

fn name(text: &str) -> Name {
    Name::parse(text, 255).expect("a name")
}

fn text(text: &str) -> Text {
    Text::parse(text, 255).expect("a text")
}

fn toll_row((number, second, amount, credit): &Passage) -> TollRow {
    TollRow {
        amount: money(*amount),
        credit: *credit,
        agency: name("MTAB&T"),
        transaction_id: number.map(|number| text(&format!("T{number}"))),
        occurred_on: None,
        occurred_at: Some(Timestamp::from_millis(1_780_000_000_000 + i64::from(*second) * 1000)),
        time_zone: None,
        plaza: Some(text("RKB")),
        plate: Some(text("ABC1234")),
        plate_state: None,
        transponder_number: None,
    }
}

/// The store of a dry run over this one.
fn trial(store: &Arc<Memory>) -> Overlay {
    Overlay::new(Arc::clone(store) as _, Arc::new(Memory::default()))
}

fn import_tolls(store: &Arc<Memory>, edge: &Ids, rows: &[Passage], dry_run: bool) -> Counts {
    import_rows::<Toll>(store, edge, &rows.iter().map(toll_row).collect::<Vec<_>>(), (CHUNK, dry_run))
}

/// Imports rows in transactions of a size.
fn import_rows<T: Importable<Row: Clone>>(
    store: &Arc<Memory>,
    edge: &Ids,
    rows: &[T::Row],
    (size, dry_run): (usize, bool),
) -> Counts {
    let (organization, overlay) = (organization(), trial(store));
    let store: &dyn Store = if dry_run { &overlay } else { &**store };
    let mut recorder = Recorder::<T>::new(store, edge, &organization, Options { dry_run, ..Options::default() });
    let numbered: Vec<_> = rows.iter().enumerate().map(|(at, row)| (at as u64 + 2, row.clone())).collect();
    for chunk in numbered.chunks(size) {
        now(recorder.record(chunk.to_vec())).unwrap();
    }
    now(recorder.finish()).unwrap();
    let mut counts = recorder.counts;
    // The words of this message differ in a dry run: nothing was recorded yet.
    counts.review.iter_mut().filter(|row| row.message.contains("without a plate")).for_each(|row| row.message.clear());
    counts
}

/// What lies in the store of one resource: identity to amount.
fn tolls(store: &Memory) -> Vec<Toll> {
    let prefix = key::records(organization().id, &toll::SPEC);
    let rows = all_sound(now(store.scan(&Span::newest_first(&prefix), 10_000)).unwrap()).unwrap();
    rows.iter().map(|row| parse(&row.key, &row.value).unwrap()).collect()
}

fn shown(store: &Memory) -> BTreeMap<String, String> {
    let name = |toll: &Toll| {
        let number = toll.transaction_id.as_deref().unwrap_or_default();
        format!("{number} {}", toll.occurred_at.map(|time| time.to_string()).unwrap_or_default())
    };
    tolls(store).iter().map(|toll| (format!("{} {}", name(toll), toll.id), toll.amount.to_string())).collect()
}

fn adds_up(counts: &Counts, rows: usize) {
    let amounts = counts.amounts.clone();
    let mut total = SignedMoney::default();
    [amounts.created, amounts.updated, amounts.duplicates, amounts.skipped, amounts.invalid]
        .into_iter()
        .for_each(|sum| total += sum);
    assert_eq!(total, amounts.received, "{counts:?}");
    let sum = counts.created + counts.updated + counts.duplicates + counts.skipped + counts.invalid;
    assert_eq!((counts.received, sum), (rows as u64, rows as u64), "{counts:?}");
    assert_eq!(counts.errors.len() as u64 + counts.errors_omitted, counts.invalid);
    assert!(counts.errors.is_sorted_by_key(|error| error.row), "in the order of the file");
}

fn passage() -> impl Strategy<Value = Passage> {
    (proptest::option::weighted(0.7, 0u8..12), 0u8..6, 1u32..5, prop::bool::weighted(0.2))
}

/// Any row: its number, car, second, plaza and amount.
fn any_toll() -> impl Strategy<Value = TollRow> {
    let tag = prop::sample::select(vec![None, Some("00412345678")]);
    (passage(), tag, prop::option::weighted(0.8, any::<bool>()), 0u8..3).prop_map(|(passage, tag, is_rkb, plate)| {
        TollRow {
            plaza: is_rkb.map(|is_rkb| text(if is_rkb { "RKB" } else { "BWB" })),
            plate: (plate > 0).then(|| text(if plate == 1 { "ABC1234" } else { "XYZ9876" })),
            transponder_number: tag.map(text),
            ..toll_row(&passage)
        }
    })
}

fn violation_row((number, due, plate): &(u8, u32, bool)) -> ViolationRow {
    ViolationRow {
        summons_number: name(&number.to_string()),
        amount_due: money(*due),
        plate: plate.then(|| text("GBJ3345")),
        state: None,
        issue_date: None,
        violation_time: None,
        violation: None,
        fine_amount: None,
        penalty_amount: None,
        interest_amount: None,
        reduction_amount: None,
        payment_amount: None,
        issuing_agency: None,
        status: None,
        plate_type: None,
        respond_by: None,
        issued_on: None,
        issued_at: None,
        time_zone: None,
    }
}

/// A write of a row with a short key, or its removal.
fn writes() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((0u8..30, prop::bool::weighted(0.6)), 0..40)
}

fn batch(writes: &[(u8, bool)], value: &'static str) -> Batch {
    let write = |(key, stays): &(u8, bool)| match (Key::from_bytes(&[*key]), stays) {
        (key, true) => Write::Put(key, 1, value.into(), Prior::Any),
        (key, false) => Write::Delete(key),
    };
    Batch { checks: Vec::new(), writes: writes.iter().map(write).collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn counts_add_up_and_a_second_import_creates_nothing(rows in proptest::collection::vec(passage(), 0..60)) {
        let (store, edge) = (empty(), Ids::default());
        let first = import_tolls(&store, &edge, &rows, false);
        adds_up(&first, rows.len());
        prop_assert_eq!(tolls(&store).len() as u64, first.created);
        let before = shown(&store);
        let second = import_tolls(&store, &edge, &rows, false);
        adds_up(&second, rows.len());
        prop_assert_eq!(second.created, 0);
        prop_assert_eq!(tolls(&store).len(), before.len());
    }

    /// Without corrections, which a second import may repeat, everything of it is known. Each number has one passage.
    #[test]
    fn without_corrections_the_second_import_changes_nothing(rows in proptest::collection::vec(0u8..20, 0..60)) {
        let rows: Vec<Passage> = rows.iter().map(|number| (Some(*number), number % 6, 3, false)).collect();
        let (store, edge) = (empty(), Ids::default());
        import_tolls(&store, &edge, &rows, false);
        let before = shown(&store);
        let second = import_tolls(&store, &edge, &rows, false);
        prop_assert_eq!((second.duplicates, &shown(&store)), (rows.len() as u64, &before));
    }

    #[test]
    fn the_parts_of_a_file_in_any_order_make_the_same_tolls(
        rows in proptest::collection::btree_map(0u8..40, 1u32..5, 0..40),
        parts in proptest::collection::vec(proptest::collection::vec(0u8..40, 0..30), 1..5),
    ) {
        let row = |number: &u8| rows.get(number).map(|amount| (Some(*number), 0, *amount, false));
        let whole: Vec<Passage> = rows.keys().filter_map(row).collect();
        let (one, many, edge) = (empty(), empty(), Ids::default());
        import_tolls(&one, &edge, &whole, false);
        for part in &parts {
            import_tolls(&many, &edge, &part.iter().filter_map(row).collect::<Vec<_>>(), false);
        }
        import_tolls(&many, &edge, &whole, false);
        let amounts = |store: &Memory| -> BTreeMap<_, _> {
            tolls(store).into_iter().map(|toll| (toll.transaction_id, toll.amount.to_string())).collect()
        };
        prop_assert_eq!(amounts(&one), amounts(&many));
        prop_assert_eq!(tolls(&many).len(), rows.len());
    }

    /// Rows that repeat, correct, credit and contradict those of the store and of the same file.
    #[test]
    fn a_dry_run_writes_nothing_and_reports_what_a_run_does(
        known in proptest::collection::vec(any_toll(), 0..20),
        rows in proptest::collection::vec(any_toll(), 0..60),
        size in 1usize..8,
    ) {
        let (store, edge) = (empty(), Ids::default());
        import_rows::<Toll>(&store, &edge, &known, (size, false));
        let before = shown(&store);
        let dry_run = import_rows::<Toll>(&store, &edge, &rows, (size, true));
        prop_assert_eq!(&shown(&store), &before);
        prop_assert_eq!(dry_run, import_rows::<Toll>(&store, &edge, &rows, (size, false)));
    }

    #[test]
    fn a_dry_run_of_violations_reports_what_a_run_does(
        known in proptest::collection::vec((0u8..10, 0u32..4, any::<bool>()), 0..10),
        rows in proptest::collection::vec((0u8..10, 0u32..4, any::<bool>()), 0..40),
        size in 1usize..8,
    ) {
        let (store, edge) = (empty(), Ids::default());
        let of = |rows: &[(u8, u32, bool)]| rows.iter().map(violation_row).collect::<Vec<_>>();
        import_rows::<Violation>(&store, &edge, &of(&known), (size, false));
        let dry_run = import_rows::<Violation>(&store, &edge, &of(&rows), (size, true));
        prop_assert_eq!(dry_run, import_rows::<Violation>(&store, &edge, &of(&rows), (size, false)));
    }

    /// The last word of a list counts.
    #[test]
    fn violations_end_as_the_last_row_says(rows in proptest::collection::vec((0u8..10, 0u32..4, any::<bool>()), 0..60)) {
        let (store, edge, organization) = (empty(), Ids::default(), organization());
        for round in 0..2 {
            let mut recorder = Recorder::<Violation>::new(&*store, &edge, &organization, Options::default());
            let numbered: Vec<_> = rows.iter().enumerate().map(|(at, one)| (at as u64 + 2, violation_row(one))).collect();
            now(recorder.record(numbered)).unwrap();
            adds_up(&recorder.counts, rows.len());
            prop_assert!(round == 0 || recorder.counts.created == 0);
        }
        let prefix = key::records(organization.id, &violation::SPEC);
        let found = all_sound(now(store.scan(&Span::newest_first(&prefix), 1000)).unwrap()).unwrap();
        let found: BTreeMap<String, String> = found.iter().map(|row| {
            let one: Violation = parse(&row.key, &row.value).unwrap();
            (one.summons_number.to_string(), one.amount_due.to_string())
        }).collect();
        let expected: BTreeMap<String, String> = rows.iter().map(|(number, due, _)| (number.to_string(), due.to_string())).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn an_overlay_reads_like_a_store_with_all_writes(
        first in writes(), second in writes(), limit in 1usize..12, descending in any::<bool>(), from in 0u8..30,
    ) {
        let (below, model) = (Arc::new(Memory::default()), Memory::default());
        for store in [&*below, &model] {
            now(store.commit(batch(&first, "below"))).unwrap();
        }
        let overlay = Overlay::new(below, Arc::new(Memory::default()));
        for store in [&overlay as &dyn Store, &model] {
            now(store.commit(batch(&second, "above"))).unwrap();
        }
        let order = if descending { Order::Descending } else { Order::Ascending };
        let span = Span { from: Key::from_bytes(&[from]), to: Key::from_bytes(&[25]), order, follow: None };
        prop_assert_eq!(now(overlay.scan(&span, limit)).unwrap(), now(model.scan(&span, limit)).unwrap());
        let keys: Vec<Key> = (0..30).map(|key| Key::from_bytes(&[key])).collect();
        prop_assert_eq!(now(overlay.get(&keys)).unwrap(), now(model.get(&keys)).unwrap());
    }
}

#[test]
fn damaged_rows_of_the_store_keep_no_other_row_of_a_file_from_being_recorded() {
    let (store, edge, owner) = (empty(), Ids::default(), organization());
    let made = |json: &'static [u8]| {
        let collection = resources::api().find(|one| one.spec.object == "vehicle").unwrap();
        let intent = Create { collection, organization: &owner, body: json.into(), given: &[] };
        let prepared = now(intent.prepare(&*store, &edge)).unwrap();
        let (_, id) = prepared.object.as_deref().expect("a vehicle").subject();
        assert_eq!(now(store.commit(prepared.batch)), Ok(Commit::Applied));
        key::record(owner.id, collection.spec, id)
    };
    let vehicle = made(br#"{"name":"Kia","plate":"DAMAGED"}"#);
    let before: Vec<Passage> = (0..10).map(|n| (Some(n), n, 5, false)).collect();
    assert_eq!(import_tolls(&store, &edge, &before, false).created, 10);
    let numbered = |number: &str| {
        tolls(&store).into_iter().find(|toll| toll.transaction_id.as_deref() == Some(number)).expect("recorded")
    };
    let (third, fifth) = (numbered("T3"), numbered("T5"));
    let hash: [u8; 32] = Sha256::digest(fifth.identity().expect("it has a number").as_bytes()).into();
    let claim = key::identity(owner.id, &toll::SPEC, &hash);
    let mut damage = Batch::default();
    for place in [vehicle, Toll::key(owner.id, third.id), claim] {
        damage.writes.push(Write::Put(place, 1, "{".into(), Prior::Any));
    }
    assert_eq!(now(store.commit(damage)), Ok(Commit::Applied));

    // T0 has another amount, T3 and T5 need what is damaged, and so does a row of the vehicle and money back for T3.
    let mut rows: Vec<TollRow> = (0..20).map(|n| toll_row(&(Some(n), n, if n == 0 { 6 } else { 5 }, false))).collect();
    rows.insert(1, TollRow { plate: Some(text("DAMAGED")), ..toll_row(&(Some(99), 99, 5, false)) });
    rows.push(toll_row(&(Some(3), 3, 5, true)));
    for (dry_run, size) in [(true, CHUNK), (false, 7)] {
        let counts = import_rows::<Toll>(&store, &edge, &rows, (size, dry_run));
        let Counts { created, updated, duplicates, invalid, .. } = counts;
        assert_eq!((created, updated, duplicates, invalid), (10, 1, 7, 4), "{counts:?}");
        adds_up(&counts, rows.len());
        let (rows, words): (Vec<u64>, Vec<_>) = counts.errors.iter().map(|one| (one.row, &one.message)).unzip();
        assert_eq!(rows, [3, 6, 8, 23]);
        assert!(words.iter().all(|words| words.contains("store repair")), "{words:?}");
    }
}

#[test]
fn a_new_vehicle_and_the_tolls_of_a_transaction_read_few_ranges() {
    let (store, edge, owner) = (Counting { store: empty(), calls: AtomicU64::new(0) }, Ids::default(), organization());
    let collection = resources::api().find(|one| one.spec.object == "vehicle").unwrap();
    let body = br#"{"name":"Kia","plate":"ABC1234","transponder_number":"00412345678"}"#;
    let intent = Create { collection, organization: &owner, body: body.into(), given: &[] };
    let prepared = now(intent.prepare(&store, &edge)).unwrap();
    let calls = store.calls.swap(0, Ordering::Relaxed);
    assert!(calls <= 3, "a new vehicle reads {calls} ranges");
    assert_eq!(now(store.commit(prepared.batch)), Ok(Commit::Applied));
    // Ten minutes apart: no two of them are near each other.
    let row = |n: u32| TollRow {
        occurred_at: Some(Timestamp::from_millis(1_780_000_000_000 + i64::from(n) * 600_000)),
        ..toll_row(&(None, 0, 5, false))
    };
    let rows: Vec<(u64, TollRow)> = (0..100).map(|n| (u64::from(n), row(n))).collect();
    let mut recorder = Recorder::<Toll>::new(&store, &edge, &owner, Options::default());
    now(recorder.record(rows)).unwrap();
    assert_eq!(recorder.counts.created, 100);
    let calls = store.calls.load(Ordering::Relaxed);
    assert!(calls <= 5, "100 tolls read {calls} ranges");
}
