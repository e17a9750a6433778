//! Upgrades of stores with damaged records: each is lifted or kept as it is, and harms no other row.

use crate::{
    Pieces,
    fixtures::{FIXTURES, Fixture},
};
use rental_core::{
    check::expected_keys,
    resources::{self, organization},
    rows::Row,
    store::{Batch, Commit, Key, Prior, Record, Revision, Span, Store, Versioned, Write, memory::Memory},
    upgrade::{Marker, Step, Upgrade},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};

type Rows = BTreeMap<Key, (Revision, Vec<u8>)>;

/// The fixtures after an upgrade without damage.
static WHOLE: LazyLock<Vec<Rows>> =
    LazyLock::new(|| FIXTURES.iter().map(|one| upgraded(one, one.rows.clone()).1).collect());

/// The first byte chooses the store. Each six bytes after it change one record: which, how, where, and by what.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let which = usize::from(pieces.byte()) % FIXTURES.len();
    let fixture = &FIXTURES[which];
    let mut rows = fixture.rows.clone();
    let records: Vec<usize> = (0..rows.len()).filter(|at| is_changed(&rows[*at])).collect();
    let mut changed = BTreeSet::new();
    while !pieces.is_empty() && changed.len() < 16 {
        let record = records[usize::from(u16::from_be_bytes(pieces.array())) % records.len()];
        let (how, at, with) = (pieces.byte(), u16::from_be_bytes(pieces.array()), pieces.byte());
        let mut value = rows[record].value.to_vec();
        let at = usize::from(at) % (value.len() + 1);
        match how % 4 {
            0 => value.truncate(at),
            1 => value.insert(at, with),
            2 if at < value.len() => value[at] = with,
            _ if at < value.len() => drop(value.remove(at)),
            _ => {}
        }
        rows[record].value = value.into();
        changed.insert(record);
    }
    let changed: Vec<(Key, Vec<u8>)> =
        changed.into_iter().map(|at| (rows[at].key.clone(), rows[at].value.to_vec())).collect();
    let (marker, after) = upgraded(fixture, rows);
    let whole = &WHOLE[which];
    let about = |key: &Key, value: &[u8]| {
        changed.iter().filter_map(|(key, _)| key.id()).any(|id| {
            let contains = |bytes: &[u8]| bytes.windows(16).any(|part| part == id.as_bytes());
            let named = id.to_string();
            contains(key.as_bytes())
                || contains(value)
                || value.windows(named.len()).any(|part| part == named.as_bytes())
        })
    };
    // What an invoice bills has index entries that follow from the invoice.
    let entry_about = |key: &Key| {
        let bytes = key.as_bytes();
        let target = (bytes[0] == b'i').then(|| [b"r", &bytes[1..18], &bytes[bytes.len() - 16..]].concat());
        let record = target.and_then(|target| whole.get_key_value(&Key::from_bytes(&target)));
        record.is_some_and(|(key, row)| about(key, &row.1))
    };
    for (key, row) in whole.iter().filter(|(key, row)| !about(key, &row.1) && !entry_about(key)) {
        // Claims, calendars and counters are shared by records. What was not there follows from a record, which can be a damaged one.
        if matches!(key.as_bytes()[0], b'u' | b'b' | b'c' | b'q' | b'n') {
            let before = fixture.rows.iter().find(|row| row.key == *key).map(|row| row.revision);
            assert!(before <= after.get(key).map(|row| row.0), "{key:?} is gone or lower");
        } else {
            assert_eq!(after.get(key), Some(row), "a sound row: {key:?}");
        }
    }
    let mut broken = 0;
    for (key, value) in &changed {
        let (_, found) = after.get(key).unwrap_or_else(|| panic!("a damaged record is gone: {key:?}"));
        if !is_object(key, found) {
            assert_eq!(found, value, "what is no object stays as it is");
            broken += 1;
        }
    }
    let counted = marker.damaged;
    assert!(
        (broken..=changed.len() as u64).contains(&counted),
        "{broken} of {} are no objects: {marker:?}",
        changed.len()
    );
}

/// Whether a record is an object of the present version.
fn is_object(key: &Key, json: &[u8]) -> bool {
    let Some(Row::Record { organization, resource, id }) = Row::decode(key) else { return false };
    let spec = resources::specs().find(|spec| spec.tag == resource).expect("a known resource");
    expected_keys(organization, spec, id, json).is_ok()
}

/// An organization decides how all of its objects are lifted, so its record is not changed.
fn is_changed(row: &Record) -> bool {
    matches!(Row::decode(&row.key), Some(Row::Record { resource, .. }) if resource != organization::SPEC.tag)
}

fn upgraded(fixture: &Fixture, rows: Vec<Record>) -> (Marker, Rows) {
    let store = Memory::of_version(fixture.version);
    let mut batch = Batch::default();
    for Record { key, revision, value } in rows {
        batch.writes.push(Write::Put(key, revision, value, Prior::Any));
    }
    assert_eq!(now(store.commit(batch)), Ok(Commit::Applied));
    let marker = now(run(&store));
    let found = now(store.scan(&Span::everything(), usize::MAX)).expect("rows");
    let rows = found.into_iter().map(|row| row.expect("a sound row"));
    (marker, rows.map(|row| (row.key, (row.revision, row.value.to_vec()))).collect())
}

async fn run(store: &dyn Versioned) -> Marker {
    let mut upgrade = Upgrade::begin(store).await.expect("it begins").expect("an older store");
    let mut steps = 0;
    while upgrade.step().await.expect("a step") != Step::Done {
        steps += 1;
        assert!(steps < 10_000, "the upgrade does not end");
    }
    upgrade.progress().clone()
}

/// The memory store answers at once; an upgrade yields to other tasks.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
