//! A PATCH: changes an object.

use super::{
    bills,
    edge::Edge,
    edit::replace,
    erased::refuse_update,
    intent::{Intent, Preparing},
    read::get,
    reference::find_references,
    sent_body::SentBody,
};
use crate::{
    error::Error,
    request::body::Verb,
    resources::{Collection, RuleContext, organization::Organization},
    store::{Batch, Revision, Store},
};

/// A PATCH of one object of `collection`.
pub struct Update<'a> {
    /// The collection of the object.
    pub collection: &'a Collection,
    /// The organization that owns the object.
    pub organization: &'a Organization,
    /// The id in the path.
    pub id: &'a str,
    /// The request's body.
    pub body: SentBody<'a>,
    /// Whether the caller expects this present revision of the object.
    pub expected: &'a (dyn Fn(Revision) -> bool + Sync),
}

impl Intent for Update<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (spec, organization) = (self.collection.spec, self.organization);
            let change =
                self.collection.update.ok_or_else(|| Error::Internal(format!("{} has no PATCH", spec.object)))?;
            let mut sent = self.body.take(store, organization, spec, Verb::Update).await?;
            let before = get(store, organization.id, spec, self.id).await?;
            if !(self.expected)(before.revision) {
                return Err(Error::PreconditionFailed);
            }
            let mut batch = Batch::default();
            refuse_update(store, organization.id, (spec, &sent), &before, &mut batch).await?;
            let (references, missing) = find_references(store, organization.id, &sent, &mut batch).await?;
            let missing = sent.forget_missing(missing)?;
            let credited = bills::credited_of(store, organization.id, std::iter::once(&before)).await?;
            let context =
                RuleContext { now: edge.now(), organization, references: &references, number: 0, credited: &credited };
            let outcome = missing.join(change(&before, &sent, &context))?;
            self.body.keep(sent);
            replace(store, edge, organization, spec, before, outcome, batch).await
        })
    }
}
