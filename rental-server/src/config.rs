//! Flags and environment, as `docs/reference.md` lists them.

mod backups;
mod generated;
mod meant;
mod network;
mod quantities;

pub(crate) use backups::BackupPlan;
pub(crate) use generated::{Generated, generate};
pub(crate) use meant::meant;
pub(crate) use network::Network;

use backups::BackupFlags;
use clap::{
    CommandFactory, FromArgMatches, Parser, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use quantities::{TIMES, duration, quantity};
use rental_core::{
    store::{self, Place, WrongUrl, url_forms},
    webhooks::attempt::Schedule,
};
use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use url::Url;

/// Parses the command line and the environment. `--demo` uses a temporary store, so that a store on the same command line is a mistake;
/// one in the environment is that of another server.
pub(crate) fn parse() -> Result<Config, clap::Error> {
    let matches = Config::command().try_get_matches().map_err(without_value)?;
    let config = Config::from_arg_matches(&matches)?;
    if config.demo && matches.value_source("store") == Some(ValueSource::CommandLine) {
        let why = "--demo serves a temporary store, so it cannot be used with --store: leave out one of them";
        return Err(Config::command().error(ErrorKind::ArgumentConflict, why));
    }
    if let (false, Err(WrongUrl::Unknown)) = (config.demo, &config.store.0) {
        let why = format!("--store names no store: use {}, such as {DEFAULT_STORE}", url_forms(|_| true));
        return Err(Config::command().error(ErrorKind::ValueValidation, why));
    }
    Ok(config)
}

/// Does not show an argument without a flag: it can be a part of a store's URL that lacks its quotes, with the password.
fn without_value(mut error: clap::Error) -> clap::Error {
    let is_flag = |found: &ContextValue| matches!(found, ContextValue::String(found) if found.starts_with('-'));
    if error.kind() == ErrorKind::UnknownArgument && !error.get(ContextKind::InvalidArg).is_some_and(is_flag) {
        error.insert(ContextKind::InvalidArg, ContextValue::String("…".into()));
    }
    error
}

/// Store of a server that is given none.
const DEFAULT_STORE: &str = "redb:rental.redb";

/// End of the error when `--store-upgrade never` keeps the server from an upgrade.
pub(crate) const UPGRADES_NEVER: &str = "; --store-upgrade never keeps this server from doing so";

/// Serves the rental platform's API.
#[derive(Debug, Parser)]
#[command(
    name = "rental-server",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("RENTAL_COMMIT"), ")"),
    about = "Serves the rental platform's API.",
    after_help = "Examples:\n  rental-server --demo                         a server with sample data; Ctrl-C removes it\n  rental-server                                a server on ./rental.redb\n  rental-server --listen 0.0.0.0:8080 --store redb:/var/lib/rental/rental.redb --log-format json\n\nThe server reads the admin token from RENTAL_ADMIN_TOKEN or --admin-token-file, or makes one at the first start."
)]
pub(crate) struct Config {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, env = "RENTAL_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// Another address that serves /admin/v1 and /metrics, which --listen then does not serve
    #[arg(long, env = "RENTAL_OPERATOR_LISTEN", value_name = "ADDR", value_parser = address)]
    pub(crate) operator_listen: Option<SocketAddr>,

    /// The URL under which clients reach this server, such as that of a proxy
    #[arg(long, env = "RENTAL_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub(crate) public_url: Option<PublicUrl>,

    // The table of engines has the text of its help.
    #[arg(long, env = "RENTAL_STORE", hide_env_values = true, default_value = DEFAULT_STORE, value_name = "URL", value_parser = store_url, help = store_help())]
    pub(crate) store: StoreUrl,

    /// File with the token that guards /admin/v1, at least 32 characters [default: PATH.admin-token, made at the first start]
    #[arg(long, env = "RENTAL_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// File with the 32-byte key, in hex, that encrypts webhook secrets; further lines are newer keys [default:
    /// PATH.master-key, made at the first start]
    #[arg(long, env = "RENTAL_MASTER_KEY_FILE", value_name = "FILE")]
    pub(crate) master_key_file: Option<PathBuf>,

    /// Start although the key of the store is lost, with the key in the file or a new one: webhook secrets that it does not
    /// open are lost
    #[arg(long)]
    pub(crate) replace_master_key: bool,

    /// Let webhook endpoints point at private and loopback addresses
    #[arg(long, env = "RENTAL_WEBHOOK_ALLOW_PRIVATE", action = clap::ArgAction::SetTrue, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) webhook_allow_private: bool,

    /// Refuse webhook endpoints whose URL is not https, and send nothing to those saved before
    #[arg(long, env = "RENTAL_WEBHOOK_HTTPS_ONLY", action = clap::ArgAction::SetTrue, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) webhook_https_only: bool,

