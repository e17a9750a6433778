//! The rows that must exist because a record exists.

use crate::{
    error::Error,
    resources::{
        calendar_feed, entry_of_tag, parse, spec_of,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::key,
    schema::{Effects, FieldSpec, Hold, Kind, ResourceSpec},
    store::{Key, Record},
    value::{Holder, Id, OrganizationId},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use uuid::Uuid;

/// What an exported object names in its fields: the field, the resource and the id. Other objects, such as deliveries, can name
/// what is gone.
pub(crate) fn references(
    spec: &'static ResourceSpec,
    json: &[u8],
) -> Vec<(&'static FieldSpec, &'static ResourceSpec, Uuid)> {
    let ported = |spec: &ResourceSpec| entry_of_tag(spec.tag).is_some_and(|entry| entry.porter.is_some());
    let named = spec.fields.iter().filter_map(|field| match field.kind {
        Kind::Reference(object) => Some((field, spec_of(object).filter(|target| ported(target))?)),
        _ => None,
    });
    let named: Vec<_> = named.filter(|_| ported(spec)).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let members: HashMap<&str, &RawValue> = crate::value::read_json(json).unwrap_or_default();
    let id = |field: &FieldSpec| Option::<Uuid>::deserialize(*members.get(field.name)?).ok().flatten();
    named.into_iter().filter_map(|(field, target)| Some((field, target, id(field)?))).collect()
}

/// The keys of all rows that must exist because this record exists.
///
/// # Errors
/// The record is not an object of its resource.
pub fn expected_keys(
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: Uuid,
    json: &[u8],
) -> Result<Vec<Key>, Error> {
    let place = key::record(organization, spec, id);
    let mut keys = Vec::new();
    let effects = effects_of(spec, &place, json)?;
    for hold in &effects.holds {
        keys.extend([hold.key(organization), key::calendar(organization, hold.vehicle)]);
    }
    keys.extend(effects.entries.iter().map(|prefix| prefix.entry(organization, spec, id)));
    if spec.tag == webhook_endpoint::SPEC.tag {
        let endpoint: WebhookEndpoint = parse(&place, json)?;
        keys.extend([key::secrets(Id::from_uuid(id)), key::subscribed(endpoint.organization_id)]);
    }
    if spec.tag == calendar_feed::SPEC.tag {
        keys.push(key::calendar_feed(organization, Id::from_uuid(id)));
    }
    Ok(keys)
}

/// The nights that a rental or a block holds by its record.
pub(super) fn held_by(holder: Holder, record: &Record) -> Result<Vec<Hold>, Error> {
    let spec = spec_of(holder.object());
    let spec = spec.ok_or_else(|| Error::Internal(format!("no resource is a {}", holder.object())))?;
    effects_of(spec, &record.key, &record.value).map(|effects| effects.holds)
}

/// The rows derived from a record. Parsing it also checks that it is an object of its resource. Its present identity may
/// differ from the claimed one, because amounts can be corrected later.
pub(crate) fn effects_of(spec: &ResourceSpec, place: &Key, json: &[u8]) -> Result<Effects, Error> {
    let resource = entry_of_tag(spec.tag);
    let resource = resource.ok_or_else(|| Error::Internal(format!("no resource is a {}", spec.object)))?;
    (resource.effects)(place, json)
}
