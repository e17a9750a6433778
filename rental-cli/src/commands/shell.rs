//! `completions` and `man`, generated from the command tree. They send no requests.

use crate::{
    commands::{candidates::VARIABLE, group::with_examples},
    failure::Failure,
    output::{self, Output},
};
use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, env::Shells};
use serde_json::json;
use std::path::{Path, PathBuf};

/// bash begins a new word at `@` and `:`, so that the program would be asked for the end of an email address, a URL, `redb:PATH` or
/// `toll:NUMBER`.
const WORDS_OF_BASH: &str = r#"
_rental_cli_complete() {
    local line=${COMP_LINE:0:COMP_POINT}
    local typed=${line##*[[:space:]]} joined= at=$COMP_CWORD reply
    if [[ $typed == ?*@* || $typed == ?*:* ]]; then
        while [[ $joined != "$typed" && at -gt 0 ]]; do
            joined=${COMP_WORDS[at]}$joined
            at=$((at - 1))
        done
        if [[ $joined == "$typed" ]]; then
            local before=${typed%"$2"}
            local COMP_WORDS=("${COMP_WORDS[@]:0:at+1}" "$typed") COMP_CWORD=$((at + 1))
            _clap_complete_rental_cli "$1" "$typed" "${COMP_WORDS[at]}"
            for reply in "${!COMPREPLY[@]}"; do
                COMPREPLY[reply]=${COMPREPLY[reply]#"$before"}
            done
            return
        fi
    fi
    _clap_complete_rental_cli "$@"
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _rental_cli_complete rental-cli
else
    complete -o nospace -o bashdefault -F _rental_cli_complete rental-cli
fi
"#;

/// Builds both commands.
pub(crate) fn commands() -> [Command; 2] {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(clap::value_parser!(Shell))
        .help("Shell that loads the script");
    let completions = Command::new("completions").about("Print a completion script for a shell").arg(shell);
    let examples =
        ["rental-cli completions bash > /etc/bash_completion.d/rental-cli", "rental-cli completions fish | source"];
    let directory = Arg::new("to")
        .long("to")
        .value_name("DIRECTORY")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Write one page per command into this directory instead");
    let man = Command::new("man").about("Print the manual page").arg(directory);
    [
        with_examples(completions, &examples),
        with_examples(man, &["rental-cli man | man -l -", "rental-cli man --to /usr/local/share/man/man1"]),
    ]
}

/// Runs one of them; `tree` is the command tree that they describe.
pub(crate) fn run(name: &str, matches: &ArgMatches, out: &Output, tree: Command) -> Result<(), Failure> {
    match name {
        "completions" => completions(matches, out),
        "man" => man(matches, out, tree),
        _ => Err(Failure::Usage(format!("no such command: {name}"))),
    }
}

/// Prints the script that makes a shell ask this program, found on the search path, for candidates.
fn completions(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let Some(shell) = matches.get_one::<Shell>("shell").copied() else {
        return Err(Failure::Usage("no shell given".into()));
    };
    let (mut script, name) = (Vec::new(), "rental-cli");
    let shells = Shells::builtins();
    let known = shells.completer(&shell.to_string());
    let known = known.ok_or_else(|| Failure::Usage(format!("there are no completions for {shell}")))?;
    known
        .write_registration(VARIABLE, name, name, name, &mut script)
        .map_err(|error| Failure::Io { doing: "make the completion script".into(), error })?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Bash {
        script.push_str(WORDS_OF_BASH);
    }
    if out.json {
        let script = json!({"object": "completions", "shell": shell.to_string(), "script": script});
        return out.json(&script.to_string());
    }
    output::print(&script)
}

fn man(matches: &ArgMatches, out: &Output, tree: Command) -> Result<(), Failure> {
    if let Some(directory) = matches.get_one::<PathBuf>("to") {
        return man_pages(directory, out, tree);
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(tree).render(&mut page);
    rendered.map_err(|error| Failure::Io { doing: "render the manual page".into(), error })?;
    let page = String::from_utf8_lossy(&page);
    if out.json {
        return out.json(&json!({"object": "manual", "name": "rental-cli.1", "page": page}).to_string());
    }
    output::print(&page)
}

fn man_pages(directory: &Path, out: &Output, tree: Command) -> Result<(), Failure> {
    let written = clap_mangen::generate_to(tree, directory);
    written.map_err(|error| Failure::Io { doing: format!("write to {}", directory.display()), error })?;
    if out.json {
        return out.json(&json!({"object": "manual", "directory": directory}).to_string());
    }
    out.note(&format!("the pages were written to {}", directory.display()));
    Ok(())
}
