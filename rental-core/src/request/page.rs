//! Lists: parses the query parameters, chooses the span of the store to read, and builds the page.
//!
//! A list is ordered by creation, newest first. A cursor is the id of a page's last object. It is used as a position and
//! never looked up, so it stays valid when that object changes (`docs/decisions.md`, "Lists"). A query with a range of a
//! time field gets a sync list ([`Range`]).

mod range;

pub use range::{Position, Range};

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    request::body::{did_you_mean, shorten},
    rows::key,
    schema::{FilterSpec, IndexValue, Kind, ResourceSpec},
    store::{Order, Record, Span},
    value::{OrganizationId, Timestamp},
};
use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

pub use crate::value::id;

/// Objects on a page when the query has no `limit` (spec, Limits).
pub(crate) const DEFAULT_LIMIT: usize = 20;
/// Most objects on a page (spec, Limits).
pub const MAX_LIMIT: usize = 100;
/// Most parameters that a query may have (`docs/api.md`, "Errors").
pub(crate) const MOST_PARAMETERS: usize = 32;
/// The parameters that every list takes in addition to its filters.
pub(crate) const COMMON_PARAMETERS: [&str; 4] = ["limit", "starting_after", "created[gte]", "created[lt]"];

/// The checked query of one list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListQuery {
    /// Most objects on the page, 1 to 100.
    pub limit: usize,
    /// The id of the last object of the page before; `None` for the first page and in a sync list.
    pub starting_after: Option<Uuid>,
    /// Only objects created at this time or later.
    pub created_gte: Option<Timestamp>,
    /// Only objects created before this time.
    pub created_lt: Option<Timestamp>,
    /// The values of the filters, in the order of the resource's description; `None` for unused ones.
    pub filters: Vec<Option<String>>,
    /// Whether the list is in order of creation, oldest first; otherwise it is newest first.
    pub rising: bool,
    /// The range and position of a sync list; `None` for a list in order of creation.
    pub range: Option<Range>,
}

impl ListQuery {
    /// Parses the query of a URL, percent-encoded and without its `?`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every bad parameter, or with one error for more than 32 parameters.
    pub fn parse(raw: &str, spec: &ResourceSpec) -> Result<Self, Error> {
        let mut query = Self { limit: DEFAULT_LIMIT, filters: vec![None; spec.filters.len()], ..Self::default() };
        let mut errors = FieldErrors::default();
        let mut cursor = None;
        for (name, value) in pairs(raw, &mut errors)? {
            if name == "starting_after" {
                cursor = Some(value);
            } else if let Err(error) = query.set(&name, &value, spec) {
                errors.push(error);
            }
        }
        // Parsed last, because the other parameters determine the kind of cursor.
        if let Some(Err(error)) = cursor.map(|text| query.start_after(&text, spec)) {
            errors.push(error);
        }
        if errors.is_empty()
            && let Err(error) = query.check_combination(spec)
        {
            errors.push(error);
        }
        errors.or(query)
    }

    fn set(&mut self, name: &str, value: &str, spec: &ResourceSpec) -> Result<(), FieldError> {
        let bad = |rule: &str| FieldError::new(name, FieldCode::Invalid, rule);
        match name {
            "limit" => self.limit = parse_limit(value)?,
            "created[gte]" => self.created_gte = Some(bound(name, value)?),
            "created[lt]" => self.created_lt = Some(bound(name, value)?),
            _ => {
                let Some(place) = spec.filters.iter().position(|filter| filter.param == name) else {
                    let (range, bracket) = range_of(name, spec).ok_or_else(|| unknown(name, spec))?;
                    let place = range::bound(name, value, range, spec)?;
                    match &self.range {
                        Some(other) if other.param != range.param => {
                            return Err(bad(&format!("cannot be combined with a range of `{}`", other.param)));
                        }
                        _ => {}
                    }
                    let range = self.range.get_or_insert_with(|| Range::new(range));
                    *(if bracket == "[gte]" { &mut range.gte } else { &mut range.lt }) = Some(place);
                    return Ok(());
                };
                if value.is_empty() || value.chars().nth(255).is_some() {
                    return Err(bad("must be 1 to 255 characters"));
                }
                if let Some(words) = spec.filter_words(spec.filters[place].field)
                    && !words.contains(&value)
                {
                    let near = did_you_mean(value, words.iter().copied());
                    let one = if words.len() == 1 { "be" } else { "be one of" };
                    return Err(bad(&format!("must {one} {}{near}", words.join(", "))));
                }
                self.filters[place] = Some(value.to_owned());
            }
        }
        Ok(())
    }

