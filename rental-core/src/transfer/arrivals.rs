//! Lines become objects of an organization: each as it was, each once, a chunk of them in one transaction.

use super::{
    Inspection, ORDER, file,
    layered::Layered,
    object::{self, Candidate},
};
use crate::{
    edge::Edge,
    error::Error,
    imports::{Counts, RowOutcome},
    operation,
    resources::{
        Facts, invoice,
        organization::{self, Organization, SYSTEM},
    },
    store::{Batch, Commit, Key, SCHEMA_VERSION, Span, Store, Write, key, key_of, memory::Memory},
    upgrade::Members,
};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};
use uuid::Uuid;

/// Objects in one transaction.
pub const CHUNK: usize = 200;
/// Times that a chunk is prepared again when others changed what it read.
const MOST_ATTEMPTS: usize = 64;
/// Most bytes of invoices that wait for those with lower numbers.
const MOST_WAITING: usize = 32 << 20;
/// Organizations that are asked for ids at a time.
const ORGANIZATIONS: usize = 100;

/// One import of lines into one organization.
pub struct Arrivals<'a> {
    /// What it reads: the store, in a trial run below what was recorded in `trial`.
    store: Arc<dyn Store>,
    trial: Option<Arc<dyn Store>>,
    edge: &'a dyn Edge,
    organization: &'a Organization,
    source: Uuid,
    /// The schema version of the lines, and the organization that they come from.
    version: (u64, Members),
    /// What came of the lines so far.
    pub counts: Counts,
    ready: Vec<(u64, Candidate)>,
    /// Invoices by number. Numbers have no gaps, and two that were made at one moment may lie in the other order.
    waiting: BTreeMap<u64, (u64, Candidate)>,
    waiting_bytes: usize,
    /// The number up to which invoices are ready.
    next: u64,
}

/// What a chunk would come to.
#[derive(Default)]
struct Plan {
    batch: Batch,
    outcomes: Vec<(u64, RowOutcome)>,
}

impl<'a> Arrivals<'a> {
    /// Begins an import of what was exported from `source`. With an empty store as `trial`, everything is recorded in it
    /// and nothing in `store`.
    ///
    /// # Errors
    /// The store cannot serve.
    pub async fn new(
        store: Arc<dyn Store>,
        trial: Option<Arc<dyn Store>>,
        edge: &'a dyn Edge,
        organization: &'a Organization,
        source: Uuid,
    ) -> Result<Self, Error> {
        let mut unused = Batch::default();
        let counter = invoice_counter();
        let next = operation::next_number(store.as_ref(), organization.id, counter, &mut unused).await?;
        let store = match &trial {
            Some(trial) => Arc::new(Layered { below: store, above: Arc::clone(trial) }),
            None => store,
        };
        Ok(Self {
            store,
            trial,
            edge,
            organization,
            source,
            version: (SCHEMA_VERSION, Members::default()),
            counts: Counts::default(),
            ready: Vec::with_capacity(CHUNK),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            next,
        })
    }

    /// Lifts the lines from the version that their file tells.
    #[must_use]
    pub fn of_version(self, file: &Inspection) -> Self {
        Self { version: (file.schema_version, file.organization.clone()), ..self }
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// The store cannot serve; the chunks before this one are recorded.
    pub async fn line(&mut self, row: u64, line: &[u8]) -> Result<(), Error> {
        let lifted = file::lifted(line, self.version.0, &self.version.1).map(|(line, _)| line);
        let line = lifted.as_deref().map_or(line, str::as_bytes);
        match object::parse(line, self.source, self.organization, self.edge.now()) {
            Err(why) => self.counts.add(row, RowOutcome::Invalid(why)),
            Ok(candidate) => match candidate.number.filter(|number| *number > self.next) {
                Some(number) if !self.waiting.contains_key(&number) => self.wait(number, row, candidate).await?,
                _ => {
                    self.push(row, candidate).await?;
                    while let Some((row, candidate)) = self.waiting.remove(&self.next) {
                        self.waiting_bytes -= candidate.object.len();
                        self.push(row, candidate).await?;
                    }
                }
            },
        }
        Ok(())
    }

    /// Records what is left.
    ///
    /// # Errors
    /// The store cannot serve.
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.let_go().await?;
        self.chunk().await?;
        self.counts.sort();
        Ok(())
    }

    async fn wait(&mut self, number: u64, row: u64, candidate: Candidate) -> Result<(), Error> {
        self.waiting_bytes += candidate.object.len();
        self.waiting.insert(number, (row, candidate));
        if self.waiting_bytes > MOST_WAITING { self.let_go().await } else { Ok(()) }
    }

    /// Nothing more is waited for: what has a gap before it will be told so.
    async fn let_go(&mut self) -> Result<(), Error> {
        self.waiting_bytes = 0;
        while let Some((_, (row, candidate))) = self.waiting.pop_first() {
            self.push(row, candidate).await?;
        }
        Ok(())
    }

    async fn push(&mut self, row: u64, candidate: Candidate) -> Result<(), Error> {
        self.next += u64::from(candidate.number == Some(self.next));
        self.ready.push((row, candidate));
        if self.ready.len() >= CHUNK { self.chunk().await } else { Ok(()) }
    }

