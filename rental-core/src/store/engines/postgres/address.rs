//! The address of a database, a `postgres://` URL. No text about it repeats a part of the URL, except what was parsed as its
//! hosts, ports and database: any other part can be one of a password that is written wrongly.

use std::{fmt, net::IpAddr, path::PathBuf};
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

/// A parsed `postgres://` URL. Neither `Display` nor an error shows its password.
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    root_certificate: Option<PathBuf>,
}

impl Address {
    /// Parses `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE`, or `postgresql://`.
    ///
    /// The options are those of tokio-postgres and `sslrootcert=FILE`. `sslmode` is `disable`, `prefer` (TLS when the
    /// database offers it) or `verify-full`. The engine always checks certificates and host names, so `require` and
    /// `verify-ca` mean `verify-full`. Without `sslmode`, a database on this machine (loopback, a socket) means `prefer`,
    /// and any other one `verify-full`: passwords and data would cross a network in clear.
    ///
    /// # Errors
    /// A sentence that says what is wrong and contains no value of the URL.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (base, options) = url.split_once('?').unwrap_or((url, ""));
        if !["postgres://", "postgresql://"].iter().any(|scheme| base.starts_with(scheme)) {
            return Err("it must begin with postgres://".into());
        }
        // What is behind the first of two would be taken for the host.
        if base.matches('@').count() > 1 || options.contains('@') {
            return Err("it has an `@` that is not the one before the host: write %40 for it (and %3F for a question mark in a password)".into());
        }
        let (mut kept, mut mode, mut root_certificate) = (Vec::new(), None, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslmode", value)) => mode = Some(ssl_mode(value)?),
                Some(("sslrootcert", value)) => root_certificate = Some(PathBuf::from(unescape(value))),
                _ => kept.push(option),
            }
        }
        let mut config: Config = format!("{base}?{}", kept.join("&")).parse().map_err(|error| refusal(&error))?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".into());
        }
        // The database repeats the user's name in its errors.
        if config.get_user().is_some_and(|user| user.contains(':')) {
            return Err("its user name has a colon: write the one before the password as `:`, not as %3A".into());
        }
        let default = if is_on_this_machine(&config) { SslMode::Prefer } else { SslMode::Require };
        config.ssl_mode(mode.unwrap_or(default));
        // Of several hosts, tokio-postgres takes the one that accepts writes. It refuses a replica.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("rental-server");
        }
        Ok(Self { config, root_certificate })
    }

    /// Whether the URL contains no password. Then [`Address::set_password`] can add one.
    #[must_use]
    pub fn lacks_password(&self) -> bool {
        self.config.get_password().is_none()
    }

    /// Sets the password, or replaces the one of the URL.
    pub fn set_password(&mut self, password: &str) {
        self.config.password(password);
    }

    /// The file with the trusted certificates (`sslrootcert`); `None` means those of the system.
    #[must_use]
    pub fn root_certificate(&self) -> Option<&std::path::Path> {
        self.root_certificate.as_deref()
    }

    /// The password for this database in the text of a password file, which has the format of libpq's `.pgpass`.
    #[must_use]
    pub fn password_in(&self, passfile: &str) -> Option<String> {
        let host = match self.config.get_hosts().first()? {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(_) => "localhost".to_owned(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432).to_string();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        let wanted = [host.as_str(), &port, database, user];
        passfile.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = pass_fields(line);
            let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
            let matches = fields.len() == 5 && fields.iter().zip(&wanted).all(fits);
            matches.then(|| fields.last().cloned()).flatten()
        })
    }
}

/// `postgres://HOST:PORT/DATABASE`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
            let comma = if at == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{comma}{}:{port}", path.display())?,
            }
        }
        self.config.get_dbname().map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether every host is a socket of this machine, or its loopback interface.
