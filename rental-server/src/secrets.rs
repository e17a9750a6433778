//! The admin token and the file of master keys: from the environment, from a file, or made at the first start.

use crate::{config::Config, edge};
use rental_core::webhooks::secret::MasterKeys;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The shortest token, in characters.
const SHORTEST: usize = 32;

/// A token, and its file if it has one.
pub(crate) struct AdminToken {
    pub(crate) text: String,
    pub(crate) path: Option<PathBuf>,
}

/// Checks the secrets that are configured or exist. Makes nothing, so that a wrong flag leaves no new store behind.
pub(crate) fn check(config: &Config, store_path: Option<&Path>) -> Result<(), String> {
    // A database is there already, and the errors of its address come first.
    if store_path.is_some() {
        existing_token(config, store_path)?;
        KeyFile::of(config, store_path)?.read()?;
    }
    Ok(())
}

/// Reads the admin token, or makes one beside the data file at `store_path`.
pub(crate) fn admin_token(config: &Config, store_path: Option<&Path>) -> Result<AdminToken, String> {
    match existing_token(config, store_path)? {
        Found::Secret(token) => Ok(token),
        Found::Missing(path) => {
            let text = format!("rat_{}", hex::encode(edge::secret_bytes()));
            write_private(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(AdminToken { text, path: Some(path) })
        }
    }
}

/// A token, or the path beside the data file where a new one belongs.
enum Found {
    Secret(AdminToken),
    Missing(PathBuf),
}

fn existing_token(config: &Config, store_path: Option<&Path>) -> Result<Found, String> {
    if let Ok(text) = std::env::var("RENTAL_ADMIN_TOKEN") {
        return checked(text, "RENTAL_ADMIN_TOKEN", None).map(Found::Secret);
    }
    let must = "a store in a database has no file to keep the admin token beside: give it in RENTAL_ADMIN_TOKEN or with --admin-token-file, the same one to each server";
    let given = config.admin_token_file.as_deref();
    let path = place(given, store_path, (".admin-token", must))?;
    match read(&path, given.is_some(), ("--admin-token-file", "a token"))? {
        None => Ok(Found::Missing(path)),
        Some(text) => checked(text, &path.display().to_string(), Some(path.clone())).map(Found::Secret),
    }
}

fn checked(text: String, source: &str, path: Option<PathBuf>) -> Result<AdminToken, String> {
    if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the admin token in {source} must be at least {SHORTEST} visible ASCII characters"));
    }
    Ok(AdminToken { text, path })
}

/// The file of master keys: one key a line, oldest first.
#[derive(Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
    /// Whether a flag or variable names it. Otherwise it is beside the data file, and made when it is missing.
    given: bool,
}

impl KeyFile {
    /// The file that `config` names, or else the one beside the data file at `store_path`.
    pub(crate) fn of(config: &Config, store_path: Option<&Path>) -> Result<Self, String> {
        let must = "a store in a database has no file to keep the master key beside: make one with `openssl rand -hex 32` and give it with --master-key-file, the same one to each server";
        let path = place(config.master_key_file.as_deref(), store_path, (".master-key", must))?;
        Ok(Self { path, given: config.master_key_file.is_some() })
    }

    /// A file at this path, for tests.
    #[cfg(test)]
    pub(crate) fn at(path: &str) -> Self {
        Self { path: path.into(), given: true }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the keys. `None`: the file is missing, and no flag names it.
    pub(crate) fn read(&self) -> Result<Option<MasterKeys>, String> {
        let Some(text) = read(&self.path, self.given, ("--master-key-file", "a key"))? else { return Ok(None) };
        MasterKeys::parse(&text).ok_or_else(|| wrong_key(&self.path, self.given)).map(Some)
    }

    /// Makes the file durable, which a program that appended a key may not have done.
    pub(crate) fn sync(&self) -> Result<(), String> {
        let synced = fs::File::open(&self.path).and_then(|file| file.sync_all());
        synced.map_err(|error| format!("cannot make {} durable: {error}", self.path.display()))
    }

    /// Adds a new key after the present ones. The file is durable afterwards.
    pub(crate) fn add(&self) -> Result<MasterKeys, String> {
        // A link stays a link.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let present = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let lines = present.lines().map(str::to_owned).chain([hex::encode(edge::secret_bytes())]);
        write_private(&path, &lines.collect::<Vec<_>>().join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        self.read()?.ok_or_else(|| format!("{} is gone", path.display()))
    }
}

/// The file that a flag names, or else the file beside the data file. Without a data file, the error is `must`.
fn place(given: Option<&Path>, store_path: Option<&Path>, (suffix, must): (&str, &str)) -> Result<PathBuf, String> {
    match (given, store_path) {
        (Some(path), _) => Ok(path.to_owned()),
        (None, Some(store_path)) => Ok(beside(store_path, suffix)),
        (None, None) => Err(must.into()),
    }
}

/// Reads the secret in a file. `None`: the file is missing, and no flag names it.
fn read(path: &Path, given: bool, (flag, what): (&str, &str)) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        // Editors on Windows write a byte order mark.
        Ok(text) => Ok(Some(text.trim_start_matches('\u{feff}').trim().to_owned())),
        Err(error) if !given && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error, flag, what)),
    }
}

/// Why the content of a file is no master key, and what to do.
fn wrong_key(path: &Path, given: bool) -> String {
    let next = if given {
        "correct --master-key-file or RENTAL_MASTER_KEY_FILE; for a new store, `openssl rand -hex 32` makes a key"
    } else {
        "restore this file from your backup: without the key, the secrets of webhooks are lost"
    };
    format!("{} must hold 64 hexadecimal digits, or several lines of them: {next}", path.display())
}

/// Why a file of a secret cannot be read, and what to do.
fn unreadable(path: &Path, error: &io::Error, flag: &str, what: &str) -> String {
    let shown = path.display();
    let variable = format!("RENTAL_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
    let next = match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "; correct {flag} (or {variable}), or make {what} with `(umask 077; openssl rand -hex 32 > {shown})`"
            )
        }
        io::ErrorKind::PermissionDenied => "; let the user of the server read it".to_owned(),
        _ => String::new(),
    };
    format!("cannot read {shown}: {error}{next}")
}

fn beside(store_path: &Path, suffix: &str) -> PathBuf {
    let mut path = store_path.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}

/// Writes a file that only its owner can read. It gets its name when it is complete, and is durable afterwards.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    // Made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{text}")?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    fs::File::open(folder)?.sync_all()
}