    async fn chunk(&mut self) -> Result<(), Error> {
        let ready = std::mem::take(&mut self.ready);
        for _ in 0..MOST_ATTEMPTS {
            let elsewhere = self.elsewhere(&ready).await?;
            let above: Arc<dyn Store> = Arc::new(Memory::default());
            let draft = Layered { below: Arc::clone(&self.store), above: Arc::clone(&above) };
            let mut plan = Plan::default();
            for (row, candidate) in &ready {
                let outcome = match elsewhere.contains(&candidate.id) {
                    true => RowOutcome::Invalid(format!(
                        "Another organization of this server has a {} with this id; import into another server.",
                        candidate.porter.spec.object
                    )),
                    false => self.one(&draft, above.as_ref(), candidate, &mut plan.batch).await?,
                };
                plan.outcomes.push((*row, outcome));
            }
            if self.commit(plan.batch).await? == Commit::Applied {
                plan.outcomes.into_iter().for_each(|(row, outcome)| self.counts.add(row, outcome));
                return Ok(());
            }
        }
        Err(Error::Unavailable("others changed the same objects too often".into()))
    }

    /// Judges one object by the store and by what comes before it in the same chunk, and adds it to the batch.
    async fn one(
        &self,
        draft: &Layered,
        above: &dyn Store,
        candidate: &Candidate,
        batch: &mut Batch,
    ) -> Result<RowOutcome, Error> {
        let Candidate { porter, id, fields, object, .. } = candidate;
        let places: Vec<Key> = ORDER.iter().map(|spec| key::record(self.organization.id, spec, *id)).collect();
        for (spec, known) in ORDER.iter().zip(draft.get(&places).await?) {
            match known {
                None => {}
                Some(known) if spec.tag == porter.spec.tag && known.value == *object => {
                    return Ok(RowOutcome::Duplicate);
                }
                Some(_) if spec.tag == porter.spec.tag => {
                    let why = "is there already with other content, and was left as it is; change it over the API";
                    return Ok(RowOutcome::Invalid(format!("This {} {why}.", spec.object)));
                }
                Some(_) => return Ok(RowOutcome::Invalid(format!("`id` is that of a {} already.", spec.object))),
            }
        }
        let arrived = async {
            let mut added = Batch::default();
            let references = operation::references(draft, self.organization.id, fields, &mut added).await?;
            let number = match porter.counter {
                Some(name) => operation::next_number(draft, self.organization.id, name, &mut added).await?,
                None => 0,
            };
            let facts =
                Facts { now: self.edge.now(), organization: self.organization, references: &references, number };
            let outcome = (porter.arrive)(object.clone(), &facts)?;
            let place = key::record(self.organization.id, porter.spec, *id);
            added.insert(place.clone(), object.clone().into());
            operation::finish(draft, self.edge, self.organization, porter.spec, place, outcome, added).await
        };
        match arrived.await {
            Ok((added, _)) => {
                merge(batch, added, above).await?;
                Ok(RowOutcome::Created)
            }
            Err(error @ (Error::Unavailable(_) | Error::Damaged(_) | Error::Internal(_))) => Err(error),
            Err(error) => Ok(RowOutcome::Invalid(object::sentence(error))),
        }
    }

    /// Which of these ids other organizations have: the operator names an invoice by its id alone.
    async fn elsewhere(&self, ready: &[(u64, Candidate)]) -> Result<HashSet<Uuid>, Error> {
        let mut found = HashSet::new();
        let prefix = key::records(SYSTEM, &organization::SPEC);
        let mut span = Span::newest_first(&prefix);
        loop {
            let page = self.store.scan(&span, ORGANIZATIONS).await?;
            let others = page.iter().filter_map(|row| key_of(row).id()).filter(|id| *id != self.organization.id);
            let places = others.flat_map(|other| {
                ready.iter().map(move |(_, candidate)| key::record(other, candidate.porter.spec, candidate.id))
            });
            let places: Vec<Key> = places.collect();
            found.extend(self.store.get(&places).await?.into_iter().flatten().filter_map(|record| record.key.id()));
            match page.last() {
                Some(last) if page.len() == ORGANIZATIONS => span.to = key_of(last).clone(),
                _ => return Ok(found),
            }
        }
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        if batch.is_empty() {
            return Ok(Commit::Applied);
        }
        match &self.trial {
            // What it checks lies below, where nothing is written.
            Some(trial) => Ok(trial.commit(Batch { checks: Vec::new(), writes: batch.writes }).await?),
            None => Ok(self.store.commit(batch).await?),
        }
    }
}

fn invoice_counter() -> &'static str {
    <invoice::Invoice as crate::resources::Resource>::COUNTER.unwrap_or_default()
}

/// Adds a batch to another one that is committed together with it. What the first wrote the second need not check: it has
/// read it from `above`.
async fn merge(batch: &mut Batch, added: Batch, above: &dyn Store) -> Result<(), Error> {
    let places: Vec<Key> = added.checks.iter().map(|check| check.key().clone()).collect();
    let written = above.get(&places).await?;
    let unwritten = added.checks.into_iter().zip(written).filter(|(_, written)| written.is_none());
    batch.checks.extend(unwritten.map(|(check, _)| check));
    if added.writes.iter().any(|write| matches!(write, Write::Delete(_))) {
        return Err(Error::Internal("a new object removed a row".into()));
    }
    above.commit(Batch { checks: Vec::new(), writes: added.writes.clone() }).await?;
    batch.writes.extend(added.writes);
    Ok(())
}
