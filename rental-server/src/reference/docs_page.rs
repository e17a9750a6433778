//! `/docs`: the OpenAPI document as one static page. No script, nothing from elsewhere, works offline.

use serde_json::{Map, Value};
use std::fmt::Write;

/// The page may load its style sheet from this server and nothing else from anywhere.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page's style sheet, served at `/docs.css`.
pub(crate) const STYLE: &str = include_str!("docs_page.css");

/// The page.
pub(super) fn page(document: &Value) -> Vec<u8> {
    let mut html = String::with_capacity(256 * 1024);
    let title = text(&document["info"]["title"]);
    html.push_str("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">");
    push(&mut html, format_args!("<title>{title}</title><link rel=\"stylesheet\" href=\"/docs.css\"></head><body>"));
    navigation(&mut html, document);
    html.push_str("<main>");
    push(&mut html, format_args!("<h1>{title} <small>{}</small></h1>", text(&document["info"]["version"])));
    html.push_str("<p>The same as <a href=\"/openapi.json\">OpenAPI 3.1</a>, for your tools.</p>");
    for paragraph in document["info"]["description"].as_str().unwrap_or("").split("\n\n") {
        push(&mut html, format_args!("<p>{}</p>", inline(paragraph)));
    }
    for tag in tags(document) {
        section(&mut html, document, tag);
    }
    webhooks(&mut html, document);
    errors(&mut html, document);
    html.push_str("</main></body></html>");
    html.into_bytes()
}

/// Writing to a `String` cannot fail.
fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = html.write_fmt(text);
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or(""))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The little Markdown that descriptions use: `code` and **bold**.
fn inline(markdown: &str) -> String {
    let mut html = String::new();
    for (at, part) in escape(markdown).split('`').enumerate() {
        if at % 2 == 1 {
            push(&mut html, format_args!("<code>{part}</code>"));
            continue;
        }
        for (at, part) in part.split("**").enumerate() {
            if at % 2 == 1 {
                push(&mut html, format_args!("<strong>{part}</strong>"));
            } else {
                html.push_str(part);
            }
        }
    }
    html
}

/// Every operation as (method, path, operation), in the order of the document.
fn operations(document: &Value) -> impl Iterator<Item = (String, &String, &Value)> {
    object(&document["paths"])
        .flat_map(|(path, item)| object(item).map(move |(method, operation)| (method.to_uppercase(), path, operation)))
}

fn of_tag<'d>(document: &'d Value, tag: &'d Value) -> impl Iterator<Item = (String, &'d String, &'d Value)> {
    operations(document).filter(move |(.., operation)| operation["tags"][0] == tag["name"])
}

/// The tags of operations that the server has; webhooks have a section of their own.
fn tags(document: &Value) -> impl Iterator<Item = &Value> {
    array(&document["tags"]).iter().filter(|tag| of_tag(document, tag).next().is_some())
}

fn navigation(html: &mut String, document: &Value) {
    html.push_str("<nav>");
    for tag in tags(document) {
        push(html, format_args!("<h2>{}</h2><ul>", text(&tag["name"])));
        for (method, _, operation) in of_tag(document, tag) {
            let id = text(&operation["operationId"]);
            push(
                html,
                format_args!(
                    "<li><a href=\"#{id}\"><b class=\"{method}\">{method}</b> {}</a></li>",
                    text(&operation["summary"])
                ),
            );
        }
        html.push_str("</ul>");
    }
    html.push_str("<h2>More</h2><ul><li><a href=\"#webhooks\">Webhooks</a></li><li><a href=\"#errors\">Errors</a></li></ul></nav>");
}

fn section(html: &mut String, document: &Value, tag: &Value) {
    push(
        html,
        format_args!(
            "<section><h2>{}</h2><p>{}</p>",
            text(&tag["name"]),
            inline(tag["description"].as_str().unwrap_or(""))
        ),
    );
    for (method, path, operation) in of_tag(document, tag) {
        let id = text(&operation["operationId"]);
        push(html, format_args!("<article id=\"{id}\"><h3>{}</h3>", text(&operation["summary"])));
        push(
            html,
            format_args!("<p class=\"route\"><b class=\"{method}\">{method}</b> <code>{}</code></p>", escape(path)),
        );
        push(html, format_args!("<p>{}</p>", inline(operation["description"].as_str().unwrap_or(""))));
        parameters(html, document, operation);
        body(html, document, operation);
        example(html, &request_line(&method, path, operation), tag, operation);
        statuses(html, operation);
        html.push_str("</article>");
    }
    html.push_str("</section>");
}

