//! A JSON body becomes checked fields, driven by a [`ResourceSpec`]: every bad field is reported at once.
//!
//! Numbers are judged by their text, so money is exact; `raw_data` is kept byte for byte. Nothing here reads a store:
//! whether a referenced object exists is asked later.

mod duplicates;
mod lines;

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::event::EVENT_TYPES,
    schema::{FieldSpec, Fields, Kind, Presence, ResourceSpec},
    value::{
        Currency, Date, Decimal, Email, FieldValue, FromFields, Language, Money, Name, Phone, Text, Timestamp, Zone,
        url,
    },
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashSet, fmt};

/// Which request a body belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// POST: required fields must be there, `null` is the same as absent.
    Create,
    /// PATCH: absent is unchanged, `null` clears.
    Update,
    /// A whole object, as a GET gives it: every field must be there.
    Whole,
}

impl Fields {
    /// Reads `body` as one JSON object with fields of `spec`. An empty body is `{}`.
    ///
    /// `digits` is the number of decimals of the currency that amounts are in.
    ///
    /// # Errors
    /// [`Error::Malformed`] when it is not one JSON object, [`Error::Invalid`] with every bad field otherwise.
    pub fn parse(body: &[u8], spec: &'static ResourceSpec, verb: Verb, digits: u32) -> Result<Self, Error> {
        let sent = if body.is_empty() { Members::default() } else { members(body)? };
        let mut errors = FieldErrors::default();
        let mut values = vec![None; spec.fields.len()];
        let mut given = vec![false; spec.fields.len()];
        let mut named = vec![false; spec.fields.len()]; // by an error
        let mut unknown_names = HashSet::new();
        for (name, raw) in sent.0 {
            let place = spec.fields.iter().position(|field| field.name == name);
            let is_new = match place {
                Some(at) => !std::mem::replace(&mut given[at], true),
                None => unknown_names.insert(name.clone()),
            };
            let taken = |field: &FieldSpec| presence(field, verb) != Presence::Never;
            match place.map(|at| (at, &spec.fields[at])) {
                known if !is_new => {
                    known.into_iter().for_each(|(at, _)| named[at] = true);
                    errors.add(|| duplicate(&name));
                }
                Some((at, field)) if taken(field) => match check(field, verb, raw, digits) {
                    Ok(value) => values[at] = value,
                    Err(mistakes) => {
                        named[at] = mistakes.iter().any(|mistake| mistake.param == field.name);
                        errors.extend(mistakes);
                    }
                },
                known => errors.add(|| unknown(&name, known.map(|(_, field)| field), spec, verb)),
            }
        }
        for (at, field) in spec.fields.iter().enumerate() {
            let required = presence(field, verb) == Presence::Required;
            if required && values[at].is_none() && !named[at] {
                errors.add(|| FieldError::new(field.name, FieldCode::Missing, "is required"));
            }
        }
        errors.or(Self { spec, values })
    }

    /// The objects that the body names: where (`customer_id`, `lines[0].toll_id`), resource and id as sent.
    #[must_use]
    pub fn references(&self) -> Vec<(String, &'static str, &str)> {
        let mut named = Vec::new();
        for (field, value) in self.spec.fields.iter().zip(&self.values) {
            match (field.kind, value) {
                (Kind::Reference(object), Some(FieldValue::Plain(id))) => {
                    named.push((field.name.to_owned(), object, id.as_str()));
                }
                (Kind::Lines, Some(FieldValue::Objects(lines))) => named.extend(lines::references(field.name, lines)),
                _ => {}
            }
        }
        named
    }

