//! What users type becomes JSON text; a value that exists can be sent as it is.
//!
//! Only its form is judged here (a number field takes a JSON number). The rules of a field are the server's.

use clap::{
    Arg, Command,
    builder::{PossibleValue, TypedValueParser, ValueParser},
};
use rental_core::{event::EVENT_TYPES, spec::Kind, value::Timestamp};
use reqwest::{Url, header::HeaderValue};
use serde_json::value::RawValue;
use std::{ffi::OsStr, fs::File, io::Read, time::Duration};

/// Longest JSON document that a flag reads from a file; servers take far less.
const FILE_MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Longest duration: a hundred years.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);
/// Longest `--timeout`.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// What events are called.
pub(crate) static EVENT_TYPE_NAMES: [&str; EVENT_TYPES.len()] = {
    let mut names = [""; EVENT_TYPES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = EVENT_TYPES[at].1;
        at += 1;
    }
    names
};

/// One JSON value, as text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct JsonText(String);

impl JsonText {
    /// `null`.
    pub(crate) fn null() -> Self {
        Self("null".into())
    }

    /// A JSON string.
    pub(crate) fn string(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }

    /// A JSON number, written as it was typed: `89.50` stays `89.50`.
    pub(crate) fn number(text: &str) -> Result<Self, String> {
        let plain = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if plain && raw.get() == text => Ok(Self(text.to_owned())),
            _ => Err("not a number; write it like 89.50, without currency signs or separators".into()),
        }
    }

    /// A JSON list.
    pub(crate) fn list<'a>(items: impl IntoIterator<Item = &'a Self>) -> Self {
        let items: Vec<&str> = items.into_iter().map(|item| item.0.as_str()).collect();
        Self(format!("[{}]", items.join(",")))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A JSON document, or `@FILE` (`@-` for standard input) that holds one.
    fn document(text: &str) -> Result<Self, String> {
        let text = match text.strip_prefix('@') {
            Some("-") => {
                read(std::io::stdin().lock()).map_err(|error| format!("cannot read standard input: {error}"))?
            }
            Some(path) => File::open(path).and_then(read).map_err(|error| format!("cannot read the file: {error}"))?,
            None => text.to_owned(),
        };
        let raw: &RawValue = serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}"))?;
        Ok(Self(raw.get().to_owned()))
    }

    /// A line of an invoice, `Text=12.50`: the last `=` separates, so that the text can have some.
    fn line(text: &str) -> Result<Self, String> {
        if let Some((source @ ("rental" | "toll" | "violation"), id)) = text.split_once(':')
            && !id.contains('=')
        {
            return Ok(Self(format!("{{\"{source}_id\":{}}}", Self::string(id).0)));
        }
        let shapes = "write it as 'Text=12.50', or as toll:ID, violation:ID or rental:ID";
        let (description, amount) = text.rsplit_once('=').ok_or(shapes)?;
        let amount = Self::number(amount)?;
        Ok(Self(format!("{{\"description\":{},\"amount\":{}}}", Self::string(description).0, amount.0)))
    }
}

fn read(source: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    source.take(FILE_MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// How the values of `kind` are read. With `nullable`, an empty text is `null`.
pub(crate) fn parser(kind: Kind, nullable: bool) -> ValueParser {
    let or_null = move |text: &str, otherwise: fn(&str) -> Result<JsonText, String>| {
        if nullable && text.is_empty() { Ok(JsonText::null()) } else { otherwise(text) }
    };
    match kind {
        Kind::Money | Kind::Integer(..) => ValueParser::new(move |text: &str| or_null(text, JsonText::number)),
        Kind::Json(_) => ValueParser::new(move |text: &str| or_null(text, JsonText::document)),
        Kind::Lines => ValueParser::new(JsonText::line),
        Kind::Boolean => Words(&["true", "false"]).try_map(|text| truth(&text)).into(),
        Kind::EventTypes => parser(Kind::Word(&EVENT_TYPE_NAMES), nullable),
        Kind::Word(words) => Words(words).try_map(move |text| or_null(&text, |text| Ok(JsonText::string(text)))).into(),
        _ => ValueParser::new(move |text: &str| or_null(text, |text| Ok(JsonText::string(text)))),
    }
}

fn truth(text: &str) -> Result<JsonText, String> {
    match text {
        "true" | "false" => Ok(JsonText(text.to_owned())),
        _ => Err("write true or false".into()),
    }
}

/// What help calls the values of `kind`.
pub(crate) fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Id | Kind::Reference(_) => "ID",
        Kind::Money => "AMOUNT",
        Kind::Integer(..) => "NUMBER",
        Kind::Boolean => "BOOL",
        Kind::Date => "YYYY-MM-DD",
        Kind::Time => "TIME",
        Kind::Currency => "CODE",
        Kind::Email => "EMAIL",
        Kind::Phone => "PHONE",
        Kind::Language => "TAG",
        Kind::Json(_) => "JSON|@FILE",
        Kind::Lines => "TEXT=AMOUNT|toll:ID",
        Kind::Word(_) => "WORD",
        Kind::Url => "URL",
        Kind::TimeZone => "ZONE",
        Kind::EventTypes => "TYPE",
        Kind::Object | Kind::Text(_) | Kind::Name(_) | Kind::AttemptLog => "TEXT",
    }
}

/// Words that help and completions offer. Others are taken too: a newer server may know more of them.
#[derive(Clone)]
pub(crate) struct Words(pub(crate) &'static [&'static str]);

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// An id: anything that can stand as a segment of a path.
pub(crate) fn id(text: &str) -> Result<String, String> {
    match text {
        "" | "." | ".." => Err("not an id".into()),
        _ => Ok(text.to_owned()),
    }
}

