//! A POST: creates an object.

use super::{
    assignments, bills,
    completion::finish,
    counter::next_number,
    edge::{Edge, created_at},
    intent::{Intent, Prepared, Preparing},
    reference::find_references,
    sent_body::SentBody,
};
use crate::{
    error::Error,
    request::body::Verb,
    resources::{Collection, Outcome, Resource, RuleContext, organization::Organization},
    rows::key,
    schema::{self, FieldSpec, Fields, Kind, Presence, ResourceSpec},
    store::{Batch, Store},
    value::{FieldValue, Money, Text, Timestamp},
};
use std::collections::HashMap;
use uuid::Uuid;

/// A POST: creates an object of `collection`.
pub struct Create<'a> {
    /// The collection of the new object.
    pub collection: &'a Collection,
    /// The organization that will own the object.
    pub organization: &'a Organization,
    /// The request's body.
    pub body: SentBody<'a>,
    /// Values for fields that a request cannot set.
    pub given: &'a [(&'static str, FieldValue)],
}

impl Intent for Create<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (spec, organization) = (self.collection.spec, self.organization);
            let rule = self.collection.create.ok_or_else(|| Error::Internal(format!("{} has no POST", spec.object)))?;
            // An object has the currency of its organization, which never changes, and so its number of decimals.
            let mut sent = self.body.take(store, organization, spec, Verb::Create).await?;
            let mut batch = Batch::default();
            let (mut references, missing) = find_references(store, organization.id, &sent, &mut batch).await?;
            let missing = sent.forget_missing(missing)?;
            let number = match self.collection.series {
                Some(series) => next_number(store, organization.id, series.counter, &mut batch).await?,
                None => 0,
            };
            let id = edge.new_id();
            let created = created_at(id, edge.now());
            let given = |name| self.given.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
            let otherwise = |field: &FieldSpec| {
                given(field.name).or_else(|| server_value(field, (spec, &sent), organization, id, created))
            };
            if let Some(reads) = self.collection.reads {
                let context = RuleContext {
                    now: created,
                    organization,
                    references: &references,
                    number,
                    credited: &HashMap::new(),
                };
                let (names, keys): (Vec<_>, Vec<_>) = reads(&sent, &otherwise, &context)?.into_iter().unzip();
                let found = names.into_iter().zip(store.get(&keys).await?);
                references.extend(found.filter_map(|(name, record)| Some((name, record?))));
            }
            let credited = bills::credited_of(store, organization.id, references.values()).await?;
            let context =
                RuleContext { now: created, organization, references: &references, number, credited: &credited };
            let outcome = missing.join(rule(&sent, &otherwise, &context))?;
            self.body.keep(sent);
            let place = key::record(organization.id, spec, id);
            batch.insert(place.clone(), outcome.json.clone());
            let batch = assignments::follow(store, edge, organization, (None, &outcome.effects), batch).await?;
            finish(store, edge, organization, spec, (place, 1), outcome, batch).await
        })
    }
}

/// Adds a new object and its derived rows to a batch. It emits no event.
///
/// # Errors
/// Another object has the same identity, or the store is not available.
pub async fn insert<T: Resource>(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    object: T,
    mut batch: Batch,
) -> Result<Prepared, Error> {
    let place = T::key(organization.id, object.id());
    let outcome = Outcome::new(object, true, Vec::new(), None)?;
    batch.insert(place.clone(), outcome.json.clone());
    let batch = assignments::follow(store, edge, organization, (None, &outcome.effects), batch).await?;
    finish(store, edge, organization, T::SPEC, (place, 1), outcome, batch).await
}

/// The value of a field that only the server sets; `None` for every other field.
fn server_value(
    field: &FieldSpec,
    (spec, sent): (&ResourceSpec, &Fields),
    organization: &Organization,
    id: Uuid,
    created: Timestamp,
) -> Option<FieldValue> {
    Some(match (field.name, field.kind) {
        ("id", _) => FieldValue::Id(id),
        ("object", _) => FieldValue::Plain(spec.object.to_owned()),
        ("currency", Kind::Currency) => FieldValue::Currency(organization.default_currency),
        ("api_version", _) => FieldValue::Text(Text::fit(schema::API_VERSION, 255)),
        // A rental keeps the zone in which it was made; an organization chooses its own.
        ("time_zone", Kind::TimeZone) if field.create == Presence::Never => FieldValue::Zone(organization.time_zone),
        // No invoice bills a new object.
        ("amount_billed" | "amount_credited", _) => FieldValue::Money(Money::default()),
        ("language_chosen", _) => FieldValue::Boolean(sent.has("preferred_language")),
        (_, Kind::References(_)) => FieldValue::Texts(Vec::new()),
        (_, Kind::EarlierVehicles) => FieldValue::Objects(Vec::new()),
        ("organization_id", Kind::Id) => FieldValue::Id(organization.id.uuid()),
        ("created_at" | "updated_at", _) => FieldValue::Time(created),
        _ => return None,
    })
}
