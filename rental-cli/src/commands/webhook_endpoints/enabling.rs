//! `webhook-endpoints enable --all-disabled-since`: enables what failures disabled, page by page.

use crate::{
    client::{access::Access, request::Request},
    commands::{days, json_text::JsonText, session::Session},
    config::when,
    failure::Failure,
    output::record::next_page,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::resources::webhook_endpoint::SPEC;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Adds the flags to `enable`, which needs an id or the time.
pub(super) fn add_flags(enable: Command) -> Command {
    let time = Arg::new("all_disabled_since")
        .long("all-disabled-since")
        .value_name("TIME")
        .value_parser(when::since)
        .conflicts_with_all(["id", "idempotency_key"])
        .help("Enable all endpoints that failures disabled since a time (RFC 3339, a day, such as today, or how long ago, such as 2h)");
    let dry_run = Arg::new("dry_run")
        .long("dry-run")
        .action(ArgAction::SetTrue)
        .requires("all_disabled_since")
        .conflicts_with("id")
        .help("Only show which endpoints it would enable");
    enable.mut_arg("id", |id| id.required(false).required_unless_present("all_disabled_since")).arg(time).arg(dry_run)
}

/// Result of one request, which covers one page of endpoints.
#[derive(Deserialize)]
struct Enabling {
    examined: u64,
    enabled: Vec<Box<RawValue>>,
    has_more: bool,
    next_cursor: Option<String>,
}

/// Enables the endpoints, if the flags ask for it; false if they name one endpoint instead.
pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<bool, Failure> {
    let Some(since) = days::since(matches, "all_disabled_since", session)? else { return Ok(false) };
    let dry_run = matches.get_flag("dry_run");
    let (mut examined, mut enabled) = (0, Vec::new());
    let ended = pages(&since, dry_run, session, |page| {
        examined += page.examined;
        enabled.extend(page.enabled);
    });
    if ended.is_err() && !enabled.is_empty() && !dry_run {
        session
            .out
            .note(&format!("stopped after {} endpoints were enabled; repeat the command to continue", enabled.len()));
    }
    ended?;
    let list: Vec<&str> = enabled.iter().map(|row| row.get()).collect();
    let list = list.join(",");
    session.show(&format!(
        "{{\"object\":\"webhook_endpoint_enabling\",\"dry_run\":{dry_run},\"examined\":{examined},\"enabled\":[{list}],\"has_more\":false,\"next_cursor\":null}}"
    ))?;
    session.out.note(match dry_run {
        _ if enabled.is_empty() => "Nothing was changed: failures disabled no endpoint since then that is still disabled.",
        true => "Nothing was changed. Repeat the command without --dry-run to enable these endpoints.",
        false => "Waiting deliveries are sent when their next attempt is due. Endpoints that an operator disabled stay disabled.",
    });
    Ok(true)
}

fn pages(since: &str, dry_run: bool, session: &Session, mut done: impl FnMut(Enabling)) -> Result<(), Failure> {
    let since = JsonText::string(since);
    let mut cursor: Option<String> = None;
    loop {
        let after =
            cursor.as_deref().map(|cursor| format!(",\"starting_after\":{}", JsonText::string(cursor).as_str()));
        let body =
            format!("{{\"disabled_since\":{},\"dry_run\":{dry_run}{}}}", since.as_str(), after.unwrap_or_default());
        let json = session.send(&Request::post(Access::Operator, &[SPEC.plural, "enable"], Some(body)))?;
        let mut page: Enabling = serde_json::from_str(&json)
            .map_err(|error| Failure::Unreadable(format!("the response lists no endpoints: {error}")))?;
        cursor = next_page(page.has_more, page.next_cursor.take(), cursor.as_deref())?;
        done(page);
        if cursor.is_none() {
            return Ok(());
        }
    }
}
