//! What the search of the pages looks through, as JSON: `[kind, title, text, address]` for each entry, and behind them other
//! words that people search for, if there are any.

use super::{
    book::{Book, Chapter},
    fields::Shape,
    markup::{anchor, object, text},
    problems,
    sections::{Header, Section, header_anchor, headers, headers_of_deliveries, of_guide, of_webhooks, words},
};
use crate::http::problem::catalogue::CATALOGUE;
use serde_json::{Value, json};

/// The entries about the chapters for these callers. Those for operators also have what all may read.
pub(super) fn index(book: &Book<'_>, for_operators: bool) -> String {
    let mut entries: Vec<Value> = Vec::new();
    for chapter in book.chapters.iter().filter(|chapter| for_operators || !chapter.for_operators) {
        let path = chapter.path();
        entries.push(json!(["page", chapter.title, chapter.description, path, words(&chapter.name)]));
        for operation in &chapter.operations {
            let id = operation.id();
            let route = format!("{} {}", operation.method, operation.path);
            entries.push(json!(["operation", operation.summary(), route, format!("{path}#{id}")]));
        }
    }
    entries.extend(prose(book));
    entries.push(json!(["page", "Webhooks", "Events that the server sends", "/docs/webhooks"]));
    entries.extend(object(&book.document["webhooks"]).map(|(name, item)| {
        json!(["event", name, text(&item["post"]["description"]), format!("/docs/webhooks#{name}")])
    }));
    entries.push(json!(["page", "Errors", "Every status and code", "/docs/errors"]));
    entries.extend(CATALOGUE.iter().enumerate().map(|(at, refusal)| {
        let about = format!("{} {}", refusal.status, refusal.cause);
        json!(["error", refusal.code, about, format!("/docs/errors#{}", problems::anchor(at)), words(refusal.code)])
    }));
    for chapter in book.chapters.iter().filter(|chapter| for_operators || !chapter.for_operators) {
        entries.extend(fields(book, chapter));
    }
    Value::Array(entries).to_string()
}

/// The sections of the first page and of the page about webhooks, and the headers.
fn prose(book: &Book<'_>) -> Vec<Value> {
    let section = |path: &str, one: Section<'_>| {
        let text = one.text.replace("**", "");
        json!(["section", one.title, text, format!("{path}#{}", one.anchor), one.words])
    };
    let mut entries: Vec<Value> = of_guide(book).into_iter().map(|one| section("/docs", one)).collect();
    entries.extend(of_webhooks().into_iter().map(|one| section("/docs/webhooks", one)));
    let header = |path: &str, name: &str, about: &str, words: &str| {
        json!(["header", name, about, format!("{path}#{}", header_anchor(name)), words])
    };
    entries.extend(headers(book).iter().map(|one| header("/docs", one.name, one.description, "header")));
    let of_deliveries = headers_of_deliveries(book);
    let delivery = |one: &Header<'_>| header("/docs/webhooks", one.name, one.description, "header webhook delivery");
    entries.extend(of_deliveries.iter().map(delivery));
    entries
}

/// The fields of the resource of a chapter, and the parameters of its operations.
fn fields(book: &Book<'_>, chapter: &Chapter<'_>) -> Vec<Value> {
    let path = chapter.path();
    let entry = |owner: &str, name: &str, about: &str| {
        json!(["field", format!("{owner}.{name}"), about, format!("{path}#{owner}.{}", anchor(name))])
    };
    let mut entries = Vec::new();
    if let Some((spec, schema)) = book.resource(chapter) {
        let all = Shape::of(book, schema).fields(book);
        entries.extend(all.iter().map(|(name, field, _)| entry(spec.object, name, Shape::of(book, field).description)));
    }
    for operation in &chapter.operations {
        let own = book.parameters(operation).filter(|parameter| parameter["in"] == "query");
        let own = own.map(|one| (text(&one["name"]), text(&one["description"])));
        let shared = ["limit", "starting_after", "created[gte]", "created[lt]"];
        let own = own.filter(|(name, _)| !shared.contains(name));
        entries.extend(own.map(|(name, about)| entry(operation.id(), name, about)));
    }
    entries
}
