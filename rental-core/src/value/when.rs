//! The time of a toll or violation.

use super::{Date, Timestamp, Zone};

/// The time of a toll or violation, as far as its statement has it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct When {
    /// The instant, if the statement contains a time of day. Of two at which the clocks showed it, the first one.
    pub at: Option<Timestamp>,
    /// The local day, if the statement contains a valid date.
    pub on: Option<Date>,
    /// Where the clocks are that showed the time, if it had no offset from UTC.
    pub zone: Option<Zone>,
}
