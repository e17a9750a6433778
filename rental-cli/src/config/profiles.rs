//! The configuration file: named profiles, each with a server, an organization and the paths of secret files.
//!
//! ```toml
//! current = "staging"
//!
//! [profiles.staging]
//! base_url = "https://staging.example.com"
//! organization = "0190d0f2-7c3a-7cc0-8000-000000000000"
//! admin_token_file = "/etc/rental/staging.token"
//! ```
//!
//! Writing keeps the user's comments and order. Errors name the file and the line.

use crate::{
    config::{environment, private_file, values},
    failure::Failure,
};
use reqwest::Url;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use toml_edit::{Document, DocumentMut, Item, Table, TableLike, value as toml};

/// Keys of a profile.
pub(crate) const KEYS: [&str; 4] = ["base_url", "organization", "admin_token_file", "api_key_file"];
/// Maximum length of a profile's name.
const NAME_MAX: usize = 64;

/// The settings of one profile.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Profile {
    pub(crate) base_url: Option<Url>,
    pub(crate) organization: Option<String>,
    pub(crate) admin_token_file: Option<PathBuf>,
    pub(crate) api_key_file: Option<PathBuf>,
}

/// The parsed and checked file.
pub(crate) struct Profiles {
    path: Option<PathBuf>,
    document: DocumentMut,
    current: Option<String>,
    profiles: BTreeMap<String, Profile>,
}

/// Path of the file: `RENTAL_CONFIG_FILE`, else `rental/config.toml` in the user's configuration directory. `None` if the
/// user has no such directory.
pub(crate) fn path() -> Option<PathBuf> {
    environment::variable("RENTAL_CONFIG_FILE")
        .map(PathBuf::from)
        .or_else(|| user_directory("XDG_CONFIG_HOME", ".config").map(|directory| directory.join("rental/config.toml")))
}

/// A directory of the XDG base directory specification. Relative paths in the variable are ignored, as it requires.
pub(crate) fn user_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name| environment::variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
}

/// Parses the name of a profile: 1 to 64 letters, digits, `-`, `_` and `.`.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err(format!("must be 1 to {NAME_MAX} letters, digits, hyphens, dots and underscores"))
    }
}

impl Profiles {
    /// Reads the file. A missing file has no profiles.
    pub(crate) fn load() -> Result<Self, Failure> {
        let Some(path) = path() else { return Self::parse(None, String::new()) };
        match private_file::read(&path) {
            Ok(text) => Self::parse(Some(path), text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::parse(Some(path), String::new()),
            Err(error) => Err(Failure::Config(format!("cannot read {}: {error}", path.display()))),
        }
    }

    fn parse(path: Option<PathBuf>, text: String) -> Result<Self, Failure> {
        let shown = path.as_deref().unwrap_or_else(|| Path::new("")).display().to_string();
        let wrong = |at: usize, problem: &str| {
            let before = text.get(..at).unwrap_or(&text);
            Failure::Config(format!("{shown}, line {}: {problem}", before.matches('\n').count() + 1))
        };
        let document = Document::parse(text.as_str()).map_err(|error| {
            // The other lines of the message quote the file.
            let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
            wrong(error.span().map_or(0, |span| span.start), &message)
        })?;
        let directory = path.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new(""));
        let (current, profiles) = check(document.as_table(), directory).map_err(|(at, problem)| wrong(at, &problem))?;
        if let Some(name) = current.as_ref().filter(|name| !profiles.contains_key(*name)) {
            let at = document.get("current").and_then(Item::span).map_or(0, |span| span.start);
            return Err(wrong(at, &format!("there is no profile {name}")));
        }
        let document = text.parse().unwrap_or_else(|_| DocumentMut::new());
        Ok(Self { path, document, current, profiles })
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Name of the default profile, set by `config use`.
    pub(crate) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// All profiles, sorted by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Profile)> {
        self.profiles.iter().map(|(name, profile)| (name.as_str(), profile))
    }

    /// Returns a profile, or a failure that lists the existing ones.
    pub(crate) fn get(&self, name: &str) -> Result<&Profile, Failure> {
        self.profiles.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
            Failure::Config(match known.as_slice() {
                [] => {
                    format!("there is no profile {name}; create it with `rental-cli config set {name} --base-url URL`")
                }
                known => format!("there is no profile {name}; the profiles are {}", known.join(", ")),
            })
        })
    }

    /// Sets or removes one setting of a profile. Creates the profile if it does not exist.
    pub(crate) fn set(&mut self, name: &str, key: &str, text: Option<&str>) {
        let profiles = self.document.entry("profiles").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let Some(profiles) = profiles.as_table_like_mut() else { return };
        let profile = profiles.entry(name).or_insert_with(|| Item::Table(Table::new()));
        let Some(profile) = profile.as_table_like_mut() else { return };
        match text {
            Some(text) => {
                profile.insert(key, toml(text));
            }
            None => {
                profile.remove(key);
            }
        }
    }

    /// Makes a profile the default.
    pub(crate) fn choose(&mut self, name: &str) {
        self.document.insert("current", toml(name));
    }

    /// Removes a profile.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(profiles) = self.document.get_mut("profiles").and_then(Item::as_table_like_mut) {
            profiles.remove(name);
        }
        if self.current.as_deref() == Some(name) {
            self.document.remove("current");
        }
    }

    /// Writes the file, unless its new content is invalid.
    pub(crate) fn save(self) -> Result<PathBuf, Failure> {
        let Some(path) = self.path else {
            let problem = "there is no directory for the configuration file; nothing was saved; set HOME, or RENTAL_CONFIG_FILE to a file";
            return Err(Failure::Config(problem.into()));
        };
        let text = self.document.to_string();
        Self::parse(Some(path.clone()), text.clone())?;
        let doing = format!("write {}", path.display());
        private_file::write_private(&path, &text).map_err(|error| Failure::Io { doing, error })?;
        Ok(path)
    }
}

