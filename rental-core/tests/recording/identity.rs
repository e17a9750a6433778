//! Which rows are about one toll or violation, and what a person has to look at.

use crate::{CHUNK, Ids, empty, import_rows, money, name, now, organization, text, toll_row, tolls, violation_row};
use rental_core::{
    imports::{
        Counts,
        recording::Importable as _,
        statements::{TollRow, ViolationRow},
    },
    operations::{Create, Edge as _, Intent},
    resources::{
        self, Billable as _, Resource as _, parse,
        toll::{self, Toll},
        violation::{self, Violation},
    },
    rows::key,
    store::{Batch, Commit, Prior, Span, Store as _, Write, all_sound, memory::Memory},
    value::{Date, InvoiceId, Money, Timestamp},
};
use sha2::{Digest as _, Sha256};

fn cents(text: &str) -> Money {
    Money::parse(text, 2).expect("an amount")
}

fn charge(number: u8, amount: &str) -> TollRow {
    TollRow { amount: cents(amount), ..toll_row(&(Some(number), 1, 1, false)) }
}

fn credit(number: u8, amount: &str) -> TollRow {
    TollRow { credit: true, ..charge(number, amount) }
}

fn import(store: &std::sync::Arc<Memory>, edge: &Ids, rows: &[TollRow]) -> Counts {
    import_rows::<Toll>(store, edge, rows, (CHUNK, false))
}

fn amount_of(store: &Memory, number: &str) -> String {
    let found = tolls(store).into_iter().find(|toll| toll.transaction_id.as_deref() == Some(number));
    found.expect("it is recorded").amount.to_string()
}

fn vehicle(store: &Memory, edge: &Ids, body: &'static [u8]) {
    let owner = organization();
    let collection = resources::api().find(|one| one.spec.object == "vehicle").unwrap();
    let prepared =
        now(Create { collection, organization: &owner, body: body.into(), given: &[] }.prepare(store, edge)).unwrap();
    assert_eq!(now(store.commit(prepared.batch)), Ok(Commit::Applied));
}

#[test]
fn a_second_credit_of_another_amount_is_given_back_and_each_of_them_once() {
    let (store, edge) = (empty(), Ids::default());
    import(&store, &edge, &[charge(1, "6.94")]);
    assert_eq!(import(&store, &edge, &[credit(1, "2.00")]).updated, 1);
    assert_eq!(import(&store, &edge, &[credit(1, "3.00")]).updated, 1);
    assert_eq!(amount_of(&store, "T1"), "1.94");
    for again in [credit(1, "2.00"), credit(1, "3.00")] {
        assert_eq!(import(&store, &edge, &[again]).duplicates, 1);
    }
    // More than is left is an error, and not money from nowhere.
    assert_eq!(import(&store, &edge, &[credit(1, "1.95")]).invalid, 1);
    assert_eq!(amount_of(&store, "T1"), "1.94");
    // All in one file, twice.
    let file = [charge(2, "6.94"), credit(2, "2.00"), credit(2, "3.00")];
    let first = import(&store, &edge, &file);
    assert_eq!((first.created, first.updated), (1, 2));
    assert_eq!(import(&store, &edge, &file).duplicates, 3);
    assert_eq!(amount_of(&store, "T2"), "1.94");
}

#[test]
fn more_credits_of_one_toll_than_are_remembered_are_invalid() {
    let (store, edge) = (empty(), Ids::default());
    import(&store, &edge, &[charge(1, "100")]);
    let credits: Vec<TollRow> = (1..=20).map(|amount| TollRow { amount: money(amount), ..credit(1, "1") }).collect();
    let first = import(&store, &edge, &credits[..13]);
    assert_eq!(first.updated, 13, "91 of 100");
    assert_eq!(import(&store, &edge, &credits[..13]).duplicates, 13);
    let (store, edge) = (empty(), Ids::default());
    import(&store, &edge, &[charge(1, "1000")]);
    let first = import(&store, &edge, &credits);
    assert_eq!((first.updated, first.invalid), (17, 3));
    assert!(first.errors[0].message.contains("17"), "{:?}", first.errors);
    let again = import(&store, &edge, &credits);
    assert_eq!((again.duplicates, again.invalid), (17, 3), "nothing is given back twice");
}

fn violations(store: &Memory) -> Vec<Violation> {
    let span = Span::newest_first(&key::records(organization().id, &violation::SPEC));
    let rows = all_sound(now(store.scan(&span, 100)).unwrap()).unwrap();
    rows.iter().map(|row| parse(&row.key, &row.value).unwrap()).collect()
}

