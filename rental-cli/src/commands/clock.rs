//! `clock`: says that the clock of a server is right although it has jumped.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection, confirm, fields,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{ArgMatches, Command};
use serde_json::json;

pub(crate) const GROUP: Group = Group { name: "clock", command, run };

fn command() -> Command {
    let examples = ["rental-cli clock confirm", "rental-cli clock confirm --yes --json"];
    let command = Command::new(GROUP.name)
        .about("Confirm the clock of a server that takes no writes because its clock jumped (operator)")
        .subcommand(with_examples(
            Command::new("confirm")
                .about("Say that the clock is right as it is, for this jump only")
                .arg(confirm::yes())
                .arg(fields::columns_among(["time", "ready", "clock_jump"])),
            &examples,
        ));
    with_examples(command, &examples[..1])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (_, matches) = collection::verb(matches)?;
    confirm::needs_yes(matches, "Confirm the clock of the server")?;
    let status = Record::read(&session.send(&Request::get(Access::Operator, &["status"]))?)?;
    let Some(jump) = Jump::of(&status)? else {
        session.out.note("the clock of the server has not jumped: there is nothing to confirm");
        return Ok(());
    };
    let time = status.text("time").unwrap_or_default();
    confirm::confirm(
        matches,
        &format!("The server's clock says {time}, {}. Is {time} the right time", jump.in_words()),
    )?;
    let body = json!({"seconds": jump.seconds}).to_string();
    session.object(&Request::post(Access::Operator, &["clock", "confirm"], Some(body))).map(drop)
}

/// Why a server does not trust its clock.
pub(super) struct Jump {
    seconds: i64,
    against: String,
}

impl Jump {
    /// The jump in the status of a server; `None` when it trusts its clock.
    pub(super) fn of(status: &Record) -> Result<Option<Self>, Failure> {
        let Some(jump) = status.text("clock_jump") else { return Ok(None) };
        let jump = Record::read(&jump)?;
        let seconds = jump.text("seconds").and_then(|text| text.parse().ok());
        let seconds = seconds.ok_or_else(|| Failure::Unreadable("the status tells no size of the jump".into()))?;
        Ok(Some(Self { seconds, against: jump.text("against").unwrap_or_default() }))
    }

    /// Such as "34560000 s ahead of what has passed since it was right".
    pub(super) fn in_words(&self) -> String {
        let side = if self.seconds < 0 { "behind" } else { "ahead of" };
        let other = match self.against.as_str() {
            "database" => "the clock of the database",
            "newest_object" => "the newest object of the store",
            _ => "what it was and the time that has passed since",
        };
        format!("{} s {side} {other}", self.seconds.unsigned_abs())
    }
}
