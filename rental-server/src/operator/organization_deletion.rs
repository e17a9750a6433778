//! `DELETE /admin/v1/organizations/{id}`: deletes an organization and everything that belongs to it, and tells how far that
//! is. `rental_core::tasks::organization_deletion` says what each step does.

use crate::{
    edge,
    endpoint::{Endpoint, Parameter, Request, delete, get},
    guard::{Owner, Reader},
    http::{
        problem::Problem,
        reply::{Handled, Reply},
    },
    objects::write::write,
    operator::export,
    reference::{
        parts,
        shapes::{self, described, id, object, text, word},
    },
    state::App,
};
use rental_core::{
    error::{Error, FieldCode},
    imports::organization::{Contents, contents, last_change},
    operations::{self, Edge, Intent, Prepared, Preparing},
    request::page,
    resources::{
        Resource,
        audit_entry::{self, AuditEntry},
        organization::{self, Organization, SYSTEM},
        parse,
    },
    rows::key,
    store::{Revision, Span, Store, get_one},
    tasks::{
        Task, Work,
        organization_deletion::{FINISHED, OBJECT, begin, task_id},
        organization_hold::{extend, hold, release, replace_hold},
    },
    value::{AuditEntryId, EndpointId, OrganizationId, Timestamp},
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{runtime::Handle, task::spawn_blocking};

/// How often the hold on an organization's writes is extended while its records are counted.
const EXTENDED: Duration = Duration::from_secs(10);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let without_export = parts::query(
        "without_export",
        "`true` deletes the organization although no export has everything of it.",
        json!({"type": "boolean", "default": false}),
    );
    let begin = delete("/admin/v1/organizations/{id}")
        .about(&organization::SPEC, "deleteOrganization", "Delete organization")
        .says(
            "Deletes the organization and everything that belongs to it; nothing brings it back but a backup. Its API keys are \
             refused and its webhooks end at once; a task then removes its objects. Refused with `export_required` unless the \
             newest complete export has every object as it is now. Audit entries stay.",
        )
        .parameters(vec![Parameter::Shared("IdempotencyKey"), Parameter::Own(without_export)])
        .replies("OrganizationDeletion")
        .defines("OrganizationDeletion", schema())
        .owner(|request| Box::pin(start(request)));
    let progress = get("/admin/v1/organizations/{organization}/deletion")
        .about(&organization::SPEC, "getOrganizationDeletion", "Progress of the deletion of an organization")
        .says("How far the deletion of an organization is. A finished one is known as long as its audit entries are kept.")
        .without_revision()
        .replies("OrganizationDeletion")
        .reader(|request| Box::pin(progress(request)));
    vec![begin, progress]
}

fn schema() -> Value {
    let mut finished = json!({"type": ["string", "null"], "format": "date-time"});
    finished["description"] = json!("When nothing of it was left.");
    let properties = json!({
        "object": text("Always `organization_deletion`."),
        "organization_id": id("The organization."),
        "status": described(word("OrganizationDeletionStatus", &["running", "finished"]), "Whether rows of it are left."),
        "rows": described(shapes::at_least(0), "Rows of the store that were removed."),
        "created_at": {"type": "string", "format": "date-time", "description": "When the deletion began."},
        "finished_at": finished,
    });
    object("", properties)
}

fn body(organization: OrganizationId, rows: u64, began: Timestamp, finished: Option<Timestamp>) -> Value {
    json!({
        "object": OBJECT,
        "organization_id": organization,
        "status": if finished.is_some() { "finished" } else { "running" },
        "rows": rows,
        "created_at": began,
        "finished_at": finished,
    })
}

/// Begins a deletion.
async fn start(request: Request<'_, Owner>) -> Handled {
    let Request { app, call, id, .. } = request;
    let held = match without_export(call.query())? {
        true => None,
        false => hold_if_exported(app, id).await?,
    };
    let (request_id, exported) = (call.request_id.as_str(), held.map(|(_, revision)| revision));
    let intent = Delete { id, request_id, exported, endpoints: Mutex::default() };
    let outcome = write(app, &Organization::system(), call, b"", &intent).await;
    if let (Some((organization, _)), Err(_)) = (held, &outcome) {
        release(app.store(), organization).await?;
    }
    let reply = outcome?;
    app.authenticator.forget_all();
    let endpoints = intent.endpoints.into_inner().unwrap_or_else(PoisonError::into_inner);
    endpoints.into_iter().for_each(|endpoint| app.hooks.endpoint_changed(endpoint));
    app.tasks_begun.notify_one();
    Ok(reply)
}

fn without_export(query: &str) -> Result<bool, Error> {
    let sent = page::parameters(query, &["without_export"])?;
    match sent.first().map(|(_, value)| value.as_str()) {
        Some("true") => Ok(true),
        Some("false") | None => Ok(false),
        Some(_) => Err(Error::field("without_export", FieldCode::Invalid, "must be `true` or `false`")),
    }
}

