//! The form of an operation that sends a real request. `page.js` sends it; without scripts it is not shown.

use super::{
    book::{Book, Operation, Secret, object_of},
    fields::Shape,
    markup::{anchor, inline, object, text},
};
use maud::{Markup, html};
use serde_json::Value;

/// Media types of responses that a page does not fetch, because they can be as large as the store.
const UNBOUNDED: [&str; 2] = ["application/octet-stream", "application/x-ndjson"];
/// Length of texts above which the input has several lines.
const LONG_TEXT: u64 = 500;

/// How a form differs from the one that shows all inputs empty: in the guide to the first booking.
#[derive(Clone, Copy, Default)]
pub(super) struct Setup {
    /// Begins the ids of its inputs.
    pub(super) prefix: &'static str,
    /// The inputs that it shows; all if there are none. The others are left out.
    pub(super) only: &'static [&'static str],
    /// Values of inputs.
    pub(super) values: &'static [(&'static str, &'static str)],
    /// Inputs that share their last value with those of this name: `from` with `start_date`.
    pub(super) shared: &'static [(&'static str, &'static str)],
}

/// An input before it is HTML.
struct Input<'d> {
    place: &'static str,
    name: &'d str,
    shape: Shape<'d>,
    required: bool,
    example: &'d Value,
}

/// Whether the page can show the response of an operation.
pub(super) fn fits(operation: &Operation<'_>) -> bool {
    let mut media = object(&operation.value["responses"]["200"]["content"]).map(|(media, _)| media.as_str());
    !media.next().is_some_and(|first| UNBOUNDED.contains(&first))
}

/// The form.
pub(super) fn form<'d>(book: &Book<'d>, operation: &Operation<'d>, setup: &Setup) -> Markup {
    let inputs = inputs(book, operation, setup);
    let (shown, more): (Vec<&Input<'_>>, Vec<&Input<'_>>) =
        inputs.iter().partition(|input| input.required || !setup.only.is_empty() || inputs.len() < 6);
    let has_body = inputs.iter().any(|input| input.place == "body");
    let draw = |input: &Input<'d>| draw(operation, input, setup);
    html! {
        form class="try js" data-method=(operation.method) data-path=(operation.path) data-secret=(secret(operation))
            data-idempotent[takes_idempotency_key(book, operation)] data-body[has_body || operation.body_example().is_some()]
            aria-label={"Try: " (operation.summary())} novalidate {
            @for input in shown { (draw(input)) }
            @if !more.is_empty() {
                details { summary { "Optional (" (more.len()) ")" } @for input in more { (draw(input)) } }
            }
            @if operation.takes_file() { (file(operation, setup)) }
            @if has_body && setup.only.is_empty() { (as_json(operation, setup)) }
            p { button type="submit" { "Send " (operation.method) } " " span class="note" role="status" {} }
            div class="result" hidden {}
        }
    }
}

fn secret(operation: &Operation<'_>) -> &'static str {
    match operation.secret() {
        Secret::Key => "key",
        Secret::Token => "token",
        Secret::None => "none",
    }
}

fn takes_idempotency_key<'d>(book: &Book<'d>, operation: &Operation<'d>) -> bool {
    book.parameters(operation).any(|parameter| parameter["name"] == "Idempotency-Key")
}

/// The inputs of a form. The page itself sends the idempotency key.
fn inputs<'d>(book: &Book<'d>, operation: &Operation<'d>, setup: &Setup) -> Vec<Input<'d>> {
    let parameters = book.parameters(operation).filter(|parameter| parameter["name"] != "Idempotency-Key");
    let parameters = parameters.map(|parameter| Input {
        place: match text(&parameter["in"]) {
            "path" => "path",
            "header" => "header",
            _ => "query",
        },
        name: text(&parameter["name"]),
        shape: Shape { description: text(&parameter["description"]), ..Shape::of(book, &parameter["schema"]) },
        required: parameter["required"] == true,
        example: &parameter["example"],
    });
    let body = &operation.value["requestBody"]["content"]["application/json"]["schema"];
    let fields = if operation.takes_file() { Vec::new() } else { Shape::of(book, body).fields(book) };
    let fields = fields.into_iter().map(|(name, field, required)| Input {
        place: "body",
        name,
        shape: Shape::of(book, field),
        required,
        example: &field["examples"][0],
    });
    let wanted = |input: &Input<'_>| setup.only.is_empty() || setup.only.contains(&input.name);
    parameters.chain(fields).filter(wanted).collect()
}

fn id(operation: &Operation<'_>, setup: &Setup, name: &str) -> String {
    format!("{}try-{}-{}", setup.prefix, operation.id(), anchor(name))
}

fn draw<'d>(operation: &Operation<'d>, input: &Input<'d>, setup: &Setup) -> Markup {
    let Input { place, name, shape, required, .. } = input;
    let id = id(operation, setup, &format!("{place}-{name}"));
    let hint = format!("{id}-hint");
    let of =
        |known: &[(&'static str, &'static str)]| known.iter().find(|(one, _)| one == name).map(|(_, other)| *other);
    let shared = of(setup.shared).or_else(|| object_of(name, operation.path));
    let value = of(setup.values).unwrap_or("");
    let example = match input.example {
        Value::String(example) => example.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let kind = shape.kind();
    let is_json = matches!(kind, "array" | "object" | "");
    let words: Vec<&str> = if kind == "boolean" { vec!["true", "false"] } else { shape.words().collect() };
    let lines = is_json || shape.schema["maxLength"].as_u64().is_some_and(|most| most >= LONG_TEXT);
    let data_type = if is_json { "json" } else { kind };
    let input_type = if shape.schema["format"] == "date" { "date" } else { "text" };
    let mode = if matches!(kind, "integer" | "number") { "decimal" } else { "text" };
    html! {
        div class="input" {
            label for=(id) { code { (name) } @if *required { " " em { "required" } } }
            @if !words.is_empty() {
                select id=(id) name=(name) data-in=(place) data-type=(data_type) required[*required] aria-describedby=(hint) {
                    option value="" { "–" }
                    @for word in words { option value=(word) selected[word == value] { (word) } }
                }
            } @else if lines {
                textarea id=(id) name=(name) data-in=(place) data-type=(data_type) required[*required] rows="2"
                    placeholder=(example) aria-describedby=(hint) spellcheck="false" {}
            } @else {
                input id=(id) name=(name) data-in=(place) data-type=(data_type) required[*required] type=(input_type)
                    inputmode=(mode) placeholder=(example) value=(value) data-shared=[shared] autocomplete="off"
                    spellcheck="false" aria-describedby=(hint);
            }
            p class="hint" id=(hint) { (inline(shape.description)) }
        }
    }
}

/// A file to send, and its media type.
fn file(operation: &Operation<'_>, setup: &Setup) -> Markup {
    let (file, media) = (id(operation, setup, "file"), id(operation, setup, "media"));
    html! {
        div class="input" {
            label for=(file) { "File " em { "required" } }
            input id=(file) type="file" data-in="file" required;
        }
        div class="input" {
            label for=(media) { code { "Content-Type" } }
            select id=(media) data-in="media" { @for (media, _) in operation.content() { option { (media) } } }
        }
    }
}

/// The whole body as text, instead of the inputs of its fields.
fn as_json(operation: &Operation<'_>, setup: &Setup) -> Markup {
    let id = id(operation, setup, "json");
    html! {
        details class="as-json" {
            summary { "Edit the body as JSON" }
            div class="input" {
                label for=(id) { "Body, sent instead of the fields above" }
                textarea id=(id) data-in="json" rows="8" spellcheck="false" {}
            }
        }
    }
}
