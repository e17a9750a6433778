//! What can be read of a file with damaged pages, and the question about it.

use crate::{commands::store::place::Place, output::progress::Progress};
use rental_core::store::{Finding, Inspection};

/// A store of a stated version may have one problem in so many rows. A salvage that loses more has a question of its own.
pub(super) const ONE_IN: u64 = 10;

/// What can be read of a file with damaged pages.
pub(super) struct Readable {
    pub(super) rows: u64,
    /// By the file's own count.
    pub(super) all: u64,
    /// Rows whose own checksum is wrong.
    pub(super) damaged: u64,
    /// Pages that are corrected.
    corrected: usize,
    /// Why some rows cannot be read.
    pub(super) gap: Option<String>,
}

impl Readable {
    pub(super) fn of(closed: &dyn Inspection) -> Self {
        let corrected = closed.damaged_pages().iter().filter(|page| page.corrected).count();
        let mut read = Self { rows: 0, all: closed.count().unwrap_or_default(), damaged: 0, corrected, gap: None };
        let mut progress = Progress::count(closed.count(), "rows read");
        closed.walk(&mut |found| {
            match found {
                Finding::Gap(_, detail) => read.gap = Some(detail),
                Finding::Row(_) => read.rows += 1,
                Finding::Damaged(_) => (read.rows, read.damaged) = (read.rows + 1, read.damaged + 1),
            }
            progress.at(read.rows);
            true
        });
        progress.finish();
        read.all = read.all.max(read.rows);
        read
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.rows == 0 && (self.all > 0 || self.gap.is_some())
    }

    /// Whether nothing is lost or corrected.
    pub(super) fn is_as_it_is(&self) -> bool {
        self.gap.is_none() && self.corrected == 0
    }

    pub(super) fn question(&self, place: &Place) -> String {
        let Self { rows, all, .. } = self;
        let lost = all - rows;
        if lost.saturating_mul(ONE_IN) > *rows {
            return format!(
                "Only {rows} of {all} rows of {place} can be read, and {lost} are lost unless a backup has them. Replace it by a new file with the {rows} rows that are left, and keep this one beside it"
            );
        }
        format!(
            "Replace {place} by a new file with the {rows} of {all} rows that can be read, and keep this one beside it"
        )
    }
}
