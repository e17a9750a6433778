//! The operator settles invoices.

use crate::routes;
use rental_core::{
    error::Error,
    operation::{self, Edge, Intent, Preparing},
    resources::{invoice::Invoice, organization::Organization},
    store::Store,
};

/// An operator marks an invoice as paid or void.
pub(crate) struct Settle<'a> {
    pub(crate) organization: &'a Organization,
    pub(crate) id: &'a str,
    pub(crate) void: bool,
}

impl Intent for Settle<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let spec =
                routes::recorded("invoice").map(|row| row.spec).ok_or_else(|| Error::Internal("no invoices".into()))?;
            let before = operation::get(store, self.organization.id, spec, self.id).await?;
            let decide = |invoice: &mut Invoice| invoice.settle(self.void, edge.now()).map(|event| vec![event]);
            operation::edit(store, edge, self.organization, before, decide).await
        })
    }
}
