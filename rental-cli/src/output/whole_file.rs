//! Files that have their name only once they are whole and on disk.

use crate::failure::Failure;
use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// `FILE.partial`, readable by its owner alone. It is gone unless it is published.
pub(crate) struct Partial {
    pub(crate) at: PathBuf,
    pub(crate) file: File,
    published: bool,
}

impl Partial {
    /// Begins the file that is to be called `path`.
    pub(crate) fn beside(path: &Path) -> Result<Self, Failure> {
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
    pub(crate) fn publish(mut self, path: &Path, replace: bool) -> Result<(), Failure> {
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

/// A failed write of a file.
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::Io { doing: format!("write {}", path.display()), error }
}

/// A file of that name is there.
pub(crate) fn in_the_way(path: &Path) -> Failure {
    Failure::InTheWay {
        problem: format!("{} is there already", path.display()),
        hint: "choose another name, or replace it with --force",
    }
}
