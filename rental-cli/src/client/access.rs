//! The two halves of the API, an organization's and the operator's, and the secret that each requires.
//!
//! Secrets come from the environment or from files, never from flags. They are never printed.

use crate::{
    config::{
        private_file,
        settings::{Origin, Secret, Source},
    },
    failure::Failure,
};
use rental_core::operations::api_keys::{KEY_PREFIX, OPERATOR_PREFIX};
use reqwest::header::HeaderValue;
use std::{io::ErrorKind, path::Path};

/// The beginnings of keys and tokens, which contain letters, digits and underscores only.
const PREFIXES: [&str; 3] = [KEY_PREFIX, OPERATOR_PREFIX, "rat_"];

/// A secret without what people paste with it: white space, a byte order mark, and of a key or token that a server made `Bearer` and
/// quotes.
fn bare(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim();
    let inner = text.trim_start_matches("Bearer ").trim_matches(['"', '\'', '`', '“', '”', '‘', '’', ' ']);
    if PREFIXES.iter().any(|prefix| inner.starts_with(prefix)) { inner } else { text }
}

/// A half of the API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    /// Resources of one organization; requires its API key.
    Organization,
    /// The operator's API; requires the admin token, or the token of an operator.
    Operator,
}

impl Access {
    /// Prefix of all paths.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Organization => "/v1",
            Self::Operator => "/admin/v1",
        }
    }

    /// Environment variable with the secret.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Organization => "RENTAL_API_KEY",
            Self::Operator => "RENTAL_ADMIN_TOKEN",
        }
    }

    /// Hint: how to store a valid secret in a profile, or to set it.
    fn login_hint(self) -> &'static str {
        match self {
            Self::Organization => {
                "store a key of the organization with `rental-cli login`, or set RENTAL_API_KEY to it; the operator creates keys with `rental-cli api-keys create`"
            }
            Self::Operator => {
                "store your token with `rental-cli login --operator`, or set RENTAL_ADMIN_TOKEN to it, or RENTAL_ADMIN_TOKEN_FILE to its file; the server printed the path of the first one at its first start"
            }
        }
    }

    /// Hint for this secret, which is missing or not valid. A variable goes before what `login` stores.
    fn hint_for(self, secret: Option<&Secret>) -> &'static str {
        let is_variable = secret.is_some_and(|secret| matches!(secret.origin, Origin::Variable(_)));
        if is_variable { self.hint() } else { self.login_hint() }
    }

    /// Hint: how to set a valid secret.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Organization => {
                "set RENTAL_API_KEY to a valid key of the organization; the operator creates keys with `rental-cli api-keys create`"
            }
            Self::Operator => {
                "set RENTAL_ADMIN_TOKEN, or set RENTAL_ADMIN_TOKEN_FILE to the file whose path the server printed at its first start, or to one with your token as an operator"
            }
        }
    }

    /// What people call the secret.
    fn secret(self) -> &'static str {
        match self {
            Self::Organization => "API key",
            Self::Operator => "admin token",
        }
    }

    /// Hint for a secret that a server refused: where it came from, and how to get a valid one.
    pub(crate) fn refused(self, secret: Option<&Secret>) -> String {
        let hint = self.hint_for(secret);
        let Some(secret) = secret else { return hint.to_owned() };
        let file = secret.file().map(|path| format!(" ({})", path.display())).unwrap_or_default();
        format!("the refused {} is from {}{file}; {hint}", self.secret(), secret.origin)
    }

    /// The failure for a file that is there and that this user may not read.
    fn denied(self, path: &Path, problem: String) -> Failure {
        let whose = private_file::only_reader(path).map_or_else(
            || "this user may not read it".to_owned(),
            |reader| format!("only the user {reader} may read it"),
        );
        let hint = match self {
            Self::Organization => {
                "run the command with sudo, or use an API key of your own: the operator creates one with `rental-cli api-keys create`"
            }
            Self::Operator => {
                "run the command with sudo, or use a token of your own: an owner creates one with `rental-cli operators create`"
            }
        };
        Failure::NoCredential { problem: format!("{problem}: {whose}"), hint }
    }

    /// Builds the `Authorization` header of a request to the server at `url`. It is marked as sensitive, which keeps it out of debug output.
    pub(crate) fn authorization(self, secret: Option<&Secret>, url: &str) -> Result<HeaderValue, Failure> {
        let missing = |problem: String| Failure::NoCredential { problem, hint: self.hint_for(secret) };
        let variable = self.variable();
        let Some(secret) = secret else { return Err(missing(format!("{variable} is not set"))) };
        let origin = &secret.origin;
        let text = match &secret.source {
            Source::Text(text) => {
                text.clone().into_string().map_err(|_| missing(format!("{origin} is not valid UTF-8")))?
            }
            Source::File(path) => private_file::read(path).map_err(|error| {
                let problem = format!("cannot read {} (from {origin}): {error}", path.display());
                if error.kind() == ErrorKind::PermissionDenied { self.denied(path, problem) } else { missing(problem) }
            })?,
            Source::OfServer(own) => {
                let own = own.as_str().trim_end_matches('/');
                return Err(Failure::NoCredential {
                    problem: format!("the {} of {origin} is for {own}, so it was not sent to {url}", self.secret()),
                    hint: match self {
                        Self::Organization => {
                            "to use the server of the profile, omit --base-url and unset RENTAL_BASE_URL; for the other server, set RENTAL_API_KEY, or use another profile"
                        }
                        Self::Operator => {
                            "to use the server of the profile, omit --base-url and unset RENTAL_BASE_URL; for the other server, set RENTAL_ADMIN_TOKEN, or use another profile"
                        }
                    },
                });
            }
        };
        let text = bare(&text);
        let mut header = HeaderValue::from_str(&format!("Bearer {text}"))
            .ok()
            .filter(|_| !text.is_empty())
            .ok_or_else(|| missing(format!("{origin} does not contain a key: it is empty, or it has line breaks")))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_loses_what_was_pasted_with_it() {
        for text in [
            "rk_live_a1",
            "\u{feff}rk_live_a1\r\n",
            "'rk_live_a1'",
            "\"rk_live_a1\"\n",
            "Bearer rk_live_a1",
            "“rk_live_a1”",
        ] {
            assert_eq!(bare(text), "rk_live_a1", "{text:?}");
        }
        assert_eq!(bare("\u{feff}\"op_live_b2\"\r\n"), "op_live_b2");
        assert_eq!(bare("'a-token-of-our-own'\r\n"), "'a-token-of-our-own'", "it may have quotes");
    }
}
