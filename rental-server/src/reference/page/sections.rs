//! The parts of the pages that are prose: their titles and anchors, and what the search knows of them.

use super::{
    book::Book,
    markup::{anchor, array, object, text},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// A part of a page with an anchor of its own.
pub(super) struct Section<'d> {
    pub(super) anchor: String,
    pub(super) title: String,
    /// Markdown.
    pub(super) text: &'d str,
    /// Other words that people search for.
    pub(super) words: String,
}

/// Words that people search for and that the text of a section, of the beginning of a page or of an error does not have: by the anchor of
/// the section, the name of the page or the code of the error.
const WORDS: &[(&str, &str)] = &[
    ("first-booking", "guide tutorial quickstart getting started reservation reserve"),
    ("clients", "sdk library package install typescript python javascript node curl postman browser cors origin"),
    ("basics", "authentication authorization bearer key login password oauth"),
    ("lists", "pagination paging page size cursor limit sync updated sort sorting order"),
    ("retries", "retry idempotency idempotent repeat duplicate"),
    ("lost-updates", "etag concurrency optimistic locking conflict revision if-match"),
    ("amounts", "money currency decimal timezone null date time format"),
    ("errors", "problem status code request-id"),
    ("request-ids", "x-request-id traceparent trace tracing correlation log"),
    ("deliveries", "retry retries retried delivery repeat duplicate timeout"),
    ("verifying", "signature hmac secret whsec webhook authenticity"),
    ("headers", "webhook"),
    ("event", "webhook payload body"),
    ("types", "webhook events list"),
    ("rentals", "booking reservation reserve cancel cancellation"),
    ("calendar_feeds", "ical ics airbnb import"),
    ("invoices", "bill billing overdue unpaid"),
    ("credit_notes", "refund cancel"),
    ("tolls", "ezpass e-zpass"),
    ("violations", "ticket parking"),
    ("insufficient_scope", "permission forbidden"),
    ("rate_limited", "throttle throttling"),
];

/// The other words for the section of this anchor, the page of this name or the error of this code.
pub(super) fn words(anchor: &str) -> &'static str {
    WORDS.iter().find(|(known, _)| *known == anchor).map_or("", |(_, words)| words)
}

impl<'d> Section<'d> {
    fn new(anchor: &str, title: &str, text: &'d str) -> Self {
        Self { anchor: anchor.to_owned(), title: title.to_owned(), text, words: words(anchor).to_owned() }
    }
}

/// What holds for every request, in paragraphs. A paragraph is named by what it emphasizes first, such as **Lists**; one that
/// emphasizes nothing belongs to the section as a whole.
pub(super) fn basics<'d>(book: &Book<'d>) -> Vec<Section<'d>> {
    let paragraphs = text(&book.document["info"]["description"]).split("\n\n");
    let section = |paragraph: &'d str| {
        let emphasized: Vec<&str> = paragraph.split("**").skip(1).step_by(2).collect();
        let Some(title) = emphasized.first() else {
            return Section::new("basics", "What holds for every request", paragraph);
        };
        let mut section = Section::new(&title.to_lowercase().replace(' ', "-"), title, paragraph);
        section.words = format!("{} {}", emphasized.join(" ").to_lowercase(), section.words);
        section
    };
    paragraphs.map(section).collect()
}

/// The parts of the first page.
pub(super) fn of_guide<'d>(book: &Book<'d>) -> Vec<Section<'d>> {
    let mut sections = vec![
        Section::new("first-booking", "Your first booking", "Key, days, customer and booking, step by step"),
        Section::new("clients", "Clients", "Packages for TypeScript and Python, `rental-cli`, curl"),
    ];
    sections.extend(basics(book));
    sections
}

/// The parts of the page about webhooks.
pub(super) fn of_webhooks() -> Vec<Section<'static>> {
    vec![
        Section::new("deliveries", "Deliveries", DELIVERIES),
        Section::new("headers", "Headers of a delivery", "Signature, id and type of the event"),
        Section::new("verifying", "Verify before you trust the body", "The signature of a delivery, with the clients"),
        Section::new("event", "The event", "The members of the body of a webhook"),
        Section::new("types", "Event types", "Every type with an example of its payload"),
    ]
}

/// How deliveries are sent.
pub(super) const DELIVERIES: &str = "The server sends each event as a POST to the webhook endpoints of your organization. \
    Answer with any 2xx within 10 seconds, or it is sent again. Deliveries are at least once: recognize repeats by the id of the \
    event.";

/// A header of requests or responses of the API.
pub(super) struct Header<'d> {
    pub(super) name: &'d str,
    pub(super) description: &'d str,
    /// Whether clients send it.
    pub(super) of_requests: bool,
}

impl Header<'_> {
    /// Its place on the first page.
    pub(super) fn anchor(&self) -> String {
        header_anchor(self.name)
    }
}

/// The place of a header on a page.
pub(super) fn header_anchor(name: &str) -> String {
    format!("header.{}", anchor(name))
}

/// The headers of requests and responses of the API for organizations, by name.
pub(super) fn headers<'d>(book: &Book<'d>) -> Vec<Header<'d>> {
    let mut headers = BTreeMap::new();
    let mut add = |name: &'d str, value: &'d Value, of_requests| {
        let description = text(&value["description"]);
        headers.entry(name).or_insert(Header { name, description, of_requests });
    };
    for operation in book.chapters.iter().filter(|one| !one.for_operators).flat_map(|one| &one.operations) {
        for parameter in array(&operation.value["parameters"]).iter().map(|one| book.resolve(one)) {
            if parameter["in"] == "header" {
                add(text(&parameter["name"]), parameter, true);
            }
        }
        for (_, response) in object(&operation.value["responses"]) {
            for (name, header) in object(&book.resolve(response)["headers"]) {
                add(name, book.resolve(header), false);
            }
        }
    }
    headers.into_values().collect()
}

/// Headers of a delivery that OpenAPI does not take as parameters.
const BESIDE_PARAMETERS: [(&str, &str); 2] = [
    ("Content-Type", "`application/json`."),
    ("Accept", "`*/*`: the status of the response counts, and not its body."),
];

/// The headers of a delivery.
pub(super) fn headers_of_deliveries<'d>(book: &Book<'d>) -> Vec<Header<'d>> {
    let first = object(&book.document["webhooks"]).next();
    let parameters = first.map_or(&[][..], |(_, item)| array(&item["post"]["parameters"]));
    let parameters = parameters.iter().map(|one| (text(&one["name"]), text(&one["description"])));
    let all = parameters.chain(BESIDE_PARAMETERS);
    all.map(|(name, description)| Header { name, description, of_requests: true }).collect()
}
