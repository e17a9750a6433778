//! What stored JSON tells about a customer, and its removal when the customer is erased. The fields are marked in the
//! descriptions ([`Personal`]).

use crate::{
    resources::{event, spec_of},
    schema::{Kind, Personal, ResourceSpec},
    value::{CustomerId, Members},
};
use bytes::Bytes;
use serde::Deserialize;
use std::borrow::Cow;

/// What is rewritten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// The record of an object. Fields that the law requires stay.
    Record,
    /// A copy of an object, in an event, a stored response or the audit log.
    Copy,
}

/// A person to find in stored JSON.
#[derive(Clone, Copy, Debug)]
pub struct Person<'a> {
    /// The id of the customer.
    pub id: CustomerId,
    /// E-mail addresses and phone numbers, also former ones. They find objects that name no customer, such as leads of before.
    pub known_as: &'a [String],
}

impl Person<'_> {
    /// Whether the personal fields of this object are about the person.
    #[must_use]
    pub fn is_subject(&self, spec: &ResourceSpec, object: &Members) -> bool {
        let Some(field) = spec.person() else { return false };
        match id_in(object, field) {
            Some(id) => id == self.id,
            None => spec.fields.iter().any(|field| {
                let text = object.get(field.name).filter(|_| field.personal != Personal::No);
                text.is_some_and(|text| mentions(text, self.known_as))
            }),
        }
    }
}

/// Whether JSON text contains one of these addresses or numbers, in a value or in a name.
#[must_use]
pub fn mentions(json: &str, words: &[String]) -> bool {
    !words.is_empty() && pieces(json).iter().any(|piece| words.iter().any(|word| has_word(piece, word)))
}

/// The strings of JSON text without their escapes, and the text between them.
fn pieces(json: &str) -> Vec<Cow<'_, str>> {
    let (mut pieces, mut rest) = (Vec::new(), json);
    while let Some((between, string)) = rest.split_once('"') {
        pieces.push(Cow::Borrowed(between));
        let mut escaped = false;
        let end = string.find(|letter| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        let (string, after) = end.map_or((string, ""), |end| (&string[..end], &string[end + 1..]));
        pieces.push(unescaped(string));
        rest = after;
    }
    pieces.push(Cow::Borrowed(rest));
    pieces
}

/// The content of a JSON string. A half of a surrogate pair, which customers can store in their own JSON, becomes U+FFFD.
fn unescaped(string: &str) -> Cow<'_, str> {
    let Some((before, mut rest)) = string.split_once('\\') else { return Cow::Borrowed(string) };
    let mut units: Vec<u16> = before.encode_utf16().collect();
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            Some('u') => {
                let (digits, after) = letters.as_str().split_at_checked(4).unwrap_or((letters.as_str(), ""));
                units.push(u16::from_str_radix(digits, 16).unwrap_or(0xFFFD));
                rest = after;
            }
            Some('b' | 'f' | 'n' | 'r' | 't') => {
                units.push(u16::from(b' '));
                rest = letters.as_str();
            }
            // The escaped character itself: a quote, a slash or a backslash.
            _ => {
                let itself = rest.len() - letters.as_str().len();
                units.extend(rest[..itself].encode_utf16());
                rest = letters.as_str();
            }
        }
        let Some((plain, after)) = rest.split_once('\\') else { break };
        units.extend(plain.encode_utf16());
        rest = after;
    }
    units.extend(rest.encode_utf16());
    Cow::Owned(String::from_utf16_lossy(&units))
}

fn id_in(object: &Members, field: &str) -> Option<CustomerId> {
    CustomerId::parse(&serde_json::from_str::<String>(object.get(field)?).ok()?)
}

/// Whether `text` contains the address or number `word`, and not as a part of a longer one. Capital letters are the same as
/// small ones, and of a phone number only the digits count.
fn has_word(text: &str, word: &str) -> bool {
    if let Some(digits) = word.strip_prefix('+').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return has_number(text, digits);
    }
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let of_address = |letter: char| letter.is_alphanumeric() || "+-_@".contains(letter);
    let goes_on = |rest: &str| {
        let mut rest = rest.chars();
        match rest.next() {
            Some('.') => rest.next().is_some_and(of_address),
            next => next.is_some_and(of_address),
        }
    };
    !word.is_empty()
        && text.match_indices(&word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            !before.is_some_and(|letter| of_address(letter) || letter == '.') && !goes_on(&text[at + word.len()..])
        })
}

/// Most characters between two digits of a phone number.
const MOST_BETWEEN_DIGITS: usize = 3;

