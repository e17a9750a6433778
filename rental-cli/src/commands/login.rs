//! `login`: checks a key or token and stores it for later commands, in a file that only its owner can read.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        group::with_examples,
        kept_secret,
        session::{Session, api},
    },
    config::{
        private_file,
        profiles::{self, Profiles},
        settings::{DEFAULT_BASE_URL, Origin, Secret, Setting, Settings, Source, chosen},
    },
    failure::Failure,
    output::{Output, record::Record},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
#[cfg(unix)]
use std::os::unix::net::UnixStream;

/// Maximum bytes of a secret that is typed or piped.
const MAX_SECRET_BYTES: u64 = 4096;

/// Builds the command.
pub(crate) fn command() -> Command {
    let name = Arg::new("name")
        .value_name("NAME")
        .value_parser(profiles::name)
        .help("Profile to store it in, instead of the one in use; without any it is `default`");
    let operator = Arg::new("operator")
        .long("operator")
        .action(ArgAction::SetTrue)
        .help("Keep the admin token, or the token of an operator, instead of an API key");
    let examples = [
        "rental-cli login --base-url https://rental.example.com",
        "rental-cli login staging --operator < staging.token",
    ];
    let command = Command::new("login")
        .about("Check an API key and store it in a profile; it is typed, or read from stdin")
        .args([name, operator]);
    with_examples(command, &examples)
}

/// Runs it.
pub(crate) fn run(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let profiles = Profiles::load()?;
    let in_use = chosen(matches, &profiles).map(|chosen| chosen.value);
    let name = matches.get_one::<String>("name").cloned().or(in_use).unwrap_or_else(|| "default".to_owned());
    let name =
        profiles::name(&name).map_err(|wrong| Failure::Usage(format!("the name of the profile {name} {wrong}")))?;
    let name = name.as_str();
    let access = if matches.get_flag("operator") { Access::Operator } else { Access::Organization };
    let known = profiles.all().find(|(known, _)| *known == name).map(|(_, profile)| profile.clone());
    let mut settings = Settings::without_file(matches)?;
    let url = known.and_then(|profile| profile.base_url).filter(|_| settings.base_url.origin == Origin::Default);
    if let Some(value) = url {
        settings.base_url = Setting { value, origin: Origin::Profile(name.to_owned()) };
    }
    let (kind, key, what) = match access {
        Access::Organization => ("api-key", "api_key_file", "API key"),
        Access::Operator => ("token", "admin_token_file", "admin token"),
    };
    kept_secret::check_server(name, &settings)?;
    let path = kept_secret::key_file(name, kind)?;
    private_file::check_writable(&path).map_err(|error| kept_secret::cannot_write(&path, error))?;
    let text = ask(&format!("{what} for {}", settings.base_url.value.as_str().trim_end_matches('/')))?;
    let secret = Some(Secret { source: Source::Text(text.clone().into()), origin: Origin::Flag("login") });
    // A token from the environment is not the one to store.
    settings.admin_token = None;
    match access {
        Access::Organization => settings.api_key = secret,
        Access::Operator => settings.admin_token = secret,
    }
    let is_default = settings.base_url.origin == Origin::Default;
    let session = Session::new(api(&settings, matches), out.clone(), settings);
    let organization = check(access, &session).map_err(|failure| explained(access, failure, is_default))?;
    private_file::write_secret(&path, &text).map_err(|error| kept_secret::cannot_write(&path, error))?;
    let (id, called) = organization.unwrap_or_default();
    kept_secret::save(name, &id, Some((key, &path)), &session)?;
    if out.json {
        return out
            .value(&serde_json::json!({"object": "login", "profile": name, "organization_id": id, "file": path}));
    }
    let of = if called.is_empty() { String::new() } else { format!(" of {called}") };
    out.note(&format!("the {what}{of} works; it is in {}", path.display()));
    Ok(())
}

/// Asks the server whether the secret works. Returns id and name of the organization of an API key.
fn check(access: Access, session: &Session) -> Result<Option<(String, String)>, Failure> {
    match access {
        Access::Organization => {
            let me = Record::read(&session.send(&Request::get(access, &["me"]))?)?;
            Ok(me.text("organization_id").zip(me.text("organization_name")))
        }
        Access::Operator => {
            let query = vec![("limit".into(), "1".into())];
            session.send(&Request::get(access, &["organizations"]).with_query(query)).map(|_| None)
        }
    }
}

