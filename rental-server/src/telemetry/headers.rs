//! The headers that a collector asks for, such as a token. They come from a file or a variable, never from a flag: other users
//! of the machine see flags.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::{env, fs, path::Path};

/// The variable of the OpenTelemetry specification.
const VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// The headers in this file, else those in the variable; none without both.
pub(crate) fn headers(file: Option<&Path>) -> Result<HeaderMap, String> {
    let (text, source) = match file {
        Some(path) => {
            let shown = path.display();
            let text = fs::read_to_string(path).map_err(|error| {
                format!("cannot read {shown}: {error}; correct --otlp-headers-file (or RENTAL_OTLP_HEADERS_FILE)")
            })?;
            (text, shown.to_string())
        }
        None => match env::var(VARIABLE) {
            Ok(text) => (text, VARIABLE.to_owned()),
            Err(env::VarError::NotPresent) => return Ok(HeaderMap::new()),
            Err(env::VarError::NotUnicode(_)) => return Err(wrong(VARIABLE)),
        },
    };
    parse(&text).ok_or_else(|| wrong(&source))
}

/// The message does not show the value, which is a secret.
fn wrong(source: &str) -> String {
    format!(
        "the headers in {source} are not of the form NAME=VALUE,NAME=VALUE with percent-encoded values, such as authorization=Bearer%20TOKEN"
    )
}

/// Parses `name=value` pairs between commas or line ends. Values are percent-encoded.
fn parse(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.split([',', '\n']).map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let name = HeaderName::try_from(name.trim()).ok()?;
        let mut value = HeaderValue::from_bytes(&decoded(value.trim())?).ok()?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Some(headers)
}

/// The bytes of a percent-encoded text.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        bytes.extend(hex::decode(after.get(..2)?).ok()?);
        rest = &after[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[(&str, &str)]>) {
        let parsed = parse(text);
        let pairs = parsed.as_ref().map(|headers| {
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect::<Vec<_>>()
        });
        assert_eq!(pairs.as_deref(), expected, "{text}");
    }

    #[test]
    fn pairs_are_between_commas_or_lines_and_values_percent_encoded() {
        check("", Some(&[]));
        check("api-key=a%20b,X-Scope = c=d", Some(&[("api-key", "a b"), ("x-scope", "c=d")]));
        check("authorization=Bearer%20t\n\nother=1\n", Some(&[("authorization", "Bearer t"), ("other", "1")]));
        check("authorization=Bearer t", Some(&[("authorization", "Bearer t")]));
        for wrong in ["Bearer t", "a b=c", "=c", "a=%4", "a=%zz", "a=%0d%0ab"] {
            check(wrong, None);
        }
    }
}
