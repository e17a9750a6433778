//! All commands and global flags, and the dispatch of a parsed command line to its group.

use crate::{
    commands::{
        GROUPS, SINGLE_COMMANDS, candidates, config, doctor, fields,
        group::with_examples,
        login, notices,
        session::{Session, api},
        shell,
    },
    config::{
        profiles,
        settings::{BASE_URL_VARIABLE, DEFAULT_BASE_URL, Settings},
        values,
    },
    failure::Failure,
    output::{Output, jq::Filter, style},
};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Help shows examples first (clig.dev).
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

const ENVIRONMENT: &str = "\
Environment:
  RENTAL_BASE_URL             URL of the server; --base-url overrides it
  RENTAL_API_KEY              API key of an organization, for its own resources
  RENTAL_API_KEY_FILE         file that holds the API key
  RENTAL_ADMIN_TOKEN          admin token, or the token of an operator, for commands that are marked (operator)
  RENTAL_ADMIN_TOKEN_FILE     file that holds that token
  RENTAL_ORGANIZATION         id or name, for commands that need an organization; or --organization
  RENTAL_PROFILE              name of the profile; --profile overrides it
  RENTAL_CONFIG_FILE          file of profiles [default: ~/.config/rental/config.toml]
  RENTAL_WEBHOOK_SECRET_FILE  file with the secret that `listen` signs with
  RENTAL_PAGER, PAGER         command for lists that are longer than the terminal [default: less]; cat for none
  NO_COLOR                    turns colours off
  CLICOLOR_FORCE              colours messages without a terminal too

Precedence: flag, environment variable, profile (`rental-cli config`), default.

With --json, a command that fails prints nothing on stdout. The last line on stderr is one JSON object, \
{\"error\":{...}}, with type, code and message: the API's own error, or a local one. `doctor`, `store check` and \
`webhook-endpoints test` still print their report on stdout.

Exit codes:
  0  success
  1  any other failure
  2  wrong usage
  3  not found
  4  not authenticated
  5  permission denied
  6  invalid request, or conflict with existing data
  7  server unreachable
  8  rate limited
  9  server error
  130  interrupted";

/// For the commands of operators. No flag takes a secret.
const TOKEN: &str = "\
The token comes from the environment: RENTAL_ADMIN_TOKEN, or RENTAL_ADMIN_TOKEN_FILE with the name of its file.";

/// The complete command tree, for parsing, completions and manual pages.
pub(crate) fn command() -> Command {
    let command = Command::new("rental-cli")
        .version(concat!(env!("CARGO_PKG_VERSION"), " (", env!("RENTAL_COMMIT"), ")"))
        .about("Manage a rental fleet from the command line")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .args(global_args())
        .subcommands(
            GROUPS.iter().map(|group| (group.command)().arg_required_else_help(true).subcommand_required(true)),
        )
        .subcommands(SINGLE_COMMANDS.iter().map(|command| (command.command)()))
        .subcommand(login::command())
        .subcommand(doctor::command())
        .subcommand(config::command().arg_required_else_help(true).subcommand_required(true))
        .subcommands(shell::commands())
        .styles(style::HELP)
        .after_help(ENVIRONMENT);
    let examples = [
        "rental-cli organizations create --name 'Sunrise Rentals'",
        "rental-cli api-keys create --organization ID --scope read_write",
        "rental-cli vehicles create --name 'White Tesla' --daily-rate 89.50",
        "rental-cli rentals list --status ACTIVE --json",
    ];
    candidates::offered(framed(with_examples(command, &examples)))
}

/// What was parsed for the command at the end of a command line.
fn leaf(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, matches)| leaf(matches))
}

