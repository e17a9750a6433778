//! Errors of reading an archive.

use super::layout::FORMAT;
use std::io;

/// Why an archive cannot be read. Frames count from 1.
#[derive(Debug)]
pub enum ArchiveError {
    /// The first bytes are not those of an archive.
    NotAnArchive,
    /// The archive has this format, which is newer than [`FORMAT`](super::FORMAT).
    Newer(u64),
    /// The archive ends too early.
    Truncated {
        /// Number of the incomplete frame.
        frame: u64,
        /// Number of bytes that could be read.
        offset: u64,
    },
    /// The bytes differ from those that were written.
    Damaged {
        /// Number of the damaged frame; 0 for the first line.
        frame: u64,
        /// Byte offset of the damaged frame or part.
        offset: u64,
        /// Which check failed.
        what: &'static str,
    },
    /// The archive was not read to its end, so it is not verified.
    Unread,
    /// The source of the archive cannot be read.
    Io(io::Error),
}

impl std::fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAnArchive => f.write_str("this is no backup: it does not begin with `rental-backup`"),
            Self::Newer(format) => {
                write!(f, "the backup has format {format}, this program knows {FORMAT}: use the version that wrote it")
            }
            Self::Truncated { frame, offset } => {
                write!(f, "the backup is cut off in frame {frame}, after {offset} bytes")
            }
            Self::Damaged { frame, offset, what } => {
                write!(f, "the backup is damaged in frame {frame}, at byte {offset}: {what}")
            }
            Self::Unread => f.write_str("the backup was not read to its end"),
            Self::Io(error) => write!(f, "the backup cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ArchiveError {}
