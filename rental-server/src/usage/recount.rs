//! Counts the rows of all organizations again, slowly, and sets the counts right.
//!
//! One server does it at a time. Requests go on: what changes while an organization is counted is the tolerance.

use super::{PAGE, Usage, book, recount_is, recount_place};
use crate::{damaged_rows::DamagedRows, edge};
use rental_core::{
    error::Error,
    resources::{
        Resource,
        organization::{self, Organization, SYSTEM},
        share_of,
    },
    rows::{
        key,
        usage::{self, Amount, Recount},
    },
    store::{Batch, Commit, Key, Pages, Prior, Revision, Span, Write, get_one, key_of},
    value::OrganizationId,
};
use std::{collections::HashSet, sync::atomic::Ordering, time::Duration};

/// How long after a recount the next one is due.
const EVERY_MILLIS: u64 = 86_400_000;
/// How often the server that recounts says so.
const RENEW_MILLIS: u64 = 60_000;
/// A server that has not said so for this time is gone.
const GONE_MILLIS: u64 = 600_000;
/// After this time each server has saved what it counted, and each other one has read it.
const SETTLED: Duration = Duration::from_secs(4);
/// The longest pause after a page.
const MOST_PAUSE: Duration = Duration::from_secs(1);

/// The claim of this server on the present recount.
struct Claim {
    revision: Revision,
    state: Recount,
}

impl Usage {
    /// Recounts all organizations if that is due.
    pub(crate) async fn recount_if_due(&self, damaged: &DamagedRows) -> Result<(), Error> {
        if !self.is_ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(mut claim) = self.claim(damaged).await? else { return Ok(()) };
        let (mut known, mut corrected) = (HashSet::new(), 0);
        let mut pages = Pages::of(self.store(), Span::under(key::records(SYSTEM, &organization::SPEC)), PAGE);
        while let Some(page) = pages.next().await? {
            for row in page {
                // A damaged record still names its organization.
                let Some(organization) = key_of(&row).id().map(OrganizationId::from_uuid) else { continue };
                known.insert(organization);
                corrected += u64::from(self.recount(organization, damaged).await?);
                let now = edge::now().millis();
                let is_old = claim.state.running_at.is_none_or(|at| now.abs_diff(at) > RENEW_MILLIS);
                let renewed = Recount { running_at: Some(now), ..claim.state };
                if is_old && !self.write_claim(&mut claim, renewed).await? {
                    // Another recount is due, or another server does it.
                    return Ok(());
                }
            }
        }
        self.forget_deleted(&known).await?;
        let finished = Recount { running_at: None, finished_at: Some(edge::now().millis()) };
        if self.write_claim(&mut claim, finished).await? {
            tracing::info!(organizations = known.len(), corrected, "what organizations use was recounted");
        }
        Ok(())
    }

    /// Claims the recount for this server; `None` when none is due or another server does it.
    async fn claim(&self, damaged: &DamagedRows) -> Result<Option<Claim>, Error> {
        let read = get_one(self.store(), &recount_place()).await.map_err(Error::from);
        let read = read.and_then(|row| row.map(|row| Ok((row.revision, usage::read::<Recount>(&row)?))).transpose());
        let Some(found) = damaged.skip(read)? else {
            let mut batch = Batch::default();
            batch.delete(recount_place());
            self.store().commit(batch).await?;
            return Ok(None);
        };
        let (revision, state) = found.unwrap_or_default();
        let now = edge::now().millis();
        let since = |at: Option<u64>| at.map_or(u64::MAX, |at| now.abs_diff(at));
        if since(state.running_at) < GONE_MILLIS || since(state.finished_at) < EVERY_MILLIS {
            return Ok(None);
        }
        let mut claim = Claim { revision, state };
        let claimed = self.write_claim(&mut claim, Recount { running_at: Some(now), ..state }).await?;
        Ok(claimed.then_some(claim))
    }