    /// The fields that the query filters by.
    fn used(&self, spec: &ResourceSpec) -> Vec<&'static str> {
        let filters = spec.filters.iter().zip(&self.filters).filter(|(_, value)| value.is_some());
        filters.map(|(filter, _)| filter.field).collect()
    }

    /// Parses the cursor of the page before: an id, or a position in a sync list.
    fn start_after(&mut self, text: &str, spec: &ResourceSpec) -> Result<(), FieldError> {
        if self.range.is_none()
            && let Some(id) = id(text)
        {
            self.starting_after = Some(id);
            return Ok(());
        }
        let bad = |rule: &str| FieldError::new("starting_after", FieldCode::Invalid, rule);
        let index = self.range.and_then(|range| spec.index_over(&[], Some(range.field)));
        match (&mut self.range, id(text), Position::parse(text, spec, index)) {
            (Some(range), _, Some((position, true))) => range.after = Some(position),
            (Some(range), Some(_), _) => {
                let rule = "is the cursor of a list in order of creation; a list by";
                return Err(bad(&format!("{rule} `{}` takes the `next_cursor` of its own pages", range.param)));
            }
            (Some(_), _, Some((_, false))) => return Err(bad("is the cursor of another list")),
            (None, _, Some(_)) => {
                let known = spec.ranges.iter().map(|range| format!("`{}`", range.param)).collect::<Vec<_>>();
                let send =
                    if known.is_empty() { String::new() } else { format!("; send {} with it", known.join(" or ")) };
                return Err(bad(&format!(
                    "is the cursor of a list that is ordered by a time or date{send}, as for its first page"
                )));
            }
            (_, _, None) => return Err(bad("must be the `next_cursor` of an earlier page")),
        }
        Ok(())
    }

    /// Refuses a combination of filters that no index serves.
    fn check_combination(&self, spec: &ResourceSpec) -> Result<(), FieldError> {
        let used = self.used(spec);
        let created = [("created[gte]", self.created_gte), ("created[lt]", self.created_lt)];
        let created = created.into_iter().filter(|(_, bound)| bound.is_some()).map(|(name, _)| name);
        let filters = spec.filters.iter().filter(|filter| used.contains(&filter.field)).map(|filter| filter.param);
        let mut names: Vec<String> = filters.map(str::to_owned).collect();
        let served = match &self.range {
            None => spec.takes(&used),
            Some(range) => {
                let bound = if range.gte.is_some() { "[gte]" } else { "[lt]" };
                names.insert(0, format!("{}{bound}", range.param));
                names.extend(created.map(str::to_owned));
                names.len() == 1
            }
        };
        let Some((first, others)) = names.split_first().filter(|_| !served) else { return Ok(()) };
        let offered = spec.offered_combinations();
        let rule = format!("cannot be combined with `{}`; this list takes {offered}", others.join("` and `"));
        Err(FieldError::new(first, FieldCode::Invalid, &rule))
    }

    /// The value that the query has for a filter.
    fn value_of(&self, filter: &FilterSpec, spec: &ResourceSpec) -> Option<&str> {
        let at = spec.filters.iter().position(|one| one.param == filter.param)?;
        self.filters.get(at)?.as_deref()
    }

    /// The span of the store that contains the objects of this list in `organization`; `None` when no object can match.
    #[must_use]
    pub fn span(&self, organization: OrganizationId, spec: &ResourceSpec) -> Option<Span> {
        if let Some(range) = &self.range {
            return Some(range.span(organization, spec, spec.index_over(&[], Some(range.field))?));
        }
        let used = self.used(spec);
        let prefix = if used.is_empty() {
            key::records(organization, spec)
        } else {
            let value = |field: &str| {
                let filter = spec.filters.iter().find(|filter| filter.field == field)?;
                let kind = spec.field(field).map_or(Kind::Boolean, |field| field.kind);
                IndexValue::parse(kind, self.value_of(filter, spec)?)
            };
            let entries =
                match spec.look_up_over(&used).and_then(|filter| filter.look_up.zip(self.value_of(filter, spec))) {
                    Some((look_up, text)) => look_up(text)?,
                    None => spec.index_over(&used, None)?.with(value)?,
                };
            entries.prefix(organization, spec)
        };
        let mut span = Span::newest_first(&prefix);
        if self.rising {
            span.order = Order::Ascending;
        }
        if !used.is_empty() {
            span = span.following(key::records(organization, spec));
        }
        if let Some(cursor) = self.starting_after {
            match span.order {
                Order::Ascending => span.from = key::entry(&prefix, cursor).next(),
                Order::Descending => span = span.before_id(&prefix, cursor),
            }
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

/// Parses the value of the parameter `limit`.
pub(crate) fn parse_limit(value: &str) -> Result<usize, FieldError> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let limit = value.parse().ok().filter(|limit| digits && (1..=MAX_LIMIT).contains(limit));
    let rule = "must be a whole number from 1 to 100";
    limit.ok_or_else(|| FieldError::new("limit", FieldCode::Invalid, rule))
}

/// Parses the bound of a range of times.
fn bound(name: &str, value: &str) -> Result<Timestamp, FieldError> {
    Timestamp::parse_bound(value).ok_or_else(|| FieldError::new(name, FieldCode::Invalid, &Timestamp::rule(value)))
}

/// The names of all range parameters of a list: `updated[gte]`, `updated[lt]`.
pub fn range_parameters(spec: &ResourceSpec) -> impl Iterator<Item = String> {
    spec.ranges.iter().flat_map(|range| ["[gte]", "[lt]"].map(|bracket| format!("{}{bracket}", range.param)))
}

/// The range of a parameter and the bracket of its name: `[gte]` or `[lt]`.
fn range_of<'a>(name: &'a str, spec: &ResourceSpec) -> Option<(&'static FilterSpec, &'a str)> {
    let (param, bracket) = name.split_at(name.find('[')?);
    let range = spec.ranges.iter().find(|range| range.param == param)?;
    matches!(bracket, "[gte]" | "[lt]").then_some((range, bracket))
}

