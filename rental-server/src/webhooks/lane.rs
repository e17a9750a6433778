//! The lane of one endpoint: sends due deliveries, as many at a time as its receiver keeps up with; after a failure one at a
//! time, with growing pauses.
//!
//! A lane is the only sender for its endpoint. In memory it has a window of due rows. A due row stays in the store until the
//! outcome of its attempt is committed, so attempts that were in flight at a crash are made again.

use super::{
    attempt::{Began, Damage, Due, Outcome, Report, Target, attempt, load, read_due, records, revisions},
    hooks::{Bell, Hooks},
    retention,
};
use crate::{
    edge,
    limits::{Holder, Part},
};
use rental_core::{
    error::Error,
    resources::webhook_endpoint::DISABLED_BY_FAILURES,
    rows::key,
    store::key_of,
    value::{DeliveryId, EndpointId},
    webhooks::{
        concurrency::Concurrency,
        fan_out::{FRESH, RETRY},
    },
};
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::JoinSet};

/// Least due rows that are read at a time; at least three times as many as can be in flight.
const WINDOW: usize = 64;
/// How often a lane looks for deliveries that cannot be sent and whose retention has ended: it reads all old due rows.
const EXPIRE_DAMAGED_EVERY: Duration = Duration::from_secs(20);

struct Lane {
    hooks: Arc<Hooks>,
    id: EndpointId,
    target: Arc<Target>,
    /// When the lane last compared its endpoint and secrets with those in the store.
    looked_at: Instant,
    /// When the lane last looked for deliveries that cannot be sent and whose retention has ended.
    expired_at: Instant,
    window: VecDeque<Due>,
    /// Whether the store may have due rows that are not in the window.
    unread: bool,
    /// When the next retry becomes due.
    next_retry: Option<u64>,
    busy: HashSet<DeliveryId>,
    /// Deliveries that cannot be sent: a row is damaged, or the attempt panicked. The lane skips them until the endpoint
    /// changes or the lane is started again.
    damaged: HashSet<DeliveryId>,
    running: JoinSet<Report>,
    concurrency: Concurrency,
    /// Receives a permit for an attempt when it is this lane's turn.
    turn: Option<oneshot::Receiver<Part>>,
    /// A permit that was received, for the next attempt.
    permit: Option<Part>,
    failures: u32,
    /// Attempts since the last success that failed or could not be made. Those of one burst count as one.
    probes: u32,
    /// The number of the last attempt of that burst.
    burst_until: u64,
    /// When the next attempt may begin; by a clock that nobody sets back.
    probe_at: Option<Instant>,
}

/// Runs until the endpoint is deleted, another server sends for it, or the server stops.
pub(super) async fn run(hooks: Arc<Hooks>, id: EndpointId, bell: Arc<Bell>) {
    let mut lane = None;
    loop {
        if hooks.is_stopping() {
            // Attempts in flight end by themselves. Each has a permit, and `Hooks::stop` waits for all permits.
            if let Some(Lane { mut running, .. }) = lane {
                running.detach_all();
            }
            return;
        }
        if !hooks.owns(id) && lane.as_ref().is_none_or(|lane| lane.running.is_empty()) {
            // Another server sends for it now.
            hooks.forget_lane(id);
            return;
        }
        if lane.is_none() || bell.changed.swap(false, Ordering::AcqRel) {
            match load(&hooks, id).await {
                Ok(Some(target)) => lane = Some(Lane::reloaded(lane, &hooks, id, target)),
                Ok(None) => {
                    hooks.forget_lane(id);
                    // The endpoint was deleted. The outcomes of the attempts in flight are still saved.
                    if let Some(Lane { mut running, .. }) = lane {
                        running.detach_all();
                    }
                    return;
                }
                Err(Error::Damaged(row)) => {
                    hooks.damaged.note(&row);
                    if let Some(lane) = &mut lane {
                        lane.drain(&bell).await;
                    }
                    // Until somebody repairs the endpoint: its change signals this lane.
                    let _ = tokio::time::timeout(hooks.patience(), bell.ring.notified()).await;
                    bell.changed.store(true, Ordering::Release);
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%id, ?error, "cannot load a webhook endpoint; trying again");
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    bell.changed.store(true, Ordering::Release);
                    continue;
                }
            }
        }
        if let Some(lane) = &mut lane {
            lane.turn(&bell).await;
            if lane.looked_at.elapsed() >= hooks.patience() {
                lane.looked_at = Instant::now();
                let seen = lane.target.revisions;
                // A read that fails is tried again after the next sleep.
                if records(&hooks, id).await.is_ok_and(|found| revisions(&found) != seen) {
                    bell.changed.store(true, Ordering::Release);
                }
                if lane.expired_at.elapsed() >= EXPIRE_DAMAGED_EVERY {
                    lane.expired_at = Instant::now();
                    lane.expire_damaged().await;
                }
            }
        }
    }
}

