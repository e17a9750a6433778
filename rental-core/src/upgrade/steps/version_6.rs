//! The step from version 5 to version 6.
//!
//! Organizations have the seller's data of their invoices. Those of an older store have none; their invoices are in English.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 6, lifts: &[ORGANIZATION] };

const ORGANIZATION: Lift = Lift { object: "organization", tag: 8, lift: organization };

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
