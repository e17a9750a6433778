//! Which process has locked a file, for the message about a file that is in use.

use rustix::fs::{major, minor};
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// `rental-server, process 1234`; `None` where the system does not tell: Linux does, about processes of the same container.
pub(super) fn of(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let pid = locked_by(&fs::read_to_string("/proc/locks").ok()?, (found.dev(), found.ino()))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{}, process {pid}", name.trim()))
}

/// The process that has the lock of a file, by its device and inode.
fn locked_by(locks: &str, (device, inode): (u64, u64)) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    let of_file = |line: &str| {
        let mut words = line.split_whitespace().skip(4);
        let pid = words.next()?.parse().ok()?;
        (words.next()? == file && pid > 0).then_some(pid)
    };
    locks.lines().find_map(of_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn the_process_of_a_lock_is_found_by_its_file() {
        let locks = "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 9 fe:01:1234 0 EOF\n\
                     2: POSIX  ADVISORY  READ 0 00:2f:77 128 128\n3: FLOCK  ADVISORY  WRITE -1 fe:01:88 0 EOF\n";
        let by = |device: (u32, u32), inode| locked_by(locks, (makedev(device.0, device.1), inode));
        assert_eq!(by((0xfe, 1), 1234), Some(4711));
        for (device, inode) in [((0xfe, 2), 1234), ((0, 0x2f), 77), ((0xfe, 1), 88), ((0xfe, 1), 9)] {
            assert_eq!(by(device, inode), None, "{inode}");
        }
    }
}