    /// Send no webhooks: for a server on a restored copy; deliveries wait in the store
    #[arg(long, env = "RENTAL_NO_WEBHOOKS", action = clap::ArgAction::SetTrue, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_webhooks: bool,

    /// Delays before each retry of a webhook delivery
    #[arg(long, env = "RENTAL_WEBHOOK_RETRY_SCHEDULE", default_value = "30s,2m,10m,30m,2h", value_name = "LIST", value_parser = schedule)]
    pub(crate) webhook_retry_schedule: Schedule,

    /// Time-out of one webhook attempt, including the response body
    #[arg(long, env = "RENTAL_WEBHOOK_TIMEOUT", default_value = "10s", value_name = "D", value_parser = duration)]
    pub(crate) webhook_timeout: Duration,

    /// Prefix of the webhook headers and of the user agent
    #[arg(long, env = "RENTAL_BRAND", default_value = "Service", value_name = "NAME", value_parser = brand)]
    pub(crate) brand: String,

    /// Serve sample data from a temporary store, which Ctrl-C removes
    #[arg(long)]
    pub(crate) demo: bool,

    /// Requests per second for each API key, with a burst of twice that [default: no limit]
    #[arg(long, env = "RENTAL_RATE_LIMIT", value_name = "N", value_parser = rate)]
    pub(crate) rate_limit: Option<u32>,

    /// Most objects of an organization that has no `max_objects` of its own; 0 for no limit
    #[arg(long, env = "RENTAL_ORGANIZATION_OBJECTS", default_value = "10000000", value_name = "N", value_parser = most)]
    pub(crate) organization_objects: Most,

    /// Most bytes in the store of an organization that has no `max_bytes` of its own; 0 for no limit
    #[arg(long, env = "RENTAL_ORGANIZATION_BYTES", default_value = "64GB", value_name = "SIZE", value_parser = most_bytes)]
    pub(crate) organization_bytes: Most,

    /// Requests per second of all API keys of an organization that has no `max_requests_per_second` of its own, with a burst
    /// of twice that; 0 for no limit
    #[arg(long, env = "RENTAL_ORGANIZATION_REQUESTS", default_value = "10000", value_name = "N", value_parser = most_requests)]
    pub(crate) organization_requests: Most,

    /// Most open connections; more wait to be accepted
    #[arg(long, env = "RENTAL_MAX_CONNECTIONS", default_value = "4096", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,

    /// Most open connections of one address (a /64 network with IPv6), loopback and trusted proxies excepted; more are closed
    #[arg(long, env = "RENTAL_CONNECTIONS_PER_ADDRESS", default_value = "256", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections_per_address: u32,

    /// Proxy whose X-Forwarded-For or Forwarded names the client: a network or an address, repeatable
    #[arg(long = "trusted-proxy", env = "RENTAL_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<Network>,

    /// File with the certificate chain in PEM: serve TLS with HTTP/1.1 and HTTP/2; read again when it changes
    #[arg(long, visible_alias = "tls-certificate", env = "RENTAL_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate in PEM; read again when it changes
    #[arg(long, env = "RENTAL_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Time-out of one request, including its body
    #[arg(long, env = "RENTAL_REQUEST_TIMEOUT", default_value = "30s", value_name = "D", value_parser = duration)]
    pub(crate) request_timeout: Duration,

    /// Largest request body
    #[arg(long, env = "RENTAL_MAX_BODY", default_value = "1MB", value_name = "SIZE", value_parser = size)]
    pub(crate) max_body: usize,

    /// Memory for the store's page cache
    #[arg(long, env = "RENTAL_CACHE_SIZE", default_value = "256MB", value_name = "SIZE", value_parser = size)]
    pub(crate) cache_size: usize,

    /// Refuse writes of API keys and imports while the store's disk has less free space; 0 never does [default: 1 % of the disk, at most 256MB]
    #[arg(long, env = "RENTAL_MIN_FREE_SPACE", value_name = "SIZE", value_parser = free_space)]
    pub(crate) min_free_space: Option<u64>,

    #[command(flatten)]
    pub(crate) backups: BackupFlags,

    /// What to do with a store of an older schema version: `auto` upgrades it before it is served, `never` refuses it
    #[arg(long, env = "RENTAL_STORE_UPGRADE", default_value = "auto", value_name = "WHEN")]
    pub(crate) store_upgrade: StoreUpgrade,

    /// How long events are kept, at least until they are delivered: 1h to 3650d, or `forever`
    #[arg(long, env = "RENTAL_EVENT_RETENTION", default_value = "30d", value_name = "D", value_parser = retention)]
    pub(crate) event_retention: Kept,

    /// How long finished deliveries are kept, and waiting ones of a disabled endpoint: 1h to 3650d, or `forever`
    #[arg(long, env = "RENTAL_DELIVERY_RETENTION", default_value = "30d", value_name = "D", value_parser = retention)]
    pub(crate) delivery_retention: Kept,

