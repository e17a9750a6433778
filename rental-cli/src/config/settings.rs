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
    /// Nothing: the secret of the profile is for this server, and the command uses another one.
    OfServer(Url),
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
            Source::Text(_) | Source::OfServer(_) => None,
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
    overridden: Option<Overridden>,
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
        let base_url = base_url(matches, profile)?;
        let secret = |variable: &str, file: fn(&profiles::Profile) -> Option<&PathBuf>| {
            from_environment(variable).or_else(|| {
                let (name, profile) = profile?;
                let path = file(profile)?.clone();
                // A flag or a variable must not send the secret of one server to another one.
                let other = profile.base_url.clone().filter(|own| own.origin() != base_url.value.origin());
                let source = other.map_or_else(|| Source::File(path), Source::OfServer);
                Some(Secret { source, origin: of_profile(name) })
            })
        };
        let has_flag = matches.get_one::<Url>("base_url").is_some();
        Ok(Self {
            overridden: profile.and_then(|(name, profile)| overridden(name, profile, has_flag)),
            organization,
            api_key: secret("RENTAL_API_KEY", |profile| profile.api_key_file.as_ref()),
            admin_token: secret("RENTAL_ADMIN_TOKEN", |profile| profile.admin_token_file.as_ref()),
            file: profiles.path().map(Path::to_owned),
            profile: chosen,
            base_url,
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
            overridden: None,
        })
    }

    /// The variables that override the profile in use; `None` if there are none.
    pub(crate) fn overridden(&self) -> Option<&Overridden> {
        self.overridden.as_ref()
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
pub(crate) fn chosen(matches: &ArgMatches, profiles: &Profiles) -> Option<Setting<String>> {
    if let Some(name) = matches.get_one::<String>("profile") {
        return Some(Setting { value: name.clone(), origin: Origin::Flag("profile") });
    }
    match text(PROFILE_VARIABLE) {
        Some(value) => Some(Setting { value, origin: Origin::Variable(PROFILE_VARIABLE.into()) }),
        None => profiles.current().map(|name| Setting { value: name.to_owned(), origin: Origin::File }),
    }
}

/// The variables that override settings of a profile.
pub(crate) struct Overridden {
    profile: String,
    variables: Vec<String>,
}

impl Overridden {
    /// One line about it, without the next step.
    pub(crate) fn note(&self) -> String {
        let verb = if self.variables.len() == 1 { "overrides" } else { "override" };
        format!("{} {verb} profile {}", self.variables.join(", "), self.profile)
    }

    /// The same with how to use the profile.
    pub(crate) fn advice(&self) -> String {
        format!("{}; to use the profile, run: unset {}", self.note(), self.variables.join(" "))
    }
}

/// The variables that override settings of this profile; `None` if there are none. `has_flag`: the command line has a base URL, so
/// the variable is not used.
pub(crate) fn overridden(name: &str, profile: &profiles::Profile, has_flag: bool) -> Option<Overridden> {
    let url = text(BASE_URL_VARIABLE).filter(|_| !has_flag);
    let same = |own: &Url, set: &str| own.as_str().trim_end_matches('/') == set.trim_end_matches('/');
    let is_other = url.zip(profile.base_url.as_ref()).is_some_and(|(set, own)| !same(own, &set));
    let organization = text(ORGANIZATION_VARIABLE);
    let is_own = |set: &String| profile.organization.as_ref() == Some(set);
    let variable = |secret: Secret| if let Origin::Variable(name) = secret.origin { Some(name) } else { None };
    // The other settings of the environment belong to its server, and not to that of the profile.
    let names: Vec<String> = [
        is_other.then(|| BASE_URL_VARIABLE.to_owned()),
        organization
            .filter(|set| !is_own(set) && (is_other || profile.organization.is_some()))
            .map(|_| ORGANIZATION_VARIABLE.to_owned()),
        from_environment("RENTAL_API_KEY").filter(|_| is_other || profile.api_key_file.is_some()).and_then(variable),
        from_environment("RENTAL_ADMIN_TOKEN")
            .filter(|_| is_other || profile.admin_token_file.is_some())
            .and_then(variable),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!names.is_empty()).then(|| Overridden { profile: name.to_owned(), variables: names })
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
