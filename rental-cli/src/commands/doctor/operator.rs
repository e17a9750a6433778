//! What a server tells operators: its clock, version, disk, master key and webhook endpoints.

use super::findings::{Findings, Status};
use crate::{
    client::{
        access::Access,
        api::{Api, ResponseHead},
        request::Request,
    },
    commands::{clock::Jump, session},
    config::settings::{Secret, Settings},
    edge,
    failure::Failure,
    output::{
        progress::size,
        record::{self, Record},
    },
};
use rental_core::value::Timestamp;
use reqwest::header::DATE;
use std::time::UNIX_EPOCH;

/// Clock difference from which receivers reject webhooks (spec, Signature verification 4).
const SKEW_FATAL_MS: u64 = 300_000;
/// Clock difference worth a warning. Above the error of measurement: the `Date` header has whole seconds.
const SKEW_NOTABLE_MS: u64 = 5_000;
/// Added to two periods, because a backup of a large store takes its time.
const BACKUP_SECONDS: u64 = 3600;
/// Free space on the server's disk below which there is a warning.
const LOW_DISK_BYTES: u64 = 1 << 30;
/// Free space below which there is a warning if it is also less than a tenth of the disk.
const LOW_DISK_SHARE_BYTES: u64 = 5 << 30;

/// Checks the admin token, and compares the clocks. Without a token, the `Date` header tells the time to the second.
pub(super) fn check_operator(
    findings: &mut Findings<'_>,
    settings: &Settings,
    api: &Api,
    alive: &ResponseHead,
) -> Result<(), Failure> {
    let before = edge::now();
    let status = match &settings.admin_token {
        None => {
            let fact = "no admin token is set; only commands marked (operator) need one";
            findings.add("admin token", Status::Skipped, fact, Some("`rental-cli login --operator` stores one"))?;
            None
        }
        Some(Secret { origin, .. }) => {
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
    let exact = status.as_ref().and_then(|status| Timestamp::parse(&status.text("time")?));
    let header = || {
        let date = httpdate::parse_http_date(alive.headers.get(DATE)?.to_str().ok()?).ok()?;
        u64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    };
    let jump = status.as_ref().map(Jump::of).transpose()?.flatten();
    let measured = exact.map(|time| (time.millis(), u64::midpoint(before.millis(), after.millis())));
    match (jump, measured) {
        (Some(jump), _) => {
            let fact = format!("the server takes no writes, because its clock is {}", jump.in_words());
            let next = "set the server's clock; if it is right, `rental-cli clock confirm`";
            findings.add("clock", Status::Failed(9), &fact, Some(next))?;
        }
        (None, Some((theirs, ours))) => check_clock(findings, theirs, ours)?,
        (None, None) => match header() {
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
    check_backups(findings, status)?;
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

/// Checks that the server makes backups by itself, and how old the newest is. A server with sample data needs none.
fn check_backups(findings: &mut Findings<'_>, status: &Record) -> Result<(), Failure> {
    const NAME: &str = "backups";
    let Some(backups) = status.text("backups") else { return Ok(()) };
    let backups = Record::read(&backups)?;
    let Some(every) = backups.text("every_seconds").and_then(|text| text.parse::<u64>().ok()) else {
        let next = "start it with --backup-to DIR, if nothing else makes backups";
        return findings.add(NAME, Status::Warning, "the server makes no backups by itself", Some(next));
    };
    let time = |record: &Record, name: &str| Timestamp::parse(&record.text(name)?);
    let (Some(last), Some(now)) = (time(&backups, "last_success_at"), time(status, "time")) else {
        let next = "the log of the server says why";
        return findings.add(NAME, Status::Warning, "the server has made no backup yet", Some(next));
    };
    let age = now.seconds().saturating_sub(last.seconds());
    let fact = format!("the newest is {} minutes old", age / 60);
    match age > every.saturating_mul(2).saturating_add(BACKUP_SECONDS) {
        true => {
            findings.add(NAME, Status::Warning, &fact, Some("the log of the server says why there is no newer one"))
        }
        false => findings.add(NAME, Status::Passed, &fact, None),
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
