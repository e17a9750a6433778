//! Reads the rows of a span, also of a file with damaged pages.
//!
//! redb does not check the checksums of pages when it reads them. A damaged page can lead it to rows of another place, for ever.
//! So each key must be in the span and behind the key before it. What is not is left out, and the scan tells of it: the next row
//! behind such keys, or else the last row before them, is a [`DamagedRow`] in its own place. So the keys of a scan always rise,
//! or fall, and every loop over pages ends.

use super::{
    row,
    tables::{Rows, failed, of_one, without_panic},
};
use crate::store::{DamagedRow, Key, Order, Scanned, Span, StoreError};

/// Most keys in a row that a scan leaves out because they are at a wrong place. Behind more of them, it ends.
const MOST_LEFT_OUT: usize = 1000;

/// Bytes of nearly all keys.
const ROOM: usize = 96;

/// How the reading of a span ended.
enum End {
    /// At the limit, or at the last row.
    Sound,
    /// In damaged pages.
    Damaged,
}

/// Reads at most `limit` rows of a span from one snapshot.
///
/// # Errors
/// [`StoreError::Damaged`] when damaged pages are all that it finds.
pub(super) fn scan(rows: &Rows, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
    if span.is_empty() {
        return Ok(Vec::new());
    }
    // Most scans find far fewer rows than they may: room for all of them costs more than the scan.
    let mut found = Vec::with_capacity(limit.min(8));
    match without_panic(|| walk(rows, span, limit, &mut found)) {
        Ok(End::Sound) => return Ok(found),
        Ok(End::Damaged) | Err(StoreError::DamagedStore(_)) => {}
        Err(error) => return Err(error),
    }
    match found.last_mut() {
        Some(last) => {
            if let Ok(record) = last {
                *last = Err(DamagedRow::beside_damaged_pages(record.key.clone()));
            }
            Ok(found)
        }
        None => Err(StoreError::Damaged(DamagedRow::beside_damaged_pages(span.from.clone()))),
    }
}

fn walk(rows: &Rows, span: &Span, limit: usize, found: &mut Vec<Scanned>) -> Result<End, StoreError> {
    let (from, to) = (span.from.as_bytes(), span.to.as_bytes());
    let mut range = rows.range::<&[u8]>(from..to).map_err(failed)?;
    // The key before; empty for the first one.
    let (mut before, mut left_out) = (Vec::with_capacity(ROOM), 0);
    while found.len() < limit {
        let next = match span.order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        };
        let Some(next) = next else { return Ok(if left_out == 0 { End::Sound } else { End::Damaged }) };
        let (guard, value) = next.map_err(failed)?;
        let key = guard.value();
        // redb itself ends at the first key behind the span.
        let is_behind = match (before.is_empty(), span.order) {
            (true, Order::Ascending) => key >= from,
            (true, Order::Descending) => key < to,
            (false, Order::Ascending) => key > before.as_slice(),
            (false, Order::Descending) => key < before.as_slice(),
        };
        if !is_behind {
            left_out += 1;
            if left_out > MOST_LEFT_OUT {
                return Ok(End::Damaged);
            }
            continue;
        }
        found.push(match left_out {
            0 => row_of(rows, span, key, value.value())?,
            _ => Err(DamagedRow::beside_damaged_pages(Key::from_bytes(key))),
        });
        before.clear();
        before.extend_from_slice(key);
        left_out = 0;
    }
    Ok(End::Sound)
}

/// The row with this key and value, or the record that this index entry leads to.
fn row_of(rows: &Rows, span: &Span, key: &[u8], value: &[u8]) -> Result<Scanned, StoreError> {
    let Some(follow) = &span.follow else { return Ok(row::decode(Key::from_bytes(key), value)) };
    let entry = || Key::from_bytes(key);
    let Some(target) = follow.target(key) else { return Ok(Err(DamagedRow::points_nowhere(entry()))) };
    match of_one(&target, || rows.get(target.as_bytes()).map_err(failed)) {
        Ok(Some(value)) => Ok(row::decode(target, value.value())),
        Ok(None) => Ok(Err(DamagedRow::dangling(entry()))),
        Err(StoreError::Damaged(row)) => Ok(Err(row)),
        Err(error) => Err(error),
    }
}