/// Says that nothing was stored, how the other kind of secret is, and that the default address was asked, if it was.
fn explained(access: Access, failure: Failure, is_default: bool) -> Failure {
    let hint = match access {
        Access::Organization => {
            "nothing was stored; check the API key. An admin token, or the token of an operator, needs `rental-cli login --operator`"
        }
        Access::Operator => {
            "nothing was stored; check the token. An API key needs `rental-cli login` without --operator"
        }
    };
    match failure {
        Failure::ErrorResponse(response) if is_default => {
            let address = format!("{hint}. The server was {DEFAULT_BASE_URL}; --base-url URL names another one");
            Failure::ErrorResponse(Box::new(response.with_credential(&address)))
        }
        Failure::ErrorResponse(response) => Failure::ErrorResponse(Box::new(response.with_credential(hint))),
        Failure::Unreachable { problem, .. } if is_default => Failure::Unreachable {
            problem,
            hint: "nothing was stored; this is the default address, because this profile has no server yet, and a new one does not take that of the profile in use: name its server with --base-url URL",
        },
        other => other,
    }
}

/// Reads a secret: from a terminal without showing it, else from stdin.
fn ask(what: &str) -> Result<String, Failure> {
    let failed = |error| Failure::Io { doing: format!("read the {what}"), error };
    let stdin = io::stdin();
    let mut text = String::new();
    if stdin.is_terminal() {
        write!(io::stderr(), "{what}: ").and_then(|()| io::stderr().flush()).map_err(failed)?;
        let hidden = Hidden::begin();
        let read = stdin.lock().take(MAX_SECRET_BYTES + 1).read_line(&mut text);
        drop(hidden);
        // The line feed that was typed was not shown either.
        let _ = writeln!(io::stderr());
        read.map_err(failed)?;
    } else {
        stdin.lock().take(MAX_SECRET_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    }
    if text.len() as u64 > MAX_SECRET_BYTES {
        let most = MAX_SECRET_BYTES / 1024;
        return Err(Failure::Usage(format!("the {what} is longer than {most} KiB; nothing was stored")));
    }
    match text.trim() {
        "" => Err(Failure::Usage(format!("no {what} was given; nothing was stored"))),
        text => Ok(text.to_owned()),
    }
}

/// A terminal that does not show what is typed, until this is dropped.
#[cfg(unix)]
struct Hidden(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Hidden {
    fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut hidden) = before.clone() {
            restore_at_signals(hidden.clone());
            hidden.local_modes.remove(LocalModes::ECHO);
            // A terminal that refuses shows what is typed.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &hidden);
        }
        Self(before)
    }
}

/// Puts the modes of the terminal back when a signal ends the program, which runs no destructors then: a shell that runs a script
/// leaves the terminal as it is. Does nothing where the system refuses, as the program ends by the signal without it.
#[cfg(unix)]
fn restore_at_signals(before: rustix::termios::Termios) {
    use rustix::termios::{OptionalActions, tcsetattr};
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
        low_level::{emulate_default_handler, pipe},
    };
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        let (before, ends) = (before.clone(), UnixStream::pair());
        let Ok((mut arrived, raised)) = ends else { return };
        if pipe::register(signal, raised).is_err() {
            return;
        }
        // It waits to the end of the program: from now on nothing else ends the program when this signal arrives.
        std::thread::spawn(move || {
            if arrived.read_exact(&mut [0]).is_ok() {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
                let _ = emulate_default_handler(signal);
            }
        });
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.0 {
            // The shell sets its own modes.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(not(unix))]
struct Hidden;

#[cfg(not(unix))]
impl Hidden {
    fn begin() -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::error_response::ErrorResponse;

    #[track_caller]
    fn check(failure: fn() -> Failure, is_default: bool, expected: &[&str], unexpected: &str) {
        for access in [Access::Organization, Access::Operator] {
            let hint = explained(access, failure(), is_default).problem_and_hint().1.unwrap_or_default();
            assert!(expected.iter().all(|text| hint.contains(text)) && !hint.contains(unexpected), "{hint}");
        }
    }

    // A black-box test cannot tell what listens at the default address of a machine.
    #[test]
    fn a_login_that_asked_the_default_address_says_how_to_name_another_server() {
        let unreachable = || Failure::Unreachable { problem: "cannot reach it".into(), hint: "run doctor" };
        check(unreachable, true, &["nothing was stored", "--base-url URL"], "doctor");
        check(unreachable, false, &["run doctor"], "--base-url");
        let refused = || {
            let body = br#"{"error":{"type":"authentication_error","code":"api_key_invalid","message":"No."}}"#;
            Failure::ErrorResponse(Box::new(ErrorResponse::read(401, body, String::new())))
        };
        check(refused, true, &["nothing was stored", "http://127.0.0.1:8080", "--base-url URL"], "stored;;");
        check(refused, false, &["nothing was stored"], "--base-url");
    }
}
