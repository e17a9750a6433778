//! What a server does beside the requests: deliveries, tasks, attachments that are derived again, a sweep, and an operator
//! who deletes a webhook endpoint.

use crate::disk::Dice;
use rental_core::{
    attachments::again,
    error::Error,
    operations::{Edge, idempotency::remove_expired},
    resources::{
        effects,
        organization::SYSTEM,
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::{key, outbox},
    store::{Batch, Check, Record, Span, Store, all_sound},
    tasks::{self, Task},
    value::OrganizationId,
    webhooks::{fan_out, secret::MasterKeys},
};

/// What the server does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Relay,
    Task,
    Attachments,
    Sweep,
    DeleteEndpoint,
}

impl Work {
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.roll(15) {
            0..=3 => Self::Relay,
            4..=10 => Self::Task,
            11 | 12 => Self::Attachments,
            13 => Self::Sweep,
            _ => Self::DeleteEndpoint,
        }
    }

    /// One step of it.
    pub(crate) async fn step(self, store: &dyn Store, edge: &dyn Edge) -> Result<(), Error> {
        match self {
            Self::Relay => relay(store, edge).await,
            Self::Task => task(store, edge).await,
            Self::Attachments => attachments(store, edge).await,
            Self::Sweep => remove_expired(store, edge.now(), 3, &mut |row| panic!("a damaged row: {row:?}")).await,
            Self::DeleteEndpoint => delete_endpoint(store, edge).await,
        }
    }
}

/// Makes deliveries of what is in the outbox.
async fn relay(store: &dyn Store, edge: &dyn Edge) -> Result<(), Error> {
    let rows = all_sound(store.scan(&key::outbox_rows(), 16).await?)?;
    let waiting = rows.iter().map(outbox::read).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = waiting.first() else { return Ok(()) };
    let organization = first.organization;
    let endpoints = endpoints(store, organization).await?.into_iter().map(|(_, endpoint)| endpoint).collect();
    let (batch, _) = fan_out::plan(&waiting, &[(organization, endpoints)].into(), edge)?;
    store.commit(batch).await?;
    Ok(())
}

async fn endpoints(store: &dyn Store, organization: OrganizationId) -> Result<Vec<(Record, WebhookEndpoint)>, Error> {
    let prefix = webhook_endpoint::of_organization(organization).prefix(SYSTEM, &webhook_endpoint::SPEC);
    let span = Span::newest_first(&prefix).following(key::records(SYSTEM, &webhook_endpoint::SPEC));
    let rows = all_sound(store.scan(&span, 50).await?)?;
    rows.into_iter().map(|row| Ok((row.clone(), parse(&row.key, &row.value)?))).collect()
}

/// One step of the first task.
async fn task(store: &dyn Store, edge: &dyn Edge) -> Result<(), Error> {
    let Some(first) = all_sound(store.scan(&key::tasks(), 1).await?)?.pop() else { return Ok(()) };
    let keys = MasterKeys::parse(&"7".repeat(64)).expect("a master key");
    let mut damaged = Vec::new();
    tasks::step(store, &first, (&keys, edge.now()), &mut damaged).await?;
    assert!(damaged.is_empty(), "{damaged:?}");
    Ok(())
}

/// Derives attachments of the first marked vehicle again.
async fn attachments(store: &dyn Store, edge: &dyn Edge) -> Result<(), Error> {
    let Some(mark) = all_sound(store.scan(&key::rechecks(), 1).await?)?.pop() else { return Ok(()) };
    let mut damaged = Vec::new();
    again::step(store, edge, &mark, &mut damaged).await?;
    assert!(damaged.is_empty(), "{damaged:?}");
    Ok(())
}

/// An operator deletes one of three webhook endpoints, as the server does. Two always stay.
async fn delete_endpoint(store: &dyn Store, edge: &dyn Edge) -> Result<(), Error> {
    let rows = all_sound(store.scan(&Span::under(key::records(SYSTEM, &webhook_endpoint::SPEC)), 50).await?)?;
    let [record, _, _] = rows.as_slice() else { return Ok(()) };
    let endpoint: WebhookEndpoint = parse(&record.key, &record.value)?;
    let mut batch = Batch::default();
    Task::endpoint_deletion(endpoint.id, edge.now()).begin_over(&mut batch)?;
    effects::index_keys(SYSTEM, &endpoint).into_iter().for_each(|entry| batch.delete(entry));
    batch.checks.push(Check::At(record.key.clone(), record.revision));
    batch.delete(record.key.clone());
    batch.delete(key::secrets(endpoint.id));
    store.commit(batch).await?;
    Ok(())
}
