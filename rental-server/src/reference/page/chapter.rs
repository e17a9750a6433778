//! The page of a resource: its fields, and its operations with examples and a form that sends them.

use super::{
    book::{Book, Chapter, Operation},
    examples,
    fields::{fields, parameters},
    markup::{block, description, inline, method, object, pretty, text},
    try_it,
};
use crate::endpoint::camel;
use maud::{Markup, html};

/// The content of the page.
pub(super) fn content<'d>(book: &Book<'d>, chapter: &Chapter<'d>) -> Markup {
    html! {
        h1 { (chapter.title) @if chapter.for_operators { " " small { "for operators" } } }
        p { (inline(chapter.description)) }
        ul class="operations" {
            @for operation in &chapter.operations {
                li {
                    a href={"#" (operation.id())} { (method(&operation.method)) " " code { (operation.path) } }
                    " " span { (operation.summary()) }
                }
            }
        }
        @for operation in &chapter.operations { (article(book, chapter, operation)) }
        @if let Some((spec, schema)) = book.resource(chapter) {
            article id=(spec.object) {
                h2 { a href={"#" (spec.object)} { "The " (spec.object.replace('_', " ")) } }
                div class="columns" {
                    div { (fields(book, schema, spec.object, false)) }
                    div class="shown" { (block("example of the object", &html! { (pretty(&schema["example"])) })) }
                }
            }
        }
    }
}

fn article<'d>(book: &Book<'d>, chapter: &Chapter<'d>, operation: &Operation<'d>) -> Markup {
    let id = operation.id();
    html! {
        article id=(id) class="operation" {
            h2 { a href={"#" (id)} { (operation.summary()) } }
            p class="route" { (method(&operation.method)) " " code { (operation.path) } }
            div class="columns" {
                div {
                    p { (description(operation.value)) }
                    @if book.parameters(operation).next().is_some() { h3 { "Parameters" } (parameters(book, operation)) }
                    (body(book, operation))
                    (response(book, chapter, operation))
                    (statuses(operation))
                }
                div class="shown" {
                    (examples::tabs(id, operation.secret(), &examples::of(book, chapter, operation)))
                    (examples::files(chapter, operation))
                    (examples::response(operation))
                    @if try_it::fits(operation) {
                        details class="js" {
                            summary { "Try it" span class="hidden" { ": " (operation.summary()) } }
                            (try_it::form(book, operation, &try_it::Setup::default()))
                        }
                    }
                }
            }
        }
    }
}

fn body<'d>(book: &Book<'d>, operation: &Operation<'d>) -> Markup {
    let schema = &operation.value["requestBody"]["content"]["application/json"]["schema"];
    let resolved = book.resolve(schema);
    html! {
        @if operation.takes_file() {
            h3 { "Body: a file" }
            p { (description(&operation.value["requestBody"])) }
            ul class="fields" {
                @for (media, file) in operation.content() {
                    li { p class="name" { code { (media) } } p { (description(&file["schema"])) } }
                }
            }
        } @else if object(&resolved["properties"]).next().is_some() {
            h3 { "Body" }
            (fields(book, schema, &format!("{}.body", operation.id()), true))
        }
    }
}

/// The fields of a response that is neither the resource nor a list of it.
fn response<'d>(book: &Book<'d>, chapter: &Chapter<'d>, operation: &Operation<'d>) -> Markup {
    let schema = &operation.value["responses"]["200"]["content"]["application/json"]["schema"];
    let name = text(&schema["$ref"]).rsplit('/').next().unwrap_or("");
    let own = chapter.spec.map_or_else(String::new, |spec| camel(spec.object));
    let is_resource = name == own || name == format!("{own}List");
    let resource = chapter.spec.filter(|_| book.resource(chapter).is_some()).map(|spec| spec.object);
    html! {
        @if let (true, Some(object)) = (is_resource, resource) {
            h3 { "Response" }
            p {
                @if name == own { "The " } @else { "A page of a list: " code { "has_more" } ", " code { "next_cursor" } ", and in " code { "data" } " each " }
                a href={"#" (object)} { (object.replace('_', " ")) } "."
            }
        } @else if !schema.is_null() {
            h3 { "Response" }
            (fields(book, schema, &format!("{}.response", operation.id()), false))
        }
    }
}

fn statuses(operation: &Operation<'_>) -> Markup {
    let others: Vec<&String> =
        object(&operation.value["responses"]).map(|(status, _)| status).filter(|status| *status != "200").collect();
    html! {
        @if !others.is_empty() {
            p class="statuses" {
                "Also:"
                @for status in others { " " a href={"/docs/errors#status-" (status)} { (status) } }
            }
        }
    }
}
