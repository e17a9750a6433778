//! The list of all steps, and the lift of one object through them. A new step is a file in `steps/`, its lines here, and the
//! number in [`SCHEMA_VERSION`].

mod version_13;

use super::{members::Members, version::Version};
use crate::{schema::ResourceSpec, store::SCHEMA_VERSION};
use sha2::{Digest, Sha256};

/// All steps, in the order of their versions.
const VERSIONS: &[Version] = &[version_13::VERSION];
/// The description of the present version.
const PRESENT: &str = include_str!("../../schema/v13.json");

const _: () = assert!(VERSIONS[VERSIONS.len() - 1].number == SCHEMA_VERSION, "the last step leads to SCHEMA_VERSION");

/// A name that identifies the steps from a version to the present one.
pub(super) fn name(from: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(PRESENT);
    for version in VERSIONS.iter().filter(|version| version.number > from) {
        hash.update(version.number.to_be_bytes());
        for lift in version.lifts {
            hash.update([lift.tag]);
            hash.update(lift.object.as_bytes());
        }
    }
    hex::encode(&hash.finalize()[..8])
}

/// Lifts an object from version `from` to the present one. `object` is the name of its resource.
///
/// # Errors
/// The members are not those of an object of this resource.
pub fn lift(from: u64, object: &str, members: &mut Members, organization: &Members) -> Result<(), String> {
    let steps = VERSIONS.iter().filter(|version| version.number > from).flat_map(|version| version.lifts);
    steps.filter(|step| step.object == object).try_for_each(|step| (step.lift)(members, organization))
}

/// Whether any step changes objects of this resource.
pub(super) fn is_lifted(from: u64, spec: &ResourceSpec) -> bool {
    let steps = VERSIONS.iter().filter(|version| version.number > from).flat_map(|version| version.lifts);
    steps.into_iter().any(|step| step.object == spec.object && step.tag == spec.tag)
}
