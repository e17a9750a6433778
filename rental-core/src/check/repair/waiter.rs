//! How the repair waits for a store.

use crate::store::{Answer, StoreError};

/// Waits for the answers of a store, because the audit reads rows synchronously.
pub trait Waiter {
    /// Runs the future to its end.
    ///
    /// # Errors
    /// Those of the future.
    fn wait<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError>;
}