/// Whether `text` contains a phone number with these digits, as people write it: `+49 157 998`, `0049-157-998`,
/// `+49 (0)157/998`.
fn has_number(text: &str, digits: &str) -> bool {
    let is_end = |letter: Option<char>| !letter.is_some_and(|letter| letter.is_alphanumeric() || "_@".contains(letter));
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let begins = letter.is_ascii_digit() && is_end(before);
        before = Some(letter);
        if !begins {
            continue;
        }
        let international = text[at..].strip_prefix("00").and_then(|rest| after_number(rest, digits));
        let rest = international.or_else(|| after_number(&text[at..], digits));
        if rest.is_some_and(|rest| is_end(rest.chars().next())) {
            return true;
        }
    }
    false
}

/// What follows these digits at the beginning of `text`.
fn after_number<'t>(text: &'t str, digits: &str) -> Option<&'t str> {
    let mut rest = text;
    for digit in digits.chars() {
        let mut between = 0;
        while !rest.starts_with(digit) {
            // `(0)` is dialled only within the country.
            let (letter, after) = match rest.strip_prefix("(0)") {
                Some(after) => ('(', after),
                None => rest.chars().next().map(|letter| (letter, &rest[letter.len_utf8()..]))?,
            };
            between += 1;
            if between > MOST_BETWEEN_DIGITS
                || !(letter.is_whitespace() || "-./()\u{2010}\u{2011}\u{2013}".contains(letter))
            {
                return None;
            }
            rest = after;
        }
        rest = &rest[digit.len_utf8()..];
    }
    Some(rest)
}

/// Replaces the personal fields of an object.
///
/// # Errors
/// The members are not those of an object of this resource.
pub fn redact(spec: &ResourceSpec, object: &mut Members, form: Form) -> Result<(), String> {
    for field in spec.fields.iter().filter(|field| !object_lacks(field.personal, form)) {
        let (Personal::Erased(replacement) | Personal::Kept(replacement)) = field.personal else { continue };
        if object.is_null(field.name) {
            continue;
        }
        match field.kind {
            Kind::Lines | Kind::CreditLines => {
                object.each_of(field.name, |line| match line.is_null("description") {
                    true => Ok(()),
                    false => line.set("description", replacement),
                })?
            }
            _ => object.set(field.name, replacement)?,
        }
    }
    Ok(())
}

fn object_lacks(personal: Personal, form: Form) -> bool {
    matches!((personal, form), (Personal::No, _) | (Personal::Kept(_), Form::Record))
}

/// Replaces the personal fields of a copy of an object, or of the object in an event, if it is about `person`. Returns
/// whether it is.
///
/// # Errors
/// The JSON is not what this program writes.
pub fn redact_copy(copy: &mut Members, person: &Person<'_>) -> Result<bool, String> {
    let Some(spec) = spec_in(copy) else { return Ok(false) };
    if spec.tag == event::SPEC.tag {
        let mut data = Members::parse(copy.get("data").unwrap_or_default().as_bytes())?;
        let about = redact_copy(&mut data, person)?;
        if data.is_changed() {
            copy.set("data", data.json())?;
        }
        return Ok(about);
    }
    let about = person.is_subject(spec, copy);
    if about {
        redact(spec, copy, Form::Copy)?;
    }
    Ok(about)
}

fn spec_in(object: &Members) -> Option<&'static ResourceSpec> {
    spec_of(&serde_json::from_str::<String>(object.get("object")?).ok()?)
}

/// The same for JSON text. `None` when nothing in it changes.
///
/// # Errors
/// The JSON is not what this program writes.
pub fn redacted_copy(json: &[u8], person: &Person<'_>) -> Result<Option<Bytes>, String> {
    let mut members = Members::parse(json)?;
    redact_copy(&mut members, person)?;
    Ok(members.is_changed().then(|| members.json().into()))
}

