//! Looks up the names of the objects that a list refers to, within a bounded time. A name that is not found stays an id.

use crate::{
    client::{access::Access, api::Api, request::Request},
    failure::Failure,
    output::{
        columns::Column,
        record::{Page, Record, json},
        references::{self, Names},
    },
};
use std::{
    collections::{BTreeSet, HashSet},
    thread,
    time::{Duration, Instant},
};

/// Maximum number of names that a command looks up.
const MOST_NAMES: usize = 200;
/// Requests at a time.
const AT_ONCE: usize = 4;
/// Time for all names of a command.
const TIME: Duration = Duration::from_secs(2);

/// What a person calls an object of a collection.
type Called = fn(&str, &Record) -> Option<String>;

/// The names that a command knows so far.
pub(super) struct LookUp<'a> {
    api: &'a Api,
    access: Access,
    /// What an object of a collection is called.
    called: Called,
    pub(super) names: Names,
    tried: HashSet<String>,
    time_left: Duration,
}

impl<'a> LookUp<'a> {
    pub(super) fn new(api: &'a Api, access: Access) -> Self {
        Self::called(api, access, |_, record| references::name_of(record))
    }

    /// The same with other names.
    pub(super) fn called(api: &'a Api, access: Access, called: Called) -> Self {
        Self { api, access, called, names: Names::default(), tried: HashSet::new(), time_left: TIME }
    }

    /// Adds the names for the values of these columns.
    pub(super) fn extend(&mut self, page: &Page, columns: &[Column]) -> Result<(), Failure> {
        let mut wanted = BTreeSet::new();
        if columns.is_empty() {
            return Ok(());
        }
        for object in &page.data {
            let record = Record::read(object.get())?;
            for column in columns {
                let id = record.text(column.name()).filter(|id| !self.tried.contains(id));
                wanted.extend(id.zip(references::plural(column.field(), &record)));
            }
        }
        self.find(wanted);
        Ok(())
    }

    /// Adds the names of objects that are given by id and collection.
    pub(super) fn find(&mut self, wanted: BTreeSet<(String, String)>) {
        let wanted = wanted.into_iter().filter(|(id, _)| !self.tried.contains(id));
        let room = MOST_NAMES.saturating_sub(self.tried.len());
        let wanted: Vec<(String, String)> = wanted.take(room).collect();
        let started = Instant::now();
        for (id, name) in self.look_up(&wanted) {
            self.names.insert(id, name);
        }
        self.time_left = self.time_left.saturating_sub(started.elapsed());
        self.tried.extend(wanted.into_iter().map(|(id, _)| id));
    }

    fn look_up(&self, wanted: &[(String, String)]) -> Vec<(String, String)> {
        let ends = Instant::now() + self.time_left;
        let share = wanted.len().div_ceil(AT_ONCE).max(1);
        thread::scope(|scope| {
            let parts: Vec<_> = wanted
                .chunks(share)
                .map(|part| {
                    let (api, access, called) = (self.api.clone(), self.access, self.called);
                    scope.spawn(move || names_of((&api, access), called, part, ends))
                })
                .collect();
            parts.into_iter().filter_map(|part| part.join().ok()).flatten().collect()
        })
    }
}

/// The names of some objects; ends early at a failure, because the next request would fail too.
fn names_of(
    (api, access): (&Api, Access),
    called: Called,
    wanted: &[(String, String)],
    ends: Instant,
) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (id, plural) in wanted {
        let left = ends.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let record = api
            .get_within(&Request::get(access, &[plural, id]), left)
            .and_then(json)
            .and_then(|json| Record::read(&json));
        match record {
            Ok(record) => names.extend(called(plural, &record).map(|name| (id.clone(), name))),
            // Deleted since.
            Err(Failure::ErrorResponse(response)) if response.status == 404 => {}
            Err(_) => break,
        }
    }
    names
}
