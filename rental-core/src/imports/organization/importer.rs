//! Records the lines of an export as objects of an organization, each once and unchanged. A chunk is one transaction.

use super::{
    Inspection,
    erased::{self, AuditErasing},
    file,
    object::{self, Amount, ParsedLine},
};
use crate::{
    erasing::Erasure,
    error::Error,
    imports::{Counts, RowOutcome, overlay::Overlay},
    operations::{self, edge::Edge, same_vehicles},
    resources::{
        Object, Resource, RuleContext, Series,
        customer::Customer,
        organization::{self, Organization, SYSTEM},
        parse, porters, to_json,
        vehicle::{self, Vehicle},
    },
    rows::key,
    schema::{Notice, SAME_PLATE},
    store::{
        Batch, Check, Commit, DamagedRow, Key, Pages, SCHEMA_VERSION, Span, Store, Write, get_each, get_one, key_of,
        memory::Memory,
    },
    tasks::erasing::{begin_listed, look_for_names, names_of},
    upgrade::{Billed, Members},
    value::{CustomerId, Id, OrganizationId, SignedMoney},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};
use uuid::Uuid;

/// Objects in one transaction.
pub const CHUNK: usize = 200;
/// How often a chunk is tried when concurrent writes change the rows it has read.
const MAX_ATTEMPTS: usize = 64;
/// Most bytes of invoices that wait for invoices with lower numbers.
const MAX_WAITING: usize = 32 << 20;
/// Erased people whose names are kept until the end of the file. Their leads are looked for then; above it, at once.
const MOST_RETURNING: usize = 10_000;
/// Number of organizations in one search for the ids of a chunk.
const ORGANIZATIONS: usize = 100;

/// One import of lines into one organization.
pub struct Importer<'a> {
    /// The store to read. In a dry run it is an overlay of `trial` over the real store.
    store: Arc<dyn Store>,
    trial: Option<Arc<dyn Store>>,
    edge: &'a dyn Edge,
    organization: &'a Organization,
    source: OrganizationId,
    /// The schema version of the lines, and the organization that they come from.
    version: (u64, Members),
    /// What the invoices of the file bill; `None` while no file was inspected.
    billed: Option<Arc<Billed>>,
    /// The vehicles of the file.
    vehicles: Arc<HashSet<Uuid>>,
    /// Erases the customers whom the list of the file names, and audits each of them; `None` refuses to.
    erases: Option<&'a AuditErasing<'a>>,
    /// Erased people with the emails and phones that the lines had of them.
    returning: BTreeMap<CustomerId, Vec<String>>,
    /// The outcomes of the lines so far.
    pub counts: Counts,
    /// Damaged rows of the store that lines of the file needed. Those lines are not recorded, and counted as invalid.
    pub damaged: Vec<DamagedRow>,
    ready: Vec<(u64, ParsedLine)>,
    /// Waiting objects by counter and number. Numbers have no gaps, but two concurrent invoices may be exported in reverse
    /// order.
    waiting: BTreeMap<(&'static str, u64), (u64, ParsedLine)>,
    waiting_bytes: usize,
    /// The next number to record, by counter.
    next: HashMap<&'static str, u64>,
}

/// The batch of a chunk, and the outcomes of its lines.
#[derive(Default)]
struct Plan {
    batch: Batch,
    returning: Vec<(CustomerId, Vec<String>)>,
    outcomes: Vec<(u64, RowOutcome, Amount)>,
    damaged: Vec<DamagedRow>,
}

