//! Repairs a closed store: removes rows that are damaged or refer to nothing, and writes derived rows that are missing.
//!
//! A plan is made first, without a change of the store. It is a set of changes by key, collected in rounds: each round checks
//! all rows with the audit of `store check`, as they would be after the changes so far. The plan is complete when a round
//! adds no change. Each change concerns one row and follows from the other rows alone, so an interrupted repair is continued
//! by a new plan. The record of an organization is never removed: without it all rows of the organization would be lost. A customer or
//! vehicle that others name gets a stand-in.

mod change;
mod decide;
mod leaving;
mod marks;
mod plan;
mod references;
mod view;
mod waiter;

pub use change::{Action, Change, Found};
pub use plan::{Plan, RepairError, apply, apply_in_batches_of, kind, plan};
pub use waiter::Waiter;
