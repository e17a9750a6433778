//! Imports against a model: counts that add up, nothing twice, and trial runs that say what a real one does.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use proptest::prelude::*;
use rental_core::{
    imports::{
        Counts,
        recording::{CHUNK, Options, Recorder},
        statements::{TollRow, ViolationRow},
    },
    operations::edge::Edge,
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
        parse,
        toll::{self, Toll},
        violation::{self, Violation},
    },
    rows::key,
    store::{Batch, Span, Store, all_sound, memory::Memory},
    value::{Money, Name, OrganizationId, Sum, Text, Timestamp},
};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
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
fn empty() -> Memory {
    let (store, mut batch) = (Memory::default(), Batch::default());
    batch.insert(Organization::key(SYSTEM, organization().id), "{}".into());
    now(store.commit(batch)).unwrap();
    store
}

fn money(units: u32) -> Money {
    Money::parse(&units.to_string(), 2).unwrap()
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
        plaza: Some(text("RKB")),
        plate: Some(text("ABC1234")),
        plate_state: None,
        transponder_number: None,
    }
}

fn import_tolls(store: &Memory, edge: &Ids, rows: &[Passage], trial: bool) -> Counts {
    let organization = organization();
    let options = Options { dry_run: trial, ..Options::default() };
    let mut recorder = Recorder::<Toll>::new(store, edge, &organization, options);
    let numbered: Vec<_> = rows.iter().enumerate().map(|(at, row)| (at as u64 + 2, toll_row(row))).collect();
    for chunk in numbered.chunks(CHUNK) {
        now(recorder.record(chunk.to_vec())).unwrap();
    }
    now(recorder.finish()).unwrap();
    recorder.counts
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
    let amounts = counts.amounts.clone().unwrap();
    let mut total = Sum::default();
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

    /// What a trial run cannot know, because it makes nothing, are corrections of what it would have made itself.
    #[test]
    fn a_trial_run_writes_nothing_and_counts_what_a_real_one_does(
        known in proptest::collection::vec(passage(), 0..20),
        rows in proptest::collection::vec((0u8..30, 1u32..3), 0..60),
    ) {
        let (store, edge) = (empty(), Ids::default());
        let known: Vec<Passage> = known.into_iter().map(|(number, second, amount, _)| (number, second, amount, false)).collect();
        import_tolls(&store, &edge, &known, false);
        let amount: BTreeMap<u8, u32> = rows.iter().copied().collect();
        let rows: Vec<Passage> = rows.iter().map(|(number, _)| (Some(*number), 1, amount[number], false)).collect();
        let before = shown(&store);
        let trial = import_tolls(&store, &edge, &rows, true);
        prop_assert_eq!(&shown(&store), &before);
        prop_assert_eq!(trial, import_tolls(&store, &edge, &rows, false));
    }

    /// The last word of a list counts.
    #[test]
    fn violations_end_as_the_last_row_says(rows in proptest::collection::vec((0u8..10, 0u32..4, any::<bool>()), 0..60)) {
        let (store, edge, organization) = (empty(), Ids::default(), organization());
        let row = |(number, due, plate): &(u8, u32, bool)| ViolationRow {
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
            issued_on: None,
            issued_at: None,
        };
        for round in 0..2 {
            let mut recorder = Recorder::<Violation>::new(&store, &edge, &organization, Options::default());
            let numbered: Vec<_> = rows.iter().enumerate().map(|(at, one)| (at as u64 + 2, row(one))).collect();
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
}
