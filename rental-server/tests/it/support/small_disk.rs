//! Disks that are soon full.

use std::{path::Path, process::Command};

/// A small disk in memory, for as long as it is in scope.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` without the right to mount; with `RENTAL_REQUIRE_ALL` there has to be one.
    pub(crate) fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(directory.path());
        if mount.output().is_ok_and(|ran| ran.status.success()) {
            return Some(Self(directory));
        }
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "a tmpfs cannot be mounted");
        println!("skipped: a tmpfs cannot be mounted");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
