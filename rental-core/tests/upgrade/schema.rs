//! A schema version is what its file says, for ever.

use rental_core::{
    rows::Tag,
    store::{OLDEST_VERSION, SCHEMA_VERSION},
    upgrade::describe,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// Files of versions that programs in use have written: they never change.
const RELEASED: &[(u64, &str)] = &[(12, "2ea431ec19ac8cac3812d32d159454d28dd5e1bda992d5159dfcc2d6691c534b")];

fn file(version: u64) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("schema/v{version}.json"))
}

fn read(version: u64) -> Value {
    serde_json::from_slice(&fs::read(file(version)).unwrap()).unwrap()
}

#[test]
fn the_newest_file_is_what_the_code_says() {
    let mut text = serde_json::to_string_pretty(&describe()).unwrap();
    text.push('\n');
    if std::env::var_os("RENTAL_WRITE_SCHEMA").is_some() {
        fs::write(file(SCHEMA_VERSION), &text).unwrap();
    }
    // Compared as values: whether members keep their order depends on what else is built.
    assert!(
        read(SCHEMA_VERSION) == describe(),
        "fields, indexes, kinds of rows or event types changed: stores that are in use would not have the change. Make \
         a new schema version with a step in src/upgrade/, then write its file with RENTAL_WRITE_SCHEMA=1"
    );
}

#[test]
fn files_of_released_versions_stay_as_they_are() {
    for (version, hash) in RELEASED {
        assert_eq!(hex::encode(Sha256::digest(fs::read(file(*version)).unwrap())), *hash, "schema/v{version}.json");
    }
    let versions: Vec<u64> = RELEASED.iter().map(|(version, _)| *version).collect();
    assert_eq!(
        versions,
        (OLDEST_VERSION..SCHEMA_VERSION).collect::<Vec<_>>(),
        "every version before the present one is released"
    );
}

/// What a number, tag or name means, by where it stands.
fn meanings(schema: &Value) -> BTreeMap<String, String> {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let mut found = BTreeMap::new();
    for resource in list(&schema["resources"]) {
        found.insert(format!("tag {}", resource["tag"]), resource["object"].to_string());
        for field in list(&resource["fields"]) {
            // A text that may have lines now is a text as before.
            let kind = field["kind"]["is"].to_string().replace("paragraph", "text");
            found.insert(format!("field {}.{}", resource["object"], field["name"]), kind);
        }
        for index in list(&resource["indexes"]).iter().chain(&list(&resource["look_ups"])) {
            let what = json!([index["fields"], index["ordered_by"], index["name"]]);
            found.insert(format!("index {} of {}", index["number"], resource["object"]), what.to_string());
        }
    }
    for row in list(&schema["rows"]) {
        found.insert(format!("rows {}", row["begin"]), row["is"].to_string());
    }
    found
}

fn reused(older: &Value, newer: &Value) -> Vec<String> {
    let newer = meanings(newer);
    let other = |(place, meaning): &(String, String)| newer.get(place).is_some_and(|now| now != meaning);
    meanings(older).into_iter().filter(other).map(|(place, _)| place).collect()
}

#[test]
fn no_number_tag_or_name_has_another_meaning_later() {
    for newer in OLDEST_VERSION + 1..=SCHEMA_VERSION {
        for older in OLDEST_VERSION..newer {
            assert_eq!(reused(&read(older), &read(newer)), Vec::<String>::new(), "version {older} and {newer}");
        }
    }
    // And this is noticed.
    let mut changed = read(SCHEMA_VERSION);
    changed["resources"][2]["indexes"][0]["fields"] = json!(["booking_id"]);
    changed["resources"][2]["fields"][2]["kind"] = json!({"is": "integer"});
    changed["rows"][1]["is"] = json!("something else");
    assert_eq!(reused(&read(OLDEST_VERSION), &changed).len(), 3);
}

#[test]
fn every_kind_of_row_is_listed_once() {
    let rows = describe()["rows"].as_array().unwrap().clone();
    let mut begins: Vec<&str> = rows.iter().map(|row| row["begin"].as_str().unwrap()).collect();
    begins.sort_unstable();
    begins.dedup();
    assert_eq!(begins.len(), rows.len());
    for tag in 0..=u8::MAX {
        let listed = begins.iter().any(|begin| begin.as_bytes() == [tag]);
        assert_eq!(listed, Tag::of(tag).is_some(), "{}", char::from(tag));
    }
    assert!(begins.contains(&"!upgrade"));
}
