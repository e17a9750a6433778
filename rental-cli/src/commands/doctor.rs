//! `doctor`: looks at everything that a command needs, says what it found and what to do. It stops at nothing.

use crate::{
    client::{
        access::Access,
        api::{Api, Told},
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

/// The date of the API's description that this client was written for (spec, Versioning 2).
/// A difference of clocks from which receivers of webhooks refuse them (spec, Signature verification 4).
const SKEW_FATAL_MS: u64 = 300_000;
/// A difference that is no accident of measuring: the `Date` header has whole seconds.
const SKEW_NOTABLE_MS: u64 = 5_000;
/// Less room than this on the server's disk is worth a warning.
const LITTLE_ROOM: u64 = 1 << 30;
/// Exit codes, the gravest first: what cannot be reached hides everything else.
const GRAVITY: [u8; 9] = [7, 9, 4, 5, 2, 1, 3, 6, 8];

/// The command.
pub(crate) fn command() -> Command {
    let command = Command::new("doctor").about("Check the server, its clock, the secrets and the settings");
    with_examples(command, &["rental-cli doctor", "rental-cli doctor --profile staging --json"])
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Good,
    Careful,
    /// With the exit code of this failure.
    Bad(u8),
    /// Could not be looked at, or need not be.
    Skipped,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Careful => "warning",
            Self::Bad(_) => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One line of the result.
struct Check {
    name: &'static str,
    verdict: Verdict,
    fact: String,
    /// What to do.
    next: Option<String>,
}

/// The checks so far; each is printed when it is made.
struct Findings<'a> {
    out: &'a Output,
    checks: Vec<Check>,
}

impl Findings<'_> {
    fn add(&mut self, name: &'static str, verdict: Verdict, fact: &str, next: Option<&str>) -> Result<(), Failure> {
        let check = Check { name, verdict, fact: printable(fact), next: next.map(printable) };
        if !self.out.json {
            output::print(&self.line(&check))?;
        }
        self.checks.push(check);
        Ok(())
    }

    fn failed(&mut self, name: &'static str, failure: &Failure) -> Result<(), Failure> {
        let (problem, next) = failure.told();
        self.add(name, Verdict::Bad(failure.exit_code()), &problem, next.as_deref())
    }

    fn line(&self, check: &Check) -> String {
        let word = check.verdict.word();
        let next = check.next.as_deref().unwrap_or("");
        if !self.out.is_terminal() {
            return format!("{word}\t{}\t{}\t{next}\n", check.name, check.fact);
        }
        let (sign, style) = match check.verdict {
            Verdict::Good => ("✓", style::GOOD),
            Verdict::Careful => ("!", style::CAREFUL),
            Verdict::Bad(_) => ("✗", style::BAD),
            Verdict::Skipped => ("-", style::ASIDE),
        };
        let next = if next.is_empty() { String::new() } else { format!(": {next}") };
        format!("{} {:<18} {}{next}\n", self.out.paint.with(style, sign), check.name, check.fact)
    }

    fn end(self) -> Result<(), Failure> {
        let bad: Vec<u8> = self
            .checks
            .iter()
            .filter_map(|check| if let Verdict::Bad(code) = check.verdict { Some(code) } else { None })
            .collect();
        if self.out.json {
            let check = |check: &Check| json!({"name": check.name, "status": check.verdict.word(), "fact": check.fact, "next": check.next});
            let checks: Vec<_> = self.checks.iter().map(check).collect();
            output::print(&format!("{}\n", json!({"object": "diagnosis", "ok": bad.is_empty(), "checks": checks})))?;
        }
        match GRAVITY.into_iter().find(|code| bad.contains(code)).or_else(|| bad.first().copied()) {
            Some(exit_code) => Err(Failure::Checks { failed: bad.len(), exit_code }),
            None => Ok(()),
        }
    }
}

/// Makes all checks.
pub(crate) fn run(matches: &ArgMatches, out: &Output) -> Result<(), Failure> {
    let mut findings = Findings { out, checks: Vec::new() };
    let settings = match Settings::read(matches, None) {
        Ok(settings) => {
            configuration(&mut findings, &settings)?;
            settings
        }
        Err(failure) => {
            findings.failed("configuration", &failure)?;
            Settings::without_file(matches)?
        }
    };
    for secret in [&settings.admin_token, &settings.api_key].into_iter().flatten() {
        if let Some(path) = secret.file() {
            secret_file(&mut findings, path)?;
        }
    }
    let api = session::api(&settings, matches);
    let reached = server(&mut findings, &settings, &api)?;
    if let Some(alive) = &reached {
        ready(&mut findings, &api)?;
        of_operator(&mut findings, &settings, &api, alive)?;
        of_organization(&mut findings, &settings, &api)?;
    }
    findings.end()
}

fn configuration(findings: &mut Findings<'_>, settings: &Settings) -> Result<(), Failure> {
    let file = settings.file.as_deref().map_or_else(String::new, |path| path.display().to_string());
    let fact = match &settings.profile {
        Some(profile) => format!("profile {} of {file}, by {}", profile.value, profile.origin),
        None => "no profile is in use".into(),
    };
    match settings.overridden() {
        Some(note) => findings.add("configuration", Verdict::Careful, &fact, Some(&note)),
        None => findings.add("configuration", Verdict::Good, &fact, None),
    }
}

fn secret_file(findings: &mut Findings<'_>, path: &Path) -> Result<(), Failure> {
    match config::doubt(path) {
        Some(problem) => findings.add("secret file", Verdict::Careful, &problem, None),
        None => findings.add("secret file", Verdict::Good, &format!("only you can read {}", path.display()), None),
    }
}

/// Whether a server of this API answers, and how; gives its answer.
fn server(findings: &mut Findings<'_>, settings: &Settings, api: &Api) -> Result<Option<Told>, Failure> {
    let alive = match api.tell(Method::GET, "/healthz", HeaderMap::new(), "") {
        Ok(told) if told.status == 200 && told.headers.contains_key("service-version") => told,
        Ok(told) => {
            let fact = format!("{} responds with {}, but not like a rental-server", api.shown_url(), told.status);
            findings.add("server", Verdict::Bad(1), &fact, Some("check --base-url, RENTAL_BASE_URL or the profile"))?;
            return Ok(None);
        }
        Err(failure) => {
            findings.failed("server", &failure)?;
            return Ok(None);
        }
    };
    let fact = format!("{} responds in {} ms", api.shown_url(), alive.took.as_millis());
    findings.add("server", Verdict::Good, &fact, None)?;
    let url = &settings.base_url.value;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match (url.scheme(), loopback) {
        ("https", _) => findings.add("tls", Verdict::Good, "the certificate is trusted", None)?,
        (_, true) => findings.add("tls", Verdict::Good, "not needed: the server is on this machine", None)?,
        _ => findings.add("tls", Verdict::Careful, "secrets are sent unencrypted", Some("use an https:// base URL"))?,
    }
    let version = alive.headers.get("service-version").and_then(|value| value.to_str().ok()).unwrap_or("?").to_owned();
    if version == API_VERSION {
        findings.add("api version", Verdict::Good, &format!("{version} on both sides"), None)?;
    } else {
        let fact = format!("the server has API version {version}, rental-cli has {API_VERSION}");
        findings.add("api version", Verdict::Careful, &fact, Some("use the rental-cli of the server's version"))?;
    }
    Ok(Some(alive))
}

fn ready(findings: &mut Findings<'_>, api: &Api) -> Result<(), Failure> {
    match api.tell(Method::GET, "/readyz", HeaderMap::new(), "") {
        Ok(told) if told.status == 200 => findings.add("ready", Verdict::Good, "the server accepts writes", None),
        Ok(told) => {
            let fact = format!("/readyz responds with {}: the server does not accept writes", told.status);
            findings.add(
                "ready",
                Verdict::Bad(9),
                &fact,
                Some("the server is shutting down or its disk failed: see its log"),
            )
        }
        Err(failure) => findings.failed("ready", &failure),
    }
}

/// What the admin token opens, and what it tells. The clock is compared without it too, to the second.
fn of_operator(findings: &mut Findings<'_>, settings: &Settings, api: &Api, alive: &Told) -> Result<(), Failure> {
    let before = edge::now();
    let status = match (&settings.admin_token, api.authorization(Access::Operator)) {
        (None, _) => {
            let fact = "no admin token is set; only commands marked (operator) need one";
            findings.add("admin token", Verdict::Skipped, fact, None)?;
            None
        }
        (Some(_), Err(failure)) => {
            findings.failed("admin token", &failure)?;
            None
        }
        (Some(Secret { origin, .. }), Ok(_)) => {
            let answer = api.send(&Request::get(Access::Operator, &["status"])).and_then(record::json);
            match answer.and_then(|json| Record::read(&json)) {
                Ok(status) => {
                    findings.add("admin token", Verdict::Good, &format!("accepted; it comes from {origin}"), None)?;
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
    // The middle of the exchange is the best guess at when the server looked at its clock.
    let exact = status.as_ref().and_then(|status| rental_core::value::Timestamp::parse(&status.text("time")?));
    let header = || {
        let date = httpdate::parse_http_date(alive.headers.get(DATE)?.to_str().ok()?).ok()?;
        u64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    };
    match exact.map(|time| (time.millis(), u64::midpoint(before.millis(), after.millis()))) {
        Some((theirs, ours)) => clock(findings, theirs, ours)?,
        None => match header() {
            Some(theirs) => clock(findings, theirs, before.millis())?,
            None => findings.add("clock", Verdict::Skipped, "the server does not report its time", None)?,
        },
    }
    match status {
        Some(status) => of_status(findings, &status, api),
        None => Ok(()),
    }
}

fn clock(findings: &mut Findings<'_>, theirs: u64, ours: u64) -> Result<(), Failure> {
    let skew = theirs.abs_diff(ours);
    let side = if theirs > ours { "ahead of" } else { "behind" };
    let fact = format!("the server's clock is {}.{:03} s {side} this one", skew / 1000, skew % 1000);
    let next = "synchronize both clocks with NTP: webhook signatures are valid for 300 s";
    match skew {
        SKEW_FATAL_MS.. => findings.add("clock", Verdict::Bad(1), &fact, Some(next)),
        SKEW_NOTABLE_MS.. => findings.add("clock", Verdict::Careful, &fact, Some(next)),
        _ => findings.add("clock", Verdict::Good, &fact, None),
    }
}

fn of_status(findings: &mut Findings<'_>, status: &Record, api: &Api) -> Result<(), Failure> {
    let (theirs, ours) = (status.text("version").unwrap_or_default(), env!("CARGO_PKG_VERSION"));
    let uptime = status.text("uptime_seconds").unwrap_or_default();
    if theirs == ours {
        findings.add("version", Verdict::Good, &format!("{ours} on both sides, up for {uptime} s"), None)?;
    } else {
        let fact = format!("the server has version {theirs}, rental-cli has {ours}");
        findings.add("version", Verdict::Careful, &fact, Some("use the rental-cli of the server's version"))?;
    }
    let number = |name: &str| status.text(name).and_then(|text| text.parse::<u64>().ok());
    match (number("disk_free_bytes"), number("disk_total_bytes")) {
        (Some(free), Some(total)) => {
            let percent = u128::from(free) * 100 / u128::from(total.max(1));
            let data = number("data_bytes").map(|data| format!("; the data takes {}", size(data))).unwrap_or_default();
            let fact = format!("{} free on the server's disk, {percent} %{data}", size(free));
            if free < LITTLE_ROOM || percent < 10 {
                findings.add("disk", Verdict::Careful, &fact, Some("free disk space before writes fail"))?;
            } else {
                findings.add("disk", Verdict::Good, &fact, None)?;
            }
        }
        _ => findings.add("disk", Verdict::Skipped, "the server does not report its free disk space", None)?,
    }
    match endpoints(api) {
        Ok((0, _)) => findings.add("webhook endpoints", Verdict::Good, "there are none", None),
        Ok((all, disabled)) if disabled.is_empty() => {
            findings.add("webhook endpoints", Verdict::Good, &format!("all {all} are enabled"), None)
        }
        Ok((all, disabled)) => {
            let fact = format!("{} of {all} are disabled", disabled.len());
            let next = format!("rental-cli webhook-endpoints get {}, then enable it", disabled[0]);
            findings.add("webhook endpoints", Verdict::Careful, &fact, Some(&next))
        }
        Err(failure) => findings.failed("webhook endpoints", &failure),
    }
}

/// How many webhook endpoints there are on the first pages, and the ids of those that are disabled.
fn endpoints(api: &Api) -> Result<(usize, Vec<String>), Failure> {
    let (mut all, mut disabled) = (0, Vec::new());
    session::any(api, &["webhook_endpoints"], Vec::new(), |raw| {
        let endpoint = Record::read(raw.get())?;
        all += 1;
        if endpoint.text("status").as_deref() == Some("disabled") {
            disabled.extend(endpoint.text("id"));
        }
        Ok(false)
    })?;
    Ok((all, disabled))
}

fn of_organization(findings: &mut Findings<'_>, settings: &Settings, api: &Api) -> Result<(), Failure> {
    let Some(secret) = &settings.api_key else {
        let fact = "no API key is set; an organization's own resources need one";
        return findings.add("api key", Verdict::Skipped, fact, None);
    };
    let query = vec![("limit".to_owned(), "1".to_owned())];
    if let Err(failure) = api.send(&Request::get(Access::Organization, &["vehicles"]).with_query(query)) {
        return findings.failed("api key", &failure);
    }
    let scope = match scope(api)? {
        Some(scope) => format!(", scope {scope}"),
        None => String::new(),
    };
    findings.add("api key", Verdict::Good, &format!("accepted{scope}; it comes from {}", secret.origin), None)
}

/// What the key may do. Scopes are checked before media types (decisions, Errors), so a write of no JSON tells: it is
/// refused either way, and changes nothing.
fn scope(api: &Api) -> Result<Option<&'static str>, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, api.authorization(Access::Organization)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(match api.tell(Method::POST, "/v1/vehicles", headers, "which scope?").map(|told| told.status) {
        Ok(403) => Some("read"),
        Ok(415) => Some("read_write"),
        _ => None,
    })
}
