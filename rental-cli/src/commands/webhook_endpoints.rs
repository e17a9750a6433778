//! `webhook-endpoints`: URLs that receive the events of organizations, managed by the operator.

mod enabling;

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, chosen_key},
        confirm,
        fields::{self, Body},
        group::{Group, with_examples},
        json_text::JsonText,
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{request::body::Verb, resources::webhook_endpoint::SPEC, webhooks::secret::MOST_SECRETS};

pub(crate) const GROUP: Group = Group { name: "webhook-endpoints", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

/// The members of the result of a test.
const RESULT: [&str; 7] = ["endpoint_id", "event_type", "delivered", "duration_ms", "status", "error", "response"];

fn command() -> Command {
    let create = [
        "rental-cli webhook-endpoints create --organization ID --url https://example.com/hooks",
        "rental-cli webhook-endpoints create --organization ID --url https://example.com/hooks --event toll.attached",
    ];
    let list = ["rental-cli webhook-endpoints list --organization ID"];
    let get = ["rental-cli webhook-endpoints get ID"];
    let update = [
        "rental-cli webhook-endpoints update ID --event rental.created --event rental.completed",
        "rental-cli webhook-endpoints update ID --url https://example.com/new --all-events",
    ];
    let enable = [
        "rental-cli webhook-endpoints enable ID",
        "rental-cli webhook-endpoints enable --all-disabled-since 2h --dry-run",
    ];
    let disable = ["rental-cli webhook-endpoints disable ID"];
    let rotate =
        ["rental-cli webhook-endpoints rotate-secret ID", "rental-cli webhook-endpoints rotate-secret ID --overlap 7d"];
    let test = ["rental-cli webhook-endpoints test ID"];
    let delete = ["rental-cli webhook-endpoints delete ID", "rental-cli webhook-endpoints delete ID --yes"];
    let action = |verb, about, examples: &[&str]| collection::action(&SPEC, verb, about, examples);
    let overlap = collection::overlap(
        "How long the old secrets also sign, at most 7d; of more than 5 secrets, the oldest ends at once",
    );
    let command = Command::new(GROUP.name)
        .about("Manage the webhook endpoints of organizations (operator)")
        .subcommand(
            collection::create(&SPEC, &create)
                .mut_arg("events", |arg| arg.help("Event type to send; repeatable [default: all]")),
        )
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(
            collection::update(&SPEC, &update)
                .mut_arg("events", |arg| arg.help("Event type to send, replaces the previous types; repeatable"))
                .arg(all_events()),
        )
        .subcommand(enabling::add_flags(action(
            "enable",
            "Enable an endpoint; deliveries that waited are sent when their next attempt is due",
            &enable,
        )))
        .subcommand(action("disable", "Disable an endpoint; its deliveries wait until it is enabled", &disable))
        .subcommand(
            action("rotate-secret", "Replace the secret; both secrets sign during the overlap", &rotate)
                .arg(overlap)
                .arg(confirm::yes_on_terminal()),
        )
        .subcommand(with_examples(
            Command::new("test")
                .about("Send an example event now and show the result")
                .arg(collection::id(&SPEC))
                .arg(fields::columns_among(RESULT)),
            &test,
        ))
        .subcommand(
            collection::action_that_shows(
                fields::columns_among(["id", "organization_id", "deleted"]),
                &SPEC,
                "delete",
                "Delete an endpoint and its secrets",
                &delete,
            )
            .arg(confirm::yes_on_terminal()),
        );
    with_examples(command, &[create[0], list[0], test[0], rotate[0]])
}

fn all_events() -> Arg {
    Arg::new("all_events")
        .long("all-events")
        .action(ArgAction::SetTrue)
        .conflicts_with_all(["events", "clear"])
        .help("Send all event types, including those of later versions")
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "create" => {
            let mut body = Body::read(matches, &SPEC, Verb::Create)?;
            body.set_organization(session)?;
            let response = COLLECTION.create(matches, session, body)?;
            shown_once(&response, session)
        }
        "rotate-secret" => {
            let id = COLLECTION.id(matches, session)?;
            collection::confirm_replacing(matches, || {
                Ok(format!("the secret of webhook endpoint {}", COLLECTION.called(&id, matches, session)?))
            })?;
            let body = Some(collection::overlap_body(matches));
            let response = COLLECTION.act_on(&id, "rotate_secret", body, matches, session)?;
            shown_once(&response, session)?;
            session.out.note(&format!(
                "At most {MOST_SECRETS} secrets sign at once: a further rotation during overlaps ends the oldest secret early."
            ));
            Ok(())
        }
        "update" => {
            let mut body = Body::read(matches, &SPEC, Verb::Update)?;
            if matches.get_flag("all_events") {
                body.set("events", JsonText::null());
            }
            COLLECTION.update(matches, session, body)
        }
        "enable" if enabling::run(matches, session)? => Ok(()),
        "enable" => {
            let id = COLLECTION.id(matches, session)?;
            COLLECTION.act_on(&id, verb, None, matches, session)?;
            session.out.note(&format!(
                "Waiting deliveries are sent when their next attempt is due, new ones now. To resend failed ones: rental-cli events recover --endpoint {id} --since 24h"
            ));
            Ok(())
        }
        "disable" => COLLECTION.act(verb, None, matches, session).map(drop),
        "test" => test(matches, session),
        "delete" => {
            let id = &COLLECTION.id(matches, session)?;
            let called = COLLECTION.called(id, matches, session)?;
            confirm::confirm_on_terminal(
                matches,
                &format!("Delete webhook endpoint {called}, its secrets and its deliveries"),
            )?;
            let request = Request::delete(Access::Operator, &[SPEC.plural, id]);
            session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
        }
        _ => COLLECTION.run(verb, matches, session),
    }
}

/// Says what to do with the secret. The replayed response of an earlier request has none.
fn shown_once(response: &str, session: &Session) -> Result<(), Failure> {
    let response = Record::read(response)?;
    session.out.note(match response.text("secret") {
        Some(_) => "The secret is shown only once: store it now. The receiver verifies signatures with it.",
        None => {
            "This request was already carried out, so its secret is not shown again; `rotate-secret` creates a new one."
        }
    });
    Ok(())
}

fn test(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let request = Request::post(Access::Operator, &[SPEC.plural, &COLLECTION.id(matches, session)?, "test"], None);
    let result = Record::read(&session.object(&request)?)?;
    if result.text("delivered").as_deref() == Some("true") {
        return Ok(());
    }
    let problem = match (result.text("status"), result.text("error")) {
        (Some(status), _) => format!("the endpoint responded with {status}"),
        (None, Some(error)) => format!("the endpoint did not respond: {}", error.replace('_', " ")),
        (None, None) => "the example event was not delivered".into(),
    };
    let hint = "an endpoint accepts an event by responding with 2xx in time; redirects are not followed";
    Err(Failure::Unsuccessful { kind: "not_delivered", problem, hint })
}
