//! Operators list invoices, mark them as paid or void, and print them and credit notes.

use crate::{
    documents::{
        html,
        logo::Logo,
        model::{Document, Preferences, Source},
        pdf,
    },
    endpoint::{BodySchema, Endpoint, Parameter, Request, get, post},
    guard::{Operator, Reader},
    http::{
        HeaderName, header,
        reply::{Handled, Reply},
    },
    objects::write::write,
    operator::{bodies, collections},
    reference::{
        parts,
        shapes::{described, word},
    },
};
use bytes::Bytes;
use rental_core::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    operations::{self, Settle},
    request::page,
    resources::{
        Resource,
        credit_note::CreditNote,
        customer::Customer,
        invoice::{self, Invoice, Settlement},
        organization::{InvoiceLanguage, Organization, PaperSize},
        parse,
        rental::Rental,
        vehicle::Vehicle,
    },
    rows::key,
    store::{Store, get_one},
    value::{RentalId, Timestamp},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use tokio::sync::Semaphore;

/// Documents that are made at the same time.
const MOST_AT_ONCE: usize = 2;
static AT_ONCE: Semaphore = Semaphore::const_new(MOST_AT_ONCE);

/// The header of a PDF file with the characters that no font has, and how many it names at most.
const NOT_SHOWN: &str = "rental-characters-not-shown";
const MOST_NOT_SHOWN: usize = 20;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        collections::list_of_organization(&invoice::SPEC),
        post("/admin/v1/invoices/{id}/pay")
            .about(&invoice::SPEC, "payInvoice", "Mark invoice as paid")
            .says("Of an open invoice. A paid one takes an earlier `paid_at`, when the payment was booked late; no event follows that.")
            .takes(BodySchema::Own(payment_body()))
            .operator(|request| Box::pin(pay(request))),
        post("/admin/v1/invoices/{id}/void")
            .about(&invoice::SPEC, "voidInvoice", "Void invoice")
            .operator(|request| Box::pin(void(request))),
        get("/admin/v1/invoices/{id}/print")
            .about(&invoice::SPEC, "printInvoice", "Print invoice")
            .says("An HTML page for printing. It loads nothing from other servers.")
            .parameters(preferences())
            .replies_in(json!({"text/html": {"schema": {"type": "string"}}}))
            .reader(|request| Box::pin(print(request))),
        get("/admin/v1/invoices/{id}/pdf")
            .about(&invoice::SPEC, "getInvoicePdf", "Invoice as a PDF file")
            .says("The document to send to the customer. The same invoice and the same seller give the same bytes. A character that no font of the server has is a box; the header `Rental-Characters-Not-Shown` then names it, such as `U+1F697`.")
            .parameters(preferences())
            .without_revision()
            .replies_in(json!({"application/pdf": {"schema": {"type": "string", "format": "binary"}}}))
            .reader(|request| Box::pin(file(request))),
    ]
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    paid_at: Option<String>,
}

async fn pay(request: Request<'_, Operator>) -> Handled {
    let (request, body) = request.read().await?;
    let Payment { paid_at } = bodies::optional(&body, "`paid_at`")?;
    let wrong = |text: &str| Error::field("paid_at", FieldCode::Invalid, &Timestamp::rule(text));
    let at = paid_at.map(|text| Timestamp::parse(&text).ok_or_else(|| wrong(&text))).transpose()?;
    settle(request, &body, Settlement::Paid(at)).await
}

async fn void(request: Request<'_, Operator>) -> Handled {
    let (request, body) = request.read().await?;
    settle(request, &body, Settlement::Void).await
}

async fn settle(Request { app, call, id, .. }: Request<'_, Operator>, body: &Bytes, how: Settlement) -> Handled {
    let organization = operations::owner_of(app.store(), &invoice::SPEC, id).await?;
    write(app, &organization, call, body, &Settle { organization: &organization, id, how }).await
}

/// The body that marks an invoice as paid.
fn payment_body() -> Value {
    let time = json!({"type": ["string", "null"], "format": "date-time"});
    let when = "When the customer paid: not in the future, and not before the invoice was issued. Default: now. A credit note that was issued after it can be refunded.";
    parts::action_body(json!({"paid_at": described(time, when)}), &[], json!({"paid_at": "2026-05-05T09:30:00Z"}))
}

pub(super) fn preferences() -> Vec<Parameter> {
    let language = parts::query(
        "language",
        "Language of the fixed words, dates and amounts. By default the customer's `preferred_language` if a request sent it, otherwise the organization's `invoice_language`.",
        word("InvoiceLanguage", InvoiceLanguage::WORDS),
    );
    let paper = parts::query(
        "paper",
        "Size of the pages. By default the organization's `paper_size`.",
        word("PaperSize", PaperSize::WORDS),
    );
    vec![Parameter::Own(language), Parameter::Own(paper)]
}

/// An invoice as an HTML page.
async fn print(request: Request<'_, Reader>) -> Handled {
    as_page(document(request.app.store(), request.id, request.call.query()).await?).await
}

