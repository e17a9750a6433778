//! `/docs`: the OpenAPI document as pages, one for each resource. They read without scripts; `page.js` adds the search, the
//! key, the copy buttons and the forms that send requests. Nothing comes from other servers.

mod book;
mod calls;
mod chapter;
mod commands;
mod events;
mod examples;
mod fields;
mod guide;
mod layout;
mod markup;
mod problems;
mod search;
mod sections;
mod try_it;

use crate::http::files::Files;
use book::Book;
use layout::{Page, framed};
use maud::Markup;
use serde_json::Value;

/// The pages may load the style sheet and the script of this server and send requests to it, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The pages about this document, with their style sheet, script and search. `names_operators_pages` says whether the pages
/// for organizations link to those for operators, which may be on another address.
pub(super) fn files(document: &Value, names_operators_pages: bool) -> Files {
    let book = Book::new(document, names_operators_pages);
    let mut files = Files::default();
    let mut page = |path: &str, title: &str, for_operators, content: Markup| {
        let page = Page { path: path.into(), title, for_operators, content };
        files.add_page(path, POLICY, framed(&book, &page));
    };
    page("/docs", "Start", false, guide::content(&book));
    page("/docs/webhooks", "Webhooks", false, events::content(&book));
    page("/docs/errors", "Errors", false, problems::content(&book));
    page("/docs/admin", "For operators", true, guide::operators(&book));
    for chapter in &book.chapters {
        page(&chapter.path(), &chapter.title, chapter.for_operators, chapter::content(&book, chapter));
    }
    let missing = Page { path: String::new(), title: "Not found", for_operators: false, content: guide::missing() };
    files.add_missing(POLICY, framed(&book, &missing));
    files.add("/docs/search.json", "application/json", search::index(&book, false));
    files.add("/docs/admin/search.json", "application/json", search::index(&book, true));
    files.add("/docs.css", "text/css; charset=utf-8", include_str!("page.css"));
    files.add("/docs.js", "text/javascript; charset=utf-8", concat!(include_str!("page.js"), include_str!("send.js")));
    files
}
