//! What the load writes: a test of power cuts says nothing about changes that nobody makes.

use crate::{broken::Broken, disk::Disk, history::History};
use rental_core::{resources::specs, rows::Row, store::Record};
use std::collections::BTreeMap;

/// Rows by their keys.
type Rows<'r> = BTreeMap<&'r [u8], &'r Record>;

/// The kind of a row: of a record its resource, of another one the name of the variant.
fn kind(record: &Record) -> String {
    let row = Row::decode(&record.key).expect("a row of a known kind");
    if let Row::Record { resource, .. } = row {
        let spec = specs().find(|spec| spec.tag == resource).expect("a known resource");
        return spec.object.into();
    }
    format!("{row:?}").split([' ', '(']).next().unwrap_or_default().into()
}

/// Counts which kinds of rows were added, changed and removed between two states.
fn count(before: &[Record], after: &[Record], counts: &mut BTreeMap<String, usize>) {
    let before: Rows<'_> = before.iter().map(|row| (row.key.as_bytes(), row)).collect();
    let after: Rows<'_> = after.iter().map(|row| (row.key.as_bytes(), row)).collect();
    let mut add = |what: &str, row: &Record| *counts.entry(format!("{} {what}", kind(row))).or_default() += 1;
    for (key, row) in &after {
        match before.get(key) {
            None => add("added", row),
            Some(earlier) if earlier != row => add("changed", row),
            Some(_) => {}
        }
    }
    before.iter().filter(|(key, _)| !after.contains_key(*key)).for_each(|(_, row)| add("removed", row));
}

#[test]
fn the_load_has_every_kind_of_change() {
    let mut counts = BTreeMap::new();
    for seed in 0..16 {
        let (mut history, mut image) = History::new(seed, Broken::Nothing);
        for _ in 0..3 {
            let disk = Disk::holding(image);
            history.live(&disk, 12).expect("a healthy disk");
            image = disk.with(|state| state.live.clone());
        }
        history.states.windows(2).for_each(|pair| count(&pair[0], &pair[1], &mut counts));
    }
    println!("{counts:#?}");
    for (kinds, what) in [
        ("vehicle customer rental block lead toll violation invoice credit_note vehicle_assignments api_key", "added"),
        ("event delivery Outbox Due Hold Recheck Task Erased Identity Access IdempotencyRecord", "added"),
        ("vehicle customer rental block toll violation invoice credit_note vehicle_assignments", "changed"),
        ("event delivery Counter Erased Task Recheck IdempotencyRecord", "changed"),
        ("Outbox Due Hold Recheck Task webhook_endpoint Secrets IdempotencyRecord IdempotencyExpiry", "removed"),
    ] {
        for kind in kinds.split(' ') {
            let found = counts.get(&format!("{kind} {what}")).copied().unwrap_or_default();
            assert!(found > 0, "no {kind} is {what} by the load");
        }
    }
}
