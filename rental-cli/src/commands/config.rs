//! `config`: manages profiles. Sends no requests.

use crate::{
    commands::{candidates, collection, fields, group::with_examples},
    config::{
        private_file,
        profiles::{self, KEYS, Profile, Profiles},
        settings::{self, Secret, Settings, Source},
        values,
    },
    failure::Failure,
    output::{self, Output},
};
use clap::{Arg, ArgMatches, Command, ValueHint};
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Columns of the list of profiles.
const PROFILE: [&str; 6] = ["name", "current", "base_url", "organization", "admin_token_file", "api_key_file"];
/// Columns of the settings.
const SETTING: [&str; 3] = ["setting", "value", "from"];

/// Builds the group.
pub(crate) fn command() -> Command {
    let set = [
        "rental-cli config set staging --base-url https://staging.example.com --admin-token-file ~/staging.token",
        "rental-cli config set staging --organization ID --api-key-file ''",
    ];
    let choose = ["rental-cli config use staging"];
    let list = ["rental-cli config list"];
    let get = ["rental-cli config get", "rental-cli config get staging --json"];
    let remove = ["rental-cli config remove staging"];
    let path = ["rental-cli config path"];
    let sub = |name, about, examples: &[&str]| with_examples(Command::new(name).about(about), examples);
    let name = || {
        let name = Arg::new("name").value_name("NAME").value_parser(profiles::name).help("Name of the profile");
        candidates::named_profiles(name)
    };
    let command = Command::new("config")
        .about("Manage profiles: server, organization and secret files under one name")
        .subcommand(
            sub("set", "Create or change a profile; '' removes a setting", &set)
                .arg(name().required(true))
                .arg(text("organization", "ID").help("Organization for commands that need one"))
                .arg(
                    text("admin-token-file", "FILE")
                        .value_hint(ValueHint::FilePath)
                        .help("File that holds the admin token"),
                )
                .arg(text("api-key-file", "FILE").value_hint(ValueHint::FilePath).help("File that holds an API key")),
        )
        .subcommand(sub("use", "Make a profile the default", &choose).arg(name().required(true)))
        .subcommand(sub("list", "List profiles", &list).arg(fields::columns_among(PROFILE)))
        .subcommand(
            sub("get", "Show the effective settings and where each comes from", &get)
                .arg(name())
                .arg(fields::columns_among(SETTING)),
        )
        .subcommand(sub("remove", "Remove a profile; its secret files are kept", &remove).arg(name().required(true)))
        .subcommand(sub("path", "Print the path of the configuration file", &path));
    with_examples(command, &[set[0], choose[0], get[0]])
}

fn text(long: &'static str, placeholder: &'static str) -> Arg {
    Arg::new(long).long(long).value_name(placeholder)
}

/// Runs a subcommand.
pub(crate) fn run(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    let name = matches.try_get_one::<String>("name").ok().flatten().map(String::as_str);
    match (verb, name) {
        ("set", Some(name)) => set(name, matches, out),
        ("use", Some(name)) => {
            let mut profiles = Profiles::load()?;
            profiles.get(name)?;
            profiles.choose(name);
            saved(profiles, name, out, &format!("profile {name} is now the default"))
        }
        ("remove", Some(name)) => {
            let mut profiles = Profiles::load()?;
            profiles.get(name)?;
            profiles.remove(name);
            saved(profiles, name, out, &format!("profile {name} is removed"))
        }
        ("list", _) => list(out),
        ("get", name) => get(name, matches, out),
        ("path", _) => path(out),
        _ => Err(Failure::Usage(format!("no such command: {verb}"))),
    }
}

fn saved(profiles: Profiles, name: &str, out: &Output, note: &str) -> Result<(), Failure> {
    let path = profiles.save()?;
    out.note(note);
    if let Some(note) = Profiles::load()?
        .all()
        .find(|(known, _)| *known == name)
        .and_then(|(name, profile)| settings::overridden(name, profile, false))
    {
        out.note(&format!("note: {}", note.advice()));
    }
    if out.json {
        return out.json(&json!({"object": "profile", "name": name, "file": path}).to_string());
    }
    Ok(())
}

fn set(name: &str, matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let mut profiles = Profiles::load()?;
    let url = matches.get_one::<Url>("base_url").map(|url| url.as_str().trim_end_matches('/').to_owned());
    let mut given = vec![("base_url", url)];
    for key in &KEYS[1..] {
        let text = matches.get_one::<String>(&key.replace('_', "-"));
        given.push((key, text.cloned()));
    }
    if given.iter().all(|(_, text)| text.is_none()) {
        return Err(Failure::Usage("nothing to set: give at least one setting".into()));
    }
    for (key, text) in given {
        let Some(text) = text else { continue };
        match text.as_str() {
            "" => profiles.set(name, key, None),
            text if key.ends_with("_file") => {
                let path = absolute(text)?;
                warn(&path, out);
                profiles.set(name, key, Some(&path.to_string_lossy()));
            }
            text => {
                values::id(text).map_err(|problem| Failure::Usage(format!("--{key}: {problem}")))?;
                profiles.set(name, key, Some(text));
            }
        }
    }
    let next = match profiles.current() {
        Some(current) if current == name => String::new(),
        _ => format!("; next: rental-cli config use {name}, or --profile {name}"),
    };
    saved(profiles, name, out, &format!("profile {name} is saved{next}"))
}

