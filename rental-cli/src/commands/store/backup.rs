//! `store backup`: takes the archive that a running server streams, and checks it on its way to the disk.

use super::{force, show};
use crate::{access::Access, api::Request, failure::Failure, progress::Progress, session::Session, verbs::text};
use clap::{Arg, ArgMatches, Command};
use rental_core::store::archive::{ArchiveError, Reader, Summary};
use serde_json::json;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Write as _},
    path::{Path, PathBuf},
};

pub(super) fn command() -> Command {
    let to = Arg::new("to")
        .long("to")
        .value_name("FILE")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .help("Where the backup goes; it has this name only once it is whole and on disk");
    let pace = Arg::new("pace")
        .long("pace")
        .value_name("PACE")
        .value_parser(["gentle", "full"])
        .default_value("gentle")
        .help("`full` is done sooner, at the cost of requests meanwhile");
    Command::new("backup")
        .about("Back up the store of a running server")
        .arg(to)
        .arg(pace)
        .arg(force("Replace a file of that name"))
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let to = super::of(matches, "to");
    let replace = matches.get_flag("force");
    if to.exists() && !replace {
        return Err(in_the_way(to));
    }
    let query = vec![("pace".to_owned(), text(matches, "pace").to_owned())];
    let answer = session.api.stream(&Request::get(Access::Operator, &["backup"]).with_query(query))?;
    let partial = Partial::beside(to)?;
    let copy = partial.file.try_clone().map_err(|error| cannot_write(&partial.at, error))?;
    let mut tee = Tee { from: BufReader::new(answer), to: BufWriter::new(copy), failed: None };
    let received = receive(&mut tee);
    let Tee { to: out, failed, .. } = tee;
    if let Some(error) = failed {
        return Err(cannot_write(&partial.at, error));
    }
    let (summary, created_at) = received?;
    out.into_inner().map_err(|error| cannot_write(&partial.at, error.into_error()))?;
    partial.publish(to, replace)?;
    show(
        &session.out,
        &json!({
            "object": "backup", "file": to, "created_at": created_at, "rows": summary.rows, "bytes": summary.bytes,
            "sha256": summary.sha256,
        }),
    )
}

fn receive(tee: &mut Tee<impl Read>) -> Result<(Summary, String), Failure> {
    let broken = |error: ArchiveError| match error {
        ArchiveError::Io(_) | ArchiveError::Truncated { .. } => Failure::Unreachable {
            problem: format!("the backup did not arrive whole ({error})"),
            hint: "try again; if it happens again, the server's log says why",
        },
        ArchiveError::NotAnArchive => Failure::Unreadable("the answer is no backup".into()),
        other => Failure::Unsuccessful {
            kind: "backup",
            problem: other.to_string(),
            hint: "try again; nothing was kept of this one",
        },
    };
    let mut archive = Reader::open(tee).map_err(broken)?;
    let mut progress = Progress::bytes(None, "receiving");
    let summary = archive.verify(&mut |seen: &Summary| progress.at(seen.bytes)).map_err(broken)?;
    Ok((summary, archive.header().created_at.to_string()))
}

/// Keeps a copy of what is read.
struct Tee<R> {
    from: R,
    to: BufWriter<File>,
    /// Why the copy could not be kept, which is no fault of what is read.
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

/// `FILE.partial`, readable by its owner alone. It is gone unless it is published.
struct Partial {
    at: PathBuf,
    file: File,
    published: bool,
}

impl Partial {
    fn beside(path: &Path) -> Result<Self, Failure> {
        let mut at = path.as_os_str().to_owned();
        at.push(".partial");
        let at = PathBuf::from(at);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&at).map_err(|error| cannot_write(&at, error))?;
        Ok(Self { at, file, published: false })
    }

    /// Gives the file its name once it is on disk, and makes the name durable too.
    fn publish(mut self, path: &Path, replace: bool) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot_write(path, error);
        self.file.sync_all().map_err(failed)?;
        if replace {
            fs::rename(&self.at, path).map_err(failed)?;
        } else {
            // Unlike a rename, a link leaves alone what has got that name meanwhile.
            fs::hard_link(&self.at, path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => in_the_way(path),
                _ => failed(error),
            })?;
            fs::remove_file(&self.at).map_err(failed)?;
        }
        self.published = true;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(parent).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.published {
            // If it stays, the next run overwrites it.
            let _ = fs::remove_file(&self.at);
        }
    }
}

fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::Io { doing: format!("write {}", path.display()), error }
}

fn in_the_way(path: &Path) -> Failure {
    Failure::InTheWay {
        problem: format!("{} is there already", path.display()),
        hint: "choose another name, or replace it with --force",
    }
}
