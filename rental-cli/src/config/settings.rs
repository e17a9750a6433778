//! Effective settings of a run: server, organization, secrets.
//!
//! Each setting has its own precedence: flag, environment, profile, default. Profiles never contain secrets, only the paths
//! of files with secrets.

use crate::{
    config::{
        environment::{self, text},
        profiles::{self, Profiles},
        values,
    },
    failure::Failure,
};
use clap::ArgMatches;
use reqwest::Url;
use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

pub(crate) const BASE_URL_VARIABLE: &str = "RENTAL_BASE_URL";
pub(crate) const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";
const ORGANIZATION_VARIABLE: &str = "RENTAL_ORGANIZATION";
const PROFILE_VARIABLE: &str = "RENTAL_PROFILE";

/// Where a value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// A flag, without the hyphens.
    Flag(&'static str),
    /// An environment variable.
    Variable(String),
    /// A profile.
    Profile(String),
    /// `current` in the configuration file.
    File,
    /// The built-in default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Variable(name) => f.write_str(name),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::File => f.write_str("config use"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// A secret, or the file that holds it. No `Debug`, so that it cannot be printed by accident.
#[derive(Clone)]
pub(crate) enum Source {
    /// The secret itself.
    Text(OsString),
    /// Path of the file.
    File(PathBuf),
}

/// A secret and its origin.
#[derive(Clone)]
pub(crate) struct Secret {
    pub(crate) source: Source,
    pub(crate) origin: Origin,
}

impl Secret {
    /// Path of the file that holds the secret, if it is in a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.source {
            Source::File(path) => Some(path),
            Source::Text(_) => None,
        }
    }
}

/// Effective settings of a run.
pub(crate) struct Settings {
    /// Path of the configuration file, which need not exist.
    pub(crate) file: Option<PathBuf>,
    pub(crate) profile: Option<Setting<String>>,
    pub(crate) base_url: Setting<Url>,
    pub(crate) organization: Option<Setting<String>>,
    pub(crate) api_key: Option<Secret>,
    pub(crate) admin_token: Option<Secret>,
}

impl Settings {
    /// Reads flags, environment and profile. `name` overrides the chosen profile, for `config get NAME`.
    pub(crate) fn read(matches: &ArgMatches, name: Option<&str>) -> Result<Self, Failure> {
        let profiles = Profiles::load()?;
        let chosen = match name {
            Some(name) => Some(Setting { value: name.to_owned(), origin: Origin::Flag("profile") }),
            None => chosen(matches, &profiles),
        };
        let profile = match &chosen {
            Some(chosen) => Some((chosen.value.as_str(), profiles.get(&chosen.value)?)),
            None => None,
        };
        let of_profile = |name: &str| Origin::Profile(name.to_owned());
        let organization = match (environment_organization()?, profile) {
            (Some(set), _) => Some(set),
            (None, Some((name, profile))) => {
                profile.organization.clone().map(|value| Setting { value, origin: of_profile(name) })
            }
            (None, None) => None,
        };
        let secret = |variable: &str, file: fn(&profiles::Profile) -> Option<&PathBuf>| {
            from_environment(variable).or_else(|| {
                let (name, profile) = profile?;
                Some(Secret { source: Source::File(file(profile)?.clone()), origin: of_profile(name) })
            })
        };
        Ok(Self {
            base_url: base_url(matches, profile)?,
            organization,
            api_key: secret("RENTAL_API_KEY", |profile| profile.api_key_file.as_ref()),
            admin_token: secret("RENTAL_ADMIN_TOKEN", |profile| profile.admin_token_file.as_ref()),
            file: profiles.path().map(Path::to_owned),
            profile: chosen,
        })
    }

