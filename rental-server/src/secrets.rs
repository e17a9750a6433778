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

/// Reads the admin token, or makes one beside the data file at `store_path`.
pub(crate) fn admin_token(config: &Config, store_path: Option<&Path>) -> Result<AdminToken, String> {
    if let Ok(text) = std::env::var("RENTAL_ADMIN_TOKEN") {
        return checked(text, "RENTAL_ADMIN_TOKEN", None);
    }
    let must = "a store in a database has no file to keep the admin token beside: give it in RENTAL_ADMIN_TOKEN or with --admin-token-file, the same one to each server";
    let make = || format!("rat_{}", hex::encode(edge::secret_bytes()));
    let (path, text) = read_or_make(config.admin_token_file.as_deref(), store_path, (".admin-token", must), make)?;
    checked(text, &path.display().to_string(), Some(path.clone()))
}

fn checked(text: String, source: &str, path: Option<PathBuf>) -> Result<AdminToken, String> {
    if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the admin token in {source} must be at least {SHORTEST} visible ASCII characters"));
    }
    Ok(AdminToken { text, path })
}

/// Reads the master key, or makes one beside the data file at `store_path`.
pub(crate) fn master_key(config: &Config, store_path: Option<&Path>) -> Result<MasterKey, String> {
    let must = "a store in a database has no file to keep the master key beside: make one with `openssl rand -hex 32` and give it with --master-key-file, the same one to each server";
    let make = || hex::encode(edge::secret_bytes());
    let (path, text) = read_or_make(config.master_key_file.as_deref(), store_path, (".master-key", must), make)?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes)
        .map_err(|_| format!("{} must hold 64 hexadecimal digits", path.display()))?;
    Ok(MasterKey::new(&bytes))
}

/// The secret in the file that a flag names, or else in the file beside the data file, which is made if it is missing.
/// Without a data file, the error is `must`.
fn read_or_make(
    given: Option<&Path>,
    store_path: Option<&Path>,
    (suffix, must): (&str, &str),
    make: impl FnOnce() -> String,
) -> Result<(PathBuf, String), String> {
    let path = match (given, store_path) {
        (Some(path), _) => path.to_owned(),
        (None, Some(store_path)) => beside(store_path, suffix),
        (None, None) => return Err(must.into()),
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text.trim_end().to_owned(),
        Err(error) if given.is_none() && error.kind() == io::ErrorKind::NotFound => {
            let text = make();
            write_private(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            text
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    Ok((path, text))
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