/// Whether the body of an operation is a file: a file has another media type than JSON, or several.
fn takes_file(operation: &Value) -> bool {
    object(&operation["requestBody"]["content"]).any(|(media, _)| media != "application/json")
}

fn body(html: &mut String, document: &Value, operation: &Value) {
    let content = &operation["requestBody"]["content"];
    if !takes_file(operation) {
        if content["application/json"]["schema"].is_object() {
            html.push_str("<h4>Body</h4>");
            fields(html, resolve(document, &content["application/json"]["schema"]));
        }
        return;
    }
    let about = inline(operation["requestBody"]["description"].as_str().unwrap_or(""));
    push(html, format_args!("<h4>Body: a file</h4><p>{about}</p>"));
    html.push_str("<table><tr><th>Content-Type</th><th>File</th></tr>");
    for (media, file) in object(content) {
        let about = inline(file["schema"]["description"].as_str().unwrap_or(""));
        push(html, format_args!("<tr><td><code>{}</code></td><td>{about}</td></tr>", escape(media)));
    }
    html.push_str("</table>");
}

/// Follows a `$ref` inside the document.
fn resolve(document: &Value, value: &Value) -> Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value).clone()
}

fn parameters(html: &mut String, document: &Value, operation: &Value) {
    let all = array(&operation["parameters"]);
    if all.is_empty() {
        return;
    }
    html.push_str("<h4>Parameters</h4><table><tr><th>Name</th><th>In</th><th>Value</th><th></th></tr>");
    for parameter in all {
        let parameter = resolve(document, parameter);
        let row = (
            text(&parameter["name"]),
            text(&parameter["in"]),
            value_kind(&parameter["schema"]),
            inline(parameter["description"].as_str().unwrap_or("")),
        );
        push(
            html,
            format_args!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                row.0, row.1, row.2, row.3
            ),
        );
    }
    html.push_str("</table>");
}

fn fields(html: &mut String, schema: Value) {
    html.push_str("<table><tr><th>Field</th><th>Value</th><th></th></tr>");
    let required = array(&schema["required"]);
    for (name, property) in object(&schema["properties"]) {
        let mark = if required.iter().any(|known| known == name) { " <em>required</em>" } else { "" };
        let row = (escape(name), value_kind(property), inline(property["description"].as_str().unwrap_or("")));
        push(html, format_args!("<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{}</td></tr>", row.0, row.1, row.2));
    }
    html.push_str("</table>");
}

/// What a schema takes, in a few words.
fn value_kind(schema: &Value) -> String {
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    let mut kind = types.join(" or ");
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter(|word| !word.is_null()).map(|word| format!("<code>{}</code>", text(word))).collect();
        kind = words.join(", ");
    }
    for (member, words) in
        [("format", ""), ("maxLength", "at most "), ("minimum", "from "), ("maximum", "to "), ("default", "default ")]
    {
        match &schema[member] {
            Value::Null => {}
            // Widths of machine types say nothing to a reader of the page.
            Value::String(format) if member == "format" && ["double", "int64"].contains(&format.as_str()) => {}
            Value::String(value) => push(&mut kind, format_args!("; {words}{}", escape(value))),
            other => push(&mut kind, format_args!("; {words}{other}")),
        }
    }
    kind
}

/// The start of a curl command: method, URL and authentication.
fn request_line(method: &str, path: &str, operation: &Value) -> String {
    let ids = array(&operation["parameters"]).iter().filter(|parameter| parameter["in"] == "path");
    let filled = ids.fold(path.to_owned(), |path, id| {
        path.replace(&format!("{{{}}}", id["name"].as_str().unwrap_or("")), id["example"].as_str().unwrap_or("ID"))
    });
    let token = match operation["security"][0].as_object() {
        Some(scheme) if scheme.contains_key("adminToken") => " -H \"Authorization: Bearer $RENTAL_ADMIN_TOKEN\"",
        _ if operation["security"].is_array() => "",
        _ => " -H \"Authorization: Bearer $RENTAL_API_KEY\"",
    };
    let verb = if method == "GET" { String::new() } else { format!(" -X {method}") };
    format!("curl{verb} $RENTAL_BASE_URL{filled}{token}")
}

