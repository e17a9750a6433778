//! The body of a POST or PATCH: no input makes the reader panic, and what it accepts is JSON that it reads the same way
//! again.

use crate::choose;
use rental_core::{
    error::Error,
    request::body::Verb,
    schema::{Fields, Kind, Presence, ResourceSpec},
};
use serde_json::Value;

/// The first byte chooses the resource, the second the verb and the currency's digits; the rest is the body.
pub fn check(data: &[u8]) {
    let Some((spec, rest)) = choose(data) else { return };
    let Some((choice, body)) = rest.split_first() else { return };
    let verb = if choice & 1 == 0 { Verb::Create } else { Verb::Update };
    let digits = u32::from(choice >> 1) % 5;
    match Fields::parse(body, spec, verb, digits) {
        Ok(fields) => accepted(&fields, body, spec, verb, digits),
        Err(Error::Malformed(message)) => assert!(message.contains("line"), "it says where: {message}"),
        Err(Error::Invalid(errors)) => {
            assert!(!errors.is_empty() && errors.listed().iter().all(|error| !error.message.is_empty()));
        }
        Err(other) => panic!("a body is never {other:?}"),
    }
}

fn accepted(fields: &Fields, body: &[u8], spec: &'static ResourceSpec, verb: Verb, digits: u32) {
    let sent: Value = if body.is_empty() { Value::Object(Default::default()) } else { independent(body) };
    let members = sent.as_object().expect("only objects are accepted");
    for (name, value) in members {
        let field = spec.field(name).expect("only known fields are accepted");
        let presence = if verb == Verb::Create { field.create } else { field.update };
        assert_ne!(presence, Presence::Never, "{name} is the server's");
        // Text is kept as sent, but for the one kind that has a canonical case and the one that is put into UTC.
        if let (Some(kept), Value::String(text)) = (json(fields, name), value)
            && !matches!(field.kind, Kind::Language | Kind::Time)
        {
            assert_eq!(serde_json::from_str::<String>(&kept).ok().as_ref(), Some(text), "{name}");
        }
    }
    let canonical =
        spec.fields.iter().filter_map(|field| Some(format!("\"{}\":{}", field.name, json(fields, field.name)?)));
    // Lines of an invoice keep the vehicle as it was when the invoice was issued, which no request sends.
    let canonical = canonical.collect::<Vec<_>>().join(",").replace(",\"vehicle\":null", "");
    let canonical = format!("{{{canonical}}}");
    let again =
        Fields::parse(canonical.as_bytes(), spec, verb, digits).expect("what was accepted once is accepted again");
    for field in spec.fields {
        assert_eq!(json(&again, field.name), json(fields, field.name), "{}", field.name);
    }
}

/// The canonical JSON of a field that was sent.
fn json(fields: &Fields, name: &str) -> Option<String> {
    fields.get(name).map(|value| serde_json::to_string(value).expect("a checked value is JSON"))
}

fn independent(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_else(|error| {
        // Numbers that no float holds are JSON all the same; only their text is looked at.
        let raw: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(json);
        assert!(raw.is_ok() && error.to_string().contains("out of range"), "accepted, but not JSON: {error}");
        Value::Object(Default::default())
    })
}
