//! Files that stay the same while the process runs, by path.

use crate::http::{
    call::Call,
    header,
    reply::{Document, Reply},
};
use std::collections::BTreeMap;

/// Where the page for a path without a page is: no path of a request is like it.
const MISSING: &str = "";

/// Files by path.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<String, File>);

struct File {
    content: Document,
    media: &'static str,
    /// The content security policy of a page.
    policy: Option<&'static str>,
}

impl Files {
    pub(crate) fn add(&mut self, path: &str, media: &'static str, content: impl Into<String>) {
        self.0.insert(path.to_owned(), File { content: Document::new(content.into()), media, policy: None });
    }

    /// Adds an HTML page with its content security policy.
    pub(crate) fn add_page(&mut self, path: &str, policy: &'static str, content: String) {
        let file = File { content: Document::new(content), media: "text/html", policy: Some(policy) };
        self.0.insert(path.to_owned(), file);
    }

    /// Adds the page that people get for a path without a page.
    pub(crate) fn add_missing(&mut self, policy: &'static str, content: String) {
        self.add_page(MISSING, policy, content);
    }

    /// 404 with that page, for a request of a browser.
    pub(crate) fn missing(&self, call: &Call) -> Option<Reply> {
        let file = self.0.get(MISSING).filter(|_| call.takes_pages())?;
        Some(file.content.not_found().into_page(file.policy?))
    }

    /// The file at the path of a request, or 304.
    pub(crate) fn reply(&self, call: &Call) -> Option<Reply> {
        let file = self.0.get(call.path())?;
        let reply = file.content.reply(call);
        Some(match file.policy {
            Some(policy) => reply.into_page(policy),
            None => reply.with(header::CONTENT_TYPE, file.media),
        })
    }
}
