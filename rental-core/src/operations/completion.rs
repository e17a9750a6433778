//! Completes the batch of a write: the derived rows, holds and events of the object's new state.

use super::{edge::Edge, effects, events, intent::Prepared};
use crate::{
    error::Error,
    resources::{Outcome, organization::Organization},
    schema::ResourceSpec,
    store::{Batch, Key, Revision, Store},
};

/// Adds the index entries, holds and events of an object's new state to the batch of its write. `revision` is that of the
/// object after the commit.
pub(crate) async fn finish(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    spec: &'static ResourceSpec,
    (place, revision): (Key, Revision),
    outcome: Outcome,
    mut batch: Batch,
) -> Result<Prepared, Error> {
    let id = place.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
    effects::change(store, organization, (spec, id), outcome.effects_before, outcome.effects, &mut batch).await?;
    if !outcome.events.is_empty() {
        let subscribed = events::is_subscribed(store, organization.id, &mut batch).await?;
        for kind in outcome.events {
            events::emit(&mut batch, organization.id, edge, kind, &outcome.json, subscribed);
        }
    }
    Ok(Prepared { batch, body: outcome.json, revision, object: outcome.object })
}
