//! Who should pay for a toll or violation that nobody is attached to, and attaching what is clear.

use crate::{
    http::{
        call::Call,
        reply::{Problem, Reply},
    },
    objects::write::write,
    state::App,
};
use rental_core::{
    attribution::{self, Candidate, Moment, Occasion, Verdict, Whose},
    error::{Error, FieldCode},
    event::EventType,
    operation::{self, Edge, Intent, Prepared, Preparing},
    page::{self, ListQuery},
    resources::{Resource, organization::Organization, parse, toll::Toll, unattached_look_up, violation::Violation},
    spec::ResourceSpec,
    store::{Batch, Record, Span, Store},
    value::{Date, Timestamp},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// What a toll and a violation have in common when it comes to who pays.
trait Chargeable: Resource {
    const OCCASION: Occasion;
    const ATTACHED: EventType;

    fn vehicle(&mut self) -> &mut Option<Uuid>;
    /// Transponder, plate and the plate's state.
    fn identifiers(&self) -> [Option<&str>; 3];
    fn when(&self) -> (Option<Timestamp>, Option<Date>);
    fn attach(&mut self, customer: Uuid, rental: Uuid);
}

impl Chargeable for Toll {
    const OCCASION: Occasion = Occasion::Toll;
    const ATTACHED: EventType = EventType::TollAttached;

    fn vehicle(&mut self) -> &mut Option<Uuid> {
        &mut self.vehicle_id
    }

    fn identifiers(&self) -> [Option<&str>; 3] {
        [&self.transponder_number, &self.plate, &self.plate_state].map(Option::as_deref)
    }

    fn when(&self) -> (Option<Timestamp>, Option<Date>) {
        (self.occurred_at, self.occurred_on)
    }

    fn attach(&mut self, customer: Uuid, rental: Uuid) {
        (self.customer_id, self.rental_id) = (Some(customer), Some(rental));
        self.attribution = Some("automatic".into());
    }
}

impl Chargeable for Violation {
    const OCCASION: Occasion = Occasion::Violation;
    const ATTACHED: EventType = EventType::ViolationAttached;

    fn vehicle(&mut self) -> &mut Option<Uuid> {
        &mut self.vehicle_id
    }

    fn identifiers(&self) -> [Option<&str>; 3] {
        [None, self.plate.as_deref(), self.state.as_deref()]
    }

    fn when(&self) -> (Option<Timestamp>, Option<Date>) {
        (self.issued_at, self.issued_on)
    }

    fn attach(&mut self, customer: Uuid, rental: Uuid) {
        (self.customer_id, self.rental_id) = (Some(customer), Some(rental));
        self.attribution = Some("automatic".into());
    }
}

/// GET /admin/v1/organizations/{organization}/tolls/suggestions and /violations/suggestions.
pub(crate) async fn list(
    app: &App,
    call: &Call,
    organization: &Organization,
    spec: &'static ResourceSpec,
) -> Result<Reply, Problem> {
    let query = page::parameters(call.query(), &["limit", "starting_after"])?;
    let raw = query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let page = Page::of(&ListQuery::parse(&raw, spec)?);
    let judged = match spec.object {
        "toll" => judge_page::<Toll>(app.store(), None, organization, &page).await?,
        _ => judge_page::<Violation>(app.store(), None, organization, &page).await?,
    };
    Ok(Reply::json(judged.body.to_string().into()))
}

/// POST on the same: attaches what is clear on one page, in one transaction.
pub(crate) async fn attach(
    app: &App,
    call: &Call,
    organization: &Organization,
    spec: &'static ResourceSpec,
    body: &[u8],
) -> Result<Reply, Problem> {
    let asked: Asked = if body.is_empty() { Asked::default() } else { read(body)? };
    let limit = asked.limit.unwrap_or(100);
    if !(1..=100).contains(&limit) {
        return Err(Error::field("limit", FieldCode::Invalid, "must be a whole number from 1 to 100").into());
    }
    let wrong = || Error::field("starting_after", FieldCode::Invalid, "must be the `next_cursor` of an earlier answer");
    let after = asked.starting_after.map(|text| page::id(&text).ok_or_else(wrong)).transpose()?;
    let intent = AttachPage { organization, spec, page: Page { limit, after } };
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

struct AttachPage<'a> {
    organization: &'a Organization,
    spec: &'static ResourceSpec,
    page: Page,
}

impl Intent for AttachPage<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let Judged { batch, body } = match self.spec.object {
                "toll" => judge_page::<Toll>(store, Some(edge), self.organization, &self.page).await?,
                _ => judge_page::<Violation>(store, Some(edge), self.organization, &self.page).await?,
            };
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
async fn judge_page<T: Chargeable>(
    store: &dyn Store,
    edge: Option<&dyn Edge>,
    organization: &Organization,
    page: &Page,
) -> Result<Judged, Error> {
    let prefix = unattached_look_up().prefix(organization.id, T::SPEC);
    let mut span = Span::newest_first(&prefix);
    if let Some(after) = page.after {
        span = span.before_id(&prefix, after);
    }
    let mut found = store.scan(&span, page.limit + 1).await?;
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

async fn judge<T: Chargeable>(
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

async fn decide<T: Chargeable>(
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
