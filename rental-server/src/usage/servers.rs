//! Reads what other servers have saved, and moves the rows of those that are gone into the rows of this one.

use super::{
    PAGE, Usage,
    book::{MOST_ROWS, head_is, head_row, sum},
    others::Others,
    parts, recount_place,
};
use crate::{damaged_rows::DamagedRows, edge};
use rental_core::{
    error::Error,
    rows::{
        key,
        usage::{self, Amount, Head},
    },
    store::{Batch, Commit, Record, Revision, key_of},
    value::{OrganizationId, ServerId},
};
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

/// Pages that one turn reads. With more rows, a pass takes several turns.
const PAGES: usize = 4;
/// A server that counts saves its head within seconds. After this time without a change it is gone.
const GONE_MILLIS: u64 = 15_000;
/// An idle server changes nothing, so its rows are moved only after a day. It notices that when it counts again.
const IDLE_MILLIS: u64 = 86_400_000;

impl Usage {
    /// Reads some pages. After the last one, replaces the sums, and moves the rows of servers that are gone.
    pub(super) async fn read_others(&self, others: &mut Others, damaged: &DamagedRows) -> Result<(), Error> {
        let began = self.is_ready.load(Ordering::Acquire);
        // Only this server writes into a store that is not shared.
        if began && !self.store.is_shared() && others.found.is_empty() {
            return Ok(());
        }
        let most = if began { PAGES } else { usize::MAX };
        for _ in 0..most {
            let span = others.rest.get_or_insert_with(key::usage_of_all);
            let page = damaged.rows(self.store().scan(span, PAGE).await)?;
            let last = page.last().map(|row| key_of(row).clone());
            let is_last = page.len() < PAGE;
            if let Some(last) = last {
                span.from = last.next();
            }
            for row in page {
                match row {
                    Ok(row) => read(others, self.server, &row, damaged)?,
                    Err(row) => damaged.note(&row),
                }
            }
            if is_last {
                others.rest = None;
                return self.pass_ends(others, damaged).await;
            }
        }
        Ok(())
    }

    async fn pass_ends(&self, others: &mut Others, damaged: &DamagedRows) -> Result<(), Error> {
        {
            let mut book = self.book();
            let before: HashSet<_> = book.others.keys().copied().collect();
            book.others = std::mem::take(&mut others.sums);
            let now: HashSet<_> = book.others.keys().copied().collect();
            self.show(&book, before.union(&now).copied());
        }
        let (now, found) = (edge::now().millis(), std::mem::take(&mut others.found));
        let is_same = |server: &ServerId, revision| others.seen.get(server).filter(|seen| seen.0 == revision);
        let seen: HashMap<_, _> = found
            .iter()
            .map(|(server, (revision, _))| {
                (*server, (*revision, is_same(server, *revision).map_or(now, |seen| seen.1)))
            })
            .collect();
        others.seen = seen;
        for (server, (revision, state)) in found {
            let since = now.saturating_sub(others.seen.get(&server).map_or(now, |seen| seen.1));
            let gone = match state {
                _ if !self.store.is_shared() => true,
                Head::Stopped => true,
                Head::Counting | Head::Moving => since >= GONE_MILLIS,
                Head::Settled => since >= IDLE_MILLIS,
            };
            if gone {
                self.adopt(server, (revision, state), damaged).await?;
            }
        }
        self.is_ready.store(true, Ordering::Release);
        Ok(())
    }
}

impl Usage {
    /// Moves the rows of a server that is gone into the rows of this one. Stops when another server changes any of them.
    async fn adopt(
        &self,
        gone: ServerId,
        (revision, state): (Revision, Head),
        damaged: &DamagedRows,
    ) -> Result<(), Error> {
        let mut batch = Batch { checks: vec![head_is(gone, revision)], writes: Vec::new() };
        let revision = revision + 1;
        batch.writes.push(head_row(gone, revision, Head::Moving));
        match self.store().commit(batch).await {
            Ok(Commit::Applied) => {}
            Ok(Commit::Stale(_)) => return Ok(()),
            Err(rental_core::store::StoreError::Damaged(_)) => return self.head_of(gone, damaged).await.map(drop),
            Err(error) => return Err(error.into()),
        }
        let head = key::usage(gone, OrganizationId::nil());
        let mut complete = matches!(state, Head::Settled | Head::Stopped);
        loop {
            let mut rest = key::usage_of(gone);
            rest.from = head.next();
            let rows = self.store().scan(&rest, MOST_ROWS).await?;
            let (is_last, mut amounts) = (rows.len() < MOST_ROWS, Vec::new());
            let keys: Vec<_> = rows.iter().map(|row| key_of(row).clone()).collect();
            for row in rows {
                let read =
                    row.map_err(Error::Damaged).and_then(|row| Ok((row.key.clone(), usage::read::<Amount>(&row)?)));
                match damaged.skip(read)? {
                    Some((key, amount)) => amounts.extend(parts(&key).map(|parts| (parts.1, amount))),
                    None => complete = false,
                }
            }
            let mut batch = self.book().adopting(self.server, &amounts);
            batch.checks.push(head_is(gone, revision));
            keys.into_iter().for_each(|key| batch.delete(key));
            if is_last {
                batch.delete(head.clone());
                if !complete {
                    batch.delete(recount_place());
                }
            }
            if self.store().commit(batch).await? != Commit::Applied {
                return self.read_again(None, damaged).await;
            }
            self.book().adopted(&amounts);
            if is_last {
                return Ok(());
            }
        }
    }
}

fn read(others: &mut Others, own: ServerId, row: &Record, damaged: &DamagedRows) -> Result<(), Error> {
    let Some((server, organization)) =
        parts(&row.key).filter(|(server, _)| *server != own && *server != ServerId::nil())
    else {
        return Ok(());
    };
    // Without a head, as if the server was counting.
    let head = others.found.entry(server).or_insert((0, Head::Counting));
    if organization == OrganizationId::nil() {
        head.0 = row.revision;
        if let Some(state) = damaged.skip(usage::read(row))? {
            head.1 = state;
        }
    } else if let Some(amount) = damaged.skip(usage::read::<Amount>(row))? {
        let all = others.sums.entry(organization).or_default();
        *all = sum(*all, amount);
    }
    Ok(())
}
