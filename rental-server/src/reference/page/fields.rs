//! Fields and parameters as lists: name, values, whether it is required, description, and the fields inside it.

use super::{
    book::{Book, Operation},
    markup::{anchor, array, description, inline, object, text},
};
use maud::{Markup, html};
use serde_json::Value;

/// Levels of fields inside fields that a page shows.
const LEVELS: usize = 3;

/// A schema without references: what it is, and what was said beside the reference.
#[derive(Clone, Copy)]
pub(super) struct Shape<'d> {
    pub(super) schema: &'d Value,
    pub(super) description: &'d str,
    pub(super) nullable: bool,
}

impl<'d> Shape<'d> {
    /// Follows references, and takes the schema that is not `null` of several.
    pub(super) fn of(book: &Book<'d>, schema: &'d Value) -> Self {
        let target = book.resolve(schema);
        let own = text(&schema["description"]);
        for several in ["anyOf", "oneOf"] {
            let nullable = array(&target[several]).iter().any(|one| one["type"] == "null");
            if let Some(one) = array(&target[several]).iter().find(|one| one["type"] != "null") {
                let inner = Self::of(book, one);
                let description = [own, text(&target["description"]), inner.description];
                let description = description.into_iter().find(|text| !text.is_empty()).unwrap_or("");
                return Self { description, nullable: nullable || inner.nullable, ..inner };
            }
        }
        if let [one] = array(&target["allOf"]) {
            let inner = Self::of(book, one);
            return Self { description: if own.is_empty() { inner.description } else { own }, ..inner };
        }
        let nullable = array(&target["type"]).iter().any(|one| one == "null");
        let description = if own.is_empty() { text(&target["description"]) } else { own };
        Self { schema: target, description, nullable }
    }

    /// The type, without `null`.
    pub(super) fn kind(&self) -> &'d str {
        match &self.schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or(""),
            other => other.as_str().unwrap_or(""),
        }
    }

    /// The words that it takes.
    pub(super) fn words(&self) -> impl Iterator<Item = &'d str> + use<'d> {
        array(&self.schema["enum"]).iter().filter_map(Value::as_str)
    }

    /// Its fields, those of all parts of an `allOf`, and whether each is required.
    pub(super) fn fields(&self, book: &Book<'d>) -> Vec<(&'d str, &'d Value, bool)> {
        let parts = array(&self.schema["allOf"]).iter().map(|part| book.resolve(part));
        [self.schema]
            .into_iter()
            .chain(parts)
            .flat_map(|part| {
                let required = array(&part["required"]);
                object(&part["properties"])
                    .map(move |(name, field)| (name.as_str(), field, required.iter().any(|known| known == name)))
            })
            .collect()
    }
}

/// The fields of a schema. Their anchors begin with `owner`. `marks` says whether required ones are marked, as in bodies.
pub(super) fn fields<'d>(book: &Book<'d>, schema: &'d Value, owner: &str, marks: bool) -> Markup {
    nested(book, Shape::of(book, schema), owner, marks, 0)
}

fn nested<'d>(book: &Book<'d>, shape: Shape<'d>, owner: &str, marks: bool, level: usize) -> Markup {
    html! {
        ul class="fields" {
            @for (name, field, required) in shape.fields(book) {
                @let (shape, id) = (Shape::of(book, field), format!("{owner}.{}", anchor(name)));
                li id=(id) {
                    p class="name" {
                        a href={"#" (id)} { code { (name) } }
                        " " span class="kind" { (values(book, shape)) }
                        @if marks && required { " " em { "required" } }
                    }
                    @if !shape.description.is_empty() { p { (inline(shape.description)) } }
                    @let inner = if shape.kind() == "array" { Shape::of(book, &shape.schema["items"]) } else { shape };
                    @if level + 1 < LEVELS && !inner.fields(book).is_empty() {
                        details { summary { "Fields of " code { (name) } } (nested(book, inner, &id, marks, level + 1)) }
                    }
                }
            }
        }
    }
}

/// The parameters of an operation.
pub(super) fn parameters<'d>(book: &Book<'d>, operation: &Operation<'d>) -> Markup {
    html! {
        ul class="fields" {
            @for parameter in book.parameters(operation) {
                @let id = format!("{}.{}", operation.id(), anchor(text(&parameter["name"])));
                li id=(id) {
                    p class="name" {
                        a href={"#" (id)} { code { (text(&parameter["name"])) } }
                        " " span class="kind" {
                            (text(&parameter["in"])) "; " (values(book, Shape::of(book, &parameter["schema"])))
                        }
                        @if parameter["required"] == true { " " em { "required" } }
                    }
                    p { (description(parameter)) }
                }
            }
        }
    }
}

/// The values that a schema takes, in a few words.
fn values<'d>(book: &Book<'d>, shape: Shape<'d>) -> Markup {
    let schema = shape.schema;
    let bounds =
        [("format", ""), ("maxLength", "at most "), ("minimum", "from "), ("maximum", "to "), ("default", "default ")];
    html! {
        @if shape.words().next().is_some() {
            @for (at, word) in shape.words().enumerate() { @if at > 0 { ", " } code { (word) } }
        } @else if let Some(word) = schema["const"].as_str() {
            "always " code { (word) }
        } @else if shape.kind() == "array" {
            "list of " (values(book, Shape::of(book, &schema["items"])))
        } @else if shape.kind().is_empty() { "object" } @else { (shape.kind()) }
        @for (member, words) in bounds {
            @match &schema[member] {
                Value::Null => {}
                // Widths of machine types say nothing to a reader of the page.
                Value::String(format) if member == "format" && ["double", "int64"].contains(&format.as_str()) => {}
                Value::String(value) => { "; " (words) (value) }
                other => { "; " (words) (other.to_string()) @if member == "maxLength" { " characters" } }
            }
        }
        @if shape.nullable { "; or null" }
    }
}
