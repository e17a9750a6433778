//! One endpoint's lane: what is due goes out, a few at a time; after a failure one at a time, spaced.
//!
//! A lane is the only sender for its endpoint. Its memory is a window of due rows; the rows themselves stay in the
//! store until the attempt's outcome is committed, so whatever is in flight at a crash is sent again.

use crate::{
    edge,
    webhooks::{Bell, Hooks, send::Message},
};
use bytes::Bytes;
use rental_core::{
    error::Error,
    resources::{
        delivery::{self, Attempt, Delivery, DeliveryStatus},
        organization::SYSTEM,
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    store::{Batch, Commit, Prior, Record, Revision, key, key_of},
    value::Timestamp,
    webhook::{
        attempt::{Ending, Next, Verdict, after_attempt},
        fan_out::{FRESH, RETRY, due},
        secret::Sealed,
        signature, target,
    },
};
use reqwest::Url;
use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Most attempts in flight for one endpoint. Half of what disables it, so that a receiver that goes away while a full
/// burst is under way still has ten spaced probes before it is disabled: three minutes on the default schedule.
const CONCURRENCY: usize = 10;
/// Due rows that are read at a time.
const WINDOW: usize = 64;

/// An endpoint with its secrets, as of the last change.
#[derive(Clone)]
struct Target {
    endpoint: WebhookEndpoint,
    /// Revisions of the endpoint's record and of its secrets.
    revisions: [Revision; 2],
    url: Url,
    secrets: Vec<(String, Option<Timestamp>)>,
}

/// A row of the due index.
#[derive(Clone, Copy, Debug)]
struct Due {
    organization: Uuid,
    class: u8,
    millis: u64,
    delivery: Uuid,
}

/// How an attempt went, for the lane that made it.
struct Report {
    delivery: Uuid,
    /// The endpoint's failures in a row, as committed.
    failures: u32,
    success: bool,
    disabled: bool,
    /// Whether the endpoint was thought to be healthy when the attempt began.
    began_healthy: bool,
    /// Why the attempt could not be made or its outcome not be saved, when no repetition can help.
    damage: Option<Damage>,
}

/// What is damaged.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// The delivery or its event.
    Delivery,
    /// The endpoint, which all its deliveries need.
    Endpoint,
}

struct Lane {
    hooks: Arc<Hooks>,
    id: Uuid,
    target: Arc<Target>,
    /// When the lane last compared its endpoint and secrets with the store.
    looked_at: Instant,
    window: VecDeque<Due>,
    /// Whether the store may hold due rows that the window has not.
    unread: bool,
    /// When the first retry is due that is not due yet.
    next_retry: Option<u64>,
    busy: HashSet<Uuid>,
    /// Deliveries that a damaged row keeps from being sent. They are left alone until the endpoint changes or the server
    /// starts again, so that no turn is spent on them.
    damaged: HashSet<Uuid>,
    running: JoinSet<Report>,
    failures: u32,
    /// Failed probes since the trouble began; the burst that began it counts as one.
    probes: u32,
    probe_at: Timestamp,
}

/// Runs until the endpoint is deleted or the server stops.
pub(super) async fn run(hooks: Arc<Hooks>, id: Uuid, bell: Arc<Bell>) {
    let mut lane = None;
    loop {
        if hooks.is_stopping() {
            // Attempts in flight end by themselves: each holds a permit that `Hooks::stop` waits for.
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
                    return;
                }
                Err(Error::Damaged(row)) => {
                    hooks.damaged.note(&row);
                    if let Some(lane) = &mut lane {
                        lane.drain(&bell).await;
                    }
                    // Until somebody repairs it; whoever changes the endpoint rings.
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
            }
        }
    }
}

/// The records of an endpoint and of its secrets.
async fn records(hooks: &Hooks, id: Uuid) -> Result<[Option<Record>; 2], Error> {
    let keys = [key::record(SYSTEM, &webhook_endpoint::SPEC, id), key::secrets(id)];
    let mut found = hooks.store().get(&keys).await?;
    let secrets = found.pop().flatten();
    Ok([found.pop().flatten(), secrets])
}

/// Their revisions; 0 for a record that does not exist.
fn revisions(records: &[Option<Record>; 2]) -> [Revision; 2] {
    records.each_ref().map(|record| record.as_ref().map_or(0, |record| record.revision))
}

