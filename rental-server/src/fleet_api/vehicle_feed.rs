//! The calendar feed of a vehicle: `/v1/vehicles/{id}/calendar_feed` makes and revokes its token, and `GET /calendar/{id}` is the
//! calendar, for everyone who has the token.

use crate::{
    access::{failures::Surface, limiter::RateLimitStatus, quotas::request_limit},
    edge,
    endpoint::{Action, BodySchema, Endpoint, FeedAction, Request, delete, get, post},
    guard::Open,
    http::{
        call::Call,
        header,
        reply::{Document, Handled, Problem, Reply},
    },
    objects::write::write_to,
    reference::{
        parts::{self, open_operation},
        shapes::{described, object, text, word},
    },
    state::App,
};
use rental_core::{
    error::{Error, FieldCode, KeyProblem},
    operations::{self, ChangeVehicleFeed, DAYS_AHEAD, DAYS_BEFORE, Edge},
    request::{body, page},
    resources::{
        Collection, of,
        organization::Organization,
        vehicle::{self, Vehicle},
    },
    rows::vehicle_feed::Token,
    store::Store,
    value::{CalendarFeedId, VehicleId},
};
use serde_json::{Value, json};

/// An action of API keys names a collection; these ones are about vehicles.
static VEHICLES: Collection = of::<Vehicle>().done();
/// The end of the last part of a calendar's path.
const SUFFIX: &str = ".ics";
/// The query parameter of a calendar.
const WITHOUT: &str = "without";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let path = "/v1/vehicles/{id}/calendar_feed";
    let schema = "VehicleCalendarFeed";
    let show = get(path)
        .about(&vehicle::SPEC, "getVehicleCalendarFeed", "Retrieve the calendar feed of a vehicle")
        .says("Whether the vehicle has a calendar feed, and since when; 404 until a POST makes the first one. Nothing shows its path again.")
        .without_revision()
        .replies(schema)
        .defines(schema, feed())
        .key(Action::Feed(FeedAction::Show), &VEHICLES);
    let make = post(path)
        .about(&vehicle::SPEC, "createVehicleCalendarFeed", "Make the calendar feed of a vehicle")
        .says(
            "Makes a secret path under which calendar programs and marketplaces read on which days the vehicle is taken, without \
             a key. Only this response shows it. The path that the vehicle had before stops working at once.",
        )
        .takes(BodySchema::Own(parts::action_body(json!({}), &[], json!({}))))
        .without_revision()
        .replies("IssuedVehicleCalendarFeed")
        .defines(
            "IssuedVehicleCalendarFeed",
            issued(schema),
        )
        .key(Action::Feed(FeedAction::Make), &VEHICLES);
    let revoke = delete(path)
        .about(&vehicle::SPEC, "deleteVehicleCalendarFeed", "Revoke the calendar feed of a vehicle")
        .says("The path stops working at once.")
        .without_revision()
        .replies(schema)
        .key(Action::Feed(FeedAction::Revoke), &VEHICLES);
    vec![show, make, revoke, published()]
}

fn issued(schema: &str) -> Value {
    let path = "Where the calendar is, below the address of this server: a secret.";
    let mut issued = parts::showing_once(schema, "path", path);
    let url = "The same as a whole URL, if the operator has named the address of the server (`--public-url`).";
    issued["allOf"][1]["properties"]["url"] =
        text(&format!("{url} It is shown here and never again; absent on a replay."));
    issued
}

fn feed() -> Value {
    object(
        "The calendar feed of a vehicle.",
        json!({
            "object": {"type": "string", "const": "vehicle_calendar_feed", "description": "Always `vehicle_calendar_feed`."},
            "vehicle_id": {"type": "string", "format": "uuid", "description": "The vehicle."},
            "status": described(word("VehicleCalendarFeedStatus", &["active", "revoked"]), "Whether the path works."),
            "created_at": {"type": "string", "format": "date-time", "description": "When its path was made."},
        }),
    )
}