    /// How long leads are kept: 1h to 3650d, or `forever`
    #[arg(long, env = "RENTAL_LEAD_RETENTION", default_value = "forever", value_name = "D", value_parser = retention)]
    pub(crate) lead_retention: Kept,

    /// How long audit entries are kept: 1h to 3650d, or `forever`
    #[arg(long, env = "RENTAL_AUDIT_RETENTION", default_value = "forever", value_name = "D", value_parser = retention)]
    pub(crate) audit_retention: Kept,

    /// Ask the server that runs with these settings whether it is alive, and exit with 0 if it is, else with 1
    #[arg(long, conflicts_with = "demo")]
    pub(crate) healthcheck: bool,

    /// Send traces to the OpenTelemetry collector at this URL (OTLP over HTTP with protobuf)
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    pub(crate) otlp_endpoint: Option<Url>,

    /// File with the headers that the collector asks for, such as authorization=Bearer%20TOKEN; without it, the variable
    /// OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, env = "RENTAL_OTLP_HEADERS_FILE", value_name = "FILE")]
    pub(crate) otlp_headers_file: Option<PathBuf>,

    /// Time between two messages to that collector
    #[arg(long, env = "RENTAL_OTLP_INTERVAL", default_value = "10s", value_name = "D", value_parser = duration)]
    pub(crate) otlp_interval: Duration,

    /// Print the manual page or the completions of a shell, and exit
    #[arg(long, value_name = "KIND")]
    pub(crate) generate: Option<Generated>,

    /// Format of the log on stderr
    #[arg(long, env = "RENTAL_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Lowest level of log lines that are written; debug writes one line for each request
    #[arg(long, env = "RENTAL_LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,
}

/// The URL under which clients reach this server, without a slash at its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PublicUrl(pub(crate) String);

/// A retention in milliseconds; `None` for ever.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Kept(pub(crate) Option<i64>);

/// Whether a store of an older schema version is upgraded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StoreUpgrade {
    Auto,
    Never,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Lowest level of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// The store that `--store` names, or why it names none.
#[derive(Clone, Debug)]
pub(crate) struct StoreUrl(Result<Arc<dyn Place>, WrongUrl>);

/// A limit; `None` for no limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Most(pub(crate) Option<u64>);

/// An IP address and a port. The error shows how the given port or host is written.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        if let Ok(host) = text.parse::<IpAddr>() {
            return format!("must be an IP address and a port: use {}", SocketAddr::new(host, 8080));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let port = if port.parse::<u16>().is_ok() { port } else { "8080" };
        let host = match host {
            "localhost" | "" => "127.0.0.1",
            "*" => "0.0.0.0",
            _ => return format!("must be an IP address and a port, such as 127.0.0.1:{port}"),
        };
        format!("must be an IP address and a port: use {host}:{port}")
    })
}

/// A URL for clients, without a slash at its end.
fn public_url(text: &str) -> Result<PublicUrl, String> {
    let wrong = "must be a URL without user, query and fragment, such as https://rental.example.com";
    let url = collector(text).ok().filter(|url| url.fragment().is_none()).ok_or(wrong)?;
    Ok(PublicUrl(url.as_str().trim_end_matches('/').to_owned()))
}

/// The base URL of a collector: `/v1/traces` and `/v1/metrics` are appended.
fn collector(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let plain = |url: &Url| url.username().is_empty() && url.password().is_none() && url.query().is_none();
    url.filter(plain).ok_or_else(|| "must be a URL without user and query, such as http://127.0.0.1:4318".into())
}

/// The URL of a store. What is wrong with it is reported later: errors of flags show the value, and it can contain a password.
pub(crate) fn store_url(url: &str) -> Result<StoreUrl, Infallible> {
    Ok(StoreUrl(store::place(url)))
}

impl StoreUrl {
    /// The place of the store, or what is wrong with the URL, without a part of it.
    pub(crate) fn place(&self) -> Result<Arc<dyn Place>, String> {
        self.0.clone().map_err(|wrong| {
            let why = match wrong {
                WrongUrl::Malformed(why) => why,
                WrongUrl::Unknown => "no engine has such URLs".into(),
            };
            format!("--store is no URL of a store: {why}; use {}", url_forms(|_| true))
        })
    }
}

fn store_help() -> String {
    let of = |shared| url_forms(move |scheme| scheme.shared == shared);
    format!("Store of the data: {}, or {}, which several servers can share", of(false), of(true))
}

