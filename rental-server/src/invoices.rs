//! The operator settles invoices.

use crate::{
    app::App,
    http::{
        call::Call,
        reply::{Problem, Reply},
    },
    invoice_page, routes,
};
use rental_core::{
    error::Error,
    operation::{self, Edge, Intent, Preparing},
    page,
    resources::{
        customer,
        customer::Customer,
        invoice,
        invoice::{Invoice, Settlement},
        organization::Organization,
        parse,
    },
    store::Store,
};

/// GET /admin/v1/invoices/{id}/print: a page to print or to save.
pub(crate) async fn print(app: &App, call: &Call, id: &str) -> Result<Reply, Problem> {
    page::no_parameters(call.query())?;
    let organization = operation::owner_of(app.store(), &invoice::SPEC, id).await?;
    let record = operation::get(app.store(), organization.id, &invoice::SPEC, id).await?;
    let invoice: Invoice = parse(&record.key, &record.value)?;
    let billed = invoice.customer_id.to_string();
    let record = operation::get(app.store(), organization.id, &customer::SPEC, &billed).await?;
    let customer: Customer = parse(&record.key, &record.value)?;
    Ok(Reply::page(invoice_page::page(&organization, &customer, &invoice).into(), invoice_page::POLICY))
}

/// An operator marks an invoice as paid or void.
pub(crate) struct Settle<'a> {
    pub(crate) organization: &'a Organization,
    pub(crate) id: &'a str,
    pub(crate) how: Settlement,
}

impl Intent for Settle<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let spec =
                routes::recorded("invoice").map(|row| row.spec).ok_or_else(|| Error::Internal("no invoices".into()))?;
            let before = operation::get(store, self.organization.id, spec, self.id).await?;
            let decide = |invoice: &mut Invoice| invoice.settle(self.how, edge.now()).map(|event| vec![event]);
            operation::edit(store, edge, self.organization, before, decide).await
        })
    }
}
