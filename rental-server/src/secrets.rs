//! The admin token and the master key: from the environment, from a file, or made at the first start.

use crate::{config::Config, edge};
use rental_core::webhooks::secret::MasterKey;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Fewest characters of a token.
const SHORTEST: usize = 32;

/// A token, and where it lies if it lies in a file.
pub(crate) struct AdminToken {
    pub(crate) text: String,
    pub(crate) path: Option<PathBuf>,
}

/// Checks the secrets that are configured or exist. Makes nothing, so that a wrong flag leaves no new store behind.
pub(crate) fn check(config: &Config, store_path: Option<&Path>) -> Result<(), String> {
    existing_token(config, store_path)?;
    existing_key(config, store_path)?;
    Ok(())
}

/// Finds the admin token, or makes one beside the data file at `store_path`.
pub(crate) fn admin_token(config: &Config, store_path: Option<&Path>) -> Result<AdminToken, String> {
    match existing_token(config, store_path)? {
        Found::Secret(token) => Ok(token),
        Found::Missing(path) => {
            let text = generate();
            write_private(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(AdminToken { text, path: Some(path) })
        }
    }
}

/// Finds the master key, or makes one beside the data file at `store_path`.
pub(crate) fn master_key(config: &Config, store_path: Option<&Path>) -> Result<MasterKey, String> {
    match existing_key(config, store_path)? {
        Found::Secret(key) => Ok(key),
        Found::Missing(path) => {
            let bytes = edge::secret_bytes();
            write_private(&path, &hex(&bytes)).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
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
    let (path, own) = match &config.admin_token_file {
        Some(path) => (path.clone(), false),
        None => (beside(store_path.ok_or(must)?, ".admin-token"), true),
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if own && error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing(path)),
        Err(error) => return Err(unreadable(&path, &error, "--admin-token-file", "a token")),
    };
    checked(text.trim_end().to_owned(), &path.display().to_string(), Some(path)).map(Found::Secret)
}

fn checked(text: String, source: &str, path: Option<PathBuf>) -> Result<AdminToken, String> {
    if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the admin token in {source} must be at least {SHORTEST} visible ASCII characters"));
    }
    Ok(AdminToken { text, path })
}

fn existing_key(config: &Config, store_path: Option<&Path>) -> Result<Found<MasterKey>, String> {
    let must = "a store in a database has no file to keep the master key beside: make one with `openssl rand -hex 32` and give it with --master-key-file, the same one to each server";
    let (path, own) = match &config.master_key_file {
        Some(path) => (path.clone(), false),
        None => (beside(store_path.ok_or(must)?, ".master-key"), true),
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if own && error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing(path)),
        Err(error) => return Err(unreadable(&path, &error, "--master-key-file", "a key")),
    };
    let bytes = unhex(text.trim_end()).ok_or_else(|| format!("{} must hold 64 hexadecimal digits", path.display()))?;
    Ok(Found::Secret(MasterKey::new(&bytes)))
}

/// Why a file of a secret cannot be read, and what to do.
fn unreadable(path: &Path, error: &io::Error, flag: &str, what: &str) -> String {
    let shown = path.display();
    let next = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("; correct {flag}, or make {what} with `(umask 077; openssl rand -hex 32 > {shown})`")
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

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

/// A new token: `rat_` and 256 random bits.
pub(crate) fn generate() -> String {
    format!("rat_{}", hex(&edge::secret_bytes()))
}

/// Writes a new file that only its owner can read; it is whole before it gets its name.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = beside(path, ".new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
