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

/// Finds the admin token, or makes one beside the data file at `store_path`.
pub(crate) fn admin_token(config: &Config, store_path: Option<&Path>) -> Result<AdminToken, String> {
    if let Ok(text) = std::env::var("RENTAL_ADMIN_TOKEN") {
        return checked(text, "RENTAL_ADMIN_TOKEN", None);
    }
    if let Some(path) = &config.admin_token_file {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        return checked(text.trim_end().to_owned(), &path.display().to_string(), Some(path.clone()));
    }
    let must = "a store in a database has no file to keep the admin token beside: give it in RENTAL_ADMIN_TOKEN or with --admin-token-file, the same one to each server";
    let path = beside(store_path.ok_or(must)?, ".admin-token");
    match fs::read_to_string(&path) {
        Ok(text) => checked(text.trim_end().to_owned(), &path.display().to_string(), Some(path.clone())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = generate();
            write_private(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(AdminToken { text, path: Some(path) })
        }
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn checked(text: String, source: &str, path: Option<PathBuf>) -> Result<AdminToken, String> {
    if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the admin token in {source} must be at least {SHORTEST} visible ASCII characters"));
    }
    Ok(AdminToken { text, path })
}

/// Finds the master key, or makes one beside the data file at `store_path`.
pub(crate) fn master_key(config: &Config, store_path: Option<&Path>) -> Result<MasterKey, String> {
    let made = config.master_key_file.is_none();
    let must = "a store in a database has no file to keep the master key beside: make one with `openssl rand -hex 32` and give it with --master-key-file, the same one to each server";
    let path = match (&config.master_key_file, store_path) {
        (Some(path), _) => path.clone(),
        (None, Some(store_path)) => beside(store_path, ".master-key"),
        (None, None) => return Err(must.into()),
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if made && error.kind() == io::ErrorKind::NotFound => {
            let text = hex(&edge::secret_bytes());
            write_private(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            text
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let bytes = unhex(text.trim_end()).ok_or_else(|| format!("{} must hold 64 hexadecimal digits", path.display()))?;
    Ok(MasterKey::new(&bytes))
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
