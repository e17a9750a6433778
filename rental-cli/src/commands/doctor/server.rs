//! What a server tells everybody: whether it is there, its version, and whether it accepts writes.

use super::findings::{Findings, Status};
use crate::{
    client::api::{Api, ResponseHead},
    config::settings::Settings,
    failure::Failure,
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