/// Makes a path absolute, because a profile is used from any directory.
fn absolute(text: &str) -> Result<PathBuf, Failure> {
    std::path::absolute(text).map_err(|error| Failure::Io { doing: format!("find {text}"), error })
}

/// Warns about a problem of a secret file. Does not fail, because the user may correct it later.
fn warn(path: &Path, out: &Output) {
    if let Some(problem) = secret_file_problem(path) {
        out.note(&format!("warning: {problem}"));
    }
}

/// Describes the problem of a secret file: unreadable, empty, or readable by others.
pub(crate) fn secret_file_problem(path: &Path) -> Option<String> {
    let shown = path.display();
    match private_file::read(path) {
        Err(error) => Some(format!("cannot read {shown}: {error}")),
        Ok(text) if text.trim().is_empty() => Some(format!("{shown} is empty")),
        Ok(_) if private_file::readable_by_others(path) == Some(true) => {
            Some(format!("other users can read {shown}; run: chmod 600 {shown}"))
        }
        Ok(_) => None,
    }
}

fn columns(profile: &Profile) -> [Option<String>; 4] {
    let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    [
        profile.base_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned()),
        profile.organization.clone(),
        file(&profile.admin_token_file),
        file(&profile.api_key_file),
    ]
}

fn list(out: &Output) -> Result<(), Failure> {
    let profiles = Profiles::load()?;
    let is_current = |name: &str| profiles.current() == Some(name);
    if out.json {
        let object = |(name, profile): (&str, &Profile)| {
            let mut object = Map::from_iter([
                ("object".to_owned(), json!("profile")),
                ("name".to_owned(), json!(name)),
                ("current".to_owned(), json!(is_current(name))),
            ]);
            object.extend(KEYS.iter().zip(columns(profile)).map(|(key, value)| ((*key).to_owned(), json!(value))));
            Value::Object(object)
        };
        let data: Vec<Value> = profiles.all().map(object).collect();
        let list = json!({"object": "list", "has_more": false, "next_cursor": null, "data": data});
        return out.json(&list.to_string());
    }
    let row = |(name, profile): (&str, &Profile)| {
        let current = if is_current(name) { "yes" } else { "" };
        let rest = columns(profile).map(Option::unwrap_or_default);
        [name.to_owned(), current.to_owned()].into_iter().chain(rest).collect()
    };
    let rows: Vec<Vec<String>> = profiles.all().map(row).collect();
    if rows.is_empty() && out.is_terminal() {
        out.note("no profiles; next: rental-cli config set NAME --base-url URL");
        return Ok(());
    }
    columns_of_rows(out, &PROFILE, &rows)
}

/// Prints the effective settings as (name, value, origin).
fn get(name: Option<&str>, matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let settings = Settings::read(matches, name)?;
    let secret = |secret: &Option<Secret>| {
        secret.as_ref().map(|secret| match &secret.source {
            Source::Text(_) => ("(set)".to_owned(), secret.origin.to_string()),
            Source::File(path) => (path.display().to_string(), secret.origin.to_string()),
            Source::OfServer(own) => {
                let own = own.as_str().trim_end_matches('/');
                (format!("(not used: it is for {own})"), secret.origin.to_string())
            }
        })
    };
    let plain = |value: &str, origin: &dyn ToString| Some((value.to_owned(), origin.to_string()));
    let url = settings.base_url.value.as_str().trim_end_matches('/');
    let rows = [
        ("profile", settings.profile.as_ref().and_then(|set| plain(&set.value, &set.origin))),
        ("base_url", plain(url, &settings.base_url.origin)),
        ("organization", settings.organization.as_ref().and_then(|set| plain(&set.value, &set.origin))),
        ("admin_token", secret(&settings.admin_token)),
        ("api_key", secret(&settings.api_key)),
    ];
    for path in [&settings.admin_token, &settings.api_key].into_iter().flatten().filter_map(Secret::file) {
        warn(path, out);
    }
    if out.json {
        let value =
            |row: Option<(String, String)>| row.map(|(value, origin)| json!({"value": value, "origin": origin}));
        let rows = rows.into_iter().map(|(name, row)| (name.to_owned(), json!(value(row))));
        let object: Map<String, Value> = [("object".to_owned(), json!("settings"))].into_iter().chain(rows).collect();
        return out.json(&Value::Object(object).to_string());
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, row)| {
            let (value, origin) = row.unwrap_or_default();
            vec![name.to_owned(), value, origin]
        })
        .collect();
    columns_of_rows(out, &SETTING, &rows)
}

/// Prints rows with all of these columns: those that `--columns` names, else all.
fn columns_of_rows(out: &Output, names: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let columns = out.columns_or(names);
    let cell = |row: &Vec<String>, name: &&str| {
        let at = names.iter().position(|known| known == name);
        at.and_then(|at| row.get(at)).cloned().unwrap_or_default()
    };
    let rows: Vec<_> = rows.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect()).collect();
    out.rows(&columns, &rows)
}

fn path(out: &Output) -> Result<(), Failure> {
    let Some(path) = profiles::path() else {
        let problem = "there is no directory for the configuration file; set HOME, or RENTAL_CONFIG_FILE to a file";
        return Err(Failure::Config(problem.into()));
    };
    if out.json {
        return out.json(&json!({"object": "config_file", "path": path, "exists": path.exists()}).to_string());
    }
    output::print(&format!("{}\n", path.display()))
}
