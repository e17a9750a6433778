//! The use cases: list, get, create and update over any resource, and how a write becomes one transaction.
//!
//! A write reads, decides and prepares one [`Batch`]: the object, its index entries, its events with their outbox rows,
//! its holds and the idempotency record. It is committed whole or prepared again when something it read has changed.

pub mod access;
pub mod edge;
pub mod effects;
pub mod holds;
pub mod idempotency;

pub use crate::operations::edge::Edge;

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    operations::idempotency::{Known, Memo, Ticket},
    request::{
        body::Verb,
        page::{self, ListQuery},
    },
    resources::{
        self, Collection, Facts, Outcome, Resource,
        event::{self, EventType},
        organization::{self, Organization, SYSTEM},
        parse, spec_of,
    },
    rows::{key, outbox},
    schema::{self, FieldSpec, Fields, Kind, Presence, ResourceSpec},
    store::{Batch, Check, Commit, Key, Prior, Record, Revision, Span, Store, all_sound, key_of},
    value::{FieldValue, Text, Timestamp},
};
use bytes::Bytes;
use std::{collections::HashMap, future::Future, pin::Pin};
use uuid::Uuid;

/// A batch, and the object that the caller gets when it is committed.
#[derive(Debug)]
pub struct Prepared {
    /// What to commit; empty when nothing changes.
    pub batch: Batch,
    /// The object as a GET will return it.
    pub body: Bytes,
    /// Its revision after the commit.
    pub revision: Revision,
}

/// A future of a write.
pub type Preparing<'a> = Pin<Box<dyn Future<Output = Result<Prepared, Error>> + Send + 'a>>;

/// A write that can be prepared again when what it read has changed.
pub trait Intent: Send + Sync {
    /// Reads and decides, without writing anything.
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a>;
}

/// How a write ended.
#[derive(Debug)]
pub struct Written {
    /// The edge's number for how it ended: of a replay, that of the first answer.
    pub status: u16,
    /// The answer's bytes.
    pub body: Bytes,
    /// The object's revision, when the answer is one.
    pub revision: Option<Revision>,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    pub replayed: bool,
    /// Whether something was committed.
    pub committed: bool,
}

/// Times that a write is prepared again before it is given up as too contended.
const MOST_ATTEMPTS: usize = 256;

/// Turns an error that may be kept into an answer's status and bytes.
pub type Render<'a> = &'a (dyn Fn(&Error) -> (u16, Bytes) + Sync);

