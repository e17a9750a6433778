//! Converts typed values to JSON text. A value of [`JsonText`] is valid JSON.
//!
//! Only the form is checked here, such as that a number is a JSON number. The server checks the rules of each field.

use crate::commands::by_field;
use clap::{
    Arg, Command,
    builder::{PossibleValue, TypedValueParser, ValueParser},
};
use rental_core::{request::body, resources::event::EVENT_NAMES, schema::Kind};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
};

/// Maximum size of a JSON document from a file. Servers accept far less.
const FILE_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The text of one JSON value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct JsonText(String);

impl JsonText {
    /// `null`.
    pub(crate) fn null() -> Self {
        Self("null".into())
    }

    /// A JSON string.
    pub(crate) fn string(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }

    /// A JSON number with the digits as typed: `89.50` stays `89.50`.
    pub(crate) fn number(text: &str) -> Result<Self, String> {
        let plain = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if plain && raw.get() == text => Ok(Self(text.to_owned())),
            _ => Err(match with_point(text) {
                Some(amount) => format!("not a number: write {amount}, with a point for the decimals"),
                None => "not a number; write it like 89.50, without currency signs or separators".into(),
            }),
        }
    }

    /// As [`JsonText::number`], for fields with whole numbers. The server checks that it is one.
    pub(crate) fn whole_number(text: &str) -> Result<Self, String> {
        Self::number(text).map_err(|_| "not a number; write it with digits only, such as 2024".into())
    }

    /// A JSON object with texts.
    pub(crate) fn object(members: &[(&str, &str)]) -> Self {
        let members = members.iter().map(|(name, text)| format!("{}:{}", Self::string(name).0, Self::string(text).0));
        Self(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
    }

    /// A JSON list.
    pub(crate) fn list<'a>(items: impl IntoIterator<Item = &'a Self>) -> Self {
        let items: Vec<&str> = items.into_iter().map(|item| item.0.as_str()).collect();
        Self(format!("[{}]", items.join(",")))
    }

    /// What a JSON string says; `None` for any other value.
    pub(crate) fn text(&self) -> Option<String> {
        serde_json::from_str(&self.0).ok()
    }

    /// The items of a JSON list; none for any other value.
    pub(crate) fn items(&self) -> Vec<Self> {
        let items: Vec<&RawValue> = serde_json::from_str(&self.0).unwrap_or_default();
        items.into_iter().map(|item| Self(item.get().to_owned())).collect()
    }

    /// The text of a member of a JSON object; `None` when there is none, or it is no text.
    pub(crate) fn member(&self, name: &str) -> Option<String> {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&self.0).ok()?;
        object.get(name)?.as_str().map(str::to_owned)
    }

    /// Whether this line of a credit note is of the line at this place on the invoice.
    pub(crate) fn is_of_line(&self, place: usize) -> bool {
        serde_json::from_str::<serde_json::Value>(&self.0).is_ok_and(|line| line["line"] == place)
    }

    /// This line of a credit note, at its place on the invoice.
    pub(crate) fn at_place(&self, place: usize) -> Self {
        Self(format!("{{\"line\":{place}{}}}", self.amount_of_line()))
    }

    /// This line of an invoice, with the id of what it bills in this member.
    pub(crate) fn billing_id(&self, member: &str, id: &str) -> Self {
        Self(format!("{{\"{member}\":{}{}}}", Self::string(id).0, self.amount_of_line()))
    }

    /// The amount of a line as a further member of its object, with the digits as typed; empty for a line without an amount.
    fn amount_of_line(&self) -> String {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            amount: Option<&'a RawValue>,
        }
        let amount = serde_json::from_str::<Line<'_>>(&self.0).ok().and_then(|line| line.amount);
        amount.map_or_else(String::new, |amount| Self(amount.get().to_owned()).as_amount())
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A JSON document, or `@FILE` (`@-` for stdin) with one.
    fn document(text: &str) -> Result<Self, String> {
        let text = match text.strip_prefix('@') {
            Some("-") => read(io::stdin().lock()).map_err(|error| format!("cannot read standard input: {error}"))?,
            Some(path) => File::open(path).and_then(read).map_err(|error| format!("cannot read the file: {error}"))?,
            None => text.to_owned(),
        };
        let raw: &RawValue = serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}"))?;
        Ok(Self(raw.get().to_owned()))
    }

    /// A line of an invoice: `Text=12.50`, or `toll:NUMBER` with or without an amount. The last `=` separates, so that the text may
    /// contain `=`. A text cannot begin with a word of [`Self::billing`]: that would leave the toll unbilled.
    fn line(text: &str) -> Result<Self, String> {
        if let Some(line) = Self::billing(text) {
            return line;
        }
        let shapes = "write it as 'Text=12.50', or as toll:NUMBER, violation:NUMBER or rental:BOOKING, or with an id; these with =12.50 for a part";
        let (description, amount) = text.rsplit_once('=').ok_or(shapes)?;
        let amount = Self::number(amount)?;
        Ok(Self(format!("{{\"description\":{},\"amount\":{}}}", Self::string(description).0, amount.0)))
    }

    /// A line that names what it bills or credits: exactly `toll:`, `violation:` or `rental:`, a name, and `=` with the amount if
    /// that is a part. `None` for any other text.
    fn billing(text: &str) -> Option<Result<Self, String>> {
        let (source @ ("rental" | "toll" | "violation"), named) = text.trim_start().split_once(':')? else {
            return None;
        };
        let (name, amount) = named.rsplit_once('=').map_or((named, None), |(name, amount)| (name, Some(amount)));
        let name = name.trim();
        if name.is_empty() {
            return Some(Err(format!(
                "name the {source} after {source}:, or begin the text of the line with another word"
            )));
        }
        let line = |amount: &str| Self(format!("{{\"{source}_id\":{}{amount}}}", Self::string(name).0));
        let Some(amount) = amount else { return Some(Ok(line(""))) };
        let wrong =
            |rule| format!("the amount after the last = is {rule}; a name that contains = needs an id in its place");
        Some(Self::number(amount).map(|amount| line(&amount.as_amount())).map_err(wrong))
    }

    /// A line of a credit note: `0` or `0=12.50`. `toll:NUMBER=12.50` becomes an object with `toll_id`, which the API does not
    /// know: `credit_notes` replaces it by the place of the line.
    fn credit_line(text: &str) -> Result<Self, String> {
        if let Some(line) = Self::billing(text) {
            return line;
        }
        let (line, amount) = text.rsplit_once('=').map_or((text, None), |(line, amount)| (line, Some(amount)));
        let shapes = "write it as 0 or 0=12.50, where the first line of an invoice is 0, or as toll:NUMBER, violation:NUMBER or rental:BOOKING";
        let place = Self::whole_number(line).map_err(|_| shapes)?.0;
        if !place.parse().is_ok_and(|place| (0..body::MOST_LINES).contains(&place)) {
            return Err(format!(
                "an invoice has at most {} lines, the first of which is 0; if {place} is the number of a toll, write toll:{place}, if it is that of a violation, violation:{place}",
                body::MOST_LINES
            ));
        }
        let amount = amount.map(Self::number).transpose()?;
        let amount = amount.map_or_else(String::new, |amount| amount.as_amount());
        Ok(Self(format!("{{\"line\":{place}{amount}}}")))
    }

    /// The amount of a line as a further member of its object.
    fn as_amount(&self) -> String {
        format!(",\"amount\":{}", self.0)
    }
}

