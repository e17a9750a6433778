//! Changes one stored object by a rule.

use super::{assignments, completion::finish, edge::Edge, intent::Prepared};
use crate::{
    error::Error,
    resources::{self, Outcome, Resource, event::EventType, organization::Organization, parse},
    schema::ResourceSpec,
    store::{Batch, Record, Store},
};

/// Changes one object by a rule of the operator, which returns the events.
///
/// # Errors
/// The errors of the rule and of [`replace`].
pub async fn edit<T: Resource>(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    before: Record,
    rule: impl FnOnce(&mut T) -> Result<Vec<EventType>, Error>,
) -> Result<Prepared, Error> {
    let mut object: T = parse(&before.key, &before.value)?;
    let effects_before = Some(resources::effects::of(&object));
    let events = rule(&mut object)?;
    let mut outcome = Outcome::new(object, true, events, effects_before)?;
    outcome.changed = outcome.json != before.value;
    replace(store, edge, organization, T::SPEC, before, outcome, Batch::default()).await
}

/// Builds the batch for the result of a rule. The batch is empty when nothing changed and no event is emitted.
///
/// # Errors
/// A hold of the object conflicts with another one, or the store is not available.
pub async fn replace(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    spec: &'static ResourceSpec,
    before: Record,
    outcome: Outcome,
    mut batch: Batch,
) -> Result<Prepared, Error> {
    if !outcome.changed && outcome.events.is_empty() {
        let Record { revision, value: body, .. } = before;
        return Ok(Prepared { batch: Batch::default(), body, revision, object: outcome.object, asks: Vec::new() });
    }
    let revision = before.revision + u64::from(outcome.changed);
    if outcome.changed {
        batch.replace(before.key.clone(), before.revision, outcome.json.clone());
    }
    let effects = (outcome.effects_before.as_ref(), &outcome.effects);
    let batch = assignments::follow(store, edge, organization, effects, batch).await?;
    finish(store, edge, organization, spec, (before.key, revision), outcome, batch).await
}
