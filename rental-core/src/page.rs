//! Lists: which query parameters they take, which span of the store answers them, and the page that goes out.
//!
//! Newest first. A cursor is the id of a page's last object and is read as a position, never looked up, so it survives
//! whatever happens to that object (`docs/decisions.md`, "Lists").

use crate::{
    body::{did_you_mean, shorten},
    error::{Error, FieldCode, FieldError, FieldErrors},
    spec::{Kind, ResourceSpec},
    store::{Key, Record, Span, key},
    value::Timestamp,
};
use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

/// Objects on a page when the query does not say (spec, Limits).
pub const DEFAULT_LIMIT: usize = 20;
/// Most objects on a page (spec, Limits).
pub const MAX_LIMIT: usize = 100;
/// Most parameters that a query may have (`docs/api.md`, "Errors").
pub const MOST_PARAMETERS: usize = 32;
/// The parameters that every list takes, beside its filters.
pub const COMMON_PARAMETERS: [&str; 4] = ["limit", "starting_after", "created[gte]", "created[lt]"];

/// The checked query of one list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListQuery {
    /// 1 to 100.
    pub limit: usize,
    /// Where the page before ended.
    pub starting_after: Option<Uuid>,
    /// Created at this time or later.
    pub created_gte: Option<Timestamp>,
    /// Created before this time.
    pub created_lt: Option<Timestamp>,
    /// A value for each filter of the resource that is used.
    pub filters: Vec<Option<String>>,
}

impl ListQuery {
    /// Reads the raw query of a URL, without its `?`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every bad parameter, or with one error for more than [`MOST_PARAMETERS`].
    pub fn parse(raw: &str, spec: &ResourceSpec) -> Result<Self, Error> {
        let mut query = Self { limit: DEFAULT_LIMIT, filters: vec![None; spec.filters.len()], ..Self::default() };
        let mut errors = FieldErrors::default();
        for (name, value) in pairs(raw, &mut errors)? {
            if let Err(error) = query.set(&name, &value, spec) {
                errors.push(error);
            }
        }
        errors.or(query)
    }

    fn set(&mut self, name: &str, value: &str, spec: &ResourceSpec) -> Result<(), FieldError> {
        let bad = |rule: &str| FieldError::new(name, FieldCode::Invalid, rule);
        match name {
            "limit" => {
                let digits = value.bytes().all(|byte| byte.is_ascii_digit());
                let limit = value.parse().ok().filter(|limit| digits && (1..=MAX_LIMIT).contains(limit));
                self.limit = limit.ok_or_else(|| bad("must be a whole number from 1 to 100"))?;
            }
            "starting_after" => {
                let cursor = id(value).ok_or_else(|| bad("must be the `next_cursor` of an earlier page"))?;
                self.starting_after = Some(cursor);
            }
            "created[gte]" | "created[lt]" => {
                let time = Timestamp::parse_bound(value)
                    .ok_or_else(|| bad("must be an RFC 3339 time, such as 2026-05-05T09:30:00Z"))?;
                *(if name == "created[gte]" { &mut self.created_gte } else { &mut self.created_lt }) = Some(time);
            }
            _ => {
                let place =
                    spec.filters.iter().position(|filter| filter.param == name).ok_or_else(|| unknown(name, spec))?;
                let kind = spec.field(spec.filters[place].field).map(|field| field.kind);
                if value.is_empty() || value.chars().nth(255).is_some() {
                    return Err(bad("must be 1 to 255 characters"));
                }
                if let Some(Kind::Word(words)) = kind
                    && !words.contains(&value)
                {
                    let near = did_you_mean(value, words.iter().copied());
                    return Err(bad(&format!("must be one of {}{near}", words.join(", "))));
                }
                self.filters[place] = Some(value.to_owned());
            }
        }
        Ok(())
    }

    /// The one index range that answers this query in `organization`; `None` when nothing can match.
    #[must_use]
    pub fn span(&self, organization: Uuid, spec: &ResourceSpec) -> Option<Span> {
        let mut mask = 0;
        let mut values = Vec::new();
        for (at, (filter, value)) in spec.filters.iter().zip(&self.filters).enumerate() {
            if let Some(value) = value {
                mask |= 1 << at;
                values.push(index_value(spec.field(filter.field)?.kind, value)?);
            }
        }
        let prefix =
            if mask == 0 { key::records(organization, spec) } else { key::index(organization, spec, mask, &values) };
        let mut span = Span::newest_first(&prefix);
        if mask != 0 {
            span = span.following(key::records(organization, spec));
        }
        if let Some(cursor) = self.starting_after {
            span = span.before_id(&prefix, cursor);
        }
        if let Some(time) = self.created_gte {
            span = span.created_from(&prefix, time.millis());
        }
        if let Some(time) = self.created_lt {
            span = span.created_before(&prefix, time.millis());
        }
        Some(span)
    }
}

