//! What is wrong with an archive.

use super::layout::FORMAT;
use std::io;

/// What is wrong with an archive. Frames count from 1.
#[derive(Debug)]
pub enum ArchiveError {
    /// The first bytes are not those of an archive.
    NotAnArchive,
    /// A later program wrote it, in this format.
    Newer(u64),
    /// The archive ends too early.
    Truncated {
        /// Number of the frame.
        frame: u64,
        /// Number of bytes that could be read.
        offset: u64,
    },
    /// The bytes differ from those that were written.
    Damaged {
        /// Number of the frame.
        frame: u64,
        /// Where the damaged frame or part begins, in bytes.
        offset: u64,
        /// Which check failed.
        what: &'static str,
    },
    /// It was not read to its end.
    Unread,
    /// The source cannot be read.
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
