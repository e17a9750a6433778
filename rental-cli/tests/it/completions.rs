//! Completions, tried by completing: each shell loads the script and completes command lines.

use crate::{
    fake_server::{Ran, cli},
    terminal,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// What a line is completed to, and something of its neighbourhood that it must not be completed to.
const LINES: &[(&str, &[&str], &str)] = &[
    ("rental-cli vehi", &["vehicles"], "customers"),
    ("rental-cli vehicles ", &["create", "get", "list", "update"], "import"),
    ("rental-cli customers list --sta", &["--starting-after"], "--status"),
    ("rental-cli rentals list --stat", &["--status"], "--starting-after"),
    ("rental-cli api-keys create --scope r", &["read", "read_write"], "rotate"),
    ("rental-cli webhook-endpoints rotate-secret --ov", &["--overlap"], "--url"),
    ("rental-cli config s", &["set"], "get"),
];

/// Checks every line with `complete`, which gets the words of a line in one text and gives the candidates.
#[track_caller]
fn check(complete: impl Fn(&str) -> String) {
    for (line, wanted, unwanted) in LINES {
        let shown = complete(line);
        let found: BTreeSet<&str> = shown.lines().map(|line| line.split('\t').next().unwrap_or(line).trim()).collect();
        for word in *wanted {
            assert!(found.contains(word), "{line:?} is not completed to {word}: {shown:?}");
        }
        assert!(!found.contains(unwanted), "{line:?} is completed to {unwanted}: {shown:?}");
    }
}

/// A directory with the script of a shell. `None` where the shell is not installed.
fn script(shell: &str) -> Option<(TempDir, PathBuf)> {
    if Command::new(shell).arg("--version").output().is_err() {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{shell} is not installed");
        println!("skipped: {shell} is not installed, so its completions are not tried");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    let ran = Ran::of(&mut cli(&["completions", shell]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    fs::write(&file, ran.stdout).unwrap();
    Some((directory, file))
}

/// A shell that knows nothing of this user.
fn shell(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("ZDOTDIR", home).env("XDG_CONFIG_HOME", home).current_dir(home);
    command
}

#[test]
fn bash_completes_commands_flags_and_values_at_every_level() {
    /// Calls the function that the script registers, as bash does when TAB is pressed.
    const COMPLETE: &str = r#"source "$1"; registered=$(complete -p rental-cli); function=${registered##*-F }
        IFS=' ' read -ra COMP_WORDS <<< "$2"; [[ $2 == *' ' ]] && COMP_WORDS+=("")
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        "${function%% *}" rental-cli "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let Some((home, script)) = script("bash") else { return };
    check(|line| {
        let mut bash = shell("bash", home.path());
        let ran = Ran::of(bash.args(["--norc", "-c", COMPLETE, "bash"]).arg(&script).arg(line));
        assert_eq!(ran.stderr, "", "{line}");
        ran.stdout
    });
}

#[test]
fn zsh_completes_commands_flags_and_values_at_every_level() {
    /// The completion system works in the line editor only, so a shell on a terminal completes as soon as it has one.
    const START: &str = r#"autoload -Uz compinit; compinit -u -d "$ZDOTDIR/dump"; source "$ZDOTDIR/script"
        compadd() {
            if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
                local -a matches; builtin compadd -A matches "$@"; print -rl -- $matches >> "$ZDOTDIR/matches"
            fi
            builtin compadd "$@"
        }
        zle-line-init() { BUFFER=$LINE; CURSOR=$#BUFFER; zle complete-word; exit }
        zle -N zle-line-init"#;
    let Some((home, _)) = script("zsh") else { return };
    fs::write(home.path().join(".zshrc"), START).unwrap();
    check(|line| {
        let matches = home.path().join("matches");
        fs::write(&matches, "").unwrap();
        let (_, shown) = terminal::run(shell("zsh", home.path()).args(["-d", "-i"]).env("LINE", line), 80);
        let matches = fs::read_to_string(matches).unwrap();
        assert!(!matches.is_empty(), "{line:?} is not completed: {shown:?}");
        matches
    });
}

#[test]
fn fish_completes_commands_flags_and_values_at_every_level() {
    let Some((home, script)) = script("fish") else { return };
    check(|line| {
        let mut fish = shell("fish", home.path());
        let ran = Ran::of(fish.args(["-c", "source $argv[1]; complete -C $argv[2]"]).arg(&script).arg(line));
        assert_eq!(ran.stderr, "", "{line}");
        ran.stdout
    });
}