type Wrong = (usize, String);

/// Parses all tables. `Err` is the byte offset and the problem.
fn check(top: &Table, directory: &Path) -> Result<(Option<String>, BTreeMap<String, Profile>), Wrong> {
    let mut current = None;
    let mut profiles = BTreeMap::new();
    for (key, item) in top {
        let at = place(top, key, item);
        match key {
            "current" => {
                current = Some(string(item).ok_or_else(|| (at, "current must be the name of a profile".into()))?)
            }
            "profiles" => {
                let table =
                    item.as_table_like().ok_or_else(|| (at, "profiles must be tables, [profiles.NAME]".into()))?;
                for (key, item) in table.iter() {
                    let at = place(table, key, item);
                    let key = name(key).map_err(|problem| (at, format!("the name of a profile {problem}")))?;
                    let body = item
                        .as_table_like()
                        .ok_or_else(|| (at, format!("profile {key} must be a table, [profiles.{key}]")))?;
                    profiles.insert(key, profile(body, directory)?);
                }
            }
            _ => return Err((at, format!("unknown key {key}; the keys are current and profiles"))),
        }
    }
    Ok((current, profiles))
}

fn profile(table: &dyn TableLike, directory: &Path) -> Result<Profile, Wrong> {
    let mut profile = Profile::default();
    for (key, item) in table.iter() {
        let at = place(table, key, item);
        if !KEYS.contains(&key) {
            return Err((at, format!("unknown key {key}; the keys are {}", KEYS.join(", "))));
        }
        let text = string(item).ok_or_else(|| (at, format!("{key} must be a string in quotes")))?;
        let wrong = |problem: String| (at, format!("{key}: {problem}"));
        match key {
            "base_url" => profile.base_url = Some(values::base_url(&text).map_err(wrong)?),
            "organization" => profile.organization = Some(values::id(&text).map_err(wrong)?),
            "admin_token_file" => profile.admin_token_file = Some(file(&text, directory)),
            _ => profile.api_key_file = Some(file(&text, directory)),
        }
    }
    Ok(profile)
}

/// Resolves a path relative to the configuration file; `~/` is the user's home.
fn file(text: &str, directory: &Path) -> PathBuf {
    match (text.strip_prefix("~/"), environment::variable("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => directory.join(text),
    }
}

fn string(item: &Item) -> Option<String> {
    item.as_str().map(str::to_owned)
}

fn place(table: &dyn TableLike, key: &str, item: &Item) -> usize {
    let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
    span.map_or(0, |span| span.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Profiles, Failure> {
        Profiles::parse(Some("/c/config.toml".into()), text.to_owned())
    }

    #[track_caller]
    fn wrong(text: &str, expected: &str) {
        let Err(Failure::Config(problem)) = parse(text) else { panic!("{text:?} is taken") };
        assert_eq!(problem, format!("/c/config.toml, line {expected}"));
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        wrong("current = \n", "1: string values must be quoted, expected literal string");
        wrong(
            "\n[profiles.a]\nbase_ulr = \"http://h\"\n",
            "3: unknown key base_ulr; the keys are base_url, organization, admin_token_file, api_key_file",
        );
        wrong("[profiles.a]\n\n\nbase_url = \"ftp://h\"\n", "4: base_url: must start with http:// or https://");
        wrong("[profiles.a]\norganization = 7\n", "2: organization must be a string in quotes");
        wrong("[profiles]\na = 1\n", "2: profile a must be a table, [profiles.a]");
        wrong("x = 1\n", "1: unknown key x; the keys are current and profiles");
        wrong(
            "[profiles.\"a b\"]\n",
            "1: the name of a profile must be 1 to 64 letters, digits, hyphens, dots and underscores",
        );
        wrong("# c\ncurrent = \"b\"\n[profiles.a]\n", "2: there is no profile b");
    }

    #[test]
    fn a_change_keeps_comments_and_order() {
        let mut profiles = parse("# mine\n[profiles.b]\nbase_url = \"http://h/\" # here\n\n[profiles.a]\n").unwrap();
        profiles.set("b", "organization", Some("o"));
        profiles.set("c", "base_url", Some("http://c/"));
        profiles.choose("b");
        let text = profiles.document.to_string();
        assert_eq!(
            text,
            "current = \"b\"\n# mine\n[profiles.b]\nbase_url = \"http://h/\" # here\norganization = \"o\"\n\n[profiles.a]\n\n[profiles.c]\nbase_url = \"http://c/\"\n"
        );
        let mut profiles = parse(&text).unwrap();
        profiles.remove("b");
        assert!(!profiles.document.to_string().contains("current"), "what is gone is not chosen any more");
    }

    #[test]
    fn files_of_secrets_count_from_the_configuration_file() {
        let profiles = parse("[profiles.a]\napi_key_file = \"key\"\nadmin_token_file = \"/t\"\n").unwrap();
        let profile = profiles.get("a").unwrap();
        assert_eq!(profile.api_key_file.as_deref(), Some(Path::new("/c/key")));
        assert_eq!(profile.admin_token_file.as_deref(), Some(Path::new("/t")));
    }
}