impl<'a> Importer<'a> {
    /// Starts the import of an export of `source`. For a dry run `trial` is an empty store, which gets all writes instead of
    /// `store`.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn new(
        store: Arc<dyn Store>,
        trial: Option<Arc<dyn Store>>,
        edge: &'a dyn Edge,
        organization: &'a Organization,
        source: OrganizationId,
    ) -> Result<Self, Error> {
        let mut unused = Batch::default();
        let mut next = HashMap::new();
        for Series { counter, .. } in porters().filter_map(|porter| porter.series) {
            let number = operations::next_number(store.as_ref(), organization.id, counter, &mut unused).await?;
            next.insert(counter, number);
        }
        let store = match &trial {
            Some(trial) => Arc::new(Overlay { below: store, above: Arc::clone(trial) }),
            None => store,
        };
        Ok(Self {
            store,
            trial,
            edge,
            organization,
            source,
            version: (SCHEMA_VERSION, Members::default()),
            billed: None,
            vehicles: Arc::default(),
            erases: None,
            returning: BTreeMap::new(),
            counts: Counts::of_an_export(),
            damaged: Vec::new(),
            ready: Vec::with_capacity(CHUNK),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            next,
        })
    }

    /// Lifts the lines from the schema version of their file to the present one.
    #[must_use]
    pub fn of_version(self, file: &Inspection) -> Self {
        let billed = Some(Arc::clone(&file.billed));
        let (version, vehicles) = ((file.schema_version, file.organization.clone()), Arc::clone(&file.vehicles));
        Self { version, billed, vehicles, ..self }
    }

    /// Lets the list of the file erase customers of the organization. Without this, a line that names one who is not erased is
    /// invalid.
    #[must_use]
    pub fn erasing(self, audit: &'a AuditErasing<'a>) -> Self {
        Self { erases: Some(audit), ..self }
    }

    /// Adds the next line to the present chunk, and records the chunk when it is full.
    ///
    /// # Errors
    /// The store is not available. The chunks before this one are recorded.
    pub async fn line(&mut self, row: u64, line: &[u8]) -> Result<(), Error> {
        let lifted = file::lifted(line, self.version.0, &self.version.1).map(|(line, _)| line);
        let line = lifted.as_deref().map_or(line, str::as_bytes);
        let billed = self.billed.as_ref().and_then(|billed| file::with_billed(line, billed));
        let line = billed.as_deref().map_or(line, str::as_bytes);
        if let Some(erasure) = erased::line(line, self.source) {
            let outcome = match erasure {
                Ok(erasure) => {
                    let outcome = self.add_erasure(erasure).await;
                    RowOutcome::or_damage(outcome, &mut self.damaged)?
                }
                Err(why) => RowOutcome::Invalid(why),
            };
            self.counts.add(row, outcome, SignedMoney::default());
            return Ok(());
        }
        match object::parse(line, self.source, self.organization, self.edge.now()) {
            Err(why) => {
                self.counts.add_object(row, RowOutcome::Invalid(why), object::amount(line, self.organization));
            }
            Ok(line) => match line.number.filter(|(counter, number)| self.next_of(counter) < *number) {
                Some(number) if !self.waiting.contains_key(&number) => self.wait(number, row, line).await?,
                _ => {
                    let counter = line.number.map(|(counter, _)| counter);
                    self.push(row, line).await?;
                    while let Some(counter) = counter
                        && let Some((row, line)) = self.waiting.remove(&(counter, self.next_of(counter)))
                    {
                        self.waiting_bytes -= line.object.len();
                        self.push(row, line).await?;
                    }
                }
            },
        }
        Ok(())
    }

    /// Records the remaining lines.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.stop_waiting().await?;
        self.chunk().await?;
        self.counts.sort();
        Ok(())
    }

    /// Adds a person to the list of erased people of the organization. Erases a customer who is there, if the import may.
    async fn add_erasure(&mut self, erasure: Erasure) -> Result<RowOutcome, Error> {
        let erasure = Erasure { organization_id: self.organization.id, ..erasure }.on_another_list();
        let (place, id) = (erasure.key(), erasure.customer_id);
        let person = Customer::key(self.organization.id, id);
        for _ in 0..MAX_ATTEMPTS {
            if get_one(&*self.store, &place).await?.is_some() {
                return Ok(RowOutcome::Duplicate);
            }
            let mut batch = Batch::default();
            let committed = match get_one(&*self.store, &person).await? {
                Some(record) if parse::<Customer>(&record.key, &record.value)?.erased_at.is_none() => {
                    let Some(audit) = self.erases else { return Ok(RowOutcome::Invalid(erased::NEEDS_OWNER.into())) };
                    if self.trial.is_some() {
                        // A dry run rewrites nothing.
                        batch.insert(place.clone(), to_json(&erasure)?);
                        self.commit(batch).await?
                    } else {
                        let names = names_of(&parse(&record.key, &record.value)?);
                        let (store, at) = (self.store.as_ref(), erasure.erased_at);
                        let mut batch = begin_listed(store, self.edge, self.organization, record, at).await?;
                        audit(id, &mut batch)?;
                        let committed = operations::commit_for(store, self.organization.id, batch).await?;
                        if committed == Commit::Applied {
                            // Lines of leads may follow.
                            self.returning.entry(id).or_default().extend(names);
                        }
                        committed
                    }
                }
                there => {
                    batch.insert(place.clone(), to_json(&erasure)?);
                    if there.is_none() {
                        // Another import may bring the customer between.
                        batch.checks.push(Check::Absent(person.clone()));
                    }
                    self.commit(batch).await?
                }
            };
            if committed == Commit::Applied {
                return Ok(RowOutcome::Created);
            }
        }
        Err(Error::Unavailable("others changed the same customer too often".into()))
    }

    /// Begins the tasks that look for leads with the emails and phones that the lines had of erased people: after the lines of
    /// leads, also of an import that failed. Nothing after a dry run.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn look_for_returning(&mut self) -> Result<(), Error> {
        while let Some((id, names)) = self.returning.pop_first() {
            if self.trial.is_none() {
                let begun = look_for_names(&*self.store, self.edge, (self.organization.id, id), &names).await;
                Error::note_damage(begun, &mut self.damaged)?;
            }
        }
        Ok(())
    }

    /// The next number of a counter.
    fn next_of(&self, counter: &str) -> u64 {
        self.next.get(counter).copied().unwrap_or_default()
    }

    async fn wait(&mut self, number: (&'static str, u64), row: u64, line: ParsedLine) -> Result<(), Error> {
        self.waiting_bytes += line.object.len();
        self.waiting.insert(number, (row, line));
        if self.waiting_bytes > MAX_WAITING { self.stop_waiting().await } else { Ok(()) }
    }

    /// Handles the waiting objects at the end of the file. One after a gap in the numbers becomes an invalid row.
    async fn stop_waiting(&mut self) -> Result<(), Error> {
        self.waiting_bytes = 0;
        while let Some((_, (row, line))) = self.waiting.pop_first() {
            self.push(row, line).await?;
        }
        Ok(())
    }

    async fn push(&mut self, row: u64, line: ParsedLine) -> Result<(), Error> {
        if let Some((counter, number)) = line.number
            && number == self.next_of(counter)
        {
            self.next.insert(counter, number + 1);
        }
        self.ready.push((row, line));
        if self.ready.len() >= CHUNK { self.chunk().await } else { Ok(()) }
    }

    async fn chunk(&mut self) -> Result<(), Error> {
        let ready = std::mem::take(&mut self.ready);
        for _ in 0..MAX_ATTEMPTS {
            let elsewhere = self.elsewhere(&ready).await?;
            let above: Arc<dyn Store> = Arc::new(Memory::default());
            let draft = Overlay { below: Arc::clone(&self.store), above: Arc::clone(&above) };
            let mut plan = Plan::default();
            for (row, line) in &ready {
                let outcome = match elsewhere.contains(&line.id) {
                    true => RowOutcome::Invalid(format!(
                        "Another organization of this server has a {} with this id, and ids are unique in a server. To keep \
                         the ids, import the file into another server; else create new objects over the API.",
                        line.resource.spec.object
                    )),
                    // What it adds to the batch is added last, so a line that needs a damaged row has added nothing.
                    false => {
                        let outcome = self.one(&draft, above.as_ref(), line, &mut plan).await;
                        RowOutcome::or_damage(outcome, &mut plan.damaged)?
                    }
                };
                plan.outcomes.push((*row, outcome, line.amount));
            }
            if self.commit(plan.batch).await? == Commit::Applied {
                for (row, outcome, amount) in plan.outcomes {
                    self.counts.add_object(row, outcome, amount);
                }
                self.damaged.extend(plan.damaged);
                for (id, names) in plan.returning {
                    self.returning.entry(id).or_default().extend(names);
                }
                return if self.returning.len() > MOST_RETURNING { self.look_for_returning().await } else { Ok(()) };
            }
        }
        Err(Error::Unavailable("others changed the same objects too often".into()))
    }

    /// Checks one object against the store and the chunk before it, and adds it to the batch.
    async fn one(
        &self,
        draft: &Overlay,
        above: &dyn Store,
        line: &ParsedLine,
        plan: &mut Plan,
    ) -> Result<RowOutcome, Error> {
        let redacted = erased::redacted(draft, self.organization, line).await?;
        let is_erased = redacted.is_some();
        plan.returning.extend(redacted.as_ref().and_then(|_| erased::names_in(line)));
        let ParsedLine { resource, id, fields, object, .. } = redacted.as_ref().unwrap_or(line);
        let places: Vec<Key> = porters().map(|known| key::record(self.organization.id, known.spec, *id)).collect();
        for (spec, known) in porters().map(|known| known.spec).zip(draft.get(&places).await?) {
            match known {
                None => {}
                Some(known) if spec.tag == resource.spec.tag && (is_erased || known.value == *object) => {
                    return Ok(RowOutcome::Duplicate);
                }
                Some(_) if spec.tag == resource.spec.tag => {
                    let why = "is there already with other content, and was left as it is; change it over the API";
                    return Ok(RowOutcome::Invalid(format!("This {} {why}.", spec.object)));
                }
                Some(_) => return Ok(RowOutcome::Invalid(format!("`id` is that of a {} already.", spec.object))),
            }
        }
        if let Some(why) = self.made_already(draft, line).await? {
            return Ok(RowOutcome::Invalid(why));
        }
        let prepared = async {
            let mut added = Batch::default();
            let references = operations::references(draft, self.organization.id, fields, &mut added).await?;
            let number = match resource.series {
                Some(Series { counter, .. }) => {
                    operations::next_number(draft, self.organization.id, counter, &mut added).await?
                }
                None => 0,
            };
            let (now, organization, credited) = (self.edge.now(), self.organization, &HashMap::new());
            let context = RuleContext { now, organization, references: &references, number, credited };
            let outcome = (resource.accept)(fields, object.clone(), &context)?;
            let place = key::record(self.organization.id, resource.spec, *id);
            added.insert(place.clone(), object.clone());
            operations::finish(draft, self.edge, self.organization, resource.spec, (place, 1), outcome, added).await
        };
        match prepared.await {
            Ok(prepared) => {
                merge(&mut plan.batch, prepared.batch, above).await?;
                Ok(RowOutcome::Created)
            }
            Err(error @ (Error::Unavailable(_) | Error::Damaged(_) | Error::Internal(_))) => Err(error),
            Err(error) => Ok(RowOutcome::Invalid(object::sentence(error))),
        }
    }

    /// Why a vehicle of the file is not made: the organization has a record of this car, and that is not of the file.
    async fn made_already(&self, draft: &Overlay, line: &ParsedLine) -> Result<Option<String>, Error> {
        if line.resource.spec.tag != vehicle::SPEC.tag {
            return Ok(None);
        }
        let new: Vehicle = parse(&Vehicle::key(self.organization.id, Id::from_uuid(line.id)), &line.object)?;
        if !new.status.is_in_service() {
            return Ok(None);
        }
        let of_file = &self.vehicles;
        let found = same_vehicles(draft, self.organization.id, &new.names(), |id| !of_file.contains(&id)).await?;
        Ok(found.first().map(|Notice { spec, id, .. }| {
            let number = if **spec == SAME_PLATE { "plate" } else { "transponder" };
            format!(
                "Vehicle {id} of this organization has this {number}, so the car was not made again. Clear the {number} of that \
                 vehicle, or set its status to `unavailable`, and import the file again."
            )
        }))
    }

    /// The ids in `ready` that objects of other organizations have. Such lines are invalid, because an operator identifies
    /// an invoice by its id only.
    async fn elsewhere(&self, ready: &[(u64, ParsedLine)]) -> Result<HashSet<Uuid>, Error> {
        let mut found = HashSet::new();
        let prefix = key::records(SYSTEM, &organization::SPEC);
        let mut pages = Pages::of(&*self.store, Span::newest_first(&prefix), ORGANIZATIONS);
        while let Some(page) = pages.next().await? {
            let others = page.iter().filter_map(|row| key_of(row).id().map(OrganizationId::from_uuid));
            let others = others.filter(|id| *id != self.organization.id);
            let places = others
                .flat_map(|other| ready.iter().map(move |(_, line)| key::record(other, line.resource.spec, line.id)));
            let places: Vec<Key> = places.collect();
            // A damaged object of another organization has its id, too.
            for (place, there) in places.iter().zip(get_each(&*self.store, &places).await?) {
                found.extend(place.id().filter(|_| !matches!(there, Ok(None))));
            }
        }
        Ok(found)
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        if batch.is_empty() {
            return Ok(Commit::Applied);
        }
        match &self.trial {
            // The checks concern the real store, to which a dry run writes nothing.
            Some(trial) => Ok(trial.commit(Batch { checks: Vec::new(), writes: batch.writes }).await?),
            None => {
                let batch = self.dated(batch).await?;
                operations::commit_for(self.store.as_ref(), self.organization.id, batch).await
            }
        }
    }

    /// Adds the change of the organization's `updated_at`. Imported objects keep their times, which can be older than an
    /// export that does not have them: this change says that the export is outdated.
    async fn dated(&self, mut batch: Batch) -> Result<Batch, Error> {
        let place = Organization::key(SYSTEM, self.organization.id);
        let missing = Error::NotFound { object: organization::SPEC.object };
        let record = get_one(&*self.store, &place).await?.ok_or(missing)?;
        let now = self.edge.now();
        let rule = |organization: &mut Organization| {
            organization.touch(now.max(organization.updated_at));
            Ok(Vec::new())
        };
        let changed = operations::edit(&*self.store, self.edge, &Organization::system(), record, rule).await?.batch;
        batch.checks.extend(changed.checks);
        batch.writes.extend(changed.writes);
        Ok(batch)
    }
}

/// Adds a batch to another one of the same transaction. Leaves out checks of rows that the first batch writes, because the
/// second batch has read these rows from `above`.
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