/// Holds the writes of the organization back and refuses unless the newest export has everything of it: a write of this
/// moment either counts or waits. Returns the organization with the revision of its record; `None` if there is none.
async fn hold_if_exported(app: &App, id: &str) -> Result<Option<(OrganizationId, Revision)>, Problem> {
    let store = app.store();
    let record = match operations::get(store, SYSTEM, &organization::SPEC, id).await {
        Ok(record) => record,
        // Deleted already: a request with the same idempotency key gets its response again.
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let organization: Organization = parse(&record.key, &record.value)?;
    // By times first, without a hold, so that most refused requests disturb nobody.
    let changed = last_change(store, &organization).await?;
    let export = newest_export(store, organization.id).await?;
    if export.created_at <= changed {
        let why = format!("was last exported at {}, and changed at {changed}", export.created_at);
        return Err(Problem::ExportRequired(why));
    }
    hold(store, organization.id, edge::now()).await?;
    let compared = compare(app, organization.id).await;
    if compared.is_err() {
        release(store, organization.id).await?;
    }
    compared.map(|()| Some((organization.id, record.revision)))
}

/// The entry of the newest complete export.
async fn newest_export(store: &dyn Store, organization: OrganizationId) -> Result<AuditEntry, Problem> {
    let export = newest(store, organization, export::COMPLETED).await?;
    export.ok_or_else(|| Problem::ExportRequired("was never exported".into()))
}

/// Refuses unless the newest export has every record of the organization as it is now.
async fn compare(app: &App, organization: OrganizationId) -> Result<(), Problem> {
    let (store, runtime) = (Arc::clone(&app.store), Handle::current());
    let mut counting = spawn_blocking(move || runtime.block_on(contents(store.as_ref(), organization)));
    let present = loop {
        match tokio::time::timeout(EXTENDED, &mut counting).await {
            Ok(counted) => break counted.map_err(|error| Error::Internal(error.to_string()))??,
            Err(_) => extend(app.store(), organization, edge::now()).await?,
        }
    };
    let export = newest_export(app.store(), organization).await?;
    let details: Value = serde_json::from_str(export.details.get()).unwrap_or_default();
    let exported = serde_json::from_value::<Contents>(details[export::CONTENTS].clone());
    match exported {
        Ok(exported) if exported == present => Ok(()),
        Ok(exported) => Err(Problem::ExportRequired(format!(
            "has changed since its export of {}: that has {} records, and the organization {}",
            export.created_at, exported.records, present.records
        ))),
        Err(_) => Err(Problem::ExportRequired("was last exported by an earlier version of the server".into())),
    }
}

/// The newest audit entry of an action in an organization.
async fn newest(store: &dyn Store, organization: OrganizationId, action: &str) -> Result<Option<AuditEntry>, Error> {
    let span: Span = audit_entry::of_action(organization, action).span(SYSTEM, &audit_entry::SPEC);
    let Some(row) = store.scan(&span, 1).await?.pop() else { return Ok(None) };
    let record = row.map_err(Error::Damaged)?;
    parse(&record.key, &record.value).map(Some)
}

struct Delete<'a> {
    id: &'a str,
    request_id: &'a str,
    /// The revision of the organization that was exported, while its writes wait; `None` to delete it without an export.
    exported: Option<Revision>,
    /// The endpoints of the batch that was prepared last.
    endpoints: Mutex<Vec<EndpointId>>,
}

impl Intent for Delete<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operations::get(store, SYSTEM, &organization::SPEC, self.id).await?;
            let organization: Organization = parse(&record.key, &record.value)?;
            let report = AuditEntryId::from_uuid(edge.new_id());
            if self.exported.is_some_and(|revision| revision != record.revision) {
                return Err(Error::Unavailable("the organization has just been changed; try again".into()));
            }
            let mut begun = begin(store, &record, organization.id, (report, self.request_id, edge.now())).await?;
            self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&begun.state.endpoint_ids);
            let task = Task::organization_deletion(begun.state, edge.now());
            match self.exported {
                Some(_) => replace_hold(store, &task, &mut begun.batch).await?,
                None => task.begin_again(store, &mut begun.batch).await?,
            }
            let body = body(organization.id, 0, edge.now(), None).to_string().into();
            Ok(Prepared {
                batch: begun.batch,
                body,
                revision: 1,
                object: Some(Box::new(organization)),
                asks: Vec::new(),
            })
        })
    }
}

/// How far a deletion is.
async fn progress(request: Request<'_, Reader>) -> Handled {
    page::no_parameters(request.call.query())?;
    let (store, missing) = (request.app.store(), Error::NotFound { object: OBJECT });
    let Some(id) = OrganizationId::parse(request.id) else { return Err(missing.into()) };
    if let Some(record) = get_one(store, &key::task(task_id(id))).await.map_err(Error::from)? {
        let task = Task::read(&record)?;
        if let Work::OrganizationDeletion(state) = task.work {
            return Ok(Reply::json(body(id, state.rows, task.created_at, None).to_string().into()));
        }
    }
    // After the restore of a backup it may be there again.
    let is_there = get_one(store, &Organization::key(SYSTEM, id)).await.map_err(Error::from)?.is_some();
    match newest(store, id, FINISHED).await?.filter(|_| !is_there) {
        Some(entry) => {
            let details: Value = serde_json::from_str(entry.details.get()).unwrap_or_default();
            let began = details["began_at"].as_str().and_then(Timestamp::parse).unwrap_or(entry.created_at);
            let rows = details["rows"].as_u64().unwrap_or_default();
            Ok(Reply::json(body(id, rows, began, Some(entry.created_at)).to_string().into()))
        }
        None => Err(missing.into()),
    }
}
