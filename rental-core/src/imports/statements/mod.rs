//! Statements of toll agencies and lists of violations become checked rows. Pure: no store, no ids, no clock.
//!
//! A reader goes through a file of any size in constant memory: `source` is one buffer, `csv` and `json` cut records
//! out of it (at most 64 KiB each), `table` and `header` find the columns, `profile` says what the known formats are
//! and `mapping` what any other file is, `toll` and `violation` make rows of values that `amount` and `time` read.
//!
//! What is wrong with a row is said of that row ([`Row::Invalid`]) and stops no other. What is wrong with the file
//! ([`Refused`]) may come to light in its middle, so nothing may be recorded before the end was reached.
//! Nothing is guessed from the values of a row: neither the order of a date nor the sign of a charge.

mod amount;
mod cells;
mod csv;
mod formats;
mod header;
mod input;
mod json;
mod layout;
mod mapping;
mod table;
mod time;
mod toll;
mod violation;

pub use formats::{TOLL_FORMATS, VIOLATION_FORMATS};
pub use mapping::Mapping;
pub use toll::{TollReader, TollRow, tolls};
pub use violation::{ViolationReader, ViolationRow, violations};

use crate::value::Zone;

/// One row of a file, as its reader understands it.
#[derive(Clone, Debug, PartialEq)]
pub enum Row<T> {
    /// Something to record.
    Record(T),
    /// Not a toll: payments, fees, replenishments; and why.
    Skipped(&'static str),
    /// Cannot be read; and why, for the operator.
    Invalid(String),
}

/// The file is not what it claims, and nothing of it may be used: a sentence with what was expected, what was found and
/// what to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

/// Why a file was not read to its end.
#[derive(Debug)]
pub enum Failed {
    /// Its content is the reason.
    Refused(Refused),
    /// Reading failed.
    Read(std::io::Error),
}

/// What the formats leave open.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decimals of the currency, 0 to 4.
    pub digits: u32,
    /// The zone of local times, instead of the format's own.
    pub zone: Option<Zone>,
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

/// Why there is no record in a row.
enum NoRecord {
    Skipped(&'static str),
    Invalid(String),
}

impl<T> From<Result<T, NoRecord>> for Row<T> {
    fn from(read: Result<T, NoRecord>) -> Self {
        match read {
            Ok(record) => Self::Record(record),
            Err(NoRecord::Skipped(why)) => Self::Skipped(why),
            Err(NoRecord::Invalid(why)) => Self::Invalid(why),
        }
    }
}

impl From<String> for NoRecord {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}
