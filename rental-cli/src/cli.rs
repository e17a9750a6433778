//! The command tree, and the way from a parsed command line to the group that carries it out.

use crate::{
    api::Api,
    commands::{self, GROUPS},
    failure::Failure,
    output::Output,
    session::Session,
    value,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use reqwest::Url;
use std::{env, time::Duration};

/// Examples before everything else (clig.dev).
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

const BASE_URL_VARIABLE: &str = "RENTAL_BASE_URL";
const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";

const ENVIRONMENT: &str = "\
Environment:
  RENTAL_BASE_URL     where the server is, unless --base-url says it
  RENTAL_API_KEY      an organization's key, for its own resources
  RENTAL_ADMIN_TOKEN  the operator's token, for what is marked (operator)
  RENTAL_API_KEY_FILE, RENTAL_ADMIN_TOKEN_FILE  files that hold them

Exit codes:
  0  done
  1  another failure
  2  wrong usage
  3  not found
  4  not authenticated
  5  not permitted
  6  invalid, or in conflict with what is there
  7  server not reached
  8  too many requests
  9  fault of the server";

/// The whole tree.
pub(crate) fn command() -> Command {
    let command = Command::new("rental-cli")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The rental platform at the prompt")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .args(global_args())
        .subcommands(
            GROUPS.iter().map(|group| (group.command)().arg_required_else_help(true).subcommand_required(true)),
        )
        .subcommands(commands::shell::commands())
        .after_help(ENVIRONMENT);
    let examples = [
        "rental-cli organizations create --name 'Sunrise Rentals'",
        "rental-cli api-keys create --organization ID --scope read_write",
        "rental-cli vehicles create --name 'White Tesla' --daily-rate 89.50",
        "rental-cli rentals list --status ACTIVE --json",
    ];
    framed(with_examples(command, &examples))
}

/// Adds examples, which stand before the usage.
pub(crate) fn with_examples(command: Command, examples: &[&str]) -> Command {
    command.before_help(format!("Examples:\n  {}", examples.join("\n  ")))
}

/// Carries out a parsed command line.
pub(crate) fn dispatch(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, group_matches)) = matches.subcommand() else {
        return Err(Failure::Usage("no command given".into()));
    };
    let out = Output::new(matches.get_flag("json"), matches.get_flag("quiet"));
    let Some(group) = GROUPS.iter().find(|group| group.name == name) else {
        return commands::shell::run(name, group_matches, &out);
    };
    let timeout = matches.get_one::<Duration>("timeout").copied().unwrap_or(Duration::from_secs(30));
    (group.run)(group_matches, &Session { api: Api::new(base_url(matches)?, timeout), out })
}

/// The flag, else the environment, else a server on this machine. Not left to clap, whose usage lines would show a flag
/// that nobody typed.
fn base_url(matches: &ArgMatches) -> Result<Url, Failure> {
    if let Some(url) = matches.get_one::<Url>("base_url") {
        return Ok(url.clone());
    }
    let set = env::var(BASE_URL_VARIABLE).ok().filter(|text| !text.is_empty());
    let url = value::base_url(set.as_deref().unwrap_or(DEFAULT_BASE_URL));
    url.map_err(|problem| Failure::Usage(format!("{BASE_URL_VARIABLE} is not a base URL: {problem}")))
}

fn global_args() -> [Arg; 4] {
    let global = |arg: Arg| arg.global(true).help_heading("Global options");
    [
        global(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the answer of the API as JSON")),
        global(
            Arg::new("base_url")
                .long("base-url")
                .value_name("URL")
                .value_parser(value::base_url)
                .help(format!("Where the server is [env: {BASE_URL_VARIABLE}] [default: {DEFAULT_BASE_URL}]")),
        ),
        global(
            Arg::new("timeout")
                .long("timeout")
                .value_name("DURATION")
                .default_value("30s")
                .value_parser(value::timeout)
                .help("How long to wait for an answer"),
        ),
        global(
            Arg::new("quiet")
                .short('q')
                .long("quiet")
                .action(ArgAction::SetTrue)
                .help("Print no notes on stderr, only errors"),
        ),
    ]
}

fn framed(command: Command) -> Command {
    let is_group = command.has_subcommands() && command.get_name() != "rental-cli";
    command.help_template(TEMPLATE).disable_help_subcommand(is_group).mut_subcommands(framed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let text = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            assert!(text.starts_with("Examples:\n  "), "{path}");
            command.get_subcommands().for_each(|inner| check(inner, &path));
        }
        check(&command(), "");
    }

    #[test]
    fn the_examples_of_every_command_are_accepted() {
        fn check(command: &Command) {
            let text = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().skip(1).filter(|line| !line.contains(['|', '>', '@'])) {
                // Quotes hold no spaces of their own here once they are replaced.
                let words: Vec<String> = split(line);
                assert!(super::command().try_get_matches_from(&words).is_ok(), "{line}");
            }
            command.get_subcommands().for_each(check);
        }
        fn split(line: &str) -> Vec<String> {
            let parts = line.trim().split('\'').enumerate();
            let mut words = vec![String::new()];
            for (at, part) in parts {
                if at % 2 == 1 {
                    words.last_mut().unwrap().push_str(part);
                    continue;
                }
                for (n, piece) in part.split(' ').enumerate() {
                    if n > 0 {
                        words.push(String::new());
                    }
                    words.last_mut().unwrap().push_str(piece);
                }
            }
            words
        }
        check(&command());
    }

    #[test]
    fn no_flag_takes_a_secret() {
        fn check(command: &Command) {
            for arg in command.get_arguments() {
                let long = arg.get_long().unwrap_or_default();
                let secret = ["secret", "token", "api-key", "password"].iter().any(|word| long.contains(word));
                assert!(!secret, "{} --{long}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }
}
