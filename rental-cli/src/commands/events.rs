//! `events`: shows events, and resends them.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, Collection, chosen_key, text},
        days, fields,
        group::{Group, with_examples},
        json_text::{JsonText, Words},
        session::Session,
    },
    config::{values, when},
    failure::Failure,
    output::{
        progress::Progress,
        record::{Page, next_page},
        references::Names,
    },
};
use clap::{Arg, ArgMatches, Command};
use rental_core::resources::{
    delivery,
    event::{EVENT_NAMES, SPEC},
    webhook_endpoint,
};
use serde::Deserialize;

pub(crate) const GROUP: Group = Group { name: "events", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Operator };

fn command() -> Command {
    let list =
        ["rental-cli events list --organization ID", "rental-cli events list --organization ID --type invoice.paid"];
    let get = ["rental-cli events get ID --json"];
    let resend = ["rental-cli events resend ID", "rental-cli events resend ID --endpoint ID"];
    let recover = [
        "rental-cli events recover --endpoint ID --since 24h",
        "rental-cli events recover --endpoint ID --since 2026-05-05T09:30:00Z",
    ];
    let organization = collection::organization("Organization of the events");
    let list_command = collection::list(&SPEC, &list)
        .arg(organization.display_order(0))
        .mut_arg("type", |arg| arg.value_name("TYPE").value_parser(Words(EVENT_NAMES)));
    let command = Command::new(GROUP.name)
        .about("Show events, and send them again (operator)")
        .subcommand(list_command)
        .subcommand(collection::get(&SPEC, &get))
        .subcommand(
            collection::action_that_shows(
                fields::columns_of(&delivery::SPEC),
                &SPEC,
                "resend",
                "Send an event again, as a new delivery",
                &resend,
            )
            .arg(endpoint().help("Send to this endpoint only [default: all endpoints subscribed to the type]")),
        )
        .subcommand(with_examples(
            Command::new("recover")
                .about("Resend all events that an endpoint missed; safe to repeat")
                .arg(endpoint().required(true).help("The webhook endpoint"))
                .arg(since())
                .arg(fields::columns_among(["examined", "resent"])),
            &recover,
        ));
    with_examples(command, &[list[0], resend[0], recover[0]])
}

fn endpoint() -> Arg {
    Arg::new("endpoint").long("endpoint").value_name("ID|URL").value_parser(values::id)
}

fn since() -> Arg {
    Arg::new("since")
        .long("since")
        .value_name("TIME")
        .required(true)
        .value_parser(when::since)
        .help("Start of the period: a time (RFC 3339), a day, such as today, or how long ago, such as 2h")
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    match verb {
        "list" => COLLECTION.list(matches, session, &["organizations", session.organization(matches)?, SPEC.plural]),
        "resend" => resend(matches, session),
        "recover" => recover(matches, session),
        _ => COLLECTION.run(verb, matches, session),
    }
}

fn resend(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let endpoint = matches.get_one::<String>("endpoint").map(|text| session.object_id(&webhook_endpoint::SPEC, text));
    let endpoint = endpoint.transpose()?.map(|id| JsonText::string(&id));
    let body = endpoint.map(|id| format!("{{\"endpoint_id\":{}}}", id.as_str()));
    let request = Request::post(Access::Operator, &[SPEC.plural, text(matches, "id"), "resend"], body);
    let json = session.send(&request.with_idempotency_key(chosen_key(matches)))?;
    // Servers of before have no such member.
    let waiting: Waiting = serde_json::from_str(&json).unwrap_or_default();
    for id in waiting.disabled_endpoint_ids {
        session.out.note(&format!(
            "webhook endpoint {id} is disabled: its delivery waits until you enable it with `rental-cli webhook-endpoints enable {id}`"
        ));
    }
    if session.out.json {
        return session.show(&json);
    }
    let made = Page::read(&json)?;
    if made.data.is_empty() {
        session.out.note("nothing was sent: no webhook endpoint of the organization is subscribed to this event");
        return Ok(());
    }
    let mut list = session.out.list(&delivery::SPEC, session.out.chosen());
    list.add_page(&made, &Names::default())?;
    list.finish(None)
}

/// What the response to a resend says about endpoints that get nothing now.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    disabled_endpoint_ids: Vec<String>,
}

/// Result of one recovery request, which covers one page of events.
#[derive(Deserialize)]
struct Recovery {
    examined: u64,
    resent: u64,
    has_more: bool,
    next_cursor: Option<String>,
}

fn recover(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let since = days::since(matches, "since", session)?.ok_or_else(|| Failure::Usage("no --since given".into()))?;
    let endpoint = &session.object_id(&webhook_endpoint::SPEC, text(matches, "endpoint"))?;
    let (mut examined, mut resent) = (0, 0);
    let mut progress = Progress::count(None, "events examined");
    let ended = recover_pages(endpoint, &since, session, |page| {
        examined += page.examined;
        resent += page.resent;
        progress.add(page.examined);
    });
    progress.finish();
    if ended.is_err() && examined > 0 {
        session
            .out
            .note(&format!("stopped after {examined} events, {resent} of them resent; repeat the command to continue"));
    }
    ended?;
    session.out.note(&format!(
        "what fails again: rental-cli deliveries list --organization ID --endpoint {endpoint} --status failed"
    ));
    session.show(&format!(
        "{{\"object\":\"recovery\",\"examined\":{examined},\"resent\":{resent},\"has_more\":false,\"next_cursor\":null}}"
    ))
}

fn recover_pages(
    endpoint: &str,
    since: &str,
    session: &Session,
    mut done: impl FnMut(&Recovery),
) -> Result<(), Failure> {
    let since = JsonText::string(since);
    let mut cursor: Option<String> = None;
    loop {
        let after =
            cursor.as_deref().map(|cursor| format!(",\"starting_after\":{}", JsonText::string(cursor).as_str()));
        let body = format!("{{\"since\":{}{}}}", since.as_str(), after.unwrap_or_default());
        let path = [webhook_endpoint::SPEC.plural, endpoint, "recover"];
        let json = session.send(&Request::post(Access::Operator, &path, Some(body)))?;
        let page: Recovery = serde_json::from_str(&json)
            .map_err(|error| Failure::Unreadable(format!("the response is not a recovery: {error}")))?;
        done(&page);
        cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
