//! Parses a statement of a toll agency or a list of violations into checked rows. Needs no store, ids or clock.
//!
//! [`Reader`] reads a file of any size in constant memory:
//! - `encoding` makes UTF-8 of other text; `input` is the one buffer; `csv` and `json` cut it into records of at most 64 KiB;
//!   `table` finds the header, and `objects` does without one;
//! - a [`Mapping`] describes a file: the operator writes one, or `formats` has it; `plan` decides how a file is read, `layout` finds
//!   the columns in its header, `sections` tells titles and further headers from rows;
//! - `toll` and `violation` make rows of values that `amount`, `time` and `when` parse.
//!
//! An error in a row concerns this row alone ([`Row::Invalid`]). An error in the file ([`Refused`]) may be found in its
//! middle, so a caller records nothing before it has read the file to its end.
//! A reader never guesses from the values of a row: a format says the order of a date and the sign of a charge.

mod amount;
mod cells;
mod csv;
mod encoding;
mod failure;
mod field;
mod formats;
mod header;
mod input;
mod json;
mod layout;
mod mangled;
mod mapping;
mod objects;
mod plan;
mod reader;
mod row;
mod sections;
mod table;
mod time;
mod toll;
mod violation;
mod when;

pub use failure::{Failed, Refused};
pub use formats::{DEFAULT_ISSUER, KINDS, Kind, TOLLS, VIOLATIONS};
pub use mapping::Mapping;
pub use plan::Settings;
pub use reader::Reader;
pub use row::{Row, StatementRow};
pub use toll::TollRow;
pub use violation::ViolationRow;
