//! The step from version 5 to version 6.
//!
//! Tolls and violations say why they are attached. Nobody recorded that before, so older ones have `null` there.
//! Organizations have the seller's data of their invoices. Those of an older store have none; their invoices are in English.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 6, lifts: &[TOLL, VIOLATION, ORGANIZATION] };

const TOLL: Lift = Lift { object: "toll", tag: 5, lift: attached };
const VIOLATION: Lift = Lift { object: "violation", tag: 6, lift: attached };
const ORGANIZATION: Lift = Lift { object: "organization", tag: 8, lift: organization };

/// Adds the reasons of an attachment.
fn attached(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("rental_id", "attribution_reason", "null")?;
    it.add_after("attribution_reason", "review_reason", "null")
}

fn organization(it: &mut Members, _: &Members) -> Result<(), String> {
    let members = [
        ("legal_name", "null"),
        ("address", "null"),
        ("tax_id", "null"),
        ("contact_email", "null"),
        ("contact_phone", "null"),
        ("payment_instructions", "null"),
        ("invoice_language", "\"en\""),
        ("paper_size", "null"),
    ];
    let mut last = "max_requests_per_second";
    for (name, value) in members {
        it.add_after(last, name, value)?;
        last = name;
    }
    Ok(())
}
