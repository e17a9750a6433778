//! Parsed responses. Members keep the server's order, numbers keep the server's digits.

use crate::{
    failure::Failure,
    text::{printable, printable_document},
};
use rental_core::value::Currency;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// One object: names and values in the order of the response.
#[derive(Clone, Debug)]
pub(crate) struct Record(Vec<(String, Box<RawValue>)>);

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    pub(crate) has_more: bool,
    pub(crate) next_cursor: Option<String>,
    pub(crate) data: Vec<Box<RawValue>>,
}

/// Returns the cursor of the page after this one; `None` after the last page. `cursor` is the one that this page was
/// requested with.
///
/// Fails if there are more pages, but no cursor or the same one again: the same page would be read forever.
pub(crate) fn next_page(
    has_more: bool,
    next_cursor: Option<String>,
    cursor: Option<&str>,
) -> Result<Option<String>, Failure> {
    if !has_more {
        return Ok(None);
    }
    match next_cursor.filter(|next| Some(next.as_str()) != cursor) {
        Some(next) => Ok(Some(next)),
        None => Err(Failure::Unreadable("the response has more pages but no next cursor".into())),
    }
}

impl Record {
    /// Parses one JSON object.
    pub(crate) fn read(json: &str) -> Result<Self, Failure> {
        serde_json::from_str(json).map_err(|error| unreadable("an object", &error))
    }

    /// Parses a list of JSON objects; `None` if it is none.
    pub(crate) fn read_list(json: &str) -> Option<Vec<Self>> {
        serde_json::from_str(json).ok()
    }

    /// Returns a member as text; `None` if it is `null` or absent.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| known == name).and_then(|(_, value)| plain(value))
    }

    /// Returns a member that is an amount, with all decimals of the currency of the object: `0.70`, where JSON has `0.7`.
    pub(crate) fn amount(&self, name: &str) -> Option<String> {
        let currency = self.text("currency").or_else(|| self.text("default_currency"));
        Some(amount(&self.text(name)?, currency.as_deref()))
    }

    /// Returns a member that is an amount, with all decimals of the currency of the object and its code: `0.70 USD`.
    pub(crate) fn money(&self, name: &str) -> Option<String> {
        let amount = self.amount(name)?;
        Some(self.text("currency").map_or_else(|| amount.clone(), |currency| format!("{amount} {currency}")))
    }

    /// Returns the object as JSON without a member.
    pub(crate) fn without(&self, name: &str) -> String {
        let members = self.0.iter().filter(|(known, _)| known != name);
        let members = members.map(|(name, value)| format!("{}:{}", serde_json::json!(name), value.get()));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    /// Returns the objects of a member that is a list; empty if it is not a list of objects.
    pub(crate) fn list(&self, name: &str) -> Vec<Self> {
        let raw = self.0.iter().find(|(known, _)| known == name);
        raw.and_then(|(_, value)| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    }

    /// Returns all members as text, without `object`: the user typed the type.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, Option<String>)> {
        self.0.iter().filter(|(name, _)| name != "object").map(|(name, value)| (printable(name), plain(value)))
    }
}

impl Page {
    /// Parses a list envelope.
    pub(crate) fn read(json: &str) -> Result<Self, Failure> {
        serde_json::from_str(json).map_err(|error| unreadable("a list", &error))
    }
}

/// An amount with all decimals of its currency; unchanged when the currency is not known, or it has more decimals.
pub(crate) fn amount(text: &str, currency: Option<&str>) -> String {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = whole.trim_start_matches('-').bytes().chain(decimals.bytes()).all(|byte| byte.is_ascii_digit());
    match currency.and_then(Currency::parse).map(Currency::digits) {
        Some(digits @ 1..) if is_plain => format!("{whole}.{decimals:0<width$}", width = digits as usize),
        _ => text.to_owned(),
    }
}

/// Checks that a response is one JSON value, and returns its text.
pub(crate) fn json(bytes: Vec<u8>) -> Result<String, Failure> {
    let text = String::from_utf8(bytes).map_err(|_| Failure::Unreadable("the response is not UTF-8".into()))?;
    serde_json::from_str::<&RawValue>(&text).map_err(|error| unreadable("JSON", &error))?;
    Ok(text)
}

fn unreadable(expected: &str, error: &serde_json::Error) -> Failure {
    Failure::Unreadable(format!("the response is not {expected}: {error}"))
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Record;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Record(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

fn plain(raw: &RawValue) -> Option<String> {
    match raw.get() {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str::<String>(text).ok().map(|text| printable(&text)),
        // JSON allows line breaks and tabs between tokens only, so replacing them changes no value.
        text => Some(printable_document(text).replace(['\n', '\r', '\t'], " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_the_order_and_digits_of_the_answer() {
        let record = Record::read(
            r#"{"object":"vehicle","z":89.50,"a":"b","raw":{"x":
            1},"none":null}"#,
        );
        let fields: Vec<_> = record.unwrap().fields().collect();
        let text = |text: &str| Some(text.to_owned());
        let raw = format!("{{\"x\": {}1}}", " ".repeat(12));
        assert_eq!(
            fields,
            [("z".into(), text("89.50")), ("a".into(), text("b")), ("raw".into(), Some(raw)), ("none".into(), None)]
        );
    }

    #[test]
    fn amounts_have_all_decimals_of_their_currency() {
        for (text, currency, shown) in [
            ("0.7", Some("USD"), "0.70"),
            ("12", Some("USD"), "12.00"),
            ("-6.9", Some("USD"), "-6.90"),
            ("0.125", Some("USD"), "0.125"),
            ("358", Some("JPY"), "358"),
            ("1.5", Some("KWD"), "1.500"),
            ("1e2", Some("USD"), "1e2"),
            ("0.7", Some("?"), "0.7"),
            ("0.7", None, "0.7"),
        ] {
            assert_eq!(amount(text, currency), shown);
        }
        let amount = |json: &str| Record::read(json).unwrap().amount("toll_fee");
        assert_eq!(amount(r#"{"toll_fee":1.5,"default_currency":"USD"}"#), Some("1.50".into()));
        assert_eq!(amount(r#"{"toll_fee":null,"default_currency":"USD"}"#), None);
    }

    #[test]
    fn an_answer_of_another_shape_is_unreadable() {
        assert!(Record::read("[]").is_err() && Page::read("{}").is_err() && json(b"<html>".to_vec()).is_err());
        assert!(json(vec![0xff]).is_err() && json(b"{} {}".to_vec()).is_err());
    }
    #[test]
    fn a_page_without_a_new_cursor_is_the_last_or_an_error() {
        let next = |has_more, next: Option<&str>, cursor| next_page(has_more, next.map(str::to_owned), cursor).ok();
        assert_eq!(next(true, Some("b"), Some("a")), Some(Some("b".to_owned())));
        assert_eq!(next(false, Some("b"), Some("a")), Some(None));
        assert_eq!((next(true, None, Some("a")), next(true, Some("a"), Some("a"))), (None, None));
    }
}
