//! What this server has read of the rows of other servers. No I/O.

use rental_core::{
    rows::usage::{Amount, Head},
    store::{Revision, Span},
    value::{OrganizationId, ServerId},
};
use std::collections::HashMap;

/// The rows of other servers, as far as they are read.
#[derive(Default)]
pub(super) struct Others {
    /// What is left of the present pass.
    pub(super) rest: Option<Span>,
    pub(super) sums: HashMap<OrganizationId, Amount>,
    /// Servers with rows, and what their heads say.
    pub(super) found: HashMap<ServerId, (Revision, Head)>,
    /// The heads of the last pass, and since when each is as it is.
    pub(super) seen: HashMap<ServerId, (Revision, u64)>,
}
