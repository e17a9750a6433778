//! `vehicles duplicates`: records that are probably of one car, one person or one booking.

use crate::{
    client::{access::Access, api::Api},
    commands::{fields, group::with_examples, pages, session::Session},
    failure::Failure,
    output::record::Record,
};
use clap::Command;
use rental_core::{
    resources::{
        assignment::{Assignment, AssignmentKind, of_fields},
        customer, rental, vehicle,
    },
    schema::{IndexPrefix, NOTICES},
    value::nfc,
};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// Pages of each list that the command reads, newest first.
const MOST_PAGES: usize = 100;
/// Columns of the table.
const COLUMNS: [&str; 7] = ["matched", "value", "name", "status", "start_date", "created_at", "id"];

/// What to do with the records of one car, in the order of the steps.
const NEXT: &str = "\
If two records are one car, keep the older one. `rental-cli rentals list --vehicle OTHER --all` lists the rentals of the other one: cancel each \
copy of a booking with `rental-cli rentals update RENTAL --status CANCELLED`, and move each other one with `rental-cli rentals update RENTAL \
--vehicle KEPT` (an ACTIVE one with `--clear vehicle-changed-at` too, so that it is no swap). Then clear what both have: `rental-cli vehicles update \
OTHER --clear plate --clear transponder-number`. The tolls follow if the other record is less than 30 days old; else say with `rental-cli vehicles \
assign` from when the kept one had the number. Tolls that an invoice bills never move.";

/// Records that have one plate, transponder, email or booking id.
pub(super) struct Duplicates {
    groups: Vec<Group>,
    /// The lists that are longer than what was read.
    unread: Vec<&'static str>,
}

/// Records with one value.
struct Group {
    matched: &'static str,
    value: String,
    records: Vec<Record>,
}

/// Builds the command.
pub(super) fn command() -> Command {
    let command = Command::new("duplicates")
        .about("List vehicles in service with one plate or transponder, customers with one email, and rentals with one booking id")
        .arg(fields::columns_among(COLUMNS));
    with_examples(command, &["rental-cli vehicles duplicates"])
}

/// Runs the command.
pub(super) fn run(session: &Session) -> Result<(), Failure> {
    let found = find(&session.api, MOST_PAGES)?;
    let name = |record: &Record| record.text("name").or_else(|| record.text("full_name"));
    let row = |group: &Group, record: &Record| {
        let text = |member: &str| record.text(member);
        json!({
            "object": "duplicate", "matched": group.matched, "value": group.value, "resource": text("object"),
            "id": text("id"), "name": name(record), "status": text("status"), "start_date": text("start_date"),
            "end_date": text("end_date"), "vehicle_id": text("vehicle_id"), "customer_id": text("customer_id"),
            "created_at": text("created_at"),
        })
        .to_string()
    };
    let rows = found.groups.iter().flat_map(|group| group.records.iter().map(move |record| row(group, record)));
    let rows: Vec<String> = rows.collect();
    if session.out.json {
        session.out.json_objects(&rows, None)?;
    } else {
        let records = rows.iter().map(|row| Record::read(row)).collect::<Result<Vec<_>, _>>()?;
        session.out.records(&COLUMNS, &records)?;
    }
    if !found.unread.is_empty() {
        let read = MOST_PAGES * pages::MAX_LIMIT as usize;
        session.out.warn(&format!("Only the newest {read} {} were compared.", found.unread.join(" and ")));
    }
    let has = |matched: &[&str]| found.groups.iter().any(|group| matched.contains(&group.matched));
    if rows.is_empty() {
        session.out.note("No two records have one plate, transponder, email or booking id.");
    }
    if has(&["plate", "transponder"]) {
        session.out.note(NEXT);
    }
    for (matched, notice) in [("email", "same-email"), ("booking_id", "same-booking-id")] {
        if let Some(spec) = NOTICES.iter().find(|spec| has(&[matched]) && spec.name == notice) {
            session.out.note(spec.next);
        }
    }
    Ok(())
}

/// Compares the newest objects of each list: at most so many pages.
pub(super) fn find(api: &Api, most_pages: usize) -> Result<Duplicates, Failure> {
    let mut unread = Vec::new();
    let mut read = |plural: &'static str| -> Result<Vec<Record>, Failure> {
        let mut records = Vec::new();
        let is_complete = pages::each_object((api, Access::Organization), &[plural], &[], most_pages, |raw| {
            records.push(Record::read(raw.get())?);
            Ok(true)
        })?;
        unread.extend((!is_complete).then_some(plural));
        // Oldest first.
        records.reverse();
        Ok(records)
    };
    let mut groups = of_vehicles(&read(vehicle::SPEC.plural)?);
    groups.extend(of_field(&read(customer::SPEC.plural)?, "email"));
    groups.extend(of_field(&read(rental::SPEC.plural)?, "booking_id"));
    Ok(Duplicates { groups, unread })
}

