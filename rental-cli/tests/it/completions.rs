//! Completions, tried by completing: each shell loads the script and completes command lines.

use crate::{
    fake_server::{FakeServer, Ran, Reply, cli, ok},
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
    ("rental-cli tolls import --format ", &["ezpass-ny"], "nyc"),
    ("rental-cli trigger rental.c", &["rental.created"], "vehicle.created"),
    ("rental-cli vehicles list --columns na", &["name"], "plate"),
    ("rental-cli rentals list --status A", &["ACTIVE", "APPROVED"], "NEW"),
    ("rental-cli config use s", &["staging"], "production"),
    ("rental-cli vehicles list --profile pro", &["production"], "staging"),
    ("rental-cli vehicles get 0", &["0190d0f2-7c3a-7cc0-8000-000000000001"], "White Tesla"),
    ("rental-cli rentals list --vehicle ", &["KYT7293", "Cart"], "White Tesla"),
    ("rental-cli vehicles get Ca", &["Cart"], "KYT7293"),
    ("rental-cli calendar-feeds get ", &["KYT7293"], "Cart"),
    ("rental-cli calendar-feeds poll KY", &["KYT7293"], "Cart"),
    ("rental-cli blocks update KY", &["KYT7293"], "Cart"),
    ("rental-cli blocks update ", &["KYT7293"], "Cart"),
    ("rental-cli webhook-endpoints get ", &["https://example.com/hooks"], "0190d0f2-7c3a-7cc0-8000-000000000004"),
    ("rental-cli deliveries list --endpoint https://ex", &["https://example.com/hooks"], "https://example.org/hooks"),
    ("rental-cli vehicles get KY", &["KYT7293"], "0190d0f2-7c3a-7cc0-8000-000000000001"),
    ("rental-cli vehicles get 0", &["0190d0f2-7c3a-7cc0-8000-000000000001"], "KYT7293"),
    ("rental-cli tolls list --customer ", &["ada.okafor@example.com"], "0190d0f2-7c3a-7cc0-8000-000000000001"),
    ("rental-cli customers get ada", &["ada.okafor@example.com"], "Ada Okafor"),
    ("rental-cli rentals get B", &["B-1001"], "0190d0f2-7c3a-7cc0-8000-000000000001"),
    ("rental-cli tolls get 6", &["61231234567"], "0190d0f2-7c3a-7cc0-8000-000000000001"),
    ("rental-cli violations get 9", &["9123456789"], "0190d0f2-7c3a-7cc0-8000-000000000001"),
    ("rental-cli invoices create --line t", &["toll:"], "violation:"),
    ("rental-cli store check re", &["redb:"], "postgres://"),
    ("rental-cli api ", &["GET", "POST", "PUT", "PATCH", "DELETE"], "get"),
    ("rental-cli api GET /v1/v", &["/v1/vehicles", "/v1/violations"], "/v1/rentals"),
    ("rental-cli api GET /", &["/v1/availability", "/v1/me", "/admin/v1/organizations"], "/v1/organizations"),
];

const PROFILES: &str = "[profiles.staging]\n[profiles.production]\n";
const VEHICLES: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"object":"vehicle","id":"0190d0f2-7c3a-7cc0-8000-000000000001","name":"White Tesla","status":"rented","plate":"KYT7293"},{"object":"vehicle","id":"0190d0f2-7c3a-7cc0-8000-000000000002","name":"Cart"}]}"#;
/// An object that has everything by which an object is called. The shells get it from every path but that of vehicles.
const ANY: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"0190d0f2-7c3a-7cc0-8000-000000000001","full_name":"Ada Okafor","email":"ada.okafor@example.com","booking_id":"B-1001","transaction_id":"61231234567","summons_number":"9123456789"}]}"#;

/// A calendar feed or block of the first vehicle.
const OF_VEHICLE: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"0190d0f2-7c3a-7cc0-8000-000000000003","vehicle_id":"0190d0f2-7c3a-7cc0-8000-000000000001"}]}"#;

/// An active block of the first vehicle, and a cancelled one of the second.
const BLOCKS: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"0190d0f2-7c3a-7cc0-8000-000000000003","vehicle_id":"0190d0f2-7c3a-7cc0-8000-000000000001","status":"active"},{"id":"0190d0f2-7c3a-7cc0-8000-000000000005","vehicle_id":"0190d0f2-7c3a-7cc0-8000-000000000002","status":"cancelled"}]}"#;
const ENDPOINTS: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"0190d0f2-7c3a-7cc0-8000-000000000004","url":"https://example.com/hooks","status":"enabled"}]}"#;