/// A row with the summons number 1: its plate, its day of June, and the amounts due, fined, added and paid.
fn summons(plate: Option<&str>, day: Option<u32>, [due, fine, penalty, payment]: [u32; 4]) -> ViolationRow {
    ViolationRow {
        plate: plate.map(text),
        issued_on: day.and_then(|day| Date::parse(&format!("2026-06-{day:02}"))),
        fine_amount: Some(money(fine)),
        penalty_amount: Some(money(penalty)),
        payment_amount: Some(money(payment)),
        ..violation_row(&(1, due, false))
    }
}

fn list(store: &std::sync::Arc<Memory>, edge: &Ids, rows: &[ViolationRow]) -> Counts {
    import_rows::<Violation>(store, edge, rows, (CHUNK, false))
}

#[test]
fn a_summons_number_with_another_plate_and_day_is_invalid() {
    let (first, second) =
        (summons(Some("AAA111"), Some(3), [115, 115, 0, 0]), summons(Some("BBB222"), Some(9), [50, 50, 0, 0]));
    for files in [vec![vec![first.clone(), second.clone()]], vec![vec![first.clone()], vec![second]]] {
        let (store, edge) = (empty(), Ids::default());
        let counts: Vec<Counts> = files.iter().map(|rows| list(&store, &edge, rows)).collect();
        assert_eq!(
            counts.iter().map(|counts| (counts.created, counts.updated, counts.invalid)).fold((0, 0, 0), |a, b| (
                a.0 + b.0,
                a.1 + b.1,
                a.2 + b.2
            )),
            (1, 0, 1)
        );
        assert!(counts.last().unwrap().errors[0].message.contains("plate and day"));
        assert_eq!(violations(&store)[0].amount_due, money(115));
    }
    // A city corrects one of them, spells a plate in another way, or leaves one out.
    for (plate, day) in [
        (Some("BBB222"), Some(3)),
        (Some("AAA111"), Some(9)),
        (Some("aaa-111"), Some(9)),
        (None, Some(9)),
        (Some("BBB222"), None),
    ] {
        let (store, edge) = (empty(), Ids::default());
        list(&store, &edge, std::slice::from_ref(&first));
        assert_eq!(list(&store, &edge, &[summons(plate, day, [120, 115, 5, 0])]).updated, 1, "{plate:?} {day:?}");
    }
}

#[test]
fn an_older_list_does_not_bring_back_what_a_violation_cost() {
    let (store, edge) = (empty(), Ids::default());
    let june = summons(Some("AAA111"), Some(3), [115, 115, 0, 0]);
    let july = summons(Some("AAA111"), Some(3), [140, 115, 25, 0]);
    let august = summons(Some("AAA111"), Some(3), [0, 115, 25, 140]);
    for row in [&june, &july, &august] {
        list(&store, &edge, std::slice::from_ref(row));
    }
    for older in [&june, &july] {
        let counts = list(&store, &edge, std::slice::from_ref(older));
        assert_eq!((counts.duplicates, counts.updated), (1, 0));
        assert!(counts.review[0].message.contains("older"), "{:?}", counts.review);
        let one = &violations(&store)[0];
        assert_eq!(
            (one.amount_due, one.penalty_amount, one.payment_amount),
            (money(0), Some(money(25)), Some(money(140)))
        );
    }
    assert_eq!(list(&store, &edge, &[august]).duplicates, 1);
    // What was never stated before is news, also when it is less.
    let counts = list(&store, &edge, &[summons(Some("AAA111"), Some(3), [100, 100, 0, 0])]);
    assert_eq!((counts.updated, counts.review.len()), (1, 0));
}

