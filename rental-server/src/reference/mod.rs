//! The OpenAPI document and the documentation page, made from the table of endpoints.

pub(crate) mod docs_page;
pub(crate) mod document;
pub(crate) mod parts;
pub(crate) mod schema;
pub(crate) mod shapes;
mod webhooks;

use crate::{
    endpoint::{Endpoint, get},
    http::{header, reply::Reply},
    state::Documents,
};
use bytes::Bytes;
use parts::open_operation;
use serde_json::json;

/// The documents about these endpoints.
pub(crate) fn documents(endpoints: &[Endpoint]) -> Documents {
    let document = document::value(endpoints);
    let openapi = serde_json::to_vec(&document).unwrap_or_default();
    Documents { openapi: openapi.into(), page: docs_page::page(&document).into() }
}

/// The endpoints of this folder.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let text = json!({"type": "string"});
    let object = json!({"type": "object", "additionalProperties": true});
    vec![
        get("/openapi.json")
            .documented(open_operation("getOpenApi", "This document", "application/json", object))
            .open(|request| {
                let openapi = request.app.documents.openapi.clone();
                Box::pin(async { Ok(Reply::json(openapi)) })
            }),
        get("/docs").documented(open_operation("getDocs", "This document as a page", "text/html", text.clone())).open(
            |request| {
                let page = request.app.documents.page.clone();
                Box::pin(async { Ok(Reply::page(page, docs_page::POLICY)) })
            },
        ),
        get("/docs.css")
            .documented(open_operation("getDocsStyle", "The style sheet of that page", "text/css", text))
            .open(|_| {
                let style = Reply::json(Bytes::from_static(docs_page::STYLE.as_bytes()));
                Box::pin(async { Ok(style.with(header::CONTENT_TYPE, "text/css; charset=utf-8")) })
            }),
    ]
}
