//! `store backup`: receives the archive from a running server, and verifies it while writing it to disk.

use super::arguments::{force, path_of};
use crate::{
    client::{access::Access, request::Request},
    commands::{collection::text, fields::columns_among, session::Session},
    failure::Failure,
    output::{
        progress::Progress,
        whole_file::{Partial, already_exists, cannot_write},
    },
};
use clap::{Arg, ArgMatches, Command};
use rental_core::store::archive::{ArchiveError, Reader, Summary};
use serde_json::json;
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write as _},
    path::PathBuf,
};

pub(super) fn command() -> Command {
    let to = Arg::new("to")
        .long("to")
        .value_name("FILE")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .help("File to write; it gets this name once the backup is complete and durable");
    let pace = Arg::new("pace")
        .long("pace")
        .value_name("PACE")
        .value_parser(["gentle", "full"])
        .default_value("gentle")
        .help("`full` is faster, but slows down requests during the backup");
    Command::new("backup")
        .about("Back up the store of a running server (operator)")
        .arg(to)
        .arg(pace)
        .arg(force("Replace an existing file"))
        .arg(columns_among(["file", "created_at", "rows", "bytes", "sha256"]))
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let to = path_of(matches, "to");
    let replace = matches.get_flag("force");
    if to.exists() && !replace {
        return Err(already_exists(to));
    }
    let query = vec![("pace".to_owned(), text(matches, "pace").to_owned())];
    // Before the request: a backup whose client goes away occupies the server for a while.
    let partial = Partial::create_for(to)?;
    let response = session.api.stream(&Request::get(Access::Operator, &["backup"]).with_query(query))?;
    let copy = partial.file().try_clone().map_err(|error| cannot_write(&partial.at, error))?;
    let mut tee = Tee { from: BufReader::new(response), to: BufWriter::new(copy), failed: None };
    let received = receive(&mut tee);
    let Tee { to: out, failed, .. } = tee;
    if let Some(error) = failed {
        return Err(cannot_write(&partial.at, error));
    }
    let (summary, created_at) = received?;
    out.into_inner().map_err(|error| cannot_write(&partial.at, error.into_error()))?;
    partial.publish(to, replace)?;
    session.out.value(&json!({
        "object": "backup", "file": to, "created_at": created_at, "rows": summary.rows, "bytes": summary.bytes,
        "sha256": summary.sha256,
    }))
}

fn receive(tee: &mut Tee<impl Read>) -> Result<(Summary, String), Failure> {
    let broken = |error: ArchiveError| match error {
        ArchiveError::Io(_) | ArchiveError::Truncated { .. } => Failure::Unreachable {
            problem: format!("the backup is incomplete ({error}); nothing was kept"),
            hint: "see the server's log: a damaged row ends a backup by hand (docs/backup.md); else try again",
        },
        ArchiveError::NotAnArchive => Failure::Unreadable("the response is not a backup".into()),
        other => Failure::Unsuccessful {
            kind: "backup",
            problem: other.to_string(),
            hint: "try again; nothing of this backup was kept",
        },
    };
    let mut archive = Reader::open(tee).map_err(broken)?;
    let mut progress = Progress::bytes(None, "receiving");
    let summary = archive.verify(&mut |seen: &Summary| progress.at(seen.bytes)).map_err(broken)?;
    Ok((summary, archive.header().created_at.to_string()))
}

/// Reader that also writes what it reads to a file.
struct Tee<R> {
    from: R,
    to: BufWriter<File>,
    /// Error of the file, as opposed to an error of the reader.
    failed: Option<io::Error>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Err(error) = self.to.write_all(&buffer[..count]) {
            let kind = error.kind();
            self.failed = Some(error);
            return Err(kind.into());
        }
        Ok(count)
    }
}
