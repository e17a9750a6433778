//! How much room a disk has.

use rustix::fs::statvfs;
use std::{fs, path::Path};

/// The most that the default of `--min-free-space` keeps free. It is at most 1 % of the disk, too.
const MOST_KEPT_FREE: u64 = 256 << 20;

/// Sizes of the data file and its disk, in bytes; `None` where unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) data: Option<u64>,
    pub(crate) free: Option<u64>,
    pub(crate) total: Option<u64>,
}

impl Room {
    pub(crate) fn of(path: &Path) -> Self {
        let disk = statvfs(path).ok();
        let bytes = |blocks: u64, size: u64| blocks.saturating_mul(size);
        Self {
            data: fs::metadata(path).ok().map(|file| file.len()),
            free: disk.as_ref().map(|disk| bytes(disk.f_bavail, disk.f_frsize)),
            total: disk.as_ref().map(|disk| bytes(disk.f_blocks, disk.f_frsize)),
        }
    }

    /// Whether less than `times` what is kept free is left: `kept`; without it 1 % of the disk, at most 256 MB.
    pub(super) fn is_below(&self, kept: Option<u64>, times: u64) -> bool {
        let (Some(free), Some(total)) = (self.free, self.total) else { return false };
        free < kept.unwrap_or_else(|| (total / 100).min(MOST_KEPT_FREE)).saturating_mul(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_one_percent_and_at_most_256_mb_are_kept_free() {
        let room = |free, total| Room { data: None, free: Some(free), total: Some(total) };
        assert!(room(9, 1000).is_below(None, 1));
        assert!(!room(10, 1000).is_below(None, 1));
        let large = 1 << 40;
        assert!(room(MOST_KEPT_FREE - 1, large).is_below(None, 1));
        assert!(!room(MOST_KEPT_FREE, large).is_below(None, 1));
        assert!(room(999, 1000).is_below(Some(1000), 1));
        assert!(!room(0, 1000).is_below(Some(0), 1), "0 switches it off");
        assert!(!Room::default().is_below(None, 1), "a database has its own disk");
    }
}
