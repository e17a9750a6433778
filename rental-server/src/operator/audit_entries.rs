//! The audit log, as operators read it.

use crate::{endpoint::Endpoint, operator::collections};
use rental_core::resources::{Collection, audit_entry};

static AUDIT_ENTRIES: Collection = collections::offered(&audit_entry::SPEC);

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![collections::list(&AUDIT_ENTRIES), collections::retrieve(&AUDIT_ENTRIES)]
}
