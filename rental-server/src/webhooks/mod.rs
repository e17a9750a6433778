//! The background tasks that deliver webhooks.
//!
//! The relay makes deliveries of the outbox. A lane for each endpoint sends them. Servers that share a store divide the
//! endpoints among them (`cluster`) and signal each other with rows (bells). All of these are tasks of the
//! [`Supervisor`](crate::supervisor::Supervisor).
//!
//! Everything that must survive is in the store before a task acts on it; memory has at most a window of due rows for each
//! lane. A commit signals the relay, the relay signals the lanes, and a lane sleeps until its next delivery is due. Each of
//! them also reads the store by itself after a few seconds, so a lost signal delays a delivery and never loses it.
//! `rental_core::webhooks::attempt` decides what follows an attempt, without any of this.

mod attempt;
pub(crate) mod backlog;
mod cluster;
mod download;
mod hooks;
mod lane;
mod lanes;
pub(crate) mod metrics;
mod outage;
mod ownership;
pub(crate) mod relay;
pub(crate) mod retention;
pub(crate) mod send;
mod settings;

pub(crate) use cluster::servers_without_key;
pub(crate) use download::Downloaded;
pub(crate) use hooks::{Hooks, MOST_IN_FLIGHT};
pub(crate) use settings::{Retention, Settings};

use rental_core::error::Error;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Starts the relay and the lanes, and on a shared store the division of the endpoints among the servers.
///
/// The tasks end after [`Hooks::stop`]; those that are returned have to be waited for. A server that sends no webhooks has
/// none of them: events and deliveries wait in the store, and other servers that share it send.
pub(crate) async fn start(shared: &Arc<Hooks>) -> Result<Vec<JoinHandle<()>>, Error> {
    if !shared.settings.send {
        tracing::warn!("this server sends no webhooks (--no-webhooks); deliveries wait in the store");
        return Ok(Vec::new());
    }
    lanes::start_missing(shared).await?;
    let supervisor = &shared.supervisor;
    let own = || Arc::clone(shared);
    let (of_relay, of_lanes) = (own(), own());
    let mut tasks = vec![
        supervisor.start("relay", move || relay::run(Arc::clone(&of_relay))),
        supervisor.start("lanes", move || lanes::run(Arc::clone(&of_lanes), lane::run)),
    ];
    if shared.ownership.is_some() {
        let (of_cluster, of_bells) = (own(), own());
        tasks.push(supervisor.start("cluster", move || cluster::run(Arc::clone(&of_cluster))));
        tasks.push(supervisor.start("bells", move || cluster::answer_bells(Arc::clone(&of_bells))));
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests;