/// A document as a page.
pub(super) async fn as_page(document: Document) -> Handled {
    let page = made(move || Ok(html::page(&document))).await?;
    Ok(Reply::page(page.into(), html::POLICY))
}

/// An invoice as a PDF file.
async fn file(request: Request<'_, Reader>) -> Handled {
    as_file(document(request.app.store(), request.id, request.call.query()).await?).await
}

/// A document as a PDF file.
pub(super) async fn as_file(document: Document) -> Handled {
    let name = document.file_name("pdf");
    let file = made(move || pdf::file(&document)).await?;
    let reply = Reply::json(file.bytes.into())
        .with(header::CONTENT_TYPE, "application/pdf")
        .with(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""));
    let codes: Vec<String> =
        file.not_shown.iter().take(MOST_NOT_SHOWN).map(|one| format!("U+{:04X}", u32::from(*one))).collect();
    Ok(if codes.is_empty() { reply } else { reply.with(HeaderName::from_static(NOT_SHOWN), &codes.join(" ")) })
}

/// Runs on another thread, because it would block those that serve requests.
async fn made<T: Send + 'static>(make: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, Error> {
    let _permit = AT_ONCE.acquire().await.map_err(|_| Error::Unavailable("stopping".into()))?;
    let made = tokio::task::spawn_blocking(make).await;
    made.map_err(|error| error.to_string())
        .and_then(|made| made)
        .map_err(|why| Error::Internal(format!("the document of an invoice cannot be made: {why}")))
}

/// Reads what the document of an invoice says.
async fn document(store: &dyn Store, id: &str, query: &str) -> Result<Document, Error> {
    let preferred = asked(query)?;
    let organization = operations::owner_of(store, &invoice::SPEC, id).await?;
    document_of(store, &organization, id, None, preferred).await
}

/// Reads what the document of an invoice says, or that of one of its credit notes.
pub(super) async fn document_of(
    store: &dyn Store,
    organization: &Organization,
    id: &str,
    note: Option<CreditNote>,
    preferred: Preferences,
) -> Result<Document, Error> {
    let organization = organization.clone();
    let record = operations::get(store, organization.id, &invoice::SPEC, id).await?;
    let invoice: Invoice = parse(&record.key, &record.value)?;
    let record = get_one(store, &Customer::key(organization.id, invoice.customer_id)).await?;
    let customer = record.map(|record| parse::<Customer>(&record.key, &record.value)).transpose()?;
    let rentals = rentals(store, &organization, &invoice).await?;
    let logo = get_one(store, &key::logo(organization.id)).await?.map(|row| row.value);
    let made = made(move || {
        // A logo that cannot be drawn any more is left out: the invoice matters more.
        let logo = logo.and_then(|png| Logo::decode(png).ok());
        let source = Source {
            organization: &organization,
            customer: customer.as_ref(),
            invoice: &invoice,
            rentals: &rentals,
            logo,
        };
        Ok(match &note {
            Some(note) => Document::of_credit(note, source, preferred),
            None => Document::of(source, preferred),
        })
    });
    made.await
}

pub(super) fn asked(query: &str) -> Result<Preferences, Error> {
    let (mut asked, mut errors) = (Preferences::default(), FieldErrors::default());
    for (name, value) in page::parameters(query, &["language", "paper"])? {
        let known = if name == "language" {
            asked.language = InvoiceLanguage::parse(&value);
            asked.language.is_some()
        } else {
            asked.paper = PaperSize::parse(&value);
            asked.paper.is_some()
        };
        if !known {
            let words = if name == "language" { InvoiceLanguage::WORDS } else { PaperSize::WORDS };
            errors.push(FieldError::new(&name, FieldCode::Invalid, &format!("must be one of {}", words.join(", "))));
        }
    }
    errors.or(asked)
}

/// The rentals that an invoice names, each with its vehicle. One that was not found is left out.
async fn rentals(
    store: &dyn Store,
    organization: &Organization,
    invoice: &Invoice,
) -> Result<HashMap<RentalId, (Rental, Option<Vehicle>)>, Error> {
    let keys: Vec<_> =
        invoice.lines.iter().filter_map(|line| line.rental_id).map(|id| Rental::key(organization.id, id)).collect();
    let rows = store.get(&keys).await?;
    let rentals: Vec<Rental> =
        rows.into_iter().flatten().map(|row| parse(&row.key, &row.value)).collect::<Result<_, _>>()?;
    let keys: Vec<_> = rentals.iter().map(|rental| Vehicle::key(organization.id, rental.vehicle_id)).collect();
    let rows = store.get(&keys).await?;
    let mut found = HashMap::new();
    for (rental, row) in rentals.into_iter().zip(rows) {
        let vehicle = row.map(|row| parse(&row.key, &row.value)).transpose()?;
        found.insert(rental.id, (rental, vehicle));
    }
    Ok(found)
}
