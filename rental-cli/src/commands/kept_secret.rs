//! Keeps a new API key in a file that only its owner can read, or in a profile, instead of showing it.

use crate::{
    commands::session::Session,
    config::{
        private_file,
        profiles::{self, Profiles},
        settings::{Origin, Setting, Settings},
    },
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};

/// Adds `--to` and `--save-profile`.
pub(super) fn add_flags(command: Command) -> Command {
    let to = Arg::new("to")
        .long("to")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .conflicts_with("save_profile")
        .help("Write the key to this file (mode 0600) instead of showing it");
    command.arg(to).arg(save_profile("its server, organization and key"))
}

/// Builds `--save-profile`.
pub(super) fn save_profile(what: &str) -> Arg {
    Arg::new("save_profile")
        .long("save-profile")
        .value_name("NAME")
        .value_parser(profiles::name)
        .help(format!("Save {what} in this profile"))
}

/// What becomes of a new key.
pub(super) enum Keeper {
    /// It is shown.
    Shown,
    /// It is written to a file.
    File(PathBuf),
    /// It is written to a file that this profile names.
    Profile(String, PathBuf),
}

impl Keeper {
    /// Reads the flags. Fails if the file cannot be written, because a key is shown only once. `replaces`: the file may
    /// exist.
    pub(super) fn read(matches: &ArgMatches, replaces: bool, session: &Session) -> Result<Self, Failure> {
        let keeper = match (matches.get_one::<PathBuf>("to"), matches.get_one::<String>("save_profile")) {
            (Some(path), _) => Self::File(path.clone()),
            (None, Some(name)) => Self::Profile(name.clone(), key_file(name, "api-key")?),
            (None, None) => return Ok(Self::Shown),
        };
        if let Self::File(path) = &keeper
            && !replaces
            && path.exists()
        {
            let problem = format!("{} exists", path.display());
            return Err(Failure::AlreadyExists { problem, hint: "choose another file, or move this one" });
        }
        if let Self::Profile(name, _) = &keeper {
            check_server(name, &session.settings)?;
        }
        if let Self::File(path) | Self::Profile(_, path) = &keeper {
            private_file::check_writable(path).map_err(|error| cannot_write(path, error))?;
        }
        Ok(keeper)
    }

    /// Prints the response to a request for a key, and keeps the key. The response of an earlier request has none.
    pub(super) fn shown_once(&self, response: &str, session: &Session) -> Result<(), Failure> {
        let record = Record::read(response)?;
        let Some(key) = record.text("key") else {
            session.show(response)?;
            session.out.note(
                "This request was already carried out, so its key is not shown again; `rotate` creates a new one.",
            );
            return Ok(());
        };
        let organization = record.text("organization_id").unwrap_or_default();
        let kept = match self {
            Self::Shown => {
                session.show(response)?;
                session.out.note("The key is shown only once: store it now. Its holder sets it as RENTAL_API_KEY.");
                return Ok(());
            }
            Self::File(path) => private_file::write_secret(path, &key)
                .map_err(|error| cannot_write(path, error))
                .map(|()| format!("the key is in {0}: RENTAL_API_KEY_FILE={0} for rental-cli, RENTAL_API_KEY=\"$(cat {0})\" for programs", path.display())),
            Self::Profile(name, path) => private_file::write_secret(path, &key)
                .map_err(|error| cannot_write(path, error))
                .and_then(|()| save(name, &organization, Some(("api_key_file", path)), session))
                .map(|()| format!("the key is in {}", path.display())),
        };
        match kept {
            Ok(note) => {
                session.show(&record.without("key"))?;
                session.out.note(&note);
                Ok(())
            }
            // The only copy.
            Err(failure) => session.show(response).and(Err(failure)),
        }
    }
}

/// Fails if a profile is for another server than that of these settings, or if the file of profiles is invalid. The commands
/// check it before they do anything.
pub(super) fn check_server(name: &str, settings: &Settings) -> Result<(), Failure> {
    let profiles = Profiles::load()?;
    let own = profiles.all().find(|(known, _)| *known == name).and_then(|(_, profile)| profile.base_url.as_ref());
    let Setting { value, origin } = &settings.base_url;
    let [own, used] = [own.unwrap_or(value), value].map(|url| url.as_str().trim_end_matches('/'));
    if own == used {
        return Ok(());
    }
    let from = if *origin == Origin::Default { String::new() } else { format!(" (from {origin})") };
    Err(Failure::AlreadyExists {
        problem: format!("profile {name} is for {own}, and this command uses {used}{from}; nothing was done"),
        hint: "to use the server of the profile, add --profile with its name, omit --base-url and unset RENTAL_BASE_URL, RENTAL_API_KEY, RENTAL_ADMIN_TOKEN; for the other server, choose another name, or move the profile with `rental-cli config set NAME --base-url URL`",
    })
}

/// Saves the server and the organization of a session in a profile, and the file of a secret under its key. The first
/// profile is the default.
pub(super) fn save(
    name: &str,
    organization: &str,
    secret: Option<(&str, &Path)>,
    session: &Session,
) -> Result<(), Failure> {
    let settings = &session.settings;
    check_server(name, settings)?;
    let mut profiles = Profiles::load()?;
    profiles.set(name, "base_url", Some(settings.base_url.value.as_str().trim_end_matches('/')));
    if !organization.is_empty() {
        profiles.set(name, "organization", Some(organization));
    }
    let token = settings.admin_token.as_ref().and_then(|token| token.file());
    let token = token.and_then(|path| std::path::absolute(path).ok());
    for (key, path) in secret.into_iter().chain(token.as_deref().map(|path| ("admin_token_file", path))) {
        profiles.set(name, key, Some(&path.to_string_lossy()));
    }
    let is_first = profiles.current().is_none();
    if is_first {
        profiles.choose(name);
    }
    let is_default = is_first || profiles.current() == Some(name);
    profiles.save()?;
    let how = if is_default { "it is the default".to_owned() } else { format!("use it with --profile {name}") };
    session.out.note(&format!("profile {name} is saved; {how}"));
    Ok(())
}

/// The file of a profile's secret, beside the file of profiles.
pub(super) fn key_file(name: &str, kind: &str) -> Result<PathBuf, Failure> {
    let file = profiles::path().and_then(|path| std::path::absolute(path).ok());
    let directory = file.as_deref().and_then(Path::parent).ok_or_else(|| {
        Failure::Config("there is no directory for the key; set HOME, or RENTAL_CONFIG_FILE to a file".into())
    })?;
    Ok(directory.join("keys").join(format!("{name}.{kind}")))
}

pub(super) fn cannot_write(path: &Path, error: std::io::Error) -> Failure {
    Failure::Io { doing: format!("write {}", path.display()), error }
}
