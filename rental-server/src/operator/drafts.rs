//! Drafts: what an invoice of a completed rental would bill, and the invoices that an operator makes of them.

mod draft;
mod pages;
mod unbilled;

use crate::{
    endpoint::{BodySchema, Endpoint, Parameter, Request, get, post},
    guard::{Operator, Reader},
    http::reply::Handled,
    objects::{listed, write::write},
    operator::{bodies, collections, records},
    reference::{
        parts,
        shapes::{self, amount, described, integer, named, object, optional_id, text},
    },
};
use draft::{Billed, Draft, MOST_LINES, are_derived_again, draft};
use rental_core::{
    error::{Error, FieldCode},
    operations::{self, Create, Edge, Intent, Preparing},
    request::page::{self, ListQuery},
    resources::{
        Resource,
        customer::Customer,
        invoice,
        organization::Organization,
        parse,
        rental::{self, Rental},
    },
    store::Store,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use unbilled::{Unbilled, Wanted};

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let path = "/admin/v1/organizations/{organization}/invoices/drafts";
    let list = get(path)
        .about(&invoice::SPEC, "listInvoiceDrafts", "List what is completed and not billed")
        .says("Lists completed rentals of which something is left to bill, each with the lines of the invoice that POST makes of it: first those of which the price is not billed, newest first, then those with unbilled tolls or violations only. A rental that needs several invoices is listed for each of them. What a person attached to a customer who had no rental then is listed last, customer by customer, without a rental and with a `problem`. A page can be short, or empty, before the last one. Changes nothing.")
        .parameters(["Limit", "StartingAfter"].map(Parameter::Shared).into())
        .replies("InvoiceDraftList")
        .without_revision()
        .defines("InvoiceDraftList", schema())
        .reader(|request| Box::pin(list(request)));
    let create = post(path)
        .about(&invoice::SPEC, "createInvoiceOfRental", "Create the invoice of a rental")
        .says("Bills what is left of the rental's price, and the unbilled tolls and violations of its customer that belong to it, as many as an invoice can have. The rental may have any status. With `customer_id` instead of `rental_id`: bills the unbilled tolls and violations of the customer that belong to no rental.")
        .takes(BodySchema::Own(body()))
        .replies("Invoice")
        .operator(|request| Box::pin(create(request)));
    vec![list, create]
}

