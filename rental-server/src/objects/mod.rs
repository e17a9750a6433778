//! The generic handlers of objects: list, get, create and update over any resource.

pub(crate) mod write;

use crate::{
    http::{
        HeaderName,
        call::Call,
        header,
        reply::{Handled, Reply, lists},
    },
    objects::write::write_to,
    state::App,
};
use rental_core::{
    operations::{self, Create, Listed, Update},
    request::page::{self, ListQuery},
    resources::{Collection, organization::Organization},
    schema::ResourceSpec,
    store::{DamagedRow, Record, Revision, Store},
    value::OrganizationId,
};

/// The header of a list that leaves objects out.
const DAMAGED_ROWS: &str = "rental-damaged-rows";

/// Whether `If-Match`, if it was sent, lists this revision.
pub(crate) fn expects(call: &Call, revision: Revision) -> bool {
    lists(call.headers(), &header::IF_MATCH, revision).unwrap_or(true)
}

/// A page of a list, newest first unless the query has a range.
pub(crate) async fn list(app: &App, organization: OrganizationId, spec: &'static ResourceSpec, call: &Call) -> Handled {
    list_ordered((app, app.store()), organization, (spec, false), call).await
}

/// The same from this store, oldest first when the boolean says so.
pub(crate) async fn list_ordered(
    (app, store): (&App, &dyn Store),
    organization: OrganizationId,
    (spec, rising): (&'static ResourceSpec, bool),
    call: &Call,
) -> Handled {
    let query = ListQuery { rising, ..ListQuery::parse(call.query(), spec)? };
    Ok(listed(app, operations::list(store, organization, spec, &query).await?))
}

/// The response with a page of a list. It says how many objects the page leaves out because their rows are damaged; those are
/// logged and counted.
pub(crate) fn listed(app: &App, page: Listed) -> Reply {
    leaving_out(app, Reply::json(page.body), &page.damaged)
}

/// The same for a response that was made without these rows.
pub(crate) fn leaving_out(app: &App, reply: Reply, damaged: &[DamagedRow]) -> Reply {
    if damaged.is_empty() {
        return reply;
    }
    damaged.iter().for_each(|row| app.hooks.damaged.note(row));
    reply.with(HeaderName::from_static(DAMAGED_ROWS), &damaged.len().to_string())
}

/// One object, or 304 when the client has its revision.
pub(crate) async fn get(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: &str,
    call: &Call,
) -> Handled {
    page::no_parameters(call.query())?;
    let Record { revision, value, .. } = operations::get(store, organization, spec, id).await?;
    if lists(call.headers(), &header::IF_NONE_MATCH, revision) == Some(true) {
        return Ok(Reply::unchanged(revision));
    }
    Ok(Reply::object(value, revision))
}

/// The store of a request, the organization, and the collection in which objects are written.
pub(crate) type Target<'a> = (&'a dyn Store, &'a Organization, &'static Collection);

/// A new object.
pub(crate) async fn create(
    app: &App,
    (store, organization, collection): Target<'_>,
    call: &Call,
    body: &[u8],
) -> Handled {
    let intent = Create { collection, organization, body: body.into(), given: &[] };
    write_to(store, app, organization, call, body, &intent).await
}

/// A changed object.
pub(crate) async fn update(
    app: &App,
    (store, organization, collection): Target<'_>,
    id: &str,
    call: &Call,
    body: &[u8],
) -> Handled {
    let expected = |revision: Revision| expects(call, revision);
    let intent = Update { collection, organization, id, body: body.into(), expected: &expected };
    write_to(store, app, organization, call, body, &intent).await
}