/// The server that a line asks.
fn server_of(line: &str) -> FakeServer {
    if line.contains("calendar-feeds") || line.contains("blocks") {
        return FakeServer::new(vec![ok(if line.contains("blocks") { BLOCKS } else { OF_VEHICLE }), ok(VEHICLES)]);
    }
    if line.contains("endpoint") {
        return FakeServer::new(vec![ok(ENDPOINTS)]);
    }
    FakeServer::new(vec![ok(if line.contains("vehicle") { VEHICLES } else { ANY })])
}

/// Checks every line with `complete`, which gets the words of a line in one text and gives the candidates.
#[track_caller]
fn check(complete: impl Fn(&str) -> String) {
    fn words(shown: &str) -> BTreeSet<&str> {
        shown.lines().map(|line| line.split('\t').next().unwrap_or(line).trim()).collect()
    }
    for (line, wanted, unwanted) in LINES {
        let mut shown = complete(line);
        // A busy machine can take longer than the 0.3 s that a completion waits for the server.
        for _ in 0..5 {
            if wanted.iter().all(|word| words(&shown).contains(word)) {
                break;
            }
            shown = complete(line);
        }
        let found = words(&shown);
        for word in *wanted {
            assert!(found.contains(word), "{line:?} is not completed to {word}: {shown:?}");
        }
        assert!(!found.contains(unwanted), "{line:?} is completed to {unwanted}: {shown:?}");
    }
}

/// Whether a program is there that completions of a shell are tried with.
fn is_installed(program: &str, shell: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{program} is not installed");
        println!("skipped: {program} is not installed, so completions of {shell} are not tried");
    }
    is_there
}

/// A directory with the script of a shell. `None` where the shell is not installed.
fn script(shell: &str) -> Option<(TempDir, PathBuf)> {
    if !is_installed(shell, shell) {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script");
    let ran = Ran::of(&mut cli(&["completions", shell]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    fs::write(&file, ran.stdout).unwrap();
    Some((directory, file))
}

/// A shell that knows nothing of this user but its profiles, and finds the program.
fn shell(program: &str, home: &Path, server: &FakeServer) -> Command {
    let mut command = Command::new(program);
    let own = Path::new(env!("CARGO_BIN_EXE_rental-cli")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&others))).unwrap();
    fs::write(home.join("config.toml"), PROFILES).unwrap();
    command.env_clear().env("PATH", path).env("RENTAL_CONFIG_FILE", home.join("config.toml"));
    command.env("RENTAL_BASE_URL", &server.base_url).env("RENTAL_API_KEY", "rk_live_test");
    command.env("RENTAL_ADMIN_TOKEN", "t");
    command.env("HOME", home).env("ZDOTDIR", home).env("XDG_CONFIG_HOME", home).current_dir(home);
    command
}

#[test]
fn bash_completes_commands_flags_and_values_at_every_level() {
    /// Calls the function that the script registers, as bash does when TAB is pressed.
    const COMPLETE: &str = r#"source "$1"; registered=$(complete -p rental-cli); function=${registered##*-F }
        COMP_LINE=$2; COMP_POINT=${#2}; typed=${2##* }
        "${function%% *}" rental-cli "$typed"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let Some((home, script)) = script("bash") else { return };
    check(|line| {
        let mut bash = shell("bash", home.path(), &server_of(line));
        let ran = Ran::of(bash.args(["--norc", "-c", COMPLETE, "bash"]).arg(&script).arg(line));
        assert_eq!(ran.stderr, "", "{line}");
        ran.stdout
    });
}

/// bash itself begins a new word at `@` and `:`, so a person has to press TAB.
#[test]
fn bash_completes_words_with_at_signs_and_colons() {
    bash_completes_on_tab("customers get ada.okafor@ex", "ada.okafor@example.com", ANY);
    bash_completes_on_tab("webhook-endpoints get https://ex", "https://example.com/hooks", ENDPOINTS);
    bash_completes_on_tab("invoices create --line toll:6", "toll:61231234567", ANY);
    bash_completes_on_tab("store check redb:/et", "redb:/etc/", ANY);
    bash_completes_on_tab("config set x --admin-token-file /et", "file /etc/", ANY);
}

#[track_caller]
fn bash_completes_on_tab(line: &str, completed: &str, answer: &str) {
    let Some((home, script)) = script("bash") else { return };
    let start = home.path().join("start");
    fs::write(&start, format!("source {}\nPS1='ready> '\n", script.display())).unwrap();
    let typed = format!("rental-cli {line}\t\u{1}echo \nexit\n");
    let mut shown = String::new();
    for _ in 0..5 {
        let server = FakeServer::new(vec![ok(answer)]);
        let mut bash = shell("bash", home.path(), &server);
        bash.args(["--noprofile", "--rcfile"]).arg(&start).arg("-i");
        shown = terminal::typing_after(&mut bash, 200, "ready> ", &typed).1;
        if shown.contains(completed) {
            return;
        }
    }
    panic!("{shown:?}");
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
        let server = server_of(line);
        let matches = home.path().join("matches");
        fs::write(&matches, "").unwrap();
        let (_, shown) = terminal::run(shell("zsh", home.path(), &server).args(["-d", "-i"]).env("LINE", line), 80);
        let matches = fs::read_to_string(matches).unwrap();
        assert!(!matches.is_empty(), "{line:?} is not completed: {shown:?}");
        matches
    });
}