#[test]
fn an_older_list_does_not_bring_back_a_plate_a_day_or_an_amount_without_parts() {
    let (first, plate) =
        (summons(Some("AAA111"), Some(3), [65, 65, 0, 0]), summons(Some("BBB222"), Some(3), [65, 65, 0, 0]));
    let (day, due) =
        (summons(Some("AAA111"), Some(9), [65, 65, 0, 0]), summons(Some("AAA111"), Some(3), [75, 75, 0, 0]));
    for corrected in [plate, day, due] {
        let (store, edge) = (empty(), Ids::default());
        list(&store, &edge, std::slice::from_ref(&first));
        assert_eq!(list(&store, &edge, std::slice::from_ref(&corrected)).updated, 1);
        let known = violations(&store);
        for _ in 0..2 {
            let counts = list(&store, &edge, std::slice::from_ref(&first));
            assert_eq!((counts.duplicates, counts.updated, counts.review.len()), (1, 0, 1));
            assert_eq!(violations(&store), known);
        }
        assert_eq!(list(&store, &edge, std::slice::from_ref(&corrected)).review.len(), 0);
    }
    // A corrected plate is news, also with amounts of before.
    let (store, edge) = (empty(), Ids::default());
    let [before, after] = [65, 75].map(|due| summons(Some("AAA111"), Some(3), [due, due, 0, 0]));
    for row in [&first, &before, &after] {
        list(&store, &edge, std::slice::from_ref(row));
    }
    assert_eq!(list(&store, &edge, &[summons(Some("BBB222"), Some(3), [65, 65, 0, 0])]).updated, 1);
    assert_eq!(violations(&store)[0].amount_due, money(65));
}

#[test]
fn a_corrected_plate_has_its_own_state_and_a_corrected_day_its_own_time() {
    let (store, edge) = (empty(), Ids::default());
    let at = |day: u32| Timestamp::parse(&format!("2026-06-{day:02}T12:43:00Z"));
    let row = |plate, state: Option<&str>, day, time: Option<&str>| ViolationRow {
        state: state.map(text),
        violation_time: time.map(text),
        issued_at: time.and_then(|_| at(day)),
        ..summons(Some(plate), Some(day), [65, 65, 0, 0])
    };
    let state = || violations(&store)[0].state.clone();
    let time = || (violations(&store)[0].violation_time.clone(), violations(&store)[0].issued_at);
    list(&store, &edge, &[row("AAA111", Some("NY"), 3, Some("08:43A"))]);
    // Another spelling of the plate, without a state or a time, takes nothing away.
    list(&store, &edge, &[row("aaa-111", None, 3, None)]);
    assert_eq!((state(), time()), (Some(text("NY")), (Some(text("08:43A")), at(3))));
    list(&store, &edge, &[row("BBB222", None, 3, None)]);
    assert_eq!((state(), time().1), (None, at(3)));
    list(&store, &edge, &[row("BBB222", None, 6, None)]);
    assert_eq!((violations(&store)[0].issued_on, time()), (Date::parse("2026-06-06"), (None, None)));
    list(&store, &edge, &[row("BBB222", Some("NJ"), 9, Some("08:43A"))]);
    assert_eq!((state(), time().1), (Some(text("NJ")), at(9)));
}

#[test]
fn a_list_on_which_nothing_is_due_any_more_without_a_payment_is_told() {
    for (last, told) in [([0, 65, 0, 0], 1), ([0, 65, 0, 65], 0), ([30, 65, 0, 0], 0)] {
        let (store, edge) = (empty(), Ids::default());
        list(&store, &edge, &[summons(Some("AAA111"), Some(3), [65, 65, 0, 0])]);
        let counts = list(&store, &edge, &[summons(Some("AAA111"), Some(3), last)]);
        assert_eq!((counts.updated, counts.review.len()), (1, told), "{last:?}: {:?}", counts.review);
    }
}

#[test]
fn a_credit_under_the_number_of_another_vehicle_gives_nothing_back() {
    let (store, edge) = (empty(), Ids::default());
    import(&store, &edge, &[charge(1, "6.94")]);
    let of_another = TollRow { plate: Some(text("ZZZ999")), ..credit(1, "3.00") };
    let counts = import(&store, &edge, std::slice::from_ref(&of_another));
    assert_eq!((counts.invalid, amount_of(&store, "T1").as_str()), (1, "6.94"));
    assert!(counts.errors[0].message.contains("another vehicle"), "{:?}", counts.errors);
    // Another plaza is told, because credits can be posted elsewhere.
    let counts = import(&store, &edge, &[TollRow { plaza: Some(text("VNB")), ..credit(1, "3.00") }]);
    assert_eq!((counts.updated, counts.review.len(), amount_of(&store, "T1").as_str()), (1, 1, "3.94"));
}

