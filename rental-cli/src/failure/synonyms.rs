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
    (REMOVE, "revoke"),
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

/// Words that people try to remove something.
const REMOVE: &[&str] = &["delete", "rm", "remove", "del", "destroy", "drop"];

/// What has no command or flag of its own: the group, the words that people try, and what to do instead.
const INSTEAD: &[(&str, &[&[&str]], &str)] = &[
    (
        "vehicles",
        &[REMOVE, &["archive", "retire"]],
        "rentals and tolls name a vehicle, so it stays: `rental-cli vehicles update PLATE --status unavailable` takes it out of service, and `--clear plate --clear transponder-number` frees its numbers",
    ),
    (
        "customers",
        &[REMOVE, &["anonymize", "forget"]],
        "rentals and invoices name a customer, so the record stays: `rental-cli customers erase EMAIL` removes the personal data",
    ),
    (
        "rentals",
        &[REMOVE, &["cancel", "--cancel"]],
        "`rental-cli rentals update BOOKING --status CANCELLED` cancels a rental and frees its vehicle",
    ),
    (
        "rentals",
        &[&["complete", "return", "--complete", "--return", "--returned"]],
        "`rental-cli rentals update BOOKING --status COMPLETED` records the return",
    ),
    (
        "rentals",
        &[&["approve", "confirm", "--approve", "--confirm"]],
        "`rental-cli rentals update BOOKING --status APPROVED`",
    ),
    (
        "rentals",
        &[&["activate", "start", "handover", "--activate"]],
        "`rental-cli rentals update BOOKING --status ACTIVE` records the handover",
    ),
    ("rentals", &[&["extend"]], "`rental-cli rentals update BOOKING --end-date DAY` extends a rental"),
    (
        "blocks",
        &[REMOVE, &["cancel", "--cancel"]],
        "`rental-cli blocks update ID --status cancelled` frees the vehicle",
    ),
    (
        "tolls",
        &[REMOVE],
        "a toll stays: `rental-cli tolls attach NUMBER --customer ''` decides that no customer pays it",
    ),
    (
        "violations",
        &[REMOVE],
        "a violation stays: `rental-cli violations attach NUMBER --customer ''` decides that no customer pays it",
    ),
    (
        "credit-notes",
        &[REMOVE, &["void", "cancel"]],
        "a credit note stays: `rental-cli credit-notes rebill NUMBER` lets what it credits be billed again",
    ),
];

/// What to do instead of an unknown command or flag of a group.
fn instead(word: &str, command: &Command) -> Option<&'static str> {
    let name = command.get_bin_name().unwrap_or_default();
    let word = word.to_lowercase();
    let of_group = |group: &str| name.split(' ').nth(1) == Some(group);
    let mut known = INSTEAD.iter().filter(|(group, ..)| of_group(group));
    known.find(|(_, words, _)| words.iter().any(|words| words.contains(&word.as_str()))).map(|(.., advice)| *advice)
}

/// Names in the tip of an unknown command or flag the one that was meant, or what to do instead.
pub(crate) fn with_tip(mut error: Error, mut tree: Command) -> Error {
    tree.build();
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let command = named(&tree, &usage);
    match (error.kind(), error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word)), _) => {
            let word = word.clone();
            for_subcommand(&mut error, &word, command, &tree);
        }
        (ErrorKind::UnknownArgument, _, Some(ContextValue::String(flag))) => {
            let flag = flag.clone();
            for_flag(&mut error, &flag, command);
        }
        _ => {}
    }
    error
}

/// Replaces the tips of clap by one of our own.
fn tell(error: &mut Error, tip: String) {
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

fn for_subcommand(error: &mut Error, word: &str, command: &Command, tree: &Command) {
    if let Some(advice) = instead(word, command) {
        return tell(error, advice.to_owned());
    }
    if let Some(meant) = meant(word, command) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant.to_owned()]));
        return;
    }
    if command.get_name() == tree.get_name() {
        // clap finds `listen` for `list`.
        if let Some(example) = with_verb(word, command) {
            return tell(error, format!("the verb comes after what it is about: `{example}`"));
        }
    }
    match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(found)) => {
            let nearest = ContextValue::Strings(nearest(word, found));
            error.insert(ContextKind::SuggestedSubcommand, nearest);
        }
        // Of all commands there are too many for a line.
        None if command.get_name() != tree.get_name() => {
            let known = command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
            let known = known.collect::<Vec<_>>().join(", ");
            tell(error, format!("the commands of `{}` are {known}", command.get_bin_name().unwrap_or_default()));
        }
        _ => {}
    }
}

/// Of the words that clap found, those with the fewest edits: `vehicles` for `vehciles`, and not `deliveries`.
fn nearest(word: &str, found: &[String]) -> Vec<String> {
    let edits = |one: &String| strsim::damerau_levenshtein(word, one);
    let fewest = found.iter().map(edits).min();
    found.iter().filter(|one| Some(edits(one)) == fewest).cloned().collect()
}

fn for_flag(error: &mut Error, flag: &str, command: &Command) {
    let tip = match meant_flags(flag, command) {
        flags if !flags.is_empty() => Some(ContextValue::Strings(flags)),
        _ => error.get(ContextKind::SuggestedArg).filter(|found| is_similar(flag, found)).cloned(),
    };
    // The usage of clap has the flag that it found.
    error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    // clap offers to take an unknown flag as the name of an object: `-- --notes`.
    error.remove(ContextKind::Suggested);
    match (instead(flag, command), tip) {
        (Some(advice), _) => tell(error, advice.to_owned()),
        (None, Some(tip)) => drop(error.insert(ContextKind::SuggestedArg, tip)),
        (None, None) => drop(error.remove(ContextKind::SuggestedArg)),
    }
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
