//! `store copy`: copies a store between a file and a database. All servers must be stopped.

use super::{failures::unusable_backup, place::Place};
use crate::{commands::session::Session, failure::Failure};
use clap::{Arg, ArgMatches, Command};
use rental_core::store::archive::{ArchiveError, Reader};
use serde_json::json;
use std::{
    io::{self, BufReader, BufWriter},
    path::Path,
    thread,
};

pub(super) fn command() -> Command {
    let place = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name("URL").required(true).value_parser(Place::parse).help(help)
    };
    Command::new("copy")
        .about("Copy a store to another engine and verify the copy; all servers of both must be stopped")
        .arg(place("from", "Store to copy, redb:PATH or postgres://USER@HOST:PORT/DATABASE"))
        .arg(place("to", "Store to create; it must not exist yet"))
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let named = |id: &str| matches.get_one::<Place>(id).cloned().ok_or_else(|| Failure::Usage(format!("no --{id}")));
    let (from, to) = (named("from")?, named("to")?);
    if from.is(&to) {
        return Err(Failure::Usage("--from and --to name the same store".into()));
    }
    let (reader, writer) = io::pipe().map_err(|error| Failure::Io { doing: "start the copy".into(), error })?;
    let source = from.clone();
    let sending = thread::spawn(move || source.write(BufWriter::new(writer)));
    let received = receive(&to, BufReader::new(reader), &from);
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
        "bytes": sent.raw_bytes, "sha256": received.sha256,
    }))?;
    session.out.note("a store does not contain the admin token and the master key: keep the server's files");
    Ok(())
}

fn receive(to: &Place, from: impl io::Read, named: &Place) -> Result<rental_core::store::archive::Summary, Failure> {
    let name = named.to_string();
    let broken = |error: ArchiveError| unusable_backup(Path::new(&name), error);
    let mut archive = Reader::open(from).map_err(broken)?;
    to.read(&mut archive, Path::new(&name))
}
