//! The admin token and the master key: from the environment, from a file, or made at the first start.

use crate::{config::Config, edge};
use rental_core::webhooks::secret::MasterKey;
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
        existing_key(config, store_path)?;
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

/// Reads the master key, or makes one beside the data file at `store_path`.
pub(crate) fn master_key(config: &Config, store_path: Option<&Path>) -> Result<MasterKey, String> {
    match existing_key(config, store_path)? {
        Found::Secret(key) => Ok(key),
        Found::Missing(path) => {
            let bytes = edge::secret_bytes();
            write_private(&path, &hex::encode(bytes))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(MasterKey::new(&bytes))
        }
    }
}

/// A secret, or the path beside the data file where a new one belongs.
enum Found<T> {
    Secret(T),
    Missing(PathBuf),
}

fn existing_token(config: &Config, store_path: Option<&Path>) -> Result<Found<AdminToken>, String> {
    if let Ok(text) = std::env::var("RENTAL_ADMIN_TOKEN") {
        return checked(text, "RENTAL_ADMIN_TOKEN", None).map(Found::Secret);
    }
    let must = "a store in a database has no file to keep the admin token beside: give it in RENTAL_ADMIN_TOKEN or with --admin-token-file, the same one to each server";
    let given = ("--admin-token-file", config.admin_token_file.as_deref(), "a token");
    match find(given, store_path, (".admin-token", must))? {
        (path, None) => Ok(Found::Missing(path)),
        (path, Some(text)) => checked(text, &path.display().to_string(), Some(path.clone())).map(Found::Secret),
    }
}

fn checked(text: String, source: &str, path: Option<PathBuf>) -> Result<AdminToken, String> {
    if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the admin token in {source} must be at least {SHORTEST} visible ASCII characters"));
    }
    Ok(AdminToken { text, path })
}

fn existing_key(config: &Config, store_path: Option<&Path>) -> Result<Found<MasterKey>, String> {
    let must = "a store in a database has no file to keep the master key beside: make one with `openssl rand -hex 32` and give it with --master-key-file, the same one to each server";
    let given = ("--master-key-file", config.master_key_file.as_deref(), "a key");
    match find(given, store_path, (".master-key", must))? {
        (path, None) => Ok(Found::Missing(path)),
        (path, Some(text)) => {
            let mut bytes = [0; 32];
            hex::decode_to_slice(text, &mut bytes).map_err(|_| wrong_key(&path, config.master_key_file.is_some()))?;
            Ok(Found::Secret(MasterKey::new(&bytes)))
        }
    }
}

/// Reads the secret in the file that a flag names, or else in the file beside the data file, which may be missing.
/// Without a data file, the error is `must`.
fn find(
    (flag, given, what): (&str, Option<&Path>, &str),
    store_path: Option<&Path>,
    (suffix, must): (&str, &str),
) -> Result<(PathBuf, Option<String>), String> {
    let path = match (given, store_path) {
        (Some(path), _) => path.to_owned(),
        (None, Some(store_path)) => beside(store_path, suffix),
        (None, None) => return Err(must.into()),
    };
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, Some(text.trim_end().to_owned()))),
        Err(error) if given.is_none() && error.kind() == io::ErrorKind::NotFound => Ok((path, None)),
        Err(error) => Err(unreadable(&path, &error, flag, what)),
    }
}

/// Why the content of a file is no master key, and what to do.
fn wrong_key(path: &Path, given: bool) -> String {
    let next = if given {
        "correct --master-key-file or RENTAL_MASTER_KEY_FILE; for a new store, `openssl rand -hex 32` makes a key"
    } else {
        "restore this file from your backup: without the key, the secrets of webhooks are lost"
    };
    format!("{} must hold 64 hexadecimal digits: {next}", path.display())
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

/// Writes a new file that only its owner can read. It gets its name when it is complete.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    // Made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{text}")?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
