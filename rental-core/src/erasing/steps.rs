//! The steps of the task that erases a customer.

use super::{
    erasure::{Erasure, ErasureStatus},
    phase::{Phase, keeps, phases},
};
use crate::{
    error::Error,
    operations::erased::erased_key,
    resources::{
        RESOURCES, Resource, customer,
        delivery::{self, Delivery},
        entry_of_tag, event,
        organization::{Organization, SYSTEM},
        personal::{Form, Person, mentions, redact, redact_copy},
    },
    rows::key,
    schema::{IndexPrefix, ResourceSpec},
    store::{Batch, Check, DamagedRow, Key, Prior, Record, Scanned, Span, Store, Write, get_each, key_of},
    value::{CustomerId, EventId, IndexValue, Members, OrganizationId, Timestamp},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rows in one scan.
const PAGE: usize = 256;
/// Rows that one step reads at most, about.
const MOST_READ: usize = 16 * PAGE;
/// Writes after which a step ends.
const MOST_WRITES: usize = 512;
/// E-mail addresses and phone numbers of the person, with former ones, by which leads are found.
const MOST_NAMES: usize = 64;
/// Bytes of new values after which a step ends.
const MOST_BYTES: usize = 2 << 20;

/// The state of the task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct CustomerErasure {
    /// The organization of the customer.
    pub organization_id: OrganizationId,
    /// The customer.
    pub customer_id: CustomerId,
    /// E-mail addresses and phone numbers, also former ones, which find leads that name no customer. Removed with the task.
    pub known_as: Vec<String>,
    /// The phase: the plural of a resource, `former_names` or `stored_responses`.
    pub phase: String,
    /// The key of the last row of the phase so far, in hex.
    pub after: Option<String>,
    /// The index key of the last delivery so far, in hex, when the deliveries of the next event need several steps.
    pub delivery: Option<String>,
    /// The number of rewritten rows so far.
    pub rewritten: BTreeMap<String, u64>,
    /// The number of kept records so far.
    pub kept: BTreeMap<String, u64>,
    /// Damaged rows so far.
    pub damaged: u64,
}

impl CustomerErasure {
    /// The state before the first step.
    #[must_use]
    pub fn new(organization: OrganizationId, customer: CustomerId, known_as: Vec<String>) -> Self {
        let counted = |phase: Phase| match phase {
            Phase::Names => None,
            Phase::Records(spec) if keeps(spec) => None,
            phase => Some((phase.name().to_owned(), 0)),
        };
        let kept = RESOURCES.iter().filter(|entry| keeps(entry.spec)).map(|entry| (entry.spec.plural.to_owned(), 0));
        let mut rewritten: BTreeMap<String, u64> = phases().into_iter().filter_map(counted).collect();
        rewritten.insert(customer::SPEC.plural.to_owned(), 1);
        rewritten.insert(delivery::SPEC.plural.to_owned(), 0);
        Self {
            organization_id: organization,
            customer_id: customer,
            known_as,
            phase: phases().first().map_or("", |phase| phase.name()).to_owned(),
            after: None,
            delivery: None,
            rewritten,
            kept: kept.collect(),
            damaged: 0,
        }
    }

    fn count(&mut self, what: &str) {
        *self.rewritten.entry(what.to_owned()).or_default() += 1;
    }
}

/// One step in the making.
struct Step<'s> {
    store: &'s dyn Store,
    state: &'s mut CustomerErasure,
    batch: &'s mut Batch,
    now: Timestamp,
    damaged: &'s mut Vec<DamagedRow>,
    bytes: usize,
    /// Deliveries that were read.
    deliveries: usize,
}

/// Adds the next step to `batch`. Returns whether it is the last one. A step reads at most about [`MOST_READ`] rows. A
/// damaged row is counted and stays as it is.
pub(crate) async fn step(
    store: &dyn Store,
    state: &mut CustomerErasure,
    (batch, now): (&mut Batch, Timestamp),
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    let phases = phases();
    // An unknown name is that of a program with other phases: all of them run again.
    let at = phases.iter().position(|phase| phase.name() == state.phase).unwrap_or(0);
    let before = damaged.len();
    let mut step = Step { store, state, batch, now, damaged, bytes: 0, deliveries: 0 };
    let ended = step.read(phases[at]).await?;
    step.state.damaged += (step.damaged.len() - before) as u64;
    if !ended {
        return Ok(false);
    }
    step.state.after = None;
    match phases.get(at + 1) {
        Some(next) => next.name().clone_into(&mut step.state.phase),
        None => return Ok(true),
    }
    Ok(false)
}

