//! `GET /v1/availability` and `GET /v1/vehicles/{id}/calendar`: which vehicles are available, and what a vehicle's days have.

use crate::{
    endpoint::{Action, Endpoint, Parameter, get},
    http::{
        call::Call,
        reply::{Handled, Reply},
    },
    objects::listed,
    reference::{
        parts::query,
        shapes::{described, object, word},
    },
    state::App,
};
use rental_core::{
    operations::{self, Edge},
    request::nights::{AvailabilityQuery, MOST_NIGHTS, Nights},
    resources::{
        Collection, of,
        organization::Organization,
        vehicle::{self, Vehicle},
    },
    store::Store,
};
use serde_json::{Value, json};

/// An action of API keys names a collection; these ones are about vehicles.
static VEHICLES: Collection = of::<Vehicle>().done();

pub(super) fn endpoints() -> Vec<Endpoint> {
    let one = query("vehicle", "Only this vehicle.", json!({"type": "string", "minLength": 1, "maxLength": 255}));
    let shared = ["Limit", "StartingAfter"].map(Parameter::Shared);
    let parameters = nights().into_iter().chain([one]).map(Parameter::Own).chain(shared).collect();
    let availability = get("/v1/availability")
        .about(&vehicle::SPEC, "listAvailableVehicles", "List available vehicles")
        .says(
            "The vehicles that can be rented on all nights from `from` to `to`, newest first: no rental and no block holds them, no \
             customer has them beyond the planned return, and their status is neither `maintenance` nor `unavailable`. A page can \
             have fewer objects than `limit` although more follow: go on while `has_more` is true.",
        )
        .parameters(parameters)
        .replies("VehicleList")
        .without_revision()
        .key(Action::Availability, &VEHICLES);
    let calendar = get("/v1/vehicles/{id}/calendar")
        .about(&vehicle::SPEC, "getVehicleCalendar", "Calendar of a vehicle")
        .says("What holds the vehicle on the nights from `from` to `to`, and who had it by recorded pickups, in order.")
        .parameters(nights().into_iter().map(Parameter::Own).collect())
        .replies("IntervalList")
        .defines("IntervalList", list())
        .defines("Interval", interval())
        .without_revision()
        .key(Action::Calendar, &VEHICLES);
    vec![availability, calendar]
}

/// The parameters `from` and `to`.
fn nights() -> Vec<Value> {
    let to = format!(
        "The day after the last night, at most {MOST_NIGHTS} days after `from`. The same day asks for that day."
    );
    let parameters = [("from", "The first day."), ("to", to.as_str())].map(|(name, about)| {
        let mut parameter = query(name, about, json!({"type": "string", "format": "date"}));
        parameter["required"] = json!(true);
        parameter["example"] = json!(if name == "from" { "2026-06-01" } else { "2026-07-01" });
        parameter
    });
    parameters.into()
}

fn list() -> Value {
    object(
        "The intervals of a vehicle.",
        json!({
            "object": {"type": "string", "const": "list"},
            "has_more": {"type": "boolean", "description": "Always `false`."},
            "next_cursor": {"type": ["string", "null"], "description": "Always `null`."},
            "data": {"type": "array", "maxItems": 1000, "items": {"$ref": "#/components/schemas/Interval"}},
        }),
    )
}

fn interval() -> Value {
    let day = |about: &str| json!({"type": "string", "format": "date", "description": about});
    let time = |about: &str| json!({"type": ["string", "null"], "format": "date-time", "description": about});
    let mut to = day("The day of return; `null` while it is not known.");
    to["type"] = json!(["string", "null"]);
    object(
        "Days on which a rental or a block holds a vehicle, or on which a customer had it.",
        json!({
            "object": {"type": "string", "const": "interval"},
            "kind": described(word("IntervalKind", &["rental", "block", "possession"]), "`possession`: the customer of a rental had the vehicle, by its recorded pickup."),
            "id": {"type": "string", "format": "uuid", "description": "The rental or the block."},
            "status": {"type": "string", "description": "Status of the rental or block, in the words of that object."},
            "from": day("The first day."),
            "to": to,
            "starts_at": time("When the customer got the vehicle; `null` for a plan."),
            "ends_at": time("When it came back; `null` for a plan, and while it is out."),
        }),
    )
}

pub(super) async fn available((app, store): (&App, &dyn Store), organization: &Organization, call: &Call) -> Handled {
    let query = AvailabilityQuery::parse(call.query())?;
    Ok(listed(app, operations::available(store, organization, &query, call.clock.now()).await?))
}

pub(super) async fn calendar(store: &dyn Store, organization: &Organization, id: &str, call: &Call) -> Handled {
    let nights = Nights::parse(call.query())?;
    Ok(Reply::json(operations::calendar(store, organization, id, nights).await?))
}
