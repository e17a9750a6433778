//! `doctor`: checks everything that a command needs, and says what to do. A failed check does not stop the others.

mod findings;
mod operator;
mod server;

use crate::{
    client::{access::Access, api::Api, request::Request},
    commands::{config, group::with_examples, session},
    config::settings::Settings,
    failure::Failure,
    output::Output,
};
use clap::{ArgMatches, Command};
use findings::{Findings, Status};
use operator::check_operator;
use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use server::{check_ready, check_server};
use std::path::Path;

/// Builds the command.
pub(crate) fn command() -> Command {
    let command = Command::new("doctor").about("Check the server, its clock, the secrets and the settings");
    with_examples(command, &["rental-cli doctor", "rental-cli doctor --profile staging --json"])
}

/// Runs all checks.
pub(crate) fn run(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let mut findings = Findings::new(out);
    let settings = match Settings::read(matches, None) {
        Ok(settings) => {
            check_configuration(&mut findings, &settings)?;
            settings
        }
        Err(failure) => {
            findings.failed("configuration", &failure)?;
            Settings::without_file(matches)?
        }
    };
    for secret in [&settings.admin_token, &settings.api_key].into_iter().flatten() {
        if let Some(path) = secret.file() {
            check_secret_file(&mut findings, path)?;
        }
    }
    let api = session::api(&settings, matches);
    let reached = check_server(&mut findings, &settings, &api)?;
    if let Some(alive) = &reached {
        check_ready(&mut findings, &api)?;
        check_operator(&mut findings, &settings, &api, alive)?;
        check_organization(&mut findings, &settings, &api)?;
    }
    findings.end()
}

fn check_configuration(findings: &mut Findings<'_>, settings: &Settings) -> Result<(), Failure> {
    let file = settings.file.as_deref().map_or_else(String::new, |path| path.display().to_string());
    let fact = match &settings.profile {
        Some(profile) => format!("profile {} of {file}, by {}", profile.value, profile.origin),
        None => "no profile is in use".into(),
    };
    match settings.overridden() {
        Some(note) => findings.add("configuration", Status::Warning, &fact, Some(&note)),
        None => findings.add("configuration", Status::Passed, &fact, None),
    }
}

fn check_secret_file(findings: &mut Findings<'_>, path: &Path) -> Result<(), Failure> {
    match config::secret_file_problem(path) {
        Some(problem) => findings.add("secret file", Status::Warning, &problem, None),
        None => findings.add("secret file", Status::Passed, &format!("only you can read {}", path.display()), None),
    }
}

fn check_organization(findings: &mut Findings<'_>, settings: &Settings, api: &Api) -> Result<(), Failure> {
    let Some(secret) = &settings.api_key else {
        let fact = "no API key is set; an organization's own resources need one";
        return findings.add("api key", Status::Skipped, fact, None);
    };
    let query = vec![("limit".to_owned(), "1".to_owned())];
    if let Err(failure) = api.send(&Request::get(Access::Organization, &["vehicles"]).with_query(query)) {
        return findings.failed("api key", &failure);
    }
    let scope = match scope(api)? {
        Some(scope) => format!(", scope {scope}"),
        None => String::new(),
    };
    findings.add("api key", Status::Passed, &format!("accepted{scope}; it comes from {}", secret.origin), None)
}

/// Finds the scope of the API key with a write that always fails and changes nothing: a POST that is not JSON. The server
/// checks scopes before media types (decisions, Errors), so the status tells the scope.
fn scope(api: &Api) -> Result<Option<&'static str>, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, api.authorization(Access::Organization)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(match api.send_once(Method::POST, "/v1/vehicles", headers, "which scope?").map(|head| head.status) {
        Ok(403) => Some("read"),
        Ok(415) => Some("read_write"),
        _ => None,
    })
}
