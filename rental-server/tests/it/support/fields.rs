//! Which values a field takes and which it refuses, as tables that POST and PATCH are held to.
//!
//! Values are JSON text, so that a table can say `1e400` or `89.50`.

use super::{Organization, Reply};
use serde_json::Value;

/// One field that clients set.
pub(crate) struct Field {
    name: &'static str,
    /// What is sent, and what comes back.
    good: Vec<(String, String)>,
    /// What is answered with `parameter_invalid`.
    bad: Vec<String>,
    /// Other fields that change with it.
    follows: &'static [&'static str],
    /// What stands there when it is left out of a POST.
    unset: &'static str,
    /// Whether POST and PATCH take it.
    post: bool,
    patch: bool,
}

/// The fields of a resource, and a body with no more than the required ones.
pub(crate) struct Table {
    pub(crate) plural: &'static str,
    pub(crate) base: Value,
    pub(crate) fields: Vec<Field>,
}

fn field(name: &'static str, good: &[(&str, &str)], bad: &[&str]) -> Field {
    let good = good.iter().map(|(sent, stored)| (sent.to_string(), stored.to_string())).collect();
    let bad = bad.iter().map(|text| (*text).to_owned()).collect();
    Field { name, good, bad, follows: &[], unset: "null", post: true, patch: true }
}

fn same<'a>(values: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    values.iter().map(|value| (*value, *value)).collect()
}

const NO_STRING: [&str; 5] = ["1", "1.5", "true", "[\"a\"]", "{\"a\":\"b\"}"];