/// Performs `intent`, once for each idempotency key.
///
/// `render` turns an error that may be kept into the answer's status and bytes; `success` is the status of a success.
///
/// # Errors
/// Every error of the intent that is not kept under an idempotency key; [`Error::Unavailable`] when the outcome of the
/// commit is not known or others changed the same objects too often.
pub async fn write(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: Uuid,
    ticket: Option<&Ticket>,
    intent: &dyn Intent,
    (success, render): (u16, Render<'_>),
) -> Result<Written, Error> {
    for _ in 0..MOST_ATTEMPTS {
        let mut outdated = None;
        if let Some(ticket) = ticket {
            match idempotency::look_up(store, organization, ticket, edge.now()).await? {
                Known::Answered(memo) => return Ok(replay(memo)),
                Known::Fresh(record) => outdated = record,
            }
        }
        let (mut batch, mut written) = match intent.prepare(store, edge).await {
            Ok(Prepared { batch, body, revision }) => {
                (batch, Written { status: success, body, revision: Some(revision), replayed: false, committed: false })
            }
            Err(error) if ticket.is_some() && error.is_final() => {
                let (status, body) = render(&error);
                (Batch::default(), Written { status, body, revision: None, replayed: false, committed: false })
            }
            Err(error) => return Err(error),
        };
        if let Some(ticket) = ticket {
            let answer = (written.status, written.revision, &written.body);
            idempotency::remember(&mut batch, organization, ticket, outdated, answer, edge.now());
        }
        if batch.is_empty() {
            return Ok(written);
        }
        if store.commit(batch).await? == Commit::Applied {
            written.committed = true;
            return Ok(written);
        }
    }
    Err(Error::Unavailable("others changed the same objects too often".into()))
}

fn replay(memo: Memo) -> Written {
    let body = Bytes::copy_from_slice(memo.body.get().as_bytes());
    Written { status: memo.status, body, revision: memo.revision, replayed: true, committed: false }
}

/// Reads one object.
///
/// # Errors
/// [`Error::NotFound`] for an unknown id, a malformed one and one of another organization alike.
pub async fn get(
    store: &dyn Store,
    organization: Uuid,
    spec: &'static ResourceSpec,
    id: &str,
) -> Result<Record, Error> {
    let missing = Error::NotFound { object: spec.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    let keys = [key::record(organization, spec, id)];
    store.get(&keys).await?.pop().flatten().ok_or(missing)
}

/// Organizations that are read at a time, and candidates that are looked up at a time.
const CANDIDATES: usize = 10_000;

/// The organization that owns an object, for an operator's request that names the object's id alone. All organizations
/// are candidates; one batched read finds the one that has the object, or one for each 10,000 organizations.
///
/// # Errors
/// [`Error::NotFound`] when no organization has it.
pub async fn owner_of(store: &dyn Store, spec: &'static ResourceSpec, id: &str) -> Result<Organization, Error> {
    let missing = Error::NotFound { object: spec.object };
    let Some(id) = page::id(id) else { return Err(missing) };
    let prefix = key::records(SYSTEM, &organization::SPEC);
    let mut span = Span::newest_first(&prefix);
    loop {
        let page = store.scan(&span, CANDIDATES).await?;
        // The key of a damaged organization still tells its id: only who asks for an object of it is answered an error.
        let keys: Vec<Key> = page.iter().filter_map(|row| Some(key::record(key_of(row).id()?, spec, id))).collect();
        if let Some(at) = store.get(&keys).await?.iter().position(Option::is_some) {
            let owner = page.into_iter().nth(at).ok_or(missing)?.map_err(Error::Damaged)?;
            return parse(&owner.key, &owner.value);
        }
        match page.last() {
            Some(last) if page.len() == CANDIDATES => span.to = key_of(last).clone(),
            _ => return Err(missing),
        }
    }
}

/// Reads one page, as the list envelope.
///
/// # Errors
/// The store cannot serve.
pub async fn list(
    store: &dyn Store,
    organization: Uuid,
    spec: &'static ResourceSpec,
    query: &ListQuery,
) -> Result<Bytes, Error> {
    let records = match query.span(organization, spec) {
        Some(span) => all_sound(store.scan(&span, query.limit + 1).await?)?,
        None => Vec::new(),
    };
    page::envelope(&records, spec, query)
}

/// A POST: a new object of `collection`.
pub struct Create<'a> {
    /// What is created.
    pub collection: &'a Collection,
    /// For whom.
    pub organization: &'a Organization,
    /// The request's body.
    pub body: &'a [u8],
    /// Values that the edge gives for fields that only the server sets.
    pub given: &'a [(&'static str, FieldValue)],
}

impl Intent for Create<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (spec, organization) = (self.collection.spec, self.organization);
            let rule = self.collection.create.ok_or_else(|| Error::Internal(format!("{} has no POST", spec.object)))?;
            // An object's currency is that of its organization, which never changes; so are its decimals.
            let sent = Fields::parse(self.body, spec, Verb::Create, organization.default_currency.digits())?;
            let mut batch = Batch::default();
            let references = references(store, organization.id, &sent, &mut batch).await?;
            let number = match self.collection.counter {
                Some(name) => next_number(store, organization.id, name, &mut batch).await?,
                None => 0,
            };
            let id = edge.new_id();
            let created = created_at(id);
            let given = |name| self.given.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
            let otherwise =
                |field: &FieldSpec| given(field.name).or_else(|| server_value(field, spec, organization, id, created));
            let facts = Facts { now: created, organization, references: &references, number };
            let outcome = rule(&sent, &otherwise, &facts)?;
            let place = key::record(organization.id, spec, id);
            batch.insert(place.clone(), outcome.object.clone().into());
            finish(store, edge, organization, spec, place, outcome, batch).await.map(|(batch, body)| Prepared {
                batch,
                body,
                revision: 1,
            })
        })
    }
}

/// A PATCH of one object of `collection`.
pub struct Update<'a> {
    /// What is changed.
    pub collection: &'a Collection,
    /// Whose it is.
    pub organization: &'a Organization,
    /// The id in the path.
    pub id: &'a str,
    /// The request's body.
    pub body: &'a [u8],
    /// Whether the present revision is one that the caller expects.
    pub expected: &'a (dyn Fn(Revision) -> bool + Sync),
}

