//! Imported rows become tolls and violations: each once, however often and in however many files it comes.
//!
//! Rows go into the store a chunk at a time, each chunk one transaction. Everything that decides what a row is (its
//! identity, what is known under it) is read before and is a check of the commit, so two imports of one file at the same
//! moment make nothing twice either. A trial run decides the same and commits nothing.

mod toll;
mod violation;

use crate::{
    attribution::{self, Whose},
    edge::Edge,
    effects,
    error::Error,
    imports::Counts,
    resources::organization::Organization,
    spec::ResourceSpec,
    store::{Batch, Commit, Key, Record, Store},
    value::Money,
};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Rows in one transaction.
pub const CHUNK: usize = 200;
/// Times that a chunk is prepared again when others changed what it read.
const MOST_ATTEMPTS: usize = 64;
/// Most answers of the search for vehicles that are kept.
const MOST_KNOWN: usize = 50_000;
/// Most credits that wait for the tolls that come after them in a file.
const MOST_CREDITS: usize = 20_000;

/// One import into one organization.
pub struct Intake<'a> {
    store: &'a dyn Store,
    edge: &'a dyn Edge,
    organization: &'a Organization,
    trial: bool,
    /// What came of the rows so far.
    pub counts: Counts,
    /// Vehicles by what a row says of them: most rows of a statement repeat few tags.
    vehicles: HashMap<[Option<String>; 3], Option<Uuid>>,
    /// In a trial run: what would be known by now.
    seen: HashSet<u64>,
    credits: Vec<toll::Waiting>,
}

/// What is known under an identity.
struct Known {
    record: Record,
    id: Uuid,
    /// The amount that came with it, whatever was corrected since.
    amount: Option<Money>,
}

impl<'a> Intake<'a> {
    /// Begins an import; with `trial`, nothing is written.
    #[must_use]
    pub fn new(store: &'a dyn Store, edge: &'a dyn Edge, organization: &'a Organization, trial: bool) -> Self {
        Self {
            store,
            edge,
            organization,
            trial,
            counts: Counts::default(),
            vehicles: HashMap::new(),
            seen: HashSet::new(),
            credits: Vec::new(),
        }
    }

    /// The vehicle that a row names, if exactly one does.
    async fn vehicle(
        &mut self,
        tag: Option<&str>,
        plate: Option<&str>,
        state: Option<&str>,
    ) -> Result<Option<Uuid>, Error> {
        let named = [tag, plate, state].map(|text| text.map(str::to_owned));
        if let Some(known) = self.vehicles.get(&named) {
            return Ok(*known);
        }
        let found = match attribution::vehicle_of(self.store, self.organization.id, tag, (plate, state)).await? {
            Whose::One(id) => Some(id),
            Whose::None | Whose::Unclear(_) => None,
        };
        if self.vehicles.len() >= MOST_KNOWN {
            self.vehicles.clear();
        }
        self.vehicles.insert(named, found);
        Ok(found)
    }

    fn place(&self, spec: &ResourceSpec, identity: &str) -> Key {
        effects::identity_key(self.organization.id, spec, identity)
    }

    async fn known(&self, place: &Key) -> Result<Option<Known>, Error> {
        let Some(record) = self.store.get(std::slice::from_ref(place)).await?.pop().flatten() else { return Ok(None) };
        let (id, amount) = effects::read_claim(&record.value)?;
        Ok(Some(Known { record, id, amount }))
    }

    /// Commits a chunk unless this is a trial run.
    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        if self.trial || batch.is_empty() { Ok(Commit::Applied) } else { Ok(self.store.commit(batch).await?) }
    }

    /// In a trial run, notes that something would be known under `place` now.
    fn see(&mut self, place: &Key) {
        if self.trial {
            self.seen.insert(short(place));
        }
    }

    fn has_seen(&self, place: &Key) -> bool {
        self.trial && self.seen.contains(&short(place))
    }
}

/// Half of the hash at the end of an identity's key: two of a million are the same once in thirty million imports.
fn short(place: &Key) -> u64 {
    let bytes = place.as_bytes();
    bytes[bytes.len() - 8..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The store is changed by others all the time.
fn contended() -> Error {
    Error::Unavailable("others changed the same tolls or violations too often".into())
}
