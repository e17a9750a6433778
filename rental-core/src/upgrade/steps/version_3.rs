//! The step from version 2 to version 3.
//!
//! Programs of version 2 wrote different members, because fields were added without a new version. Every object gets the
//! members that the last program of version 2 wrote, and those of version 3.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The time zone of organizations without one.
const ZONE: &str = "\"America/New_York\"";
/// The API version of webhook endpoints without one.
const API_VERSION: &str = "\"2026-05-05\"";

/// The lifts of this step.
pub(super) const VERSION: Version = Version {
    number: 3,
    lifts: &[
        Lift { object: "organization", tag: 8, lift: organization },
        Lift { object: "vehicle", tag: 1, lift: vehicle },
        Lift { object: "rental", tag: 3, lift: rental },
        Lift { object: "invoice", tag: 4, lift: invoice },
        Lift { object: "toll", tag: 5, lift: toll },
        Lift { object: "violation", tag: 6, lift: violation },
        Lift { object: "webhook_endpoint", tag: 11, lift: webhook_endpoint },
    ],
};

type Lifted = Result<(), String>;

fn organization(it: &mut Members, _: &Members) -> Lifted {
    it.add_after("booking_policy", "time_zone", ZONE)
}

fn vehicle(it: &mut Members, _: &Members) -> Lifted {
    it.add_after("plate", "plate_state", "null")
}

fn rental(it: &mut Members, organization: &Members) -> Lifted {
    it.add_after("damage_at_return", "activated_at", "null")?;
    it.add_after("activated_at", "completed_at", "null")?;
    let zone = organization.get("time_zone").ok_or("its organization has no `time_zone`")?;
    it.add_after("completed_at", "time_zone", zone)
}

fn invoice(it: &mut Members, _: &Members) -> Lifted {
    it.each_of("lines", |line| {
        line.add_after("amount", "rental_id", "null")?;
        line.add_after("rental_id", "toll_id", "null")?;
        line.add_after("toll_id", "violation_id", "null")
    })
}

fn toll(it: &mut Members, _: &Members) -> Lifted {
    it.add_after("occurred_at", "occurred_on", "null")?;
    attribution(it, "transponder_number")
}

fn violation(it: &mut Members, _: &Members) -> Lifted {
    it.add_after("summons_number", "issuer", "null")?;
    it.add_after("violation_time", "issued_on", "null")?;
    it.add_after("issued_on", "issued_at", "null")?;
    attribution(it, "issuing_agency")
}

/// Adds the attribution. Before it existed, only requests attached tolls and violations to customers.
fn attribution(it: &mut Members, place: &str) -> Lifted {
    let how = if it.is_null("customer_id") { "null" } else { "\"manual\"" };
    it.add_after(place, "attribution", how)?;
    it.add_after("attribution", "rental_id", "null")
}

fn webhook_endpoint(it: &mut Members, _: &Members) -> Lifted {
    it.add_after("failures_in_a_row", "api_version", API_VERSION)
}