    /// Writes the row of the recount; false when another server has changed it.
    async fn write_claim(&self, claim: &mut Claim, state: Recount) -> Result<bool, Error> {
        let write = Write::Put(recount_place(), claim.revision + 1, book::json(&state), Prior::Any);
        let batch = Batch { checks: vec![recount_is(claim.revision)], writes: vec![write] };
        let written = self.store().commit(batch).await? == Commit::Applied;
        (claim.revision, claim.state) = (claim.revision + 1, state);
        Ok(written)
    }

    /// Counts an organization; true if its count was wrong.
    async fn recount(&self, organization: OrganizationId, damaged: &DamagedRows) -> Result<bool, Error> {
        let wrong = self.shortfall(organization, Duration::ZERO, damaged).await?;
        // What other servers have counted arrives later: only an error that stays is one.
        let wrong = match wrong != Amount::default() && self.store.is_shared() {
            true => self.shortfall(organization, SETTLED, damaged).await?,
            false => wrong,
        };
        if wrong == Amount::default() {
            return Ok(false);
        }
        let mut book = self.take();
        book.correct(organization, wrong);
        self.show(&book, [organization]);
        Ok(true)
    }

    /// What is missing from the count of an organization; negative when the count is too large. Changes during the recount can
    /// explain a difference, which is then 0. `settle` is the time before and after the recount in which changes are noted too.
    async fn shortfall(
        &self,
        organization: OrganizationId,
        settle: Duration,
        damaged: &DamagedRows,
    ) -> Result<Amount, Error> {
        let others = self.take().watch(organization);
        tokio::time::sleep(settle).await;
        let found = self.found(organization, damaged).await?;
        tokio::time::sleep(settle).await;
        let mut book = self.take();
        let (used, changed, others_now) = (book.used(organization), book.watched(), book.watch(organization));
        let wrong = book::difference(found, used);
        let others = book::difference(others_now, others);
        let error = |wrong: i64, touched: u64, others: i64| {
            if wrong.unsigned_abs() > touched.saturating_add(others.unsigned_abs()) { wrong } else { 0 }
        };
        Ok(Amount {
            objects: error(wrong.objects, changed.objects_touched, others.objects),
            bytes: error(wrong.bytes, changed.bytes_touched, others.bytes),
        })
    }

    /// Reads all rows of an organization. It pauses after each page, so that it takes a fifth of one thread at most.
    async fn found(&self, organization: OrganizationId, damaged: &DamagedRows) -> Result<Amount, Error> {
        let mut found = Amount::default();
        for span in key::owned(organization) {
            let mut pages = Pages::of(self.store(), span, PAGE);
            let mut began = edge::now().millis();
            while let Some(page) = pages.next().await? {
                for row in &page {
                    let size = key_of(row).as_bytes().len() + row.as_ref().map_or(0, |row| row.value.len());
                    found.bytes += i64::try_from(size).unwrap_or(i64::MAX);
                    found.objects += i64::from(is_object(key_of(row)));
                }
                let full = page.len() == PAGE;
                drop(damaged.all_sound(page));
                if full {
                    let took = Duration::from_millis(edge::now().millis().saturating_sub(began));
                    tokio::time::sleep((took * 4).clamp(Duration::from_millis(1), MOST_PAUSE)).await;
                    began = edge::now().millis();
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(found)
    }

    /// Removes the counts of organizations that are not there any more.
    async fn forget_deleted(&self, known: &HashSet<OrganizationId>) -> Result<(), Error> {
        let counted = self.take().organizations();
        for organization in counted.into_iter().filter(|counted| !known.contains(counted)) {
            // It may be new.
            if get_one(self.store(), &Organization::key(SYSTEM, organization)).await?.is_none() {
                let mut book = self.take();
                let used = book.used(organization);
                book.correct(organization, book::difference(Amount::default(), used));
                self.tenants.remove(organization);
            }
        }
        Ok(())
    }
}

fn is_object(key: &Key) -> bool {
    share_of(key.as_bytes()).is_some_and(|share| share.is_object)
}
