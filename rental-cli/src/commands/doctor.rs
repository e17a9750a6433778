//! `doctor`: checks everything that a command needs, and says what to do. A failed check does not stop the others.

mod findings;
mod operator;
mod server;

use crate::{
    client::{access::Access, api::Api, request::Request},
    commands::{config, duplicates, fields::columns_among, group::with_examples, pages::MAX_LIMIT, session},
    config::settings::Settings,
    failure::Failure,
    output::{
        Output,
        record::{self, Record},
    },
};
use clap::{ArgMatches, Command};
use findings::{Findings, Status};
use operator::check_operator;
use server::{check_ready, check_server};
use std::path::Path;

/// Pages of each list that are compared with each other.
const DUPLICATE_PAGES: usize = 10;

/// Builds the command.
pub(crate) fn command() -> Command {
    let command = Command::new("doctor")
        .about("Check the server, its clock, the secrets and the settings")
        .arg(columns_among(findings::COLUMNS));
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
        Some(note) => findings.add("configuration", Status::Warning, &fact, Some(&note.advice())),
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
        return findings.add("api key", Status::Skipped, fact, Some("`rental-cli login` stores one"));
    };
    let me = api.send(&Request::get(Access::Organization, &["me"])).and_then(record::json);
    match me.and_then(|json| Record::read(&json)) {
        Ok(me) => {
            let fact =
                format!("accepted, scope {}; it comes from {}", me.text("scope").unwrap_or_default(), secret.origin);
            findings.add("api key", Status::Passed, &fact, None)?;
            check_duplicates(findings, api)
        }
        Err(failure) => findings.failed("api key", &failure),
    }
}

/// Counts records that are probably of one car, person or booking, among the newest ones.
fn check_duplicates(findings: &mut Findings<'_>, api: &Api) -> Result<(), Failure> {
    const NAME: &str = "duplicates";
    let found = match duplicates::find(api, DUPLICATE_PAGES) {
        Ok(found) => found,
        Err(failure) => return findings.failed(NAME, &failure),
    };
    let among = match found.is_complete() {
        true => String::new(),
        false => format!(", among the newest {} of each list", DUPLICATE_PAGES * MAX_LIMIT as usize),
    };
    match found.counted() {
        None => {
            let fact = format!("no two records have one plate, transponder, email or booking id{among}");
            findings.add(NAME, Status::Passed, &fact, None)
        }
        Some(counted) => {
            let fact = format!("several records have one value each of {counted}{among}");
            let next = "`rental-cli vehicles duplicates` lists them, with the steps that put it right";
            findings.add(NAME, Status::Warning, &fact, Some(next))
        }
    }
}
