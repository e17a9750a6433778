//! Completes the batch of a write: the derived rows, holds and events of the object's new state.

use super::{edge::Edge, effects, erased::Subjects, events, intent::Prepared, recheck};
use crate::{
    error::Error,
    resources::{Change, Outcome, organization::Organization, spec_of_tag},
    rows::{Row, key},
    schema::ResourceSpec,
    store::{Batch, Check, Key, Revision, Store},
};

/// Adds the index entries, holds and events of an object's new state to the batch of its write. `revision` is that of the
/// object after the commit.
///
/// A write without events, such as an import, has redacted the data of erased customers before.
pub(crate) async fn finish(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    spec: &'static ResourceSpec,
    (place, revision): (Key, Revision),
    outcome: Outcome,
    mut batch: Batch,
) -> Result<Prepared, Error> {
    let no_id = || Error::Internal("a record's key has no id".into());
    let id = place.id().ok_or_else(no_id)?;
    let subjects = Subjects::of(organization.id, spec, outcome.effects_before.as_ref(), &outcome.effects);
    recheck::mark(store, edge, organization.id, (outcome.effects_before.as_ref(), &outcome.effects), &mut batch)
        .await?;
    effects::change(store, organization, (spec, id), outcome.effects_before, outcome.effects, &mut batch).await?;
    for Change { before, outcome } in outcome.elsewhere {
        let place = Row::decode(&before.key);
        let Some(Row::Record { resource, id, .. }) = place else { return Err(no_id()) };
        let spec = spec_of_tag(resource).ok_or_else(no_id)?;
        let (was, is) = (outcome.effects_before.as_ref(), &outcome.effects);
        recheck::mark(store, edge, organization.id, (was, is), &mut batch).await?;
        batch.replace(before.key.clone(), before.revision, outcome.json);
        effects::change(store, organization, (spec, id), outcome.effects_before, outcome.effects, &mut batch).await?;
    }
    let mut keys = subjects.keys.clone();
    let subscription = key::subscribed(organization.id);
    if !outcome.events.is_empty() {
        keys.push(subscription.clone());
    }
    if !keys.is_empty() {
        let mut found = store.get(&keys).await?;
        if outcome.events.is_empty() {
            batch.checks.extend(
                keys.into_iter().zip(found).filter(|(_, found)| found.is_none()).map(|(key, _)| Check::Absent(key)),
            );
        } else {
            let subscribed = events::subscribed(found.pop().flatten().is_some(), subscription, &mut batch);
            let data = subjects.admit(&found, &outcome.json, &mut batch)?;
            for kind in outcome.events {
                events::emit(&mut batch, organization.id, edge, kind, &data, subscribed);
            }
        }
    }
    Ok(Prepared { batch, body: outcome.json, revision, object: outcome.object, asks: outcome.asks })
}
