//! Errors of reading a file.

/// The file has a wrong content, so no row of it may be used. A sentence says what was expected, what was found and what to
/// do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

/// Why reading a file failed.
#[derive(Debug)]
pub enum Failed {
    /// The file has a wrong content.
    Refused(Refused),
    /// An I/O error while reading the file.
    Read(std::io::Error),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Read(error) => write!(f, "the file could not be read: {error}"),
        }
    }
}

impl std::error::Error for Refused {}
impl std::error::Error for Failed {}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}
