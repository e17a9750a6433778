//! The audit log, as operators read it.

use crate::{endpoint::Endpoint, operator};
use rental_core::resources::{Collection, audit_entry::AuditEntry, of};

static AUDIT_ENTRIES: Collection = of::<AuditEntry>().list().get().done();

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![operator::list(&AUDIT_ENTRIES), operator::retrieve(&AUDIT_ENTRIES)]
}
