//! The admin token: from the environment, from a file, or made at the first start.

use crate::{config::Config, edge};
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

/// Finds the admin token, or makes one beside the store at `store_path`.
pub(crate) fn admin_token(config: &Config, store_path: &Path) -> Result<AdminToken, String> {
    if let Ok(text) = std::env::var("RENTAL_ADMIN_TOKEN") {
        return checked(text, "RENTAL_ADMIN_TOKEN", None);
    }
    if let Some(path) = &config.admin_token_file {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        return checked(text.trim_end().to_owned(), &path.display().to_string(), Some(path.clone()));
    }
    let mut path = store_path.as_os_str().to_owned();
    path.push(".admin-token");
    let path = PathBuf::from(path);
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

/// A new token: `rat_` and 256 random bits.
pub(crate) fn generate() -> String {
    let digits = edge::secret_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("rat_{digits}")
}

/// Writes a file that only its owner can read; fails when it exists.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}