/// The amount that a text with a decimal comma means: `12.50` for `12,50`. Three digits after a comma can also be thousands.
fn with_point(text: &str) -> Option<String> {
    let (whole, decimals) = text.split_once(',')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_amount = is_number(whole.strip_prefix('-').unwrap_or(whole)) && is_number(decimals) && decimals.len() <= 2;
    is_amount.then(|| format!("{whole}.{decimals}"))
}

/// Reads a text that is no longer than [`FILE_MAX_BYTES`].
fn read(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        let problem = format!("longer than {} MiB, more than a server accepts", FILE_MAX_BYTES / (1024 * 1024));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

/// Returns the parser for values of `kind`. If `nullable`, an empty text is `null`.
pub(crate) fn parser(kind: Kind, nullable: bool) -> ValueParser {
    let or_null = move |text: &str, otherwise: fn(&str) -> Result<JsonText, String>| {
        if nullable && text.is_empty() { Ok(JsonText::null()) } else { otherwise(text) }
    };
    match kind {
        Kind::Money | Kind::Percent => ValueParser::new(move |text: &str| or_null(text, JsonText::number)),
        Kind::Integer(..) => ValueParser::new(move |text: &str| or_null(text, JsonText::whole_number)),
        Kind::Json(_) => ValueParser::new(move |text: &str| or_null(text, JsonText::document)),
        Kind::Lines => ValueParser::new(JsonText::line),
        Kind::CreditLines => ValueParser::new(JsonText::credit_line),
        Kind::Boolean => Words(&["true", "false"]).try_map(|text| truth(&text)).into(),
        Kind::EventTypes => parser(Kind::Word(EVENT_NAMES), nullable),
        Kind::Word(words) => Words(words).try_map(move |text| or_null(&text, |text| Ok(JsonText::string(text)))).into(),
        _ => ValueParser::new(move |text: &str| or_null(text, |text| Ok(JsonText::string(text)))),
    }
}

fn truth(text: &str) -> Result<JsonText, String> {
    match text {
        "true" | "false" => Ok(JsonText(text.to_owned())),
        _ => Err("write true or false".into()),
    }
}

/// Placeholder for values of `kind` in help.
pub(crate) fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Reference(object) => by_field::placeholder(object).unwrap_or("ID"),
        Kind::Id | Kind::References(_) => "ID",
        Kind::Money => "AMOUNT",
        Kind::Percent => "PERCENT",
        Kind::Integer(..) => "NUMBER",
        Kind::Boolean => "BOOL",
        Kind::Date => "DAY",
        Kind::Time => "TIME",
        Kind::Currency => "CODE",
        Kind::Email => "EMAIL",
        Kind::Phone => "PHONE",
        Kind::Language => "TAG",
        Kind::Json(_) => "JSON|@FILE",
        Kind::Lines => "TEXT=AMOUNT|{toll:NUMBER|violation:NUMBER|rental:BOOKING}[=AMOUNT]",
        Kind::CreditLines => "INDEX|toll:NUMBER|violation:NUMBER|rental:BOOKING[=AMOUNT]",
        Kind::Word(_) => "WORD",
        Kind::Url => "URL",
        Kind::TimeZone => "ZONE",
        Kind::EventTypes => "TYPE",
        Kind::Paragraph(..) => "LINES",
        Kind::Object | Kind::Text(_) | Kind::Name(_) | Kind::EarlierVehicles | Kind::AttemptLog | Kind::Assignments => {
            "TEXT"
        }
    }
}