/// A retention: `90d`, at least an hour and at most 3650 days, or `forever`.
fn retention(text: &str) -> Result<Kept, String> {
    if text == "forever" {
        return Ok(Kept(None));
    }
    let millis = quantity(text, &TIMES, "write it with h or d, such as 90d, or `forever`")?;
    let in_range = (3_600_000..=3650 * 86_400_000).contains(&millis);
    let millis = i64::try_from(millis).ok().filter(|_| in_range);
    millis.map(|millis| Kept(Some(millis))).ok_or_else(|| "must be at least 1h and at most 3650d, or `forever`".into())
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

/// `64KB`, `1MB`, `2GB`: powers of 1024, at least 1 KB, at most 64 GB.
fn size(text: &str) -> Result<usize, String> {
    let (kilo, mega, giga) = (1 << 10, 1 << 20, 1 << 30);
    let usual = [("B", 1), ("KB", kilo), ("MB", mega), ("GB", giga)];
    let others = [("K", kilo), ("M", mega), ("G", giga), ("KIB", kilo), ("MIB", mega), ("GIB", giga)];
    let units = [&usual[..], &others].concat();
    let bytes = quantity(&text.to_ascii_uppercase(), &units, "write it with KB, MB or GB, such as 64MB")?;
    let in_range = Some(bytes).filter(|bytes| (1 << 10..=64 << 30).contains(bytes));
    in_range.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| "must be at least 1KB and at most 64GB".into())
}

/// Free space: a size, or 0.
fn free_space(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text).map(|bytes| bytes as u64) }
}

/// A limit of objects: 0 for no limit.
fn most(text: &str) -> Result<Most, String> {
    let number = text.parse().map_err(|_| "must be a whole number, such as 1000000, or 0 for no limit")?;
    Ok(Most(Some(number).filter(|number| *number > 0)))
}

/// A limit of bytes: 0 for no limit.
fn most_bytes(text: &str) -> Result<Most, String> {
    if text == "0" { Ok(Most(None)) } else { size(text).map(|bytes| Most(Some(bytes as u64))) }
}

/// A limit of requests per second: 0 for no limit.
fn most_requests(text: &str) -> Result<Most, String> {
    if text == "0" { Ok(Most(None)) } else { rate(text).map(|number| Most(Some(number.into()))) }
}

/// Requests per second: 1 to 1,000,000, without a unit.
fn rate(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or_else(|| "must be a whole number of requests per second, 1 to 1000000, such as 5".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_a_bound() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "30", "s", "0s", "-1s", "1.5s", "31d", "1w", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_collector_has_a_url_without_a_password() {
        assert!(collector("http://127.0.0.1:4318").is_ok() && collector("https://otel.example.com/base/").is_ok());
        for bad in ["", "127.0.0.1:4318", "grpc://x:4317", "http://u:p@x", "http://x/?key=1", "http://"] {
            assert!(collector(bad).is_err_and(|why| why.contains("4318")), "{bad}");
        }
    }

    #[test]
    fn a_retention_is_an_hour_to_ten_years_or_for_ever() {
        assert_eq!(retention("forever"), Ok(Kept(None)));
        assert_eq!([retention("1h"), retention("60m")], [Ok(Kept(Some(3_600_000))), Ok(Kept(Some(3_600_000)))]);
        assert_eq!(retention("3650d"), Ok(Kept(Some(315_360_000_000))));
        for bad in ["", "0", "0d", "59m", "3651d", "30", "never", "1w", "-1d"] {
            assert!(retention(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_without_a_host_is_shown_with_one() {
        assert_eq!(address("[::1]:0"), Ok("[::1]:0".parse().unwrap()));
        for (given, shown) in [
            ("8085", "use 127.0.0.1:8085"),
            (":8085", "use 127.0.0.1:8085"),
            ("localhost:8085", "use 127.0.0.1:8085"),
            ("*:80", "use 0.0.0.0:80"),
            ("0.0.0.0", "use 0.0.0.0:8080"),
            ("::1", "use [::1]:8080"),
            ("example.com:81", "such as 127.0.0.1:81"),
            ("", "use 127.0.0.1:8080"),
        ] {
            assert!(address(given).is_err_and(|why| why.ends_with(shown)), "{given}: {:?}", address(given));
        }
    }

    #[test]
    fn a_rate_is_a_number_without_a_unit_and_the_error_shows_one() {
        assert_eq!([rate("1"), rate("1000000")], [Ok(1), Ok(1_000_000)]);
        for bad in ["", "0", "1000001", "5/s", "-1", "1.5"] {
            assert!(rate(bad).is_err_and(|why| why.ends_with("such as 5")), "{bad}");
        }
    }

    #[test]
    fn sizes_have_a_unit_and_a_bound() {
        assert_eq!(size("64MB"), Ok(64 << 20));
        assert_eq!(size("2KB"), Ok(2048));
        assert_eq!([size("2k"), size("2KiB"), size("2048B")], [Ok(2048), Ok(2048), Ok(2048)]);
        for bad in ["", "MB", "0", "1", "2048", "65GB", "1TB", "-1MB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Config::command().debug_assert();
    }
}
