//! Who speaks to the server, an organization or the operator, and the secret that shows it.
//!
//! Secrets come from the environment or from a file that it or a profile names, never from flags, and are printed
//! nowhere.

use crate::{
    config::{
        private_file,
        settings::{Secret, Source},
    },
    failure::Failure,
};
use reqwest::header::HeaderValue;

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

    /// The variable that holds its secret.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Organization => "RENTAL_API_KEY",
            Self::Operator => "RENTAL_ADMIN_TOKEN",
        }
    }

    /// How to get a secret that the server accepts.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Organization => {
                "set RENTAL_API_KEY to a valid key of the organization; the operator creates keys with `rental-cli api-keys create`"
            }
            Self::Operator => {
                "set RENTAL_ADMIN_TOKEN, or set RENTAL_ADMIN_TOKEN_FILE to the file whose path the server printed at its first start"
            }
        }
    }

    /// The `Authorization` header, marked as sensitive so that it is in no debug output.
    pub(crate) fn authorization(self, secret: Option<&Secret>) -> Result<HeaderValue, Failure> {
        let missing = |problem: String| Failure::NoCredential { problem, hint: self.hint() };
        let variable = self.variable();
        let Some(secret) = secret else { return Err(missing(format!("{variable} is not set"))) };
        let origin = &secret.origin;
        let text = match &secret.source {
            Source::Text(text) => {
                text.clone().into_string().map_err(|_| missing(format!("{origin} is not valid UTF-8")))?
            }
            Source::File(path) => private_file::read(path)
                .map_err(|error| missing(format!("cannot read {} (from {origin}): {error}", path.display())))?,
        };
        let text = text.trim();
        let mut header = HeaderValue::from_str(&format!("Bearer {text}"))
            .ok()
            .filter(|_| !text.is_empty())
            .ok_or_else(|| missing(format!("{origin} does not contain a key: it is empty, or it has line breaks")))?;
        header.set_sensitive(true);
        Ok(header)
    }
}
