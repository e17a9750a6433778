//! Files that have their name only once they are whole and on disk.

use crate::failure::Failure;
use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};
use tempfile::{Builder, NamedTempFile};

/// `FILE.partial`, readable by its owner alone. It is gone unless it is published. A run that was killed leaves it, and
/// the next run overwrites it; with a random name such files would pile up.
pub(crate) struct Partial {
    pub(crate) at: PathBuf,
    file: NamedTempFile,
}

impl Partial {
    /// Begins the file that is to be called `path`.
    pub(crate) fn beside(path: &Path) -> Result<Self, Failure> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let at = path.with_file_name(&name);
        let mut named = Builder::new();
        let made = named.prefix(&name).rand_bytes(0).make_in(directory(path), |path| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path)
        });
        Ok(Self { file: made.map_err(|error| cannot_write(&at, error))?, at })
    }

    /// The file, to write to.
    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name once it is on disk, and makes the name durable too.
    pub(crate) fn publish(self, path: &Path, replace: bool) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot_write(path, error);
        self.file().sync_all().map_err(failed)?;
        if replace {
            self.file.persist(path).map_err(|error| failed(error.error))?;
        } else {
            // Leaves alone what has got that name meanwhile.
            self.file.persist_noclobber(path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => in_the_way(path),
                _ => failed(error.error),
            })?;
        }
        File::open(directory(path)).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// A failed write of a file.
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::Io { doing: format!("write {}", path.display()), error }
}

/// A file of that name is there.
pub(crate) fn in_the_way(path: &Path) -> Failure {
    Failure::InTheWay {
        problem: format!("{} exists; nothing was written", path.display()),
        hint: "choose another name, or use --force to replace the file",
    }
}
