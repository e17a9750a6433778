//! Errors of the command line that show no value: those of commands that take the URL of a store, which can have a password.

use clap::{
    Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::env;

/// Hides the arguments in an error of a `store` command. Each of them can be a part of a URL that lacks its quotes.
pub(crate) fn without_values(mut error: Error) -> Error {
    // Read from the raw arguments, because clap gives none for an invalid line.
    if !env::args_os().any(|arg| arg == "store") {
        return error;
    }
    let kinds: &[ContextKind] = match error.kind() {
        ErrorKind::UnknownArgument => &[ContextKind::InvalidArg],
        _ => &[ContextKind::InvalidValue, ContextKind::InvalidSubcommand],
    };
    for kind in kinds {
        // A flag, or a word that looks like a command.
        let is_word = |text: &str| text.starts_with("--") || text.bytes().all(|byte| byte.is_ascii_lowercase());
        if matches!(error.get(*kind), Some(ContextValue::String(text)) if *kind == ContextKind::InvalidValue || !is_word(text))
        {
            error.insert(*kind, ContextValue::String("…".into()));
        }
    }
    error
}
