use super::*;

fn names(tag: &str, plate: &str, state: &str) -> Names {
    [tag, plate, state].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()))
}

fn at(hour: i64) -> Timestamp {
    Timestamp::from_millis(1_780_272_000_000 + hour * 3_600_000)
}

fn one(kind: AssignmentKind, number: &str, state: Option<&str>, from: Option<i64>, to: Option<i64>) -> Assignment {
    let number = Name::parse(number, 255).unwrap();
    Assignment { kind, number, state: state.map(|state| Text::fit(state, 255)), from: from.map(at), to: to.map(at) }
}

fn tag(number: &str, from: Option<i64>, to: Option<i64>) -> Assignment {
    one(AssignmentKind::TollTag, number, None, from, to)
}

fn plate(number: &str, state: Option<&str>, from: Option<i64>, to: Option<i64>) -> Assignment {
    one(AssignmentKind::Plate, number, state, from, to)
}

/// Changes the fields of a vehicle one after the other, at the hours 1, 2, 3...; others never had what it gets.
#[track_caller]
fn check(fields: &[Names], expected: &[Assignment]) {
    let mut list = of_fields(&fields[0]);
    for (hour, pair) in (1..).zip(fields.windows(2)) {
        list = changed(list, (&pair[0], &pair[1]), (|_| false, |_| false), at(hour));
    }
    assert_eq!(list, expected);
}

const TAG: &str = "00412345678";

#[test]
fn what_a_vehicle_loses_ends_now() {
    check(
        &[names(TAG, "ABC1", "NY"), names("", "ABC1", "NY")],
        &[tag(TAG, None, Some(1)), plate("ABC1", Some("NY"), None, None)],
    );
}

#[test]
fn what_nobody_had_before_has_no_beginning() {
    check(&[names("", "ABC1", ""), names(TAG, "ABC1", "")], &[plate("ABC1", None, None, None), tag(TAG, None, None)]);
    check(
        &[names("", "ABC1", ""), names("", "XYZ9", "")],
        &[plate("ABC1", None, None, Some(1)), plate("XYZ9", None, None, None)],
    );
}

#[test]
fn what_it_gets_again_begins_again() {
    check(
        &[names(TAG, "", ""), names("", "", ""), names(TAG, "", "")],
        &[tag(TAG, None, Some(1)), tag(TAG, Some(2), None)],
    );
}

#[test]
fn what_another_vehicle_had_begins_now() {
    let after = names(TAG, "ABC1", "NY");
    let others = |named: &Assignment| named.kind == AssignmentKind::TollTag;
    let list = changed(Vec::new(), (&Names::default(), &after), (others, |_| false), at(5));
    assert_eq!(list, [tag(TAG, Some(5), None), plate("ABC1", Some("NY"), None, None)]);
}

#[test]
fn what_it_never_had_is_removed_and_what_has_a_beginning_ends() {
    let (before, after) = (names(TAG, "ABC1", "NY"), names(TAG, "ABC2", "NY"));
    let change = |list| changed(list, (&before, &after), (|_| false, |_| true), at(5));
    let corrected = [tag(TAG, None, None), plate("ABC2", Some("NY"), None, None)];
    assert_eq!(change(of_fields(&before)), corrected);
    let dated = vec![tag(TAG, None, None), plate("ABC1", Some("NY"), Some(2), None)];
    let ended = plate("ABC1", Some("NY"), Some(2), Some(5));
    let [tag, plate] = corrected;
    assert_eq!(change(dated), [tag, ended, plate]);
}

#[test]
fn another_spelling_is_no_change() {
    check(
        &[names(TAG, "abc 1", "New York"), names("004-1234-5678", "ABC1", "NY")],
        &[tag(TAG, None, None), plate("abc 1", Some("New York"), None, None)],
    );
}

#[test]
fn a_state_that_becomes_known_is_no_other_plate_and_another_state_is() {
    check(&[names("", "ABC1", ""), names("", "ABC1", "NY")], &[plate("ABC1", Some("NY"), None, None)]);
    check(
        &[names("", "ABC1", "NY"), names("", "ABC1", "NJ")],
        &[plate("ABC1", Some("NY"), None, Some(1)), plate("ABC1", Some("NJ"), None, None)],
    );
    // The plate without a state cannot overlap with the one that ended.
    check(
        &[names("", "ABC1", "NY"), names("", "ABC1", "NJ"), names("", "ABC1", "")],
        &[plate("ABC1", Some("NY"), None, Some(1)), plate("ABC1", None, Some(1), None)],
    );
}

#[test]
fn a_vehicle_keeps_the_assignments_that_ended_last() {
    let mut fields = vec![names("", "", "")];
    for number in 0..MOST_ASSIGNMENTS + 20 {
        fields.push(names("", &format!("P{number}"), ""));
    }
    let mut list = of_fields(&fields[0]);
    for (hour, pair) in (1..).zip(fields.windows(2)) {
        list = changed(list, (&pair[0], &pair[1]), (|_| false, |_| false), at(hour));
    }
    assert_eq!(list.len(), MOST_ASSIGNMENTS);
    assert_eq!((&*list[0].number, list.last().unwrap().to), ("P20", None));
}

fn vehicle(fields: Names) -> Vehicle {
    let [tag, plate, state] = fields;
    let members = serde_json::json!({
        "id": VehicleId::nil(), "object": "vehicle", "name": "Car", "plate": plate, "plate_state": state,
        "transponder_number": tag, "currency": "USD", "status": "available",
        "organization_id": crate::value::OrganizationId::nil(), "created_at": at(0), "updated_at": at(0),
    });
    serde_json::from_value(members).unwrap()
}

#[track_caller]
fn refused(list: &[Assignment], expected: &[&str]) {
    let errors = mistakes(list, &vehicle(names("", "ABC1", "NY")));
    let found: Vec<&str> = errors.listed().iter().map(|error| error.message.as_str()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_list_says_what_is_wrong_with_each_assignment() {
    let own = plate("ABC1", Some("New York"), None, None);
    refused(&[own.clone(), tag(TAG, None, Some(1)), tag(TAG, Some(1), Some(2))], &[]);
    refused(
        &[own.clone(), tag("none", None, None)],
        &["`assignments[1].number` must be the number of a transponder, with a digit."],
    );
    refused(&[own.clone(), tag(TAG, Some(2), Some(2))], &["`assignments[1].to` must be after `from`."]);
    refused(
        &[own.clone(), tag(TAG, None, Some(2)), tag(TAG, Some(1), None)],
        &[
            "`assignments[2]` overlaps with `assignments[1]`, transponder 00412345678 until 2026-06-01T02:00:00.000Z: end one \
         before the other begins, or make them one.",
        ],
    );
    let mut with_state = tag(TAG, None, None);
    with_state.state = Some(Text::fit("NY", 255));
    refused(&[own, with_state], &["`assignments[1].state` must be null for a toll tag."]);
    let ended = plate("ABC1", Some("NY"), None, Some(1));
    refused(
        &[ended, plate("ABC1", Some("NJ"), None, None)],
        &[
            "`assignments` must have the vehicle's present `plate` without a `to`: plate ABC1 of NY. To end it, change the \
         vehicle first.",
        ],
    );
}
