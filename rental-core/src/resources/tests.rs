use super::{RESOURCES, effects, porters, rental, spec_of, specs};
use crate::{
    request::body::Verb,
    schema::{Fields, IndexSpec, Kind, Presence, ResourceSpec},
    store::Key,
    value::{OrganizationId, RentalId},
};
use std::collections::BTreeSet;

/// A whole object from the examples of a description.
fn sample(spec: &ResourceSpec) -> String {
    let members = spec.fields.iter().map(|field| format!("\"{}\":{}", field.name, field.example));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[test]
fn every_struct_has_the_fields_of_its_description_in_order() {
    for entry in RESOURCES {
        let (object, text) = (entry.spec.object, sample(entry.spec));
        let again = (entry.reprint)(&Key::from_bytes(b"sample"), text.as_bytes());
        let again = again.unwrap_or_else(|error| panic!("{object}: {error:?}\n{text}"));
        assert_eq!(String::from_utf8(again).unwrap(), text, "struct and SPEC of {object} differ");
    }
}

#[test]
fn tags_and_names_are_used_once() {
    let tags: BTreeSet<u8> = specs().map(|spec| spec.tag).collect();
    let names: BTreeSet<&str> = specs().flat_map(|spec| [spec.object, spec.plural]).collect();
    assert_eq!((tags.len(), names.len()), (RESOURCES.len(), 2 * RESOURCES.len()));
}

#[test]
fn an_export_has_each_place_once_and_every_object_after_those_it_refers_to() {
    let places: Vec<usize> = porters().map(|porter| porter.place).collect();
    assert_eq!(places, (1..=places.len()).collect::<Vec<_>>());
    let mut before = Vec::new();
    for porter in porters() {
        for field in porter.spec.fields {
            if let Kind::Reference(object) = field.kind {
                assert!(before.contains(&object), "{} comes before {object}", porter.spec.object);
            }
        }
        before.push(porter.spec.object);
    }
}

/// Numbers of indexes and look-ups are part of stored keys. A line of this table may be added; none may change, and
/// the number of a line that goes may never come back.
#[test]
fn index_numbers_are_those_that_are_written_down() {
    let found: Vec<String> = specs()
        .flat_map(|spec| {
            let name = |index: &IndexSpec| match index.ordered_by {
                Some(field) => format!("{}by {field}", index.fields.join("+")),
                None => index.fields.join("+"),
            };
            let indexes = spec.indexes.iter().map(move |index| (index.number, name(index)));
            let look_ups = spec.look_ups.iter().map(|look_up| (look_up.number, look_up.name.to_owned()));
            indexes.chain(look_ups).map(|(number, what)| format!("{} {number} {what}", spec.object))
        })
        .collect();
    let written = [
        "vehicle 16 by updated_at",
        "vehicle 20 status",
        "vehicle 128 transponder",
        "vehicle 129 plate",
        "customer 1 email",
        "customer 16 by updated_at",
        "rental 1 status",
        "rental 2 customer_id",
        "rental 3 status+customer_id",
        "rental 4 vehicle_id",
        "rental 5 status+vehicle_id",
        "rental 6 customer_id+vehicle_id",
        "rental 7 status+customer_id+vehicle_id",
        "rental 16 by updated_at",
        "rental 20 booking_id",
        "rental 21 by start_date",
        "rental 22 by end_date",
        "rental 128 stay",
        "rental 129 recorded",
        "rental 130 out",
        "rental 140 unbilled",
        "block 1 vehicle_id",
        "block 2 status",
        "block 3 vehicle_id+status",
        "block 4 calendar_feed_id",
        "block 5 calendar_feed_id+status",
        "block 16 by updated_at",
        "block 128 calendar_feed",
        "calendar_feed 1 vehicle_id",
        "calendar_feed 16 by updated_at",
        "vehicle_assignments 1 vehicle_id",
        "vehicle_assignments 16 by updated_at",
        "vehicle_assignments 128 transponder",
        "vehicle_assignments 129 plate",
        "invoice 1 status",
        "invoice 2 customer_id",
        "invoice 3 status+customer_id",
        "invoice 16 by updated_at",
        "invoice 20 invoice_number",
        "invoice 21 by due_date",
        "credit_note 1 customer_id",
        "credit_note 2 invoice_id",
        "credit_note 16 by updated_at",
        "credit_note 20 credit_note_number",
        "toll 1 vehicle_id",
        "toll 2 customer_id",
        "toll 3 vehicle_id+customer_id",
        "toll 8 billed",
        "toll 9 customer_id+billed",
        "toll 10 attached",
        "toll 16 by updated_at",
        "toll 20 transaction_id",
        "toll 128 unattached",
        "toll 129 passage",
        "toll 131 automatic",
        "toll 130 review",
        "toll 141 posting",
        "violation 1 vehicle_id",
        "violation 2 customer_id",
        "violation 3 vehicle_id+customer_id",
        "violation 8 billed",
        "violation 9 customer_id+billed",
        "violation 10 attached",
        "violation 16 by updated_at",
        "violation 20 summons_number",
        "violation 21 by respond_by",
        "violation 128 unattached",
        "violation 131 automatic",
        "violation 130 review",
        "lead 1 status",
        "api_key 1 organization_id",
        "webhook_endpoint 1 organization_id",
        "event 1 type",
        "delivery 1 endpoint_id",
        "delivery 2 event_id",
        "delivery 3 endpoint_id+event_id",
        "delivery 4 status",
        "delivery 5 endpoint_id+status",
        "audit_entry 1 organization_id",
        "audit_entry 2 action",
        "audit_entry 3 organization_id+action",
        "audit_entry 4 actor",
    ];
    assert_eq!(found, written);
}

#[test]
fn a_resource_uses_a_number_once_and_those_of_look_ups_begin_at_128() {
    for spec in specs() {
        let indexes = spec.indexes.iter().map(|index| index.number);
        let look_ups = spec.look_ups.iter().map(|look_up| look_up.number);
        assert!(indexes.clone().all(|number| (1..128).contains(&number)), "{}", spec.object);
        assert!(look_ups.clone().all(|number| number >= 128), "{}", spec.object);
        let mut numbers: Vec<u8> = indexes.chain(look_ups).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{}", spec.object);
    }
}

#[test]
fn an_entry_has_the_bytes_of_the_schema() {
    let organization = OrganizationId::from_u128(7);
    let mut rental: rental::Rental = serde_json::from_str(&sample(&rental::SPEC)).unwrap();
    rental.id = RentalId::from_u128(9);
    let prefix = |number: u8| [&[b'i'][..], organization.as_bytes(), &[rental::SPEC.tag, number]].concat();
    let (status, customer) = (&b"\0\x08APPROVED"[..], [&[0, 16], &rental.customer_id.as_bytes()[..]].concat());
    (rental.status, rental.activated_at) = (rental::RentalStatus::Approved, None);
    let found: Vec<Vec<u8>> = effects::of(&rental)
        .entries
        .iter()
        .map(|entry| entry.entry(organization, &rental::SPEC, rental.id.uuid()).as_bytes().to_vec())
        .collect();
    for (number, values) in [(1, status.to_vec()), (2, customer.clone()), (3, [status, &customer].concat())] {
        let expected = [&prefix(number)[..], &values, rental.id.as_bytes()].concat();
        assert!(found.contains(&expected), "index {number}");
    }
    let [start, last] = [rental.start_date, rental.end_date].map(|day| day.unwrap().day_number().to_be_bytes());
    let stay = [&[0, 16], &rental.vehicle_id.as_bytes()[..], &[0, 1, 2, 0, 4], &start, &[0, 4], &last].concat();
    assert!(found.contains(&[&prefix(128)[..], &stay, rental.id.as_bytes()].concat()), "look-up 128");
}

#[test]
fn filters_name_fields_and_references_name_resources() {
    for spec in specs() {
        let computed = ["billed", "attached"];
        let known = |field: &str| spec.field(field).is_some() || computed.contains(&field);
        assert!(spec.filters.iter().all(|filter| known(filter.field)), "{}", spec.object);
        for filter in spec.filters {
            assert!(spec.takes(&[filter.field]), "{} has no index for {}", spec.object, filter.param);
        }
        for range in spec.ranges {
            assert!(spec.index_over(&[], Some(range.field)).is_some(), "{} has no {}", spec.object, range.param);
            let kind = spec.field(range.field).map(|field| field.kind);
            assert!(matches!(kind, Some(Kind::Time | Kind::Date)), "{}", range.param);
        }
        for field in spec.indexes.iter().flat_map(|index| index.fields) {
            assert!(spec.filters.iter().any(|filter| filter.field == *field), "{}.{field}", spec.object);
        }
        for field in spec.fields {
            if let Kind::Reference(object) = field.kind {
                assert!(spec_of(object).is_some(), "{}.{}", spec.object, field.name);
            }
        }
    }
}

#[test]
fn examples_pass_their_own_checks() {
    for spec in specs() {
        for verb in [Verb::Create, Verb::Update] {
            let taken = |presence: Presence| presence != Presence::Never;
            let members = spec
                .fields
                .iter()
                .filter(|field| taken(if verb == Verb::Create { field.create } else { field.update }));
            let body: Vec<String> = members.map(|field| format!("\"{}\":{}", field.name, field.example_sent)).collect();
            let parsed = Fields::parse(format!("{{{}}}", body.join(",")).as_bytes(), spec, verb, 2);
            assert!(parsed.is_ok(), "{} {verb:?}: {parsed:?}", spec.object);
        }
    }
}
