//! Who speaks to the server, an organization or the operator, and the secret that shows it.
//!
//! Secrets come from the environment or from a file that it names, never from flags, and are printed nowhere.

use crate::failure::Failure;
use reqwest::header::HeaderValue;
use std::{env, ffi::OsStr, fs::File, io::Read as _};

/// Longest file that can hold a secret.
const FILE_MAX_BYTES: u64 = 64 * 1024;

/// Which half of the API a command speaks to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    /// An organization's own resources, with its API key.
    Organization,
    /// The operator's, with the admin token.
    Operator,
}

impl Access {
    /// What every path of this half begins with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Organization => "/v1",
            Self::Operator => "/admin/v1",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::Organization => "RENTAL_API_KEY",
            Self::Operator => "RENTAL_ADMIN_TOKEN",
        }
    }

    /// How to get a secret that the server accepts.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Organization => {
                "set RENTAL_API_KEY to a live key of the organization; the operator makes one with `rental-cli api-keys create`"
            }
            Self::Operator => {
                "set RENTAL_ADMIN_TOKEN, or RENTAL_ADMIN_TOKEN_FILE to the file that the server named when it first started"
            }
        }
    }

    /// The `Authorization` header, marked as sensitive so that it is in no debug output.
    pub(crate) fn authorization(self) -> Result<HeaderValue, Failure> {
        let missing = |problem: String| Failure::NoCredential { problem, hint: self.hint() };
        let variable = self.variable();
        let file_variable = format!("{variable}_FILE");
        let secret = match (set(variable), set(&file_variable)) {
            (Some(secret), _) => secret.into_string().map_err(|_| missing(format!("{variable} is not text")))?,
            (None, Some(path)) => read(&path).map_err(|error| {
                missing(format!("cannot read {}, which {file_variable} names: {error}", path.to_string_lossy()))
            })?,
            (None, None) => return Err(missing(format!("{variable} is not set"))),
        };
        let secret = secret.trim();
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}"))
            .ok()
            .filter(|_| !secret.is_empty())
            .ok_or_else(|| missing(format!("{variable} does not hold a key: it is empty or has line breaks in it")))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// A variable that is there and not empty.
fn set(variable: &str) -> Option<std::ffi::OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

fn read(path: &OsStr) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
