//! Computes the rows that the present program writes for a record: derived rows, and the claims that an object of an older
//! version may lack.

use crate::{
    check::effects_of,
    error::Error,
    resources::{
        organization::SYSTEM,
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::{
        Tag,
        claim::{claim_value, identity_key},
        key,
    },
    schema::ResourceSpec,
    store::{Key, Revision},
    value::OrganizationId,
};
use bytes::Bytes;
use uuid::Uuid;

/// The rows that belong to one record.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Index entries, look-ups and holds. The store must contain exactly these.
    pub(super) derived: Vec<(Key, Bytes)>,
    /// Claims. Existing ones are kept, because they cannot all be computed from records.
    pub(super) state: Vec<(Key, Revision, Bytes)>,
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
    if let Some(identity) = &effects.identity {
        let value = claim_value(id, effects.charge.and_then(|charge| charge.amount));
        rows.state.push((identity_key(organization, spec, identity), 1, value));
    }
    if spec.tag == webhook_endpoint::SPEC.tag && organization == SYSTEM {
        let endpoint: WebhookEndpoint = parse(&place, json)?;
        rows.state.push((key::subscribed(endpoint.organization_id), 1, Bytes::new()));
    }
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
