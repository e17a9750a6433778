//! The dated assignments of a vehicle, for operators: which transponders and plates it has and had.

use crate::{
    endpoint::{BodySchema, Endpoint, Parameter, Request, get, put},
    guard::{Operator, Reader},
    http::{
        header,
        reply::{Handled, Reply, lists},
    },
    objects::{expects, write::write},
    reference::{
        parts,
        shapes::{described, object, text, word},
    },
};
use rental_core::{
    operations::{self, assignments},
    request::page,
    resources::{
        assignment::{AssignmentKind, MOST_ASSIGNMENTS},
        vehicle,
    },
    store::Revision,
};
use serde_json::{Value, json};

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let path = "/admin/v1/vehicles/{id}/assignments";
    let spec = &vehicle::SPEC;
    vec![
        get(path)
            .about(spec, "getVehicleAssignments", "Retrieve assignments of a vehicle")
            .says(
                "The transponders and plates that the vehicle has and had, each with its time. Changes of \
                 `transponder_number`, `plate` and `plate_state` add to them. They decide which vehicle a toll or violation \
                 belongs to.",
            )
            .replies("VehicleAssignments")
            .defines("VehicleAssignments", schema())
            .parameters(vec![Parameter::Shared("IfNoneMatch")])
            .reader(|request| Box::pin(show(request))),
        put(path)
            .about(spec, "putVehicleAssignments", "Replace assignments of a vehicle")
            .says(
                "Replaces the whole list. Tolls and violations that are attached automatically follow within seconds. What the \
                 vehicle has in its own fields must be in the list without a `to`. No other vehicle can get the same number \
                 at the same time.",
            )
            .takes(BodySchema::Own(body()))
            .replies("VehicleAssignments")
            .parameters(["IdempotencyKey", "IfMatch"].map(Parameter::Shared).into())
            .operator(|request| Box::pin(replace(request))),
    ]
}

async fn show(request: Request<'_, Reader>) -> Handled {
    let Request { app, call, id, .. } = request;
    page::no_parameters(call.query())?;
    let organization = operations::owner_of(app.store(), &vehicle::SPEC, id).await?;
    let (body, revision) = assignments::shown(app.store(), organization.id, id).await?;
    if lists(call.headers(), &header::IF_NONE_MATCH, revision) == Some(true) {
        return Ok(Reply::unchanged(revision));
    }
    Ok(Reply::object(body, revision))
}

async fn replace(request: Request<'_, Operator>) -> Handled {
    let (Request { app, call, id, .. }, body) = request.read().await?;
    page::no_parameters(call.query())?;
    let organization = operations::owner_of(app.store(), &vehicle::SPEC, id).await?;
    let expected = |revision: Revision| expects(call, revision);
    let assign = assignments::Assign { organization: &organization, vehicle: id, body: &body, expected: &expected };
    write(app, &organization, call, &body, &assign).await
}

/// The members of one assignment.
fn members() -> Value {
    let time = |what: &str| json!({"type": ["string", "null"], "format": "date-time", "description": what});
    json!({
        "kind": described(word("AssignmentKind", AssignmentKind::WORDS), "What is assigned."),
        "number": {"type": "string", "minLength": 1, "maxLength": 255, "description": "The number of the transponder or plate."},
        "state": {"type": ["string", "null"], "maxLength": 255, "description": "The state of a plate, by name or code; null for a transponder."},
        "from": time("The first instant; null for since ever."),
        "to": time("The first instant after it; null while it lasts."),
    })
}

fn list(item: Value) -> Value {
    json!({"type": "array", "maxItems": MOST_ASSIGNMENTS, "description": "All assignments of the vehicle.", "items": item})
}

fn schema() -> Value {
    let properties = json!({
        "object": text("Always `vehicle_assignments`."),
        "vehicle_id": {"type": "string", "format": "uuid", "description": "The vehicle."},
        "assignments": list(object("", members())),
    });
    object("", properties)
}

fn body() -> Value {
    let item = json!({
        "type": "object", "additionalProperties": false, "required": ["kind", "number"], "properties": members(),
    });
    let example = json!({"assignments": [
        {"kind": "toll_tag", "number": "00412345678"},
        {"kind": "plate", "number": "KAA1042", "from": "2026-01-15T14:00:00Z"},
        {"kind": "plate", "number": "LZA7293", "state": "NY", "to": "2026-01-15T14:00:00Z"},
    ]});
    parts::action_body(json!({"assignments": list(item)}), &["assignments"], example)
}
