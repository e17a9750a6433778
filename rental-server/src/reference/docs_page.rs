//! `/docs`: the OpenAPI document as one static page, without scripts and without anything from other servers.

use crate::http::problem::catalogue::CATALOGUE;
use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value};

/// The page may load its style sheet from this server and nothing else from anywhere.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page's style sheet, served at `/docs.css`.
pub(crate) const STYLE: &str = include_str!("docs_page.css");

/// The page.
pub(super) fn page(document: &Value) -> String {
    let info = &document["info"];
    html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8"; meta name="viewport" content="width=device-width";
                title { (text(&info["title"])) }
                link rel="stylesheet" href="/docs.css";
            }
            body {
                (navigation(document))
                main {
                    h1 { (text(&info["title"])) " " small { (text(&info["version"])) } }
                    p { "The same as " a href="/openapi.json" { "OpenAPI 3.1" } ", for your tools." }
                    @for paragraph in text(&info["description"]).split("\n\n") { p { (inline(paragraph)) } }
                    @for tag in tags(document) { (section(document, tag)) }
                    (webhooks(document))
                    (errors(document))
                }
            }
        }
    }
    .into_string()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The Markdown that descriptions use: `code` and **bold**.
fn inline(markdown: &str) -> Markup {
    html! {
        @for (at, part) in markdown.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } }
            @else {
                @for (at, part) in part.split("**").enumerate() {
                    @if at % 2 == 1 { strong { (part) } } @else { (part) }
                }
            }
        }
    }
}

/// The `description` of a part of the document.
fn description(value: &Value) -> Markup {
    inline(text(&value["description"]))
}

fn heads(names: &[&str]) -> Markup {
    html! { tr { @for name in names { th { (name) } } } }
}

/// Every operation of a tag as (method, path, operation), in the order of the document.
fn operations<'d>(document: &'d Value, tag: &'d Value) -> impl Iterator<Item = (String, &'d String, &'d Value)> {
    object(&document["paths"])
        .flat_map(|(path, item)| object(item).map(move |(method, operation)| (method.to_uppercase(), path, operation)))
        .filter(move |(.., operation)| operation["tags"][0] == tag["name"])
}

/// The tags of operations that the server has; webhooks have a section of their own.
fn tags(document: &Value) -> impl Iterator<Item = &Value> {
    array(&document["tags"]).iter().filter(|tag| operations(document, tag).next().is_some())
}

fn navigation(document: &Value) -> Markup {
    html! {
        nav {
            @for tag in tags(document) {
                h2 { (text(&tag["name"])) }
                ul {
                    @for (method, _, operation) in operations(document, tag) {
                        @let id = text(&operation["operationId"]);
                        li { a href={"#" (id)} { b class=(method) { (method) } " " (text(&operation["summary"])) } }
                    }
                }
            }
            h2 { "More" }
            ul { li { a href="#webhooks" { "Webhooks" } } li { a href="#errors" { "Errors" } } }
        }
    }
}

fn section(document: &Value, tag: &Value) -> Markup {
    html! {
        section {
            h2 { (text(&tag["name"])) }
            p { (description(tag)) }
            @for (method, path, operation) in operations(document, tag) {
                article id=(text(&operation["operationId"])) {
                    h3 { (text(&operation["summary"])) }
                    p class="route" { b class=(method) { (method) } " " code { (path) } }
                    p { (description(operation)) }
                    (parameters(document, operation))
                    (body(document, operation))
                    (example(&request_line(&method, path, operation), tag, operation))
                    (statuses(operation))
                }
            }
        }
    }
}

/// Whether the body of an operation is a file: a file has another media type than JSON, or several.
fn takes_file(operation: &Value) -> bool {
    object(&operation["requestBody"]["content"]).any(|(media, _)| media != "application/json")
}

fn body(document: &Value, operation: &Value) -> Markup {
    let content = &operation["requestBody"]["content"];
    let schema = &content["application/json"]["schema"];
    html! {
        @if takes_file(operation) {
            h4 { "Body: a file" }
            p { (description(&operation["requestBody"])) }
            table {
                (heads(&["Content-Type", "File"]))
                @for (media, file) in object(content) {
                    tr { td { code { (media) } } td { (description(&file["schema"])) } }
                }
            }
        } @else if schema.is_object() {
            h4 { "Body" }
            (fields(resolve(document, schema)))
        }
    }
}

/// Follows a `$ref` inside the document.
fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn parameters(document: &Value, operation: &Value) -> Markup {
    let all = array(&operation["parameters"]);
    html! {
        @if !all.is_empty() {
            h4 { "Parameters" }
            table {
                (heads(&["Name", "In", "Value", ""]))
                @for parameter in all.iter().map(|parameter| resolve(document, parameter)) {
                    tr {
                        td { code { (text(&parameter["name"])) } } td { (text(&parameter["in"])) }
                        td { (value_kind(&parameter["schema"])) } td { (description(parameter)) }
                    }
                }
            }
        }
    }
}

fn fields(schema: &Value) -> Markup {
    html! {
        table {
            (heads(&["Field", "Value", ""]))
            @for (name, property) in object(&schema["properties"]) {
                @let required = array(&schema["required"]).iter().any(|known| known == name);
                tr {
                    td { code { (name) } @if required { " " em { "required" } } }
                    td { (value_kind(property)) } td { (description(property)) }
                }
            }
        }
    }
}