/// Adds the report to the batch of the last step, unless the organization was deleted. Its deletion has removed the row, or
/// will, and must not find a new one behind it.
pub(crate) async fn finish(
    store: &dyn Store,
    state: &CustomerErasure,
    batch: &mut Batch,
    now: Timestamp,
) -> Result<(), Error> {
    let place = erased_key(state.organization_id, state.customer_id);
    let owner = Organization::key(SYSTEM, state.organization_id);
    let mut found = get_each(store, &[place.clone(), owner.clone()]).await?;
    match found.pop() {
        Some(Ok(None)) => return Ok(()),
        Some(Ok(Some(_))) => batch.checks.push(Check::Present(owner)),
        // No check finds a damaged row, and no request deletes such an organization.
        _ => {}
    }
    let row = found.pop().and_then(Result::ok).flatten();
    let begun = row.as_ref().and_then(|row| Erasure::read(row).ok());
    let begun = begun.unwrap_or_else(|| Erasure::new(state.organization_id, state.customer_id, now));
    let done = Erasure {
        status: ErasureStatus::Complete,
        rewritten: state.rewritten.clone(),
        kept: state.kept.clone(),
        damaged: state.damaged,
        completed_at: Some(now),
        ..begun
    };
    let value = crate::resources::to_json(&done)?;
    match row {
        Some(row) => batch.replace(place, row.revision, value),
        // A damaged row is written anew.
        None => batch.writes.push(Write::Put(place, 1, value, Prior::Any)),
    }
    Ok(())
}

