//! Drafts: what an invoice of a completed rental would bill, and the invoices that an operator makes of them.

use crate::{
    endpoint::{BodySchema, Endpoint, Parameter, Request, get, post},
    guard::{Operator, Reader},
    http::reply::Handled,
    objects::{listed, write::write},
    operator::{collections, records},
    reference::{
        parts,
        shapes::{self, amount, described, integer, named, object, optional_id, text},
    },
};
use rental_core::{
    error::{Error, FieldCode},
    operations::{self, Create, Edge, Intent, Listed, Preparing},
    request::page::{self, ListQuery},
    resources::{
        Attributable, Billable, Resource,
        customer::Customer,
        invoice::{self, Invoice},
        organization::Organization,
        parse,
        rental::{self, Rental, unbilled_look_up},
        toll::Toll,
        violation::Violation,
    },
    store::{Store, all_sound, get_each},
    value::{Date, InvoiceId, Money, Name, Timestamp},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most lines of an invoice for tolls and violations: beside them it has one for its rental and two for fees.
const MOST_LINES: usize = 197;
/// Most pages of a customer's unbilled tolls, or violations, that are read for one rental.
const MOST_PAGES: usize = 10;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let path = "/admin/v1/organizations/{organization}/invoices/drafts";
    let list = get(path)
        .about(&invoice::SPEC, "listInvoiceDrafts", "List completed rentals that are not billed")
        .says("Lists completed rentals of which something is left to bill, newest first, each with the lines of the invoice that POST makes of it. Changes nothing.")
        .parameters(["Limit", "StartingAfter"].map(Parameter::Shared).into())
        .replies("InvoiceDraftList")
        .without_revision()
        .defines("InvoiceDraftList", schema())
        .reader(|request| Box::pin(list(request)));
    let create = post(path)
        .about(&invoice::SPEC, "createInvoiceOfRental", "Create the invoice of a rental")
        .says("Bills what is left of the rental's price, and the unbilled tolls and violations of its customer that belong to it. The rental may have any status.")
        .takes(BodySchema::Own(body()))
        .replies("Invoice")
        .operator(|request| Box::pin(create(request)));
    vec![list, create]
}

async fn list(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    let organization = collections::organization_named(app.store(), id).await?;
    page::parameters(call.query(), &["limit", "starting_after"])?;
    let query = ListQuery::parse(call.query(), &rental::SPEC)?;
    Ok(listed(app, page_of(app.store(), &organization, &query).await?))
}

/// A page of drafts, of the rentals that have an entry in the look-up. One that needs a damaged row is left out.
async fn page_of(store: &dyn Store, organization: &Organization, query: &ListQuery) -> Result<Listed, Error> {
    let look_up = unbilled_look_up();
    let mut span = look_up.span(organization.id, &rental::SPEC);
    if let Some(after) = query.starting_after {
        span = span.before_id(&look_up.prefix(organization.id, &rental::SPEC), after);
    }
    let (mut found, mut damaged) = operations::sound_page(store, &span, query.limit).await?;
    let has_more = found.len() > query.limit;
    found.truncate(query.limit);
    let last = found.last().and_then(|record| record.key.id()).filter(|_| has_more);
    let mut rentals: Vec<Rental> = Vec::with_capacity(found.len());
    for record in &found {
        rentals.extend(Error::note_damage(parse(&record.key, &record.value), &mut damaged)?);
    }
    let customers: Vec<_> = rentals.iter().map(|rental| Customer::key(organization.id, rental.customer_id)).collect();
    let customers = get_each(store, &customers).await?;
    let mut rows = Vec::with_capacity(rentals.len());
    for (rental, customer) in rentals.iter().zip(customers) {
        let row = async {
            let customer = customer.map_err(Error::Damaged)?;
            let customer: Option<Customer> = customer.map(|record| parse(&record.key, &record.value)).transpose()?;
            let draft = draft(store, organization, rental, [true, true]).await?;
            Ok(draft.row(rental, customer.map(|customer| customer.full_name)))
        };
        rows.extend(Error::note_damage(row.await, &mut damaged)?);
    }
    let list = json!({"object": "list", "has_more": has_more, "next_cursor": last, "data": rows});
    Ok(Listed { body: list.to_string().into(), damaged })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    rental_id: String,
    #[serde(default)]
    with_tolls: bool,
    #[serde(default)]
    with_violations: bool,
}

async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = collections::organization_named(app.store(), id).await?;
    let asked: Asked = serde_json::from_slice(&body).map_err(|error| {
        Error::Malformed(format!(
            "The body takes `rental_id`, which is required, `with_tolls` and `with_violations` alone: {error}."
        ))
    })?;
    write(app, &organization, call, &body, &InvoiceOfRental { organization: &organization, asked: &asked }).await
}

/// An operator makes the invoice of a rental.
struct InvoiceOfRental<'a> {
    organization: &'a Organization,
    asked: &'a Asked,
}