    /// Settings without the configuration file, for `doctor` when the file is invalid.
    pub(crate) fn without_file(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            file: profiles::path(),
            profile: None,
            base_url: base_url(matches, None)?,
            organization: environment_organization()?,
            api_key: from_environment("RENTAL_API_KEY"),
            admin_token: from_environment("RENTAL_ADMIN_TOKEN"),
        })
    }

    /// Describes the variables that override a profile chosen by `--profile`; `None` if there are none.
    pub(crate) fn overridden(&self) -> Option<String> {
        let asked = self.profile.as_ref().filter(|profile| matches!(profile.origin, Origin::Flag(_)))?;
        let origins = [
            Some(&self.base_url.origin),
            self.organization.as_ref().map(|setting| &setting.origin),
            self.api_key.as_ref().map(|secret| &secret.origin),
            self.admin_token.as_ref().map(|secret| &secret.origin),
        ];
        let names: Vec<String> = origins
            .into_iter()
            .flatten()
            .filter(|origin| matches!(origin, Origin::Variable(_)))
            .map(ToString::to_string)
            .collect();
        let verb = if names.len() == 1 { "overrides" } else { "override" };
        (!names.is_empty()).then(|| format!("{} {verb} profile {}", names.join(", "), asked.value))
    }

    /// Organization from the environment or the profile, for commands without `--organization`.
    pub(crate) fn organization(&self) -> Result<&str, Failure> {
        self.organization.as_ref().map(|setting| setting.value.as_str()).ok_or_else(|| {
            Failure::Usage(format!(
                "no organization is set: use --organization ID, set {ORGANIZATION_VARIABLE}, or store it in a profile with `rental-cli config set NAME --organization ID`"
            ))
        })
    }
}

/// The profile that the flag, the environment or the configuration file chooses.
fn chosen(matches: &ArgMatches, profiles: &Profiles) -> Option<Setting<String>> {
    if let Some(name) = matches.get_one::<String>("profile") {
        return Some(Setting { value: name.clone(), origin: Origin::Flag("profile") });
    }
    match text(PROFILE_VARIABLE) {
        Some(value) => Some(Setting { value, origin: Origin::Variable(PROFILE_VARIABLE.into()) }),
        None => profiles.current().map(|name| Setting { value: name.to_owned(), origin: Origin::File }),
    }
}

/// Not an `env` of clap, which would show `--base-url` in usage lines when only the variable is set.
fn base_url(matches: &ArgMatches, profile: Option<(&str, &profiles::Profile)>) -> Result<Setting<Url>, Failure> {
    if let Some(url) = matches.get_one::<Url>("base_url") {
        return Ok(Setting { value: url.clone(), origin: Origin::Flag("base-url") });
    }
    if let Some(set) = text(BASE_URL_VARIABLE) {
        let value = values::base_url(&set)
            .map_err(|problem| Failure::Usage(format!("{BASE_URL_VARIABLE} is not a base URL: {problem}")))?;
        return Ok(Setting { value, origin: Origin::Variable(BASE_URL_VARIABLE.into()) });
    }
    if let Some((name, url)) = profile.and_then(|(name, profile)| Some((name, profile.base_url.clone()?))) {
        return Ok(Setting { value: url, origin: Origin::Profile(name.to_owned()) });
    }
    let value = values::base_url(DEFAULT_BASE_URL).map_err(Failure::Usage)?;
    Ok(Setting { value, origin: Origin::Default })
}

fn environment_organization() -> Result<Option<Setting<String>>, Failure> {
    let Some(set) = text(ORGANIZATION_VARIABLE) else { return Ok(None) };
    let value =
        values::id(&set).map_err(|problem| Failure::Usage(format!("{ORGANIZATION_VARIABLE} is {problem}: {set}")))?;
    Ok(Some(Setting { value, origin: Origin::Variable(ORGANIZATION_VARIABLE.into()) }))
}

/// Secret in `VARIABLE`, else in the file named by `VARIABLE_FILE`.
fn from_environment(variable: &str) -> Option<Secret> {
    let file = format!("{variable}_FILE");
    let secret = |source, name: &str| Secret { source, origin: Origin::Variable(name.to_owned()) };
    environment::variable(variable)
        .map(|text| secret(Source::Text(text), variable))
        .or_else(|| environment::variable(&file).map(|path| secret(Source::File(path.into()), &file)))
}
