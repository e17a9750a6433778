//! The members of a stored JSON object, in order, each with its stored bytes.
//!
//! A change of members instead of the present struct keeps all other bytes, and later changes of the struct do not change
//! it. Lifts of upgrades and the erasing of a person work so.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The members of a JSON object: name and JSON text, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Members {
    list: Vec<(String, String)>,
    changed: bool,
}

impl Members {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// The bytes are no JSON object, or the object has a duplicate name.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let Pairs(pairs) = serde_json::from_slice(json).map_err(|error| format!("it is no JSON object: {error}"))?;
        let mut list: Vec<(String, String)> = Vec::with_capacity(pairs.len() + 4);
        for (name, value) in pairs {
            if list.iter().any(|(known, _)| *known == name) {
                return Err(format!("it has `{name}` twice"));
            }
            list.push((name.into_owned(), value.get().to_owned()));
        }
        Ok(Self { list, changed: false })
    }

    /// The JSON text of a member; `None` when it is absent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the member is absent or `null`.
    #[must_use]
    pub fn is_null(&self, name: &str) -> bool {
        self.get(name).is_none_or(|value| value == "null")
    }

    /// Adds the member `name` after the member `place`, unless `name` exists already.
    ///
    /// # Errors
    /// There is no member `place`, so this is no object of its resource.
    pub fn add_after(&mut self, place: &str, name: &str, json: impl Into<String>) -> Result<(), String> {
        if self.get(name).is_some() {
            return Ok(());
        }
        let at =
            self.list.iter().position(|(known, _)| known == place).ok_or_else(|| format!("it has no `{place}`"))?;
        self.list.insert(at + 1, (name.to_owned(), json.into()));
        self.changed = true;
        Ok(())
    }

    /// Replaces the value of a member.
    ///
    /// # Errors
    /// The member does not exist.
    pub fn set(&mut self, name: &str, json: impl Into<String>) -> Result<(), String> {
        let value = self.list.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value);
        let (value, json) = (value.ok_or_else(|| format!("it has no `{name}`"))?, json.into());
        if *value != json {
            *value = json;
            self.changed = true;
        }
        Ok(())
    }

    /// Calls `change` for each object of a member that is a list of objects.
    ///
    /// # Errors
    /// The error of `change`, or the member is no list of objects.
    pub fn each_of(&mut self, name: &str, change: impl Fn(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let text = self.get(name).ok_or_else(|| format!("it has no `{name}`"))?;
        let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| format!("its `{name}` is no list"))?;
        let (mut lifted, mut changed) = (Vec::with_capacity(items.len()), false);
        for item in items {
            let mut members = Self::parse(item.get().as_bytes()).map_err(|why| format!("in its `{name}`: {why}"))?;
            change(&mut members)?;
            changed |= members.changed;
            lifted.push(if members.changed { members.json() } else { item.get().to_owned() });
        }
        if changed { self.set(name, format!("[{}]", lifted.join(","))) } else { Ok(()) }
    }

    /// Whether a member was added or replaced.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The object as compact JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let mut json = String::with_capacity(2 + self.list.iter().map(|(a, b)| a.len() + b.len() + 4).sum::<usize>());
        json.push('{');
        for (at, (name, value)) in self.list.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            // serde_json quotes the name. Stored names need no escape.
            json.push_str(&serde_json::Value::from(name.as_str()).to_string());
            json.push(':');
            json.push_str(value);
        }
        json.push('}');
        json
    }
}

/// The members in the order of the text.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    pairs.push((pair.0.0, pair.1));
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Object)
    }
}

/// A name, borrowed when it contains no escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"id":"x","price":1.50,"raw":{"b": [1e2 , "\u00e9"],"a":null},"lines":[{"a":1},{"b":2}]}"#;

    #[test]
    fn members_that_are_not_named_keep_every_byte() {
        let mut members = Members::parse(OBJECT.as_bytes()).unwrap();
        assert_eq!(members.json(), OBJECT);
        members.add_after("price", "zone", "null").unwrap();
        assert_eq!(members.json(), OBJECT.replace("1.50,", "1.50,\"zone\":null,"));
    }

    #[test]
    fn what_is_there_is_not_added_again() {
        let mut members = Members::parse(OBJECT.as_bytes()).unwrap();
        members.add_after("id", "price", "7").unwrap();
        members.set("id", "\"x\"").unwrap();
        members.each_of("lines", |_| Ok(())).unwrap();
        assert!(!members.is_changed());
        assert_eq!(members.get("price"), Some("1.50"));
    }

    #[test]
    fn objects_in_a_list_are_changed_one_by_one() {
        let mut members = Members::parse(OBJECT.as_bytes()).unwrap();
        let only_the_first =
            |line: &mut Members| if line.get("a").is_some() { line.add_after("a", "c", "3") } else { Ok(()) };
        members.each_of("lines", only_the_first).unwrap();
        assert_eq!(members.get("lines"), Some(r#"[{"a":1,"c":3},{"b":2}]"#));
        assert!(members.is_changed());
    }

    #[test]
    fn what_is_no_object_of_the_resource_is_refused() {
        for (json, words) in
            [("[]", "no JSON object"), ("{\"a\":1,\"a\":2}", "`a` twice"), ("{\"a\":1", "no JSON object")]
        {
            assert!(Members::parse(json.as_bytes()).is_err_and(|why| why.contains(words)), "{json}");
        }
        let mut members = Members::parse(OBJECT.as_bytes()).unwrap();
        assert!(members.add_after("missing", "new", "1").is_err());
        assert!(members.each_of("price", |_| Ok(())).is_err());
    }
}
