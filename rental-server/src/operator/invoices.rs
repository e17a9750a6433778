//! Operators mark invoices as paid or void, and print them.

use crate::{
    endpoint::{Endpoint, Request, get, post},
    guard::{Operator, Reader},
    http::reply::{Handled, Reply},
    objects::write::write,
    operator::invoice_page,
};
use rental_core::{
    operations::{self, Edge, Intent, Preparing},
    request::page,
    resources::{
        customer::{self, Customer},
        invoice::{self, Invoice, Settlement},
        organization::Organization,
        parse,
    },
    store::Store,
};
use serde_json::json;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        post("/admin/v1/invoices/{id}/pay")
            .about(&invoice::SPEC, "payInvoice", "Mark invoice as paid")
            .operator(|request| Box::pin(settle(request, Settlement::Paid))),
        post("/admin/v1/invoices/{id}/void")
            .about(&invoice::SPEC, "voidInvoice", "Void invoice")
            .operator(|request| Box::pin(settle(request, Settlement::Void))),
        get("/admin/v1/invoices/{id}/print")
            .about(&invoice::SPEC, "printInvoice", "Print invoice")
            .says("An HTML page for printing. It loads nothing from other servers.")
            .replies_in(json!({"text/html": {"schema": {"type": "string"}}}))
            .reader(|request| Box::pin(print(request))),
    ]
}

async fn settle(request: Request<'_, Operator>, how: Settlement) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), &invoice::SPEC, id).await?;
    write(app, &organization, call, &body, &Settle { organization: &organization, id, how }).await
}

/// An invoice as an HTML page.
async fn print(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    page::no_parameters(call.query())?;
    let organization = operations::owner_of(app.store(), &invoice::SPEC, id).await?;
    let record = operations::get(app.store(), organization.id, &invoice::SPEC, id).await?;
    let invoice: Invoice = parse(&record.key, &record.value)?;
    let billed = invoice.customer_id.to_string();
    let record = operations::get(app.store(), organization.id, &customer::SPEC, &billed).await?;
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
            let before = operations::get(store, self.organization.id, &invoice::SPEC, self.id).await?;
            let decide = |invoice: &mut Invoice| invoice.settle(self.how, edge.now()).map(|event| vec![event]);
            operations::edit(store, edge, self.organization, before, decide).await
        })
    }
}
