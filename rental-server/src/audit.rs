//! The audit log: each change by an operator adds an entry in the same transaction.

use crate::http::call::Call;
use rental_core::{
    error::Error,
    operations::{Edge, Intent, Preparing},
    resources::{AnyObject, Resource, audit_entry::AuditEntry, effects, organization::SYSTEM, to_json},
    store::{Batch, Prior, Store},
    value::{AuditEntryId, OrganizationId},
};
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

/// An intent that also adds an entry to the audit log, if it changes anything.
pub(crate) struct Audited<'a> {
    pub(crate) intent: &'a dyn Intent,
    pub(crate) organization: OrganizationId,
    pub(crate) call: &'a Call,
    pub(crate) body: &'a [u8],
}

impl Intent for Audited<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let mut prepared = self.intent.prepare(store, edge).await?;
            if let Some(action) = self.call.operation.get().filter(|_| !prepared.batch.is_empty()) {
                let (named, resource) = prepared.object.as_deref().map(AnyObject::subject).unzip();
                let organization = Some(self.organization).filter(|id| *id != SYSTEM).or(named.flatten());
                let entry = entry(self.call, edge, action, organization, resource, AuditEntry::details(self.body));
                add(&mut prepared.batch, &entry)?;
            }
            Ok(prepared)
        })
    }
}

fn entry(
    call: &Call,
    edge: &dyn Edge,
    action: &str,
    organization_id: Option<OrganizationId>,
    resource_id: Option<Uuid>,
    details: Box<RawValue>,
) -> AuditEntry {
    let id = AuditEntryId::from_uuid(edge.new_id());
    AuditEntry {
        id,
        object: "audit_entry".into(),
        action: action.to_owned(),
        organization_id,
        resource_id,
        path: call.path().chars().take(1000).collect(),
        details,
        request_id: call.request_id.as_str().to_owned(),
        created_at: edge.now(),
    }
}

fn add(batch: &mut Batch, entry: &AuditEntry) -> Result<(), Error> {
    batch.insert(AuditEntry::key(SYSTEM, entry.id), to_json(entry)?);
    effects::index_keys(SYSTEM, entry).into_iter().for_each(|place| batch.mark(place, Prior::New));
    Ok(())
}

/// The entry of an action that is no single write, such as an import.
pub(crate) struct Note(AuditEntry);

impl Note {
    /// The entry of this call, before its result is known.
    pub(crate) fn of(call: &Call, organization: Option<OrganizationId>) -> Self {
        let action = call.operation.get().unwrap_or(&"unknown");
        Self(entry(call, &call.clock, action, organization, None, AuditEntry::details(b"{}")))
    }

    /// Records the entry with the result of the action.
    pub(crate) async fn write(mut self, store: &dyn Store, details: &Value) -> Result<(), Error> {
        self.0.details = AuditEntry::details(details.to_string().as_bytes());
        let mut batch = Batch::default();
        add(&mut batch, &self.0)?;
        store.commit(batch).await?;
        Ok(())
    }
}