/// The curl commands of an operation, and its response.
fn example(html: &mut String, line: &str, tag: &Value, operation: &Value) {
    let content = &operation["requestBody"]["content"];
    html.push_str("<h4>Example</h4>");
    if takes_file(operation) {
        for (media, file) in object(content) {
            upload(html, line, tag, (media, &file["example"]));
        }
    } else {
        let sent = match &content["application/json"]["example"] {
            Value::Null => String::new(),
            body => format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"),
        };
        push(html, format_args!("<pre>{}</pre>", escape(&format!("{line}{sent}"))));
    }
    let ok = &operation["responses"]["200"]["content"]["application/json"];
    if !ok["example"].is_null() {
        let shown = serde_json::to_string_pretty(&ok["example"]).unwrap_or_default();
        push(html, format_args!("<pre class=\"answer\">{}</pre>", escape(&shown)));
    }
}

/// The command that uploads a file of one media type, and the file.
fn upload(html: &mut String, line: &str, tag: &Value, (media, file): (&str, &Value)) {
    let ending = match media {
        "text/csv" => "csv",
        "application/x-ndjson" => "ndjson",
        _ => "json",
    };
    let name = format!("{}.{ending}", tag["name"].as_str().unwrap_or("file").to_lowercase());
    let command = format!("{line} \\\n  -H 'Content-Type: {media}' \\\n  --data-binary @{name}");
    let shown = file.as_str().map_or_else(|| file.to_string(), str::to_owned);
    push(
        html,
        format_args!(
            "<pre>{}</pre><p>with <code>{name}</code>:</p><pre class=\"file\">{}</pre>",
            escape(&command),
            escape(&shown)
        ),
    );
}

fn statuses(html: &mut String, operation: &Value) {
    let others = object(&operation["responses"]).filter(|(status, _)| status.as_str() != "200");
    let links: Vec<String> = others.map(|(status, _)| format!("<a href=\"#problem{status}\">{status}</a>")).collect();
    if !links.is_empty() {
        push(html, format_args!("<p class=\"statuses\">Also: {}</p>", links.join(" ")));
    }
}

fn webhooks(html: &mut String, document: &Value) {
    html.push_str("<section id=\"webhooks\"><h2>Webhooks</h2><p>Every event is a POST to your endpoint; answer with any 2xx within 10 seconds. Verify <code>Service-Signature</code> before you trust the body.</p>");
    html.push_str("<table><tr><th>Type</th><th>Sent when</th></tr>");
    for (name, item) in object(&document["webhooks"]) {
        push(
            html,
            format_args!(
                "<tr><td><code>{}</code></td><td>{}</td></tr>",
                escape(name),
                inline(item["post"]["description"].as_str().unwrap_or(""))
            ),
        );
    }
    html.push_str("</table>");
    if let Some((_, item)) = object(&document["webhooks"]).next() {
        let shown =
            serde_json::to_string_pretty(&item["post"]["requestBody"]["content"]["application/json"]["example"])
                .unwrap_or_default();
        push(html, format_args!("<pre class=\"answer\">{}</pre>", escape(&shown)));
    }
    html.push_str("</section>");
}

fn errors(html: &mut String, document: &Value) {
    html.push_str("<section id=\"errors\"><h2>Errors</h2><table><tr><th>Status</th><th>Code</th><th>Meaning</th></tr>");
    html.push_str("<tr id=\"problem304\"><td>304</td><td></td><td>The object still has the revision in <code>If-None-Match</code>.</td></tr>");
    let mut last = 0;
    for (status, kind, code, meaning) in crate::http::problem::CATALOGUE {
        let id = if *status == last { String::new() } else { format!(" id=\"problem{status}\"") };
        last = *status;
        push(
            html,
            format_args!(
                "<tr{id}><td>{status}</td><td><code>{code}</code><br><small>{kind}</small></td><td>{}</td></tr>",
                inline(meaning)
            ),
        );
    }
    html.push_str("</table><h3>Shape</h3>");
    let shape = &document["components"]["schemas"]["Error"]["properties"]["error"];
    fields(html, shape.clone());
    html.push_str("</section>");
}