/// How a field's value stands in an index; `None` for an id that no object can have.
fn index_value(kind: Kind, value: &str) -> Option<Vec<u8>> {
    match kind {
        Kind::Reference(_) | Kind::Id => id(value).map(|id| id.as_bytes().to_vec()),
        _ => Some(value.as_bytes().to_vec()),
    }
}

/// The index entries of an object: one for each combination of filters whose fields are all set.
///
/// `value` gives the text of a field, or `None` when it is empty.
pub fn index_entries(
    organization: Uuid,
    spec: &ResourceSpec,
    object: Uuid,
    value: impl Fn(&str) -> Option<String>,
) -> Vec<Key> {
    let values: Vec<Option<Vec<u8>>> = spec
        .filters
        .iter()
        .map(|filter| spec.field(filter.field).and_then(|field| index_value(field.kind, &value(filter.field)?)))
        .collect();
    let used = |mask: u8| {
        values.iter().enumerate().filter(move |(at, _)| mask & (1 << at) != 0).map(|(_, value)| value.clone())
    };
    (1..1u8 << spec.filters.len())
        .filter_map(|mask| {
            let values: Option<Vec<_>> = used(mask).collect();
            Some(key::entry(&key::index(organization, spec, mask, &values?), object))
        })
        .collect()
}

fn unknown(name: &str, spec: &ResourceSpec) -> FieldError {
    let known = COMMON_PARAMETERS.into_iter().chain(spec.filters.iter().map(|filter| filter.param));
    let rule = format!("is not a parameter of this list{}", did_you_mean(name, known));
    FieldError::new(&shorten(name), FieldCode::Unknown, &rule)
}

/// Reads an id as this API writes it: a UUID in lower case with hyphens. Any other spelling is an unknown id.
#[must_use]
pub fn id(text: &str) -> Option<Uuid> {
    let plain = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if plain { Uuid::try_parse(text).ok() } else { None }
}

/// For a request that takes no parameters.
///
/// # Errors
/// [`Error::Invalid`] that names each one.
pub fn no_parameters(raw: &str) -> Result<(), Error> {
    if raw.is_empty() {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    for (name, _) in pairs(raw, &mut errors)? {
        let rule = "is not taken: this request has no query parameters";
        errors.push(FieldError::new(&shorten(&name), FieldCode::Unknown, rule));
    }
    errors.or(())
}

/// The parameters of a request that takes these and no others, decoded.
///
/// # Errors
/// [`Error::Invalid`] that names each one that is unknown, sent twice or garbled.
pub fn parameters(raw: &str, known: &[&str]) -> Result<Vec<(String, String)>, Error> {
    let mut errors = FieldErrors::default();
    let pairs = pairs(raw, &mut errors)?;
    for (name, _) in pairs.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let rule = format!("is not a parameter of this request{}", did_you_mean(name, known.iter().copied()));
        errors.push(FieldError::new(&shorten(name), FieldCode::Unknown, &rule));
    }
    errors.or(pairs)
}

/// `; did you mean X?` for the nearest of `known`, if one is near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    did_you_mean(name, known)
}

