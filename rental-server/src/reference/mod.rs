//! The OpenAPI documents and the documentation page, made from the table of endpoints.

mod components;
pub(crate) mod document;
mod openapi_3_0;
mod page;
pub(crate) mod parts;
mod renditions;
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

/// The documents about these endpoints. `operators_elsewhere` says whether operators have an address of their own: then the pages
/// for clients do not lead to those for operators. `url` is the address of clients, if the operator has named it.
pub(crate) fn documents(endpoints: &[Endpoint], operators_elsewhere: bool, url: Option<&str>) -> Documents {
    let described = document::value(endpoints);
    let whole = components::with_names(&described);
    let mut openapi = renditions::for_clients(&whole);
    let mut openapi_admin = renditions::for_operators(&whole);
    if let Some(url) = url {
        let servers = json!([{"url": url, "description": "The address of clients"}]);
        if !operators_elsewhere {
            openapi_admin["servers"] = servers.clone();
        }
        openapi["servers"] = servers;
    }
    let json = |document: &Value| Document::new(serde_json::to_vec(document).unwrap_or_default());
    Documents {
        openapi_3_0: json(&openapi_3_0::of(&openapi)),
        openapi_admin: json(&openapi_admin),
        openapi: json(&openapi),
        pages: page::files(&described, !operators_elsewhere),
    }
}

/// An endpoint that serves one of the OpenAPI documents.
fn openapi(path: &str, id: &str, summary: &str, document: fn(&Documents) -> &Document) -> Endpoint {
    let object = json!({"type": "object", "additionalProperties": true});
    get(path).documented(open_operation(id, summary, "application/json", object)).open(move |request| {
        let reply = document(&request.app.documents).reply(request.call);
        Box::pin(async { Ok(reply) })
    })
}

/// The endpoints of this folder.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let documents = [
        openapi("/openapi.json", "getOpenApi", "The API in OpenAPI 3.1", |documents| &documents.openapi),
        openapi(
            "/openapi-3.0.json",
            "getOpenApi30",
            "The API in OpenAPI 3.0.3, for tools that cannot read 3.1",
            |documents| &documents.openapi_3_0,
        ),
        openapi(
            "/openapi-admin.json",
            "getOpenApiForOperators",
            "The calls of operators in OpenAPI 3.1",
            |documents| &documents.openapi_admin,
        ),
    ];
    let pages = [
        ("/docs", "getDocs", "The API as pages", "text/html"),
        ("/docs/{id}", "getDocsPage", "A page of it", "text/html"),
        ("/docs/search.json", "getDocsSearch", "What the search of the pages looks through", "application/json"),
        ("/docs.css", "getDocsStyle", "The style sheet of the pages", "text/css"),
        ("/docs.js", "getDocsScript", "The script of the pages", "text/javascript"),
        ("/docs/admin", "getOperatorsDocs", "The calls of operators as pages", "text/html"),
        ("/docs/admin/{id}", "getOperatorsDocsPage", "A page of it", "text/html"),
        ("/docs/admin/search.json", "getOperatorsDocsSearch", "What their search looks through", "application/json"),
    ];
    let pages = pages
        .into_iter()
        .map(|(path, id, summary, media)| file(path, open_operation(id, summary, media, content(media))));
    documents.into_iter().chain(pages).collect()
}

fn content(media: &str) -> Value {
    if media == "application/json" {
        json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})
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
        let pages = &request.app.documents.pages;
        let page = pages.reply(request.call).filter(|_| is_offered).or_else(|| pages.missing(request.call));
        Box::pin(async { page.ok_or_else(|| Error::NotFound { object: "page" }.into()) })
    })
}