async fn list(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    let organization = collections::organization_named(app.store(), id).await?;
    let sent = page::parameters(call.query(), &["limit", "starting_after"])?;
    let of = |name: &str| sent.iter().find(|(sent, _)| sent == name).map(|(_, value)| value.as_str());
    // The cursor is not that of a list in order of creation.
    let limit = of("limit").map(|limit| format!("limit={limit}")).unwrap_or_default();
    let limit = ListQuery::parse(&limit, &rental::SPEC)?.limit;
    let after = of("starting_after");
    Ok(listed(app, pages::page_of(app.store(), &organization, limit, after).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    rental_id: Option<String>,
    customer_id: Option<String>,
    #[serde(default)]
    with_tolls: bool,
    #[serde(default)]
    with_violations: bool,
}

async fn create(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = collections::organization_named(app.store(), id).await?;
    let fields = "`rental_id` or `customer_id`, `with_tolls` and `with_violations`";
    let asked: Asked = bodies::object(&body, fields)?;
    if asked.rental_id.is_some() == asked.customer_id.is_some() {
        let rule = "exactly one of `rental_id` and `customer_id` is required";
        return Err(Error::field("rental_id", FieldCode::Invalid, rule).into());
    }
    write(app, &organization, call, &body, &InvoiceOfRental { organization: &organization, asked: &asked }).await
}

/// An operator makes the invoice of a rental, or of what belongs to no rental of a customer.
struct InvoiceOfRental<'a> {
    organization: &'a Organization,
    asked: &'a Asked,
}

impl Intent for InvoiceOfRental<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let Self { organization, asked } = *self;
            let rental: Option<Rental> =
                referenced(store, organization, "rental_id", asked.rental_id.as_deref()).await?;
            let customer: Option<Customer> =
                referenced(store, organization, "customer_id", asked.customer_id.as_deref()).await?;
            let rental = rental.as_ref();
            let customer = rental.map(|rental| rental.customer_id).or_else(|| customer.map(|customer| customer.id));
            let customer = customer.ok_or_else(|| Error::Internal("an invoice is of nobody".into()))?;
            let of = Billed { customer, rental };
            let draft = settled_draft(store, organization, of, [asked.with_tolls, asked.with_violations]).await?;
            if let Some(problem) = draft.problem {
                return Err(Error::Conflict(problem.into()));
            }
            let collection =
                records::collection("invoice").ok_or_else(|| Error::Internal("invoices cannot be recorded".into()))?;
            let mut body =
                json!({"customer_id": customer, "rental_id": rental.map(|rental| rental.id), "lines": draft.lines});
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

/// The object that a member of the body names.
async fn referenced<T: Resource>(
    store: &dyn Store,
    organization: &Organization,
    member: &str,
    id: Option<&str>,
) -> Result<Option<T>, Error> {
    let Some(id) = id else { return Ok(None) };
    match operations::get(store, organization.id, T::SPEC, id).await {
        Ok(record) => parse(&record.key, &record.value).map(Some),
        Err(Error::NotFound { .. }) => {
            let rule = format!("names no {} that exists", T::SPEC.object);
            Err(Error::field(member, FieldCode::ResourceMissing, &rule))
        }
        Err(error) => Err(error),
    }
}

/// How often an invoice waits for [`PAUSE`] until the payers of its tolls and violations are derived again: for 10 s in all.
const MOST_PAUSES: usize = 100;
/// How long it waits at a time.
const PAUSE: Duration = Duration::from_millis(100);

/// Drafts the next invoice once the server has derived again who pays what it bills: after a change of a rental or vehicle, that takes
/// some seconds.
async fn settled_draft(
    store: &dyn Store,
    organization: &Organization,
    of: Billed<'_>,
    with: [bool; 2],
) -> Result<Draft, Error> {
    for _ in 0..MOST_PAUSES {
        let (draft, is_settled) = next_draft(store, organization, of, with).await?;
        if is_settled {
            return Ok(draft);
        }
        tokio::time::sleep(PAUSE).await;
    }
    let why =
        "a rental or vehicle has changed, and it is being derived again who pays these tolls and violations; try again";
    Err(Error::Unavailable(why.into()))
}

/// Drafts the next invoice, with tolls and with violations as asked. Also returns whether no payer of what it bills is derived again.
async fn next_draft(
    store: &dyn Store,
    organization: &Organization,
    of: Billed<'_>,
    with: [bool; 2],
) -> Result<(Draft, bool), Error> {
    let rental = of.rental.map(|rental| rental.id);
    let wanted = Wanted::Of(rental, with, MOST_LINES);
    let unbilled = Unbilled::read(store, organization, of.customer, wanted).await?;
    let (mut draft, used) = draft(store, organization, of, unbilled.of(rental), true).await?;
    draft.is_cut = unbilled.is_cut || used < unbilled.of(rental).len();
    let is_settled = !are_derived_again(store, organization, &unbilled.of(rental)[..used]).await?;
    if draft.lines.is_empty() && draft.is_cut {
        draft.problem = Some(
            "Nothing was found that is left to bill, but the customer has more unbilled tolls or violations than one request \
             reads. Bill the others first, or name those that you want to bill in the lines of an invoice.",
        );
    }
    Ok((draft, is_settled))
}

/// The body that makes the invoice of a rental.
fn body() -> Value {
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let properties = json!({
        "rental_id": {"type": "string", "format": "uuid", "description": "The rental to bill."},
        "customer_id": {"type": "string", "format": "uuid", "description": "Instead of a rental: the customer whose tolls and violations that belong to no rental are billed."},
        "with_tolls": flag("Whether to bill its unbilled tolls too. Default: `false`."),
        "with_violations": flag("Whether to bill its unbilled violations too. Default: `false`."),
    });
    let example = json!({"rental_id": "0190d0f2-7c3a-7cc0-8000-000000000003", "with_tolls": true});
    parts::action_body(properties, &[], example)
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
        "rental_id": optional_id("The completed rental; null for what belongs to no rental of the customer."),
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
        "more": {"type": "boolean", "description": "Whether not all tolls and violations fit, or not all were read, so that another invoice must follow."},
        "problem": {"type": ["string", "null"], "description": "Why no invoice can be made of it."},
    });
    shapes::page_of(named("InvoiceDraft", object("An invoice that could be made of a rental.", draft)))
}
