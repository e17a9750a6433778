//! The frame of every page: header with search and key, navigation, and the window that asks before a write.

use super::{
    book::{Book, Chapter},
    markup::{method, text},
};
use maud::{Markup, PreEscaped, html};

/// A page before its frame.
pub(super) struct Page<'p> {
    pub(super) path: String,
    pub(super) title: &'p str,
    pub(super) for_operators: bool,
    pub(super) content: Markup,
}

/// The whole page.
pub(super) fn framed(book: &Book<'_>, page: &Page<'_>) -> String {
    let name = text(&book.document["info"]["title"]);
    html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta name="color-scheme" content="light dark";
                title { (page.title) " – " (name) }
                link rel="stylesheet" href="/docs.css";
                script src="/docs.js" defer {}
            }
            body {
                a class="skip" href="#content" { "Skip to the content" }
                (header(book, page))
                (navigation(book, page))
                main id="content" tabindex="-1" { (page.content) }
                (question())
            }
        }
    }
    .into_string()
}

fn header(book: &Book<'_>, page: &Page<'_>) -> Markup {
    let info = &book.document["info"];
    let (secret, label, hint, example) = if page.for_operators {
        ("token", "Operator token", "The token of an operator, or the admin token.", "op_live_…")
    } else {
        ("key", "API key", "A key of your organization.", "rk_live_…")
    };
    let index = if page.for_operators { "/docs/admin/search.json" } else { "/docs/search.json" };
    html! {
        header {
            a class="brand" href=(if page.for_operators { "/docs/admin" } else { "/docs" }) {
                (text(&info["title"])) @if page.for_operators { " for operators" }
            }
            a class="to-menu" href="#menu" { "Menu" }
            search class="js" {
                label class="hidden" for="search" { "Search operations, fields and errors" }
                input id="search" type="search" placeholder="Search ( / )" autocomplete="off" spellcheck="false" role="combobox"
                    aria-expanded="false" aria-controls="found" aria-autocomplete="list" aria-keyshortcuts="/" data-index=(index);
                ul id="found" role="listbox" aria-label="Results" hidden {}
            }
            // A form, as browsers and password managers expect around a password. The script keeps it from being sent.
            form class="secret js" {
                label for="secret" { (label) }
                input id="secret" type="password" autocomplete="off" spellcheck="false" placeholder=(example)
                    data-secret=(secret) aria-describedby="secret-state";
                button type="button" id="forget" hidden { "Forget" }
                span id="secret-state" role="status" { (hint) " Stays in this tab." }
            }
        }
    }
}

fn navigation(book: &Book<'_>, page: &Page<'_>) -> Markup {
    let chapters = |for_operators: bool| book.chapters.iter().filter(move |one| one.for_operators == for_operators);
    let entry = |path: &str, title: &str| {
        html! { a href=(path) aria-current=[(page.path == path).then_some("page")] { (title) } }
    };
    let listed = |for_operators: bool| {
        html! {
            ul {
                @for chapter in chapters(for_operators) {
                    li {
                        (entry(&chapter.path(), &chapter.title))
                        @if page.path == chapter.path() { (operations(chapter)) }
                    }
                }
            }
        }
    };
    html! {
        nav id="menu" aria-label="Pages" {
            ul {
                li { (entry("/docs", "Start")) }
                li { (entry("/docs/webhooks", "Webhooks")) }
                li { (entry("/docs/errors", "Errors")) }
            }
            @if page.for_operators {
                h2 { "Operators" }
                ul { li { (entry("/docs/admin", "Overview")) } }
                (listed(true))
                p { a href="/docs" { "The API for organizations" } }
            } @else {
                h2 { "API" }
                (listed(false))
                @if book.names_operators_pages { p { a href="/docs/admin" { "For operators" } } }
            }
        }
    }
}

/// The operations of the page that is shown.
fn operations(chapter: &Chapter<'_>) -> Markup {
    html! {
        ul {
            @for operation in &chapter.operations {
                li { a href={"#" (operation.id())} { (operation.summary()) " " (method(&operation.method)) } }
            }
        }
    }
}

/// The window that asks before a write is sent.
fn question() -> Markup {
    html! {
        dialog id="question" aria-labelledby="question-title" {
            h2 id="question-title" { "Send this request?" }
            p { "It changes data on this server." }
            pre tabindex="0" role="group" aria-label="Request" { code {} }
            form method="dialog" {
                button value="" autofocus { "Cancel" }
                " "
                button value="send" class="strong" { "Send" }
            }
        }
    }
}