impl Lane {
    fn reloaded(old: Option<Self>, hooks: &Arc<Hooks>, id: EndpointId, target: Target) -> Self {
        let failures = target.endpoint.failures();
        let mut lane = old.unwrap_or_else(|| Self {
            hooks: Arc::clone(hooks),
            id,
            target: Arc::new(target.clone()),
            looked_at: Instant::now(),
            expired_at: Instant::now(),
            window: VecDeque::new(),
            unread: true,
            next_retry: None,
            busy: HashSet::new(),
            damaged: HashSet::new(),
            running: JoinSet::new(),
            concurrency: Concurrency::default(),
            turn: None,
            permit: None,
            failures,
            probes: failures.min(1),
            burst_until: 0,
            probe_at: None,
        });
        if failures == 0 {
            // The endpoint was enabled again or has another URL, or another server had a success.
            (lane.probes, lane.probe_at) = (0, None);
        }
        (lane.failures, lane.unread, lane.target) = (failures, true, Arc::new(target));
        lane.damaged.clear();
        lane
    }

    /// Starts attempts, then waits for the end of an attempt, a signal, or the next due row. A lane that may not send reads the
    /// store after a while too: the endpoint may have been enabled, or this server may own it again.
    async fn turn(&mut self, bell: &Bell) {
        let mut wake = None;
        let sends = self.target.endpoint.is_enabled() && self.hooks.may_send(self.id);
        if sends {
            if let Err(error) = self.start_due().await {
                tracing::warn!(endpoint = %self.id, ?error, "cannot read the due rows of a webhook endpoint; trying again");
                wake = Some(Duration::from_secs(1));
            } else {
                wake = self.next_wake();
            }
        } else {
            (self.turn, self.permit) = (None, None);
        }
        let longest = self.hooks.patience();
        let sleep = wake.map_or(longest, |wake| wake.min(longest));
        tokio::select! {
            Some(report) = self.running.join_next(), if !self.running.is_empty() => {
                if let Ok(report) = report {
                    self.note(&report, bell);
                }
            }
            permit = received(&mut self.turn) => (self.turn, self.permit) = (None, permit),
            () = bell.ring.notified() => self.unread = true,
            () = tokio::time::sleep(sleep) => self.unread = true,
        }
    }

    /// Most attempts in flight now: one while the endpoint is probed.
    fn most(&self) -> usize {
        if self.failures > 0 || self.probes > 0 { 1 } else { self.concurrency.limit() as usize }
    }

    async fn start_due(&mut self) -> Result<(), Error> {
        // What is not needed any more is given back at the end.
        let mut received = self.permit.take();
        while self.running.len() < self.most() && self.until_probe().is_zero() {
            if self.window.is_empty() && self.unread {
                self.refill().await?;
            }
            let Some(next) = self.window.front().copied() else { break };
            let Some(permit) = received.take().or_else(|| self.ask_for_permit()) else { break };
            self.window.pop_front();
            self.busy.insert(next.delivery);
            let began = Began { number: self.concurrency.begin(), failures: self.failures };
            let attempt = attempt(Arc::clone(&self.hooks), Arc::clone(&self.target), next, began, permit);
            self.running.spawn(attempt);
        }
        Ok(())
    }

    /// A permit, if this endpoint may have one now. Otherwise the lane waits for its turn.
    fn ask_for_permit(&mut self) -> Option<Part> {
        if self.turn.is_some() {
            return None;
        }
        let holder = Holder::from(self.target.endpoint.organization_id).member(self.id.uuid().as_u128());
        self.hooks.attempts.queue(holder, 1).map_err(|turn| self.turn = Some(turn)).ok()
    }

    /// Fills the window: first attempts before retries, with a few retries in each window, so that neither starves.
    async fn refill(&mut self) -> Result<(), Error> {
        loop {
            let known = self.damaged.len();
            self.read_window().await?;
            // A window of damaged rows alone is read again with room for as many more, until there are no more rows.
            if !self.window.is_empty() || self.damaged.len() == known {
                return Ok(());
            }
        }
    }

    async fn read_window(&mut self) -> Result<(), Error> {
        let now = edge::now().millis();
        let window = WINDOW.max(3 * self.most());
        let room = window + self.busy.len() + self.damaged.len();
        let (fresh, fresh_left) = self.due_rows(FRESH, room).await?;
        let (retries, retries_left) = self.due_rows(RETRY, room).await?;
        let full = fresh_left || retries_left;
        self.next_retry = fresh.iter().chain(&retries).map(|row| row.millis).find(|millis| *millis > now);
        let ready = |row: &&Due| row.millis <= now && !self.busy.contains(&row.delivery);
        let mut retries = retries.iter().filter(ready);
        for (at, row) in fresh.iter().filter(ready).enumerate() {
            self.window.push_back(*row);
            if at % 8 == 7 {
                self.window.extend(retries.next());
            }
        }
        self.window.extend(retries);
        self.unread = full && !self.window.is_empty();
        Ok(())
    }

