//! The audit log: each change by an operator adds an entry in the same transaction; what takes data in bulk adds one before
//! it begins.

use crate::http::call::Call;
use rental_core::{
    error::Error,
    operations::{Edge, Intent, Preparing},
    resources::{AnyObject, Resource, audit_entry::AuditEntry, effects, organization::SYSTEM, to_json},
    store::{Batch, Prior, Store},
    value::{AuditEntryId, OrganizationId},
};
use serde_json::{Map, Value, value::RawValue};
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
            if self.call.admitted.get().is_some() && !prepared.batch.is_empty() {
                let (named, resource) = prepared.object.as_deref().map(AnyObject::subject).unzip();
                let organization = Some(self.organization).filter(|id| *id != SYSTEM).or_else(|| named.flatten());
                let is_of_operators = self.organization == SYSTEM;
                let details = match is_of_operators {
                    true => AuditEntry::details(self.body),
                    false => AuditEntry::field_names(self.body),
                };
                let entry = entry(self.call, edge, organization, resource, details);
                add(&mut prepared.batch, &entry)?;
            }
            Ok(prepared)
        })
    }
}

fn entry(
    call: &Call,
    edge: &dyn Edge,
    organization_id: Option<OrganizationId>,
    resource_id: Option<Uuid>,
    details: Box<RawValue>,
) -> AuditEntry {
    let (id, admitted) = (AuditEntryId::from_uuid(edge.new_id()), call.admitted.get());
    AuditEntry {
        id,
        object: "audit_entry".into(),
        action: admitted.map_or("unknown", |admitted| admitted.operation).to_owned(),
        actor: admitted.map(|admitted| admitted.actor.name().to_owned()),
        actor_id: admitted.and_then(|admitted| admitted.actor.id()),
        address: Some(call.client_address().to_string()),
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
#[derive(Clone)]
pub(crate) struct Note(AuditEntry);

impl Note {
    /// The entry of this call, before its result is known.
    pub(crate) fn of(call: &Call, organization: Option<OrganizationId>) -> Self {
        Self(entry(call, &call.clock, organization, None, AuditEntry::details(b"{}")))
    }

    /// The same for an action that is no operation of the document.
    pub(crate) fn with_action(mut self, action: &str) -> Self {
        self.0.action = action.to_owned();
        self
    }

    /// Adds an entry of its own to a batch of the action: the batch does this to one object.
    pub(crate) fn add_about(
        &self,
        action: &str,
        object: Uuid,
        edge: &dyn Edge,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        let (id, created_at) = (AuditEntryId::from_uuid(edge.new_id()), edge.now());
        let entry =
            AuditEntry { id, created_at, action: action.to_owned(), resource_id: Some(object), ..self.0.clone() };
        add(batch, &entry)
    }

    /// Records the entry before the action takes data in bulk.
    pub(crate) async fn write_before_reading(self, store: &dyn Store) -> Result<(), Error> {
        self.write_or_log(store, &Value::Object(Map::new())).await
    }

    /// Records the entry with the result of the action. A store that takes no writes, such as one whose disk is full, does not
    /// keep anyone from making a backup, or from learning how an import failed: then only the log has the entry.
    pub(crate) async fn write_or_log(self, store: &dyn Store, details: &Value) -> Result<(), Error> {
        let AuditEntry { action, actor, address, path, .. } = self.0.clone();
        match self.write(store, details).await {
            Err(error @ (Error::Unavailable(_) | Error::ClockJumped)) => {
                let (actor, address) = (actor.unwrap_or_default(), address.unwrap_or_default());
                tracing::warn!(action, actor, address, path, %details, %error, "an audit entry could not be saved");
                Ok(())
            }
            outcome => outcome,
        }
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
