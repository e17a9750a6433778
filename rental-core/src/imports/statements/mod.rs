//! Parses a statement of a toll agency or a list of violations into checked rows. Needs no store, ids or clock.
//!
//! [`Reader`] reads a file of any size in constant memory:
//! - `input` is the one buffer; `csv` and `json` cut it into records of at most 64 KiB; `table` and `objects` put the
//!   values of a record under column names;
//! - `formats` has the known formats as data, [`Mapping`] is a format that the operator describes; `layout` finds the
//!   columns of a format in a file;
//! - `toll` and `violation` make rows of values that `amount` and `time` parse.
//!
//! An error in a row concerns this row alone ([`Row::Invalid`]). An error in the file ([`Refused`]) may be found in its
//! middle, so a caller records nothing before it has read the file to its end.
//! A reader never guesses from the values of a row: a format says the order of a date and the sign of a charge.

mod amount;
mod cells;
mod csv;
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
mod reader;
mod row;
mod table;
mod time;
mod toll;
mod violation;

pub use failure::{Failed, Refused};
pub use formats::{DEFAULT_ISSUER, KINDS, Kind, Parameter, TOLLS, VIOLATIONS};
pub use mapping::Mapping;
pub use reader::Reader;
pub use row::{Row, Settings, StatementRow};
pub use toll::TollRow;
pub use violation::ViolationRow;
