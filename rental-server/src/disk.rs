//! Free space on the disk of the store.

use rustix::fs::statvfs;
use std::{fs, path::Path};

/// Sizes of the data file and its disk, in bytes; `None` where unknown.
#[derive(Default)]
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
}