/// Runs the command that a parsed command line names.
pub(crate) fn dispatch(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, group_matches)) = matches.subcommand() else {
        return Err(Failure::Usage("no command given".into()));
    };
    let filter = matches.get_one::<String>("jq").map(|expression| Filter::compile(expression)).transpose()?;
    let out = Output::new(matches.get_flag("json"), matches.get_flag("quiet"), filter);
    let columns = fields::columns(leaf(group_matches));
    if matches.contains_id("jq") && !columns.is_empty() {
        return Err(Failure::Usage(
            "--jq filters the JSON, which has every field, and --columns chooses columns of the table: use one of them"
                .into(),
        ));
    }
    if out.json && !columns.is_empty() {
        return Err(Failure::Usage(
            "--json prints every field, and --columns chooses columns of the table: use one of them; --jq chooses members of the JSON, such as --jq '.data[] | [.id, .name]'"
                .into(),
        ));
    }
    let out = out.with_columns(columns);
    let out = if matches.get_flag("no_pager") { out.without_pager() } else { out };
    let Some(group) = GROUPS.iter().chain(SINGLE_COMMANDS).find(|group| group.name == name) else {
        return match name {
            "config" => config::run(group_matches, &out),
            "login" => login::run(group_matches, &out),
            "doctor" => doctor::run(group_matches, &out),
            _ => shell::run(name, group_matches, &out, command()),
        };
    };
    let settings = Settings::read(matches, None)?;
    if let Some(note) = settings.overridden() {
        out.note_to_person(&format!("note: {}", note.note()));
    }
    let session = Session::new(api(&settings, matches), out, settings);
    let done = (group.run)(group_matches, &session).map_err(|failure| session.with_names(failure));
    session.warn_of_damage();
    notices::tell(&session);
    done
}

fn global_args() -> [Arg; 9] {
    let global = |arg: Arg| arg.global(true).help_heading("Global options");
    [
        global(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print the API's response as JSON, with every field"),
        ),
        global(
            Arg::new("jq")
                .long("jq")
                .value_name("EXPRESSION")
                .help("Filter the JSON with an expression of jq, such as '.data[].id'"),
        ),
        global(
            Arg::new("debug")
                .long("debug")
                .action(ArgAction::SetTrue)
                .help("Show requests and responses on stderr, without secrets"),
        ),
        global(
            Arg::new("base_url")
                .long("base-url")
                .value_name("URL")
                .value_parser(values::base_url)
                .help(format!("URL of the server [env: {BASE_URL_VARIABLE}] [default: {DEFAULT_BASE_URL}]")),
        ),
        global(
            Arg::new("profile")
                .long("profile")
                .value_name("NAME")
                .value_parser(profiles::name)
                .help("Profile to use; see `rental-cli config` [env: RENTAL_PROFILE]"),
        ),
        global(
            Arg::new("color")
                .long("color")
                .value_name("WHEN")
                .value_parser(style::CHOICES)
                .default_value("auto")
                .hide_possible_values(true)
                .help("Colours: auto (on a terminal), always or never"),
        ),
        global(
            Arg::new("no_pager")
                .long("no-pager")
                .action(ArgAction::SetTrue)
                .help("Print long lists on a terminal without a pager [env: RENTAL_PAGER, PAGER]"),
        ),
        global(
            Arg::new("timeout")
                .long("timeout")
                .value_name("DURATION")
                .default_value("30s")
                .value_parser(values::timeout)
                .help("Time-out of each request: 30s, 2m"),
        ),
        global(
            Arg::new("quiet")
                .short('q')
                .long("quiet")
                .action(ArgAction::SetTrue)
                .help("Print results and errors only: no notes, no progress"),
        ),
    ]
}

fn framed(command: Command) -> Command {
    let is_group = command.has_subcommands() && command.get_name() != "rental-cli";
    let is_for_operators = command.get_about().is_some_and(|about| about.to_string().ends_with("(operator)"));
    // Of the commands of `store`, only `backup` asks a server.
    let asks_server = command.get_name() != "store";
    let command = if is_for_operators && asks_server { with_token(command) } else { command };
    command.help_template(TEMPLATE).disable_help_subcommand(is_group).mut_subcommands(framed)
}

/// Adds to the help of a command and of its subcommands where the token comes from.
fn with_token(command: Command) -> Command {
    command.after_help(TOKEN).mut_subcommands(with_token)
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
            for line in text.lines().skip(1).filter(|line| !line.contains(['|', '<', '>', '@'])) {
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
            // A file that holds one may be named, and a flag without a value holds nothing.
            let takes = |arg: &&Arg| arg.get_action().takes_values() && arg.get_value_names() != Some(&["FILE".into()]);
            for arg in command.get_arguments().filter(takes) {
                let long = arg.get_long().unwrap_or_default();
                let secret = ["secret", "token", "api-key", "password"].iter().any(|word| long.contains(word));
                assert!(!secret, "{} --{long}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }
}
