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
mod try_it;

use crate::{
    endpoints::is_for_operators,
    http::{
        call::Call,
        header,
        reply::{Document, Handled},
    },
};
use book::Book;
use layout::{Page, framed};
use maud::Markup;
use rental_core::error::Error;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pages may load the style sheet and the script of this server and send requests to it, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";

/// The files of the reference, by path.
pub(crate) struct Site(BTreeMap<String, File>);

struct File {
    content: Document,
    media: &'static str,
}

impl Site {
    /// The pages about this document. `names_operators_pages` says whether the pages for organizations link to those for
    /// operators, which may be on another address.
    pub(super) fn new(document: &Value, names_operators_pages: bool) -> Self {
        let book = Book::new(document, names_operators_pages);
        let mut site = Self(BTreeMap::new());
        let mut page = |path: &str, title: &str, for_operators, content: Markup| {
            let page = Page { path: path.into(), title, for_operators, content };
            site.add(path, HTML, framed(&book, &page));
        };
        page("/docs", "Start", false, guide::content(&book));
        page("/docs/webhooks", "Webhooks", false, events::content(&book));
        page("/docs/errors", "Errors", false, problems::content(&book));
        page("/docs/admin", "For operators", true, guide::operators(&book));
        for chapter in &book.chapters {
            page(&chapter.path(), &chapter.title, chapter.for_operators, chapter::content(&book, chapter));
        }
        site.add("/docs/search.json", "application/json", search::index(&book, false));
        site.add("/docs/admin/search.json", "application/json", search::index(&book, true));
        site.add("/docs.css", "text/css; charset=utf-8", include_str!("page.css").to_owned());
        site.add(
            "/docs.js",
            "text/javascript; charset=utf-8",
            concat!(include_str!("page.js"), include_str!("send.js")).to_owned(),
        );
        site
    }

    fn add(&mut self, path: &str, media: &'static str, content: String) {
        self.0.insert(path.to_owned(), File { content: Document::new(content), media });
    }

    /// The file at the path of a request. `endpoint` is the path of the endpoint that it reached: on an address without
    /// operators, `/docs/admin` is a page of `/docs/{id}`, and does not exist.
    pub(super) fn reply(&self, call: &Call, endpoint: &str) -> Handled {
        let file = self.0.get(call.path()).filter(|_| is_for_operators(call.path()) == is_for_operators(endpoint));
        let Some(file) = file else { return Err(Error::NotFound { object: "page" }.into()) };
        let reply = file.content.reply(call);
        Ok(if file.media == HTML { reply.into_page(POLICY) } else { reply.with(header::CONTENT_TYPE, file.media) })
    }
}