impl Intent for InvoiceOfRental<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let Self { organization, asked } = *self;
            let found = operations::get(store, organization.id, &rental::SPEC, &asked.rental_id).await;
            let record = found.map_err(|error| match error {
                Error::NotFound { .. } => {
                    Error::field("rental_id", FieldCode::ResourceMissing, "names no rental that exists")
                }
                error => error,
            })?;
            let rental: Rental = parse(&record.key, &record.value)?;
            let draft = draft(store, organization, &rental, [asked.with_tolls, asked.with_violations]).await?;
            if let Some(problem) = draft.problem {
                return Err(Error::Conflict(problem.into()));
            }
            let collection =
                records::collection("invoice").ok_or_else(|| Error::Internal("invoices cannot be recorded".into()))?;
            let mut body = json!({"customer_id": rental.customer_id, "rental_id": rental.id, "lines": draft.lines});
            if let Some((name, rate)) = organization.tax_name.as_ref().zip(organization.tax_rate) {
                body["tax_name"] = json!(name);
                body["tax_rate"] = json!(rate);
                body["tax_included"] = json!(organization.tax_included);
            }
            let body = body.to_string();
            Create { collection, organization, body: (&body).into(), given: &[] }.prepare(store, edge).await
        })
    }
}

/// The lines of an invoice that is not made yet.
#[derive(Default)]
struct Draft {
    lines: Vec<Value>,
    /// The sum of the lines, and what the customer pays.
    sum: Money,
    total: Money,
    tax: Option<Money>,
    tolls: usize,
    violations: usize,
    /// Whether the invoice cannot have, or the search did not reach, all that belongs to the rental.
    is_cut: bool,
    /// Why no invoice can be made.
    problem: Option<&'static str>,
}

impl Draft {
    /// Adds a line. A total of [`Money::MAX`] is a problem of the draft.
    fn add(&mut self, member: &str, id: &dyn std::fmt::Display, left: Money) {
        self.sum = self.sum.plus(left).unwrap_or(Money::MAX);
        self.lines.push(json!({member: id.to_string(), "amount": left}));
    }

    /// Adds a line with the fee for `count` tolls or violations.
    fn add_fee(&mut self, what: &str, count: u32, fee: Option<Money>, organization: &Organization) {
        let Some(fee) = fee.filter(|fee| !fee.is_zero() && count > 0) else { return };
        let all = fee.times(count).unwrap_or(Money::MAX);
        self.sum = self.sum.plus(all).unwrap_or(Money::MAX);
        let each = fee.with_digits(organization.default_currency.digits());
        self.lines.push(json!({"description": format!("{what} fee: {count} × {each}"), "amount": all}));
    }

    fn row(self, rental: &Rental, customer: Option<Name>) -> Value {
        json!({
            "object": "invoice_draft", "rental_id": rental.id, "customer_id": rental.customer_id,
            "customer_name": customer, "start_date": rental.start_date, "end_date": rental.end_date, "lines": self.lines,
            "total": self.total, "tax_amount": self.tax, "currency": rental.currency, "tolls": self.tolls, "violations": self.violations,
            "more": self.is_cut, "problem": self.problem,
        })
    }
}

/// Drafts the invoice of a rental, with tolls and with violations as asked.
async fn draft(
    store: &dyn Store,
    organization: &Organization,
    rental: &Rental,
    [tolls, violations]: [bool; 2],
) -> Result<Draft, Error> {
    let mut draft = Draft::default();
    let left = rental.left_to_bill();
    if !left.is_zero() {
        draft.add("rental_id", &rental.id, left);
    }
    let (mut new_tolls, mut new_violations) = (0, 0);
    if tolls {
        (draft.tolls, new_tolls) = add::<Toll>(store, organization, rental, "toll_id", &mut draft).await?;
    }
    if violations {
        (draft.violations, new_violations) =
            add::<Violation>(store, organization, rental, "violation_id", &mut draft).await?;
    }
    draft.add_fee("Toll", new_tolls, organization.toll_fee, organization);
    draft.add_fee("Violation", new_violations, organization.violation_fee, organization);
    let taxed = organization.taxed(draft.sum);
    (draft.tax, draft.total) = (taxed.map(|(tax, _)| tax), taxed.map_or(draft.sum, |(_, total)| total));
    draft.problem = match rental.price() {
        None if rental.invoice_ids.is_empty() => {
            Some("This rental has no price. Set its `final_price`, or create an invoice with the amount in a line.")
        }
        _ if draft.lines.is_empty() => Some("Nothing of this rental is left to bill."),
        _ if draft.total == Money::MAX => Some(
            "Its lines add up to more than the largest amount. Lower the fees of the organization, or bill it with several invoices.",
        ),
        _ => None,
    };
    Ok(draft)
}

