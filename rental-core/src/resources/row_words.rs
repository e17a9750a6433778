//! Descriptions of keys and damaged rows, for operators.

use crate::{
    resources,
    rows::{Marker, Row, number},
    store::{DamagedRow, Key, StoreError},
};

/// Most bytes of a key in a description.
const SHOWN: usize = 256;
/// Most characters of a name in a description.
const SHOWN_NAME: usize = 64;

/// Describes a key: resource, id and organization, as far as the key contains them, and the key in hex.
#[must_use]
pub fn in_words(key: &Key) -> String {
    let bytes = key.as_bytes();
    let cut = if bytes.len() > SHOWN { "…" } else { "" };
    let shown = hex::encode(&bytes[..bytes.len().min(SHOWN)]);
    let meaning = Row::decode(key).map_or_else(|| "a row of no known kind".into(), |row| meaning(&row));
    format!("{meaning} (key {shown}{cut})")
}

/// Describes a damaged row: its key and the damage.
#[must_use]
pub fn damage_in_words(row: &DamagedRow) -> String {
    format!("{}: {}", in_words(&row.key), row.reason)
}

/// Describes an error of an engine, including its damaged row.
#[must_use]
pub fn error_in_words(error: &StoreError) -> String {
    match error {
        StoreError::Damaged(row) => format!("the store is damaged: {}", damage_in_words(row)),
        other => other.to_string(),
    }
}

fn object(tag: u8) -> &'static str {
    resources::spec_of_tag(tag).map_or("object of an unknown resource", |spec| spec.object)
}

fn meaning(row: &Row<'_>) -> String {
    match *row {
        Row::Record { organization, resource, id } => {
            format!("{} {id} of organization {organization}", object(resource))
        }
        Row::IndexEntry { organization, resource, id, .. } => {
            format!("an index entry of {} {id} of organization {organization}", object(resource))
        }
        Row::Access { .. } => "where an API key or an operator's token leads to its record".into(),
        Row::Calendar { organization, vehicle } => {
            format!("the calendar of vehicle {vehicle} of organization {organization}")
        }
        Row::Hold { organization, vehicle, holder, .. } => {
            format!("a hold of vehicle {vehicle} by {holder} of organization {organization}")
        }
        Row::IdempotencyRecord { organization, .. } => format!("an idempotency record of organization {organization}"),
        Row::IdempotencyExpiry { organization, .. } => {
            format!("when an idempotency record of organization {organization} expires")
        }
        Row::Outbox { organization, event } => {
            format!("the outbox row of event {event} of organization {organization}")
        }
        Row::Subscribed { organization } => format!("the mark that organization {organization} has webhook endpoints"),
        Row::Due { endpoint, delivery, .. } => {
            format!("when delivery {delivery} to webhook_endpoint {endpoint} is due")
        }
        Row::Secrets { endpoint } => format!("the secrets of webhook_endpoint {endpoint}"),
        Row::Marker(Marker::Loading) => "the mark of a copy that is not complete".into(),
        Row::Marker(Marker::MasterKey) => "the fingerprint of the master key".into(),
        Row::Marker(Marker::Upgrade) => "the mark of an upgrade that is not complete".into(),
        Row::Recheck { organization, marked } => {
            let whose =
                marked.as_vehicle().map_or_else(|| "a number".to_owned(), |vehicle| format!("vehicle {vehicle}"));
            format!(
                "the mark that tolls and violations of {whose} of organization {organization} must be derived again"
            )
        }
        Row::Heartbeat { server } => format!("the heartbeat of server {server}"),
        Row::Usage { server, organization } => {
            format!("what server {server} has counted of organization {organization}")
        }
        Row::Owner { endpoint } => format!("which server sends for webhook_endpoint {endpoint}"),
        Row::Bell { server, endpoint } => format!("a bell for webhook_endpoint {endpoint} at server {server}"),
        Row::Identity { organization, resource, .. } => {
            format!("the identity of one {} of organization {organization}", object(resource))
        }
        Row::Counter { organization, name } if name.starts_with(number::PREFIX) => {
            format!("the changes of a transponder or plate of organization {organization}")
        }
        Row::Counter { organization, name } => {
            let name: String = name.chars().take(SHOWN_NAME).collect();
            format!("the counter {name} of organization {organization}")
        }
        Row::VehicleFeed { organization, vehicle } => {
            format!("the calendar feed of vehicle {vehicle} of organization {organization}")
        }
        Row::CalendarFeed { organization, feed } => {
            format!("the address of calendar_feed {feed} of organization {organization}")
        }
        Row::Logo { organization } => format!("the logo of organization {organization}"),
        Row::Task { id } => format!("the long task {id}"),
        Row::Erased { organization, resource, id } => {
            format!("the mark that {} {id} of organization {organization} was erased", object(resource))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rows::key, value::OrganizationId};
    use proptest::prelude::*;
    use uuid::Uuid;

    #[test]
    fn a_record_is_named_by_resource_id_and_organization() {
        let (organization, id) = (OrganizationId::from_u128(7), Uuid::from_u128(42));
        let words = in_words(&key::record(organization, &resources::rental::SPEC, id));
        assert!(words.starts_with(&format!("rental {id} of organization {organization} (key 72")), "{words}");
    }

    proptest! {
        #[test]
        fn any_bytes_have_words(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(in_words(&Key::from_bytes(&bytes)).len() < 900);
        }
    }
}