/// A whole number and its unit: `30s`, `15m`, `12h`, `90d`. At most a hundred years.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let form = || "write it like 30s, 15m, 12h or 90d".to_owned();
    let unit = text.chars().next_back().ok_or_else(form)?;
    let count =
        text.strip_suffix(unit).filter(|count| count.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(form)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(form()),
    };
    if count.is_empty() {
        return Err(form());
    }
    // All digits, so the only way to fail is a number that is too large.
    let whole = count.parse::<u64>().ok().and_then(|count| count.checked_mul(seconds)).map(Duration::from_secs);
    whole.filter(|whole| *whole <= LONGEST).ok_or_else(|| "more than a hundred years".into())
}

/// A moment of the past.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Since {
    /// An RFC 3339 time, as it was typed.
    At(String),
    /// So long before now.
    Ago(Duration),
}

/// A time, or how long ago: `2026-05-05T09:30:00Z`, `2h`.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    if Timestamp::parse_bound(text).is_some() {
        return Ok(Since::At(text.to_owned()));
    }
    let form = "write a time like 2026-05-05T09:30:00Z, or how long ago like 30m, 2h or 7d";
    duration(text).map(Since::Ago).map_err(|_| form.to_owned())
}

/// A duration from one second to one hour.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration(text)?;
    if timeout.is_zero() || timeout > LONGEST_TIMEOUT { Err("must be from 1s to 1h".into()) } else { Ok(timeout) }
}

/// Where a server is: `http` or `https`, a host, and perhaps a path that everything else is appended to.
pub(crate) fn base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; write it like http://127.0.0.1:8080"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must start with http:// or https://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or fragment".into());
    }
    Ok(url)
}

/// Where events are forwarded to: any `http` or `https` address.
pub(crate) fn target_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; write it like http://127.0.0.1:3000/hooks"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must start with http:// or https://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".into());
    }
    Ok(url)
}

/// Text that can be sent as an idempotency key.
pub(crate) fn idempotency_key(text: &str) -> Result<HeaderValue, String> {
    let visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    HeaderValue::from_str(text)
        .ok()
        .filter(|_| visible)
        .ok_or_else(|| "must be visible ASCII characters without spaces".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_text_that_was_typed() {
        for text in ["89.50", "0", "-5", "1e2", "12345678901234567890.10"] {
            assert_eq!(JsonText::number(text), Ok(JsonText(text.into())));
        }
    }

    #[test]
    fn what_json_calls_no_number_is_refused() {
        for text in [
            "", "abc", "$5", "1,000", ".5", "5.", "+5", "01", "0x10", "NaN", " 5", "5 ", "\"5\"", "true", "null",
            "[1]", "1 2",
        ] {
            assert!(JsonText::number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_equals_sign_separates_a_line() {
        let line = JsonText::line("a=b \"c\"=12.50").unwrap();
        assert_eq!(line.as_str(), r#"{"description":"a=b \"c\"","amount":12.50}"#);
        assert_eq!(JsonText::list([&line, &line]).as_str().matches("12.50").count(), 2);
    }

    #[test]
    fn a_line_needs_an_amount() {
        for text in ["", "Text", "Text=", "Text=abc", "Text=12,50", "Text= 5"] {
            assert!(JsonText::line(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_document_is_kept_as_typed() {
        assert_eq!(JsonText::document("{\"a\" : 1.50}").unwrap().as_str(), "{\"a\" : 1.50}");
        for text in ["", "{", "{} {}", "hello", "@/no/such/file"] {
            assert!(JsonText::document(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_a_number_and_a_unit() {
        for (text, secs) in
            [("0s", 0), ("30s", 30), ("15m", 900), ("12h", 43_200), ("90d", 7_776_000), ("36500d", 3_153_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(secs)), "{text}");
        }
        for text in ["", "s", "30", "-1s", "+1s", "1.5h", "1 h", "1w", "1H", "1d2h", "٣d", "3é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_past_a_hundred_years_are_refused() {
        for text in ["36501d", "18446744073709551615d", "99999999999999999999s"] {
            assert_eq!(duration(text), Err("more than a hundred years".into()), "{text}");
        }
        assert!(timeout("0s").is_err() && timeout("61m").is_err() && timeout("1h").is_ok());
    }

    #[test]
    fn since_is_a_time_or_how_long_ago() {
        for text in ["2026-05-05T09:30:00Z", "2026-05-05T09:30:00.123456+02:00"] {
            assert_eq!(since(text), Ok(Since::At(text.into())));
        }
        assert_eq!(since("2h"), Ok(Since::Ago(Duration::from_secs(7200))));
        for text in ["", "yesterday", "2026-05-05", "2", "-2h", "99999d"] {
            assert!(since(text).is_err_and(|problem| problem.contains("how long ago")), "{text}");
        }
    }

    #[test]
    fn base_urls_hold_no_secrets_and_no_query() {
        assert!(base_url("https://example.com/rental").is_ok());
        for text in [
            "",
            "localhost:8080",
            "ftp://h",
            "http://",
            "http://user:pass@h",
            "http://key@h",
            "http://h?x=1",
            "http://h#x",
        ] {
            assert!(base_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_stays_in_its_segment() {
        assert!(id("cus_123").is_ok());
        for text in ["", ".", ".."] {
            assert!(id(text).is_err(), "{text}");
        }
    }
}
