//! `store copy`: copies a store between a file and a database. All servers must be stopped.

use super::{
    place::{self, Place, forms},
    transfer,
};
use crate::{
    commands::{fields::columns_among, session::Session},
    failure::Failure,
};
use clap::{Arg, ArgMatches, Command};
use serde_json::json;
use std::{
    io::{self, BufReader, BufWriter},
    path::Path,
    thread,
};

pub(super) fn command() -> Command {
    let place = |id: &'static str, help: String| {
        place::completed(Arg::new(id).long(id).value_name("URL").required(true).value_parser(place::parse).help(help))
    };
    Command::new("copy")
        .about("Copy a store to another engine and verify the copy; all servers of both must be stopped")
        .arg(place("from", format!("Store to copy, {}", forms())))
        .arg(place("to", "Store to create; it must not exist yet".into()))
        .arg(columns_among(["from", "to", "rows", "bytes", "sha256"]))
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let named = |id: &str| matches.get_one::<Place>(id).cloned().ok_or_else(|| Failure::Usage(format!("no --{id}")));
    let (from, to) = (named("from")?, named("to")?);
    if from.to_string() == to.to_string() {
        return Err(Failure::Usage("--from and --to name the same store".into()));
    }
    let (reader, writer) = io::pipe().map_err(|error| Failure::Io { doing: "start the copy".into(), error })?;
    let source = Place::clone(&from);
    let sending = thread::spawn(move || transfer::write(&source, BufWriter::new(writer)));
    let received = transfer::read(&to, BufReader::new(reader), Path::new(&from.to_string()));
    // If the sender failed, its error is the cause.
    let sent = sending.join().map_err(|_| Failure::Unreadable("the store is damaged: reading it failed".into()))?;
    let (sent, received) = match (sent, received) {
        (Ok(sent), received) => (sent, received?),
        (Err(Failure::Io { error, .. }), Err(failure)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Err(failure);
        }
        (Err(failure), _) => return Err(failure),
    };
    session.out.value(&json!({
        "object": "store_copy", "from": from.to_string(), "to": to.to_string(), "rows": sent.rows,
        "bytes": sent.raw_bytes, "sha256": received.0.sha256,
    }))?;
    session.out.note("a store does not contain the admin token and the master key: keep the server's files");
    Ok(())
}
