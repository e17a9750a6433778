//! Makes one backup: from a snapshot to a spool, from there to a file of the folder, which is checked before it gets its name.

use super::names::{FAILED, Files, GOOD, PARTIAL, stem};
use crate::{disk::Spool, engine::Moment, http::streamed::Pace, supervisor::Supervisor};
use rental_core::{
    resources::row_words::{damage_in_words, error_in_words},
    rows::key,
    store::{
        SCHEMA_VERSION, Span,
        archive::{Reader, Summary, Writer},
    },
    value::Timestamp,
};
use rustix::fs::{Advice, fadvise};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// What one backup is made of.
pub(super) struct Job<'a> {
    pub(super) moment: Moment,
    pub(super) spool: Spool,
    /// When it began.
    pub(super) time: Timestamp,
    pub(super) folder: &'a Path,
    pub(super) supervisor: &'a Supervisor,
}

/// A file that has its name.
pub(super) struct Made {
    pub(super) name: String,
    pub(super) summary: Summary,
    /// Why nothing may rely on it.
    pub(super) wrong: Option<String>,
}

/// The names of the files in the folder that are ours.
pub(super) fn files(folder: &Path) -> io::Result<Files> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    Ok(Files::among(names.collect::<io::Result<Vec<_>>>()?))
}

/// Removes what a killed server was writing.
pub(super) fn remove_partial(folder: &Path) -> io::Result<()> {
    files(folder)?.partial.iter().try_for_each(|stem| fs::remove_file(folder.join(format!("{stem}{PARTIAL}"))))
}

/// Makes the backup. On an error, nothing of it is left in the folder.
pub(super) fn make(job: Job<'_>) -> io::Result<Made> {
    let Job { mut moment, spool, time, folder, supervisor } = job;
    let (mut damaged, mut first) = (0_u64, String::new());
    let mut writer = Writer::new(Gentle::new(spool, supervisor), SCHEMA_VERSION, MADE_BY, time)?;
    let rows = moment.sound_rows(Span::everything(), |row| {
        damaged += 1;
        if damaged == 1 {
            first = damage_in_words(row);
        }
    });
    for row in rows {
        let row = row.map_err(|error| io::Error::other(error_in_words(&error)))?;
        if !key::is_of_servers(&row.key) {
            writer.push(&row)?;
        }
    }
    let (spool, summary) = writer.finish()?;
    // The store must not wait for a slow folder.
    drop(moment);
    let mut spooled = Gentle::new(spool.inner.into_file()?, supervisor);
    let (stem, partial) = (stem(time), folder.join(format!("{}{PARTIAL}", stem(time))));
    let published = (|| {
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&partial)?;
        io::copy(&mut spooled, &mut file)?;
        file.sync_all()?;
        let wrong = match (damaged, check(&mut file, &summary, supervisor)) {
            (0, wrong) => wrong?,
            (_, _) => Some(format!("damaged rows are not in it: {damaged}; the first: {first}")),
        };
        let name = format!("{stem}{}", if wrong.is_none() { GOOD } else { FAILED });
        fs::rename(&partial, folder.join(&name))?;
        File::open(folder)?.sync_all()?;
        Ok(Made { name, summary, wrong })
    })();
    if published.is_err() {
        let _ = fs::remove_file(&partial);
    }
    published
}

/// Name and version of this program, as archives have them.
pub(crate) const MADE_BY: &str = concat!("rental-server ", env!("CARGO_PKG_VERSION"));

/// Reads the file again, from the disk where the system can. Returns what is wrong with it.
fn check(file: &mut File, summary: &Summary, supervisor: &Supervisor) -> io::Result<Option<String>> {
    // A system that keeps the pages in memory all the same only makes the check weaker.
    let _ = fadvise(&*file, 0, None, Advice::DontNeed);
    file.rewind()?;
    let mut archive = match Reader::open(BufReader::new(Gentle::new(file, supervisor))) {
        Ok(archive) => archive,
        Err(error) => return Ok(Some(error.to_string())),
    };
    Ok(match archive.verify(&mut |_| {}) {
        Ok(read) if read.sha256 == summary.sha256 => None,
        Ok(_) => Some("it was read back with another SHA-256".into()),
        Err(_) if supervisor.is_stopping() => return Err(stopped()),
        Err(error) => Some(error.to_string()),
    })
}

/// Reads or writes a part of the time, and only until the server stops.
struct Gentle<'a, F> {
    inner: F,
    pace: Pace,
    supervisor: &'a Supervisor,
}

impl<'a, F> Gentle<'a, F> {
    fn new(inner: F, supervisor: &'a Supervisor) -> Self {
        Self { inner, pace: Pace::new(), supervisor }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.pace.rest();
        if self.supervisor.is_stopping() { Err(stopped()) } else { Ok(()) }
    }
}

fn stopped() -> io::Error {
    io::Error::other("the server stops")
}

impl<F: Write> Write for Gentle<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        let written = self.inner.write(bytes);
        self.pace.worked();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<F: Read> Read for Gentle<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.begin()?;
        let read = self.inner.read(buffer);
        self.pace.worked();
        read
    }
}
