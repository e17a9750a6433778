//! Counts what organizations use: the objects and bytes of their rows in the store.
//!
//! The store counts the changes of committed batches in memory (`rental_core::store::Tally`). Once a second this server adds
//! them to rows of its own, in a batch that no client waits for, and reads the rows of the other servers. The sums are in
//! [`Tenants`]. So they are about a second old, and a crash loses about a second of counting.
//!
//! Rows of a server that is gone are moved into the rows of one that runs (`servers.rs`). A recount sets right what was lost
//! (`recount.rs`): after a crash, in a store without counts, and once a day.

mod book;
mod others;
mod recount;
mod servers;

use crate::{access::quotas::Tenants, damaged_rows::DamagedRows, edge::Clock};
use book::{Book, Step};
use others::Others;
use rental_core::{
    error::Error,
    operations::Edge,
    resources::share_of,
    rows::{
        Row, key,
        usage::{self, Amount, Head},
    },
    store::{Batch, Check, Commit, Engine, Pages, Revision, Store, StoreError, Tally, get_one},
    value::{OrganizationId, ServerId},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How often counts are saved, and those of other servers read.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// How often it is checked whether a recount is due.
pub(crate) const LOOK: Duration = Duration::from_secs(2);
/// Rows that are read at a time.
const PAGE: usize = 1000;
/// Most batches of one turn. The next turn goes on.
const MOST_STEPS: usize = 100;

/// Counts what organizations use.
pub(crate) struct Usage {
    store: Arc<dyn Engine>,
    tenants: Arc<Tenants>,
    tally: Arc<Tally>,
    /// The id of this server in its rows. It takes a new one at each start.
    server: ServerId,
    book: Mutex<Book>,
    /// Only one turn at a time.
    others: tokio::sync::Mutex<Others>,
    /// Whether the counts of the rows in the store are known.
    is_ready: AtomicBool,
    /// Whether the last turn failed.
    fails: AtomicBool,
}

impl Usage {
    /// Begins to count.
    pub(crate) fn new(store: Arc<dyn Engine>, tenants: Arc<Tenants>) -> Self {
        let tally = Arc::new(Tally::new(share_of));
        store.count(Arc::clone(&tally));
        Self {
            store,
            tenants,
            tally,
            server: ServerId::from_uuid(Clock.new_id()),
            book: Mutex::default(),
            others: tokio::sync::Mutex::default(),
            is_ready: AtomicBool::new(false),
            fails: AtomicBool::new(false),
        }
    }

    /// Saves what was counted since the last turn, and reads what other servers have saved. Of errors that last, only the
    /// first is logged as a warning.
    pub(crate) async fn turn(&self, damaged: &DamagedRows) {
        let mut others = self.others.lock().await;
        let outcome = match self.save(false, damaged).await {
            Ok(()) => self.read_others(&mut others, damaged).await,
            failed => failed,
        };
        let failed_before = self.fails.swap(outcome.is_err(), Ordering::Relaxed);
        match (outcome, failed_before) {
            (Err(error), false) => {
                tracing::warn!(?error, "cannot save or read what organizations use; trying again each second");
            }
            (Err(error), true) => tracing::debug!(?error, "still cannot save or read what organizations use"),
            (Ok(()), true) => tracing::info!("what organizations use is saved again"),
            (Ok(()), false) => {}
        }
    }

    /// Saves what was counted, and that this server has stopped.
    pub(crate) async fn stop(&self, damaged: &DamagedRows) {
        let _turn = self.others.lock().await;
        if let Err(error) = self.save(true, damaged).await {
            tracing::warn!(?error, "cannot save what organizations use; the next start recounts it");
        }
    }

    fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the store has counted to the book, and shows it to requests.
    fn take(&self) -> MutexGuard<'_, Book> {
        let mut book = self.book();
        let changed = book.add(self.tally.take());
        self.show(&book, changed);
        book
    }

    fn show(&self, book: &Book, organizations: impl IntoIterator<Item = OrganizationId>) {
        for organization in organizations {
            self.tenants.of(organization).set_used(book.used(organization));
        }
    }

    async fn save(&self, stopping: bool, damaged: &DamagedRows) -> Result<(), Error> {
        for _ in 0..MOST_STEPS {
            let step = self.take().step(self.server, stopping);
            let Some(mut step) = step else { break };
            let batch = std::mem::take(&mut step.batch);
            match self.store().commit(batch).await {
                Ok(Commit::Applied) => self.book().saved(&step),
                // Another server has taken this one for dead and moved its rows, or it is not known what happened.
                Ok(Commit::Stale(_)) | Err(StoreError::Unknown(_) | StoreError::Damaged(_)) => {
                    self.read_again(Some(&step), damaged).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the rows of this server again.
    async fn read_again(&self, step: Option<&Step>, damaged: &DamagedRows) -> Result<(), Error> {
        let head = self.head_of(self.server, damaged).await?;
        let (mut saved, mut pages) = (HashMap::new(), Pages::of(self.store(), key::usage_of(self.server), PAGE));
        while let Some(page) = pages.next().await? {
            for row in damaged.all_sound(page) {
                if let Some((_, organization)) = parts(&row.key).filter(|parts| parts.1 != OrganizationId::nil())
                    && let Some(amount) = damaged.skip(usage::read::<Amount>(&row))?
                {
                    saved.insert(organization, amount);
                }
            }
        }
        self.book().read_again(head.unwrap_or((0, Head::Counting)), saved, step);
        Ok(())
    }

    /// The head of a server's rows. A damaged one is removed, and a recount is due.
    async fn head_of(&self, server: ServerId, damaged: &DamagedRows) -> Result<Option<(Revision, Head)>, Error> {
        let place = key::usage(server, OrganizationId::nil());
        let read = get_one(self.store(), &place).await.map_err(Error::from);
        let read = read.and_then(|row| row.map(|row| Ok((row.revision, usage::read(&row)?))).transpose());
        match damaged.skip(read)? {
            Some(head) => Ok(head),
            None => {
                let mut batch = Batch::default();
                batch.delete(place);
                batch.delete(recount_place());
                self.store().commit(batch).await?;
                Ok(None)
            }
        }
    }
}

/// The server and the organization in the key of one of these rows.
fn parts(key: &rental_core::store::Key) -> Option<(ServerId, OrganizationId)> {
    match Row::decode(key)? {
        Row::Usage { server, organization } => Some((server, organization)),
        _ => None,
    }
}

/// The key of the row about the recount. Without the row, a recount is due.
fn recount_place() -> rental_core::store::Key {
    key::usage(ServerId::nil(), OrganizationId::nil())
}

/// The check that this row has a revision; 0 for no row.
fn recount_is(revision: Revision) -> Check {
    book::head_is(ServerId::nil(), revision)
}