/// Text of at most `max` characters.
pub(crate) fn text(name: &'static str, max: usize) -> Field {
    let [under, full, over] = [max - 1, max, max + 1].map(|length| format!("\"{}\"", "é".repeat(length)));
    let mut table = field(
        name,
        &same(&["\"Plain\"", "\"\"", "\"  kept  as is  \"", "\"🚗 \\\"quoted\\\" \\\\ /\"", &under, &full]),
        &[r#""a\u0000b""#, r#""a\nb""#, r#""\t""#, r#""\u007f""#, r#""\u0085""#, &over],
    );
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

/// The same, with line breaks.
pub(crate) fn paragraph(name: &'static str, max: usize) -> Field {
    let mut table = text(name, max);
    table.bad.retain(|sent| !sent.contains("\\n"));
    table.bad.extend([r#""a\rb""#, r#""a\n\tb""#].map(str::to_owned));
    let good = [r#""Terminal 4\nDoor B""#, r#""12 Main St\r\nSpringfield\r\n""#, r#""\n\n- one\n- two""#];
    table.good.extend(good.map(|sent| (sent.to_owned(), sent.to_owned())));
    table
}

/// Text that is not blank.
pub(crate) fn name(name: &'static str, max: usize) -> Field {
    let mut table = text(name, max);
    table.good.retain(|(sent, _)| sent != "\"\"");
    table.bad.extend([r#""""#, r#""   ""#, r#""\u00a0\u2003""#].map(str::to_owned));
    table
}

/// An amount in a currency with two decimals.
pub(crate) fn money(name: &'static str) -> Field {
    field(
        name,
        &[
            ("89.50", "89.5"),
            ("0", "0"),
            ("-0", "0"),
            ("0.01", "0.01"),
            ("1e2", "100"),
            ("1.5E+1", "15"),
            ("10.500", "10.5"),
            ("0.1", "0.1"),
            ("4503599627.37", "4503599627.37"),
            ("99999999999.99", "99999999999.99"),
        ],
        &[
            "-1",
            "-0.01",
            "0.001",
            "10.005",
            "1e-3",
            "1e-400",
            "1e400",
            "-1e400",
            "100000000000",
            "9007199254740993",
            "\"1\"",
            "\"\"",
            "true",
            "[1]",
            "{}",
        ],
    )
}

/// A whole number of a range.
pub(crate) fn integer(name: &'static str, from: i64, to: i64) -> Field {
    let inside = [from, from + 1, to - 1, to].map(|number| number.to_string());
    let outside = [from - 1, to + 1].map(|number| number.to_string());
    let mut table = field(
        name,
        &same(&inside.each_ref().map(String::as_str)),
        &["0", "-0", "-1", "2024.5", "\"2024\"", "true", "[2024]", "{}", "1e400", "1e-400", "9007199254740993", "1e30"],
    );
    table.bad.extend(outside);
    table
}

/// One of some words.
pub(crate) fn word(name: &'static str, words: &[&str]) -> Field {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let mut table = field(name, &same(&quoted.iter().map(String::as_str).collect::<Vec<_>>()), &["\"\"", "\"other\""]);
    let other_case =
        words[0].chars().map(|c| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() });
    table.bad.push(format!("\"{}\"", other_case.collect::<String>()));
    table.bad.push(format!("\" {}\"", words[0]));
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

/// A calendar date.
pub(crate) fn time(name: &'static str) -> Field {
    let midnight = "\"2026-05-05T00:00:00.000Z\"";
    let good = [
        (midnight, midnight),
        ("\"2026-05-05T02:00:00+02:00\"", midnight),
        ("\"9999-12-31T23:59:59.999Z\"", "\"9999-12-31T23:59:59.999Z\""),
    ];
    let mut table = field(
        name,
        &good,
        &["\"2026-05-05\"", "\"2026-05-05T00:00:00\"", "\"now\"", "\"\"", "\"1969-12-31T23:59:59Z\""],
    );
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

pub(crate) fn date(name: &'static str) -> Field {
    let mut table = field(
        name,
        &same(&["\"2026-06-01\"", "\"2024-02-29\"", "\"9999-12-31\"", "\"0001-01-01\""]),
        &[
            "\"\"",
            "\"2025-02-29\"",
            "\"2026-13-01\"",
            "\"2026-00-10\"",
            "\"2026-06-31\"",
            "\"2026-6-1\"",
            "\"20260601\"",
            "\"2026-06-01T00:00:00Z\"",
            "\" 2026-06-01\"",
            "\"06/01/2026\"",
            "\"0000-01-01\"",
            "\"10000-01-01\"",
            "20260601",
        ],
    );
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

/// An e-mail address of at most 254 bytes.
pub(crate) fn email(name: &'static str) -> Field {
    let address = |length: usize| {
        let domain = format!("{}.{}.{}.example", "d".repeat(63), "e".repeat(63), "f".repeat(60));
        format!("\"{}@{domain}\"", "a".repeat(length - domain.len() - 1))
    };
    let [full, over] = [254, 255].map(address);
    let mut table = field(
        name,
        &same(&["\"ada@example.com\"", "\"Ada.Lovelace+fleet@Sub.Example.co.uk\"", "\"o'neil@example.ie\"", &full]),
        &[
            "\"\"",
            "\"ada\"",
            "\"@example.com\"",
            "\"ada@\"",
            "\"a@b@example.com\"",
            "\"Ada <ada@example.com>\"",
            "\"ada@example.com, b@example.com\"",
            "\" ada@example.com\"",
            r#""ada@example.com\n""#,
            r#""a\u0000@example.com""#,
            &over,
        ],
    );
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

/// A phone number in E.164.
pub(crate) fn phone(name: &'static str) -> Field {
    let mut table = field(
        name,
        &same(&["\"+14155550123\"", "\"+1234567\"", "\"+123456789012345\""]),
        &[
            "\"\"",
            "\"+\"",
            "\"14155550123\"",
            "\"+0123456789\"",
            "\"+123456\"",
            "\"+1234567890123456\"",
            "\"+1 415 555 0123\"",
            "\"+1415555012a\"",
            "\"+1-415-555-0123\"",
            "\"++14155550123\"",
            "\"+１２３４５６７８\"",
        ],
    );
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

/// A BCP 47 tag, stored in its canonical case.
pub(crate) fn language(name: &'static str) -> Field {
    let mut table = field(
        name,
        &[("\"en\"", "\"en\""), ("\"EN-us\"", "\"en-US\""), ("\"zh-hant-tw\"", "\"zh-Hant-TW\""), ("\"de\"", "\"de\"")],
        &["\"\"", "\"e\"", "\"en_US\"", "\"en--US\"", "\"-en\"", "\"en-\"", "\"english language\"", r#""en\n""#],
    );
    table.bad.extend(NO_STRING.map(str::to_owned));
    table
}

/// `true` or `false`.
pub(crate) fn boolean(name: &'static str) -> Field {
    field(name, &same(&["true", "false", "true"]), &["0", "1", "\"true\"", "\"\"", "[]", "{}", "[true]"])
}

impl Field {
    /// Required on POST.
    pub(crate) fn required(self) -> Self {
        self.starts_as("required")
    }

    /// Never empty: starts as this JSON text.
    pub(crate) fn starts_as(mut self, text: &'static str) -> Self {
        self.unset = text;
        self
    }

    /// Good values, as sent and as stored, and bad ones.
    pub(crate) fn values(self) -> (Vec<(String, String)>, Vec<String>) {
        (self.good, self.bad)
    }

    /// Taken by PATCH alone.
    /// These fields change with it.
    pub(crate) fn followed_by(mut self, names: &'static [&'static str]) -> Self {
        self.follows = names;
        self
    }

    pub(crate) fn patch_only(mut self) -> Self {
        self.post = false;
        self
    }
}

/// `base` as JSON text with this text in the place of one field.
pub(crate) fn with(base: &Value, name: &str, text: &str) -> String {
    let members = base.as_object().unwrap().iter().filter(|(known, _)| *known != name);
    let mut parts: Vec<String> = members.map(|(known, value)| format!("\"{known}\":{value}")).collect();
    parts.push(format!("\"{name}\":{text}"));
    format!("{{{}}}", parts.join(","))
}

#[track_caller]
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn refused(reply: &Reply, name: &str, code: &str, sent: &str) {
    assert_eq!(reply.status, 400, "{name} {sent}: {}", reply.text());
    assert_eq!(reply.bad_fields(), [(name.to_owned(), code.to_owned())], "{sent}");
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(name), "{message}");
}

impl Table {
    fn path(&self) -> String {
        format!("/v1/{}", self.plural)
    }

    #[track_caller]
    fn send(&self, organization: &Organization<'_>, body: &str) -> Reply {
        organization.raw("POST", &self.path(), &[], body.as_bytes())
    }

    /// A new object; its path.
    #[track_caller]
    fn object(&self, organization: &Organization<'_>) -> String {
        format!("{}/{}", self.path(), organization.post(&self.path(), &self.base).id())
    }

    #[track_caller]
    pub(crate) fn post_takes_every_good_value(&self, organization: &Organization<'_>) {
        for field in self.fields.iter().filter(|field| field.post) {
            for (sent, stored) in &field.good {
                let reply = self.send(organization, &with(&self.base, field.name, sent));
                assert_eq!(reply.ok()[field.name], value(stored), "{} {sent}", field.name);
                assert_eq!(organization.get(&format!("{}/{}", self.path(), reply.id())).body, reply.body);
            }
        }
    }

    #[track_caller]
    pub(crate) fn post_refuses_every_bad_value(&self, organization: &Organization<'_>) {
        for field in &self.fields {
            let bad = if field.post { &field.bad } else { &field.good.iter().map(|(sent, _)| sent.clone()).collect() };
            let code = if field.post { "parameter_invalid" } else { "parameter_unknown" };
            for sent in bad {
                refused(&self.send(organization, &with(&self.base, field.name, sent)), field.name, code, sent);
            }
        }
        let list = organization.get(&self.path()).ok();
        assert_eq!(list["data"], Value::Array(Vec::new()), "a refused POST makes nothing");
    }

    /// A field that is left out or `null` starts empty, or with its default.
    #[track_caller]
    pub(crate) fn post_without_a_field_or_with_null_leaves_it_unset(&self, organization: &Organization<'_>) {
        let bare = organization.post(&self.path(), &self.base).ok();
        for field in self.fields.iter().filter(|field| field.unset != "required") {
            assert_eq!(bare.get(field.name), Some(&value(field.unset)), "{}", field.name);
            if field.post {
                let nulled = self.send(organization, &with(&self.base, field.name, "null")).ok();
                assert_eq!(nulled[field.name], value(field.unset), "{}", field.name);
            }
        }
    }

    #[track_caller]
    pub(crate) fn post_names_each_required_field_that_is_missing(&self, organization: &Organization<'_>) {
        let required: Vec<&String> = self.base.as_object().unwrap().keys().collect();
        let expected: Vec<_> = required.iter().map(|name| ((*name).clone(), "parameter_missing".to_owned())).collect();
        let sorted = |reply: &Reply| {
            let mut fields = reply.bad_fields();
            fields.sort();
            fields
        };
        for body in ["{}", ""] {
            assert_eq!(sorted(&self.send(organization, body)), expected);
        }
        for name in required {
            refused(&self.send(organization, &with(&self.base, name, "null")), name, "parameter_missing", "null");
        }
    }

    /// What only the server sets, what is no field, and what comes twice.
    #[track_caller]
    pub(crate) fn refuses_fields_that_it_does_not_take(&self, organization: &Organization<'_>, others: &[&str]) {
        let object = self.object(organization);
        let before = organization.get(&object).body;
        for name in
            ["id", "object", "created_at", "updated_at", "nonsense", "", "Status", "__proto__"].iter().chain(others)
        {
            for text in ["\"x\"", "null", "{}"] {
                let post = self.send(organization, &with(&self.base, name, text));
                refused(&post, name, "parameter_unknown", text);
                let patch = organization.raw("PATCH", &object, &[], format!("{{\"{name}\":{text}}}").as_bytes());
                refused(&patch, name, "parameter_unknown", text);
            }
        }
        for (name, sent) in self.base.as_object().unwrap() {
            let twice = with(&self.base, name, &format!("{sent},\"{name}\":{sent}"));
            refused(&self.send(organization, &twice), name, "parameter_duplicate", &twice);
            let twice = format!("{{\"{name}\":{sent},\"{name}\":{sent}}}");
            refused(&organization.raw("PATCH", &object, &[], twice.as_bytes()), name, "parameter_duplicate", &twice);
        }
        assert_eq!(organization.get(&object).body, before, "a refused PATCH changes nothing");
    }

    /// A good value replaces that field and nothing else; the answer is what a GET gives.
    #[track_caller]
    pub(crate) fn patch_takes_every_good_value(&self, organization: &Organization<'_>) {
        for field in self.fields.iter().filter(|field| field.patch) {
            let path = self.object(organization);
            for (sent, stored) in &field.good {
                let mut before = organization.get(&path).ok();
                let reply = organization.raw("PATCH", &path, &[], format!("{{\"{}\":{sent}}}", field.name).as_bytes());
                let after = reply.ok();
                before[field.name] = value(stored);
                before["updated_at"] = after["updated_at"].clone();
                field.follows.iter().for_each(|name| before[*name] = after[*name].clone());
                assert_eq!(after, before, "{} {sent}", field.name);
                assert_eq!(organization.get(&path).body, reply.body);
            }
        }
    }

    #[track_caller]
    pub(crate) fn patch_refuses_every_bad_value(&self, organization: &Organization<'_>) {
        let path = self.object(organization);
        let before = organization.get(&path).body;
        for field in self.fields.iter().filter(|field| field.patch) {
            for sent in &field.bad {
                let reply = organization.raw("PATCH", &path, &[], format!("{{\"{}\":{sent}}}", field.name).as_bytes());
                refused(&reply, field.name, "parameter_invalid", sent);
            }
        }
        assert_eq!(organization.get(&path).body, before, "a refused PATCH changes nothing");
    }

    /// `null` clears a field that can be empty and is refused for one that cannot.
    #[track_caller]
    pub(crate) fn patch_with_null_clears_what_can_be_empty(&self, organization: &Organization<'_>) {
        let path = self.object(organization);
        for field in self.fields.iter().filter(|field| field.patch) {
            let set = format!("{{\"{}\":{}}}", field.name, field.good[0].0);
            organization.raw("PATCH", &path, &[], set.as_bytes()).ok();
            let reply = organization.raw("PATCH", &path, &[], format!("{{\"{}\":null}}", field.name).as_bytes());
            if field.unset == "null" {
                assert_eq!(reply.ok()[field.name], Value::Null, "{}", field.name);
                assert_eq!(organization.get(&path).body, reply.body);
            } else {
                refused(&reply, field.name, "parameter_invalid", "null");
            }
        }
    }
}