    /// A whole object: of each field what was sent, else what `otherwise` gives, else its default, else nothing.
    ///
    /// # Errors
    /// The name of the first field whose value does not fit the struct.
    pub fn object<T: FromFields>(
        &self,
        otherwise: &dyn Fn(&FieldSpec) -> Option<FieldValue>,
    ) -> Result<T, &'static str> {
        let mut fields = self.spec.fields.iter().zip(&self.values).map(|(field, sent)| {
            let other = || otherwise(field).or_else(|| default_of(field)).unwrap_or(FieldValue::Null);
            (field.name, sent.as_ref().map_or_else(|| Cow::Owned(other()), Cow::Borrowed))
        });
        T::from_fields(&mut || fields.next())
    }

    /// Sets each field of `object` that was sent.
    ///
    /// # Errors
    /// The name of the first field whose value does not fit the struct.
    pub fn apply<T: FromFields>(&self, object: &mut T) -> Result<(), &'static str> {
        let mut sent = self.spec.fields.iter().zip(&self.values);
        sent.try_for_each(|(field, value)| value.as_ref().map_or(Ok(()), |value| object.set(field.name, value)))
    }
}

/// The value of a field that a POST leaves out, if it has one. No default is an amount.
fn default_of(field: &FieldSpec) -> Option<FieldValue> {
    one_value(field.kind, field.default?, 0).ok()
}

fn presence(field: &FieldSpec, verb: Verb) -> Presence {
    match verb {
        Verb::Create => field.create,
        Verb::Update => field.update,
        Verb::Whole => Presence::Required,
    }
}

fn duplicate(name: &str) -> FieldError {
    FieldError::new(&shorten(name), FieldCode::Duplicate, "is sent more than once")
}

fn unknown(name: &str, known: Option<&FieldSpec>, spec: &ResourceSpec, verb: Verb) -> FieldError {
    let rule = match (known, verb) {
        (Some(field), Verb::Update) if field.create != Presence::Never => "cannot be changed".to_owned(),
        (Some(field), Verb::Create) if field.update != Presence::Never => "can only be set by an update".to_owned(),
        (Some(_), _) => "is set by the server and cannot be sent".to_owned(),
        (None, _) => {
            let taken = spec.fields.iter().filter(|field| presence(field, verb) != Presence::Never);
            format!(
                "is not a field of this {}{}",
                spec.object.replace('_', " "),
                did_you_mean(name, taken.map(|field| field.name))
            )
        }
    };
    FieldError::new(&shorten(name), FieldCode::Unknown, &rule)
}

/// `; did you mean X?` for the nearest of `known`, if one is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    if name.len() > 64 {
        return String::new();
    }
    let scored = known.map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate));
    match scored.min_by_key(|(distance, _)| *distance) {
        Some((distance, candidate)) if distance <= 1 + candidate.len() / 4 => format!("; did you mean `{candidate}`?"),
        _ => String::new(),
    }
}

/// A caller's own words, short enough to be repeated to them.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().nth(64).is_none() { text.to_owned() } else { text.chars().take(64).chain("…".chars()).collect() }
}

fn check(field: &FieldSpec, verb: Verb, raw: &RawValue, digits: u32) -> Result<Option<FieldValue>, Vec<FieldError>> {
    if raw.get() == "null" {
        return match verb {
            // A client that writes its unset fields as null means the same as one that leaves them out.
            Verb::Create => Ok(None),
            Verb::Update | Verb::Whole if field.nullable => Ok(Some(FieldValue::Null)),
            Verb::Update | Verb::Whole => Err(vec![FieldError::new(field.name, FieldCode::Invalid, "cannot be null")]),
        };
    }
    if let Kind::Json(max) = field.kind {
        return check_json(field.name, raw, max).map(Some);
    }
    if field.kind == Kind::Lines {
        let wrong = |(place, rule): (String, String)| {
            vec![FieldError::new(&format!("{}{place}", field.name), FieldCode::Invalid, &rule)]
        };
        return lines::check(raw, digits).map(Some).map_err(wrong);
    }
    if field.kind == Kind::EventTypes {
        return event_types(raw).map(Some).map_err(|rule| vec![FieldError::new(field.name, FieldCode::Invalid, &rule)]);
    }
    let value = one_value(field.kind, raw.get(), digits);
    value.map(Some).map_err(|rule| vec![FieldError::new(field.name, FieldCode::Invalid, &rule)])
}

