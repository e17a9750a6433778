//! The page about errors: every status and code, from the catalogue.

use super::{
    book::Book,
    fields::fields,
    markup::{block, inline, pretty},
};
use crate::http::problem::catalogue::CATALOGUE;
use maud::{Markup, html};
use serde_json::json;

/// The anchor of a row of the catalogue: its code, and for a code with several statuses also the status.
pub(super) fn anchor(at: usize) -> String {
    let refusal = &CATALOGUE[at];
    let is_first = CATALOGUE.iter().position(|other| other.code == refusal.code) == Some(at);
    if is_first { refusal.code.to_owned() } else { format!("{}-{}", refusal.code, refusal.status) }
}

/// The content of the page.
pub(super) fn content(book: &Book<'_>) -> Markup {
    let first = |at: usize| at == 0 || CATALOGUE[at - 1].status != CATALOGUE[at].status;
    let error = &book.document["components"]["schemas"]["Error"]["properties"]["error"];
    let example = CATALOGUE.first().map(|refusal| {
        json!({"error": {"type": refusal.kind, "code": refusal.code, "message": refusal.cause, "request_id": "req_…"}})
    });
    html! {
        h1 { "Errors" }
        p { "Programs read " code { "code" } "; it stays the same. " code { "message" } " is for people." }
        (fields(book, error, "error", false))
        @if let Some(example) = example { (block("example of an error", &html! { (pretty(&example)) })) }
        h2 id="status-304" { a href="#status-304" { "304" } }
        p { "The object still has the revision in " code { "If-None-Match" } ". Use what you have." }
        @for (at, refusal) in CATALOGUE.iter().enumerate() {
            @if first(at) && refusal.status > 431 && CATALOGUE[at.saturating_sub(1)].status < 431 {
                h2 id="status-431" { a href="#status-431" { "431" } }
                p { "The head of the request is too large: send fewer or shorter headers. The response has no body." }
            }
            @if first(at) { @let id = format!("status-{}", refusal.status); h2 id=(id) { a href={"#" (id)} { (refusal.status) } } }
            @let id = anchor(at);
            div class="refusal" id=(id) {
                p class="name" { a href={"#" (id)} { code { (refusal.code) } } " " span class="kind" { (refusal.kind) } }
                p { (inline(refusal.cause)) " " strong { "Next: " } (inline(refusal.next)) }
            }
        }
    }
}
