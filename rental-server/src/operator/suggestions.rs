//! Suggests customers for tolls and violations without one, and attaches the clear ones.

use crate::{
    endpoint::{BodySchema, Endpoint, Parameter, Request, camel, get, post},
    guard::{Operator, Reader},
    http::reply::Handled,
    objects::{leaving_out, listed, write::write},
    operator::{bodies, collections},
    reference::{
        parts,
        shapes::{amount, cursor, described, integer, named, object, optional_id, page_of, text, word},
    },
};
use rental_core::{
    attachments::{Derived, Deriving, local_time, of_vehicle},
    error::{Error, FieldCode},
    fleet::{
        VehicleMatch,
        attribution::{Candidate, Verdict},
    },
    imports::statements::KINDS,
    operations::{self, Edge, Intent, Listed, Prepared, Preparing},
    request::page::{self, ListQuery},
    resources::{Attributable, organization::Organization, parse, unattached_look_up},
    rows::recheck::absorb,
    schema::ResourceSpec,
    store::{Batch, DamagedRow, Record, Store},
    value::VehicleId,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};
use uuid::Uuid;

/// Candidates of a suggestion that a response shows.
const MOST_CANDIDATES: usize = 20;

/// The endpoints for tolls or violations.
pub(super) fn endpoints<T: Attributable>() -> Vec<Endpoint> {
    let (plural, many) = (T::SPEC.plural.replace('_', " "), camel(T::SPEC.plural));
    let path = format!("/admin/v1/organizations/{{organization}}/{}/suggestions", T::SPEC.plural);
    let suggest = get(&path)
        .about(T::SPEC, format!("suggestCustomersOf{many}"), format!("Suggest who pays for {plural}"))
        .says("Lists those without a customer, newest first. Each suggestion has the rental that had the vehicle at that time, if it is clear, and the reason.")
        .parameters(["Limit", "StartingAfter"].map(Parameter::Shared).into())
        .replies("SuggestionList")
        .without_revision()
        .defines("SuggestionList", schema())
        .reader(|request| Box::pin(list::<T>(request)));
    let attach = post(&path)
        .about(T::SPEC, format!("attach{many}"), format!("Attach {plural} to the customers who clearly pay"))
        .says("Attaches the clear ones of a page, and lists the others with reasons. It never changes an existing attachment.")
        .takes(BodySchema::Own(body()))
        .replies("SuggestionList")
        .without_revision()
        .operator(|request| Box::pin(attach::<T>(request)));
    vec![suggest, attach]
}

async fn list<T: Attributable>(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    let organization = collections::organization_named(app.store(), id).await?;
    page::parameters(call.query(), &["limit", "starting_after"])?;
    let query = ListQuery::parse(call.query(), T::SPEC)?;
    let page = Page { limit: query.limit, after: query.starting_after };
    let judged = judge_page::<T>(app.store(), None, &organization, &page).await?;
    Ok(listed(app, Listed { body: judged.body.to_string().into(), damaged: judged.damaged }))
}

/// Attaches what is clear on one page, in one transaction.
async fn attach<T: Attributable>(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = collections::organization_named(app.store(), id).await?;
    let asked: Asked = bodies::optional(&body, "`limit` and `starting_after`")?;
    let limit = asked.limit.unwrap_or(100);
    if !(1..=100).contains(&limit) {
        return Err(Error::field("limit", FieldCode::Invalid, "must be a whole number from 1 to 100").into());
    }
    let after = bodies::cursor(asked.starting_after.as_deref())?;
    let page = Page { limit, after };
    let intent =
        AttachPage { organization: &organization, page, damaged: Mutex::default(), resource: PhantomData::<fn() -> T> };
    let reply = write(app, &organization, call, &body, &intent).await?;
    let damaged = intent.damaged.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(leaving_out(app, reply.without_revision(), &damaged))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    limit: Option<usize>,
    starting_after: Option<String>,
}

/// A page of objects without a customer.
struct Page {
    limit: usize,
    after: Option<Uuid>,
}

struct AttachPage<'a, T> {
    organization: &'a Organization,
    page: Page,
    /// The rows because of which objects were left out.
    damaged: Mutex<Vec<DamagedRow>>,
    resource: PhantomData<fn() -> T>,
}

impl<T: Attributable> Intent for AttachPage<'_, T> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let judged = judge_page::<T>(store, Some(edge), self.organization, &self.page).await?;
            let Judged { batch, body, damaged } = judged;
            *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = damaged;
            Ok(Prepared { batch, body: body.to_string().into(), revision: 1, object: None, asks: Vec::new() })
        })
    }
}

#[derive(Default)]
struct Judged {
    batch: Batch,
    body: Value,
    /// A row for each object that is left out, because it or a row that it needs is damaged.
    damaged: Vec<DamagedRow>,
}

