//! Who should pay for a toll or violation that nobody is attached to, and attaching what is clear.

use crate::{
    app::App,
    http::{
        call::Call,
        reply::{Problem, Reply},
        write::write,
    },
};
use rental_core::{
    attribution::{self, Attributable, Candidate, Moment, Verdict, Whose},
    error::{Error, FieldCode},
    operation::{self, Edge, Intent, Prepared, Preparing},
    page::{self, ListQuery},
    resources::{organization::Organization, parse, unattached_look_up},
    spec::ResourceSpec,
    store::{Batch, Record, Store, all_sound},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::marker::PhantomData;
use uuid::Uuid;

/// GET /admin/v1/organizations/{organization}/tolls/suggestions and /violations/suggestions.
pub(crate) async fn list<T: Attributable>(
    app: &App,
    call: &Call,
    organization: &Organization,
) -> Result<Reply, Problem> {
    let query = page::parameters(call.query(), &["limit", "starting_after"])?;
    let raw = query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let page = Page::of(&ListQuery::parse(&raw, T::SPEC)?);
    let judged = judge_page::<T>(app.store(), None, organization, &page).await?;
    Ok(Reply::json(judged.body.to_string().into()))
}

/// POST on the same: attaches what is clear on one page, in one transaction.
pub(crate) async fn attach<T: Attributable>(
    app: &App,
    call: &Call,
    organization: &Organization,
    body: &[u8],
) -> Result<Reply, Problem> {
    let asked: Asked = if body.is_empty() { Asked::default() } else { read(body)? };
    let limit = asked.limit.unwrap_or(100);
    if !(1..=100).contains(&limit) {
        return Err(Error::field("limit", FieldCode::Invalid, "must be a whole number from 1 to 100").into());
    }
    let wrong = || Error::field("starting_after", FieldCode::Invalid, "must be the `next_cursor` of an earlier answer");
    let after = asked.starting_after.map(|text| page::id(&text).ok_or_else(wrong)).transpose()?;
    let intent = AttachPage::<T> { organization, page: Page { limit, after }, resource: PhantomData };
    let reply = write(app, organization, call, body, &intent).await?;
    Ok(reply.without_revision())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    limit: Option<usize>,
    starting_after: Option<String>,
}

fn read(body: &[u8]) -> Result<Asked, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Malformed(format!("The body takes `limit` and `starting_after` alone: {error}.")))
}

struct Page {
    limit: usize,
    after: Option<Uuid>,
}

impl Page {
    fn of(query: &ListQuery) -> Self {
        Self { limit: query.limit, after: query.starting_after }
    }
}

struct AttachPage<'a, T> {
    organization: &'a Organization,
    page: Page,
    resource: PhantomData<fn() -> T>,
}

impl<T: Attributable> Intent for AttachPage<'_, T> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let Judged { batch, body } = judge_page::<T>(store, Some(edge), self.organization, &self.page).await?;
            Ok(Prepared { batch, body: body.to_string().into(), revision: 1 })
        })
    }
}

#[derive(Default)]
struct Judged {
    batch: Batch,
    body: Value,
}

/// Judges one page of what nobody is attached to, newest first; with an edge, attaches what is clear.
async fn judge_page<T: Attributable>(
    store: &dyn Store,
    edge: Option<&dyn Edge>,
    organization: &Organization,
    page: &Page,
) -> Result<Judged, Error> {
    let look_up = unattached_look_up();
    let mut span = look_up.span(organization.id, T::SPEC);
    if let Some(after) = page.after {
        span = span.before_id(&look_up.prefix(organization.id, T::SPEC), after);
    }
    let mut found = all_sound(store.scan(&span, page.limit + 1).await?)?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().and_then(|record| record.key.id()).filter(|_| has_more);
    let mut judged = Judged::default();
    let mut rows = Vec::with_capacity(found.len());
    for record in found {
        rows.push(judge::<T>(store, edge, organization, record, &mut judged.batch).await?);
    }
    judged.body = json!({"object": "list", "has_more": has_more, "next_cursor": last, "data": rows});
    Ok(judged)
}

async fn judge<T: Attributable>(
    store: &dyn Store,
    edge: Option<&dyn Edge>,
    organization: &Organization,
    record: Record,
    batch: &mut Batch,
) -> Result<Value, Error> {
    let mut object: T = parse(&record.key, &record.value)?;
    let known = *object.vehicle();
    let (vehicle, verdict) = decide(store, organization, &object, known).await?;
    let attaches = edge.is_some() && matches!(verdict, Verdict::Clear(_));
    let row = row(T::SPEC, record.key.id(), vehicle, &verdict, attaches);
    // A vehicle that was found is kept even when it is not clear who had it.
    if let Some(edge) = edge.filter(|_| attaches || (vehicle.is_some() && known.is_none())) {
        let now = edge.now();
        let rule = |object: &mut T| {
            *object.vehicle() = vehicle;
            object.touch(now);
            let Verdict::Clear(candidate) = &verdict else { return Ok(Vec::new()) };
            object.attach(candidate.customer, candidate.rental);
            Ok(vec![T::ATTACHED])
        };
        let prepared = operation::edit(store, edge, organization, record, rule).await?;
        batch.checks.extend(prepared.batch.checks);
        batch.writes.extend(prepared.batch.writes);
    }
    Ok(row)
}

async fn decide<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    object: &T,
    known: Option<Uuid>,
) -> Result<(Option<Uuid>, Verdict), Error> {
    let nobody = |why: &str| Verdict::Nobody(why.to_owned(), Vec::new());
    let [tag, plate, state] = object.identifiers();
    let whose = match known {
        Some(vehicle) => Whose::One(vehicle),
        None => attribution::vehicle_of(store, organization.id, tag, (plate, state)).await?,
    };
    let vehicle = match whose {
        Whose::One(vehicle) => vehicle,
        Whose::None => return Ok((None, nobody("No vehicle has this transponder or plate."))),
        Whose::Unclear(why) => return Ok((None, Verdict::Unclear(why, Vec::new()))),
    };
    let (at, on) = object.when();
    let Some(moment) = Moment::new(at, on, organization.time_zone) else {
        return Ok((Some(vehicle), nobody("It is not known when it happened.")));
    };
    let rentals = attribution::rentals_around(store, organization.id, vehicle, moment.day).await?;
    Ok((Some(vehicle), attribution::decide(&rentals, moment, T::OCCASION, organization.time_zone)))
}

/// A suggestion as the answer shows it.
fn row(spec: &ResourceSpec, id: Option<Uuid>, vehicle: Option<Uuid>, verdict: &Verdict, attached: bool) -> Value {
    let (word, reason, clear, candidates) = match verdict {
        Verdict::Clear(candidate) => ("clear", &candidate.reason, Some(candidate), std::slice::from_ref(candidate)),
        Verdict::Unclear(reason, candidates) => ("unclear", reason, None, candidates.as_slice()),
        Verdict::Nobody(reason, candidates) => ("nobody", reason, None, candidates.as_slice()),
    };
    let shown = |candidate: &Candidate| json!({"rental_id": candidate.rental, "customer_id": candidate.customer, "reason": candidate.reason});
    json!({
        "object": "suggestion", "resource": spec.object, "id": id, "verdict": word, "reason": reason,
        "vehicle_id": vehicle, "rental_id": clear.map(|one| one.rental), "customer_id": clear.map(|one| one.customer),
        "attached": attached, "candidates": candidates.iter().take(20).map(shown).collect::<Vec<_>>(),
    })
}
