//! Small parts of HTML that all pages use, and how they read JSON.

use maud::{Markup, html};
use serde_json::{Map, Value};

pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// JSON as people read it.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The Markdown that descriptions use: `code` and **bold**.
pub(super) fn inline(markdown: &str) -> Markup {
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
pub(super) fn description(value: &Value) -> Markup {
    inline(text(&value["description"]))
}

/// A method, coloured.
pub(super) fn method(name: &str) -> Markup {
    html! { b class={"m " (name)} { (name) } }
}

/// A block of code with a button that copies it. `label` says what it is. It scrolls inside itself, also by keyboard.
pub(super) fn block(label: &str, code: &Markup) -> Markup {
    html! {
        div class="block" {
            button type="button" class="copy js" aria-label={"Copy: " (label)} { "Copy" }
            pre tabindex="0" aria-label=(label) role="group" { code { (code) } }
        }
    }
}

/// A name as a part of an `id`: `created[gte]` is `created-gte`.
pub(super) fn anchor(name: &str) -> String {
    name.replace('[', "-").replace(']', "")
}