impl Intent for Update<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (spec, organization) = (self.collection.spec, self.organization);
            let change =
                self.collection.update.ok_or_else(|| Error::Internal(format!("{} has no PATCH", spec.object)))?;
            let sent = Fields::parse(self.body, spec, Verb::Update, organization.default_currency.digits())?;
            let before = get(store, organization.id, spec, self.id).await?;
            if !(self.expected)(before.revision) {
                return Err(Error::PreconditionFailed);
            }
            let mut batch = Batch::default();
            let references = references(store, organization.id, &sent, &mut batch).await?;
            let facts = Facts { now: edge.now(), organization, references: &references, number: 0 };
            let outcome = change(&before, &sent, &facts)?;
            replace(store, edge, organization, spec, before, outcome, batch).await
        })
    }
}

/// Changes one object by a rule of the operator; the rule gives the events.
///
/// # Errors
/// What the rule says, and what [`replace`] says.
pub async fn edit<T: Resource>(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    before: Record,
    rule: impl FnOnce(&mut T) -> Result<Vec<EventType>, Error>,
) -> Result<Prepared, Error> {
    let mut object: T = parse(&before.key, &before.value)?;
    let effects_before = Some(resources::effects::of(&object));
    let events = rule(&mut object)?;
    let bytes = serde_json::to_vec(&object).map_err(|error| Error::Internal(error.to_string()))?;
    let outcome = Outcome {
        changed: bytes != before.value,
        object: bytes,
        events,
        effects_before,
        effects: resources::effects::of(&object),
    };
    replace(store, edge, organization, T::SPEC, before, outcome, Batch::default()).await
}

/// Adds a new object, which nobody else has under this id, to a batch with all that goes with it. It fires no event.
///
/// # Errors
/// What there can be only one of is there already, or the store cannot serve.
pub async fn insert<T: Resource>(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    id: Uuid,
    object: &T,
    mut batch: Batch,
) -> Result<Batch, Error> {
    let bytes = serde_json::to_vec(object).map_err(|error| Error::Internal(error.to_string()))?;
    let place = key::record(organization.id, T::SPEC, id);
    batch.insert(place.clone(), bytes.clone().into());
    let outcome = Outcome {
        changed: true,
        object: bytes,
        events: Vec::new(),
        effects_before: None,
        effects: resources::effects::of(object),
    };
    finish(store, edge, organization, T::SPEC, place, outcome, batch).await.map(|(batch, _)| batch)
}

/// Turns the decision about an object that exists into a batch: nothing changed and nothing to tell means nothing to write.
///
/// # Errors
/// The holds of the object clash with others, or the store cannot serve.
pub async fn replace(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    spec: &'static ResourceSpec,
    before: Record,
    outcome: Outcome,
    mut batch: Batch,
) -> Result<Prepared, Error> {
    if !outcome.changed && outcome.events.is_empty() {
        return Ok(Prepared { batch: Batch::default(), revision: before.revision, body: before.value });
    }
    let revision = before.revision + u64::from(outcome.changed);
    if outcome.changed {
        batch.replace(before.key.clone(), before.revision, outcome.object.clone().into());
    }
    let (batch, body) = finish(store, edge, organization, spec, before.key, outcome, batch).await?;
    Ok(Prepared { batch, body, revision })
}

/// Everything that goes with an object's new state: index entries, holds, events.
pub(crate) async fn finish(
    store: &dyn Store,
    edge: &dyn Edge,
    organization: &Organization,
    spec: &'static ResourceSpec,
    place: Key,
    outcome: Outcome,
    mut batch: Batch,
) -> Result<(Batch, Bytes), Error> {
    let id = place.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
    let object = Bytes::from(outcome.object);
    effects::change(store, organization, (spec, id), outcome.effects_before, outcome.effects, &mut batch).await?;
    if !outcome.events.is_empty() {
        let subscribed = is_subscribed(store, organization.id, &mut batch).await?;
        for kind in outcome.events {
            emit(&mut batch, organization.id, edge, kind, &object, subscribed);
        }
    }
    Ok((batch, object))
}

