//! The list of all steps, and the lift of one object through them.

use super::{description, members::Members, version::Version, version_3};
use crate::schema::ResourceSpec;
use sha2::{Digest, Sha256};

/// All steps, in the order of their versions.
const VERSIONS: &[Version] = &[version_3::VERSION];

/// A name that identifies the steps from a version to the present one.
pub(super) fn name(from: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(description::PRESENT);
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
