//! The first page: what the API is, and the first booking step by step, sent from the page itself.

use super::{
    book::{Book, Chapter},
    markup::{block, description, inline, text},
    sections::{basics, headers},
    try_it::{Setup, form},
};
use maud::{Markup, html};

/// A step of the first booking.
struct Step {
    title: &'static str,
    about: &'static str,
    operation: &'static str,
    setup: Setup,
}

const STEPS: &[Step] = &[
    Step {
        title: "Check your key",
        about: "Paste your API key at the top of this page. The response names your organization and what the key may do. \
                The steps that change something need a key with scope `read_write`.",
        operation: "getMe",
        setup: Setup { prefix: "guide-", only: &["-"], values: &[], shared: &[] },
    },
    Step {
        title: "Choose the days and a vehicle",
        about: "Choose the first day and the day of return, then a vehicle of the response.",
        operation: "listAvailableVehicles",
        setup: Setup {
            prefix: "guide-",
            only: &["from", "to"],
            values: &[],
            shared: &[("from", "start_date"), ("to", "end_date")],
        },
    },
    Step {
        title: "Add the customer",
        about: "One name is enough. The page remembers the new customer for the next step.",
        operation: "createCustomer",
        setup: Setup { prefix: "guide-", only: &["full_name", "email", "phone"], values: &[], shared: &[] },
    },
    Step {
        title: "Book",
        about: "Customer, vehicle and days are those of the steps before. With the status `APPROVED` the rental holds the \
                vehicle: nobody else can book it on these nights.",
        operation: "createRental",
        setup: Setup {
            prefix: "guide-",
            only: &["customer_id", "vehicle_id", "start_date", "end_date", "status"],
            values: &[("status", "APPROVED")],
            shared: &[("start_date", "start_date"), ("end_date", "end_date")],
        },
    },
    Step {
        title: "Look at it",
        about: "The rental as everybody with a key of your organization sees it, with the price that the server computed.",
        operation: "getRental",
        setup: Setup { prefix: "guide-", only: &["id"], values: &[], shared: &[] },
    },
];

/// How to install each client from the files of a release, and what each example begins with.
const CLIENTS: &[(&str, &str)] = &[
    ("TypeScript", "npm install ./rental-platform-client-*.tgz"),
    ("Python", "pip install ./rental_platform_client-*.whl"),
    ("rental-cli, curl", "export RENTAL_BASE_URL=https://… RENTAL_API_KEY=rk_live_…"),
];

/// What people get for a path without a page.
pub(super) fn missing() -> Markup {
    html! {
        h1 { "There is no such page" }
        p { "The address is misspelt, or the page has another name in this version. " a href="/docs" { "To the start of the documentation" } }
    }
}

/// The content of the first page.
pub(super) fn content<'d>(book: &Book<'d>) -> Markup {
    let info = &book.document["info"];
    html! {
        h1 { (text(&info["title"])) " " small { (text(&info["version"])) } }
        @if !text(&info["summary"]).is_empty() { p class="lead" { (text(&info["summary"])) } }
        p {
            "For your tools, the same as " a href="/openapi.json" { "OpenAPI 3.1" } " and " a href="/openapi-3.0.json" { "OpenAPI 3.0" }
            @if book.names_operators_pages { ", and for operators as " a href="/openapi-admin.json" { "OpenAPI 3.1" } }
            "."
        }
        section {
            h2 id="first-booking" { a href="#first-booking" { "Your first booking" } }
            p class="js" {
                "Without a terminal: each step sends a real request to this server and shows the response. The operator of the \
                 server gives you a key."
            }
            noscript { p { "The forms of these steps need JavaScript. The examples on the pages of the resources do the same." } }
            ol class="steps" { @for step in STEPS { (draw(book, step)) } }
        }
        section {
            h2 id="resources" { a href="#resources" { "Resources" } }
            (chapters(book, false))
        }
        section {
            h2 id="clients" { a href="#clients" { "Clients" } }
            p {
                "Every operation has an example for curl, TypeScript, Python and " code { "rental-cli" } ". The clients take \
                 address and key from " code { "RENTAL_BASE_URL" } " and " code { "RENTAL_API_KEY" } ". The packages for \
                 TypeScript and Python are not in the public registries yet: they are files of a release of this server, which \
                 its operator has. Tools such as Postman import " a href="/openapi.json" { code { "/openapi.json" } } "."
            }
            p {
                "The server sends no CORS headers, so a web page of another origin cannot call the API from a browser: let the \
                 server of that page do it, where the key is not visible."
            }
            @for (name, line) in CLIENTS { p class="caption" { (name) } (block(name, &html! { (line) })) }
        }
        section {
            h2 id="basics" { a href="#basics" { "What holds for every request" } }
            @for paragraph in basics(book) {
                // The heading has that anchor.
                p id=[(paragraph.anchor != "basics").then_some(&paragraph.anchor)] { (inline(paragraph.text)) }
            }
        }
        section {
            h2 id="headers" { a href="#headers" { "Headers" } }
            ul class="fields" {
                @for header in headers(book) {
                    li id=(header.anchor()) {
                        p class="name" {
                            a href={"#" (header.anchor())} { code { (header.name) } }
                            " " small { @if header.of_requests { "of requests" } @else { "of responses" } }
                        }
                        p { (inline(header.description)) }
                    }
                }
            }
        }
    }
}

fn draw<'d>(book: &Book<'d>, step: &Step) -> Markup {
    let chapter =
        |id: &str| book.chapters.iter().find(|chapter| chapter.operations.iter().any(|operation| operation.id() == id));
    html! {
        @if let (Some(operation), Some(chapter)) = (book.operation(step.operation), chapter(step.operation)) {
            li {
                h3 { (step.title) }
                p {
                    (inline(step.about)) " " a href={(chapter.path()) "#" (operation.id())} { (operation.summary()) }
                }
                (form(book, operation, &step.setup))
            }
        }
    }
}

/// The content of the first page for operators.
pub(super) fn operators(book: &Book<'_>) -> Markup {
    html! {
        h1 { "For operators" }
        p {
            "Requests under " code { "/admin/v1" } " take the admin token or the token of a named operator, never an API key. \
             With " code { "--operator-listen" } " these pages and paths exist on that address only."
        }
        p { (description(&book.document["components"]["securitySchemes"]["adminToken"])) }
        (chapters(book, true))
    }
}

fn chapters(book: &Book<'_>, for_operators: bool) -> Markup {
    let shown = |chapter: &&Chapter<'_>| chapter.for_operators == for_operators;
    html! {
        ul class="cards" {
            @for chapter in book.chapters.iter().filter(shown) {
                li {
                    a href=(chapter.path()) { (chapter.title) }
                    p { (inline(chapter.description)) }
                }
            }
        }
    }
}
