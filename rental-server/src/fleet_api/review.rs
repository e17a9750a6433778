//! `GET /v1/tolls/review` and `GET /v1/violations/review`: what a person has to look at.

use crate::{
    endpoint::{Action, Endpoint, Parameter, camel, get},
    http::{call::Call, reply::Handled},
    objects::listed,
    reference::shapes::{amount, described, named, object, optional_id, text, word},
    state::App,
};
use rental_core::{
    attachments,
    resources::{
        Collection, of,
        organization::Organization,
        toll::{self, Toll},
        violation::Violation,
    },
    schema::ResourceSpec,
    store::Store,
};
use serde_json::{Value, json};

/// An action of API keys names a collection.
static COLLECTIONS: [Collection; 2] = [of::<Toll>().done(), of::<Violation>().done()];

pub(super) fn endpoints() -> impl Iterator<Item = Endpoint> {
    COLLECTIONS.iter().map(|collection| {
        let (spec, many) = (collection.spec, collection.spec.plural);
        get(format!("/v1/{many}/review"))
            .about(spec, format!("listReviewOf{}", camel(many)), format!("List the {many} that a person has to look at"))
            .says("Those without a customer, and those that an invoice bills although by what is recorded now another customer or nobody pays. With names and local times, for people.")
            .parameters(["Limit", "StartingAfter"].map(Parameter::Shared).into())
            .replies("ReviewList")
            .without_revision()
            .defines("ReviewList", list_schema())
            .defines("Review", schema())
            .key(Action::Review, collection)
    })
}

pub(super) async fn shown(
    (app, store): (&App, &dyn Store),
    organization: &Organization,
    spec: &ResourceSpec,
    call: &Call,
) -> Handled {
    let page = if spec.object == toll::SPEC.object {
        attachments::review::<Toll>(store, organization, call.query()).await?
    } else {
        attachments::review::<Violation>(store, organization, call.query()).await?
    };
    Ok(listed(app, page))
}

/// A page of what a person has to look at.
fn list_schema() -> Value {
    let page = json!({
        "object": {"type": "string", "const": "list"}, "has_more": {"type": "boolean"},
        "next_cursor": {"type": ["string", "null"], "description": "Pass it as `starting_after` for the next page."},
        "data": {"type": "array", "items": {"$ref": "#/components/schemas/Review"}},
    });
    object("A page of what a person has to look at.", page)
}

/// What a person has to look at.
fn schema() -> Value {
    let optional = |description: &str| json!({"type": ["string", "null"], "description": description});
    let of_format = |format: &str, description: &str| json!({"type": ["string", "null"], "format": format, "description": description});
    let candidate = json!({
        "rental_id": optional_id("The rental."), "customer_id": optional_id("Its customer."),
        "customer_name": optional("The full name of the customer."), "start_date": of_format("date", "The planned first day."),
        "end_date": of_format("date", "The planned last day."), "reason": text("What speaks for and against it."),
    });
    let mut twin = object(
        "The toll that is probably the same passage, for which this one is not attached.",
        json!({
            "id": optional_id("The toll."), "when": optional("Its day and time in the time zone of the organization, as `when` of the list."),
            "plate": optional("Its plate as reported."), "plate_state": optional("The state of the plate as reported."),
            "transponder_number": optional("Its transponder as reported."), "agency": optional("Its toll agency."),
            "number": optional("Its transaction number."), "place": optional("Its plaza."),
            "amount": described(amount(), "Its amount."), "customer_id": optional_id("The customer to whom it is attached."),
            "customer_name": optional("The full name of that customer."),
            "billed": {"type": "boolean", "description": "Whether an invoice bills it."},
        }),
    );
    twin["type"] = json!(["object", "null"]);
    twin["title"] = json!("TwinToll");
    let review = json!({
        "object": {"type": "string", "const": "review"}, "resource": described(word("BilledResource", &["toll", "violation"]), "Which of the two it is."),
        "id": optional_id("The toll or violation."),
        "verdict": described(word("Verdict", &["clear", "unclear", "nobody"]), "Whether one customer pays, by what is recorded now."),
        "reason": text("Why a person has to look at it."),
        "when": optional("The day and time in the time zone of the organization with the offset from UTC, such as `2026-06-05 13:00 -04:00`; only the day when the time is not known."),
        "occurred_at": of_format("date-time", "The time in UTC."), "occurred_on": of_format("date", "The day where it happened."),
        "plate": optional("The plate as reported."), "plate_state": optional("Its state as reported."),
        "transponder_number": optional("The transponder as reported."),
        "agency": optional("The agency of a toll, or whose summons number it is."),
        "number": optional("The agency's transaction number of a toll, or the summons number."),
        "place": optional("The plaza of a toll, or what was violated."),
        "amount": described(amount(), "What an invoice bills: the amount of a toll; of a violation the amount due or, when nothing is due any more, what was paid."),
        "currency": text("The currency of the amount."),
        "respond_by": of_format("date", "The last day to pay, contest or name the driver, of a violation that reports it."),
        "status": optional("The status of a violation as reported."), "plate_type": optional("The type of its plate as reported."),
        "vehicle_id": optional_id("The vehicle, when it is known."),
        "vehicle_name": optional("The name of that vehicle."),
        "vehicle_plate": optional("The plate that this vehicle has now. A toll that was read by transponder has no `plate`."),
        "billed": {"type": "boolean", "description": "Whether an invoice bills it, so that its customer does not change."},
        "customer_id": optional_id("The customer to whom it is attached."),
        "customer_name": optional("The full name of that customer."),
        "candidates": {"type": "array", "items": named("ReviewCandidate", object("A rental that may answer for it.", candidate))},
        "twin": twin,
    });
    object("A toll or violation that a person has to look at.", review)
}