/// Adds what belongs to the rental of the unbilled tolls or violations of its customer. Returns how many there are, and how
/// many of them have a fee.
async fn add<T: Attributable + Billable>(
    store: &dyn Store,
    organization: &Organization,
    rental: &Rental,
    member: &str,
    draft: &mut Draft,
) -> Result<(usize, u32), Error> {
    let mut new = 0;
    let mut query = ListQuery::parse(&format!("billed=false&customer={}&limit=100", rental.customer_id), T::SPEC)?;
    let before = draft.lines.len();
    for _ in 0..MOST_PAGES {
        let span = query.span(organization.id, T::SPEC).ok_or_else(|| Error::Internal("a list has no span".into()))?;
        let found = all_sound(store.scan(&span, query.limit).await?)?;
        for record in &found {
            let one: T = parse(&record.key, &record.value)?;
            if !belongs(&one, rental) {
                continue;
            }
            if draft.lines.len() > MOST_LINES {
                draft.is_cut = true;
                return Ok((draft.lines.len() - before, new));
            }
            new += u32::from(has_fee(store, organization, rental, one.account().1).await?);
            draft.add(member, &one.id(), one.left_to_bill());
        }
        query.starting_after = found.last().and_then(|record| record.key.id());
        if found.len() < query.limit {
            return Ok((draft.lines.len() - before, new));
        }
    }
    draft.is_cut = true;
    Ok((draft.lines.len() - before, new))
}

/// Whether a toll or violation on these invoices has a fee: once for each customer. It has another one when all of the earlier
/// invoice, and so its fee, was credited. A void invoice is not among them.
async fn has_fee(
    store: &dyn Store,
    organization: &Organization,
    rental: &Rental,
    invoices: &[InvoiceId],
) -> Result<bool, Error> {
    let keys: Vec<_> = invoices.iter().map(|id| Invoice::key(organization.id, *id)).collect();
    if keys.is_empty() {
        return Ok(true);
    }
    for record in store.get(&keys).await?.into_iter().flatten() {
        let invoice: Invoice = parse(&record.key, &record.value)?;
        let is_standing = Some(invoice.amount_credited) != invoice.total;
        if invoice.customer_id == rental.customer_id && is_standing {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a toll or violation of the rental's customer belongs to the rental: it was attached through the rental, or
/// somebody attached it, and it happened during the rental.
fn belongs<T: Attributable>(one: &T, rental: &Rental) -> bool {
    match one.payer().rental {
        Some(other) => other == rental.id,
        None => during(rental, one.when()),
    }
}

/// Whether it happened between the recorded times of the rental, else between its dates.
fn during(rental: &Rental, (at, on): (Option<Timestamp>, Option<Date>)) -> bool {
    if let (Some(at), Some(out), Some(back)) = (at, rental.activated_at, rental.completed_at) {
        return out <= at && at <= back;
    }
    let day = at.map(|at| rental.time_zone.local(at).date()).or(on);
    let (Some(day), Some(start), Some(end)) = (day, rental.start_date, rental.end_date) else { return false };
    start <= day && day <= end
}

/// The body that makes the invoice of a rental.
fn body() -> Value {
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let properties = json!({
        "rental_id": {"type": "string", "format": "uuid", "description": "The rental to bill."},
        "with_tolls": flag("Whether to bill its unbilled tolls too. Default: `false`."),
        "with_violations": flag("Whether to bill its unbilled violations too. Default: `false`."),
    });
    let example = json!({"rental_id": "0190d0f2-7c3a-7cc0-8000-000000000003", "with_tolls": true});
    parts::action_body(properties, &["rental_id"], example)
}

/// A page of drafts.
fn schema() -> Value {
    let line = json!({
        "rental_id": optional_id("The rental."), "toll_id": optional_id("Or the toll."),
        "violation_id": optional_id("Or the violation."), "description": text("Or the fee that it is."), "amount": described(amount(), "What is left to bill of it."),
    });
    let mut line = named("InvoiceDraftLine", object("A line of a draft.", line));
    line["required"] = json!(["amount"]);
    let count = |description: &str| described(integer(0, 200), description);
    let draft = json!({
        "object": {"type": "string", "const": "invoice_draft"},
        "rental_id": optional_id("The completed rental."),
        "customer_id": optional_id("Its customer, who would get the invoice."),
        "customer_name": {"type": ["string", "null"], "description": "Full name of the customer."},
        "start_date": {"type": ["string", "null"], "format": "date", "description": "Pickup date of the rental."},
        "end_date": {"type": ["string", "null"], "format": "date", "description": "Return date of the rental."},
        "tax_amount": {"type": ["number", "null"], "format": "double", "minimum": 0, "description": "The tax by the settings of the organization; null without one."},
        "lines": {"type": "array", "maxItems": 200, "items": line},
        "total": described(amount(), "The sum of the lines, and the tax if it is added."),
        "currency": text("ISO 4217 currency of the amounts."),
        "tolls": count("How many lines are tolls."),
        "violations": count("How many lines are violations."),
        "more": {"type": "boolean", "description": "Whether not all tolls and violations fit, so that another invoice must follow."},
        "problem": {"type": ["string", "null"], "description": "Why no invoice can be made of it."},
    });
    shapes::page_of(named("InvoiceDraft", object("An invoice that could be made of a rental.", draft)))
}