/// The values that a schema takes, in a few words.
fn value_kind(schema: &Value) -> Markup {
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    let bounds =
        [("format", ""), ("maxLength", "at most "), ("minimum", "from "), ("maximum", "to "), ("default", "default ")];
    html! {
        @if schema["enum"].is_array() {
            @for (at, word) in array(&schema["enum"]).iter().filter(|word| !word.is_null()).enumerate() {
                @if at > 0 { ", " } code { (text(word)) }
            }
        } @else { (types.join(" or ")) }
        @for (member, words) in bounds {
            @match &schema[member] {
                Value::Null => {}
                // Widths of machine types say nothing to a reader of the page.
                Value::String(format) if member == "format" && ["double", "int64"].contains(&format.as_str()) => {}
                Value::String(value) => { "; " (words) (value) }
                other => { "; " (words) (other.to_string()) }
            }
        }
    }
}

/// The start of a curl command: method, URL and authentication.
fn request_line(method: &str, path: &str, operation: &Value) -> String {
    let ids = array(&operation["parameters"]).iter().filter(|parameter| parameter["in"] == "path");
    let filled = ids.fold(path.to_owned(), |path, id| {
        path.replace(&format!("{{{}}}", text(&id["name"])), id["example"].as_str().unwrap_or("ID"))
    });
    let token = match operation["security"][0].as_object() {
        Some(scheme) if scheme.contains_key("adminToken") => " -H \"Authorization: Bearer $RENTAL_ADMIN_TOKEN\"",
        _ if operation["security"].is_array() => "",
        _ => " -H \"Authorization: Bearer $RENTAL_API_KEY\"",
    };
    let option = if method == "GET" { String::new() } else { format!(" -X {method}") };
    format!("curl{option} $RENTAL_BASE_URL{filled}{token}")
}

/// The curl commands of an operation, and its response.
fn example(line: &str, tag: &Value, operation: &Value) -> Markup {
    let content = &operation["requestBody"]["content"];
    let ok = &operation["responses"]["200"]["content"]["application/json"]["example"];
    html! {
        h4 { "Example" }
        @if takes_file(operation) {
            @for (media, file) in object(content) { (upload(line, tag, media, &file["example"])) }
        } @else {
            @let sent = &content["application/json"]["example"];
            @let json = " \\\n  -H 'Content-Type: application/json' \\\n  -d ";
            pre { (line) @if !sent.is_null() { (json) "'" (sent.to_string()) "'" } }
        }
        @if !ok.is_null() { (response(ok)) }
    }
}

fn response(example: &Value) -> Markup {
    html! { pre class="answer" { (serde_json::to_string_pretty(example).unwrap_or_default()) } }
}

/// The command that uploads a file of one media type, and the file.
fn upload(line: &str, tag: &Value, media: &str, file: &Value) -> Markup {
    let ending = match media {
        "text/csv" => "csv",
        "application/x-ndjson" => "ndjson",
        "image/png" => "png",
        _ => "json",
    };
    let name = format!("{}.{ending}", tag["name"].as_str().unwrap_or("file").to_lowercase());
    html! {
        pre { (line) " \\\n  -H 'Content-Type: " (media) "' \\\n  --data-binary @" (name) }
        @if !file.is_null() {
            p { "with " code { (name) } ":" }
            pre class="file" { (file.as_str().map_or_else(|| file.to_string(), str::to_owned)) }
        }
    }
}

fn statuses(operation: &Value) -> Markup {
    let mut others =
        object(&operation["responses"]).map(|(status, _)| status).filter(|status| *status != "200").peekable();
    html! {
        @if others.peek().is_some() {
            p class="statuses" { "Also:" @for status in others { " " a href={"#problem" (status)} { (status) } } }
        }
    }
}

fn webhooks(document: &Value) -> Markup {
    let first = object(&document["webhooks"]).next();
    html! {
        section id="webhooks" {
            h2 { "Webhooks" }
            p {
                "Every event is a POST to your endpoint; answer with any 2xx within 10 seconds. Verify "
                code { "Service-Signature" } " before you trust the body."
            }
            table {
                (heads(&["Type", "Sent when"]))
                @for (name, item) in object(&document["webhooks"]) {
                    tr { td { code { (name) } } td { (description(&item["post"])) } }
                }
            }
            @if let Some((_, item)) = first {
                (response(&item["post"]["requestBody"]["content"]["application/json"]["example"]))
            }
        }
    }
}

fn errors(document: &Value) -> Markup {
    let first = |at: usize| at == 0 || CATALOGUE[at - 1].status != CATALOGUE[at].status;
    html! {
        section id="errors" {
            h2 { "Errors" }
            table {
                (heads(&["Status", "Code", "Cause", "Next step"]))
                @let unchanged = inline("The object still has the revision in `If-None-Match`.");
                tr id="problem304" { td { "304" } td {} td { (unchanged) } td { "Use what you have." } }
                @for (at, refusal) in CATALOGUE.iter().enumerate() {
                    tr id=[first(at).then(|| format!("problem{}", refusal.status))] {
                        td { (refusal.status) } td { code { (refusal.code) } br; small { (refusal.kind) } }
                        td { (inline(refusal.cause)) } td { (inline(refusal.next)) }
                    }
                }
            }
            h3 { "Shape" }
            (fields(&document["components"]["schemas"]["Error"]["properties"]["error"]))
        }
    }
}
