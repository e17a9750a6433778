//! The step from version 5 to version 6.
//!
//! What invoices bill has the amount and the invoices in its own record. The lifts begin with nothing; the walk over a store
//! and the import of an export set what the invoices bill ([`Billed`](crate::upgrade::Billed)).
//! Rentals have the vehicles that their customers had before a swap. Nobody recorded that before, so older ones have none.
//! Tolls and violations say why they are attached. Nobody recorded that before, so older ones have `null` there.
//! Invoices can have credit notes; those of before have none.
//! Organizations have the seller's data of their invoices. Those of an older store have none; their invoices are in English.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 6, lifts: &[RENTAL, INVOICE, TOLL, VIOLATION, ORGANIZATION] };

const RENTAL: Lift = Lift { object: "rental", tag: 3, lift: rental };
const INVOICE: Lift = Lift { object: "invoice", tag: 4, lift: invoice };
const TOLL: Lift = Lift { object: "toll", tag: 5, lift: toll_or_violation };
const VIOLATION: Lift = Lift { object: "violation", tag: 6, lift: violation };
const ORGANIZATION: Lift = Lift { object: "organization", tag: 8, lift: organization };

fn rental(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("completed_at", "vehicle_changed_at", "null")?;
    it.add_after("vehicle_changed_at", "earlier_vehicles", "[]")?;
    not_billed(it, "time_zone")
}

fn invoice(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("voided_at", "amount_credited", "0")?;
    it.add_after("amount_credited", "credit_note_ids", "[]")
}

fn toll_or_violation(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("rental_id", "attribution_reason", "null")?;
    it.add_after("attribution_reason", "review_reason", "null")?;
    not_billed(it, "review_reason")
}

/// Older imports did not record these columns.
fn violation(it: &mut Members, organization: &Members) -> Result<(), String> {
    it.add_after("issuing_agency", "status", "null")?;
    it.add_after("status", "plate_type", "null")?;
    it.add_after("plate_type", "respond_by", "null")?;
    toll_or_violation(it, organization)
}

fn not_billed(it: &mut Members, place: &str) -> Result<(), String> {
    it.add_after(place, "amount_billed", "0")?;
    it.add_after("amount_billed", "invoice_ids", "[]")
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