/// One value of its JSON text, or the rule that it breaks.
fn one_value(kind: Kind, raw: &str, digits: u32) -> Result<FieldValue, String> {
    match kind {
        Kind::Money => Money::parse(raw, digits).map(FieldValue::Money),
        Kind::Integer(from, to) => integer(raw, from, to),
        Kind::Boolean => match raw {
            "true" => Ok(FieldValue::Boolean(true)),
            "false" => Ok(FieldValue::Boolean(false)),
            _ => Err("must be true or false".into()),
        },
        Kind::Json(_) | Kind::Lines | Kind::EventTypes | Kind::AttemptLog => Err("is not a plain value".into()),
        _ => {
            let text: String = serde_json::from_str(raw).map_err(|_| "must be a string".to_owned())?;
            one_text(kind, text)
        }
    }
}

fn one_text(kind: Kind, text: String) -> Result<FieldValue, String> {
    match kind {
        Kind::Text(max) => Text::parse(text, max).map(FieldValue::Text),
        Kind::Name(max) => Name::parse(text, max).map(FieldValue::Name),
        Kind::Email => Email::parse(text).map(FieldValue::Email),
        Kind::Phone => Phone::parse(text).map(FieldValue::Phone),
        Kind::Language => Language::parse(&text).map(FieldValue::Language),
        Kind::Date => {
            let date = Date::parse(&text).map(FieldValue::Date);
            date.ok_or_else(|| "must be a calendar date, YYYY-MM-DD".into())
        }
        Kind::Time => {
            let time = Timestamp::parse(&text).map(FieldValue::Time);
            time.ok_or_else(|| "must be an RFC 3339 time, such as 2026-05-05T09:30:00Z".into())
        }
        Kind::Currency => {
            let currency = Currency::parse(&text).map(FieldValue::Currency);
            currency.ok_or_else(|| "must be an ISO 4217 currency, such as USD".into())
        }
        Kind::TimeZone => {
            let zone = Zone::parse(&text).map(FieldValue::Zone);
            zone.ok_or_else(|| "must be a name of the IANA time zone database, such as America/New_York".into())
        }
        Kind::Word(words) => {
            words.iter().find(|word| **word == text).map(|word| FieldValue::Word(word)).ok_or_else(|| {
                format!("must be one of {}{}", words.join(", "), did_you_mean(&text, words.iter().copied()))
            })
        }
        // Whether it exists is asked of the store; a malformed id does not exist, like an unknown one.
        Kind::Reference(_) | Kind::Id | Kind::Object => {
            Text::parse(text, 255).map(|text| FieldValue::Plain(text.into()))
        }
        Kind::Url => url::parse(&text).map(|url| FieldValue::Plain(url.into())),
        Kind::Integer(..)
        | Kind::Money
        | Kind::Boolean
        | Kind::Json(_)
        | Kind::Lines
        | Kind::EventTypes
        | Kind::AttemptLog => Err("must not be a string".into()),
    }
}

fn integer(raw: &str, from: i64, to: i64) -> Result<FieldValue, String> {
    let number = Decimal::parse(raw).ok().and_then(Decimal::to_integer).filter(|number| (from..=to).contains(number));
    number.map(FieldValue::Integer).ok_or_else(|| format!("must be a whole number from {from} to {to}"))
}

/// A list of event types, each once.
fn event_types(raw: &RawValue) -> Result<FieldValue, String> {
    let given: Vec<String> = serde_json::from_str(raw.get()).map_err(|_| "must be a list of event types".to_owned())?;
    if given.is_empty() || given.len() > EVENT_TYPES.len() {
        return Err(format!("must hold 1 to {} event types; leave it out or send null for all", EVENT_TYPES.len()));
    }
    for (at, name) in given.iter().enumerate() {
        if !EVENT_TYPES.iter().any(|row| row.1 == name) {
            let near = did_you_mean(name, EVENT_TYPES.iter().map(|row| row.1));
            return Err(format!("names no event type with `{}`{near}", shorten(name)));
        }
        if given[..at].contains(name) {
            return Err(format!("names `{name}` twice"));
        }
    }
    Ok(FieldValue::Texts(given))
}