/// The customer whom an object, an event or the body of a response is about. `None` for JSON that is about no customer.
#[must_use]
pub fn person_in(json: &[u8]) -> Option<CustomerId> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        object: Cow<'a, str>,
        #[serde(borrow)]
        id: Option<Cow<'a, str>>,
        #[serde(borrow)]
        customer_id: Option<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        data: Named<'a>,
    }
    let named: Named<'_> = serde_json::from_slice(json).ok()?;
    let named = match named.object == event::SPEC.object {
        true => serde_json::from_slice::<Event<'_>>(json).ok()?.data,
        false => named,
    };
    let id = match spec_of(&named.object)?.person()? {
        "id" => named.id,
        _ => named.customer_id,
    };
    CustomerId::parse(&id?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::specs;

    /// Each field that can contain free text is personal or listed here. A new one must be decided.
    #[test]
    fn every_field_with_free_text_is_personal_or_known_not_to_be() {
        let open = |kind: Kind| {
            matches!(
                kind,
                Kind::Text(_)
                    | Kind::Name(_)
                    | Kind::Paragraph(_)
                    | Kind::Email
                    | Kind::Phone
                    | Kind::Language
                    | Kind::Json(_)
                    | Kind::Lines
                    | Kind::CreditLines
                    | Kind::Assignments
                    | Kind::AttemptLog
                    | Kind::Url
            )
        };
        let named = |personal: bool| -> Vec<String> {
            let fields = specs().flat_map(|spec| spec.fields.iter().map(move |field| (spec, field)));
            let found = fields.filter(|(_, field)| open(field.kind) && (field.personal != Personal::No) == personal);
            found.map(|(spec, field)| format!("{}.{}", spec.object, field.name)).collect()
        };
        let personal = [
            "customer.full_name",
            "customer.email",
            "customer.phone",
            "customer.preferred_language",
            "customer.source_channel",
            "customer.notes",
            "customer.address",
            "rental.booking_id",
            "rental.delivery_location",
            "invoice.lines",
            "invoice.buyer_name",
            "invoice.buyer_address",
            "invoice.buyer_email",
            "invoice.buyer_phone",
            "credit_note.reason",
            "credit_note.lines",
            "credit_note.refund_reference",
            "lead.source_channel",
            "lead.raw_data",
        ];
        assert_eq!(named(true), personal);
        // Of the fleet, of agencies and of operators. `event.data`, `delivery.log` and `audit_entry.details` can contain copies
        // of objects, which `erasing` rewrites by the fields of these objects.
        let not_personal = [
            "vehicle.name",
            "vehicle.make",
            "vehicle.model",
            "vehicle.color",
            "vehicle.plate",
            "vehicle.plate_state",
            "vehicle.transponder_number",
            "vehicle.turo_listing_id",
            "block.notes",
            "block.calendar_uid",
            "block.conflicts_with",
            "calendar_feed.url",
            "calendar_feed.last_error",
            "vehicle_assignments.assignments",
            "invoice.invoice_number",
            "invoice.tax_name",
            "invoice.seller_name",
            "invoice.seller_address",
            "invoice.seller_tax_id",
            "invoice.seller_email",
            "invoice.seller_phone",
            "credit_note.credit_note_number",
            "credit_note.invoice_number",
            "credit_note.refund_method",
            "toll.agency",
            "toll.transaction_id",
            "toll.plaza",
            "toll.plate",
            "toll.plate_state",
            "toll.transponder_number",
            "toll.attribution_reason",
            "toll.review_reason",
            "violation.summons_number",
            "violation.issuer",
            "violation.plate",
            "violation.state",
            "violation.issue_date",
            "violation.violation_time",
            "violation.violation",
            "violation.issuing_agency",
            "violation.status",
            "violation.plate_type",
            "violation.attribution_reason",
            "violation.review_reason",
            "organization.name",
            "organization.legal_name",
            "organization.address",
            "organization.tax_id",
            "organization.contact_email",
            "organization.contact_phone",
            "organization.payment_instructions",
            "organization.tax_name",
            "api_key.name",
            "api_key.hint",
            "webhook_endpoint.url",
            "webhook_endpoint.disabled_reason",
            "webhook_endpoint.api_version",
            "event.api_version",
            "event.data",
            "delivery.event_type",
            "delivery.last_error",
            "delivery.log",
            "audit_entry.action",
            "audit_entry.actor",
            "audit_entry.address",
            "audit_entry.path",
            "audit_entry.details",
            "audit_entry.request_id",
            "operator.name",
            "operator.hint",
        ];
        assert_eq!(named(false), not_personal);
    }

    #[test]
    fn every_resource_with_personal_fields_says_whom_they_are_about() {
        for spec in specs().filter(|spec| spec.fields.iter().any(|field| field.personal != Personal::No)) {
            assert!(spec.person().is_some(), "{}", spec.object);
        }
    }

    #[test]
    fn an_address_is_found_as_a_word_and_not_as_a_part_of_another() {
        for text in ["ada@x.com", "\"ada@x.com\"", "Mail Ada@X.com.", "(ada@x.com)", "a: ada@x.com, b"] {
            assert!(has_word(text, "ada@x.com"), "{text}");
        }
        for text in ["nada@x.com", "j.ada@x.com", "ada@x.com.au", "ada@x.community", "ada@x.co", ""] {
            assert!(!has_word(text, "ada@x.com"), "{text}");
        }
        assert!(has_word("call +14155550123!", "+14155550123") && !has_word("+141555501234", "+14155550123"));
        assert!(!has_word("anything", ""));
    }

    #[test]
    fn a_phone_number_is_found_in_all_usual_spellings_and_not_in_other_numbers() {
        for text in [
            "+4915799887766",
            "4915799887766",
            "call +49 157 9988 7766.",
            "0049-157-99887766",
            "00 49 157 9988 7766",
            "+49 (0)157 / 9988-7766",
            "+49 (157) 9988.7766",
            "49\u{a0}157\u{a0}9988\u{2011}7766, after 6",
            "2 people, +49 157 99887766",
        ] {
            assert!(has_word(text, "+4915799887766"), "{text}");
        }
        for text in [
            "+49157998877661",
            "34915799887766",
            "+49 157 9988 776",
            "+49 157 9988 7767",
            "0157 99887766",
            "a4915799887766",
            "4915799887766@x.com",
            "49 157 and 9988 7766",
            "4915799887766a",
            "",
        ] {
            assert!(!has_word(text, "+4915799887766"), "{text}");
        }
    }

    #[test]
    fn an_address_is_found_in_escaped_json() {
        let names = ["ada@x.com".to_owned(), "+14155550123".to_owned()];
        for json in [
            r#"{"text":"Hi\nada@x.com"}"#,
            r#"{"text":"\tada@x.com\r\n"}"#,
            r#"{"html":"\u003cada@x.com\u003e"}"#,
            r#"{"mail":"ada\u0040x.com"}"#,
            r#"{"mail":"\u0041da\u0040X\u002ECOM"}"#,
            r#"{"ada@x\u002ecom":1}"#,
            r#"{"a":{"b":["\ud83d\ude00ada@x.com"]}}"#,
            r#"{"a":"half a pair \ud83d ada\u0040x.com"}"#,
            r#"{"a":"\"quoted\" \\","b":"\"ada@x.com\""}"#,
            r#"{"a":"call \u002b14155550123"}"#,
            r#"{"a":"ada\u0040x.com","a":null}"#,
        ] {
            assert!(mentions(json, &names), "{json}");
        }
        for json in [
            r#"{"text":"\u006eada@x.com"}"#,
            r#"{"text":"ada@x.com\u002eau"}"#,
            r#"{"text":"j\u002eada@x.com"}"#,
            r#"{"a":"ada","b":"@x.com"}"#,
            r#"{"text":"\\u0061da@x.com"}"#,
            r#"{"text":"ada\u004"#,
            "{\"text\":\"ada\\",
        ] {
            assert!(!mentions(json, &names), "{json}");
        }
        assert!(!mentions(r#"{"a":"b"}"#, &[]));
    }

    #[test]
    fn a_copy_in_an_event_loses_what_a_record_keeps() {
        let id = CustomerId::from_u128(7);
        let invoice = format!(
            r#"{{"id":"x","object":"invoice","customer_id":"{id}","lines":[{{"description":"For Ada","amount":1.50}}],"total":1.50}}"#
        );
        let event = format!(r#"{{"id":"e","object":"event","type":"invoice.paid","data":{invoice}}}"#);
        assert_eq!((person_in(event.as_bytes()), person_in(invoice.as_bytes())), (Some(id), Some(id)));
        let person = Person { id, known_as: &[] };
        let redacted = redacted_copy(event.as_bytes(), &person).unwrap().unwrap();
        assert_eq!(redacted, event.replace("For Ada", "erased"));
        assert_eq!(redacted_copy(&redacted, &person), Ok(None));
        assert_eq!(redacted_copy(event.as_bytes(), &Person { id: CustomerId::from_u128(8), ..person }), Ok(None));
        let mut record = Members::parse(invoice.as_bytes()).unwrap();
        redact(spec_of("invoice").unwrap(), &mut record, Form::Record).unwrap();
        assert_eq!(record.json(), invoice);
    }

    #[test]
    fn a_lead_without_a_customer_is_found_by_the_address() {
        let lead = r#"{"object":"lead","source_channel":"api","customer_id":null,"raw_data":{"mail": "ada@x.com"}}"#;
        let names = ["ada@x.com".to_owned()];
        let person = Person { id: CustomerId::from_u128(7), known_as: &names };
        let redacted = redacted_copy(lead.as_bytes(), &person).unwrap().unwrap();
        assert_eq!(redacted, r#"{"object":"lead","source_channel":"erased","customer_id":null,"raw_data":null}"#);
        let other = lead.replace("null,\"raw", &format!("\"{}\",\"raw", CustomerId::from_u128(8)));
        assert_eq!(redacted_copy(other.as_bytes(), &person), Ok(None), "it is about another customer");
    }
}
