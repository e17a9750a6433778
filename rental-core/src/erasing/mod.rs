//! Erasing a person: a customer's personal data is removed from everything that is stored.
//!
//! The first batch redacts the customer's record, writes its `e` row ([`Erasure`]) and begins a [task](crate::tasks). From
//! then on [`operations::erased`](crate::operations::erased) keeps the data out of every new write, delivery and replay. The
//! steps of the task then look for former e-mail addresses and phone numbers in events, and rewrite what is there, a
//! bounded number of rows in each batch: objects of the customer, events with the logs of their deliveries, stored responses, and audit entries. [`crate::resources::personal`] says what is
//! personal. Each phase ends with a batch of its own, so that a phase sees everything that was committed during the one
//! before.
//!
//! The `e` row stays: it is the list of erased people, and it has the report. A backup from before the erasing does not have
//! it. `rental-cli store restore --erased` copies the rows into the restored store, and an export contains those of its
//! organization. A server begins the task again for each row whose customer is not erased.

mod erasure;
mod phase;
mod report;
mod steps;

pub use erasure::{Erasure, ErasureStatus, is_of_customer, missing_in, rows_of};
pub(crate) use report::described;
pub use report::report;
pub use steps::CustomerErasure;
pub(crate) use steps::{finish, step};

use crate::value::{CustomerId, TaskId};

/// The id of the task that erases a customer: the UUID of the customer, so there is at most one such task.
#[must_use]
pub fn task_id(customer: CustomerId) -> TaskId {
    TaskId::from_uuid(customer.uuid())
}
