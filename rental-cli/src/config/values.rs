//! Parsers of values in flags, variables and profiles: ids, durations, times, URLs, idempotency keys.

use reqwest::{Url, header::HeaderValue};
use std::time::Duration;

/// Maximum duration: 100 years.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);
/// Maximum of `--timeout`.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// Parses an id: any text that is a valid segment of a path.
pub(crate) fn id(text: &str) -> Result<String, String> {
    match text {
        "" | "." | ".." => Err("not a valid id".into()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a number of objects.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a whole number from 1 on, such as 50; --all lists all".to_owned())
}

/// Parses a whole number with a unit: `30s`, `15m`, `12h`, `90d`. Maximum: 100 years.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration_like(text, "30s, 15m, 12h or 90d")
}

/// Parses a duration for which the server allows some days at most.
pub(crate) fn overlap(text: &str) -> Result<Duration, String> {
    duration_like(text, "30s, 15m, 24h or 7d")
}

/// Parses a duration. `examples` are valid for its purpose.
fn duration_like(text: &str, examples: &str) -> Result<Duration, String> {
    let form = || format!("write it like {examples}");
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
    // The text has digits only, so parsing fails on overflow only.
    let whole = count.parse::<u64>().ok().and_then(|count| count.checked_mul(seconds)).map(Duration::from_secs);
    whole.filter(|whole| *whole <= LONGEST).ok_or_else(|| "longer than 100 years".into())
}

/// Parses a time-out from 1 second to 1 hour.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration_like(text, "30s, 5m or 1h")?;
    if timeout.is_zero() || timeout > LONGEST_TIMEOUT { Err("must be from 1s to 1h".into()) } else { Ok(timeout) }
}

/// Parses the URL of a server: `http` or `https`, a host, and an optional path prefix.
pub(crate) fn base_url(text: &str) -> Result<Url, String> {
    let url = http_url(text, "http://127.0.0.1:8080")?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or fragment".into());
    }
    Ok(url)
}

/// Parses the URL that events are forwarded to: `http` or `https`.
pub(crate) fn target_url(text: &str) -> Result<Url, String> {
    http_url(text, "http://127.0.0.1:3000/hooks")
}

/// Parses a URL with the scheme `http` or `https` and without a password. `example` is shown if `text` is no URL.
fn http_url(text: &str, example: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; write it like {example}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must start with http:// or https://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".into());
    }
    Ok(url)
}

/// Parses an idempotency key: visible ASCII characters.
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
    fn every_example_in_an_error_is_valid() {
        let day = Duration::from_secs(86_400);
        for (parse, longest) in [
            (duration as fn(&str) -> Result<Duration, String>, LONGEST),
            // The server's limit for secrets of webhooks, which is the lower one.
            (overlap, 7 * day),
            (timeout, LONGEST_TIMEOUT),
        ] {
            let error = parse("soon").unwrap_err();
            let examples: Vec<&str> =
                error.split([' ', ',']).filter(|word| word.starts_with(char::is_numeric)).collect();
            assert!(examples.len() >= 3, "{error}");
            assert!(examples.iter().all(|example| parse(example).is_ok_and(|value| value <= longest)), "{error}");
        }
    }

    #[test]
    fn durations_past_a_hundred_years_are_refused() {
        for text in ["36501d", "18446744073709551615d", "99999999999999999999s"] {
            assert_eq!(duration(text), Err("longer than 100 years".into()), "{text}");
        }
        assert!(timeout("0s").is_err() && timeout("61m").is_err() && timeout("1h").is_ok());
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