#[test]
fn fish_completes_commands_flags_and_values_at_every_level() {
    let Some((home, script)) = script("fish") else { return };
    check(|line| {
        let mut fish = shell("fish", home.path(), &server_of(line));
        let ran = Ran::of(fish.args(["-c", "source $argv[1]; complete -C $argv[2]"]).arg(&script).arg(line));
        assert_eq!(ran.stderr, "", "{line}");
        ran.stdout
    });
}

/// What a shell asks the program for when the last of these words is completed.
fn candidates(command: &mut Command, words: &[&str]) -> Ran {
    command.env("RENTAL_CLI_COMPLETE", "fish").args(["--", "rental-cli"]).args(words);
    Ran::of(command)
}

#[test]
fn an_id_is_offered_with_its_name_from_the_server_of_the_line() {
    let server = FakeServer::new(vec![ok(VEHICLES)]);
    let mut command = cli(&[]);
    command.env("RENTAL_API_KEY", "rk_live_test");
    let ran = candidates(&mut command, &["--base-url", &server.base_url, "vehicles", "update", ""]);
    assert!(ran.stdout.contains("KYT7293\tWhite Tesla, rented\n"), "{ran:?}");
    assert_eq!(server.asked()[0].line, "GET /v1/vehicles?limit=100");
}

#[test]
fn without_a_key_or_an_answer_nothing_is_offered_and_nothing_said() {
    let server = FakeServer::new(vec![Reply::Silence]);
    let ran = candidates(cli(&[]).env("RENTAL_BASE_URL", &server.base_url), &["vehicles", "get", "0"]);
    assert_eq!((ran.code, ran.stdout.trim(), ran.stderr.as_str()), (Some(0), "", ""));
    assert_eq!(server.asked().len(), 0);
    let started = std::time::Instant::now();
    let ran = candidates(&mut server.command(&[]), &["vehicles", "get", "0"]);
    assert_eq!((ran.code, ran.stdout.trim(), ran.stderr.as_str()), (Some(0), "", ""));
    // The server would be silent for minutes; starting the program alone takes seconds on a busy machine.
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
}

/// Names with spaces, and with what else a shell takes for itself.
const NAMES: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"id":"0190d0f2-7c3a-7cc0-8000-000000000001","name":"White Model 3"},{"id":"0190d0f2-7c3a-7cc0-8000-000000000002","name":"Sun & Sea's \"$1\""},{"id":"0190d0f2-7c3a-7cc0-8000-000000000003","full_name":"Grace Hopper"},{"id":"0190d0f2-7c3a-7cc0-8000-000000000004","full_name":"Grace Kelly"}]}"#;

/// A line on which TAB is pressed, and the last word that the program gets then. `\t` in a line is another TAB.
const QUOTED: &[(&str, &str)] = &[
    ("vehicles get 'Whi", "White Model 3"),
    ("vehicles get \"Whi", "White Model 3"),
    ("vehicles get Whi", "White Model 3"),
    (r"vehicles get White\ M", "White Model 3"),
    ("vehicles get 'White M", "White Model 3"),
    ("vehicles get \"White M", "White Model 3"),
    ("rentals list --vehicle=Whi", "--vehicle=White Model 3"),
    ("rentals list --vehicle='White M", "--vehicle=White Model 3"),
    ("events list --organization 'Sun", "Sun & Sea's \"$1\""),
    ("events list --organization \"Sun", "Sun & Sea's \"$1\""),
    ("events list --organization Sun", "Sun & Sea's \"$1\""),
    (r"customers get Grace\ H", "Grace Hopper"),
    ("customers get 'Grace K", "Grace Kelly"),
    ("customers get Gr\tK", "Grace Kelly"),
];

/// Checks what the program gets when a person presses TAB and ENTER. `complete` gets a line in which each TAB is a `\t`, and gives what
/// is shown; the shell shows each argument as `got<ARGUMENT>`.
#[track_caller]
fn check_quoted(complete: impl Fn(&str, &FakeServer) -> String) {
    for (line, word) in QUOTED {
        let mut shown = String::new();
        let wanted = format!("got<{word}>");
        for _ in 0..3 {
            let server = FakeServer::new(vec![ok(NAMES)]);
            shown = complete(&format!("rental-cli {line}\t\nexit\n"), &server);
            if shown.contains(&wanted) {
                break;
            }
        }
        assert!(shown.contains(&wanted), "{line:?} does not give {word}: {shown:?}");
    }
}

