//! `doctor`: checks everything that a command needs, and says what to do. A failed check does not stop the others.

use crate::{
    client::{
        access::Access,
        api::{Api, ResponseHead},
        request::Request,
    },
    commands::{config, group::with_examples, session},
    config::settings::{Secret, Settings},
    edge,
    failure::Failure,
    output::{
        self, Output,
        progress::size,
        record::{self, Record},
        style,
    },
    text::printable,
};
use clap::{ArgMatches, Command};
use rental_core::API_VERSION;
use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue},
};
use serde_json::json;
use std::{net::IpAddr, path::Path, time::UNIX_EPOCH};

/// Clock difference from which receivers reject webhooks (spec, Signature verification 4).
const SKEW_FATAL_MS: u64 = 300_000;
/// Clock difference worth a warning. Above the error of measurement: the `Date` header has whole seconds.
const SKEW_NOTABLE_MS: u64 = 5_000;
/// Free space on the server's disk below which there is a warning.
const LOW_DISK_BYTES: u64 = 1 << 30;
/// Free space below which there is a warning if it is also less than a tenth of the disk.
const LOW_DISK_SHARE_BYTES: u64 = 5 << 30;
/// Exit codes, the most severe first: an unreachable server hides all other problems.
const BY_SEVERITY: [u8; 9] = [7, 9, 4, 5, 2, 1, 3, 6, 8];

/// Builds the command.
pub(crate) fn command() -> Command {
    let command = Command::new("doctor").about("Check the server, its clock, the secrets and the settings");
    with_examples(command, &["rental-cli doctor", "rental-cli doctor --profile staging --json"])
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    Passed,
    Warning,
    /// Failed, with this exit code.
    Failed(u8),
    /// Not checked: not possible, or not needed.
    Skipped,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Warning => "warning",
            Self::Failed(_) => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// Result of one check.
struct Check {
    name: &'static str,
    status: Status,
    fact: String,
    /// Next step.
    next: Option<String>,
}

/// Results so far. Each is printed at once, except with `--json`.
struct Findings<'a> {
    out: &'a Output,
    checks: Vec<Check>,
}

impl Findings<'_> {
    fn add(&mut self, name: &'static str, status: Status, fact: &str, next: Option<&str>) -> Result<(), Failure> {
        let check = Check { name, status, fact: printable(fact), next: next.map(printable) };
        if !self.out.json {
            output::print(&self.line(&check))?;
        }
        self.checks.push(check);
        Ok(())
    }

    fn failed(&mut self, name: &'static str, failure: &Failure) -> Result<(), Failure> {
        let (problem, next) = failure.problem_and_hint();
        self.add(name, Status::Failed(failure.exit_code()), &problem, next.as_deref())
    }

    fn line(&self, check: &Check) -> String {
        let word = check.status.word();
        let next = check.next.as_deref().unwrap_or("");
        if !self.out.is_terminal() {
            return format!("{word}\t{}\t{}\t{next}\n", check.name, check.fact);
        }
        let (sign, style) = match check.status {
            Status::Passed => ("✓", style::SUCCESS),
            Status::Warning => ("!", style::WARNING),
            Status::Failed(_) => ("✗", style::ERROR),
            Status::Skipped => ("-", style::DIM),
        };
        let next = if next.is_empty() { String::new() } else { format!(": {next}") };
        format!("{} {:<18} {}{next}\n", self.out.paint.with(style, sign), check.name, check.fact)
    }

    fn end(self) -> Result<(), Failure> {
        let bad: Vec<u8> = self
            .checks
            .iter()
            .filter_map(|check| if let Status::Failed(code) = check.status { Some(code) } else { None })
            .collect();
        if self.out.json {
            let check = |check: &Check| json!({"name": check.name, "status": check.status.word(), "fact": check.fact, "next": check.next});
            let checks: Vec<_> = self.checks.iter().map(check).collect();
            let diagnosis = json!({"object": "diagnosis", "ok": bad.is_empty(), "checks": checks});
            self.out.json(&diagnosis.to_string())?;
        }
        match BY_SEVERITY.into_iter().find(|code| bad.contains(code)).or_else(|| bad.first().copied()) {
            Some(exit_code) => Err(Failure::Checks { failed: bad.len(), exit_code }),
            None => Ok(()),
        }
    }
}

