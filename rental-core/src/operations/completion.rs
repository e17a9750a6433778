//! Completes the batch of a write: the derived rows, holds and events of the object's new state.

use super::{edge::Edge, effects, events};
use crate::{
    error::Error,
    resources::{Outcome, organization::Organization},
    schema::ResourceSpec,
    store::{Batch, Key, Store},
};
use bytes::Bytes;

/// Adds the index entries, holds and events of an object's new state to the batch of its write.
pub(crate) async fn finish(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    spec: &'static ResourceSpec,
    place: Key,
    outcome: Outcome,
    mut batch: Batch,
) -> Result<(Batch, Bytes), Error> {
    let id = place.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
    let object = Bytes::from(outcome.object);
    effects::change(store, organization, (spec, id), outcome.effects_before, outcome.effects, &mut batch).await?;
    if !outcome.events.is_empty() {
        let subscribed = events::is_subscribed(store, organization.id, &mut batch).await?;
        for kind in outcome.events {
            events::emit(&mut batch, organization.id, edge, kind, &object, subscribed);
        }
    }
    Ok((batch, object))
}
