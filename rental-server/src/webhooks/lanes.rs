//! Runs the lanes: one for each endpoint that this server sends for.
//!
//! A lane that panics is started again and reads its endpoint and due rows anew. When this task itself is started again,
//! all lanes are: the bells in [`Hooks`] tell which endpoints have one.

use super::hooks::{Bell, Hooks};
use rental_core::{
    error::Error,
    resources::{organization::SYSTEM, webhook_endpoint},
    rows::key,
    store::{Span, key_of},
    value::EndpointId,
};
use std::{collections::HashSet, future::Future, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// Endpoints that are read at a time.
const PAGE: usize = 200;
/// How long the lanes are waited for when the server stops.
const LONGEST_END: Duration = Duration::from_secs(1);

/// Runs `lane` for each endpoint that has a bell, until the server stops.
pub(super) async fn run<L, F>(hooks: Arc<Hooks>, lane: L)
where
    L: Fn(Arc<Hooks>, EndpointId, Arc<Bell>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (mut running, mut with_lane) = (JoinSet::new(), HashSet::new());
    let mut next_look = Instant::now() + hooks.patience();
    while !hooks.is_stopping() {
        for (id, bell) in hooks.bells() {
            if with_lane.insert(id) {
                running.spawn(supervised(Arc::clone(&hooks), lane.clone(), id, bell));
            }
        }
        tokio::select! {
            Some(ended) = running.join_next(), if !running.is_empty() => {
                let mut ended = Some(ended);
                // Always `Ok`: no lane is aborted, and the supervisor catches panics.
                while let Some(Ok(id)) = ended {
                    with_lane.remove(&id);
                    ended = running.try_join_next();
                }
            }
            () = hooks.new_lanes.notified() => {}
            () = sleep_until(next_look) => {
                next_look = Instant::now() + hooks.patience();
                if let Err(error) = start_missing(&hooks).await {
                    tracing::warn!(?error, "cannot read the webhook endpoints; trying again");
                }
            }
        }
    }
    // The lanes end by themselves, and leave their attempts in flight to `Hooks::stop`. A lane that waits for a store that
    // does not answer is not waited for.
    let all = async { while running.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LONGEST_END, all).await;
    running.detach_all();
}

/// Runs one lane to its end; gives the endpoint.
async fn supervised<L, F>(hooks: Arc<Hooks>, lane: L, id: EndpointId, bell: Arc<Bell>) -> EndpointId
where
    L: Fn(Arc<Hooks>, EndpointId, Arc<Bell>) -> F,
    F: Future<Output = ()> + Send,
{
    let begin = || lane(Arc::clone(&hooks), id, Arc::clone(&bell));
    hooks.supervisor.run_one_of("lane", begin).await;
    id
}

/// Gives each endpoint without a lane one. Among several servers `cluster` does so.
pub(super) async fn start_missing(hooks: &Hooks) -> Result<(), Error> {
    if hooks.ownership.is_some() {
        return Ok(());
    }
    let mut span = Span::newest_first(&key::records(SYSTEM, &webhook_endpoint::SPEC));
    loop {
        let page = hooks.damaged.rows(hooks.store().scan(&span, PAGE).await)?;
        // A damaged endpoint gets its lane too: the lane waits until the endpoint is repaired.
        let missing =
            page.iter().filter_map(|row| key_of(row).id().map(EndpointId::from_uuid)).filter(|id| !hooks.has_lane(*id));
        missing.for_each(|id| hooks.endpoint_changed(id));
        match page.last() {
            Some(last) => span.to = key_of(last).clone(),
            None => return Ok(()),
        }
        tokio::task::yield_now().await;
    }
}