/// Runs all checks.
pub(crate) fn run(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let mut findings = Findings { out, checks: Vec::new() };
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

/// Checks that a server of this API responds. Returns the head of its response.
fn check_server(findings: &mut Findings<'_>, settings: &Settings, api: &Api) -> Result<Option<ResponseHead>, Failure> {
    let alive = match api.send_once(Method::GET, "/healthz", HeaderMap::new(), "") {
        Ok(head) if head.status == 200 && head.headers.contains_key("service-version") => head,
        Ok(head) => {
            let fact = format!("{} responds with {}, but not like a rental-server", api.shown_url(), head.status);
            findings.add(
                "server",
                Status::Failed(1),
                &fact,
                Some("check --base-url, RENTAL_BASE_URL or the profile"),
            )?;
            return Ok(None);
        }
        Err(failure) => {
            findings.failed("server", &failure)?;
            return Ok(None);
        }
    };
    let fact = format!("{} responds in {} ms", api.shown_url(), alive.took.as_millis());
    findings.add("server", Status::Passed, &fact, None)?;
    let url = &settings.base_url.value;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match (url.scheme(), loopback) {
        ("https", _) => findings.add("tls", Status::Passed, "the certificate is trusted", None)?,
        (_, true) => findings.add("tls", Status::Passed, "not needed: the server is on this machine", None)?,
        _ => findings.add("tls", Status::Warning, "secrets are sent unencrypted", Some("use an https:// base URL"))?,
    }
    let version = alive.headers.get("service-version").and_then(|value| value.to_str().ok()).unwrap_or("?").to_owned();
    if version == API_VERSION {
        findings.add("api version", Status::Passed, &format!("{version} on both sides"), None)?;
    } else {
        let fact = format!("the server has API version {version}, rental-cli has {API_VERSION}");
        findings.add("api version", Status::Warning, &fact, Some("use the rental-cli of the server's version"))?;
    }
    Ok(Some(alive))
}

fn check_ready(findings: &mut Findings<'_>, api: &Api) -> Result<(), Failure> {
    match api.send_once(Method::GET, "/readyz", HeaderMap::new(), "") {
        Ok(head) if head.status == 200 => findings.add("ready", Status::Passed, "the server accepts writes", None),
        Ok(head) => {
            let fact = format!("/readyz responds with {}: the server does not accept writes", head.status);
            findings.add(
                "ready",
                Status::Failed(9),
                &fact,
                Some("the server is shutting down or its disk failed: see its log"),
            )
        }
        Err(failure) => findings.failed("ready", &failure),
    }
}

/// Checks the admin token, and compares the clocks. Without a token, the `Date` header tells the time to the second.
fn check_operator(
    findings: &mut Findings<'_>,
    settings: &Settings,
    api: &Api,
    alive: &ResponseHead,
) -> Result<(), Failure> {
    let before = edge::now();
    let status = match (&settings.admin_token, api.authorization(Access::Operator)) {
        (None, _) => {
            let fact = "no admin token is set; only commands marked (operator) need one";
            findings.add("admin token", Status::Skipped, fact, None)?;
            None
        }
        (Some(_), Err(failure)) => {
            findings.failed("admin token", &failure)?;
            None
        }
        (Some(Secret { origin, .. }), Ok(_)) => {
            let response = api.send(&Request::get(Access::Operator, &["status"])).and_then(record::json);
            match response.and_then(|json| Record::read(&json)) {
                Ok(status) => {
                    findings.add("admin token", Status::Passed, &format!("accepted; it comes from {origin}"), None)?;
                    Some(status)
                }
                Err(failure) => {
                    findings.failed("admin token", &failure)?;
                    None
                }
            }
        }
    };
    let after = edge::now();
    // The server read its clock at about the middle of the exchange.
    let exact = status.as_ref().and_then(|status| rental_core::value::Timestamp::parse(&status.text("time")?));
    let header = || {
        let date = httpdate::parse_http_date(alive.headers.get(DATE)?.to_str().ok()?).ok()?;
        u64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    };
    match exact.map(|time| (time.millis(), u64::midpoint(before.millis(), after.millis()))) {
        Some((theirs, ours)) => check_clock(findings, theirs, ours)?,
        None => match header() {
            Some(theirs) => check_clock(findings, theirs, before.millis())?,
            None => findings.add("clock", Status::Skipped, "the server does not report its time", None)?,
        },
    }
    match status {
        Some(status) => check_status(findings, &status, api),
        None => Ok(()),
    }
}

fn check_clock(findings: &mut Findings<'_>, theirs: u64, ours: u64) -> Result<(), Failure> {
    let skew = theirs.abs_diff(ours);
    let side = if theirs > ours { "ahead of" } else { "behind" };
    let fact = format!("the server's clock is {}.{:03} s {side} this one", skew / 1000, skew % 1000);
    let next = "synchronize both clocks with NTP: webhook signatures are valid for 300 s";
    match skew {
        SKEW_FATAL_MS.. => findings.add("clock", Status::Failed(1), &fact, Some(next)),
        SKEW_NOTABLE_MS.. => findings.add("clock", Status::Warning, &fact, Some(next)),
        _ => findings.add("clock", Status::Passed, &fact, None),
    }
}

fn check_status(findings: &mut Findings<'_>, status: &Record, api: &Api) -> Result<(), Failure> {
    let (theirs, ours) = (status.text("version").unwrap_or_default(), env!("CARGO_PKG_VERSION"));
    let uptime = status.text("uptime_seconds").unwrap_or_default();
    if theirs == ours {
        findings.add("version", Status::Passed, &format!("{ours} on both sides, up for {uptime} s"), None)?;
    } else {
        let fact = format!("the server has version {theirs}, rental-cli has {ours}");
        findings.add("version", Status::Warning, &fact, Some("use the rental-cli of the server's version"))?;
    }
    let number = |name: &str| status.text(name).and_then(|text| text.parse::<u64>().ok());
    match (number("disk_free_bytes"), number("disk_total_bytes")) {
        (Some(free), Some(total)) => {
            let percent = u128::from(free) * 100 / u128::from(total.max(1));
            let data = number("data_bytes").map(|data| format!("; the data takes {}", size(data))).unwrap_or_default();
            let fact = format!("{} free on the server's disk, {percent} %{data}", size(free));
            if is_low(free, total, number("data_bytes").unwrap_or(0)) {
                findings.add("disk", Status::Warning, &fact, Some("free disk space before writes fail"))?;
            } else {
                findings.add("disk", Status::Passed, &fact, None)?;
            }
        }
        _ => findings.add("disk", Status::Skipped, "the server does not report its free disk space", None)?,
    }
    check_master_key(findings, api)?;
    match webhook_endpoints(api) {
        Ok((0, _)) => findings.add("webhook endpoints", Status::Passed, "there are none", None),
        Ok((all, disabled)) if disabled.is_empty() => {
            findings.add("webhook endpoints", Status::Passed, &format!("all {all} are enabled"), None)
        }
        Ok((all, disabled)) => {
            let fact = format!("{} of {all} are disabled", disabled.len());
            let next = format!("rental-cli webhook-endpoints get {}, then enable it", disabled[0]);
            findings.add("webhook endpoints", Status::Warning, &fact, Some(&next))
        }
        Err(failure) => findings.failed("webhook endpoints", &failure),
    }
}

/// Checks that the server can decrypt the secret of each webhook endpoint.
fn check_master_key(findings: &mut Findings<'_>, api: &Api) -> Result<(), Failure> {
    const NAME: &str = "master key";
    let response = api.send(&Request::get(Access::Operator, &["master_key"])).and_then(record::json);
    let key = match response.and_then(|json| Record::read(&json)) {
        Ok(key) => key,
        Err(failure) if failure.exit_code() == 5 => {
            let next = "run doctor with the token of an owner, or with the admin token, to check it";
            return findings.add(NAME, Status::Skipped, "only owners see the master key", Some(next));
        }
        // A server of an earlier version.
        Err(failure) if failure.exit_code() == 3 => {
            return findings.add(NAME, Status::Skipped, "the server does not report its master key", None);
        }
        Err(failure) => return findings.failed(NAME, &failure),
    };
    let text = |name: &str| key.text(name).unwrap_or_default();
    let (name, unreadable) = (text("fingerprint"), text("unreadable"));
    if unreadable != "0" {
        let fact = format!("key {name} does not open the secrets of {unreadable} webhook endpoints");
        let next =
            "rental-cli master-key get names them: put the key that is missing back, or rotate-secret each of them";
        return findings.add(NAME, Status::Failed(1), &fact, Some(next));
    }
    let rotating = key.text("former_fingerprint").map(|former| format!(", a rotation from key {former} runs"));
    let fact = format!("key {name} opens all webhook secrets{}", rotating.unwrap_or_default());
    findings.add(NAME, Status::Passed, &fact, None)
}

/// Whether the server's disk is nearly full: too little for any server, or little of the disk and little beside the data,
/// which an upgrade or a copy of the store can double.
fn is_low(free: u64, total: u64, data: u64) -> bool {
    free < LOW_DISK_BYTES || (free < total / 10 && free < data.saturating_mul(2).max(LOW_DISK_SHARE_BYTES))
}

/// Returns the number of webhook endpoints on the first pages, and the ids of the disabled ones.
fn webhook_endpoints(api: &Api) -> Result<(usize, Vec<String>), Failure> {
    let (mut all, mut disabled) = (0, Vec::new());
    session::any_object(api, &["webhook_endpoints"], &[], |raw| {
        let endpoint = Record::read(raw.get())?;
        all += 1;
        if endpoint.text("status").as_deref() == Some("disabled") {
            disabled.extend(endpoint.text("id"));
        }
        Ok(false)
    })?;
    Ok((all, disabled))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_low_by_its_free_bytes_its_share_and_the_size_of_the_data() {
        let check = |free_gib: u64, total_gib: u64, data_gib: u64, low: bool| {
            assert_eq!(is_low(free_gib << 30, total_gib << 30, data_gib << 30), low, "{free_gib} of {total_gib} GiB");
        };
        check(24, 256, 0, false);
        check(24, 256, 20, true);
        check(4, 256, 0, true);
        check(4, 20, 0, false);
        check(0, 1, 0, true);
        check(100, 1000, 500, false);
    }
}