#[test]
fn a_later_row_brings_the_time_that_an_earlier_one_lacks() {
    let (store, edge) = (empty(), Ids::default());
    let timed = charge(1, "6.94");
    let day = timed.occurred_at.map(|at| organization().time_zone.local(at).date());
    let of_day = TollRow { occurred_at: None, occurred_on: day, ..timed.clone() };
    import(&store, &edge, std::slice::from_ref(&of_day));
    assert_eq!(import(&store, &edge, std::slice::from_ref(&timed)).updated, 1);
    assert_eq!((tolls(&store)[0].occurred_at, amount_of(&store, "T1").as_str()), (timed.occurred_at, "6.94"));
    for row in [timed, of_day] {
        assert_eq!(import(&store, &edge, &[row]).duplicates, 1);
    }
    assert!(tolls(&store)[0].occurred_at.is_some());
}

fn put(store: &Memory, place: rental_core::store::Key, value: Vec<u8>) {
    let batch = Batch { checks: Vec::new(), writes: vec![Write::Put(place, 99, value.into(), Prior::Any)] };
    assert_eq!(now(store.commit(batch)), Ok(Commit::Applied));
}

#[test]
fn a_violation_that_costs_less_than_is_billed_is_listed_until_it_is_credited() {
    let (store, edge) = (empty(), Ids::default());
    let row = summons(Some("AAA111"), Some(3), [115, 115, 0, 0]);
    list(&store, &edge, &[row]);
    let mut billed = violations(&store).remove(0);
    billed.set_account(money(115), vec![InvoiceId::from_u128(5)]);
    assert_eq!(billed.review_reason, None);
    put(&store, Violation::key(organization().id, billed.id), serde_json::to_vec(&billed).unwrap());
    // Paid in part: the rest is due, and it costs the same.
    assert_eq!(list(&store, &edge, &[summons(Some("AAA111"), Some(3), [85, 115, 0, 30])]).updated, 1);
    assert_eq!(violations(&store)[0].review_reason, None);
    put(&store, Violation::key(organization().id, billed.id), serde_json::to_vec(&billed).unwrap());
    assert_eq!(list(&store, &edge, &[summons(Some("AAA111"), Some(3), [0, 0, 0, 0])]).updated, 1);
    let mut dismissed = violations(&store).remove(0);
    let reason = dismissed.review_reason.clone().expect("a person has to look at it");
    assert!(reason.contains("115") && reason.contains("credit"), "{reason}");
    dismissed.set_account(money(0), Vec::new());
    dismissed.note_bill(money(0));
    assert_eq!(dismissed.review_reason, None);
    // Paid by the fleet: it costs what was paid.
    list(&store, &edge, &[summons(Some("AAA111"), Some(3), [0, 115, 0, 115])]);
    assert_eq!(violations(&store)[0].review_reason, None);
}

#[test]
fn a_toll_of_more_than_a_day_in_the_future_is_listed() {
    let (store, edge) = (empty(), Ids::default());
    let tomorrow = edge.now().plus_millis(24 * 3600 * 1000);
    let row = |number, at| TollRow { occurred_at: Some(at), ..toll_row(&(Some(number), 0, 100, false)) };
    let rows = [row(1, tomorrow), row(2, tomorrow.plus_millis(1))];
    let counts = import_rows::<Toll>(&store, &edge, &rows, (CHUNK, false));
    let listed: Vec<u64> = counts.review.iter().map(|row| row.row).collect();
    assert_eq!((counts.created, listed), (2, vec![3]));
    let message = &counts.review[0].message;
    assert!(message.starts_with("is of 2026-11-22T19:13:32.001Z, more than a day in the future"), "{message}");
}

