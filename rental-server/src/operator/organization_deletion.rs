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
    operator::{collections, export},
    reference::{
        parts,
        shapes::{self, described, object, text},
    },
};
use rental_core::{
    error::{Error, FieldCode},
    imports::organization::last_change,
    operations::{self, Edge, Intent, Prepared, Preparing},
    request::page,
    resources::{
        Resource,
        audit_entry::{self, AuditEntry},
        organization::{self, Organization, SYSTEM},
        parse,
    },
    rows::key,
    store::{Span, Store, get_one},
    tasks::{
        Task, Work,
        organization_deletion::{FINISHED, OBJECT, begin, task_id},
        organization_hold::{hold, release, replace_hold},
    },
    value::{AuditEntryId, EndpointId, OrganizationId, Timestamp},
};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

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
             refused and its webhooks end at once; a task then removes its objects. Refused with `export_required` unless an \
             export was completed that began after the last change of its objects. Audit entries stay.",
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
        "organization_id": text("The organization."),
        "status": {"type": "string", "enum": ["running", "finished"], "description": "Whether rows of it are left."},
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
        false => hold_if_exported(app.store(), id).await?,
    };
    let (request_id, is_held) = (call.request_id.as_str(), held.is_some());
    let intent = Delete { id, request_id, is_held, endpoints: Mutex::default() };
    let outcome = write(app, &Organization::system(), call, b"", &intent).await;
    if let (Some(organization), Err(_)) = (held, &outcome) {
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
    match query.strip_prefix("without_export=") {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => Err(Error::field("without_export", FieldCode::Invalid, "must be `true` or `false`")),
        None => page::no_parameters(query).map(|()| false),
    }
}

/// Holds the writes of the organization back and refuses unless an export has its last change: a write of this moment
/// either counts or waits. Returns the organization; `None` if there is none.
async fn hold_if_exported(store: &dyn Store, id: &str) -> Result<Option<OrganizationId>, Problem> {
    let organization = match collections::organization_named(store, id).await {
        Ok(organization) => organization,
        // Deleted already: a request with the same idempotency key gets its response again.
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Without a hold first, so that a refused request disturbs nobody.
    must_be_exported(store, &organization).await?;
    hold(store, organization.id, edge::now()).await?;
    // The record may have changed since it was read.
    let checked = match collections::organization_named(store, id).await {
        Ok(organization) => must_be_exported(store, &organization).await,
        Err(error) => Err(error.into()),
    };
    if checked.is_err() {
        release(store, organization.id).await?;
    }
    checked.map(|()| Some(organization.id))
}

/// Refuses unless the newest complete export began after the last change of what an export has.
async fn must_be_exported(store: &dyn Store, organization: &Organization) -> Result<(), Problem> {
    let changed = last_change(store, organization).await?;
    // An import keeps the times of its objects, which can be older than the export.
    let imported = newest(store, organization.id, "importOrganization").await?.map(|entry| entry.created_at);
    let changed = imported.map_or(changed, |imported| imported.max(changed));
    let why = match newest(store, organization.id, export::COMPLETED).await?.map(|entry| entry.created_at) {
        Some(exported) if exported > changed => return Ok(()),
        Some(exported) => format!("was last exported at {exported}, and changed at {changed}"),
        None => "was never exported".into(),
    };
    Err(Problem::ExportRequired(why))
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
    /// Whether writes of the organization wait.
    is_held: bool,
    /// The endpoints of the batch that was prepared last.
    endpoints: Mutex<Vec<EndpointId>>,
}

impl Intent for Delete<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operations::get(store, SYSTEM, &organization::SPEC, self.id).await?;
            let organization: Organization = parse(&record.key, &record.value)?;
            let report = AuditEntryId::from_uuid(edge.new_id());
            let mut begun = begin(store, &record, organization.id, (report, self.request_id, edge.now())).await?;
            self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&begun.state.endpoint_ids);
            let task = Task::organization_deletion(begun.state, edge.now());
            match self.is_held {
                true => replace_hold(store, &task, &mut begun.batch).await?,
                false => task.begin_again(store, &mut begun.batch).await?,
            }
            let body = body(organization.id, 0, edge.now(), None).to_string().into();
            Ok(Prepared { batch: begun.batch, body, revision: 1, object: Some(Box::new(organization)) })
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
