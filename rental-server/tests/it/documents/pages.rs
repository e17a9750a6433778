//! The pages under `/docs` as tests read them.

use crate::support::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// The pages of a server, by path.
pub(crate) struct Pages(pub(crate) BTreeMap<String, String>);

impl Pages {
    /// All pages that links lead to from the first one and from the first one for operators.
    pub(crate) fn of(address: &str) -> Self {
        Self::reached(address, &["/docs", "/docs/admin"])
    }

    /// All pages that links lead to from these. Each link leads to a page or document of the server.
    pub(crate) fn reached(address: &str, first: &[&str]) -> Self {
        let mut pages = BTreeMap::new();
        let mut waiting: Vec<String> = first.iter().map(|path| (*path).to_owned()).collect();
        while let Some(path) = waiting.pop() {
            if pages.contains_key(&path) {
                continue;
            }
            let reply = Connection::open(address).send("GET", &path, &[], b"");
            assert_eq!(reply.status, 200, "{path}");
            let is_page = reply.header("content-type") == Some("text/html; charset=utf-8");
            if !is_page {
                continue;
            }
            let page = reply.text();
            waiting.extend(links(&page).into_iter().filter(|link| !link.starts_with('#')).map(|link| split(&link).0));
            pages.insert(path, page);
        }
        Self(pages)
    }

    /// The code of all examples in a language, with the path of the page.
    pub(crate) fn examples(&self, language: &str) -> Vec<(&str, String)> {
        let mark = format!("data-language=\"{language}\"");
        let of = |(path, page): (&'_ String, &'_ String)| {
            let parts: Vec<String> = page.split(mark.as_str()).skip(1).map(code).collect();
            (path.clone(), parts)
        };
        let found: Vec<(String, Vec<String>)> = self.0.iter().map(of).collect();
        let path = |path: &str| self.0.get_key_value(path).expect("a page").0.as_str();
        found.into_iter().flat_map(|(page, all)| all.into_iter().map(move |code| (path(&page), code))).collect()
    }
}

/// A link as path and anchor.
pub(crate) fn split(link: &str) -> (String, Option<String>) {
    match link.split_once('#') {
        Some((path, anchor)) => (path.to_owned(), Some(anchor.to_owned())),
        None => (link.to_owned(), None),
    }
}

/// The values of an attribute.
fn values(page: &str, attribute: &str) -> Vec<String> {
    let before = format!(" {attribute}=\"");
    page.split(before.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).map(unescape).collect()
}

/// What the page links to or loads.
pub(crate) fn links(page: &str) -> Vec<String> {
    [values(page, "href"), values(page, "src"), values(page, "data-index")].concat()
}

/// The anchors of the page. No two elements have the same.
#[track_caller]
pub(crate) fn anchors(page: &str) -> BTreeSet<String> {
    let all = values(page, "id");
    let unique: BTreeSet<String> = all.iter().cloned().collect();
    for id in &unique {
        assert_eq!(all.iter().filter(|one| *one == id).count(), 1, "{id}");
    }
    unique
}

/// The text of the first `code` element that follows.
pub(crate) fn code(html: &str) -> String {
    let code = html.split_once("<code>").expect("a code element").1;
    text(code.split("</code>").next().expect("its end"))
}

/// The text of HTML as a browser shows it.
fn text(html: &str) -> String {
    let mut parts = html.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    unescape(&parts.fold(first, |text, part| text + part.split_once('>').map_or("", |(_, after)| after)))
}

fn unescape(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
