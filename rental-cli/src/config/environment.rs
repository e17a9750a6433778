//! Environment variables. An empty variable counts as unset.

use std::{env, ffi::OsString};

/// Returns the value of a variable; `None` if it is unset or empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the value as text; invalid UTF-8 is replaced.
pub(crate) fn text(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}
