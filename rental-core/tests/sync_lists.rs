//! Sync lists against a model: random writes, and walks by `updated_at` with writes between their pages.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use proptest::{prelude::*, sample::Index};
use rental_core::{
    operations::{self, Create, Intent, Update, edge::Edge},
    request::page::ListQuery,
    resources::{
        self, Collection, Resource,
        organization::{Organization, SYSTEM},
    },
    store::{Batch, Store, memory::Memory},
    value::{OrganizationId, Timestamp},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};
use uuid::Uuid;

const BEGIN: u64 = 1_795_288_412_000;
/// What clients subtract from the largest time that they saw (`docs/api.md`, "Lists").
const OVERLAP_MILLIS: i64 = 60_000;

/// A clock that moves when it is told, and ids that rise.
struct Clock {
    millis: AtomicU64,
    ids: AtomicU64,
}

impl Clock {
    fn new() -> Self {
        Self { millis: AtomicU64::new(BEGIN), ids: AtomicU64::new(0) }
    }

    fn pass(&self, millis: u64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Edge for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::Relaxed).cast_signed())
    }

    fn new_id(&self) -> Uuid {
        let millis = u128::from(self.millis.load(Ordering::Relaxed));
        Uuid::from_u128((millis << 80) | u128::from(self.ids.fetch_add(1, Ordering::Relaxed)))
    }
}

/// One write, after so many milliseconds.
#[derive(Clone, Debug)]
enum Change {
    Create,
    Rename(Index, u16),
    /// Sends what is there already, which changes nothing.
    Repeat(Index),
}

fn changes(pause: std::ops::Range<u64>, most: usize) -> impl Strategy<Value = Vec<(u64, Change)>> {
    let change = prop_oneof![
        1 => Just(Change::Create),
        3 => (any::<Index>(), any::<u16>()).prop_map(|(which, name)| Change::Rename(which, name)),
        1 => any::<Index>().prop_map(Change::Repeat),
    ];
    proptest::collection::vec((pause, change), 0..most)
}

struct Fleet {
    store: Memory,
    clock: Clock,
    organization: Organization,
    /// Every vehicle as the last write returned it.
    model: BTreeMap<String, Value>,
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn vehicles() -> &'static Collection {
    resources::api().next().expect("a collection")
}

impl Fleet {
    fn new() -> Self {
        let organization = Organization { id: OrganizationId::from_u128(7), ..Organization::system() };
        let (store, mut batch) = (Memory::default(), Batch::default());
        batch.insert(Organization::key(SYSTEM, organization.id), "{}".into());
        now(store.commit(batch)).unwrap();
        Self { store, clock: Clock::new(), organization, model: BTreeMap::new() }
    }

    fn write(&mut self, intent: &dyn Intent) {
        let organization = self.organization.id;
        let render = |_: &_| unreachable!("no idempotency key, nothing to render");
        let written =
            now(operations::write(&self.store, &self.clock, organization, None, intent, (200, &render))).unwrap();
        let object: Value = serde_json::from_slice(&written.body).unwrap();
        self.model.insert(object["id"].as_str().unwrap().to_owned(), object);
    }

