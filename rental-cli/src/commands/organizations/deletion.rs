//! `organizations delete`: begins the deletion of an organization, and waits until nothing of it is left.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, chosen_key, text},
        confirm, fields,
        session::Session,
    },
    failure::Failure,
    output::{progress::Progress, record::Record},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::resources::organization::SPEC;
use std::{thread, time::Duration};

/// Pause between two looks at the progress.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) fn command(examples: &[&str]) -> Command {
    let about =
        "Delete an organization and everything that belongs to it, after an export; only a backup brings it back";
    let columns = ["organization_id", "status", "rows", "created_at", "finished_at"];
    collection::action_that_shows(fields::columns_among(columns), &SPEC, "delete", about, examples)
        .arg(
            Arg::new("without_export")
                .long("without-export")
                .action(ArgAction::SetTrue)
                .help("Delete it although it has changed since its last complete export"),
        )
        .arg(
            Arg::new("no_wait")
                .long("no-wait")
                .action(ArgAction::SetTrue)
                .help("Return when the deletion has begun; the server goes on by itself"),
        )
        .arg(confirm::yes())
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let id = session.organization_id(text(matches, "id"))?;
    match session.send(&Request::get(Access::Operator, &[SPEC.plural, id])) {
        Ok(organization) => begin(id, matches, session, &organization)?,
        // An earlier run of this command may have begun it.
        Err(missing @ Failure::ErrorResponse(_)) => {
            let deletion = progress(session, id).map_err(|_| missing)?;
            return wait(id, matches, session, deletion);
        }
        Err(error) => return Err(error),
    }
    let deletion = progress(session, id)?;
    wait(id, matches, session, deletion)
}

fn begin(id: &str, matches: &ArgMatches, session: &Session, organization: &str) -> Result<(), Failure> {
    let name = Record::read(organization)?.text("name").unwrap_or_default();
    confirm::confirm(matches, &format!("Delete organization {name:?} ({id}) and everything that belongs to it"))?;
    let mut request = Request::delete(Access::Operator, &[SPEC.plural, id]);
    if matches.get_flag("without_export") {
        request = request.with_query(vec![("without_export".into(), "true".into())]);
    }
    session.send(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

fn progress(session: &Session, id: &str) -> Result<String, Failure> {
    session.send(&Request::get(Access::Operator, &[SPEC.plural, id, "deletion"]))
}

/// Waits for the end and prints the deletion.
fn wait(id: &str, matches: &ArgMatches, session: &Session, mut deletion: String) -> Result<(), Failure> {
    let mut shown = Progress::count(None, "rows removed");
    while !matches.get_flag("no_wait") {
        let record = Record::read(&deletion)?;
        if record.text("status").as_deref() != Some("running") {
            break;
        }
        shown.at(record.text("rows").and_then(|rows| rows.parse().ok()).unwrap_or_default());
        thread::sleep(PAUSE);
        deletion = progress(session, id)?;
    }
    shown.finish();
    session.show(&deletion)
}
