//! Checks a closed file.

use super::{
    audit::Audit,
    report::{Remedy, Report},
};
use crate::store::{Finding, Inspection, Key};

/// Checks every row of a closed file. `progress` is called with the number of rows so far.
#[must_use]
pub fn of_file(closed: &dyn Inspection, progress: &mut dyn FnMut(u64)) -> Report {
    let get = |key: &Key| closed.get(key);
    let mut audit = Audit::new(&get);
    if let Err(detail) = closed.pages() {
        audit.gaps = true;
        audit.report.add("the pages of the file".into(), detail.to_owned(), Remedy::Copy);
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
