//! Reads of ranges. One statement reads a range and, for index entries, their records.

use super::{
    connections::Connections,
    record::{foreign, record},
    version::guard,
};
use crate::store::{DamagedRow, Key, Order, Scanned, Span, StoreError, key_of};
use tokio_postgres::Row;

const RISING: &str = concat!(
    "SELECT key, revision, value FROM rental.rows WHERE key >= $1 AND key < $2 AND ",
    guard!(4),
    " ORDER BY key LIMIT $3"
);
const FALLING: &str = concat!(
    "SELECT key, revision, value FROM rental.rows WHERE key >= $1 AND key < $2 AND ",
    guard!(4),
    " ORDER BY key DESC LIMIT $3"
);
// The key of a record is the prefix followed by the last 16 bytes of its index entry (`Follow`). The inner LIMIT makes the
// planner look up each record by its key.
macro_rules! follow {
    ($order:literal) => {
        concat!(
            "SELECT e.key, r.key, r.revision, r.value FROM (SELECT key FROM rental.rows WHERE key >= $1 AND key < $2 AND ",
            guard!(5),
            " ORDER BY key",
            $order,
            " LIMIT $3) e LEFT JOIN LATERAL (SELECT t.key, t.revision, t.value FROM rental.rows t \
             WHERE t.key = $4::bytea || substring(e.key from length(e.key) - 15) LIMIT 1) r ON true ORDER BY e.key",
            $order
        )
    };
}
const FOLLOW_RISING: &str = follow!("");
const FOLLOW_FALLING: &str = follow!(" DESC");

// Reads each range in its own order. The rows of one range come together, but in any order.
const EACH: &str = concat!(
    "SELECT e.key, e.revision, e.value, s.at FROM unnest($1::bytea[], $2::bytea[], $3::bool[], $4::int8[]) \
     WITH ORDINALITY s(low, high, falling, most, at), LATERAL (\
     (SELECT key, revision, value FROM rental.rows WHERE NOT s.falling AND key >= s.low AND key < s.high ORDER BY key LIMIT s.most) \
     UNION ALL \
     (SELECT key, revision, value FROM rental.rows WHERE s.falling AND key >= s.low AND key < s.high ORDER BY key DESC LIMIT s.most)\
     ) e WHERE ",
    guard!(5),
    " ORDER BY s.at"
);

/// Reads several spans in one statement, and so from one snapshot.
pub(super) async fn scan_each(
    connections: &Connections,
    scans: &[(Span, usize)],
) -> Result<Vec<Vec<Scanned>>, StoreError> {
    let mut found: Vec<Vec<Scanned>> = scans.iter().map(|_| Vec::new()).collect();
    if scans.is_empty() {
        return Ok(found);
    }
    let low: Vec<&[u8]> = scans.iter().map(|(span, _)| span.from.as_bytes()).collect();
    let high: Vec<&[u8]> = scans.iter().map(|(span, _)| span.to.as_bytes()).collect();
    let falling: Vec<bool> = scans.iter().map(|(span, _)| span.order == Order::Descending).collect();
    let most: Vec<i64> = scans.iter().map(|(_, limit)| i64::try_from(*limit).unwrap_or(i64::MAX)).collect();
    let expected = connections.expected();
    for row in connections.read(EACH, &[&low, &high, &falling, &most, &expected]).await? {
        let at: i64 = row.try_get(3).map_err(|error| foreign(&error))?;
        let place = usize::try_from(at - 1).ok().and_then(|at| found.get_mut(at));
        let place = place.ok_or_else(|| StoreError::Unavailable("the database counts ranges in another way".into()))?;
        place.push(Ok(record(&row, 0)?));
    }
    for (rows, (span, _)) in found.iter_mut().zip(scans) {
        rows.sort_unstable_by(|one, other| key_of(one).cmp(key_of(other)));
        if span.order == Order::Descending {
            rows.reverse();
        }
    }
    Ok(found)
}

/// Reads at most `limit` rows of `span`, in its order.
pub(super) async fn scan(connections: &Connections, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
    if span.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let (from, to) = (span.from.as_bytes(), span.to.as_bytes());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let expected = connections.expected();
    let Some(follow) = &span.follow else {
        let sql = if span.order == Order::Ascending { RISING } else { FALLING };
        let rows = connections.read(sql, &[&from, &to, &limit, &expected]).await?;
        return rows.iter().map(|row| record(row, 0).map(Ok)).collect();
    };
    let sql = if span.order == Order::Ascending { FOLLOW_RISING } else { FOLLOW_FALLING };
    let rows = connections.read(sql, &[&from, &to, &limit, &follow.prefix.as_bytes(), &expected]).await?;
    let followed = |row: &Row| {
        let entry: &[u8] = row.try_get(0).map_err(|error| foreign(&error))?;
        let found: Option<&[u8]> = row.try_get(1).map_err(|error| foreign(&error))?;
        Ok(match (follow.target(entry), found) {
            (None, _) => Err(DamagedRow::points_nowhere(Key::from_bytes(entry))),
            (Some(_), None) => Err(DamagedRow::dangling(Key::from_bytes(entry))),
            (Some(_), Some(_)) => Ok(record(row, 1)?),
        })
    };
    rows.iter().map(followed).collect()
}
