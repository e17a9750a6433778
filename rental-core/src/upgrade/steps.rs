//! All steps, and what they come to for one object.

use super::{description, members::Members, version::Version, version_3};
use crate::schema::ResourceSpec;
use sha2::{Digest, Sha256};

/// All steps, in order.
const VERSIONS: &[Version] = &[version_3::VERSION];

/// A name for the steps from a version to the present one: other steps have another name.
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

/// Takes an object of `from` to the present version.
///
/// # Errors
/// It is none of its resource.
pub fn lift(from: u64, object: &str, members: &mut Members, organization: &Members) -> Result<(), String> {
    let steps = VERSIONS.iter().filter(|version| version.number > from).flat_map(|version| version.lifts);
    steps.filter(|step| step.object == object).try_for_each(|step| (step.lift)(members, organization))
}

/// Whether any step changes objects of this resource.
pub(super) fn is_lifted(from: u64, spec: &ResourceSpec) -> bool {
    let steps = VERSIONS.iter().filter(|version| version.number > from).flat_map(|version| version.lifts);
    steps.into_iter().any(|step| step.object == spec.object && step.tag == spec.tag)
}
