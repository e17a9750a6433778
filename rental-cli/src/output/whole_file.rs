//! Output files that get their name only when they are complete and durable.

use crate::failure::Failure;
use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};
use tempfile::{Builder, NamedTempFile};

/// `FILE.partial`, mode 0600. It is deleted unless it is published. A killed run leaves it behind, and the next run
/// replaces it; with random names such files would accumulate. The file is always a new one: a link with this name,
/// which another user may have placed, is removed and not followed.
pub(crate) struct Partial {
    pub(crate) at: PathBuf,
    file: NamedTempFile,
}

impl Partial {
    /// Creates the unfinished file for `path`.
    pub(crate) fn create_for(path: &Path) -> Result<Self, Failure> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let at = path.with_file_name(&name);
        let mut named = Builder::new();
        let made = named.prefix(&name).rand_bytes(0).make_in(directory(path), |path| {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path)
        });
        Ok(Self { file: made.map_err(|error| cannot_write(&at, error))?, at })
    }

    /// The open file, for writing.
    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Syncs the file, renames it to `path`, and syncs the directory. Fails if `path` exists, unless `replace`.
    pub(crate) fn publish(self, path: &Path, replace: bool) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot_write(path, error);
        self.file().sync_all().map_err(failed)?;
        if replace {
            self.file.persist(path).map_err(|error| failed(error.error))?;
        } else {
            // Fails if another process has created the file in the meantime.
            self.file.persist_noclobber(path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => already_exists(path),
                _ => failed(error.error),
            })?;
        }
        File::open(directory(path)).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Makes the failure of a write to a file.
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::Io { doing: format!("write {}", path.display()), error }
}

/// Makes the failure for a file that exists.
pub(crate) fn already_exists(path: &Path) -> Failure {
    Failure::AlreadyExists {
        problem: format!("{} exists; nothing was written", path.display()),
        hint: "choose another name, or use --force to replace the file",
    }
}
