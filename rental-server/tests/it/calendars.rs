//! Calendars in the format of RFC 5545: the feeds of vehicles.

mod feed;
mod feeds_apart;
mod imports;
mod parsers;

use crate::support::{Connection, Organization, Reply, receiver};
use rental_core::value::{Date, Timestamp};
use serde_json::json;

/// Makes the feed of a vehicle and gives its secret path.
#[track_caller]
fn feed_of(organization: &Organization<'_>, vehicle: &str) -> String {
    let made = organization.post(&format!("/v1/vehicles/{vehicle}/calendar_feed"), &json!({})).ok();
    made["path"].as_str().expect("a path").to_owned()
}

/// Reads a path without any key.
fn read(organization: &Organization<'_>, path: &str) -> Reply {
    Connection::open(&organization.server.address).send("GET", path, &[], b"")
}

/// A day so many days from today, in UTC.
pub(crate) fn day(ahead: i64) -> String {
    let now = i64::try_from(receiver::unix_seconds()).unwrap() * 1000;
    let today = i64::from(Timestamp::from_millis(now).day_number());
    Date::from_day_number(u32::try_from(today + ahead).unwrap()).unwrap().to_string()
}
