//! The batches of an upgrade on their way to the store: submitted in order, a bounded number at a time.

use super::state::UpgradeError;
use crate::store::{Answer, Batch, Commit, Versioned};
use std::{
    collections::VecDeque,
    task::{Context, Poll, Waker},
};

/// Most batches that are submitted to the engine and not yet committed. Engines commit submitted batches together, and reuse
/// replaced pages only after the commit, so the limit keeps the transactions small.
const IN_FLIGHT: usize = 16;

/// Batches that are not yet committed. Each checks the marker of the one before it.
pub(super) struct Submitted<'s> {
    store: &'s dyn Versioned,
    in_flight: VecDeque<Answer<'s, Commit>>,
    /// Batches that will be submitted after these.
    waiting: VecDeque<Batch>,
}

impl<'s> Submitted<'s> {
    pub(super) fn to(store: &'s dyn Versioned) -> Self {
        Self { store, in_flight: VecDeque::new(), waiting: VecDeque::new() }
    }

    /// Adds a batch. [`Submitted::wait`] or [`Submitted::poll`] submits it.
    pub(super) fn push(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    /// Whether no submitted batch waits for its commit.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Forgets all batches.
    pub(super) fn clear(&mut self) {
        self.in_flight.clear();
        self.waiting.clear();
    }

    /// Waits until at most `most` batches are not yet committed; false when one of them was stale.
    pub(super) async fn wait(&mut self, most: usize) -> Result<bool, UpgradeError> {
        self.submit();
        while self.in_flight.len() + self.waiting.len() > most
            && let Some(commit) = self.in_flight.pop_front()
        {
            if matches!(commit.await?, Commit::Stale(_)) {
                return Ok(false);
            }
            self.submit();
        }
        Ok(true)
    }

    /// Handles completed commits without waiting; false when one of them was stale.
    pub(super) fn poll(&mut self) -> Result<bool, UpgradeError> {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(first) = self.in_flight.front_mut()
            && let Poll::Ready(outcome) = first.as_mut().poll(&mut context)
        {
            self.in_flight.pop_front();
            if matches!(outcome?, Commit::Stale(_)) {
                return Ok(false);
            }
            self.submit();
        }
        Ok(true)
    }

    fn submit(&mut self) {
        while self.in_flight.len() < IN_FLIGHT
            && let Some(batch) = self.waiting.pop_front()
        {
            self.in_flight.push_back(self.store.commit(batch));
        }
    }
}
