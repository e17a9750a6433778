//! Calendars in the format of RFC 5545 (iCalendar), pure: what a vehicle's feed has becomes text, and calendars of others become
//! days.

mod external;
mod written;

pub use external::{ExternalCalendar, ExternalEvent, MOST_BYTES, MOST_EVENTS, Reading, read_calendar};
pub use written::{Entry, OWN_DOMAIN, written};