/// Splits a raw query into decoded pairs; what cannot be decoded or comes twice is added to `errors`.
///
/// `+` is a plus sign: no value here has spaces, while e-mail addresses and UTC offsets are often sent unescaped.
///
/// # Errors
/// [`Error::Invalid`] for more than [`MOST_PARAMETERS`]: none of them is looked at, so their number costs nothing.
fn pairs(raw: &str, errors: &mut FieldErrors) -> Result<Vec<(String, String)>, Error> {
    let parts = || raw.split('&').filter(|part| !part.is_empty());
    if let Some(first) = parts().nth(MOST_PARAMETERS) {
        let name = first.split_once('=').map_or(first, |(name, _)| name);
        let rule = format!(
            "is one too many: a request has at most {MOST_PARAMETERS} query parameters, and this one has {}",
            parts().count()
        );
        return Err(Error::field(&shorten(name), FieldCode::Invalid, &rule));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in parts() {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match (percent_decode(name), percent_decode(value)) {
            (Some(name), Some(_)) if pairs.iter().any(|(known, _)| *known == name) => {
                errors.push(FieldError::new(&shorten(&name), FieldCode::Duplicate, "is sent more than once"));
            }
            (Some(name), Some(value)) => pairs.push((name, value)),
            _ => errors.push(FieldError::new(&shorten(name), FieldCode::Invalid, "is not valid percent-encoded UTF-8")),
        }
    }
    Ok(pairs)
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            decoded.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

/// The list envelope (spec, List envelope) around records, without decoding them.
///
/// `records` holds one more than `limit` when more follow.
#[must_use]
pub fn envelope(records: &[Record], limit: usize) -> Bytes {
    let has_more = records.len() > limit;
    let shown = &records[..records.len().min(limit)];
    let size: usize = shown.iter().map(|record| record.value.len() + 1).sum();
    let mut out = BytesMut::with_capacity(size + 128);
    out.put_slice(if has_more {
        b"{\"object\":\"list\",\"has_more\":true"
    } else {
        b"{\"object\":\"list\",\"has_more\":false"
    });
    match shown.last().and_then(|record| record.key.id()).filter(|_| has_more) {
        Some(cursor) => {
            out.put_slice(b",\"next_cursor\":\"");
            out.put_slice(cursor.hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
            out.put_slice(b"\",\"data\":[");
        }
        None => out.put_slice(b",\"next_cursor\":null,\"data\":["),
    }
    for (at, record) in shown.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        out.put_slice(&record.value);
    }
    out.put_slice(b"]}");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{customer, rental};
    use proptest::prelude::*;

    fn params(raw: &str) -> Vec<(String, &'static str)> {
        match ListQuery::parse(raw, &rental::SPEC) {
            Err(Error::Invalid(errors)) => {
                errors.listed().iter().map(|error| (error.param.clone(), error.code.as_str())).collect()
            }
            other => panic!("{raw}: {other:?}"),
        }
    }

    #[test]
    fn a_limit_outside_1_to_100_is_refused() {
        for bad in ["0", "101", "abc", "", "-1", "+5", "1.5", "99999999999999999999", "%31%30%31"] {
            assert_eq!(params(&format!("limit={bad}")), [("limit".to_owned(), "parameter_invalid")], "{bad}");
        }
        assert_eq!(ListQuery::parse("limit=%31", &rental::SPEC).map(|query| query.limit), Ok(1));
        assert_eq!(ListQuery::parse("", &rental::SPEC).map(|query| query.limit), Ok(20));
    }

    #[test]
    fn repeated_and_unknown_parameters_are_named() {
        assert_eq!(params("limit=1&limit=1"), [("limit".to_owned(), "parameter_duplicate")]);
        assert_eq!(
            params("stauts=NEW&%ff=1"),
            [("%ff".to_owned(), "parameter_invalid"), ("stauts".to_owned(), "parameter_unknown")]
        );
        assert_eq!(params("status=new"), [("status".to_owned(), "parameter_invalid")]);
    }

    #[test]
    fn a_plus_sign_is_a_plus_sign() {
        let query = ListQuery::parse("email=a+b@example.com", &customer::SPEC).unwrap();
        assert_eq!(query.filters, [Some("a+b@example.com".to_owned())]);
    }

    #[test]
    fn ids_have_one_spelling() {
        let text = "0190d0f2-7c3a-7cc0-8000-00000000000a";
        assert!(id(text).is_some());
        for other in [
            text.to_uppercase(),
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
            String::new(),
        ] {
            assert_eq!(id(&other), None, "{other}");
        }
    }

    #[test]
    fn an_id_that_cannot_exist_matches_nothing() {
        let query = ListQuery::parse("customer=cus_123", &rental::SPEC).unwrap();
        assert!(query.span(Uuid::nil(), &rental::SPEC).is_none());
    }

    proptest! {
        #[test]
        fn no_query_makes_the_parser_panic(raw in "\\PC{0,200}") {
            let _ = ListQuery::parse(&raw, &rental::SPEC);
            let _ = no_parameters(&raw);
        }

        #[test]
        fn a_cursor_is_read_back_as_the_same_position(n: u128) {
            let uuid = Uuid::from_u128(n);
            let query = ListQuery::parse(&format!("starting_after={uuid}"), &rental::SPEC).unwrap();
            prop_assert_eq!(query.starting_after, Some(uuid));
        }
    }
}
