//! Computes the rows that the present program writes for a record: derived rows, and other rows without which the object would be
//! out of reach or in the way.

use crate::{
    check::effects_of,
    erasing::Erasure,
    error::Error,
    resources::{
        calendar_feed,
        customer::{self, Customer},
        delivery::{self, Delivery, DeliveryStatus},
        organization::SYSTEM,
        parse, series_of, to_json,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::{
        Tag,
        calendar_feed::ImportedFeed,
        claim::{claim_value, identity_key},
        key,
    },
    schema::ResourceSpec,
    store::{Key, Revision},
    value::{Id, OrganizationId, Timestamp},
    webhooks::fan_out::{FRESH, RETRY},
};
use bytes::Bytes;
use uuid::Uuid;

/// The rows that belong to one record.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Index entries, look-ups and holds. The store must contain exactly these.
    pub(super) derived: Vec<(Key, Bytes)>,
    /// Claims, due rows, and what stands for lost secrets. Existing ones are kept, because records do not tell all of them.
    pub(super) state: Vec<(Key, Revision, Bytes)>,
    /// The counter of a numbered object, and its number.
    pub(super) number: Option<(&'static str, u64)>,
}

/// The kinds of derived rows. A sweep removes those that belong to no record.
pub(super) const DERIVED_TAGS: [Tag; 2] = [Tag::Hold, Tag::IndexEntry];

/// Whether a key is that of a derived row.
pub(super) fn is_derived(key: &Key) -> bool {
    DERIVED_TAGS.into_iter().any(|tag| key.as_bytes().first() == Some(&(tag as u8)))
}

/// Computes the rows of a record. Fails when the record does not parse as an object of its resource.
pub(super) fn rows(
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: Uuid,
    json: &[u8],
) -> Result<Rows, Error> {
    let place = key::record(organization, spec, id);
    let effects = effects_of(spec, &place, json)?;
    let mut rows = Rows::default();
    rows.derived.extend(effects.entries.iter().map(|one| (one.entry(organization, spec, id), Bytes::new())));
    rows.derived.extend(effects.holds.iter().map(|hold| (hold.key(organization), hold.value())));
    rows.derived.sort_unstable();
    rows.derived.dedup();
    rows.number = series_of(spec).and_then(|series| Some((series.counter, series.number_of(json)?)));
    if let Some(identity) = &effects.identity {
        let value = claim_value(id, effects.charge.and_then(|charge| charge.amount));
        rows.state.push((identity_key(organization, spec, identity), 1, value));
    }
    let state = match spec.tag {
        tag if tag == webhook_endpoint::SPEC.tag && organization == SYSTEM => {
            let endpoint: WebhookEndpoint = parse(&place, json)?;
            // Secrets that were lost: nothing is sent until the operator rotates them.
            rows.state.push((key::secrets(endpoint.id), 1, Bytes::from_static(b"[]")));
            Some((key::subscribed(endpoint.organization_id), 1, Bytes::new()))
        }
        // An address that was lost.
        tag if tag == calendar_feed::SPEC.tag => {
            let feed = ImportedFeed::new(None, Timestamp::from_millis(0));
            Some((key::calendar_feed(organization, Id::from_uuid(id)), 1, to_json(&feed)?))
        }
        tag if tag == delivery::SPEC.tag => {
            let delivery: Delivery = parse(&place, json)?;
            let class = if delivery.attempts == 0 { FRESH } else { RETRY };
            let due = delivery.next_attempt_at.filter(|_| delivery.status == DeliveryStatus::Pending);
            due.map(|at| key::due(delivery.endpoint_id, class, at.millis(), delivery.id))
                .map(|due| (due, 0, Bytes::copy_from_slice(organization.as_bytes())))
        }
        // Its report is lost. The next server erases again what is left.
        tag if tag == customer::SPEC.tag => {
            let customer: Customer = parse(&place, json)?;
            let erasure = customer.erased_at.map(|at| Erasure::new(organization, customer.id, at));
            erasure.map(|erasure| to_json(&erasure).map(|value| (erasure.key(), 1, value))).transpose()?
        }
        _ => None,
    };
    rows.state.extend(state);
    Ok(rows)
}

/// The part of a derived row's key that identifies the organization and the index.
pub(super) fn prefix(key: &Key) -> &[u8] {
    const HOLDS: usize = 1 + 16;
    const INDEX: usize = 1 + 16 + 1 + 1;
    let bytes = key.as_bytes();
    let length = if bytes.first() == Some(&(Tag::IndexEntry as u8)) { INDEX } else { HOLDS };
    &bytes[..bytes.len().min(length)]
}

/// The prefix of the key in hex, as the marker stores it.
pub(super) fn group(key: &Key) -> String {
    hex::encode(prefix(key))
}
