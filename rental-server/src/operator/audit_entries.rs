//! The audit log, as operators read it.

use crate::{endpoint::Endpoint, operator};
use rental_core::resources::{Collection, audit_entry};

static AUDIT_ENTRIES: Collection = operator::offered(&audit_entry::SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![operator::list(&AUDIT_ENTRIES), operator::retrieve(&AUDIT_ENTRIES)]
}
