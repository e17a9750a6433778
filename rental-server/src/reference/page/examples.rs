//! An operation as a request of curl, of the TypeScript and the Python client, and of rental-cli.

use super::{
    book::{Book, Chapter, Operation, Secret},
    calls, commands,
    markup::{block, object, pretty},
};
use maud::{Markup, html};

/// An example in one language.
pub(super) struct Example {
    /// Word of the language in classes and in what the page remembers.
    pub(super) language: &'static str,
    label: &'static str,
    pub(super) code: String,
}

/// What `page.js` puts in the place of a text when it knows the address and the secret.
const FILLED: &[(&str, &str, &str)] = &[
    ("curl", "$RENTAL_BASE_URL", "{base}"),
    ("curl", "$RENTAL_API_KEY", "{key}"),
    ("curl", "$RENTAL_ADMIN_TOKEN", "{token}"),
    ("typescript", "new RentalClient()", "new RentalClient({ baseUrl: \"{base}\", apiKey: \"{key}\" })"),
    ("python", "RentalClient()", "RentalClient(\"{base}\", \"{key}\")"),
];

/// The examples of an operation.
pub(super) fn of<'d>(book: &Book<'d>, chapter: &Chapter<'d>, operation: &Operation<'d>) -> Vec<Example> {
    let mut all = Vec::new();
    let mut add =
        |language, label, code: Option<String>| all.extend(code.map(|code| Example { language, label, code }));
    add("curl", "curl", Some(curl(chapter, operation)));
    if operation.secret() == Secret::Key {
        let call = calls::Call::new(book, chapter, operation);
        add("typescript", "TypeScript", call.as_ref().map(calls::Call::typescript));
        add("python", "Python", call.as_ref().map(calls::Call::python));
    }
    add("cli", "rental-cli", commands::command(chapter, operation));
    all
}

/// The examples as HTML: radio buttons choose the language, so that it works without scripts.
pub(super) fn tabs(name: &str, secret: Secret, all: &[Example]) -> Markup {
    html! {
        fieldset class="tabs" {
            legend { "Example" }
            @for (at, example) in all.iter().enumerate() {
                @let id = format!("example-{name}-{}", example.language);
                input type="radio" name={"example-" (name)} id=(id) value=(example.language) checked[at == 0];
                label for=(id) { (example.label) }
            }
            @for example in all {
                div class="panel" data-language=(example.language) {
                    (block(&format!("{} example", example.label), &filled(example, secret)))
                }
            }
        }
    }
}

/// The code, with the texts that the page can fill in.
fn filled(example: &Example, secret: Secret) -> Markup {
    if example.language == "cli" {
        let with = match secret {
            Secret::Key => "RENTAL_BASE_URL={base} RENTAL_API_KEY={key} \\\n  ",
            Secret::Token => "RENTAL_BASE_URL={base} RENTAL_ADMIN_TOKEN={token} \\\n  ",
            Secret::None => "",
        };
        return html! { span data-with=(with) {} (example.code) };
    }
    let known = FILLED.iter().filter(|(language, ..)| *language == example.language);
    let first = known.filter_map(|(_, shown, with)| Some((example.code.find(shown)?, *shown, *with))).min();
    let Some((at, shown, with)) = first else { return html! { (example.code) } };
    let rest = Example { code: example.code[at + shown.len()..].to_owned(), ..*example };
    html! { (example.code[..at]) span data-with=(with) { (shown) } (filled(&rest, secret)) }
}

fn curl(chapter: &Chapter<'_>, operation: &Operation<'_>) -> String {
    if !operation.takes_file() {
        let json = operation.body_example().map(|body| {
            let long = body.as_object().is_some_and(|members| members.len() > 2);
            let body = if long { pretty(&body) } else { body.to_string() };
            format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d {}", commands::quoted(&body))
        });
        return start_of_curl(operation) + &json.unwrap_or_default();
    }
    let uploads = operation.content().map(|(media, _)| {
        let name = file_name(chapter, media);
        format!("{} \\\n  -H 'Content-Type: {media}' \\\n  --data-binary @{name}", start_of_curl(operation))
    });
    uploads.collect::<Vec<_>>().join("\n\n")
}

/// Method, URL and authentication.
fn start_of_curl(operation: &Operation<'_>) -> String {
    let secret = match operation.secret() {
        Secret::Key => " \\\n  -H \"Authorization: Bearer $RENTAL_API_KEY\"",
        Secret::Token => " \\\n  -H \"Authorization: Bearer $RENTAL_ADMIN_TOKEN\"",
        Secret::None => "",
    };
    let method = if operation.method == "GET" { String::new() } else { format!("-X {} ", operation.method) };
    format!("curl {method}\"$RENTAL_BASE_URL{}{}\"{secret}", operation.filled_path(), operation.required_query())
}

/// The name of the file in an example.
fn file_name(chapter: &Chapter<'_>, media: &str) -> String {
    let ending = match media {
        "text/csv" => "csv",
        "application/x-ndjson" => "ndjson",
        "image/png" => "png",
        _ => "json",
    };
    format!("{}.{ending}", chapter.name)
}

/// The files that the example of an upload sends, where they are text.
pub(super) fn files(chapter: &Chapter<'_>, operation: &Operation<'_>) -> Markup {
    html! {
        @for (media, file) in operation.content().filter(|_| operation.takes_file()) {
            @if !file["example"].is_null() {
                @let name = file_name(chapter, media);
                p class="caption" { code { (name) } }
                div data-file=(name) {
                    @let content = file["example"].as_str().map_or_else(|| file["example"].to_string(), str::to_owned);
                    (block(&name, &html! { (content) }))
                }
            }
        }
    }
}

/// The example of the response.
pub(super) fn response(operation: &Operation<'_>) -> Markup {
    let content = &operation.value["responses"]["200"]["content"];
    let example = &content["application/json"]["example"];
    html! {
        @if !example.is_null() {
            p class="caption" { "Response" }
            (block("example of the response", &html! { (pretty(example)) }))
        } @else if let Some((media, _)) = object(content).next().filter(|(media, _)| *media != "application/json") {
            p class="caption" { "The response is " code { (media) } "." }
        }
    }
}