/// The members of a JSON object in order, duplicates included.
#[derive(Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

fn members(body: &[u8]) -> Result<Members<'_>, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Malformed(format!("The body is not a JSON object: {error}.")))
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn check_json(name: &str, raw: &RawValue, max: usize) -> Result<FieldValue, Vec<FieldError>> {
    let text = raw.get();
    let refuse = |rule: &str| Err(vec![FieldError::new(name, FieldCode::Invalid, rule)]);
    if !text.starts_with('{') {
        return refuse("must be a JSON object");
    }
    if text.len() > max {
        return refuse(&format!("must be at most {max} bytes of JSON"));
    }
    match duplicates::find(name, text) {
        Err(rule) => refuse(&rule),
        Ok(paths) if paths.is_empty() => Ok(FieldValue::Json(raw.to_owned())),
        Ok(paths) => Err(paths.iter().map(|path| duplicate(path)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{customer, lead, rental, specs, vehicle};

    fn errors(body: &str, spec: &'static ResourceSpec, verb: Verb) -> Vec<(String, &'static str)> {
        match Fields::parse(body.as_bytes(), spec, verb, 2) {
            Err(Error::Invalid(errors)) => {
                errors.listed().iter().map(|error| (error.param.clone(), error.code.as_str())).collect()
            }
            other => panic!("expected bad fields, got {other:?}"),
        }
    }

    fn json(fields: &Fields, name: &str) -> String {
        serde_json::to_string(fields.get(name).unwrap()).unwrap()
    }

    #[test]
    fn every_bad_field_is_reported_at_once() {
        let body = r#"{"name":" ","year":1700,"daily_rate":1.001,"colour":"red","id":"x","year":1}"#;
        let found = errors(body, &vehicle::SPEC, Verb::Create);
        let expected = [
            ("name", "parameter_invalid"),
            ("year", "parameter_invalid"),
            ("daily_rate", "parameter_invalid"),
            ("colour", "parameter_unknown"),
            ("id", "parameter_unknown"),
            ("year", "parameter_duplicate"),
        ];
        assert_eq!(found, expected.map(|(param, code)| (param.to_owned(), code)));
    }

    #[test]
    fn the_default_of_every_field_passes_its_own_check() {
        for field in specs().flat_map(|spec| spec.fields) {
            let value = default_of(field).map(|value| serde_json::to_string(&value).unwrap());
            assert_eq!(value.as_deref(), field.default, "{}", field.name);
        }
    }

    #[test]
    fn a_near_miss_is_suggested() {
        let Err(Error::Invalid(errors)) =
            Fields::parse(br#"{"name":"a","dayly_rate":1}"#, &vehicle::SPEC, Verb::Create, 2)
        else {
            panic!("expected an unknown field")
        };
        assert!(errors.listed()[0].message.contains("did you mean `daily_rate`"), "{}", errors.listed()[0].message);
    }

    #[test]
    fn null_is_absent_on_create_and_clears_on_update() {
        let created = Fields::parse(
            br#"{"full_name":"Ada","email":null,"preferred_language":null}"#,
            &customer::SPEC,
            Verb::Create,
            2,
        );
        assert!(!created.unwrap().has("email"));
        let updated = Fields::parse(br#"{"email":null}"#, &customer::SPEC, Verb::Update, 2).unwrap();
        assert!(matches!(updated.get("email"), Some(FieldValue::Null)));
        assert_eq!(
            errors(r#"{"full_name":null}"#, &customer::SPEC, Verb::Update),
            [("full_name".to_owned(), "parameter_invalid")]
        );
        assert_eq!(
            errors(r#"{"full_name":null}"#, &customer::SPEC, Verb::Create),
            [("full_name".to_owned(), "parameter_missing")]
        );
    }

    #[test]
    fn what_is_not_one_json_object_is_malformed_and_says_where() {
        for body in
            ["[]", "null", "{", "{}x", "{\"name\":}", "\"a\"", "{\"name\":\"\u{1}\"}", "{'name':1}", "\u{feff}{}", " "]
        {
            let result = Fields::parse(body.as_bytes(), &vehicle::SPEC, Verb::Create, 2);
            assert!(
                matches!(&result, Err(Error::Malformed(message)) if message.contains("line 1")),
                "{body}: {result:?}"
            );
        }
        assert!(matches!(
            Fields::parse(b"{\"name\":\"\xff\"}", &vehicle::SPEC, Verb::Create, 2),
            Err(Error::Malformed(_))
        ));
        let deep = format!("{{\"name\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Fields::parse(deep.as_bytes(), &vehicle::SPEC, Verb::Create, 2).is_err());
    }

    #[test]
    fn raw_data_is_kept_byte_for_byte() {
        let raw = "{ \"b\" : 1.50,\t\"a\":[1e2, \"\\u00e9\"] }";
        let fields =
            Fields::parse(format!("{{\"raw_data\": {raw} }}").as_bytes(), &lead::SPEC, Verb::Create, 2).unwrap();
        assert_eq!(json(&fields, "raw_data"), raw);
    }

    #[test]
    fn duplicate_keys_inside_raw_data_are_named_with_their_path() {
        let found = errors(r#"{"raw_data":{"form":{"a":1,"a":2}}}"#, &lead::SPEC, Verb::Create);
        assert_eq!(found, [("raw_data.form.a".to_owned(), "parameter_duplicate")]);
    }

    #[test]
    fn raw_data_is_an_object_of_at_most_64_kib_and_bounded_depth() {
        for bad in [
            "[]".to_owned(),
            "1".to_owned(),
            format!("{{\"a\":\"{}\"}}", "x".repeat(65_536)),
            format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200)),
        ] {
            assert_eq!(
                errors(&format!("{{\"raw_data\":{bad}}}"), &lead::SPEC, Verb::Create),
                [("raw_data".to_owned(), "parameter_invalid")]
            );
        }
        let exact = format!("{{\"a\":\"{}\"}}", "x".repeat(65_536 - 8));
        assert!(Fields::parse(format!("{{\"raw_data\":{exact}}}").as_bytes(), &lead::SPEC, Verb::Create, 2).is_ok());
    }

    #[test]
    fn values_are_stored_in_their_canonical_form() {
        let body = br#"{"customer_id":"c","vehicle_id":"v","final_price":89.50,"status":"NEW"}"#;
        let fields = Fields::parse(body, &rental::SPEC, Verb::Create, 2).unwrap();
        assert_eq!(json(&fields, "final_price"), "89.5");
        assert_eq!(
            fields.references().into_iter().map(|(field, ..)| field).collect::<Vec<_>>(),
            ["customer_id", "vehicle_id"]
        );
    }

    #[test]
    fn a_field_of_the_wrong_type_says_what_it_must_be() {
        for (body, words) in [
            (r#"{"name":1}"#, "a string"),
            (r#"{"name":"a","year":"2020"}"#, "whole number"),
            (r#"{"name":"a","year":2020.5}"#, "whole number"),
            (r#"{"name":"a","daily_rate":"1"}"#, "a number"),
            (r#"{"name":"a","status":"rentd"}"#, "did you mean `rented`"),
        ] {
            let Err(Error::Invalid(errors)) = Fields::parse(body.as_bytes(), &vehicle::SPEC, Verb::Create, 2) else {
                panic!("{body}")
            };
            assert!(errors.listed()[0].message.contains(words), "{body}: {}", errors.listed()[0].message);
        }
    }
}