    fn perform(&mut self, (pause, change): &(u64, Change)) {
        self.clock.pass(*pause);
        let organization = self.organization.clone();
        let (which, name) = match change {
            Change::Rename(which, name) if !self.model.is_empty() => (which, format!("{name}")),
            Change::Repeat(which) if !self.model.is_empty() => {
                let at = which.index(self.model.len());
                (which, self.model.values().nth(at).unwrap()["name"].as_str().unwrap().to_owned())
            }
            _ => {
                let body = br#"{"name":"new"}"#;
                let intent =
                    Create { collection: vehicles(), organization: &organization, body: body.into(), given: &[] };
                return self.write(&intent);
            }
        };
        let id = self.model.keys().nth(which.index(self.model.len())).unwrap().clone();
        let body = format!(r#"{{"name":"{name}"}}"#);
        let body = body.as_bytes();
        let intent = Update {
            collection: vehicles(),
            organization: &organization,
            id: &id,
            body: body.into(),
            expected: &|_| true,
        };
        self.write(&intent);
    }

    fn page(&self, query: &str) -> (Vec<Value>, Option<String>) {
        let query = ListQuery::parse(query, vehicles().spec).unwrap();
        let page = now(operations::list(&self.store, self.organization.id, vehicles().spec, &query)).unwrap().body;
        let mut page: Value = serde_json::from_slice(&page).unwrap();
        let Value::Array(data) = page["data"].take() else { panic!("a list") };
        assert!(data.len() <= query.limit);
        assert_eq!(page["has_more"], Value::Bool(page["next_cursor"].is_string()));
        (data, page["next_cursor"].as_str().map(str::to_owned))
    }

    /// Walks from `since` to the end, with writes after each page; what was seen of each vehicle last.
    fn walk(&mut self, since: Timestamp, limit: usize, between: &[Vec<(u64, Change)>]) -> BTreeMap<String, Value> {
        let query = format!("updated[gte]={since}&limit={limit}");
        let (mut seen, mut cursor, mut last) = (BTreeMap::new(), String::new(), (String::new(), String::new()));
        for turn in 0.. {
            let (data, next) = self.page(&format!("{query}{cursor}"));
            for object in data {
                let place = ["updated_at", "id"].map(|name| object[name].as_str().unwrap().to_owned());
                let place: (String, String) = place.into();
                assert!(place > last, "rising by time and id: {place:?} after {last:?}");
                last = place.clone();
                seen.insert(place.1, object);
            }
            let Some(next) = next else { return seen };
            cursor = format!("&starting_after={next}");
            between.get(turn).into_iter().flatten().for_each(|change| self.perform(change));
        }
        seen
    }
}

fn begin() -> Timestamp {
    Timestamp::from_millis(BEGIN.cast_signed())
}

fn largest(seen: &BTreeMap<String, Value>) -> Timestamp {
    let times = seen.values().filter_map(|object| Timestamp::parse(object["updated_at"].as_str()?));
    times.max().unwrap_or_else(begin)
}

proptest! {
    #[test]
    fn a_walk_shows_every_object_as_it_was_when_its_last_page_was_read(
        before in changes(2..5, 30), between in proptest::collection::vec(changes(2..5, 4), 0..30), limit in 1usize..8,
    ) {
        let mut fleet = Fleet::new();
        before.iter().for_each(|change| fleet.perform(change));
        let seen = fleet.walk(begin(), limit, &between);
        prop_assert_eq!(seen, fleet.model);
    }

    /// Also when many writes happen within one millisecond.
    #[test]
    fn walks_that_overlap_leave_nothing_out(
        before in changes(0..2, 30), between in proptest::collection::vec(changes(0..2, 4), 0..30),
        after in changes(0..2, 10), limit in 1usize..8,
    ) {
        let mut fleet = Fleet::new();
        before.iter().for_each(|change| fleet.perform(change));
        let existed: Vec<String> = fleet.model.keys().cloned().collect();
        let mut seen = fleet.walk(begin(), limit, &between);
        prop_assert!(existed.iter().all(|id| seen.contains_key(id)), "what existed is seen once at least");
        after.iter().for_each(|change| fleet.perform(change));
        let since = largest(&seen).plus_millis(-OVERLAP_MILLIS);
        seen.extend(fleet.walk(since, limit, &[]));
        prop_assert_eq!(seen, fleet.model);
    }

    #[test]
    fn a_range_is_half_open(before in changes(0..3, 30), bounds in [0u64..60, 0u64..60], limit in 1usize..8) {
        let mut fleet = Fleet::new();
        before.iter().for_each(|change| fleet.perform(change));
        let [gte, lt] = bounds.map(|millis| begin().plus_millis(millis.cast_signed()).to_string());
        let mut expected: Vec<&Value> = fleet.model.values().collect();
        expected.retain(|object| (gte.as_str()..lt.as_str()).contains(&object["updated_at"].as_str().unwrap()));
        expected.sort_by_key(|object| (object["updated_at"].as_str().unwrap().to_owned(), object["id"].as_str().unwrap().to_owned()));
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let (data, next) = fleet.page(&format!("updated[gte]={gte}&updated[lt]={lt}&limit={limit}{cursor}"));
            found.extend(data);
            let Some(next) = next else { break };
            cursor = format!("&starting_after={next}");
        }
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_change_moves_an_object_forward_also_within_one_millisecond(before in changes(0..1, 40)) {
        let mut fleet = Fleet::new();
        for change in &before {
            let earlier = fleet.model.clone();
            fleet.perform(change);
            for (id, object) in &fleet.model {
                if let Some(old) = earlier.get(id).filter(|old| *old != object) {
                    prop_assert!(object["updated_at"].as_str() > old["updated_at"].as_str());
                }
            }
        }
    }
}
