//! Shows the tolls and violations that a person has to look at, and gives choices of people back to the server.

use crate::{
    endpoint::{Endpoint, Parameter, Request, camel, get, post},
    guard::{Operator, Reader},
    http::reply::{Handled, Reply},
    objects::write::write,
    operator::collections,
    reference::shapes::{amount, described, object, optional_id, text},
};
use rental_core::{
    attachments::{self, Release},
    operations,
    resources::Attributable,
};
use serde_json::{Value, json};

/// The endpoints for tolls or violations.
pub(super) fn endpoints<T: Attributable>() -> Vec<Endpoint> {
    let one = camel(T::SPEC.object);
    let many = T::SPEC.plural;
    vec![
        get(format!("/admin/v1/organizations/{{organization}}/{many}/review"))
            .about(T::SPEC, format!("review{}", camel(many)), format!("List the {many} that a person has to look at"))
            .says("Those without a customer, and those that an invoice bills although by what is recorded now another customer or nobody pays. With names and local times, for people.")
            .parameters(["Limit", "StartingAfter"].map(Parameter::Shared).into())
            .replies("ReviewList")
            .without_revision()
            .defines("ReviewList", schema())
            .reader(|request| Box::pin(shown::<T>(request))),
        post(format!("/admin/v1/{}/{{id}}/release", T::SPEC.plural))
            .about(T::SPEC, format!("release{one}"), format!("Let the server choose who pays the {}", T::SPEC.object))
            .says("Takes back the choice of a person. The customer who clearly had the vehicle is attached at once; without one it is unattached.")
            .operator(|request| Box::pin(release::<T>(request))),
    ]
}

async fn shown<T: Attributable>(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    let organization = collections::organization_named(app.store(), id).await?;
    Ok(Reply::json(attachments::review::<T>(app.store(), &organization, call.query()).await?))
}

async fn release<T: Attributable>(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    let organization = operations::owner_of(app.store(), T::SPEC, id).await?;
    write(app, &organization, call, &body, &Release::<T>::new(&organization, id)).await
}

/// A page of what a person has to look at.
fn schema() -> Value {
    let optional = |description: &str| json!({"type": ["string", "null"], "description": description});
    let candidate = json!({
        "rental_id": optional_id("The rental."), "customer_id": optional_id("Its customer."),
        "customer_name": optional("The full name of the customer."), "start_date": optional("The planned first day."),
        "end_date": optional("The planned last day."), "reason": text("What speaks for and against it."),
    });
    let row = json!({
        "object": {"type": "string", "const": "review"}, "resource": text("`toll` or `violation`."),
        "id": optional_id("The toll or violation."),
        "verdict": {"type": "string", "enum": ["clear", "unclear", "nobody"], "description": "Whether one customer pays, by what is recorded now."},
        "reason": text("Why a person has to look at it."),
        "when": optional("The day and time in the time zone of the organization."),
        "occurred_at": optional("The time in UTC."), "occurred_on": optional("The day where it happened."),
        "plate": optional("The plate as reported."), "plate_state": optional("Its state as reported."),
        "transponder_number": optional("The transponder as reported."),
        "place": optional("The plaza of a toll, or what was violated."),
        "amount": described(amount(), "The amount of a toll, or the amount due of a violation."),
        "currency": text("The currency of the amount."), "vehicle_id": optional_id("The vehicle, when it is known."),
        "billed": {"type": "boolean", "description": "Whether an invoice bills it, so that its customer does not change."},
        "customer_id": optional_id("The customer to whom it is attached."),
        "customer_name": optional("The full name of that customer."),
        "candidates": {"type": "array", "items": object("", candidate)},
    });
    let page = json!({
        "object": {"type": "string", "const": "list"}, "has_more": {"type": "boolean"},
        "next_cursor": optional("Pass it as `starting_after` for the next page."),
        "data": {"type": "array", "items": object("", row)},
    });
    object("", page)
}
