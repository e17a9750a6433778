//! Variables of the environment.

use std::{env, ffi::OsString};

/// A variable that is there and not empty.
pub(crate) fn set(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}

/// The same as text.
pub(crate) fn text(variable: &str) -> Option<String> {
    set(variable).map(|value| value.to_string_lossy().into_owned())
}
