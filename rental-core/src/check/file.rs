//! Checks a closed file.

use super::{
    audit::Audit,
    report::{Remedy, Report},
};
use crate::{
    store::{Finding, Inspection, Key},
    value::Timestamp,
};

/// Checks every row of a closed file, except whether blocks have a calendar feed. `progress` is called with the number of rows so far.
#[must_use]
pub fn of_file(closed: &dyn Inspection, progress: &mut dyn FnMut(u64)) -> Report {
    let get = |key: &Key| closed.get(key);
    check(closed, Audit::new(&get), progress)
}

/// Checks every row of a closed file at `now`. `progress` is called with the number of rows so far.
#[must_use]
pub fn of_file_at(closed: &dyn Inspection, now: Timestamp, progress: &mut dyn FnMut(u64)) -> Report {
    let get = |key: &Key| closed.get(key);
    check(closed, Audit::new(&get).at(now), progress)
}

fn check(closed: &dyn Inspection, mut audit: Audit<'_>, progress: &mut dyn FnMut(u64)) -> Report {
    if let Err(detail) = closed.pages() {
        audit.gaps = true;
        audit.report.add("the file".into(), detail.to_owned(), Remedy::Backup);
    }
    closed.walk(&mut |found| {
        match found {
            Finding::Row(record) => audit.row(&record),
            Finding::Damaged(row) => audit.damaged(&row),
            Finding::Gap(after, detail) => audit.gap(after.as_ref(), &detail),
        }
        if audit.report.rows.is_multiple_of(10_000) {
            progress(audit.report.rows);
        }
        true
    });
    audit.finish()
}
