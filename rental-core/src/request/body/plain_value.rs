//! Checks one value that is a JSON string, number or boolean.

use super::suggestion::did_you_mean;
use crate::{
    schema::Kind,
    value::{
        Currency, Date, Decimal, Email, FieldValue, Language, Money, Name, Percent, Phone, Text, Timestamp, Zone, url,
    },
};

/// Checks a JSON text as a value of this kind. The error is the rule that it breaks.
pub(super) fn one_value(kind: Kind, raw: &str, digits: u32) -> Result<FieldValue, String> {
    match kind {
        Kind::Money => Money::parse(raw, digits).map(FieldValue::Money),
        Kind::Percent => Percent::parse(raw).map(FieldValue::Percent),
        Kind::Integer(from, to) => integer(raw, from, to),
        Kind::Boolean => match raw {
            "true" => Ok(FieldValue::Boolean(true)),
            "false" => Ok(FieldValue::Boolean(false)),
            _ => Err("must be true or false".into()),
        },
        Kind::References(_)
        | Kind::EarlierVehicles
        | Kind::Json(_)
        | Kind::Lines
        | Kind::CreditLines
        | Kind::Assignments
        | Kind::EventTypes
        | Kind::AttemptLog => Err("is not a plain value".into()),
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
        Kind::Paragraph(max, lines) => Text::parse_lines(text, max, lines).map(FieldValue::Text),
        Kind::Email => Email::parse(text).map(FieldValue::Email),
        Kind::Phone => Phone::parse(text).map(FieldValue::Phone),
        Kind::Language => Language::parse(&text).map(FieldValue::Language),
        Kind::Date => {
            let date = Date::parse(&text).map(FieldValue::Date);
            date.ok_or_else(|| "must be a calendar date, YYYY-MM-DD".into())
        }
        Kind::Time => {
            let time = Timestamp::parse(&text).map(FieldValue::Time);
            time.ok_or_else(|| Timestamp::rule(&text))
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
        // An operation checks later whether the object exists. A malformed id is treated like an unknown one.
        Kind::Reference(_) | Kind::Id | Kind::Object => {
            Text::parse(text, 255).map(|text| FieldValue::Plain(text.into()))
        }
        Kind::Url => url::parse(&text).map(|url| FieldValue::Plain(url.into())),
        Kind::Integer(..)
        | Kind::Money
        | Kind::Percent
        | Kind::Boolean
        | Kind::References(_)
        | Kind::EarlierVehicles
        | Kind::Json(_)
        | Kind::Lines
        | Kind::CreditLines
        | Kind::Assignments
        | Kind::EventTypes
        | Kind::AttemptLog => Err("must not be a string".into()),
    }
}

fn integer(raw: &str, from: i64, to: i64) -> Result<FieldValue, String> {
    let number = Decimal::parse(raw).ok().and_then(Decimal::to_integer).filter(|number| (from..=to).contains(number));
    number.map(FieldValue::Integer).ok_or_else(|| format!("must be a whole number from {from} to {to}"))
}
