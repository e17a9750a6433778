//! Flags of other servers, so that one of them leads to the flag of this server. clap finds only those with similar letters.

use clap::{
    Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Flags that people try, and what does the same here.
const MEANT: &[(&[&str], &str)] = &[
    (&["port", "host", "bind", "addr", "address", "http"], "--listen ADDRESS:PORT"),
    (&["data", "data-dir", "dir", "db", "database", "database-url", "path", "file"], "--store URL"),
    (&["cert", "certificate", "tls-certificate"], "--tls-cert FILE"),
    (&["key", "private-key"], "--tls-key FILE"),
    (&["https", "tls", "ssl"], "--tls-cert FILE and --tls-key FILE"),
    (&["token", "admin-token", "password"], "--admin-token-file FILE"),
    (&["verbose", "debug", "log"], "--log-level debug"),
    (&["json"], "--log-format json"),
    (
        &["config", "config-file"],
        "flags, or environment variables such as RENTAL_LISTEN: there is no configuration file",
    ),
    (&["daemon", "detach"], "a service manager: docs/deploy.md has a unit of systemd"),
];

/// What to use instead of an unknown flag.
pub(crate) fn meant(error: &Error) -> Option<&'static str> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let word = flag.trim_start_matches('-');
    let found = MEANT.iter().find(|(words, _)| words.contains(&word));
    found.filter(|_| error.kind() == ErrorKind::UnknownArgument).map(|(_, meant)| *meant)
}