impl Duplicates {
    /// How many plates, emails and so on have several records: `2 plates and 1 email`; `None` for none.
    pub(super) fn counted(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.groups.iter().for_each(|group| *counts.entry(group.matched).or_default() += 1);
        let counted = |(matched, count): (&&str, &usize)| {
            format!("{count} {}{}", matched.replace('_', " "), if *count == 1 { "" } else { "s" })
        };
        let counts: Vec<String> = counts.iter().map(counted).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }

    /// Whether all records were compared.
    pub(super) fn is_complete(&self) -> bool {
        self.unread.is_empty()
    }
}

/// The records with one value in a field.
fn of_field(records: &[Record], field: &'static str) -> Vec<Group> {
    let mut by_value: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        if let Some(value) = record.text(field) {
            by_value.entry(nfc(&value).into_owned()).or_default().push(record);
        }
    }
    let several = by_value.into_iter().filter(|(_, records)| records.len() > 1);
    several.map(|(value, records)| Group { matched: field, value, records: copied(&records) }).collect()
}

/// The vehicles in service with one transponder or plate, by the rules that find the vehicle of a toll.
fn of_vehicles(records: &[Record]) -> Vec<Group> {
    let mut by_number: HashMap<IndexPrefix, Vec<(Assignment, &Record)>> = HashMap::new();
    for record in records.iter().filter(|record| record.text("status").as_deref() != Some("unavailable")) {
        let names = ["transponder_number", "plate", "plate_state"].map(|field| record.text(field));
        for one in of_fields(&names) {
            if let Some(number) = one.look_up() {
                by_number.entry(number).or_default().push((one, record));
            }
        }
    }
    let mut groups = Vec::new();
    for mut same in by_number.into_values() {
        // A plate without a state can be that of each state, so it comes first.
        same.sort_by_key(|(one, _)| one.state.is_some());
        while !same.is_empty() {
            let (first, record) = same.remove(0);
            let (like, others): (Vec<_>, Vec<_>) = same.into_iter().partition(|(one, _)| one.is_like(&first));
            same = others;
            if !like.is_empty() {
                let records: Vec<&Record> =
                    [record].into_iter().chain(like.into_iter().map(|(_, record)| record)).collect();
                let matched = match first.kind {
                    AssignmentKind::TollTag => "transponder",
                    AssignmentKind::Plate => "plate",
                };
                groups.push(Group { matched, value: first.number.to_string(), records: copied(&records) });
            }
        }
    }
    groups.sort_by(|one, other| (one.matched, &one.value).cmp(&(other.matched, &other.value)));
    groups
}

fn copied(records: &[&Record]) -> Vec<Record> {
    records.iter().map(|record| (*record).clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_and_a_booking_id_are_one_in_each_spelling_of_unicode() {
        for (field, one, other) in [
            ("email", "zo\u{eb}@example.com", "zoe\u{308}@example.com"),
            ("booking_id", "Caf\u{e9} 7", "Cafe\u{301} 7"),
        ] {
            let records = [one, other, "another"].map(|text| Record::read(&json!({field: text}).to_string()).unwrap());
            let found = of_field(&records, field);
            assert_eq!(found.iter().map(|group| group.records.len()).collect::<Vec<_>>(), [2], "{field}");
        }
    }

    #[test]
    fn vehicles_in_service_with_one_number_are_a_group() {
        let vehicle = |id: &str, plate: &str, state: &str, tag: &str, status: &str| {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let object = json!({"id": id, "plate": text(plate), "plate_state": text(state), "transponder_number": text(tag), "status": status});
            Record::read(&object.to_string()).unwrap()
        };
        let fleet = [
            vehicle("a", "ABC 123", "NY", "00412345678", "available"),
            vehicle("b", "abc-123", "New York", "", "maintenance"),
            vehicle("c", "ABC123", "NJ", "12345678", "rented"),
            vehicle("d", "ABC123", "NY", "", "unavailable"),
            vehicle("e", "XYZ1", "NY", "00499999999", "available"),
            vehicle("f", "XYZ1", "NJ", "00599999999", "available"),
            vehicle("g", "XYZ2", "NY", "", "available"),
            vehicle("h", "XYZ2", "", "", "available"),
            vehicle("i", "XYZ2", "NJ", "", "available"),
        ];
        let ids =
            |group: &Group| group.records.iter().filter_map(|record| record.text("id")).collect::<Vec<_>>().join(" ");
        let found: Vec<_> = of_vehicles(&fleet)
            .iter()
            .map(|group| format!("{} {}: {}", group.matched, group.value, ids(group)))
            .collect();
        assert_eq!(found, ["plate ABC 123: a b", "plate XYZ2: h g i", "transponder 00412345678: a c"]);
    }
}
