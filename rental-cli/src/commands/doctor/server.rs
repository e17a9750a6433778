//! What a server tells everybody: whether it is there, its version, and whether it accepts writes.

use super::findings::{Findings, Status};
use crate::{
    client::{
        access::Access,
        api::{Api, ResponseHead},
        request::Request,
    },
    config::settings::Settings,
    failure::{Failure, error_response::ErrorResponse},
    output::record::{self, Record},
};
use rental_core::API_VERSION;
use std::net::IpAddr;

/// Checks that a server of this API responds. Returns the head of its response.
pub(super) fn check_server(
    findings: &mut Findings<'_>,
    settings: &Settings,
    api: &Api,
) -> Result<Option<ResponseHead>, Failure> {
    let alive = match api.probe("/healthz") {
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

pub(super) fn check_ready(findings: &mut Findings<'_>, api: &Api) -> Result<(), Failure> {
    match api.probe("/readyz") {
        Ok(head) if head.status == 200 => {
            let told = std::str::from_utf8(&head.body).ok().and_then(|body| Record::read(body).ok()?.text("status"));
            match told.as_deref() {
                Some("read_only") => {
                    let fact = "the server refuses writes, because its disk has too little room; reads go on";
                    findings.add("ready", Status::Failed(9), fact, Some("free space on the disk of the data file"))
                }
                _ => findings.add("ready", Status::Passed, "the server accepts writes", None),
            }
        }
        Ok(head) => {
            // Only operators are told which database does not answer.
            let status = api.send(&Request::get(Access::Operator, &["status"])).and_then(record::json).ok();
            let reason = status.and_then(|json| Record::read(&json).ok()?.text("not_ready_reason"));
            let said = ErrorResponse::read(head.status, &head.body, String::new());
            let reason = reason.unwrap_or_else(|| said.message().to_owned());
            let fact = format!("/readyz responds with {}: {reason}", head.status);
            findings.add("ready", Status::Failed(9), &fact, Some("the log of the server has more"))
        }
        Err(failure) => findings.failed("ready", &failure),
    }
}
