//! The engines: a folder for each, and its two lines in this file. Programs find them through [`ENGINES`] only.

pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redb")]
pub mod redb;

use super::engine::{Place, Scheme};
use std::sync::Arc;

/// The engines that a URL can name.
pub static ENGINES: &[Scheme] = &[
    #[cfg(feature = "redb")]
    redb::SCHEME,
    #[cfg(feature = "postgres")]
    postgres::SCHEME,
];

/// Why a URL names no place of a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WrongUrl {
    /// No engine has such URLs.
    Unknown,
    /// What is wrong, without a value of the URL.
    Malformed(String),
}

/// The place that a URL names.
///
/// # Errors
/// See [`WrongUrl`].
pub fn place(url: &str) -> Result<Arc<dyn Place>, WrongUrl> {
    let found = ENGINES.iter().find_map(|scheme| (scheme.parse)(url));
    found.ok_or(WrongUrl::Unknown)?.map_err(WrongUrl::Malformed)
}

/// The forms of the URLs of these engines, for messages: `redb:PATH or postgres://USER@HOST:PORT/DATABASE`.
#[must_use]
pub fn url_forms(of: impl Fn(&Scheme) -> bool) -> String {
    ENGINES.iter().filter(|scheme| of(scheme)).map(|scheme| scheme.form).collect::<Vec<_>>().join(" or ")
}
