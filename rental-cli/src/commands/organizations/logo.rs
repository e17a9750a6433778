//! `organizations logo`: sets or removes the logo on the invoices of an organization.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        collection::{self, chosen_key, text},
        fields,
        session::Session,
    },
    failure::Failure,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::resources::organization::SPEC;
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Bytes of a file that are read. The server takes less and says so.
const MOST_READ: u64 = 1 << 20;

pub(super) fn command(examples: &[&str]) -> Command {
    collection::action_that_shows(
        fields::columns_among(["organization_id", "bytes", "width", "height"]),
        &SPEC,
        "logo",
        "Set the logo on the invoices of an organization: a PNG of at most 256 KiB",
        examples,
    )
    .arg(
        Arg::new("file")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .required_unless_present("remove")
            .help("PNG image"),
    )
    .arg(Arg::new("remove").long("remove").action(ArgAction::SetTrue).conflicts_with("file").help("Remove the logo"))
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let path = [SPEC.plural, session.organization_id(text(matches, "id"))?, "logo"];
    let request = match matches.get_one::<PathBuf>("file") {
        Some(file) => Request::put(Access::Operator, &path, "image/png", read(file)?),
        None => Request::delete(Access::Operator, &path),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut png = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MOST_READ).read_to_end(&mut png));
    read.map_err(|error| Failure::Io { doing: format!("read {}", file.display()), error })?;
    Ok(png)
}
