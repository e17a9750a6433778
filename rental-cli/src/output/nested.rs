//! Members whose value is an object or a list of objects: a line for each of its members, indented. For a terminal. No I/O.

use super::{
    clock::Clock,
    record::{Record, amount},
};
use rental_core::value::Timestamp;

/// Columns by which each level is indented.
const INDENT: usize = 2;
/// Most levels; what is deeper stays JSON.
const MOST_LEVELS: usize = 3;

/// The lines of such a value; `None` for every other one, and for an empty list.
pub(super) fn lines(json: &str, clock: Clock, currency: Option<&str>) -> Option<String> {
    at_level(1, json, clock, currency)
}

fn at_level(level: usize, json: &str, clock: Clock, currency: Option<&str>) -> Option<String> {
    let is_list = json.starts_with('[');
    if level > MOST_LEVELS || !(is_list || json.starts_with('{')) {
        return None;
    }
    let objects = if is_list { Record::read_list(json) } else { Record::read(json).ok().map(|object| vec![object]) };
    let objects = objects.filter(|objects| !objects.is_empty())?;
    let mut lines = String::new();
    for object in objects {
        let mut mark = if is_list { "- " } else { "  " };
        for (name, value) in object.fields() {
            // What is absent would be most of the lines.
            let Some(value) = value else { continue };
            let begin = " ".repeat(level * INDENT - INDENT);
            match at_level(level + 1, &value, clock, currency) {
                Some(inner) => lines.push_str(&format!("{begin}{mark}{name}:\n{inner}")),
                None => lines.push_str(&format!("{begin}{mark}{name}: {}\n", shown(&name, &value, clock, currency))),
            }
            mark = "  ";
        }
    }
    Some(lines)
}

fn shown(name: &str, value: &str, clock: Clock, currency: Option<&str>) -> String {
    let is_amount = ["amount", "discount", "price", "total", "tax", "fee"]
        .iter()
        .any(|word| name.split('_').any(|part| part == *word));
    match Timestamp::parse(value) {
        Some(time) => clock.long(time),
        None if is_amount => amount(value, currency),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Option<String> {
        lines(json, Clock::at(Timestamp::parse("2026-05-05T09:30:00.000Z").unwrap()), Some("USD"))
    }

    #[test]
    fn objects_and_lists_of_them_are_lines() {
        let list = r#"[{"kind":"toll","amount":7.5,"note":null,"of":{"plate":"A1"}},{"kind":"fee"}]"#;
        assert_eq!(of(list).unwrap(), "- kind: toll\n  amount: 7.50\n  of:\n    plate: A1\n- kind: fee\n");
        assert_eq!(of(r#"{"name":"Blue","ids":["a","b"]}"#).unwrap(), "  name: Blue\n  ids: [\"a\",\"b\"]\n");
    }

    #[test]
    fn everything_else_is_no_list_of_objects() {
        for json in ["[]", "[1,2]", "text", "{}x", "[x]"] {
            assert_eq!(of(json), None, "{json}");
        }
        let deep = r#"{"a":{"b":{"c":{"d":1}}}}"#;
        assert_eq!(of(deep).unwrap(), "  a:\n    b:\n      c: {\"d\":1}\n");
    }
}