fn is_on_this_machine(config: &Config) -> bool {
    let named = |name: &str| match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    };
    // With `hostaddr`, the name is only compared with the certificate.
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(|address| address.to_canonical().is_loopback());
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => named(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

fn ssl_mode(value: &str) -> Result<SslMode, String> {
    match value {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => Err("sslmode must be disable, prefer or verify-full".into()),
    }
}

fn unescape(value: &str) -> String {
    // In an option of this URL a plus sign is not a space.
    let pair = format!("v={}", value.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// The fields of one line, separated by colons. A backslash escapes the next character.
fn pass_fields(line: &str) -> Vec<String> {
    let (mut fields, mut escaped) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            // The fifth field, the password, may contain colons.
            ':' if !escaped && fields.len() < 5 => fields.push(String::new()),
            c => fields.last_mut().into_iter().for_each(|field| field.push(c)),
        }
        escaped = false;
    }
    fields
}

/// Why a URL cannot be parsed. Of an unknown option only this is said: it can be a part of a password.
fn refusal(error: &tokio_postgres::Error) -> String {
    let said = describe(error);
    match said.find("invalid value for option") {
        Some(at) => said.get(at..).unwrap_or_default().to_owned(),
        None => {
            "it has an unknown option, or one without a value; usual ones are sslmode, sslrootcert and connect_timeout"
                .into()
        }
    }
}

/// The text of an error and all its causes, in one line.
pub(super) fn describe(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = "postgresql://app:s3cret@db.example.com:6432/fleet?sslmode=verify-full&sslrootcert=/etc/a+b%20c.pem";
        let address = Address::parse(url).unwrap();
        assert_eq!(format!("{address} {address:?}").matches("postgres://db.example.com:6432/fleet").count(), 2);
        assert_eq!(address.root_certificate(), Some(std::path::Path::new("/etc/a+b c.pem")));
        assert!(!address.lacks_password() && !format!("{address:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_its_values() {
        for (url, part) in [
            ("mysql://u:s3cret@h/d", "must begin with"),
            ("postgres://u:s3cret@h:port/d", "port"),
            ("postgres://u:s3cret@h/d?sslmode=s3cret", "sslmode"),
            ("postgres://u:s3cret@h/d?colour=s3cret", "an unknown option"),
            ("postgres://u:p@h/d?s3cret", "an unknown option"),
            ("postgres://u:p&s3cret=@h/d?s3cret=1", "an unknown option"),
            ("postgres://u:p?s3cret@h/d", "%3F"),
            ("postgres://u:p?host=s3cret@h/d", "%3F"),
            ("postgres://u:p@s3cret@h:1/d?sslmode=disable", "%40"),
            ("postgres://u:p@s3cret/x@h:1/d", "%40"),
            ("postgres://u%3As3cret@h/d", "%3A"),
            ("postgres://u:s3cret/d", "port"),
            ("postgres:u:s3cret@h/d", "must begin with"),
            ("postgresql+asyncpg://u:s3cret@h/d", "must begin with"),
            ("postgres:///d", "host"),
        ] {
            let said = Address::parse(url).expect_err(url);
            assert!(said.contains(part) && !said.contains("s3cret"), "{url}: {said}");
        }
    }

    #[test]
    fn an_address_shows_hosts_ports_and_database_only() {
        for url in [
            "postgres://u:s3cret@h:1/d",
            "postgres://u:s3/c:ret@h:1/d",
            "postgres://u:s3%40cret@h:1/d",
            "postgres://u:s3 cret@h:1/d",
            "postgres://u@h:1/d?password=s3cret",
            "postgres://h:1/d?user=u&password=s3%26cret&application_name=s3cret&options=s3cret",
            "postgres://:s3cret@h:1/d",
            "postgres://s3cret:@h:1/d",
            "postgres://s3cret@h:1/d",
        ] {
            let address = Address::parse(url).expect(url);
            assert_eq!(
                (format!("{address}"), format!("{address:?}")),
                ("postgres://h:1/d".into(), "postgres://h:1/d".into())
            );
        }
    }

    #[test]
    fn only_a_database_on_this_machine_may_be_reached_without_tls_unless_the_url_says_so() {
        for (place, expected) in [
            ("localhost/d", SslMode::Prefer),
            ("127.0.0.1:5433/d", SslMode::Prefer),
            ("[::1]/d", SslMode::Prefer),
            ("%2Frun%2Fpostgresql/d", SslMode::Prefer),
            ("/d?host=/run/postgresql", SslMode::Prefer),
            ("localhost,127.0.0.1/d", SslMode::Prefer),
            ("db/d?hostaddr=127.0.0.1", SslMode::Prefer),
            ("db.example.com/d", SslMode::Require),
            ("10.0.0.7/d", SslMode::Require),
            ("localhost,10.0.0.7/d", SslMode::Require),
            ("localhost/d?hostaddr=10.0.0.7", SslMode::Require),
            ("localhost.example.com/d", SslMode::Require),
            ("localhost/d?sslmode=verify-full", SslMode::Require),
            ("10.0.0.7/d?sslmode=prefer", SslMode::Prefer),
            ("10.0.0.7/d?sslmode=disable", SslMode::Disable),
        ] {
            let address = Address::parse(&format!("postgres://app@{place}")).expect(place);
            assert_eq!(address.config.get_ssl_mode(), expected, "{place}");
        }
    }

    #[test]
    fn a_password_file_is_read_as_libpq_reads_it() {
        let address = Address::parse("postgres://app@db:6432/fleet").unwrap();
        for (file, expected) in [
            ("db:6432:fleet:app:one:two", Some("one:two")),
            ("# db:6432:fleet:app:no\nother:*:*:*:no\n*:*:*:app:a\\:b\\\\c", Some("a:b\\c")),
            ("db:5432:fleet:app:no\ndb:6432:fleet", None),
        ] {
            assert_eq!(address.password_in(file).as_deref(), expected, "{file}");
        }
    }
}
