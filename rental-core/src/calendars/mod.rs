//! Calendars in the format of RFC 5545 (iCalendar), pure: what a vehicle's feed has becomes text.

mod written;

pub use written::{Entry, OWN_DOMAIN, written};