fn published() -> Endpoint {
    let mut operation = open_operation(
        "getCalendar",
        "The days on which a vehicle is taken",
        "text/calendar",
        text("An iCalendar (RFC 5545)."),
    );
    operation["description"] = json!(format!(
        "The calendar of a vehicle, from {DAYS_BEFORE} days ago to {DAYS_AHEAD} days ahead: a `VEVENT` of whole days for each rental and block \
         that holds it, without names. Its path is the `path` of `POST /v1/vehicles/{{id}}/calendar_feed`; no key is needed."
    ));
    operation["parameters"] = json!([{
        "name": "id", "in": "path", "required": true,
        "description": format!("The token, and `{SUFFIX}`."), "schema": {"type": "string"}, "example": format!("{}{SUFFIX}", "0190d0f27c3a7cc0".repeat(7)),
    }, {
        "name": WITHOUT, "in": "query", "schema": {"type": "string", "format": "uuid"},
        "description": "The id of a calendar feed: blocks that came from it are left out, so that the program which publishes that calendar does not get its own days back.",
    }]);
    for status in ["304", "400", "403", "404", "409", "429", "503"] {
        let name = if status == "304" { "NotModified".to_owned() } else { format!("Problem{status}") };
        operation["responses"][status] = json!({"$ref": format!("#/components/responses/{name}")});
    }
    get("/calendar/{id}").documented(operation).open(|request| Box::pin(calendar(request)))
}

/// `GET /calendar/TOKEN.ics`.
async fn calendar(request: Request<'_, Open>) -> Handled {
    let Request { app, call, id, .. } = request;
    let without = without(call.query())?;
    let unknown = || Error::NotFound { object: "calendar" };
    let Some(token) = id.strip_suffix(SUFFIX).and_then(Token::parse) else {
        return Err(noted(app, call, unknown().into()));
    };
    let (organization, vehicle) = match operations::feed_owner(app.store(), &token).await {
        Ok(owner) => owner,
        Err(error @ Error::NotFound { .. }) => return Err(noted(app, call, error.into())),
        Err(error) => return Err(error.into()),
    };
    // The limit of the organization's keys, counted apart: who knows a URL takes nothing from the keys.
    if let Some(limit) = request_limit(&organization, &app.tenants.defaults)
        && let RateLimitStatus { allowed: false, wait_secs: retry_after, .. } =
            limit.take(&app.tenants.of(organization.id).calendars, app.nanos_since_start())
    {
        app.tenants.refused("requests");
        return Err(Problem::TooManyRequests { whose: "of this organization", retry_after });
    }
    app.room_for_response(organization.id).await?;
    let text = operations::vehicle_calendar(app.store(), &organization, &vehicle, (call.clock.now(), without)).await?;
    let reply = Document::new(text).reply(call).counted(&app.responses, organization.id.into());
    Ok(reply
        .with(header::CONTENT_TYPE, "text/calendar; charset=utf-8")
        .with(header::CACHE_CONTROL, "private, no-cache"))
}

/// The calendar feed whose blocks are left out.
fn without(query: &str) -> Result<Option<CalendarFeedId>, Error> {
    let given = page::parameters(query, &[WITHOUT])?;
    let Some((_, id)) = given.first() else { return Ok(None) };
    let rule = "must be the id of a calendar feed";
    let id = page::id(id).ok_or_else(|| Error::field(WITHOUT, FieldCode::Invalid, rule))?;
    Ok(Some(CalendarFeedId::from_uuid(id)))
}

/// The problem of a request with a wrong token, which is a failed authentication.
fn noted(app: &App, call: &Call, problem: Problem) -> Problem {
    let now = call.at.saturating_duration_since(app.started);
    app.failures.note(call.client_address(), Surface::Calendar, KeyProblem::Invalid, now);
    problem
}

/// `GET /v1/vehicles/{id}/calendar_feed`.
pub(super) async fn show(store: &dyn Store, organization: &Organization, id: &str, call: &Call) -> Handled {
    page::no_parameters(call.query())?;
    Ok(Reply::json(operations::vehicle_feed(store, organization, id).await?))
}

/// POST and DELETE of `/v1/vehicles/{id}/calendar_feed`.
pub(super) async fn change(
    (app, store): (&App, &dyn Store),
    organization: &Organization,
    (id, makes): (&str, bool),
    call: &Call,
    sent: &[u8],
) -> Handled {
    body::nothing(sent)?;
    let vehicle = page::id(id).map(VehicleId::from_uuid).filter(|_| makes);
    let new = vehicle.map(|vehicle| Token::new(organization.id, vehicle, &edge::secret_bytes()));
    if makes && new.is_none() {
        return Err(Error::NotFound { object: vehicle::SPEC.object }.into());
    }
    let intent = ChangeVehicleFeed { organization, vehicle: id, token: new.as_ref().map(|(token, _)| *token) };
    let reply = write_to(store, app, organization, call, sent, &intent).await?.without_revision();
    let Some((_, text)) = new else { return Ok(reply) };
    let path = format!("/calendar/{text}{SUFFIX}");
    let reply = reply.showing_once("path", &path);
    Ok(match &app.public_url {
        Some(url) => reply.showing_once("url", &format!("{url}{path}")),
        None => reply,
    })
}
