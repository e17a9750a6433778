//! Owners erase customers: their personal data is removed from everything that is stored.

use crate::{
    endpoint::{BodySchema, Endpoint, Request, get, post},
    guard::{Owner, Reader},
    http::reply::{Handled, Reply},
    objects::write::write,
    operator::bodies,
    reference::{
        parts,
        shapes::{self, described, id, named, object, text, word},
    },
    state::App,
};
use rental_core::{
    erasing::report,
    error::Error,
    operations,
    request::page,
    resources::{customer, invoice::InvoiceStatus, organization::Organization},
    tasks::erasing::Erase,
    value::{CustomerId, OrganizationId},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The operation that erases a customer. The audit log names it, whatever the request is that erases.
pub(super) const ERASE: &str = "eraseCustomer";

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        post("/admin/v1/customers/{id}/erase")
            .about(&customer::SPEC, ERASE, "Erase customer")
            .says(
                "Removes the personal data of a customer for good: from the customer, its rentals and leads, from events, \
                 deliveries, stored responses and audit entries. The first response comes when the customer is erased and \
                 nothing new shows the data; the server then rewrites what is stored, and `status` becomes `complete`. A \
                 second request changes nothing and returns the present report. Issued invoices are kept and listed.",
            )
            .takes(BodySchema::Own(body()))
            .replies("Erasure")
            .defines("Erasure", schema())
            .owner(|request| Box::pin(erase(request))),
        get("/admin/v1/customers/{id}/erasure")
            .about(&customer::SPEC, "getErasure", "Retrieve report of an erasure")
            .says("How far the erasure of a customer is, and what was rewritten and kept.")
            .replies("Erasure")
            .without_revision()
            .reader(|request| Box::pin(retrieve(request))),
    ]
}

async fn erase(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        organization_id: Option<String>,
    }
    let Asked { organization_id } = bodies::optional(&body, "`organization_id`")?;
    let organization = owner(app, id).await?;
    if organization_id.is_some_and(|named| OrganizationId::parse(&named) != Some(organization.id)) {
        return Err(Error::NotFound { object: customer::SPEC.object }.into());
    }
    let reply = write(app, &organization, call, &body, &Erase { organization: &organization, id }).await?;
    app.tasks_begun.notify_one();
    Ok(reply)
}

async fn retrieve(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    page::no_parameters(call.query())?;
    let organization = owner(app, id).await?;
    let missing = Error::NotFound { object: "erasure" };
    let id = CustomerId::parse(id).ok_or_else(|| missing.clone())?;
    let report = report(app.store(), organization.id, id).await?.ok_or(missing)?;
    Ok(Reply::json(report.to_string().into()))
}

async fn owner(app: &App, id: &str) -> Result<Organization, Error> {
    operations::owner_of(app.store(), &customer::SPEC, id).await
}

fn body() -> Value {
    let organization = json!({"type": "string", "format": "uuid", "description": "The organization of the customer. Another one is a 404."});
    parts::action_body(json!({"organization_id": organization}), &[], json!({}))
}

fn schema() -> Value {
    let counts = |description: &str| json!({"type": "object", "additionalProperties": shapes::at_least(0), "description": description});
    let time = |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let completed = json!({"type": ["string", "null"], "format": "date-time", "description": "When the task ended."});
    let invoice = json!({
        "id": id("The invoice."), "invoice_number": {"type": ["string", "null"]},
        "status": word("InvoiceStatus", InvoiceStatus::WORDS), "created_at": time("When it was recorded."),
    });
    let invoices = json!({"type": "array", "items": named("KeptInvoice", object("A kept invoice.", invoice))});
    let properties = json!({
        "object": text("Always `erasure`."),
        "organization_id": id("The organization of the customer."),
        "customer_id": id("The erased customer."),
        "status": described(word("ErasureStatus", &["running", "complete"]), "Whether everything is rewritten."),
        "rewritten": counts("Number of rewritten rows by kind: customers, rentals, leads, events, deliveries, stored_responses, audit_entries."),
        "kept": counts("Number of records that are kept as issued: invoices and credit notes."),
        "damaged": described(shapes::at_least(0), "Damaged rows, which could not be read or rewritten. `rental-cli store check` lists them."),
        "erased_at": time("When the customer was erased."),
        "completed_at": completed,
        "invoices": described(invoices, "The newest 1,000 kept invoices: `id`, `invoice_number`, `status`, `created_at`. They are kept until the organization is deleted."),
        "more_invoices": {"type": "boolean", "description": "Whether there are more of them."},
        "not_searched": {"type": "array", "items": {"type": "string"}, "description": "Where the person can still be, in sentences: an operator looks there, if the person asks for it."},
    });
    object("The erasure of a customer.", properties)
}
