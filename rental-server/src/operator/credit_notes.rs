//! Operators list credit notes, note refunds, and print them. They create them like invoices (`records.rs`).

use crate::{
    documents::model::Document,
    endpoint::{BodySchema, Endpoint, Request, get, post},
    guard::{Operator, Reader},
    http::reply::Handled,
    objects::{self, write::write},
    operator::{bodies, collections, invoices, records},
    reference::{parts, shapes::described},
};
use bytes::Bytes;
use rental_core::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    operations::{self, RebillCredit, RefundCredit},
    resources::{
        credit_note::{self, CreditNote, LONGEST_REFUND_METHOD, Refund},
        invoice, parse,
    },
    store::Store,
    value::{Text, Timestamp},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        collections::list_of_organization(&credit_note::SPEC),
        post("/admin/v1/invoices/{id}/credit")
            .about(&invoice::SPEC, "creditInvoice", "Credit invoice")
            .says("Creates a credit note for an invoice: for lines of it, or for all that is left of it. A line is never credited above what it billed.")
            .takes(BodySchema::Own(credit_body()))
            .replies("CreditNote")
            .operator(|request| Box::pin(credit(request))),
        post("/admin/v1/credit_notes/{id}/refund")
            .about(&credit_note::SPEC, "refundCreditNote", "Mark credit note as refunded")
            .says("Notes that the whole amount was given back to the customer, once. The invoice must be paid.")
            .takes(BodySchema::Own(body()))
            .operator(|request| Box::pin(refund(request))),
        post("/admin/v1/credit_notes/{id}/rebill")
            .about(&credit_note::SPEC, "rebillCreditNote", "Let credited objects be billed again")
            .says("Lets the rentals, tolls and violations that it credits be billed again, as `rebill` at its creation does. What can be billed again already stays as it is.")
            .operator(|request| Box::pin(rebill(request))),
        get("/admin/v1/credit_notes/{id}/print")
            .about(&credit_note::SPEC, "printCreditNote", "Print credit note")
            .says("An HTML page for printing. It loads nothing from other servers.")
            .parameters(invoices::preferences())
            .replies_in(json!({"text/html": {"schema": {"type": "string"}}}))
            .reader(|request| Box::pin(print(request))),
        get("/admin/v1/credit_notes/{id}/pdf")
            .about(&credit_note::SPEC, "getCreditNotePdf", "Credit note as a PDF file")
            .says("The document to send to the customer.")
            .parameters(invoices::preferences())
            .without_revision()
            .replies_in(json!({"application/pdf": {"schema": {"type": "string", "format": "binary"}}}))
            .reader(|request| Box::pin(file(request))),
    ]
}

/// Creates a credit note for the invoice in the path.
async fn credit(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), &invoice::SPEC, id).await?;
    let missing = || Error::Internal("credit notes cannot be recorded".into());
    let collection = records::collection(credit_note::SPEC.object).ok_or_else(missing)?;
    let body = with_invoice(&body, id);
    objects::create(app, (app.store(), &organization, collection), call, &body).await
}

/// The body with the id of the invoice. A body that is no JSON object stays as it is, and is refused later.
fn with_invoice(body: &Bytes, id: &str) -> Bytes {
    let sent = if body.is_empty() { &b"{}"[..] } else { body.as_ref() };
    let members: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_slice(sent);
    let rest = sent.trim_ascii_start().strip_prefix(b"{");
    let (Ok(members), Some(rest)) = (members, rest) else { return body.clone() };
    let comma = if members.is_empty() { "" } else { "," };
    [format!("{{\"invoice_id\":{}{comma}", json!(id)).as_bytes(), rest].concat().into()
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    refunded_at: Option<String>,
    refund_method: Option<String>,
    refund_reference: Option<String>,
}

async fn refund(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let asked: Asked = bodies::optional(&body, "`refunded_at`, `refund_method` and `refund_reference`")?;
    let refund = asked.checked()?;
    let organization = operations::owner_of(app.store(), &credit_note::SPEC, id).await?;
    write(app, &organization, call, &body, &RefundCredit { organization: &organization, id, refund }).await
}

async fn rebill(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), &credit_note::SPEC, id).await?;
    write(app, &organization, call, &body, &RebillCredit { organization: &organization, id }).await
}

impl Asked {
    fn checked(self) -> Result<Refund, Error> {
        let mut errors = FieldErrors::default();
        let mut text = |name: &str, text: Option<String>, most: usize| {
            let text = text.map(|text| Text::parse(text, most)).transpose();
            text.unwrap_or_else(|rule| {
                errors.push(FieldError::new(name, FieldCode::Invalid, &rule));
                None
            })
        };
        let method = text("refund_method", self.refund_method, LONGEST_REFUND_METHOD);
        let reference = text("refund_reference", self.refund_reference, 255);
        let at = self.refunded_at.as_deref().and_then(|text| {
            let time = Timestamp::parse(text);
            if time.is_none() {
                errors.push(FieldError::new("refunded_at", FieldCode::Invalid, &Timestamp::rule(text)));
            }
            time
        });
        errors.or(Refund { at, method, reference })
    }
}

async fn print(request: Request<'_, Reader>) -> Handled {
    invoices::as_page(document(request.app.store(), request.id, request.call.query()).await?).await
}

async fn file(request: Request<'_, Reader>) -> Handled {
    invoices::as_file(document(request.app.store(), request.id, request.call.query()).await?).await
}

/// Reads what the document of a credit note says.
async fn document(store: &dyn Store, id: &str, query: &str) -> Result<Document, Error> {
    let preferred = invoices::asked(query)?;
    let organization = operations::owner_of(store, &credit_note::SPEC, id).await?;
    let record = operations::get(store, organization.id, &credit_note::SPEC, id).await?;
    let note: CreditNote = parse(&record.key, &record.value)?;
    let invoice = note.invoice_id.to_string();
    invoices::document_of(store, &organization, &invoice, Some(note), preferred).await
}

/// The body that credits an invoice.
fn credit_body() -> Value {
    let line = json!({"$ref": "#/components/schemas/CreditLineCreate"});
    let properties = json!({
        "reason": {"type": ["string", "null"], "maxLength": 500, "description": "Why it is credited; customers read it."},
        "rebill": {"type": ["boolean", "null"], "description": "Whether the rentals, tolls and violations that it credits can be billed again. A line can say otherwise. Default: `false`."},
        "lines": {
            "type": ["array", "null"], "minItems": 1, "maxItems": 200, "items": line,
            "description": "What to credit. Default: all that is left of the invoice.",
        },
    });
    parts::action_body(
        properties,
        &[],
        json!({"lines": [{"line": 0, "amount": 10}], "reason": "Cleaned by the customer"}),
    )
}

/// The body that notes a refund.
fn body() -> Value {
    let text = |most: usize| json!({"type": ["string", "null"], "maxLength": most});
    let time = json!({"type": ["string", "null"], "format": "date-time"});
    let properties = json!({
        "refunded_at": described(time, "When the money was given back. Default: now."),
        "refund_method": described(text(LONGEST_REFUND_METHOD), "How, such as `card`."),
        "refund_reference": described(text(255), "Number of the payment."),
    });
    parts::action_body(properties, &[], json!({"refund_method": "card", "refund_reference": "re_4711"}))
}
