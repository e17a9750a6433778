//! What is wrong with an archive.

use super::layout::FORMAT;
use std::io;

/// What is wrong with an archive. Frames count from 1.
#[derive(Debug)]
pub enum ArchiveError {
    /// It does not begin like one.
    NotAnArchive,
    /// A later version wrote it.
    Newer(u64),
    /// It ends too early.
    Truncated {
        /// In this frame.
        frame: u64,
        /// After so many bytes.
        offset: u64,
    },
    /// Bytes are not what was written.
    Damaged {
        /// In this frame.
        frame: u64,
        /// The frame, or the part of it, begins here.
        offset: u64,
        /// How that shows.
        what: &'static str,
    },
    /// It was not read to its end.
    Unread,
    /// It cannot be read.
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