#[test]
fn the_same_row_is_known_after_the_history_of_its_tag_was_corrected() {
    let (store, edge) = (empty(), Ids::default());
    vehicle(&store, &edge, br#"{"name":"A","transponder_number":"00412345678"}"#);
    let row = TollRow { plate: None, transponder_number: Some(text("00412345678")), ..charge(1, "6.94") };
    import(&store, &edge, std::slice::from_ref(&row));
    let mut moved = tolls(&store).remove(0);
    assert!(moved.vehicle_id.is_some());
    moved.vehicle_id = Some(rental_core::value::VehicleId::from_u128(77));
    put(&store, Toll::key(organization().id, moved.id), serde_json::to_vec(&moved).unwrap());
    assert_eq!(import(&store, &edge, std::slice::from_ref(&row)).duplicates, 1);
    let counts = import(
        &store,
        &edge,
        &[TollRow { amount: cents("4.94"), transponder_number: Some(text("412345678")), ..row.clone() }],
    );
    assert_eq!((counts.updated, amount_of(&store, "T1").as_str()), (1, "4.94"), "{:?}", counts.errors);
    // Another identifier of another vehicle still contradicts.
    vehicle(&store, &edge, br#"{"name":"B","plate":"BBB222"}"#);
    let other = TollRow { plate: Some(text("BBB222")), transponder_number: None, ..row };
    assert_eq!(import(&store, &edge, &[other]).invalid, 1);
}

/// The amount of one would replace that of the other.
#[test]
fn a_row_by_tag_and_one_by_plate_are_one_only_if_a_vehicle_has_both() {
    let by_tag = TollRow { plate: None, transponder_number: Some(text("00412345678")), ..charge(1, "6.94") };
    let by_plate = charge(1, "3.00");
    for (vehicles, is_one) in [
        (&[][..], false),
        (&[&br#"{"name":"A","transponder_number":"00412345678"}"#[..]][..], false),
        (&[br#"{"name":"A","plate":"ABC1234"}"#], false),
        (&[br#"{"name":"A","transponder_number":"00412345678"}"#, br#"{"name":"B","plate":"ABC1234"}"#], false),
        (&[br#"{"name":"A","transponder_number":"00412345678","plate":"ABC1234"}"#], true),
    ] {
        for rows in [[&by_tag, &by_plate], [&by_plate, &by_tag]] {
            let (store, edge) = (empty(), Ids::default());
            vehicles.iter().for_each(|body| vehicle(&store, &edge, body));
            import(&store, &edge, std::slice::from_ref(rows[0]));
            let counts = import(&store, &edge, std::slice::from_ref(rows[1]));
            assert_eq!(
                (counts.updated == 1, counts.invalid == 1),
                (is_one, !is_one),
                "{vehicles:?}: {:?}",
                counts.errors
            );
        }
    }
}

#[test]
fn equal_rows_without_number_and_time_are_listed_for_review() {
    let (store, edge) = (empty(), Ids::default());
    let row = TollRow { occurred_at: None, occurred_on: Date::parse("2026-06-03"), ..toll_row(&(None, 1, 7, false)) };
    for (round, size) in [(0, CHUNK), (1, CHUNK), (2, 1)] {
        let counts = import_rows::<Toll>(&store, &edge, &[row.clone(), row.clone()], (size, false));
        assert_eq!((counts.created, counts.duplicates), if round == 0 { (1, 1) } else { (0, 2) });
        assert_eq!(counts.review.iter().map(|one| one.row).collect::<Vec<_>>(), [3], "round {round}");
        assert!(counts.review[0].message.contains("neither a number nor a time"), "{:?}", counts.review);
    }
    // With a time they are one passage, and nobody has to look.
    let timed = toll_row(&(None, 1, 8, false));
    let counts = import(&store, &edge, &[timed.clone(), timed]);
    assert_eq!((counts.created, counts.duplicates, counts.review.len()), (1, 1, 0));
}

#[test]
fn a_vehicle_that_passes_twice_in_one_second_has_a_probable_twin() {
    let at = |millis: i64| Some(Timestamp::from_millis(1_780_000_001_000 + millis));
    let tag = |number: Option<u8>, agency: &str, plaza: Option<&str>| TollRow {
        agency: name(agency),
        plaza: plaza.map(text),
        transponder_number: Some(text("00412345678")),
        plate: None,
        occurred_at: at(0),
        ..toll_row(&(number, 1, 6, false))
    };
    let first = tag(Some(1), "MTA", Some("RKB"));
    for (second, is_twin) in [
        (tag(Some(2), "MTA", Some("RKB")), true),
        (TollRow { plate: Some(text("ABC1234")), ..tag(Some(2), "MTA", Some("RKB")) }, true),
        (tag(Some(2), "MTA", None), true),
        (tag(Some(2), "E-ZPass NY", Some("Triborough")), true),
        (TollRow { amount: money(5), ..tag(None, "MTA", Some("RKB")) }, true),
        (TollRow { occurred_at: at(90_000), ..tag(None, "MTA", Some("RKB")) }, true),
        (TollRow { occurred_at: at(1_000), ..tag(Some(2), "MTA", Some("RKB")) }, false),
        (TollRow { occurred_at: at(1_000), ..tag(Some(2), "MTA", Some("BWB")) }, false),
    ] {
        let (store, edge) = (empty(), Ids::default());
        vehicle(&store, &edge, br#"{"name":"A","plate":"ABC1234","transponder_number":"00412345678"}"#);
        let counts = import(&store, &edge, &[first.clone(), second.clone()]);
        assert_eq!((counts.created, counts.review.len()), (2, usize::from(is_twin)), "{second:?}: {counts:?}");
    }
}

#[test]
fn credits_that_an_older_version_recorded_are_known() {
    let (store, edge) = (empty(), Ids::default());
    import(&store, &edge, &[charge(1, "6.94"), credit(1, "2.00")]);
    let toll = tolls(&store).remove(0);
    let identity = format!("credit\n{}", toll.identity().expect("it has a number"));
    let hash: [u8; 32] = Sha256::digest(identity.as_bytes()).into();
    let old = [toll.id.uuid().as_bytes(), b"2.00".as_slice()].concat();
    put(&store, key::identity(organization().id, &toll::SPEC, &hash), old);
    assert_eq!(import(&store, &edge, &[charge(1, "6.94"), credit(1, "2.00")]).duplicates, 2);
    assert_eq!(amount_of(&store, "T1"), "4.94");
    assert_eq!(import(&store, &edge, &[credit(1, "3.00")]).updated, 1);
    assert_eq!(amount_of(&store, "T1"), "1.94");
}

/// What a spreadsheet makes of a number, in one file and in two.
#[test]
fn a_number_without_its_leading_zeros_is_the_same_one() {
    let toll = |number: &str, second: u8, amount: &str| TollRow {
        transaction_id: Some(text(number)),
        occurred_at: None,
        occurred_on: Date::parse("2026-06-02"),
        amount: cents(amount),
        ..toll_row(&(None, second, 1, false))
    };
    for files in [
        vec![vec![toll("0046012345", 1, "6.94"), toll("46012345", 1, "6.94")]],
        vec![vec![toll("46012345", 1, "6.94")], vec![toll("046012345", 1, "6.94")]],
    ] {
        let (store, edge) = (empty(), Ids::default());
        let last = files.iter().map(|file| import(&store, &edge, file)).last().unwrap();
        assert_eq!((tolls(&store).len(), last.duplicates, last.review.len()), (1, 1, 1), "{last:?}");
        assert!(last.review[0].message.contains("leading zeros"), "{last:?}");
        let other = import(&store, &edge, &[toll("00046012345", 1, "7.00")]);
        assert_eq!((other.invalid, tolls(&store).len()), (1, 1), "{other:?}");
        assert_eq!(import(&store, &edge, &[toll("46012346", 1, "6.94"), toll("460123450", 1, "6.94")]).created, 2);
    }
    // Another day is another toll.
    let (store, edge) = (empty(), Ids::default());
    let other_day = TollRow { occurred_on: Date::parse("2026-06-03"), ..toll("46012345", 1, "6.94") };
    assert_eq!(import(&store, &edge, &[toll("0046012345", 1, "6.94"), other_day]).created, 2);
}

#[test]
fn a_transponder_without_its_leading_zeros_is_the_same_one_in_files_without_numbers() {
    let toll = |tag: &str, plaza: &str| TollRow {
        transponder_number: Some(text(tag)),
        plate: None,
        occurred_at: None,
        occurred_on: Date::parse("2026-06-02"),
        plaza: Some(text(plaza)),
        ..toll_row(&(None, 1, 7, false))
    };
    let (store, edge) = (empty(), Ids::default());
    assert_eq!(import(&store, &edge, &[toll("00412345678", "RKB")]).created, 1);
    let counts = import(&store, &edge, &[toll("412345678", "RKB"), toll("412345678", "BWB")]);
    assert_eq!((counts.created, counts.duplicates, counts.review.len()), (1, 1, 1), "{counts:?}");
}

#[test]
fn a_summons_number_without_its_leading_zeros_is_the_same_one() {
    let row = |number: &str, plate: &str, due: u32| ViolationRow {
        summons_number: name(number),
        ..summons(Some(plate), Some(2), [due, due, 0, 0])
    };
    let (store, edge) = (empty(), Ids::default());
    list(&store, &edge, &[row("0046012345", "ABC1234", 50)]);
    let counts = list(&store, &edge, &[row("46012345", "ABC1234", 50), row("046012345", "ABC1234", 60)]);
    assert_eq!((counts.duplicates, counts.invalid, violations(&store).len()), (1, 1, 1), "{counts:?}");
    assert!(counts.errors[0].message.contains("as the agency made it"), "{counts:?}");
    assert_eq!(list(&store, &edge, &[row("46012345", "XYZ9876", 50)]).created, 1, "of another car");
}
