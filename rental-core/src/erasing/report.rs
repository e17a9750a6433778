//! The report of an erasure, as operators read it.

use super::{Erasure, task_id};
use crate::{
    error::Error,
    operations::erased::erased_key,
    resources::invoice::{self, Invoice},
    rows::key,
    schema::IndexPrefix,
    store::{Record, Store, get_each, get_one},
    value::{CustomerId, OrganizationId},
};
use serde_json::{Value, json};

/// Most invoices that a report lists.
const MOST_INVOICES: usize = 1000;

/// Where the person can still be: nothing looks there.
const NOT_SEARCHED: [&str; 5] = [
    "objects of other customers and of vehicles, such as notes that mention the person",
    "leads without a customer that have neither the email nor the phone of the person, only a name",
    "leads without a customer that have an email which another customer has now, or an email or phone from before the oldest stored event",
    "emails and phones in pictures, HTML entities or Base64, in quotes, escaped twice, divided between fields, or with characters that nobody sees, and phones that have fewer than 7 digits without the code of the country",
    "backups, exports, logs of the server, and what receivers of webhooks and clients of the API have stored",
];

/// Reads the report of the erasure of a customer; `None` when the customer was not erased. While the task runs, the counts
/// are those of its last step.
///
/// # Errors
/// The store is not available.
pub async fn report(
    store: &dyn Store,
    organization: OrganizationId,
    customer: CustomerId,
) -> Result<Option<Value>, Error> {
    let Some(row) = get_one(store, &erased_key(organization, customer)).await? else { return Ok(None) };
    let erasure = Erasure::read(&row)?;
    let task = get_each(store, &[key::task(task_id(customer))]).await?.pop();
    Ok(Some(described(store, &erasure, task.and_then(Result::ok).flatten().as_ref()).await?))
}

/// The report with the counts of the task, if it runs, and the invoices that were kept.
pub(crate) async fn described(store: &dyn Store, erasure: &Erasure, task: Option<&Record>) -> Result<Value, Error> {
    let mut report = serde_json::to_value(erasure).map_err(|error| Error::Internal(error.to_string()))?;
    let task: Option<Value> = task.and_then(|row| crate::value::read_json(&row.value).ok());
    if let Some(state) = task.as_ref().and_then(|task| task.get("state")) {
        for count in ["rewritten", "kept", "damaged"] {
            if let Some(value) = state.get(count) {
                report[count] = value.clone();
            }
        }
    }
    let invoices = invoices(store, erasure).await?;
    report["more_invoices"] = (invoices.len() > MOST_INVOICES).into();
    report["invoices"] = invoices.into_iter().take(MOST_INVOICES).collect();
    report["not_searched"] = NOT_SEARCHED.as_slice().into();
    Ok(report)
}

/// The newest invoices of the customer. A damaged one has only its id.
async fn invoices(store: &dyn Store, erasure: &Erasure) -> Result<Vec<Value>, Error> {
    let Some(index) = invoice::SPEC.index_over(&["customer_id"], None) else { return Ok(Vec::new()) };
    let entries = IndexPrefix::new(index.number).with(erasure.customer_id.as_bytes());
    let rows = store.scan(&entries.span(erasure.organization_id, &invoice::SPEC), MOST_INVOICES + 1).await?;
    let one = |record: Record| match crate::value::read_json::<Invoice>(&record.value) {
        Ok(invoice) => json!({
            "id": invoice.id, "invoice_number": invoice.invoice_number, "status": invoice.status,
            "created_at": invoice.created_at,
        }),
        Err(_) => json!({"id": record.key.id(), "invoice_number": null, "status": null, "created_at": null}),
    };
    Ok(rows.into_iter().filter_map(Result::ok).map(one).collect())
}