async fn load(hooks: &Hooks, id: Uuid) -> Result<Option<Target>, Error> {
    let found = records(hooks, id).await?;
    let revisions = revisions(&found);
    let [endpoint, secrets] = found;
    let Some(record) = endpoint else { return Ok(None) };
    let endpoint: WebhookEndpoint = parse(&record.key, &record.value)?;
    let url =
        target::parse(&endpoint.url).map_err(|rule| Error::Internal(format!("the URL of endpoint {id} {rule}")))?;
    let sealed: Sealed = match secrets {
        Some(record) => serde_json::from_slice(&record.value).map_err(|error| Error::damaged(&record.key, &error))?,
        None => Sealed::default(),
    };
    let open = |secret: &rental_core::webhook::secret::SealedSecret| {
        hooks.master_key.open(id, &secret.sealed).map(|text| (text, secret.expires_at)).map_err(Error::Internal)
    };
    let secrets = sealed.0.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
    Ok(Some(Target { endpoint, revisions, url, secrets }))
}

impl Lane {
    fn reloaded(old: Option<Self>, hooks: &Arc<Hooks>, id: Uuid, target: Target) -> Self {
        let failures = target.endpoint.failures();
        let mut lane = old.unwrap_or_else(|| Self {
            hooks: Arc::clone(hooks),
            id,
            target: Arc::new(target.clone()),
            looked_at: Instant::now(),
            window: VecDeque::new(),
            unread: true,
            next_retry: None,
            busy: HashSet::new(),
            damaged: HashSet::new(),
            running: JoinSet::new(),
            failures,
            probes: failures.min(1),
            probe_at: Timestamp::default(),
        });
        if failures == 0 && lane.failures > 0 {
            // Enabled again, or a success that another lane saw: start anew.
            (lane.probes, lane.probe_at) = (0, Timestamp::default());
        }
        (lane.failures, lane.unread, lane.target) = (failures, true, Arc::new(target));
        lane.damaged.clear();
        lane
    }

    /// Starts what may start, then waits for whatever comes first. A lane that may not send looks by itself too: for an
    /// endpoint that was enabled, or that it owns again.
    async fn turn(&mut self, bell: &Bell) {
        let mut wake = None;
        let sends = self.target.endpoint.is_enabled() && self.hooks.may_send(self.id);
        if sends {
            if let Err(error) = self.start_due().await {
                tracing::warn!(endpoint = %self.id, ?error, "cannot read what is due; trying again");
                wake = Some(edge::now().plus_millis(1000).millis());
            } else {
                wake = self.next_wake();
            }
        }
        let longest = self.hooks.patience();
        let sleep = wake
            .map_or(longest, |millis| Duration::from_millis(millis.saturating_sub(edge::now().millis())).min(longest));
        tokio::select! {
            Some(report) = self.running.join_next(), if !self.running.is_empty() => {
                if let Ok(report) = report {
                    self.note(&report, bell);
                }
            }
            () = bell.ring.notified() => self.unread = true,
            () = tokio::time::sleep(sleep) => self.unread = true,
        }
    }

    /// Attempts that may be in flight: one while the endpoint is probed.
    fn most(&self) -> usize {
        if self.failures > 0 { 1 } else { CONCURRENCY }
    }

    async fn start_due(&mut self) -> Result<(), Error> {
        while self.running.len() < self.most() && edge::now() >= self.probe_at {
            if self.window.is_empty() && self.unread {
                self.refill().await?;
            }
            let Some(next) = self.window.pop_front() else { break };
            self.busy.insert(next.delivery);
            let attempt = attempt(Arc::clone(&self.hooks), Arc::clone(&self.target), next, self.failures);
            self.running.spawn(attempt);
        }
        Ok(())
    }

    /// Reads due rows: first attempts before retries, but a few retries in each window, so that neither starves.
    async fn refill(&mut self) -> Result<(), Error> {
        loop {
            let known = self.damaged.len();
            self.read_window().await?;
            // A window of damaged rows alone is read again, with room for as many more: it ends with the rows.
            if !self.window.is_empty() || self.damaged.len() == known {
                return Ok(());
            }
        }
    }

