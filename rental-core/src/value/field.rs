//! The checked value of a field whose kind is known at run time only, and its conversion into a struct's field.

use crate::value::{Currency, Date, Email, Language, Money, Name, Percent, Phone, SignedMoney, Text, Timestamp, Zone};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

/// A value that passed the check of its field's kind. Serializes to the canonical JSON of the field.
#[derive(Clone, Debug)]
pub enum FieldValue {
    /// JSON `null`: the field has no value.
    Null,
    /// A JSON boolean: `true` or `false`.
    Boolean(bool),
    /// A whole number of 64 bits with a sign.
    Integer(i64),
    /// An amount in the organization's currency.
    Money(Money),
    /// An amount with a sign.
    SignedMoney(SignedMoney),
    /// A percentage.
    Percent(Percent),
    /// Text without control characters.
    Text(Text),
    /// Text that is not blank.
    Name(Name),
    /// An e-mail address.
    Email(Email),
    /// A phone number in E.164.
    Phone(Phone),
    /// A language tag of BCP 47.
    Language(Language),
    /// Text of another kind: a URL, the name of a resource, or an id as the client sent it.
    Plain(String),
    /// One word of a fixed list, such as the name of a status.
    Word(&'static str),
    /// A calendar date, without a time.
    Date(Date),
    /// A point in time, in milliseconds.
    Time(Timestamp),
    /// An ISO 4217 currency.
    Currency(Currency),
    /// A time zone of the IANA database.
    Zone(Zone),
    /// An id that the server chose.
    Id(Uuid),
    /// A JSON object, kept byte for byte.
    Json(Box<RawValue>),
    /// A list of texts, in the order given.
    Texts(Vec<String>),
    /// A list of objects. All have the same members.
    Objects(Vec<Vec<(&'static str, FieldValue)>>),
}

impl FieldValue {
    /// The text of [`FieldValue::Plain`]; `None` for every other variant.
    #[must_use]
    pub fn plain(&self) -> Option<&str> {
        match self {
            Self::Plain(text) => Some(text),
            _ => None,
        }
    }
}

impl Serialize for FieldValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => value.serialize(serializer),
            Self::Integer(number) => number.serialize(serializer),
            Self::Money(amount) => amount.serialize(serializer),
            Self::SignedMoney(amount) => amount.serialize(serializer),
            Self::Percent(rate) => rate.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
            Self::Name(name) => name.serialize(serializer),
            Self::Email(email) => email.serialize(serializer),
            Self::Phone(phone) => phone.serialize(serializer),
            Self::Language(tag) => tag.serialize(serializer),
            Self::Plain(text) => text.serialize(serializer),
            Self::Word(word) => word.serialize(serializer),
            Self::Date(date) => date.serialize(serializer),
            Self::Time(time) => time.serialize(serializer),
            Self::Currency(currency) => currency.serialize(serializer),
            Self::Zone(zone) => zone.serialize(serializer),
            Self::Id(id) => id.serialize(serializer),
            Self::Json(json) => json.serialize(serializer),
            Self::Texts(texts) => texts.serialize(serializer),
            Self::Objects(objects) => serializer.collect_seq(objects.iter().map(|members| Object(members))),
        }
    }
}

struct Object<'a>(&'a [(&'static str, FieldValue)]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The value of a field in the key of an index entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IndexValue<'a> {
    /// A text, stored as the bytes of its composed form (NFC).
    Text(&'a str),
    /// An id, stored as its 16 bytes.
    Id(Uuid),
    /// A time, stored as 8 bytes of milliseconds, big-endian, so that keys are in the order of time.
    Time(Timestamp),
    /// A day, stored as 8 bytes with its number, big-endian, so that keys are in the order of days.
    Date(Date),
}

/// The type of a struct's field, which a checked value can be converted into.
pub trait FromField: Sized {
    /// Converts the value; `None` when it is of another kind.
    fn from_field(value: &FieldValue) -> Option<Self>;

    /// The value in the key of an index entry; `None` for `null`, and for types that no index contains.
    fn index_value(&self) -> Option<IndexValue<'_>> {
        None
    }
}

/// Implements [`FromField`] for each type that one variant of [`FieldValue`] contains.
macro_rules! from_variant {
    ($($type:ty: $variant:ident $(, in indexes as $index:ident)?;)+) => {
        $(impl FromField for $type {
            fn from_field(value: &FieldValue) -> Option<Self> {
                match value {
                    FieldValue::$variant(value) => Some(value.clone()),
                    _ => None,
                }
            }

            $(fn index_value(&self) -> Option<IndexValue<'_>> {
                Some(IndexValue::$index(self))
            })?
        })+
    };
}

from_variant! {
    bool: Boolean;
    i64: Integer;
    Money: Money;
    SignedMoney: SignedMoney;
    Percent: Percent;
    Text: Text, in indexes as Text;
    Name: Name, in indexes as Text;
    Email: Email, in indexes as Text;
    Phone: Phone, in indexes as Text;
    Language: Language;
    String: Plain, in indexes as Text;
    Currency: Currency;
    Zone: Zone;
    Box<RawValue>: Json;
    Vec<String>: Texts;
}

impl FromField for Timestamp {
    fn from_field(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Time(time) => Some(*time),
            _ => None,
        }
    }

    fn index_value(&self) -> Option<IndexValue<'_>> {
        Some(IndexValue::Time(*self))
    }
}

impl FromField for Date {
    fn from_field(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Date(date) => Some(*date),
            _ => None,
        }
    }

    fn index_value(&self) -> Option<IndexValue<'_>> {
        Some(IndexValue::Date(*self))
    }
}

impl FromField for u32 {
    fn from_field(value: &FieldValue) -> Option<Self> {
        i64::from_field(value)?.try_into().ok()
    }
}

impl FromField for Uuid {
    fn from_field(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Id(id) => Some(*id),
            FieldValue::Plain(text) => Self::try_parse(text).ok(),
            _ => None,
        }
    }
}

impl<T: FromField> FromField for Option<T> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Null => Some(None),
            value => T::from_field(value).map(Some),
        }
    }

    fn index_value(&self) -> Option<IndexValue<'_>> {
        self.as_ref().and_then(T::index_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &FieldValue, json: &str) {
        assert_eq!(serde_json::to_string(value).unwrap(), json);
    }

    #[test]
    fn a_value_is_written_as_the_json_of_its_field() {
        check(&FieldValue::Null, "null");
        check(&FieldValue::Money(Money::parse("89.50", 2).unwrap()), "89.5");
        check(&FieldValue::Plain("a\"b".into()), r#""a\"b""#);
        check(&FieldValue::Id(Uuid::nil()), "\"00000000-0000-0000-0000-000000000000\"");
        check(&FieldValue::Json(RawValue::from_string("{ \"a\": 1.50 }".into()).unwrap()), "{ \"a\": 1.50 }");
        let line = vec![("amount", FieldValue::Integer(1)), ("toll_id", FieldValue::Null)];
        check(&FieldValue::Objects(vec![line]), r#"[{"amount":1,"toll_id":null}]"#);
    }

    #[test]
    fn a_value_of_another_kind_makes_no_field() {
        assert_eq!(String::from_field(&FieldValue::Boolean(true)), None);
        assert_eq!(u32::from_field(&FieldValue::Integer(-1)), None);
        assert_eq!(String::from_field(&FieldValue::Null), None);
        assert_eq!(Option::<String>::from_field(&FieldValue::Null), Some(None));
        assert_eq!(Uuid::from_field(&FieldValue::Plain("no id".into())), None);
    }
}
