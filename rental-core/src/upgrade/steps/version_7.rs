//! The step from version 6 to version 7.
//!
//! Invoices can have a tax, a due date, and what was known of seller, buyer and vehicles when they were issued. Nobody recorded
//! that before, so older ones have `null` there. Credit notes have the tax of what they credit.
//! Customers can have an address. Organizations have fees, a tax and a time to pay; those of an older store have none.
//! Blocks can come from a calendar feed; those of before came from none.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version =
    Version { number: 7, lifts: &[CUSTOMER, INVOICE, ORGANIZATION, BLOCK, CREDIT_NOTE] };

const CUSTOMER: Lift = Lift { object: "customer", tag: 2, lift: customer };
const INVOICE: Lift = Lift { object: "invoice", tag: 4, lift: invoice };
const ORGANIZATION: Lift = Lift { object: "organization", tag: 8, lift: organization };
const BLOCK: Lift = Lift { object: "block", tag: 21, lift: block };
const CREDIT_NOTE: Lift = Lift { object: "credit_note", tag: 22, lift: credit_note };

/// What an invoice keeps of seller and buyer.
const PARTIES: [&str; 9] = [
    "seller_name",
    "seller_address",
    "seller_tax_id",
    "seller_email",
    "seller_phone",
    "buyer_name",
    "buyer_address",
    "buyer_email",
    "buyer_phone",
];

fn customer(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("notes", "address", "null")
}

fn invoice(it: &mut Members, _: &Members) -> Result<(), String> {
    it.each_of("lines", |line| line.add_after("violation_id", "vehicle", "null"))?;
    add_nulls(it, "total", &["tax_name", "tax_rate", "tax_included", "tax_amount"])?;
    add_nulls(it, "voided_at", &["due_date"])?;
    add_nulls(it, "credit_note_ids", &PARTIES)
}

fn organization(it: &mut Members, _: &Members) -> Result<(), String> {
    add_nulls(it, "paper_size", &["toll_fee", "violation_fee", "tax_name", "tax_rate"])?;
    it.add_after("tax_rate", "tax_included", "false")?;
    add_nulls(it, "tax_included", &["payment_terms_days"])
}

fn block(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("source", "calendar_feed_id", "null")?;
    it.add_after("calendar_feed_id", "calendar_uid", "null")?;
    it.add_after("calendar_uid", "conflicts_with", "null")
}

fn credit_note(it: &mut Members, _: &Members) -> Result<(), String> {
    add_nulls(it, "total", &["tax_amount"])
}

/// Adds members that are `null` after `last`, in this order.
fn add_nulls<'m>(it: &mut Members, mut last: &'m str, names: &[&'m str]) -> Result<(), String> {
    for name in names {
        it.add_after(last, name, "null")?;
        last = name;
    }
    Ok(())
}