    async fn read_window(&mut self) -> Result<(), Error> {
        let now = edge::now().millis();
        let room = WINDOW + self.busy.len() + self.damaged.len();
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
        let found = self.hooks.store().scan(&key::due_rows(self.id, class), room).await?;
        let full = found.len() == room;
        let mut rows = Vec::with_capacity(found.len());
        for row in found {
            let delivery = key_of(&row).id();
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

    /// When to look again without being told.
    fn next_wake(&self) -> Option<u64> {
        if self.running.len() >= self.most() {
            // Nothing can start before an attempt ends, and that wakes the lane.
            return None;
        }
        let waiting = (self.unread || !self.window.is_empty()) && self.running.is_empty();
        let probe = waiting.then(|| self.probe_at.millis());
        let retry = self.next_retry.map(|millis| millis.max(self.probe_at.millis()));
        [probe, retry].into_iter().flatten().min()
    }

    /// Waits for the attempts in flight.
    async fn drain(&mut self, bell: &Bell) {
        while let Some(report) = self.running.join_next().await {
            if let Ok(report) = report {
                self.note(&report, bell);
            }
        }
    }

    fn note(&mut self, report: &Report, bell: &Bell) {
        self.busy.remove(&report.delivery);
        if let Some(damage) = report.damage {
            self.damaged.insert(report.delivery);
            self.unread = true;
            if matches!(damage, Damage::Endpoint) {
                // Loading it again shows the damage, and the lane waits until it is repaired.
                bell.changed.store(true, Ordering::Release);
            }
            return;
        }
        if report.success {
            (self.failures, self.probes, self.probe_at) = (report.failures, 0, Timestamp::default());
        } else {
            self.failures = report.failures;
            // What was in flight when the trouble began is one trouble, not many.
            self.probes = if report.began_healthy { self.probes.max(1) } else { self.probes + 1 };
            self.probe_at = edge::now().plus_millis(self.hooks.settings.schedule.probe_spacing(self.probes));
            self.unread = true;
        }
        if report.disabled {
            // What the window held stays in the store until the endpoint is enabled again.
            self.window.clear();
            self.hooks.metrics.disabled.inc();
            let mut target = Target::clone(&self.target);
            target.endpoint.disable("20 failures in a row", edge::now());
            self.target = Arc::new(target);
        }
    }
}

fn read_due(record: &Record, class: u8) -> Result<Due, Error> {
    let read = || {
        let organization = Uuid::from_slice(&record.value).ok()?;
        Some(Due { organization, class, millis: key::due_millis(&record.key)?, delivery: record.key.id()? })
    };
    read().ok_or_else(|| Error::damaged_row(&record.key, "it names no organization"))
}

/// One attempt and the commit of its outcome.
async fn attempt(hooks: Arc<Hooks>, target: Arc<Target>, row: Due, failures: u32) -> Report {
    let permit = Arc::clone(&hooks.in_flight).acquire_owned().await;
    let quiet = Report {
        delivery: row.delivery,
        failures,
        success: failures == 0,
        disabled: false,
        began_healthy: failures == 0,
        damage: None,
    };
    let outcome = perform(&hooks, &target, row, failures).await;
    drop(permit);
    match outcome {
        Ok(Some(report)) => report,
        Ok(None) => quiet,
        Err(Error::Damaged(damaged)) => {
            hooks.damaged.note(&damaged);
            let is_endpoint = damaged.key == key::record(SYSTEM, &webhook_endpoint::SPEC, target.endpoint.id);
            Report { damage: Some(if is_endpoint { Damage::Endpoint } else { Damage::Delivery }), ..quiet }
        }
        Err(error) => {
            tracing::warn!(delivery = %row.delivery, ?error, "the outcome of an attempt could not be saved; it will be repeated");
            // Not in a tight loop: the lane reads the row again at its next turn.
            tokio::time::sleep(Duration::from_millis(500)).await;
            quiet
        }
    }
}

/// `None` when there was nothing to send: the row was left over.
async fn perform(hooks: &Hooks, target: &Target, row: Due, failures: u32) -> Result<Option<Report>, Error> {
    let place = key::record(row.organization, &delivery::SPEC, row.delivery);
    let Some(record) = hooks.store().get(std::slice::from_ref(&place)).await?.pop().flatten() else {
        return remove_row(hooks, target, row).await;
    };
    let pending: Delivery = parse(&record.key, &record.value)?;
    let event_key = key::record(row.organization, &rental_core::event::SPEC, pending.event_id);
    let event = hooks.store().get(std::slice::from_ref(&event_key)).await?.pop().flatten();
    let (Some(event), DeliveryStatus::Pending) = (event, pending.status) else {
        return remove_row(hooks, target, row).await;
    };
    let (ending, log) = hooks.sender.send(message(target, &pending, event.value)).await;
    hooks.metrics.record(&ending, log.duration_ms);
    settle(hooks, target, row, (&ending, &log), failures).await.map(Some)
}

fn message<'a>(target: &'a Target, delivery: &'a Delivery, body: Bytes) -> Message<'a> {
    // Signed at send time, not at creation: the receiver rejects t older than 300 s (spec, Signature 4).
    let now = edge::now();
    let secrets =
        target.secrets.iter().filter(|(_, end)| end.is_none_or(|end| end > now)).map(|(text, _)| text.as_bytes());
    let signature = signature::header(secrets, now.seconds(), &body);
    Message {
        url: &target.url,
        event_id: delivery.event_id.to_string(),
        event_type: &delivery.event_type,
        signature,
        body,
    }
}

async fn remove_row(hooks: &Hooks, target: &Target, row: Due) -> Result<Option<Report>, Error> {
    let mut batch = Batch::default();
    batch.delete(key::due(target.endpoint.id, row.class, row.millis, row.delivery));
    hooks.store().commit(batch).await?;
    Ok(None)
}

/// Commits what follows an attempt: the delivery, its due row, and the endpoint when its failures change.
async fn settle(
    hooks: &Hooks,
    target: &Target,
    row: Due,
    (ending, log): (&Ending, &Attempt),
    seen: u32,
) -> Result<Report, Error> {
    let id = target.endpoint.id;
    let keys = [
        key::record(row.organization, &delivery::SPEC, row.delivery),
        key::record(SYSTEM, &webhook_endpoint::SPEC, id),
    ];
    loop {
        let now = edge::now();
        let mut found = hooks.store().get(&keys).await?;
        let (endpoint, delivery) = (found.pop().flatten(), found.pop().flatten());
        let mut batch = Batch::default();
        batch.delete(key::due(id, row.class, row.millis, row.delivery));
        let failures = match &endpoint {
            Some(record) => parse::<WebhookEndpoint>(&record.key, &record.value)?.failures(),
            None => seen,
        };
        let mut verdict = after_attempt(0, failures, ending, now, &hooks.settings.schedule);
        if let Some(record) = delivery {
            let mut object: Delivery = parse(&record.key, &record.value)?;
            verdict = after_attempt(object.attempts, failures, ending, now, &hooks.settings.schedule);
            object.record(ending, verdict, log.clone(), now);
            if let Next::RetryAt(time) = verdict.next {
                batch.writes.push(due((row.organization, id, row.delivery), RETRY, time.millis(), Prior::Any));
            }
            batch.replace(record.key, record.revision, json(&object)?);
        }
        let disabled = endpoint.map_or(Ok(false), |record| note_health(&mut batch, record, verdict, now))?;
        if hooks.store().commit(batch).await? == Commit::Applied {
            return Ok(Report {
                delivery: row.delivery,
                failures: verdict.failures,
                success: ending.is_success(),
                disabled,
                began_healthy: seen == 0,
                damage: None,
            });
        }
    }
}

/// Notes the failures in the endpoint's record when they change; says whether this disables it.
fn note_health(batch: &mut Batch, record: Record, verdict: Verdict, now: Timestamp) -> Result<bool, Error> {
    let mut endpoint: WebhookEndpoint = parse(&record.key, &record.value)?;
    if endpoint.failures() == verdict.failures || !endpoint.is_enabled() {
        return Ok(false);
    }
    endpoint.failures_in_a_row = Some(verdict.failures);
    if verdict.disables {
        endpoint.disable("20 failures in a row", now);
    }
    batch.replace(record.key, record.revision, json(&endpoint)?);
    Ok(verdict.disables)
}

fn json(object: &impl serde::Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(object).map(Bytes::from).map_err(|error| Error::Internal(error.to_string()))
}
