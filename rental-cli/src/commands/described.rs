//! Says which objects ids name: a vehicle by its name and plate, a rental by its dates, car and customer.

use crate::{
    client::{access::Access, api::Api, request::Request},
    commands::names::LookUp,
    output::record::{Record, json},
};
use std::time::{Duration, Instant};

/// Time for the objects of one message. Their vehicles and customers have as much again.
const TIME: Duration = Duration::from_secs(2);

/// What a person recognizes each of these objects of an organization by. They are given by collection and id; an object that cannot
/// be read has its id only.
pub(super) fn describe(api: &Api, objects: &[(&str, &str)]) -> Vec<String> {
    let ends = Instant::now() + TIME;
    let read = |(plural, id): &(&str, &str)| {
        let left = ends.saturating_duration_since(Instant::now());
        let request = Request::get(Access::Organization, &[plural, id]);
        let found = (!left.is_zero()).then(|| api.get_within(&request, left).and_then(json))?;
        found.and_then(|json| Record::read(&json)).ok()
    };
    let records: Vec<Option<Record>> = objects.iter().map(read).collect();
    let of = |record: &Record, field: &str, plural: &str| Some((record.text(field)?, plural.to_owned()));
    let named = |record: &Record| {
        [of(record, "vehicle_id", "vehicles"), of(record, "customer_id", "customers")].into_iter().flatten()
    };
    let mut names = LookUp::new(api, Access::Organization);
    names.find(records.iter().flatten().flat_map(named).collect());
    let text = |((_, id), record): (&(&str, &str), &Option<Record>)| {
        let words = record.as_ref().map(|record| words(record, |id| names.names.get(id).map(str::to_owned)));
        match words.filter(|words| !words.is_empty()) {
            Some(words) => format!("{} ({id})", words.join(", ")),
            None => (*id).to_owned(),
        }
    };
    objects.iter().zip(&records).map(text).collect()
}

/// The words for an object. `name` gives the name of a vehicle or customer.
fn words(record: &Record, name: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let text = |member: &str| record.text(member).filter(|text| !text.is_empty());
    let dates = match (text("start_date"), text("end_date")) {
        (Some(from), Some(to)) => Some(format!("{from} to {to}")),
        (from, to) => from.map(|from| format!("from {from}")).or_else(|| to.map(|to| format!("until {to}"))),
    };
    let plate = text("plate")
        .map(|plate| [text("plate_state"), Some(plate)].into_iter().flatten().collect::<Vec<_>>().join(" "));
    let named = |member: &str| text(member).and_then(|id| name(&id));
    let own = [text("name"), text("full_name"), text("booking_id"), plate, text("email"), dates, text("status")];
    own.into_iter().chain([named("vehicle_id"), named("customer_id")]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_described_by_what_people_call_them() {
        for (json, expected) in [
            (
                r#"{"name":"White Tesla","plate":"ABC123","plate_state":"NY","status":"available"}"#,
                "White Tesla, NY ABC123, available",
            ),
            (r#"{"full_name":"Ada","email":null}"#, "Ada"),
            (
                r#"{"booking_id":"B1","start_date":"2026-06-01","end_date":"2026-06-05","status":"ACTIVE","vehicle_id":"1","customer_id":"2"}"#,
                "B1, 2026-06-01 to 2026-06-05, ACTIVE, name of 1, name of 2",
            ),
            (r#"{"start_date":null,"end_date":"2026-06-05"}"#, "until 2026-06-05"),
        ] {
            let words = words(&Record::read(json).unwrap(), |id| Some(format!("name of {id}")));
            assert_eq!(words.join(", "), expected);
        }
    }
}
