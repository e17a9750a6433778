//! The OpenAPI document and the documentation page, made from the table of endpoints.

pub(crate) mod document;
mod page;
pub(crate) mod parts;
pub(crate) mod schema;
pub(crate) mod shapes;
mod webhooks;

use crate::{
    endpoint::{Endpoint, get, is_for_operators},
    http::reply::Document,
    state::Documents,
};
use parts::open_operation;
use rental_core::error::Error;
use serde_json::{Value, json};

/// The documents about these endpoints. `operators_elsewhere` says whether operators have an address of their own.
pub(crate) fn documents(endpoints: &[Endpoint], operators_elsewhere: bool) -> Documents {
    let document = document::value(endpoints);
    let openapi = serde_json::to_vec(&document).unwrap_or_default();
    Documents { openapi: Document::new(openapi), pages: page::files(&document, !operators_elsewhere) }
}

/// The endpoints of this folder.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let object = json!({"type": "object", "additionalProperties": true});
    let openapi = get("/openapi.json")
        .documented(open_operation("getOpenApi", "This document", "application/json", object))
        .open(|request| {
            let reply = request.app.documents.openapi.reply(request.call);
            Box::pin(async { Ok(reply) })
        });
    let pages = [
        ("/docs", "getDocs", "This document as pages", "text/html"),
        ("/docs/{id}", "getDocsPage", "A page of it", "text/html"),
        ("/docs/search.json", "getDocsSearch", "What the search of the pages looks through", "application/json"),
        ("/docs.css", "getDocsStyle", "The style sheet of the pages", "text/css"),
        ("/docs.js", "getDocsScript", "The script of the pages", "text/javascript"),
        ("/docs/admin", "getOperatorsDocs", "The part of this document for operators as pages", "text/html"),
        ("/docs/admin/{id}", "getOperatorsDocsPage", "A page of it", "text/html"),
        ("/docs/admin/search.json", "getOperatorsDocsSearch", "The same for operators", "application/json"),
    ];
    let pages = pages
        .into_iter()
        .map(|(path, id, summary, media)| file(path, open_operation(id, summary, media, content(media))));
    [openapi].into_iter().chain(pages).collect()
}

fn content(media: &str) -> Value {
    if media == "application/json" {
        json!({"type": "array", "items": {"type": "array"}})
    } else {
        json!({"type": "string"})
    }
}

/// The endpoint of a file of the pages.
fn file(path: &'static str, mut operation: Value) -> Endpoint {
    if path.contains("{id}") {
        operation["parameters"] = json!([{
            "name": "id", "in": "path", "required": true, "description": "Name of the page, such as `vehicles`.",
            "schema": {"type": "string"}, "example": if path.contains("admin") { "organizations" } else { "vehicles" },
        }]);
        operation["responses"]["404"] = json!({"$ref": "#/components/responses/Problem404"});
    }
    get(path).documented(operation).open(move |request| {
        // Where the paths of operators do not exist, `/docs/admin` reaches `/docs/{id}`.
        let is_offered = is_for_operators(request.call.path()) == is_for_operators(path);
        let page = request.app.documents.pages.reply(request.call).filter(|_| is_offered);
        Box::pin(async { page.ok_or_else(|| Error::NotFound { object: "page" }.into()) })
    })
}