/// A shell that gets a controlling terminal, without which fish is not interactive, and that is ended where it would wait for the end of
/// a quote for ever.
fn interactive(program: &str, home: &Path, server: &FakeServer) -> Command {
    let mut command = shell("timeout", home, server);
    command.args(["--signal=KILL", "60", "setsid", "--ctty", program]);
    command
}

/// The directory with the script of a shell that [`interactive`] can start.
fn script_of_interactive(shell: &str) -> Option<(TempDir, PathBuf)> {
    script(shell).filter(|_| is_installed("timeout", shell) && is_installed("setsid", shell))
}

/// Shows its arguments instead of the program, which answers the shell only.
const SHOW_ARGUMENTS: &str = r#"rental-cli() {
    if [ -n "$RENTAL_CLI_COMPLETE" ]; then command rental-cli "$@"; else printf 'got<%s>\n' "$@"; fi
}
"#;

#[test]
fn bash_completes_names_with_spaces_in_the_quotes_that_are_open() {
    let Some((home, script)) = script_of_interactive("bash") else { return };
    let start = home.path().join("start");
    fs::write(&start, format!("source {}\nPS1='ready> '\n{SHOW_ARGUMENTS}", script.display())).unwrap();
    check_quoted(|typed, server| {
        let mut bash = interactive("bash", home.path(), server);
        bash.args(["--noprofile", "--rcfile"]).arg(&start).arg("-i");
        terminal::typing_after(&mut bash, 200, "ready> ", typed).1
    });
}

#[test]
fn zsh_completes_names_with_spaces_in_the_quotes_that_are_open() {
    let Some((home, _)) = script_of_interactive("zsh") else { return };
    let start = r#"autoload -Uz compinit; compinit -u -d "$ZDOTDIR/dump"; source "$ZDOTDIR/script"; PS1='ready> '
        "#;
    fs::write(home.path().join(".zshrc"), format!("{start}\n{SHOW_ARGUMENTS}")).unwrap();
    check_quoted(|typed, server| {
        let mut zsh = interactive("zsh", home.path(), server);
        terminal::typing_after(zsh.args(["-d", "-i"]), 200, "ready> ", typed).1
    });
}

#[test]
fn fish_completes_names_with_spaces_in_the_quotes_that_are_open() {
    const START: &str = "function fish_prompt; echo 'ready> '; end
        function fish_greeting; end
        function rental-cli
            if set -q RENTAL_CLI_COMPLETE; command rental-cli $argv; else; printf 'got<%s>\\n' $argv; end
        end\n";
    let Some((home, script)) = script_of_interactive("fish") else { return };
    let start = home.path().join("start");
    fs::write(&start, format!("{START}source {}\n", script.display())).unwrap();
    check_quoted(|typed, server| {
        let mut fish = interactive("fish", home.path(), server);
        fish.args(["-i", "-C"]).arg(format!("source {}", start.display()));
        terminal::typing_after(&mut fish, 200, "ready> ", typed).1
    });
}

#[test]
fn an_organization_is_offered_by_id_and_by_name_as_a_word_of_the_shell() {
    const ORGANIZATIONS: &str = r#"{"object":"list","has_more":false,"next_cursor":null,"data":[{"object":"organization","id":"0190d0f2-7c3a-7cc0-8000-000000000000","name":"Sun & Sea"}]}"#;
    for (shell, typed, offered) in [
        ("fish", "Sun", "Sun & Sea\t0190d0f2"),
        ("fish", "'Sun", "Sun & Sea\t0190d0f2"),
        ("bash", "Sun", "Sun\\ \\&\\ Sea\n"),
        ("bash", r"Sun\ ", "Sun\\ \\&\\ Sea\n"),
        ("bash", "'Sun &", "Sun & Sea\n"),
    ] {
        let server = FakeServer::new(vec![ok(ORGANIZATIONS)]);
        let mut command = server.command(&[]);
        command.env("RENTAL_ADMIN_TOKEN", "t").env("RENTAL_CLI_COMPLETE", shell);
        command.env("_RENTAL_CLI_REPLACED", typed.trim_start_matches('\''));
        let line = format!("rental-cli events list --organization {typed}");
        let words = ["rental-cli", "events", "list", "--organization", typed];
        let words = if shell == "bash" { vec![line.as_str()] } else { words.to_vec() };
        let ran = Ran::of(command.arg("--").args(words));
        assert!(ran.stdout.contains(offered), "{shell}, {typed}: {ran:?}");
    }
}
