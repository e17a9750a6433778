//! Flags and environment, as `docs/reference.md` lists them.

use clap::{Parser, ValueEnum};
use rental_core::webhooks::attempt::Schedule;
use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

/// Serves the rental platform's API.
#[derive(Debug, Parser)]
#[command(
    name = "rental-server",
    version,
    about = "Serves the rental platform's API.",
    after_help = "Examples:\n  rental-server --demo                         a server with sample data, gone on Ctrl-C\n  rental-server                                a server on ./rental.redb\n  rental-server --listen 0.0.0.0:8080 --store redb:/var/lib/rental/rental.redb --log-format json\n\nThe admin token comes from RENTAL_ADMIN_TOKEN, from --admin-token-file, or is made at the first start."
)]
pub(crate) struct Config {
    /// Address to listen on; port 0 picks one
    #[arg(long, env = "RENTAL_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,

    /// Where the data lives: redb:PATH, or postgres://USER@HOST:PORT/DATABASE for several servers
    #[arg(long, env = "RENTAL_STORE", hide_env_values = true, default_value = "redb:rental.redb", value_name = "URL", value_parser = store_url)]
    pub(crate) store: StoreUrl,

    /// File with the token that guards /admin/v1, at least 32 characters [default: PATH.admin-token, made at the first start]
    #[arg(long, env = "RENTAL_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// File with the 32-byte key, in hex, that encrypts webhook secrets [default: PATH.master-key, made at the first start]
    #[arg(long, env = "RENTAL_MASTER_KEY_FILE", value_name = "FILE")]
    pub(crate) master_key_file: Option<PathBuf>,

    /// Let webhook endpoints point at private and loopback addresses
    #[arg(long, env = "RENTAL_WEBHOOK_ALLOW_PRIVATE", action = clap::ArgAction::SetTrue, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) webhook_allow_private: bool,

    /// When a failed webhook delivery is tried again, after each failed attempt
    #[arg(long, env = "RENTAL_WEBHOOK_RETRY_SCHEDULE", default_value = "30s,2m,10m,30m,2h", value_name = "LIST", value_parser = schedule)]
    pub(crate) webhook_retry_schedule: Schedule,

    /// Time for one webhook attempt, the answer's body included
    #[arg(long, env = "RENTAL_WEBHOOK_TIMEOUT", default_value = "10s", value_name = "D", value_parser = duration)]
    pub(crate) webhook_timeout: Duration,

    /// Prefix of the webhook headers and of the user agent
    #[arg(long, env = "RENTAL_BRAND", default_value = "Service", value_name = "NAME", value_parser = brand)]
    pub(crate) brand: String,

    /// Serve sample data from a temporary store, which Ctrl-C removes
    #[arg(long)]
    pub(crate) demo: bool,

    /// Requests per second for each API key, with a burst of twice that [default: no limit]
    #[arg(long, env = "RENTAL_RATE_LIMIT", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate_limit: Option<u32>,

    /// Most connections at once; more wait to be accepted
    #[arg(long, env = "RENTAL_MAX_CONNECTIONS", default_value = "4096", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,

    /// Longest time for one request, its body included
    #[arg(long, env = "RENTAL_REQUEST_TIMEOUT", default_value = "30s", value_name = "D", value_parser = duration)]
    pub(crate) request_timeout: Duration,

    /// Largest body of a request
    #[arg(long, env = "RENTAL_MAX_BODY", default_value = "1MB", value_name = "SIZE", value_parser = size)]
    pub(crate) max_body: usize,

    /// Memory for the store's page cache
    #[arg(long, env = "RENTAL_CACHE_SIZE", default_value = "256MB", value_name = "SIZE", value_parser = size)]
    pub(crate) cache_size: usize,

    /// What to do with a store of an older schema version: `auto` upgrades it before it is served, `never` refuses it
    #[arg(long, env = "RENTAL_STORE_UPGRADE", default_value = "auto", value_name = "WHEN")]
    pub(crate) store_upgrade: StoreUpgrade,

    /// How logs are written to stderr
    #[arg(long, env = "RENTAL_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Least severe log lines that are written; debug has one line for each request
    #[arg(long, env = "RENTAL_LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,
}

/// What is done with a store of an older schema version.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StoreUpgrade {
    Auto,
    Never,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Which log lines are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// Where the data lives.
#[derive(Clone, Debug)]
pub(crate) enum StoreUrl {
    File(PathBuf),
    Database(Secret),
}

impl StoreUrl {
    /// The data file, beside which the server keeps its secrets.
    pub(crate) fn path(&self) -> Option<&std::path::Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Database(_) => None,
        }
    }
}

/// A text that may hold a password: never shown.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

/// `redb:PATH`, or the URL of a database. What may hold a password is looked at later: errors of flags show their value.
fn store_url(url: &str) -> Result<StoreUrl, String> {
    match url.split_once(':') {
        Some(("redb", path)) if !path.is_empty() => Ok(StoreUrl::File(PathBuf::from(path))),
        Some((scheme, rest)) if scheme != "redb" && (scheme.starts_with("postgres") || rest.contains('@')) => {
            Ok(StoreUrl::Database(Secret(url.to_owned())))
        }
        _ => Err("is no store: use redb:PATH, such as redb:rental.redb, or postgres://USER@HOST:PORT/DATABASE".into()),
    }
}

/// `500ms`, `30s`, `2m`, `10m`, `2h`, `1d`: more than 0, at most 30 days.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let millis = match &text[split..] {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        other => return Err(format!("unknown unit `{other}`: use ms, s, m, h or d, such as 30s")),
    };
    let number: u64 = text[..split].parse().map_err(|_| "must be a number and a unit, such as 30s".to_owned())?;
    match number.checked_mul(millis) {
        Some(total) if (1..=30 * 86_400_000).contains(&total) => Ok(Duration::from_millis(total)),
        _ => Err("must be more than 0 and at most 30d".into()),
    }
}

/// `30s,2m,10m`: 1 to 20 durations.
fn schedule(text: &str) -> Result<Schedule, String> {
    let delays = text
        .split(',')
        .map(|delay| duration(delay.trim()).map(|delay| i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)));
    Schedule::new(delays.collect::<Result<_, _>>()?).ok_or_else(|| "must be 1 to 20 delays, such as 30s,2m".into())
}

/// 1 to 32 letters, digits and hyphens, the first a letter.
fn brand(text: &str) -> Result<String, String> {
    let letters = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if letters && text.len() <= 32 {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 32 letters, digits and hyphens, such as Acme".into())
    }
}

/// `64KB`, `1MB`, `2GB`, or plain bytes; units are powers of 1024. At least 1 KB, at most 64 GB.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[split..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        other => return Err(format!("unknown unit `{other}`: use KB, MB or GB, such as 64MB")),
    };
    let number: u64 = text[..split].parse().map_err(|_| "must be a number and a unit, such as 64MB".to_owned())?;
    let bytes = number.checked_mul(unit).filter(|bytes| (1 << 10..=64 << 30).contains(bytes));
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| "must be at least 1KB and at most 64GB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_a_bound() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "s", "0s", "-1s", "1.5s", "31d", "1w", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_a_unit_and_a_bound() {
        assert_eq!(size("64MB"), Ok(64 << 20));
        assert_eq!(size("2048"), Ok(2048));
        for bad in ["", "MB", "0", "1", "65GB", "1TB", "-1MB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Config::command().debug_assert();
    }
}
