//! Gives a choice of a person back to the server.

use super::derivation::Deriving;
use crate::{
    error::Error,
    operations::{self, Edge, Intent, Preparing},
    resources::{Attributable, Payer, derived_events, organization::Organization, parse},
    store::Store,
};
use std::marker::PhantomData;

/// The request of an operator to derive anew who pays for a toll or violation, although a person chose.
pub struct Release<'a, T> {
    organization: &'a Organization,
    id: &'a str,
    resource: PhantomData<fn() -> T>,
}

impl<'a, T: Attributable> Release<'a, T> {
    /// Releases the object with this id.
    #[must_use]
    pub fn new(organization: &'a Organization, id: &'a str) -> Self {
        Self { organization, id, resource: PhantomData }
    }
}

impl<T: Attributable> Intent for Release<'_, T> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operations::get(store, self.organization.id, T::SPEC, self.id).await?;
            let object: T = parse(&record.key, &record.value)?;
            // As if nobody had chosen. If an invoice bills it and the customer would change, the edit is refused.
            let mut free = object.clone();
            free.set_payer(Payer::default());
            let derived = Deriving::new(store, self.organization).derive(&free).await?;
            let mut after = derived.payer();
            if after.review.is_none() {
                after.review = operations::bill_review(store, self.organization.id, &object).await?;
            }
            let (before, now) = (object.payer(), edge.now());
            let vehicle = derived.vehicle.or_else(|| object.known_vehicle());
            let rule = |object: &mut T| -> Result<_, Error> {
                let was = object.clone();
                let events = derived_events::<T>(before.customer, after.customer);
                *object.vehicle() = vehicle;
                object.set_payer(after);
                if *object != was {
                    object.touch(now);
                }
                Ok(events)
            };
            operations::edit(store, edge, self.organization, record, rule).await
        })
    }
}
