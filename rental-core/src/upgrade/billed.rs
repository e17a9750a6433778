//! What the invoices of an organization bill, and what its credit notes credit. Every object of an export gets
//! `amount_billed` and `invoice_ids` from it, and every invoice `amount_credited` and `credit_note_ids`, so that a file always
//! agrees with itself.

use super::members::Members;
use crate::value::{Money, SignedMoney};
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// The lines of invoices that are not void and bill an object, and what credit notes make billable again: 48 bytes for each.
#[derive(Clone, Debug, Default)]
pub struct Billed {
    /// The billed object, the invoice, the amount. Sorted, so that the lines of an object are together.
    lines: Vec<(Uuid, Uuid, Money)>,
    /// What can be billed again, by object.
    credits: HashMap<Uuid, Money>,
    /// The credit notes of an invoice, and what they credit.
    notes: HashMap<Uuid, (Vec<Uuid>, Money)>,
    /// The invoices that were read, void ones too.
    read: HashSet<Uuid>,
    is_sorted: bool,
}

/// An invoice or a credit note.
#[derive(Deserialize)]
struct Invoice {
    id: Uuid,
    object: String,
    #[serde(default)]
    status: Option<String>,
    invoice_id: Option<Uuid>,
    total: Option<Money>,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    amount: Option<SignedMoney>,
    /// Of a credit note: the part of the invoice's discounts that goes with the amount.
    discount: Option<Money>,
    rebill: Option<bool>,
    rental_id: Option<Uuid>,
    toll_id: Option<Uuid>,
    violation_id: Option<Uuid>,
}

impl Line {
    fn source(&self) -> Option<Uuid> {
        self.rental_id.or(self.toll_id).or(self.violation_id)
    }

    /// The amount of a line that bills an object: never negative.
    fn amount(&self) -> Money {
        self.amount.unwrap_or_default().above_zero()
    }
}

/// A JSON array of these texts.
fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

impl Billed {
    /// Adds what an invoice bills, or what a credit note credits. Anything else, and a void invoice, adds nothing.
    pub fn add(&mut self, json: &[u8]) {
        let Ok(invoice) = crate::value::read_json::<Invoice>(json) else { return };
        if let ("credit_note", Some(credited)) = (invoice.object.as_str(), invoice.invoice_id) {
            let (notes, sum) = self.notes.entry(credited).or_default();
            notes.push(invoice.id);
            *sum = sum.plus(invoice.total.unwrap_or_default()).unwrap_or(Money::MAX);
            for line in invoice.lines.into_iter().filter(|line| line.rebill == Some(true)) {
                if let Some(source) = line.source() {
                    let sum = self.credits.entry(source).or_default();
                    let gross = line.amount().plus(line.discount.unwrap_or_default()).unwrap_or(Money::MAX);
                    *sum = sum.plus(gross).unwrap_or(Money::MAX);
                }
            }
            return;
        }
        if invoice.object != "invoice" {
            return;
        }
        self.read.insert(invoice.id);
        if invoice.status.as_deref() == Some("void") {
            return;
        }
        for line in invoice.lines {
            if let Some(source) = line.source() {
                self.lines.push((source, invoice.id, line.amount()));
                self.is_sorted = false;
            }
        }
    }

    /// Ends the adding.
    pub fn sort(&mut self) {
        self.lines.sort_unstable_by_key(|(source, invoice, _)| (*source, *invoice));
        self.notes.values_mut().for_each(|(notes, _)| notes.sort_unstable());
        self.is_sorted = true;
    }

    /// Sets the members of an object that invoices can bill, and of an invoice; any other object stays as it is.
    ///
    /// # Errors
    /// The object lacks the members.
    pub fn fill(&self, object: &str, id: Uuid, members: &mut Members) -> Result<(), String> {
        if object == "invoice" {
            let none = (Vec::new(), Money::default());
            let (notes, sum) = self.notes.get(&id).unwrap_or(&none);
            members.set("amount_credited", sum.to_string())?;
            return members.set("credit_note_ids", list(notes.iter().map(|id| format!("\"{id}\""))));
        }
        if !matches!(object, "rental" | "toll" | "violation") {
            return Ok(());
        }
        debug_assert!(self.is_sorted || self.lines.is_empty(), "`sort` comes before `fill`");
        let from = self.lines.partition_point(|(source, ..)| *source < id);
        let own = self.lines[from..].iter().take_while(|(source, ..)| *source == id);
        let (mut sum, mut invoices) = (Money::default(), Vec::new());
        for (_, invoice, amount) in own {
            sum = sum.plus(*amount).unwrap_or(Money::MAX);
            invoices.push(*invoice);
        }
        let credited = self.credits.get(&id).copied().unwrap_or_default();
        let mut billed = sum.minus(credited).unwrap_or_default();
        // What an invoice bills that is gone is not billed again.
        let named: Vec<Uuid> = value(members, "invoice_ids").unwrap_or_default();
        let gone = named.into_iter().filter(|invoice| !self.read.contains(invoice));
        for invoice in gone {
            billed = billed.max(value(members, "amount_billed").unwrap_or_default());
            invoices.push(invoice);
        }
        invoices.sort_unstable();
        invoices.dedup();
        members.set("amount_billed", billed.to_string())?;
        members.set("invoice_ids", list(invoices.into_iter().map(|id| format!("\"{id}\""))))
    }
}

fn value<T: DeserializeOwned>(members: &Members, name: &str) -> Option<T> {
    serde_json::from_str(members.get(name)?).ok()
}
