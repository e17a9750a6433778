//! The time of a toll or violation.

use super::{Date, Instants, Timestamp, Zone};

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

impl When {
    /// The instants that the time can mean: two when the clocks were set back and showed it twice, else the same one twice. `None`
    /// without a time of day.
    #[must_use]
    pub fn instants(self) -> Option<(Timestamp, Timestamp)> {
        let at = self.at?;
        Some(match self.zone.map(|zone| zone.instants(zone.local(at))) {
            Some(Instants::Two(first, second)) => (first, second),
            Some(Instants::One(_) | Instants::Gap(_)) | None => (at, at),
        })
    }
}