impl Step<'_> {
    /// Reads rows of the phase and rewrites them; true at the end of the phase.
    async fn read(&mut self, phase: Phase) -> Result<bool, Error> {
        let (mut span, records) = phase.source(self.state.organization_id, self.state.customer_id);
        if let Some(after) = &self.state.after {
            span.from = Key::from(hex::decode(after).unwrap_or_default()).next();
        }
        for _ in 0..MOST_READ / PAGE {
            let rows = self.store.scan(&span, PAGE).await?;
            let last = rows.len() < PAGE;
            let keys: Vec<Key> = rows.iter().map(|row| key_of(row).clone()).collect();
            let rows = match phase {
                Phase::Deliveries => self.without_event(rows).await?,
                _ => self.resolve(rows, records.as_ref()).await?,
            };
            for (key, row) in keys.into_iter().zip(rows) {
                if self.is_full() {
                    return Ok(false);
                }
                match row {
                    Ok(Some(record)) => {
                        if !self.rewrite(phase, record).await? {
                            return Ok(false);
                        }
                    }
                    Ok(None) => {}
                    // The phase of events counts it.
                    Err(_) if matches!(phase, Phase::Names) => {}
                    Err(row) => self.damaged.push(*row),
                }
                self.state.after = Some(hex::encode(key.as_bytes()));
                span.from = key.next();
            }
            if last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_full(&self) -> bool {
        self.batch.writes.len() >= MOST_WRITES || self.bytes >= MOST_BYTES || self.deliveries >= MOST_READ
    }

    /// The records of these rows, which are index entries or the records themselves.
    async fn resolve(
        &self,
        rows: Vec<Scanned>,
        records: Option<&Key>,
    ) -> Result<Vec<Result<Option<Record>, Box<DamagedRow>>>, Error> {
        let Some(records) = records else { return Ok(rows.into_iter().map(|row| row.map(Some)).collect()) };
        let keys: Vec<Key> = rows.iter().map(|row| key::entry(records, key_of(row).id().unwrap_or_default())).collect();
        Ok(get_each(self.store, &keys).await?)
    }

    /// Of these deliveries, those whose event is gone or damaged: nobody can say any more whom their logs are about.
    async fn without_event(&self, rows: Vec<Scanned>) -> Result<Vec<Result<Option<Record>, Box<DamagedRow>>>, Error> {
        #[derive(Deserialize)]
        struct Of {
            event_id: EventId,
        }
        let event = |row: &Scanned| {
            let of: Option<Of> = crate::value::read_json(&row.as_ref().ok()?.value).ok();
            Some(event::key(self.state.organization_id, of?.event_id))
        };
        let keys: Vec<Option<Key>> = rows.iter().map(event).collect();
        let mut events = get_each(self.store, &keys.iter().flatten().cloned().collect::<Vec<_>>()).await?.into_iter();
        let resolved = rows.into_iter().zip(keys).map(|(row, key)| {
            let event = key.and_then(|_| events.next());
            row.map(|delivery| Some(delivery).filter(|_| !matches!(event, Some(Ok(Some(_))))))
        });
        Ok(resolved.collect())
    }

    /// Rewrites a row. False: the next step must go on with the same row.
    async fn rewrite(&mut self, phase: Phase, record: Record) -> Result<bool, Error> {
        let rewritten = match phase {
            Phase::Names => {
                self.learn(&record).await?;
                Ok(true)
            }
            Phase::Records(spec) => self.object(spec, &record).map(|()| true),
            Phase::Events => self.event(&record).await,
            Phase::Deliveries => self.log(&record).map(|()| true).map_err(Failed::Damaged),
            Phase::Responses => self.response(&record).map(|()| true),
            Phase::Audit => self.audit_entry(&record).map(|()| true),
        };
        match rewritten {
            Ok(done) => Ok(done),
            Err(Failed::Damaged(why)) => {
                self.damaged.push(*DamagedRow::new(record.key, why));
                Ok(true)
            }
            Err(Failed::Other(error)) => Err(error),
        }
    }

    /// Whether JSON can be about the person at all, before it is parsed.
    fn may_be_about(&self, json: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(json) else { return true };
        text.contains(&self.state.customer_id.to_string())
            || (text.contains("\"lead\"") && mentions(text, &self.state.known_as))
    }

    /// Notes the e-mail address and phone number of the customer in an event. A former e-mail address that another customer of
    /// the organization has now finds leads of that customer, so it is left out.
    async fn learn(&mut self, record: &Record) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Event {
            data: Data,
        }
        #[derive(Deserialize)]
        struct Data {
            object: String,
            id: String,
            email: Option<String>,
            phone: Option<String>,
        }
        if !self.may_be_about(&record.value) {
            return Ok(());
        }
        // An event about anything else has other members.
        let Ok(Event { data }) = crate::value::read_json::<Event>(&record.value) else { return Ok(()) };
        if data.object != customer::SPEC.object || data.id != self.state.customer_id.to_string() {
            return Ok(());
        }
        for (name, is_email) in [(data.email, true), (data.phone, false)] {
            let Some(name) = name.filter(|name| !self.state.known_as.contains(name)) else { continue };
            if self.state.known_as.len() < MOST_NAMES && !(is_email && self.is_of_another(&name).await?) {
                self.state.known_as.push(name);
            }
        }
        Ok(())
    }

    /// Whether another customer of the organization has this e-mail address. The record of the erased one has none any more.
    async fn is_of_another(&self, email: &str) -> Result<bool, Error> {
        let Some(index) = customer::SPEC.index_over(&["email"], None) else { return Ok(false) };
        for spelling in [email, &*email.to_ascii_lowercase()] {
            let Some(entries) = index.with(|_| Some(IndexValue::Text(spelling))) else { continue };
            let span = Span::under(entries.prefix(self.state.organization_id, &customer::SPEC));
            if !self.store.scan(&span, 1).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn put(&mut self, record: &Record, members: &Members, what: &str) {
        let json = members.json();
        self.bytes += json.len();
        self.batch.replace(record.key.clone(), record.revision, json.into());
        self.state.count(what);
    }

    fn object(&mut self, spec: &'static ResourceSpec, record: &Record) -> Result<(), Failed> {
        if !self.may_be_about(&record.value) {
            return Ok(());
        }
        let mut members = Members::parse(&record.value)?;
        let known_as = self.state.known_as.clone();
        let person = Person { id: self.state.customer_id, known_as: &known_as };
        if !person.is_subject(spec, &members) {
            return Ok(());
        }
        if keeps(spec) {
            *self.state.kept.entry(spec.plural.to_owned()).or_default() += 1;
        }
        redact(spec, &mut members, Form::Record)?;
        if !members.is_changed() {
            return Ok(());
        }
        let id = record.key.id().unwrap_or_default();
        let entry = entry_of_tag(spec.tag).ok_or("it is of no known resource")?;
        let before = (entry.effects)(&record.key, &record.value)?;
        let updated = members.get("updated_at").and_then(|text| serde_json::from_str::<Timestamp>(text).ok());
        let updated = updated.ok_or("it has no `updated_at`")?;
        let updated = if self.now > updated { self.now } else { updated.plus_millis(1) };
        members.set("updated_at", format!("\"{updated}\""))?;
        let after = (entry.effects)(&record.key, members.json().as_bytes())?;
        let place = |prefix: &IndexPrefix| prefix.entry(self.state.organization_id, spec, id);
        let gone = before.entries.iter().filter(|one| !after.entries.contains(one)).map(place);
        let new = after.entries.iter().filter(|one| !before.entries.contains(one)).map(place);
        let (gone, new): (Vec<Key>, Vec<Key>) = (gone.collect(), new.collect());
        gone.into_iter().for_each(|entry| self.batch.delete(entry));
        new.into_iter().for_each(|entry| self.batch.mark(entry, Prior::Any));
        self.put(record, &members, spec.plural);
        Ok(())
    }

    /// Rewrites an event of the person, and the logs of its deliveries. False: the next step must go on with the logs. It does
    /// not look at the event again, which no longer says that it is about the person.
    async fn event(&mut self, record: &Record) -> Result<bool, Failed> {
        let id = EventId::from_uuid(record.key.id().unwrap_or_default());
        let span = delivery::of_event(id).span(self.state.organization_id, &delivery::SPEC);
        let rest = self.state.delivery.take().and_then(|text| hex::decode(text).ok()).map(Key::from);
        match rest.filter(|to| span.from < *to && *to <= span.to) {
            Some(to) => self.logs_of(Span { to, ..span }).await,
            None if self.copy(record, None, event::SPEC.plural)? => self.logs_of(span).await,
            None => Ok(true),
        }
    }

    fn response(&mut self, record: &Record) -> Result<(), Failed> {
        self.copy(record, Some("body"), Phase::Responses.name()).map(drop)
    }

    /// Rewrites a row that is a copy of an object, or has one in a member; true if the object is about the person.
    fn copy(&mut self, record: &Record, within: Option<&str>, what: &str) -> Result<bool, Failed> {
        if !self.may_be_about(&record.value) {
            return Ok(false);
        }
        let mut members = Members::parse(&record.value)?;
        let known_as = self.state.known_as.clone();
        let person = Person { id: self.state.customer_id, known_as: &known_as };
        let about = match within {
            None => redact_copy(&mut members, &person)?,
            Some(name) => {
                let mut copy = Members::parse(members.get(name).unwrap_or("{}").as_bytes())?;
                let about = redact_copy(&mut copy, &person)?;
                if copy.is_changed() {
                    members.set(name, copy.json())?;
                }
                about
            }
        };
        if members.is_changed() {
            self.put(record, &members, what);
        }
        Ok(about)
    }

    /// Removes what receivers answered from the logs of an event's deliveries, newest first: an answer can repeat the event.
    /// False: the next step must go on.
    async fn logs_of(&mut self, mut span: Span) -> Result<bool, Failed> {
        loop {
            let rows = self.store.scan(&span, PAGE).await.map_err(Error::from)?;
            let last = rows.len() < PAGE;
            for row in rows {
                if self.is_full() {
                    self.state.delivery = Some(hex::encode(span.to.as_bytes()));
                    return Ok(false);
                }
                self.deliveries += 1;
                span.to = span.from.followed_by(key_of(&row).id().unwrap_or_default().as_bytes());
                match row {
                    Ok(record) => {
                        if let Err(why) = self.log(&record) {
                            self.damaged.push(*DamagedRow::new(record.key, why));
                        }
                    }
                    Err(row) => self.damaged.push(*row),
                }
            }
            if last {
                return Ok(true);
            }
        }
    }

    fn log(&mut self, record: &Record) -> Result<(), String> {
        let mut members = Members::parse(&record.value)?;
        members.each_of("log", |attempt| match attempt.is_null("response") {
            true => Ok(()),
            false => attempt.set("response", "null"),
        })?;
        if members.is_changed() {
            self.put(record, &members, Delivery::SPEC.plural);
        }
        Ok(())
    }

    /// Rewrites the body of a request about the person. Such a body has the fields of the object that it made.
    fn audit_entry(&mut self, record: &Record) -> Result<(), Failed> {
        let mut members = Members::parse(&record.value)?;
        let mut details = Members::parse(members.get("details").unwrap_or("{}").as_bytes())?;
        let id = self.state.customer_id.to_string();
        let named = |details: &Members, field: &str| {
            details.get(field).and_then(|text| serde_json::from_str::<String>(text).ok()).is_some_and(|text| text == id)
        };
        for spec in RESOURCES.iter().map(|entry| entry.spec) {
            if spec.person().is_some_and(|field| named(&details, field)) {
                redact(spec, &mut details, Form::Copy)?;
            }
        }
        if details.is_changed() {
            members.set("details", details.json())?;
            self.put(record, &members, Phase::Audit.name());
        }
        Ok(())
    }
}

/// Why a row was not rewritten.
enum Failed {
    Damaged(String),
    Other(Error),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Damaged(why)
    }
}

impl From<&str> for Failed {
    fn from(why: &str) -> Self {
        Self::Damaged(why.to_owned())
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::Damaged(row) => Self::Damaged(row.reason.clone()),
            error => Self::Other(error),
        }
    }
}
