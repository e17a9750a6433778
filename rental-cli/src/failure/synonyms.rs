//! Other words for commands, so that an unknown command leads to the one that was meant. clap finds only words with
//! similar letters: `blocks` for `bookings`.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Words that people try, and the commands that they mean. A word counts where the command has such a subcommand.
const SYNONYMS: &[(&[&str], &str)] = &[
    (&["booking", "bookings", "reservation", "reservations", "trips"], "rentals"),
    (&["car", "cars", "fleet"], "vehicles"),
    (&["customer", "client", "clients", "driver", "drivers", "renters", "users", "people"], "customers"),
    (&["ticket", "tickets", "fine", "fines", "summonses", "citations"], "violations"),
    (&["org", "orgs", "tenant", "tenants"], "organizations"),
    (&["key", "keys", "api-key", "apikeys", "tokens"], "api-keys"),
    (&["webhook", "webhooks", "endpoints", "hooks"], "webhook-endpoints"),
    (&["credits", "credit", "refunds", "credit-note"], "credit-notes"),
    (&["calendar", "calendars", "ical", "feeds"], "calendar-feeds"),
    (&["blockouts", "maintenance"], "blocks"),
    (&["whoami", "status", "account"], "me"),
    (&["backup", "backups", "database", "db"], "store"),
    (&["request", "curl", "raw"], "api"),
    (&["profile", "profiles", "settings"], "config"),
    (&["completion"], "completions"),
    (&["ls", "all", "index", "search", "find"], "list"),
    (&["show", "view", "read", "describe", "info"], "get"),
    (&["add", "new", "make", "insert"], "create"),
    (&["edit", "change", "set", "modify", "patch"], "update"),
    (&["rm", "remove", "del", "destroy", "drop"], "delete"),
    (&["free", "availability"], "available"),
    (&["refund"], "credit"),
    (&["cancel", "delete"], "void"),
    (&["assign", "charge"], "attach"),
];

/// Names in the tip of an unknown command the one that was meant.
pub(crate) fn with_tip(mut error: Error, tree: &Command) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    if let Some(meant) = meant(word, group(tree, &usage)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant.to_owned()]));
    }
    error
}

/// The subcommand of a command that a word means.
fn meant(word: &str, group: &Command) -> Option<&'static str> {
    let word = word.to_lowercase();
    let known = SYNONYMS.iter().filter(|(words, _)| words.contains(&word.as_str()));
    known.map(|(_, name)| *name).find(|name| group.find_subcommand(name).is_some())
}

/// The command whose subcommand is unknown, by its usage: `Usage: rental-cli vehicles [OPTIONS] <COMMAND>`.
fn group<'a>(tree: &'a Command, usage: &str) -> &'a Command {
    let words = usage.split_whitespace().skip_while(|word| *word != tree.get_name()).skip(1);
    words
        .map_while(|word| Some(word).filter(|word| !word.starts_with(['[', '<'])))
        .fold(tree, |command, word| command.find_subcommand(word).unwrap_or(command))
}
