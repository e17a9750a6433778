//! A history: clients send requests to the engine on a disk that records everything, all of it from one seed.
//!
//! A round polls every client once, so that all of them have read the store before one of their batches is committed; the
//! batches then are one group of the writer. Nothing depends on how fast a thread runs: a seed gives the same operations of
//! the disk each time, except for the order in which redb flushes its pages.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use crate::{
    background::Work,
    beginning::Beginning,
    broken::{Broken, Engine},
    disk::{Dice, Disk, Entry, apply},
    images::in_order,
    judge::{Response, judge},
    load::{Known, next},
    requests::{Act, Request, Ticks},
    wait,
};
use rental_core::{
    error::Error,
    operations::Written,
    resources::organization::Organization,
    rows::key,
    store::{
        Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, StoreError, Write, all_sound, memory::Memory,
    },
    value::ServerId,
};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    task::{Context, Poll, Waker},
};
use tokio::sync::oneshot;

type Outcome = Result<Commit, StoreError>;

/// The door of the store: a batch waits here until the history commits it.
struct Door<'s> {
    store: &'s dyn Store,
    waiting: Mutex<Vec<(Batch, oneshot::Sender<Outcome>)>>,
}

impl Store for Door<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.store.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.store.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let (answer, outcome) = oneshot::channel();
        self.waiting.lock().unwrap().push((batch, answer));
        Box::pin(async { outcome.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the power is off".into()))) })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}

/// A request in progress, or a step of the server's own work.
struct Client<'d> {
    request: Option<usize>,
    running: Pin<Box<dyn Future<Output = Result<Option<Written>, Error>> + 'd>>,
}

fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// What a run of the engine did to the disk, from the first to the last group.
pub(crate) struct Life {
    /// The durable bytes at the beginning.
    pub(crate) base: Vec<u8>,
    pub(crate) log: Vec<Entry>,
    /// The number of the last group before the beginning.
    pub(crate) first: usize,
}

/// The requests of a seed, and what came of them.
pub(crate) struct History {
    pub(crate) requests: Vec<Arc<Request>>,
    pub(crate) responses: Vec<Response>,
    /// The rows after each group of batches, by the model of the store. Empty when the engine is a broken one.
    pub(crate) states: Vec<Arc<[Record]>>,
    /// The number of the last group.
    pub(crate) groups: usize,
    organizations: Vec<(Organization, Known)>,
    /// Requests whose response was lost with the power; their clients send them again.
    unanswered: Vec<usize>,
    /// How many batches were stale, because another one of their group came first.
    stale: usize,
    edge: Arc<Ticks>,
    dice: Dice,
    broken: Broken,
}

impl History {
    /// A history that goes on from a store with two organizations, of which one has webhook endpoints; and this store.
    pub(crate) fn new(seed: u64, broken: Broken) -> (Self, Vec<u8>) {
        static BEGINNING: OnceLock<Beginning> = OnceLock::new();
        let beginning = BEGINNING.get_or_init(Beginning::new);
        let known = |organization: &Organization| (organization.clone(), Known::default());
        let mut history = Self {
            requests: beginning.requests.clone(),
            responses: beginning.responses.clone(),
            states: vec![Arc::clone(&beginning.rows)],
            groups: 0,
            organizations: beginning.organizations.iter().map(known).collect(),
            unanswered: Vec::new(),
            stale: 0,
            edge: Arc::new(Ticks(beginning.ticks.into())),
            dice: Dice(seed),
            broken,
        };
        beginning.responses.iter().for_each(|response| history.learn(response));
        (history, beginning.image.clone())
    }

    /// Runs the engine on this image for so many rounds. An error of the disk ends the life.
    pub(crate) fn live(&mut self, disk: &Disk, rounds: usize) -> Result<Life, String> {
        let (base, first) = (disk.with(|state| state.live.clone()), self.groups);
        let engine = Engine::open(disk, self.broken)?;
        let model = self.model();
        let ended = self.rounds(&engine, &model, disk, rounds);
        let log = disk.log();
        let rows = try_dump(&engine);
        // The operation that fails can also be one of the idle writer, or of the dump.
        let failed = ended? || disk.with(|state| state.struck);
        if !failed && self.broken == Broken::Nothing {
            self.matches(&rows?, (self.groups, self.groups))?;
        }
        let log = in_order(log);
        let mut replayed = base.clone();
        log.iter().for_each(|entry| apply(&mut replayed, entry));
        drop(engine);
        if self.broken == Broken::Nothing && !failed {
            // What the engine does when it is closed comes after `log`.
            let closing = disk.log();
            closing[log.len()..].iter().for_each(|entry| apply(&mut replayed, entry));
            assert!(disk.with(|state| state.live == replayed), "the recorded operations are those of the disk");
        }
        Ok(Life { base, log, first })
    }

    /// The rounds of a life; true when the disk failed.
    fn rounds(&mut self, engine: &Engine, model: &Memory, disk: &Disk, rounds: usize) -> Result<bool, String> {
        let door = Door { store: engine, waiting: Mutex::default() };
        let mut clients: Vec<Client<'_>> = Vec::new();
        for round in 0..rounds + 20 {
            // The last rounds finish what others made stale.
            let wanted = if round < rounds { 1 + self.dice.roll(5) } else { 0 };
            while clients.len() < wanted {
                clients.push(self.client(&door));
            }
            for at in 0..clients.len() {
                clients.swap(at, self.dice.roll(at + 1));
            }
            self.poll(&mut clients)?;
            let batches = std::mem::take(&mut *door.waiting.lock().unwrap());
            if batches.is_empty() {
                continue;
            }
            let failed = self.commit(engine, model, disk, batches)?;
            self.poll(&mut clients)?;
            if failed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A client's next request: one whose response was lost, one that was answered before, or a new one.
    fn client<'d>(&mut self, door: &'d Door<'_>) -> Client<'d> {
        let edge = Arc::clone(&self.edge);
        if self.dice.one_in(3) {
            let work = Work::any(&mut self.dice);
            let running = Box::pin(async move { work.step(door, &*edge).await.map(|()| None) });
            return Client { request: None, running };
        }
        let number = match self.unanswered.pop() {
            Some(number) => number,
            None if self.dice.one_in(10) => self.dice.roll(self.requests.len()),
            None => {
                let (organization, known) = &self.organizations[self.dice.roll(self.organizations.len())];
                self.requests.push(next(self.requests.len(), organization, known, &mut self.dice));
                self.requests.len() - 1
            }
        };
        let request = Arc::clone(&self.requests[number]);
        let running = Box::pin(async move { request.perform(door, &*edge).await.map(Some) });
        Client { request: Some(number), running }
    }

    /// Lets every client go on until it waits for a commit, and takes the responses.
    fn poll(&mut self, clients: &mut Vec<Client<'_>>) -> Result<(), String> {
        let mut at = 0;
        while at < clients.len() {
            let Some(outcome) = poll(&mut clients[at].running) else {
                at += 1;
                continue;
            };
            let client = clients.remove(at);
            match (client.request, outcome) {
                (Some(number), Ok(Some(written))) => self.answered(number, &written)?,
                (Some(number), Err(Error::Unavailable(_) | Error::StorageFull)) => self.unanswered.push(number),
                (None, Ok(_) | Err(Error::Unavailable(_) | Error::StorageFull)) => {}
                (_, outcome) => return Err(format!("request {:?}: {outcome:?}", client.request)),
            }
        }
        Ok(())
    }

    fn answered(&mut self, request: usize, written: &Written) -> Result<(), String> {
        let body = String::from_utf8(written.body.to_vec()).unwrap();
        let response = Response { group: self.groups, request, status: written.status, body };
        if let Some(earlier) = self.responses.iter().find(|earlier| earlier.request == request) {
            let same = (earlier.status, &earlier.body) == (response.status, &response.body);
            return if same || self.about_erased(&response.body) {
                Ok(())
            } else {
                Err(format!("request {request} was answered, and now otherwise: {earlier:?}, {response:?}"))
            };
        }
        self.learn(&response);
        self.responses.push(response);
        Ok(())
    }

    /// Whether a response is about a customer whom somebody wanted to be erased: then its copies change.
    fn about_erased(&self, body: &str) -> bool {
        self.requests.iter().any(|request| matches!(&request.act, Act::Erase(id) if body.contains(id)))
    }

    /// Makes the object of a response known to the clients of its organization.
    fn learn(&mut self, response: &Response) {
        let owner = self.requests[response.request].organization.id;
        let known = self.organizations.iter_mut().find(|(organization, _)| organization.id == owner);
        if let Some((_, known)) = known {
            known.learn(&serde_json::from_str(&response.body).unwrap());
        }
    }

    /// Commits the batches as one group, and answers the clients; true when the disk failed.
    ///
    /// The writer takes whatever is in its queue. So that this is all of the batches, a heartbeat goes first, and the disk
    /// is held while the writer works on it.
    fn commit(
        &mut self,
        engine: &Engine,
        model: &Memory,
        disk: &Disk,
        batches: Vec<(Batch, oneshot::Sender<Outcome>)>,
    ) -> Result<bool, String> {
        let mut heartbeat = None;
        if batches.len() > 1 {
            let write = Write::Put(key::heartbeat(ServerId::from_u128(9)), self.groups as u64, "".into(), Prior::Any);
            let batch = Batch { checks: Vec::new(), writes: vec![write] };
            let predicted = self.predict(model, disk, vec![batch.clone()]);
            disk.hold();
            let mut answer: Pin<Box<dyn Future<Output = Outcome>>> = engine.commit(batch);
            let mut outcome = poll(&mut answer);
            while outcome.is_none() && !disk.holds_a_change() {
                outcome = poll(&mut answer);
            }
            heartbeat = Some((predicted, answer, outcome));
        }
        let (batches, clients): (Vec<Batch>, Vec<_>) = batches.into_iter().unzip();
        let predicted = self.predict(model, disk, batches.clone());
        let asked: Vec<_> = batches.into_iter().map(|batch| engine.commit(batch)).collect();
        disk.release();
        let mut failed = false;
        if let Some((predicted, answer, outcome)) = heartbeat {
            let outcome = outcome.unwrap_or_else(|| wait(answer));
            failed |= outcome.is_err();
            self.as_predicted(&outcome, predicted.first())?;
        }
        let outcomes: Vec<_> = asked.into_iter().map(wait).collect();
        for (at, outcome) in outcomes.iter().enumerate() {
            if failed && outcome.is_ok() {
                return Err(format!("{outcome:?} was acknowledged after an error"));
            }
            failed |= outcome.is_err();
            self.stale += usize::from(matches!(outcome, Ok(Commit::Stale(_))));
            self.as_predicted(outcome, predicted.get(at))?;
        }
        if !failed {
            disk.note(Entry::Acknowledged(self.groups));
        }
        for (client, outcome) in clients.into_iter().zip(outcomes) {
            let _ = client.send(outcome);
        }
        Ok(failed)
    }

    /// Begins a group, and applies it to the model.
    fn predict(&mut self, model: &Memory, disk: &Disk, batches: Vec<Batch>) -> Vec<Outcome> {
        self.groups += 1;
        disk.note(Entry::Asked(self.groups));
        if self.broken != Broken::Nothing {
            return Vec::new();
        }
        let outcomes = batches.into_iter().map(|batch| wait(model.commit(batch))).collect();
        self.states.push(everything(model));
        outcomes
    }

    fn as_predicted(&self, outcome: &Outcome, predicted: Option<&Outcome>) -> Result<(), String> {
        match predicted {
            Some(predicted) if outcome.is_ok() && outcome != predicted => {
                Err(format!("group {}: the engine says {outcome:?}, the model {predicted:?}", self.groups))
            }
            _ => Ok(()),
        }
    }

    fn model(&self) -> Memory {
        let model = Memory::default();
        if let Some(rows) = self.states.last() {
            let put = |row: &Record| Write::Put(row.key.clone(), row.revision, row.value.clone(), Prior::New);
            let batch = Batch { checks: Vec::new(), writes: rows.iter().map(put).collect() };
            assert_eq!(wait(model.commit(batch)), Ok(Commit::Applied));
        }
        model
    }

    /// Checks that these rows are those after one of the groups, at least the acknowledged ones; gives its number.
    pub(crate) fn matches(&self, rows: &[Record], (acknowledged, asked): (usize, usize)) -> Result<usize, String> {
        match (acknowledged..=asked).rev().find(|group| *self.states[*group] == *rows) {
            Some(group) => Ok(group),
            None => {
                self.judge(rows, acknowledged)?;
                Err(format!("the rows are not those after group {acknowledged}, nor after a later one up to {asked}"))
            }
        }
    }

    /// Judges the rows by the requests alone.
    pub(crate) fn judge(&self, rows: &[Record], acknowledged: usize) -> Result<(), String> {
        let promised = self.responses.iter().filter(|response| response.group <= acknowledged);
        judge(rows, &self.requests, promised)
    }

    /// What the history contains, for people.
    pub(crate) fn summary(&self) -> String {
        let refused = self.responses.iter().filter(|response| response.status != 200).count();
        let rows = self.states.last().map_or(0, |rows| rows.len());
        let (responses, requests, groups, stale) = (self.responses.len(), self.requests.len(), self.groups, self.stale);
        format!(
            "{requests} requests, {responses} responses ({refused} refused), {stale} batches stale, {groups} groups, {rows} rows"
        )
    }

    /// Forgets what came after a power cut from which the store recovered with the state of `group`.
    pub(crate) fn rewind(&mut self, acknowledged: usize, group: usize) {
        self.responses.retain(|response| response.group <= acknowledged);
        let answered: Vec<usize> = self.responses.iter().map(|response| response.request).collect();
        self.unanswered = (0..self.requests.len()).filter(|number| !answered.contains(number)).collect();
        self.states.truncate(group + 1);
        self.groups = group;
        self.organizations.iter_mut().for_each(|(_, known)| *known = Known::default());
        self.responses.clone().iter().for_each(|response| self.learn(response));
    }
}

fn everything(store: &dyn Store) -> Arc<[Record]> {
    all_sound(wait(store.scan(&Span::everything(), usize::MAX)).unwrap()).unwrap().into()
}

/// All rows of an engine.
pub(crate) fn dump(engine: &Engine) -> Vec<Record> {
    try_dump(engine).expect("it can be read")
}

fn try_dump(engine: &Engine) -> Result<Vec<Record>, String> {
    let snapshot = engine.redb.snapshot();
    let rows = snapshot.rows().map_err(|error| format!("the rows cannot be read: {error}"))?;
    rows.map(|row| row.map_err(|error| format!("a row cannot be read: {error:?}"))).collect()
}