/// Whether the organization has webhook endpoints. That it has none is a check of the commit, so an endpoint that is
/// made at the same moment misses nothing; and whoever has none does not pay for an outbox.
async fn is_subscribed(store: &dyn Store, organization: Uuid, batch: &mut Batch) -> Result<bool, Error> {
    let mark = [key::subscribed(organization)];
    let found = store.get(&mark).await?.pop().flatten().is_some();
    if !found {
        let [mark] = mark;
        batch.checks.push(Check::Absent(mark));
    }
    Ok(found)
}

/// Adds an event, its index entry and its outbox row to the batch of the change that it tells of.
fn emit(batch: &mut Batch, organization: Uuid, edge: &dyn Edge, kind: EventType, data: &Bytes, subscribed: bool) {
    let id = edge.new_id();
    batch.insert(key::record(organization, &event::SPEC, id), event::body(id, kind, edge.now(), data));
    event::index_keys(organization, id, kind.as_str()).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    if subscribed {
        batch.put(key::outbox(id), outbox::value(organization, kind.as_str()), Prior::New);
    }
}

/// The objects that the body names, each a check of the commit; all that do not exist are reported at once.
pub(crate) async fn references(
    store: &dyn Store,
    organization: Uuid,
    sent: &Fields,
    batch: &mut Batch,
) -> Result<HashMap<String, Record>, Error> {
    let mut named = Vec::new();
    let mut errors = FieldErrors::default();
    for (field, object, id) in sent.references() {
        let spec = spec_of(object).ok_or_else(|| Error::Internal(format!("no resource is called {object}")))?;
        match page::id(id) {
            Some(id) => named.push((field, object, key::record(organization, spec, id))),
            None => errors.add(|| missing(&field, object)),
        }
    }
    let keys: Vec<Key> = named.iter().map(|(.., key)| key.clone()).collect();
    let mut found = HashMap::new();
    if !keys.is_empty() {
        for ((field, object, key), record) in named.into_iter().zip(store.get(&keys).await?) {
            match record {
                Some(record) => {
                    // What an invoice bills must be as it was read; of others it is enough that they exist.
                    let billed = matches!(object, "toll" | "violation");
                    batch.checks.push(if billed { Check::At(key, record.revision) } else { Check::Present(key) });
                    found.insert(field, record);
                }
                None => errors.add(|| missing(&field, object)),
            }
        }
    }
    errors.or(found)
}

fn missing(field: &str, object: &str) -> FieldError {
    FieldError::new(field, FieldCode::ResourceMissing, &format!("names no {object} that exists"))
}

/// Takes the next number of a counter: two that race cannot get the same one, and none is left out.
pub(crate) async fn next_number(
    store: &dyn Store,
    organization: Uuid,
    name: &str,
    batch: &mut Batch,
) -> Result<u64, Error> {
    let place = key::counter(organization, name);
    // The revision counts the writes of a record, so a counter needs no value of its own.
    let last = store.get(std::slice::from_ref(&place)).await?.pop().flatten().map(|record| record.revision);
    match last {
        Some(revision) => batch.replace(place, revision, Bytes::new()),
        None => batch.insert(place, Bytes::new()),
    }
    Ok(last.unwrap_or(0) + 1)
}

/// An object's `created_at` is the time in its id, so that a range of times is a range of ids.
pub(crate) fn created_at(id: Uuid) -> Timestamp {
    Timestamp::from_millis(i64::try_from(id.as_u128() >> 80).unwrap_or(0))
}

fn server_value(
    field: &FieldSpec,
    spec: &ResourceSpec,
    organization: &Organization,
    id: Uuid,
    created: Timestamp,
) -> Option<FieldValue> {
    Some(match (field.name, field.kind) {
        ("id", _) => FieldValue::Id(id),
        ("object", _) => FieldValue::Plain(spec.object.to_owned()),
        ("currency", Kind::Currency) => FieldValue::Currency(organization.default_currency),
        ("api_version", _) => FieldValue::Text(Text::fit(schema::API_VERSION, 255)),
        // A rental keeps the zone in which it was made; an organization chooses its own.
        ("time_zone", Kind::TimeZone) if field.create == Presence::Never => FieldValue::Zone(organization.time_zone),
        ("organization_id", Kind::Id) => FieldValue::Id(organization.id),
        ("created_at" | "updated_at", _) => FieldValue::Time(created),
        _ => return None,
    })
}
