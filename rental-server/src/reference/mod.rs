//! The OpenAPI document and the documentation page, made from the table of endpoints.

pub(crate) mod docs_page;
pub(crate) mod document;
pub(crate) mod parts;
pub(crate) mod schema;
pub(crate) mod shapes;
mod webhooks;

use crate::{
    endpoint::{Endpoint, get},
    http::{header, reply::Document},
    state::Documents,
};
use parts::open_operation;
use serde_json::json;

/// The documents about these endpoints.
pub(crate) fn documents(endpoints: &[Endpoint]) -> Documents {
    let document = document::value(endpoints);
    let openapi = serde_json::to_vec(&document).unwrap_or_default();
    let page = Document::new(docs_page::page(&document));
    Documents { openapi: Document::new(openapi), page, style: Document::new(docs_page::STYLE) }
}

/// The endpoints of this folder.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let text = json!({"type": "string"});
    let object = json!({"type": "object", "additionalProperties": true});
    vec![
        get("/openapi.json")
            .documented(open_operation("getOpenApi", "This document", "application/json", object))
            .open(|request| {
                let reply = request.app.documents.openapi.reply(request.call);
                Box::pin(async { Ok(reply) })
            }),
        get("/docs").documented(open_operation("getDocs", "This document as a page", "text/html", text.clone())).open(
            |request| {
                let reply = request.app.documents.page.reply(request.call);
                Box::pin(async { Ok(reply.into_page(docs_page::POLICY)) })
            },
        ),
        get("/docs.css")
            .documented(open_operation("getDocsStyle", "The style sheet of that page", "text/css", text))
            .open(|request| {
                let reply = request.app.documents.style.reply(request.call);
                Box::pin(async { Ok(reply.with(header::CONTENT_TYPE, "text/css; charset=utf-8")) })
            }),
    ]
}
