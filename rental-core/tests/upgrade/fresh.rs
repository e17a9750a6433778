//! An upgraded store is the store that the present program would have made of the same objects.

use crate::stores::{CACHE, Rows, STORES, everything, file, memory, rows_of, same, upgrade, wait};
use rental_core::{
    check::Audit,
    resources::{self, row_words::in_words},
    store::{Key, Record, SCHEMA_VERSION, Versioned, redb::Redb},
    value::OrganizationId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Looks at every row as `rental-cli store check` does.
fn problems(rows: &Rows) -> Vec<String> {
    let record =
        |key: &Key, row: &(u64, bytes::Bytes)| Record { key: key.clone(), revision: row.0, value: row.1.clone() };
    let get = |key: &Key| Ok(rows.get(key).map(|row| record(key, row)));
    let mut audit = Audit::new(&get);
    rows.iter().for_each(|(key, row)| audit.row(&record(key, row)));
    audit.finish().listed.into_iter().map(|problem| format!("{}: {}", problem.place, problem.what)).collect()
}

/// The index entries and holds that the records ask for.
fn derived(rows: &Rows) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for (key, (_, value)) in rows.iter().filter(|(key, _)| key.as_bytes()[0] == b'r') {
        let bytes = key.as_bytes();
        let organization = OrganizationId::from_slice(&bytes[1..17]).unwrap();
        let spec = resources::specs().find(|spec| spec.tag == bytes[17]).unwrap();
        let all = rental_core::check::expected_keys(organization, spec, key.id().unwrap(), value).unwrap();
        keys.extend(all.into_iter().filter(|key| matches!(key.as_bytes()[0], b'i' | b'h')));
    }
    keys
}

fn tagged(rows: &Rows, tags: &[u8]) -> BTreeSet<Key> {
    rows.keys().filter(|key| tags.contains(&key.as_bytes()[0])).cloned().collect()
}

#[test]
fn upgraded_equals_made_fresh() {
    for directory in STORES {
        let before = rows_of(directory);
        let store = memory(directory, &before);
        let counted = wait(upgrade(&store)).expect("it is of an older version");
        assert_eq!(wait(store.version()), Ok(SCHEMA_VERSION));
        let after = wait(everything(&store));
        assert_eq!(problems(&after), Vec::<String>::new(), "{directory}");
        assert_eq!(tagged(&after, b"ih"), derived(&after), "{directory}");
        assert_eq!((counted.damaged, counted.seen), (0, tagged(&before, b"r").len() as u64), "{directory}");
    }
}

/// What is no record and cannot be computed of records stays as it is.
#[test]
fn everything_else_stays_as_it_is() {
    for directory in STORES {
        let before = rows_of(directory);
        let store = memory(directory, &before);
        wait(upgrade(&store));
        let after = wait(everything(&store));
        for (key, row) in before.iter().filter(|(key, _)| !matches!(key.as_bytes()[0], b'r' | b'i' | b'h')) {
            assert_eq!(after.get(key), Some(row), "{}", in_words(key));
        }
        let added = after.keys().filter(|key| !before.contains_key(key));
        assert!(added.into_iter().all(|key| matches!(key.as_bytes()[0], b'i' | b'h' | b'u')));
    }
}

/// An ETag tells whether the bytes of an object changed; nothing else of the object does.
#[test]
fn changed_bytes_are_a_new_revision_and_no_change() {
    for directory in STORES {
        let before = rows_of(directory);
        let store = memory(directory, &before);
        wait(upgrade(&store));
        let after = wait(everything(&store));
        for (key, (revision, value)) in before.iter().filter(|(key, _)| key.as_bytes()[0] == b'r') {
            let (new_revision, new_value) = &after[key];
            assert_eq!(*new_revision, revision + u64::from(new_value != value), "{}", in_words(key));
            let old: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(value).unwrap();
            let new: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(new_value).unwrap();
            for (name, member) in old.iter().filter(|(name, _)| *name != "lines") {
                assert_eq!(new.get(name), Some(member), "{} {name}", in_words(key));
            }
            // Events and deliveries.
            let kept = matches!(key.as_bytes()[17], 10 | 12);
            assert!(!kept || value == new_value, "{}", in_words(key));
        }
    }
}

#[test]
fn twice_equals_once() {
    for directory in STORES {
        let store = memory(directory, &rows_of(directory));
        wait(upgrade(&store));
        let once = wait(everything(&store));
        assert_eq!(wait(upgrade(&store)), None);
        // Also where a program believes that nothing was done.
        let again = memory(directory, &once);
        let counted = wait(upgrade(&again)).expect("it says that it is of an older version");
        assert_eq!((counted.written, counted.removed), (0, 0), "{directory}");
        same(&wait(everything(&again)), &once, directory);
    }
}

#[test]
fn redb_equals_the_model() {
    for directory in STORES {
        let model = memory(directory, &rows_of(directory));
        wait(upgrade(&model));
        let (_folder, path) = file(directory);
        let store = Redb::open_any_version(&path, CACHE).unwrap();
        wait(upgrade(&store));
        same(&wait(everything(&store)), &wait(everything(&model)), "both");
        store.close().unwrap();
        Redb::open(&path, CACHE).expect("it is of the present version");
    }
}

/// Rentals, tolls and violations get the amount, less what is credited, and the invoices of the lines that bill them.
#[test]
fn what_invoices_bill_is_in_what_they_bill() {
    use serde_json::Value;
    let mut billed = 0;
    for directory in STORES {
        let store = memory(directory, &rows_of(directory));
        wait(upgrade(&store));
        let after = wait(everything(&store));
        let of = |tag: u8| -> Vec<Value> {
            let records = after.iter().filter(|(key, _)| key.as_bytes()[0] == b'r' && key.as_bytes()[17] == tag);
            records.map(|(_, (_, value))| serde_json::from_slice(value).unwrap()).collect()
        };
        let mut expected: BTreeMap<String, (f64, BTreeSet<String>)> = BTreeMap::new();
        for invoice in of(4).iter().filter(|invoice| invoice["status"] != "void") {
            for line in invoice["lines"].as_array().unwrap() {
                let source = ["rental_id", "toll_id", "violation_id"].into_iter().find_map(|name| line[name].as_str());
                let Some(source) = source else { continue };
                let (sum, invoices) = expected.entry(source.to_owned()).or_default();
                *sum += line["amount"].as_f64().unwrap();
                invoices.insert(invoice["id"].as_str().unwrap().to_owned());
            }
        }
        for line in of(22).iter().flat_map(|credit| credit["lines"].as_array().unwrap()) {
            let source = ["rental_id", "toll_id", "violation_id"].into_iter().find_map(|name| line[name].as_str());
            let billed = source.and_then(|source| expected.get_mut(source));
            billed.into_iter().for_each(|(sum, _)| *sum -= line["amount"].as_f64().unwrap());
        }
        for object in [3, 5, 6].into_iter().flat_map(of) {
            let (sum, invoices) = expected.remove(object["id"].as_str().unwrap()).unwrap_or_default();
            billed += invoices.len();
            let found: BTreeSet<String> = serde_json::from_value(object["invoice_ids"].clone()).unwrap();
            assert_eq!((object["amount_billed"].as_f64().unwrap(), found), (sum, invoices), "{directory} {object}");
        }
    }
    assert!(billed > 0, "the stores have invoices that bill something");
}
