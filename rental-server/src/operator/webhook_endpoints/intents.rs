//! The changes of a webhook endpoint. Each is one transaction.

use crate::{
    edge,
    operator::collections,
    webhooks::{Hooks, relay},
};
use bytes::Bytes;
use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Intent, Prepared, Preparing, Update},
    resources::{
        Collection, effects,
        organization::{Organization, SYSTEM},
        parse, to_json,
        webhook_endpoint::{self, EndpointStatus, WebhookEndpoint},
    },
    rows::key,
    store::{Batch, Check, Record, Store, get_one},
    tasks::Task,
    value::EndpointId,
    webhooks::{
        master_key,
        secret::{MasterKeys, PREFIX, Sealed, SealedSecret},
    },
};
use serde_json::json;
use std::sync::{Mutex, PoisonError};

pub(super) static WEBHOOK_ENDPOINTS: &Collection = collections::offered(&webhook_endpoint::SPEC);

/// Loads an endpoint by the id in a path.
pub(super) async fn load(store: &dyn Store, id: &str) -> Result<(Record, WebhookEndpoint), Error> {
    let record = operations::get(store, SYSTEM, &webhook_endpoint::SPEC, id).await?;
    let endpoint = parse(&record.key, &record.value)?;
    Ok((record, endpoint))
}

/// A new secret, and a nonce to seal it with.
pub(super) struct Fresh {
    pub(super) text: String,
    nonce: [u8; 24],
}

impl Fresh {
    pub(super) fn new() -> Self {
        let mut nonce = [0; 24];
        nonce.copy_from_slice(&edge::secret_bytes()[..24]);
        Self { text: format!("{PREFIX}{}", hex::encode(edge::secret_bytes())), nonce }
    }

    /// The new secret, sealed with the master key in use, which `batch` checks.
    async fn seal(
        &self,
        store: &dyn Store,
        keys: &MasterKeys,
        endpoint: EndpointId,
        batch: &mut Batch,
    ) -> Result<SealedSecret, Error> {
        let key = master_key::sealing(store, keys, batch).await?;
        key.seal(endpoint, self.nonce, &self.text).map_err(Error::Internal)
    }
}

pub(super) struct Make<'a> {
    pub(super) hooks: &'a Hooks,
    pub(super) fresh: &'a Fresh,
    pub(super) create: Create<'a>,
    /// The id of the endpoint that was prepared last; `None` for a replay.
    pub(super) made: Mutex<Option<EndpointId>>,
}

impl Intent for Make<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let mut prepared = self.create.prepare(store, edge).await?;
            let made = prepared.object::<WebhookEndpoint>()?;
            self.hooks.check_receiver(&made.url)?;
            let (id, organization) = (made.id, made.organization_id);
            *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
            let mark = get_one(store, &key::subscribed(organization)).await?;
            // Damaged ones count as well: the relay reads no more rows than this.
            if relay::endpoint_rows(self.hooks, organization).await?.len() >= relay::MOST_ENDPOINTS {
                return Err(Error::Conflict(format!(
                    "An organization has at most {} webhook endpoints. Delete one first.",
                    relay::MOST_ENDPOINTS
                )));
            }
            let mut sealed = Sealed::default();
            let new = self.fresh.seal(store, &self.hooks.keys.ring(), id, &mut prepared.batch).await?;
            sealed.rotate(new, edge.now(), edge.now());
            prepared.batch.insert(key::secrets(id), to_json(&sealed)?);
            // From now on the organization's events go through the outbox; see `operations::is_subscribed`. The check of
            // the mark's revision serializes two requests that create the last endpoint.
            match mark {
                Some(record) => prepared.batch.replace(record.key, record.revision, Bytes::new()),
                None => prepared.batch.insert(key::subscribed(organization), Bytes::new()),
            }
            Ok(prepared)
        })
    }
}

pub(super) struct Change<'a> {
    pub(super) hooks: &'a Hooks,
    pub(super) update: Update<'a>,
}

impl Intent for Change<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let prepared = self.update.prepare(store, edge).await?;
            self.hooks.check_receiver(&prepared.object::<WebhookEndpoint>()?.url)?;
            Ok(prepared)
        })
    }
}

pub(super) struct Switch<'a> {
    pub(super) id: &'a str,
    pub(super) to: EndpointStatus,
}

impl Intent for Switch<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (before, _) = load(store, self.id).await?;
            let now = edge.now();
            let rule = |endpoint: &mut WebhookEndpoint| {
                match self.to {
                    EndpointStatus::Enabled => endpoint.enable(now),
                    EndpointStatus::Disabled => endpoint.disable("disabled by the operator", now),
                }
                Ok(Vec::new())
            };
            operations::edit(store, edge, &Organization::system(), before, rule).await
        })
    }
}

pub(super) struct Delete<'a> {
    pub(super) id: &'a str,
}

impl Intent for Delete<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (record, endpoint) = load(store, self.id).await?;
            let mut batch = Batch::default();
            // The due rows can be too many for this batch. A damaged row with the id of the task must not keep the endpoint.
            Task::endpoint_deletion(endpoint.id, edge.now()).begin_over(&mut batch)?;
            effects::index_keys(SYSTEM, &endpoint).into_iter().for_each(|entry| batch.delete(entry));
            batch.checks.push(Check::At(record.key.clone(), record.revision));
            batch.delete(record.key);
            batch.delete(key::secrets(endpoint.id));
            let (id, whose) = (endpoint.id, endpoint.organization_id);
            let body =
                json!({"id": id, "object": "webhook_endpoint", "organization_id": whose, "deleted": true}).to_string();
            Ok(Prepared {
                batch,
                body: body.into(),
                revision: record.revision,
                object: Some(Box::new(endpoint)),
                asks: Vec::new(),
            })
        })
    }
}

pub(super) struct Rotate<'a> {
    pub(super) hooks: &'a Hooks,
    pub(super) fresh: &'a Fresh,
    pub(super) id: &'a str,
    pub(super) seconds: i64,
}

impl Intent for Rotate<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (record, endpoint) = load(store, self.id).await?;
            let place = key::secrets(endpoint.id);
            let stored = get_one(store, &place).await?;
            let stored = stored.ok_or_else(|| Error::Internal("an endpoint has no secrets".into()))?;
            let mut sealed: Sealed =
                rental_core::value::read_json(&stored.value).map_err(|error| Error::damaged(&place, &error))?;
            let end = edge.now().plus_millis(self.seconds * 1000);
            let (keys, mut batch) = (self.hooks.keys.ring(), Batch::default());
            let new = self.fresh.seal(store, &keys, endpoint.id, &mut batch).await?;
            // A secret that nobody can open cannot sign during the overlap.
            sealed.0.retain(|old| keys.open(endpoint.id, old).is_ok());
            sealed.rotate(new, end, edge.now());
            batch.checks.push(Check::At(record.key, record.revision));
            batch.replace(place, stored.revision, to_json(&sealed)?);
            Ok(Prepared {
                batch,
                body: record.value,
                revision: record.revision,
                object: Some(Box::new(endpoint)),
                asks: Vec::new(),
            })
        })
    }
}