    /// The first due rows of a class that can be sent, and whether there may be more.
    async fn due_rows(&mut self, class: u8, room: usize) -> Result<(Vec<Due>, bool), Error> {
        let found = self.hooks.store().scan(&key::due_rows(self.id, class), room).await;
        let found = self.hooks.damaged.rows(found)?;
        let full = found.len() == room;
        let mut rows = Vec::with_capacity(found.len());
        for row in found {
            let delivery = key_of(&row).id().map(DeliveryId::from_uuid);
            match row.map_err(Error::Damaged).and_then(|record| read_due(&record, class)) {
                Ok(due) if self.damaged.contains(&due.delivery) => {}
                Ok(due) => rows.push(due),
                Err(error) => {
                    self.hooks.damaged.skip::<()>(Err(error))?;
                    self.damaged.extend(delivery);
                }
            }
        }
        Ok((rows, full))
    }

    /// Fails the deliveries that cannot be sent, once their retention has ended. No attempt of them does: there is none.
    async fn expire_damaged(&self) {
        if self.damaged.is_empty() {
            return;
        }
        if let Err(error) = retention::expire(&self.hooks, self.id, &self.damaged, edge::now()).await {
            tracing::warn!(endpoint = %self.id, ?error, "cannot fail deliveries whose retention has ended; trying again");
        }
    }

    /// How long no attempt may begin.
    fn until_probe(&self) -> Duration {
        self.probe_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    /// How long the lane has nothing to do without a signal.
    fn next_wake(&self) -> Option<Duration> {
        if self.running.len() >= self.most() || self.turn.is_some() {
            // No attempt can start before another one ends or a permit is received, and both wake the lane.
            return None;
        }
        let waiting = (self.unread || !self.window.is_empty()) && self.running.is_empty();
        let (probe, now) = (waiting.then(|| self.until_probe()), edge::now().millis());
        let retry = self.next_retry.map(|at| Duration::from_millis(at.saturating_sub(now)).max(self.until_probe()));
        [probe, retry].into_iter().flatten().min()
    }

    /// Waits for the attempts in flight.
    async fn drain(&mut self, bell: &Bell) {
        (self.turn, self.permit) = (None, None);
        while let Some(report) = self.running.join_next().await {
            if let Ok(report) = report {
                self.note(&report, bell);
            }
        }
    }

    fn note(&mut self, report: &Report, bell: &Bell) {
        self.busy.remove(&report.delivery);
        let began = report.began;
        match report.outcome {
            Outcome::Success(took) => {
                let in_flight = u32::try_from(self.running.len() + 1).unwrap_or(u32::MAX);
                self.concurrency.succeeded(took, self.hooks.settings.timeout, in_flight);
                (self.failures, self.probes, self.probe_at) = (0, 0, None);
            }
            Outcome::Failure { failures, disables } => {
                self.failures = failures;
                self.pause(began.number);
                if disables {
                    self.disabled();
                }
            }
            Outcome::NotSaved => self.pause(began.number),
            Outcome::Nothing => self.unread = true,
            Outcome::Damaged(damage) => {
                self.damaged.insert(report.delivery);
                self.unread = true;
                if matches!(damage, Damage::Endpoint) {
                    // The lane loads the endpoint again, finds it damaged, and waits until it is repaired.
                    bell.changed.store(true, Ordering::Release);
                }
            }
        }
    }

    /// The attempt with this number failed, or could not be made: the next one begins after a pause, which grows with each.
    fn pause(&mut self, number: u64) {
        self.concurrency.failed(number);
        // Attempts that were in flight at the first failure count as one failed probe.
        if self.probes == 0 || number > self.burst_until {
            (self.probes, self.burst_until) = (self.probes + 1, self.concurrency.last());
        }
        let millis = self.hooks.settings.schedule.probe_spacing(self.probes).max(0).unsigned_abs();
        self.probe_at = Some(Instant::now() + Duration::from_millis(millis));
        self.unread = true;
    }

    /// Its failures have disabled the endpoint. The due rows stay in the store until it is enabled again.
    fn disabled(&mut self) {
        self.window.clear();
        self.hooks.metrics.disabled.inc();
        let mut target = Target::clone(&self.target);
        target.endpoint.disable(DISABLED_BY_FAILURES, edge::now());
        self.target = Arc::new(target);
    }
}

/// The permit that a lane waits for. Never, if it waits for none.
async fn received(turn: &mut Option<oneshot::Receiver<Part>>) -> Option<Part> {
    match turn {
        Some(turn) => turn.await.ok(),
        None => std::future::pending().await,
    }
}
