//! What an upgrade will have to read, counted before it begins. Nothing is changed.

use super::state::{UpgradeError, others_first};
use crate::{
    rows::Tag,
    store::{Span, Store, key_of},
};

/// Rows that are read at a time.
const PAGE: usize = 2000;
/// Most damaged rows that are named; all are counted.
const MOST_NAMED: usize = 100;

/// What lies in a store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Survey {
    /// Rows.
    pub rows: u64,
    /// Records among them.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Rows that cannot be read. They stay as they are.
    pub damaged: u64,
    /// The first of them, in words.
    pub damaged_rows: Vec<String>,
}

impl Survey {
    /// Bytes that a file of this size may grow by: replaced pages are not used again before a batch is on disk, and new
    /// rows come on top.
    #[must_use]
    pub fn room_needed(&self, file: u64) -> u64 {
        const LEAST: u64 = 16 << 20;
        file.max(LEAST)
    }
}

/// Reads every row of a store once. `progress` is told the rows so far.
///
/// # Errors
/// The store cannot serve.
pub async fn survey(store: &dyn Store, progress: &mut (dyn FnMut(u64) + Send)) -> Result<Survey, UpgradeError> {
    let (mut found, mut span) = (Survey::default(), Span::everything());
    loop {
        let page = store.scan(&span, PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        span.from = key_of(last).next();
        others_first().await;
        for row in &page {
            found.rows += 1;
            found.records += u64::from(key_of(row).as_bytes().first() == Some(&(Tag::Record as u8)));
            match row {
                Ok(record) => found.bytes += (record.key.as_bytes().len() + record.value.len()) as u64,
                Err(damaged) => {
                    found.damaged += 1;
                    if found.damaged_rows.len() < MOST_NAMED {
                        found.damaged_rows.push(damaged.to_string());
                    }
                }
            }
        }
        progress(found.rows);
    }
}
