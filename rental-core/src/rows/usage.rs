//! What servers have counted of the rows of each organization: the values of these rows.
//!
//! Each server adds up in rows of its own, so that servers never wait for each other; the sum of all servers is what an
//! organization uses. The *head* of a server's rows has a revision that changes with each of them.

use crate::{error::Error, store::Record};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// How much of something an organization has, as far as one server has counted it. Either number can be negative.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Amount {
    /// Number of objects.
    pub objects: i64,
    /// Bytes of keys and values.
    pub bytes: i64,
}

/// The head of a server's rows.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Head {
    /// The server may have counted more than its rows say.
    #[default]
    Counting,
    /// The rows have everything that the server has counted.
    Settled,
    /// The rows have everything, and the server has stopped.
    Stopped,
    /// Another server moves the rows into its own.
    Moving,
}

/// The recount of all organizations, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Recount {
    /// When a server has said last that it recounts.
    pub running_at: Option<u64>,
    /// When the last one was finished.
    pub finished_at: Option<u64>,
}

/// Parses the value of one of these rows.
///
/// # Errors
/// [`Error::Damaged`]: the value is another one.
pub fn read<T: DeserializeOwned>(row: &Record) -> Result<T, Error> {
    crate::value::read_json(&row.value).map_err(|error| Error::damaged(&row.key, &error))
}