/// Words that help and completions offer. Others are accepted too, because a newer server may know more words.
#[derive(Clone)]
pub(crate) struct Words(pub(crate) &'static [&'static str]);

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_text_that_was_typed() {
        for text in ["89.50", "0", "-5", "1e2", "12345678901234567890.10"] {
            assert_eq!(JsonText::number(text), Ok(JsonText(text.into())));
        }
    }

    #[test]
    fn a_decimal_comma_is_refused_with_what_to_type() {
        for (text, typed) in [("12,50", Some("12.50")), ("-7,5", Some("-7.5")), ("1,000", None), ("1,00,5", None)] {
            let problem = JsonText::number(text).unwrap_err();
            assert_eq!(problem.contains("write it like 89.50"), typed.is_none(), "{problem}");
            assert!(typed.is_none_or(|typed| problem.contains(&format!("write {typed}, "))), "{problem}");
        }
        assert!(JsonText::line("Text=12,50").unwrap_err().contains("write 12.50"));
    }

    #[test]
    fn what_json_calls_no_number_is_refused() {
        for text in [
            "", "abc", "$5", "1,000", ".5", "5.", "+5", "01", "0x10", "NaN", " 5", "5 ", "\"5\"", "true", "null",
            "[1]", "1 2",
        ] {
            assert!(JsonText::number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_equals_sign_separates_a_line() {
        let line = JsonText::line("a=b \"c\"=12.50").unwrap();
        assert_eq!(line.as_str(), r#"{"description":"a=b \"c\"","amount":12.50}"#);
        assert_eq!(JsonText::list([&line, &line]).as_str().matches("12.50").count(), 2);
    }

    #[test]
    fn a_line_bills_what_its_lower_case_word_names_also_in_part() {
        for (text, line) in [
            ("toll:612-1", r#"{"toll_id":"612-1"}"#),
            ("toll:612-1=3.00", r#"{"toll_id":"612-1","amount":3.00}"#),
            (" toll: 612-1 =6.94", r#"{"toll_id":"612-1","amount":6.94}"#),
            ("rental:BK9=100", r#"{"rental_id":"BK9","amount":100}"#),
            ("violation:NYC:9=5", r#"{"violation_id":"NYC:9","amount":5}"#),
            ("Toll: bridge=5", r#"{"description":"Toll: bridge","amount":5}"#),
            ("toll bridge=5", r#"{"description":"toll bridge","amount":5}"#),
        ] {
            assert_eq!(JsonText::line(text).unwrap().as_str(), line, "{text}");
        }
        for text in ["toll:", "toll: =5", "toll:612-1=", "toll:612-1= 5", "toll:612-1=3,00", "rental:B=x"] {
            assert!(JsonText::line(text).is_err() && JsonText::credit_line(text).is_err(), "{text}");
        }
        assert!(JsonText::line("toll:612-1=3,00").unwrap_err().contains("write 3.00"));
        let billed = JsonText::line("toll:612-1=3.00").unwrap().billing_id("toll_id", "ID");
        assert_eq!(billed.as_str(), r#"{"toll_id":"ID","amount":3.00}"#);
    }

    #[test]
    fn a_line_needs_an_amount() {
        for text in ["", "Text", "Text=", "Text=abc", "Text=12,50", "Text= 5"] {
            assert!(JsonText::line(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_document_is_kept_as_typed() {
        assert_eq!(JsonText::document("{\"a\" : 1.50}").unwrap().as_str(), "{\"a\" : 1.50}");
        for text in ["", "{", "{} {}", "hello", "@/no/such/file"] {
            assert!(JsonText::document(text).is_err(), "{text}");
        }
    }
}
