//! Runs the server's background tasks and starts again those that die.
//!
//! A task dies when it panics, or when it ends although the server is not stopping. Each death is logged and counted
//! (`rental_background_task_restarts_total`), and the task is started again after a pause: 1 s, doubled with each death up
//! to 30 s, and 1 s again after the task has run for a minute. A task keeps nothing in memory that it cannot read from the
//! store again, so a restart loses nothing; what was in flight is done again.
//!
//! A task that died five times within five minutes makes `/readyz` fail, until it has run for a minute. A task that is
//! one of many, such as the lane of one webhook endpoint, does not: taking the server out of service would stop the other
//! lanes too, and on the next server the same endpoint would kill its lane again.
//!
//! Errors that a task expects, such as a database that does not answer, are no deaths: the task waits and tries again.

use crate::panics::catch_panic;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

/// Begins the work of a task, each time that it is started.
type Work = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// When tasks are started again, and when their deaths become a failure of the server.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Pause after the first death. It doubles with each further one.
    first_pause: Duration,
    longest_pause: Duration,
    /// A task that ran for so long is well again.
    recovered_after: Duration,
    /// So many deaths within `period` make the server not ready.
    most_deaths: usize,
    period: Duration,
}

const LIMITS: Limits = Limits {
    first_pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(30),
    recovered_after: Duration::from_secs(60),
    most_deaths: 5,
    period: Duration::from_secs(300),
};

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Labels {
    task: &'static str,
}

/// The background tasks of this server.
pub(crate) struct Supervisor {
    limits: Limits,
    threads: Handle,
    stopping: watch::Sender<bool>,
    /// Tasks whose deaths concern the readiness of the server.
    tasks: Mutex<BTreeMap<&'static str, Deaths>>,
    restarts: Family<Labels, Counter>,
}

impl Supervisor {
    /// A supervisor whose tasks run on these threads.
    pub(crate) fn new(threads: Handle) -> Arc<Self> {
        Self::with(LIMITS, threads)
    }

    fn with(limits: Limits, threads: Handle) -> Arc<Self> {
        let stopping = watch::Sender::new(false);
        Arc::new(Self { limits, threads, stopping, tasks: Mutex::default(), restarts: Family::default() })
    }

    /// Adds the count of restarts to the page of metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "background_task_restarts",
            "Restarts of background tasks that panicked or ended",
            self.restarts.clone(),
        );
    }

    /// Starts a task that runs until the server stops.
    pub(crate) fn start<F>(
        self: &Arc<Self>,
        name: &'static str,
        work: impl Fn() -> F + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.start_on(&self.threads, name, work)
    }

    /// Starts a task on these threads.
    pub(crate) fn start_on<F>(
        self: &Arc<Self>,
        threads: &Handle,
        name: &'static str,
        work: impl Fn() -> F + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.start_boxed(threads, name, Box::new(move || Box::pin(work())))
    }

    /// The part of it that does not depend on the type of the task, so that it is compiled once.
    fn start_boxed(self: &Arc<Self>, threads: &Handle, name: &'static str, work: Work) -> JoinHandle<()> {
        let supervisor = Arc::clone(self);
        supervisor.note(name, |task, now| task.started(now));
        threads.spawn(async move {
            let mut restarts = Restarts::default();
            while let Some(pause) = supervisor.run_once(name, &mut restarts, false, &work).await {
                supervisor.note(name, |task, now| task.died(now, &supervisor.limits));
                if supervisor.stops_within(pause).await {
                    return;
                }
                supervisor.note(name, |task, now| task.started(now));
            }
        })
    }

    /// Runs a task that is one of many of this name and that may end by itself. It ends when the task does.
    pub(crate) async fn run_one_of<F>(&self, name: &'static str, work: impl Fn() -> F)
    where
        F: Future<Output = ()> + Send,
    {
        let mut restarts = Restarts::default();
        while let Some(pause) = self.run_once(name, &mut restarts, true, &work).await {
            if self.stops_within(pause).await {
                return;
            }
        }
    }

    /// Runs a task until it ends or dies; gives the pause after which it is to be started again.
    async fn run_once<F: Future<Output = ()>>(
        &self,
        name: &'static str,
        restarts: &mut Restarts,
        may_end: bool,
        work: impl Fn() -> F,
    ) -> Option<Duration> {
        let count = self.restarts.get_or_create(&Labels { task: name }).clone();
        let began = Instant::now();
        // The call is inside of the future, so that a panic of the call is caught too.
        let panicked = catch_panic(pin!(async { work().await })).await.is_err();
        if !panicked && (may_end || self.is_stopping()) {
            return None;
        }
        let pause = restarts.pause(began.elapsed(), &self.limits);
        let what = if panicked { "panicked" } else { "ended" };
        if self.is_stopping() {
            tracing::error!(task = name, "a background task {what} while the server was stopping");
            return None;
        }
        tracing::error!(
            task = name,
            pause_ms = pause.as_millis() as u64,
            "a background task {what}; it is started again after a pause"
        );
        count.inc();
        Some(pause)
    }

    fn note(&self, name: &'static str, change: impl FnOnce(&mut Deaths, Instant)) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        change(tasks.entry(name).or_default(), Instant::now());
    }

    /// A task that keeps dying, if there is one: then the server is not ready.
    pub(crate) fn failing(&self) -> Option<&'static str> {
        let now = Instant::now();
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().find(|(_, deaths)| deaths.are_too_many(now, &self.limits)).map(|(name, _)| *name)
    }

    /// Tells all tasks that the server stops.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits; true as soon as the server stops.
    pub(crate) async fn stops_within(&self, pause: Duration) -> bool {
        let mut stopping = self.stopping.subscribe();
        let stopped = stopping.wait_for(|stopping| *stopping);
        tokio::time::timeout(pause, stopped).await.is_ok()
    }
}

/// The pauses between the lives of one task.
#[derive(Debug, Default)]
struct Restarts {
    last: Option<Duration>,
}

impl Restarts {
    /// The pause after a task that ran for `ran` has died.
    fn pause(&mut self, ran: Duration, limits: &Limits) -> Duration {
        let doubled = self.last.filter(|_| ran < limits.recovered_after).map(|last| last.saturating_mul(2));
        let pause = doubled.unwrap_or(limits.first_pause).min(limits.longest_pause);
        self.last = Some(pause);
        pause
    }
}

/// The deaths of one task.
#[derive(Debug, Default)]
struct Deaths {
    /// The last ones, at most as many as make the server not ready.
    at: VecDeque<Instant>,
    running_since: Option<Instant>,
    too_many: bool,
}

impl Deaths {
    fn started(&mut self, now: Instant) {
        self.running_since = Some(now);
    }

    fn died(&mut self, now: Instant, limits: &Limits) {
        self.running_since = None;
        self.at.push_back(now);
        if self.at.len() > limits.most_deaths {
            self.at.pop_front();
        }
        let first = self.at.front().copied().unwrap_or(now);
        self.too_many = self.at.len() == limits.most_deaths && now.duration_since(first) <= limits.period;
    }

    fn are_too_many(&self, now: Instant, limits: &Limits) -> bool {
        let recovered = |since: Instant| now.duration_since(since) >= limits.recovered_after;
        self.too_many && !self.running_since.is_some_and(recovered)
    }
}

#[cfg(test)]
pub(crate) mod tests;
