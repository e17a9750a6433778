//! The page about webhooks: how a delivery is sent and verified, and the payload of every event type.

use super::{
    book::Book,
    fields::fields,
    markup::{block, inline, object, pretty, text},
    sections::{DELIVERIES, headers_of_deliveries},
};
use crate::endpoint::camel;
use maud::{Markup, html};
use rental_core::resources::event;

/// How the clients verify a delivery.
const VERIFYING: &[(&str, &str, &str)] = &[
    (
        "typescript",
        "TypeScript",
        "import { verifyWebhook } from \"@rental-platform/client\";\n\n\
         // The body as it arrived: bytes, not parsed JSON. Throws unless the delivery is genuine.\n\
         const event = verifyWebhook(body, request.headers[\"service-signature\"], secret);\n\
         if (event.type === \"rental.created\") console.log(event.data.start_date);",
    ),
    (
        "python",
        "Python",
        "from rental_client import models, verify_webhook\n\n\
         # The body as it arrived: bytes, not parsed JSON. Raises unless the delivery is genuine.\n\
         event = verify_webhook(body, headers[\"Service-Signature\"], secret)\n\
         if isinstance(event, models.RentalCreatedEvent):\n    print(event.data.start_date)",
    ),
    ("cli", "rental-cli", "rental-cli listen --forward-to http://127.0.0.1:3000/hooks"),
];

/// The content of the page.
pub(super) fn content(book: &Book<'_>) -> Markup {
    let webhooks = &book.document["webhooks"];
    html! {
        h1 { "Webhooks" }
        p id="deliveries" { (DELIVERIES) }
        h2 id="headers" { a href="#headers" { "Headers" } }
        ul class="fields" {
            @for header in headers_of_deliveries(book) {
                li id=(header.anchor()) {
                    p class="name" { a href={"#" (header.anchor())} { code { (header.name) } } }
                    p { (inline(header.description)) }
                }
            }
        }
        h2 id="verifying" { a href="#verifying" { "Verify before you trust the body" } }
        @for (language, label, code) in VERIFYING {
            p class="caption" { (label) }
            div data-verifying=(language) { (block(&format!("{label} example"), &html! { (code) })) }
        }
        h2 id="event" { a href="#event" { "The event" } }
        (fields(book, &book.document["components"]["schemas"][camel(event::SPEC.object)], "event", false))
        h2 id="types" { a href="#types" { "Event types" } }
        ul class="fields" {
            @for (name, item) in object(webhooks) {
                @let payload = &item["post"]["requestBody"]["content"]["application/json"]["example"];
                li id=(name) class="event" {
                    p class="name" { a href={"#" (name)} { code { (name) } } }
                    p { (inline(text(&item["post"]["description"]))) }
                    details { summary { "Payload of " code { (name) } } (block(&format!("payload of {name}"), &html! { (pretty(payload)) })) }
                }
            }
        }
    }
}
