//! Several servers on one store: the heartbeat of this server, the endpoints that it sends for, and the bells with which
//! other servers signal it. `rental_core::webhooks::cluster` decides which server sends for an endpoint.

use super::{hooks::Hooks, ownership::Ownership};
use crate::edge;
use rental_core::{
    error::Error,
    resources::{
        Resource,
        organization::SYSTEM,
        to_json,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::key,
    store::{self, Batch, Check, Commit, Key, Prior, Record, Revision, Span, Write, key_of},
    value::{EndpointId, ServerId},
    webhooks::{
        cluster::{Duty, HEARTBEAT_MILLIS, TRUSTED_MILLIS, Watch, duty},
        secret::Fingerprint,
    },
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

/// How often a server reads its bells.
const BELLS: Duration = Duration::from_millis(100);
/// Most bells that are read at a time.
const MOST_BELLS: usize = 200;
/// Rows that are read at a time.
const PAGE: usize = 500;

/// Writes heartbeats and takes its share of the endpoints until the server stops. Then it gives up all endpoints, so that
/// other servers take them over at once.
pub(super) async fn run(hooks: Arc<Hooks>) {
    let Some(ownership) = &hooks.ownership else { return };
    let mut round = Round::default();
    while !hooks.is_stopping() {
        // Without its heartbeat, other servers take over what this one owns.
        if edge::is_right()
            && let Err(error) = round.turn(&hooks, ownership).await
        {
            tracing::warn!(?error, "cannot divide the webhook endpoints among the servers; trying again");
        }
        // The pause limits how often signals cause a turn.
        let _ = tokio::time::timeout(Duration::from_millis(HEARTBEAT_MILLIS), ownership.look.notified()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if let Err(error) = leave(&hooks, ownership).await {
        tracing::warn!(?error, "cannot give up the webhook endpoints; other servers take them over after 10 s");
    }
}

/// Signals the lanes for which other servers have written bells.
pub(super) async fn answer_bells(hooks: Arc<Hooks>) {
    let Some(ownership) = &hooks.ownership else { return };
    while !hooks.is_stopping() {
        let pause = match bells(&hooks, ownership).await {
            Ok(rung) if rung == MOST_BELLS => continue,
            Ok(_) => BELLS,
            Err(error) => {
                tracing::debug!(?error, "cannot read the bells; trying again");
                Duration::from_secs(1)
            }
        };
        let _ = hooks.supervisor.stops_within(pause).await;
    }
}

async fn bells(hooks: &Hooks, ownership: &Ownership) -> Result<usize, Error> {
    let rows = hooks.store().scan(&key::bells(ownership.server), MOST_BELLS).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    // Deleted before the lanes read their due rows: a bell that is written later is read at the next turn.
    let mut batch = Batch::default();
    rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
    hooks.store().commit(batch).await?;
    rows.iter().filter_map(|row| endpoint_of(key_of(row))).for_each(|endpoint| hooks.wake(endpoint));
    Ok(rows.len())
}

/// What a turn needs to know of the turns before it. After a restart of the task it is read again.
#[derive(Default)]
struct Round {
    watch: Watch,
    heartbeat: Revision,
    /// The revision of each endpoint, to notice the changes of other servers.
    endpoints: HashMap<EndpointId, Revision>,
}

impl Round {
    async fn turn(&mut self, hooks: &Arc<Hooks>, ownership: &Ownership) -> Result<(), Error> {
        self.heartbeat(hooks, ownership).await?;
        let heartbeats = all(hooks, key::heartbeats()).await?;
        let heartbeats: Vec<(ServerId, Revision)> =
            heartbeats.iter().filter_map(|row| Some((ServerId::from_uuid(row.key.id()?), row.revision))).collect();
        let (mut alive, dead) = self.watch.look(&heartbeats, ownership.now());
        alive.insert(ownership.server);
        remove_dead_servers(hooks, &heartbeats, &dead).await?;
        remove_left_over_bells(hooks, &alive).await?;
        let rows = all(hooks, key::owners()).await?;
        let owner = |row: &Record| Some((endpoint_of(&row.key)?, (ServerId::from_slice(&row.value)?, row.revision)));
        let owners: HashMap<EndpointId, (ServerId, Revision)> = rows.iter().filter_map(owner).collect();
        ownership.set_owners(owners.iter().map(|(endpoint, (owner, _))| (*endpoint, *owner)).collect());
        let records = all(hooks, Span::newest_first(&key::records(SYSTEM, &webhook_endpoint::SPEC))).await?;
        let now: HashMap<EndpointId, Revision> =
            records.iter().filter_map(|record| Some((endpoint_of(&record.key)?, record.revision))).collect();
        for (endpoint, revision) in &now {
            let owned = owners.get(endpoint).copied();
            match duty(ownership.server, *endpoint, owned.map(|owned| owned.0), &alive) {
                Duty::Keep => start(hooks, ownership, *endpoint),
                Duty::Claim => claim(hooks, ownership, *endpoint, owned.map(|owned| owned.1)).await?,
                Duty::Release => release(hooks, ownership, *endpoint, owned).await?,
                Duty::Leave => drop_lane(hooks, ownership, *endpoint),
            }
            if self.endpoints.get(endpoint).is_some_and(|known| known != revision) && ownership.owns(*endpoint) {
                hooks.endpoint_changed(*endpoint);
            }
        }
        self.endpoints
            .keys()
            .filter(|known| !now.contains_key(known))
            .for_each(|gone| drop_lane(hooks, ownership, *gone));
        for (gone, (owner, revision)) in owners.iter().filter(|(endpoint, _)| !now.contains_key(endpoint)) {
            drop_lane(hooks, ownership, *gone);
            // The owner may have been killed before it noticed that the endpoint was deleted.
            if *owner == ownership.server || !alive.contains(owner) {
                remove_owner(hooks, *gone, *revision).await?;
            }
        }
        self.endpoints = now;
        Ok(())
    }

    /// Writes the heartbeat of this server, which may send for a while from then on.
    async fn heartbeat(&mut self, hooks: &Hooks, ownership: &Ownership) -> Result<(), Error> {
        let (place, began) = (key::heartbeat(ownership.server), ownership.now());
        let mut batch = Batch::default();
        batch.checks.push(if self.heartbeat == 0 {
            Check::Absent(place.clone())
        } else {
            Check::At(place.clone(), self.heartbeat)
        });
        hooks.keys.look().await;
        let names = to_json(&hooks.keys.ring().fingerprints())?;
        batch.writes.push(Write::Put(place.clone(), self.heartbeat + 1, names, Prior::Any));
        if hooks.store().commit(batch).await? == Commit::Applied {
            self.heartbeat += 1;
            // Counted from before the write: other servers count from when they read it, which is later.
            ownership.trust_until(began + TRUSTED_MILLIS);
            return Ok(());
        }
        // Other servers took this one for dead and removed its heartbeat; or a commit was applied and its response lost;
        // or this task was started again.
        self.heartbeat = hooks.store().get(&[place]).await?.pop().flatten().map_or(0, |record| record.revision);
        Ok(())
    }
}

/// Other servers whose last heartbeat does not name this master key.
pub(crate) async fn servers_without_key(hooks: &Hooks, name: &Fingerprint) -> Result<usize, Error> {
    let Some(ownership) = &hooks.ownership else { return Ok(0) };
    let own = key::heartbeat(ownership.server);
    let has = |row: &Record| {
        rental_core::value::read_json::<Vec<Fingerprint>>(&row.value).is_ok_and(|all| all.contains(name))
    };
    Ok(all(hooks, key::heartbeats()).await?.iter().filter(|row| row.key != own && !has(row)).count())
}

/// The endpoint at the end of the key of its record, owner row or bell.
fn endpoint_of(key: &Key) -> Option<EndpointId> {
    key.id().map(EndpointId::from_uuid)
}

/// All sound rows of a span.
async fn all(hooks: &Hooks, mut span: Span) -> Result<Vec<Record>, Error> {
    let mut rows: Vec<Record> = Vec::new();
    loop {
        let page = hooks.store().scan(&span, PAGE).await?;
        let last = page.last().map(|row| key_of(row).clone()).filter(|_| page.len() == PAGE);
        rows.extend(hooks.damaged.all_sound(page));
        match (last, span.order) {
            (None, _) => return Ok(rows),
            (Some(last), store::Order::Ascending) => span.from = store::after(&last),
            (Some(last), store::Order::Descending) => span.to = last,
        }
    }
}

/// Removes the heartbeats of dead servers. A server that was only slow writes its heartbeat again.
async fn remove_dead_servers(
    hooks: &Hooks,
    heartbeats: &[(ServerId, Revision)],
    dead: &BTreeSet<ServerId>,
) -> Result<(), Error> {
    for (server, heartbeat) in heartbeats.iter().filter(|(server, _)| dead.contains(server)) {
        let mut batch = Batch::default();
        batch.checks.push(Check::At(key::heartbeat(*server), *heartbeat));
        batch.delete(key::heartbeat(*server));
        if hooks.store().commit(batch).await? == Commit::Applied {
            tracing::warn!(%server, "a server wrote no heartbeat for 10 s; other servers send for its webhook endpoints");
        }
    }
    Ok(())
}

/// Removes the bells of servers without a heartbeat. Other servers write them until each endpoint of such a server has
/// another owner, so they can also appear after the heartbeat is gone.
async fn remove_left_over_bells(hooks: &Hooks, alive: &BTreeSet<ServerId>) -> Result<(), Error> {
    let mut span = key::bells_of_all();
    while let Some(row) = hooks.store().scan(&span, 1).await?.pop() {
        let Some(server) = key::bell_server(key_of(&row)) else {
            span.from = store::after(key_of(&row));
            continue;
        };
        span.from = key::bells(server).to;
        if alive.contains(&server) {
            continue;
        }
        loop {
            let rows = hooks.store().scan(&key::bells(server), PAGE).await?;
            let mut batch = Batch::default();
            // It may have started since the heartbeats were read.
            batch.checks.push(Check::Absent(key::heartbeat(server)));
            rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
            if hooks.store().commit(batch).await? != Commit::Applied || rows.len() < PAGE {
                break;
            }
        }
    }
    Ok(())
}

/// Starts the lane of an endpoint that this server owns. A lane that was about to end when the endpoint came back misses the
/// signal, so each turn checks that there is a lane.
fn start(hooks: &Arc<Hooks>, ownership: &Ownership, endpoint: EndpointId) {
    if ownership.add(endpoint) || !hooks.has_lane(endpoint) {
        hooks.endpoint_changed(endpoint);
    }
}

async fn claim(
    hooks: &Arc<Hooks>,
    ownership: &Ownership,
    endpoint: EndpointId,
    seen: Option<Revision>,
) -> Result<(), Error> {
    let (place, value) = (key::owner(endpoint), bytes::Bytes::copy_from_slice(ownership.server.as_bytes()));
    let mut batch = Batch::default();
    // A deleted endpoint gets no owner any more.
    batch.checks.push(Check::Present(WebhookEndpoint::key(SYSTEM, endpoint)));
    match seen {
        Some(revision) => batch.replace(place, revision, value),
        None => batch.insert(place, value),
    }
    if hooks.store().commit(batch).await? == Commit::Applied {
        start(hooks, ownership, endpoint);
    }
    Ok(())
}

/// Gives up an endpoint once none of its attempts is in flight.
async fn release(
    hooks: &Hooks,
    ownership: &Ownership,
    endpoint: EndpointId,
    owned: Option<(ServerId, Revision)>,
) -> Result<(), Error> {
    drop_lane(hooks, ownership, endpoint);
    if hooks.has_lane(endpoint) {
        return Ok(());
    }
    forget(hooks, ownership, endpoint, owned).await
}

fn drop_lane(hooks: &Hooks, ownership: &Ownership, endpoint: EndpointId) {
    if ownership.remove(endpoint) {
        hooks.wake(endpoint);
    }
}

/// Removes the row that names the owner of an endpoint, if this server is the owner.
async fn forget(
    hooks: &Hooks,
    ownership: &Ownership,
    endpoint: EndpointId,
    owned: Option<(ServerId, Revision)>,
) -> Result<(), Error> {
    match owned {
        Some((owner, revision)) if owner == ownership.server => remove_owner(hooks, endpoint, revision).await,
        _ => Ok(()),
    }
}

async fn remove_owner(hooks: &Hooks, endpoint: EndpointId, revision: Revision) -> Result<(), Error> {
    let mut batch = Batch::default();
    batch.checks.push(Check::At(key::owner(endpoint), revision));
    batch.delete(key::owner(endpoint));
    hooks.store().commit(batch).await?;
    Ok(())
}

/// Removes the owner rows, the heartbeat and the bells of this server, so that other servers take over its endpoints at
/// once. It waits for the attempts in flight first: otherwise the other servers would send them again.
async fn leave(hooks: &Hooks, ownership: &Ownership) -> Result<(), Error> {
    hooks.until_idle().await;
    for row in all(hooks, key::owners()).await? {
        let owner = ServerId::from_slice(&row.value);
        let owned = owner.map(|owner| (owner, row.revision));
        if let Some(endpoint) = endpoint_of(&row.key) {
            forget(hooks, ownership, endpoint, owned).await?;
        }
    }
    let mut batch = Batch::default();
    batch.delete(key::heartbeat(ownership.server));
    all(hooks, key::bells(ownership.server)).await?.into_iter().for_each(|bell| batch.delete(bell.key));
    hooks.store().commit(batch).await?;
    Ok(())
}
