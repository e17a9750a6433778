//! Other words for commands and flags, so that an unknown one leads to the one that was meant. clap finds only words with
//! similar letters: `blocks` for `bookings`, `--plate` for `--rate`.

use clap::{
    Arg, Command, Error,
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
    (&["show", "view", "read", "describe", "info", "status"], "get"),
    (&["status", "info", "verify", "validate", "fsck"], "check"),
    (&["add", "new", "make", "insert"], "create"),
    (&["edit", "change", "set", "modify", "patch"], "update"),
    (&["rm", "remove", "del", "destroy", "drop"], "delete"),
    (&["free", "availability"], "available"),
    (&["refund"], "credit"),
    (&["cancel", "delete"], "void"),
    (&["assign", "charge"], "attach"),
];

/// Words that people try for flags, and the flags that they mean. A flag counts where the command has it.
const FLAGS: &[(&[&str], &str)] = &[
    (&["from", "start"], "start-date"),
    (&["to", "until", "end"], "end-date"),
    (&["car"], "vehicle"),
    (&["driver", "renter", "client"], "customer"),
    (&["amount"], "line"),
    (&["price"], "final-price"),
    (&["price"], "daily-rate"),
    (&["tag", "transponder"], "transponder-number"),
    (&["port", "host", "server", "address"], "base-url"),
    (&["force", "confirm"], "yes"),
    (&["format", "output"], "json"),
    (&["fields", "select"], "columns"),
];

/// Names in the tip of an unknown command or flag the one that was meant.
pub(crate) fn with_tip(mut error: Error, mut tree: Command) -> Error {
    tree.build();
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let command = named(&tree, &usage);
    match (error.kind(), error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word)), _) => {
            match meant(word, command) {
                Some(meant) => {
                    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant.to_owned()]));
                }
                // Of all commands there are too many for a line.
                None if command.get_name() != tree.get_name()
                    && error.get(ContextKind::SuggestedSubcommand).is_none() =>
                {
                    let known = command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
                    let tip = format!(
                        "the commands of `{}` are {}",
                        command.get_bin_name().unwrap_or_default(),
                        known.collect::<Vec<_>>().join(", ")
                    );
                    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                }
                None if command.get_name() == tree.get_name() => {
                    if let Some(example) = with_verb(word, command) {
                        let tip = format!("the verb comes after what it is about: `{example}`");
                        // clap finds `listen` for `list`.
                        error.remove(ContextKind::SuggestedSubcommand);
                        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                    }
                }
                None => {}
            }
        }
        (ErrorKind::UnknownArgument, _, Some(ContextValue::String(flag))) => {
            let tip = match meant_flags(flag, command) {
                flags if !flags.is_empty() => Some(ContextValue::Strings(flags)),
                _ => error.get(ContextKind::SuggestedArg).filter(|found| is_similar(flag, found)).cloned(),
            };
            // The usage of clap has the flag that it found.
            error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
            match tip {
                Some(tip) => error.insert(ContextKind::SuggestedArg, tip),
                None => error.remove(ContextKind::SuggestedArg),
            };
        }
        _ => {}
    }
    error
}

/// A command that ends in a word, for those who begin with the verb: `rental-cli vehicles list` for `list`.
fn with_verb(word: &str, tree: &Command) -> Option<String> {
    let word = word.to_lowercase();
    let has_word = |group: &&Command| !group.is_hide_set() && group.find_subcommand(&word).is_some();
    // An example about vehicles is understood by all; the first group is for operators only.
    let vehicles = tree.find_subcommand("vehicles").filter(has_word);
    let group = vehicles.or_else(|| tree.get_subcommands().find(has_word))?;
    Some(format!("{} {} {word}", tree.get_name(), group.get_name()))
}

/// The flags of a command that an unknown one means: those that have all its words (`--rate`: `--daily-rate`), else what people call so.
fn meant_flags(unknown: &str, command: &Command) -> Vec<String> {
    let unknown = unknown.trim_start_matches('-').to_lowercase();
    let known: Vec<&str> =
        command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(Arg::get_long).collect();
    let has_words = |flag: &&&str| unknown.split('-').all(|word| flag.split('-').any(|own| own == word));
    let with_words: Vec<String> = known.iter().filter(has_words).map(|flag| format!("--{flag}")).collect();
    if !with_words.is_empty() {
        return with_words;
    }
    let others = FLAGS.iter().filter(|(words, flag)| words.contains(&unknown.as_str()) && known.contains(flag));
    others.map(|(_, flag)| format!("--{flag}")).collect()
}

/// Whether a flag that clap found begins as the unknown one does.
fn is_similar(unknown: &str, found: &ContextValue) -> bool {
    let first = |flag: &str| flag.trim_start_matches('-').chars().next().map(|letter| letter.to_ascii_lowercase());
    matches!(found, ContextValue::String(found) if first(found) == first(unknown))
}

/// The subcommand of a command that a word means.
fn meant(word: &str, group: &Command) -> Option<&'static str> {
    let word = word.to_lowercase();
    let known = SYNONYMS.iter().filter(|(words, _)| words.contains(&word.as_str()));
    known.map(|(_, name)| *name).find(|name| group.find_subcommand(name).is_some())
}

/// The command with an unknown word, by its usage: `Usage: rental-cli vehicles [OPTIONS] <COMMAND>`.
fn named<'a>(tree: &'a Command, usage: &str) -> &'a Command {
    let words = usage.split_whitespace().skip_while(|word| *word != tree.get_name()).skip(1);
    words
        .map_while(|word| Some(word).filter(|word| !word.starts_with(['[', '<', '-'])))
        .fold(tree, |command, word| command.find_subcommand(word).unwrap_or(command))
}