/// Judges one page of objects without a customer, newest first. With an edge, attaches the clear ones.
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
    let (mut found, damaged) = operations::sound_page(store, &span, page.limit).await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().and_then(|record| record.key.id()).filter(|_| has_more);
    let mut judged = Judged { damaged, ..Judged::default() };
    let (mut vehicles, mut more) = (Vec::with_capacity(found.len()), Vec::new());
    let mut deriving = Deriving::new(store, organization);
    for record in found {
        let read = async {
            let object: T = parse(&record.key, &record.value)?;
            let whose = deriving.whose(&object).await?;
            Ok((object, whose))
        };
        let Some((object, whose)) = Error::note_damage(read.await, &mut judged.damaged)? else { continue };
        if let VehicleMatch::One(vehicle) = whose
            && object.known_vehicle() != Some(vehicle)
        {
            more.push(of_vehicle(&object, vehicle));
        }
        vehicles.push((record, object, whose));
    }
    let mut rows = Vec::with_capacity(vehicles.len());
    for (record, object, whose) in vehicles {
        let row = async {
            let derived = deriving.derive_for(&object, whose, &more).await?;
            judge(store, edge, organization, (record, &object, derived), &mut judged.batch).await
        };
        rows.extend(Error::note_damage(row.await, &mut judged.damaged)?);
    }
    judged.body = json!({"object": "list", "has_more": has_more, "next_cursor": last, "data": rows});
    Ok(judged)
}

async fn judge<T: Attributable>(
    store: &dyn Store,
    edge: Option<&dyn Edge>,
    organization: &Organization,
    (record, object, derived): (Record, &T, Derived),
    batch: &mut Batch,
) -> Result<Value, Error> {
    let (known, unattached) = (object.known_vehicle(), derived.without_customer(object));
    let Derived { vehicle, verdict, twin } = derived;
    let attaches = edge.is_some() && matches!(verdict, Verdict::Clear(_));
    let mut row = row(T::SPEC, record.key.id(), vehicle, &verdict, attaches);
    row["when"] = json!(local_time(organization, object));
    row["plate"] = json!(object.identifiers()[1]);
    row["amount"] = json!(object.charged().amount);
    row["currency"] = json!(object.charged().currency);
    row["twin_id"] = json!(twin.map(|(id, _)| id));
    let is_new = (vehicle.is_some() && known != vehicle) || object.payer() != unattached;
    // A vehicle that was found, and a probable twin, are recorded also when the customer is not clear.
    if let Some(edge) = edge.filter(|_| attaches || is_new) {
        let now = edge.now();
        let rule = |object: &mut T| {
            *object.vehicle() = vehicle.or(known);
            object.touch(now);
            let Verdict::Clear(candidate) = &verdict else {
                object.set_payer(unattached);
                return Ok(Vec::new());
            };
            object.attach(candidate.customer, candidate.rental, &candidate.reason);
            Ok(vec![T::ATTACHED])
        };
        let prepared = operations::edit(store, edge, organization, record, rule).await?;
        absorb(batch, prepared.batch);
    }
    Ok(row)
}

/// A suggestion as the response shows it.
fn row(spec: &ResourceSpec, id: Option<Uuid>, vehicle: Option<VehicleId>, verdict: &Verdict, attached: bool) -> Value {
    let (word, reason, clear, candidates) = match verdict {
        Verdict::Clear(candidate) => ("clear", &candidate.reason, Some(candidate), std::slice::from_ref(candidate)),
        Verdict::Unclear(reason, candidates) => ("unclear", reason, None, candidates.as_slice()),
        Verdict::Nobody(reason, candidates) => ("nobody", reason, None, candidates.as_slice()),
    };
    let shown = |candidate: &Candidate| json!({"rental_id": candidate.rental, "customer_id": candidate.customer, "reason": candidate.reason});
    json!({
        "object": "suggestion", "resource": spec.object, "id": id, "verdict": word, "reason": reason,
        "vehicle_id": vehicle, "rental_id": clear.map(|one| one.rental), "customer_id": clear.map(|one| one.customer),
        "attached": attached, "candidates": candidates.iter().take(MOST_CANDIDATES).map(shown).collect::<Vec<_>>(),
    })
}

/// The body that attaches a page of suggestions.
fn body() -> Value {
    let properties = json!({
        "limit": described(integer(1, 100), "How many to look at. Default: `100`."),
        "starting_after": cursor(),
    });
    parts::action_body(properties, &[], json!({}))
}

/// A page of suggestions.
fn schema() -> Value {
    let candidate = json!({
        "rental_id": optional_id("The rental."), "customer_id": optional_id("Its customer."),
        "reason": text("What speaks for and against it."),
    });
    let suggestion = json!({
        "object": {"type": "string", "const": "suggestion"},
        "resource": word("BilledResource", &KINDS.map(|kind| kind.resource.object)),
        "id": optional_id("The toll or violation."),
        "verdict": described(word("Verdict", &["clear", "unclear", "nobody"]), "Whether one rental answers for it, somebody has to decide, or none comes into question."),
        "reason": text("Why."),
        "vehicle_id": optional_id("The vehicle that it is about, when it is known."),
        "rental_id": optional_id("The rental that answers for it, when that is clear."),
        "customer_id": optional_id("The customer of that rental."),
        "when": {"type": ["string", "null"], "description": "The day and time in the time zone of the statement, else of the organization, with the offset from UTC, such as `2026-06-05 13:00 -04:00`; only the day when the time is not known."},
        "plate": {"type": ["string", "null"], "description": "The plate as reported."},
        "amount": described(amount(), "What an invoice bills: the amount of a toll; of a violation the amount due or, when nothing is due any more, what was paid."),
        "currency": text("The currency of the amount."),
        "twin_id": optional_id("The toll that is probably the same passage, for which this one is not attached."),
        "attached": {"type": "boolean", "description": "Whether this request attached it."},
        "candidates": {"type": "array", "items": named("SuggestionCandidate", object("A rental that may answer for it.", candidate))},
    });
    page_of(named("Suggestion", object("Who probably answers for a toll or violation.", suggestion)))
}