fn unknown(name: &str, spec: &ResourceSpec) -> FieldError {
    let ranges: Vec<String> = range_parameters(spec).collect();
    let filters = spec.filters.iter().map(|filter| filter.param);
    let known: Vec<&str> =
        COMMON_PARAMETERS.into_iter().chain(filters).chain(ranges.iter().map(String::as_str)).collect();
    // The filter of the field `vehicle_id` is `vehicle`.
    let filter = spec.filters.iter().find(|filter| filter.field == name);
    let near = match filter {
        Some(filter) => format!("; did you mean `{}`?", filter.param),
        None => meant_or_all(name, &known),
    };
    let rule = format!("is not a parameter of this list{near}");
    FieldError::new(&shorten(name), FieldCode::Unknown, &rule)
}

/// Checks the query of a request that takes no parameters.
///
/// # Errors
/// [`Error::Invalid`] with every parameter that was sent.
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

/// Decodes the query of a request that takes the parameters in `known` and no others.
///
/// # Errors
/// [`Error::Invalid`] with every parameter that is unknown, sent twice or malformed.
pub fn parameters(raw: &str, known: &[&str]) -> Result<Vec<(String, String)>, Error> {
    let mut errors = FieldErrors::default();
    let pairs = pairs(raw, &mut errors)?;
    for (name, _) in pairs.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let rule = format!("is not a parameter of this request{}", meant_or_all(name, known));
        errors.push(FieldError::new(&shorten(name), FieldCode::Unknown, &rule));
    }
    errors.or(pairs)
}

/// The parameter that an unknown one means, or all of them: `; did you mean X?`, `; it takes X, Y`.
fn meant_or_all(name: &str, known: &[&str]) -> String {
    let near = did_you_mean(name, known.iter().copied());
    if !near.is_empty() {
        return near;
    }
    let all: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("; it takes {}", all.join(", "))
}

/// The text `; did you mean X?` with the most similar name in `known`; empty when none is similar enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    did_you_mean(name, known)
}

/// Splits a query into decoded pairs. Parameters that cannot be decoded or are sent twice are added to `errors`.
///
/// `+` is a plus sign: no value here has spaces, while e-mail addresses and UTC offsets are often sent unescaped.
///
/// # Errors
/// [`Error::Invalid`] for more than [`MOST_PARAMETERS`], without decoding any of them.
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

/// Builds the list response (spec, List envelope) from records, without decoding them.
///
/// If another page follows, `records` must contain one record more than the limit of the query.
///
/// # Errors
/// The last record of a sync list does not parse: the store is damaged.
pub fn envelope(records: &[Record], spec: &ResourceSpec, query: &ListQuery) -> Result<Bytes, Error> {
    let has_more = records.len() > query.limit;
    let shown = &records[..records.len().min(query.limit)];
    let last = shown.last().filter(|_| has_more);
    let next = match (last, &query.range) {
        (None, _) => None,
        (Some(last), Some(range)) => Some(range.cursor(spec, last)?),
        (Some(last), None) => {
            let id = last.key.id().ok_or_else(|| Error::Internal("a record's key has no id".into()))?;
            Some(id.to_string())
        }
    };
    Ok(list(shown, next.as_deref()))
}

/// The list response with these objects. `next` is the cursor of the next page, if another page follows.
pub(crate) fn list(shown: &[Record], next: Option<&str>) -> Bytes {
    let size: usize = shown.iter().map(|record| record.value.len() + 1).sum();
    let mut out = BytesMut::with_capacity(size + 192);
    out.put_slice(if next.is_some() {
        b"{\"object\":\"list\",\"has_more\":true,\"next_cursor\":"
    } else {
        b"{\"object\":\"list\",\"has_more\":false,\"next_cursor\":"
    });
    match next {
        None => out.put_slice(b"null"),
        Some(cursor) => {
            out.put_u8(b'"');
            out.put_slice(cursor.as_bytes());
            out.put_u8(b'"');
        }
    }
    out.put_slice(b",\"data\":[");
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
mod tests;
