//! Upgrades of stores that an older program wrote.
//!
//! An upgrade is offline, eager, and one pass over the records, through [`Store`] alone, so it is the same on every
//! engine. The first transaction claims the new version and writes the marker ([`Marker`]): from then on programs of the
//! version before refuse the store, or fail at their next write. Then come batches of at most 4,000 rows or 8 MB:
//!
//! 1. **Records.** Each record goes through all lifts from its version to the present one ([`Members`]), is parsed with
//!    the present struct, and gets every row that the present program derives of it. Changed bytes are a new revision;
//!    `updated_at` stays and no event is sent. A damaged record, or one that no lift makes readable, stays as it is and is
//!    counted.
//! 2. **Sweep.** Once the records of an organization are done, derived rows that none of them has are removed. They are
//!    counted first: where there are as many as there should be, nothing is read again.
//! 3. The last batch removes the marker.
//!
//! Every batch checks the revision of the marker. A killed upgrade goes on from the marker; of two servers that upgrade
//! at once one gets [`Step::Outrun`], reads the marker and goes on.
//!
//! A lift leaves an object that it has lifted as it is. Steps are kept for ever, never edited once they are released,
//! and use nothing of the present resources.

mod derive;
mod marker;
mod members;
mod survey;
mod sweep;
mod version_3;
mod walk;

pub use marker::{Marker, Phase};
pub use members::Members;
pub use survey::{Survey, survey};
pub use walk::{Step, Upgrade, UpgradeError};

use crate::{
    resources::{self},
    spec::ResourceSpec,
    store::{SCHEMA_VERSION, StoreError, Versioned, key, versioned},
};
use sha2::{Digest, Sha256};

/// One step: from the version before to this one.
struct Version {
    number: u64,
    /// What is done to the records of a resource.
    lifts: &'static [Lift],
}

/// What a step does to the records of one resource.
struct Lift {
    /// The name of the resource in lines of an export.
    object: &'static str,
    /// The tag of the resource in keys.
    tag: u8,
    /// Changes an object of the version before; the second argument is its organization, which was lifted before. The
    /// operator's own objects have none.
    lift: fn(&mut Members, &Members) -> Result<(), String>,
}

/// All steps, in order.
const VERSIONS: &[Version] = &[version_3::VERSION];

/// What is known of a store before it is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// It is of the present version and whole.
    Current,
    /// It is of this older version.
    Older(u64),
    /// An upgrade of it was begun and not finished.
    Unfinished(Box<Marker>),
}

/// Looks at the version and the marker of a store.
///
/// # Errors
/// The store cannot be used by this program, in a sentence for the operator; or it cannot serve.
pub async fn state(store: &dyn Versioned) -> Result<State, UpgradeError> {
    let version = store.version().await?;
    versioned::known(version).map_err(UpgradeError::Refused)?;
    let found = match store.get(&[key::upgrade()]).await {
        Ok(mut found) => found.pop().flatten(),
        Err(StoreError::Damaged(row)) => return Err(UpgradeError::Refused(format!("{row}; restore a backup"))),
        Err(error) => return Err(error.into()),
    };
    let Some(record) = found else {
        return Ok(if version == SCHEMA_VERSION { State::Current } else { State::Older(version) });
    };
    let marker = Marker::read(&record).map_err(UpgradeError::Refused)?;
    if marker.to == SCHEMA_VERSION && marker.steps != steps(marker.from) {
        return Err(UpgradeError::Refused(format!(
            "another program began to upgrade the store to schema version {}, and its steps differ from those of this \
             program: run that program until it is done",
            marker.to
        )));
    }
    Ok(State::Unfinished(Box::new(marker)))
}

/// A name for the steps from a version to the present one: other steps have another name.
fn steps(from: u64) -> String {
    let mut hash = Sha256::new();
    for version in VERSIONS.iter().filter(|version| version.number > from) {
        hash.update(version.number.to_be_bytes());
        for lift in version.lifts {
            hash.update([lift.tag]);
            hash.update(lift.object.as_bytes());
        }
    }
    hex::encode(&hash.finalize()[..8])
}

/// Takes an object of `from` to the present version.
///
/// # Errors
/// It is none of its resource.
pub fn lift(from: u64, object: &str, members: &mut Members, organization: &Members) -> Result<(), String> {
    let steps = VERSIONS.iter().filter(|version| version.number > from).flat_map(|version| version.lifts);
    steps.filter(|step| step.object == object).try_for_each(|step| (step.lift)(members, organization))
}

/// Whether any step changes objects of this resource.
fn is_lifted(from: u64, spec: &ResourceSpec) -> bool {
    let steps = VERSIONS.iter().filter(|version| version.number > from).flat_map(|version| version.lifts);
    steps.into_iter().any(|step| step.object == spec.object && step.tag == spec.tag)
}

/// The resource of a tag in keys.
fn spec_of_tag(tag: u8) -> Option<&'static ResourceSpec> {
    resources::specs().find(|spec| spec.tag == tag)
}
