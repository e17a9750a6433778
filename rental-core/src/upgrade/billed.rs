//! What the invoices of an organization bill. Objects of before version 6 get `amount_billed` and `invoice_ids` from it, and
//! so does every object of an export.

use super::members::Members;
use crate::value::Money;
use serde::Deserialize;
use uuid::Uuid;

/// The lines of invoices that are not void and bill an object: 48 bytes for each.
#[derive(Clone, Debug, Default)]
pub struct Billed {
    /// The billed object, the invoice, the amount. Sorted, so that the lines of an object are together.
    lines: Vec<(Uuid, Uuid, Money)>,
    is_sorted: bool,
}

#[derive(Deserialize)]
struct Invoice {
    id: Uuid,
    object: String,
    #[serde(default)]
    status: Option<String>,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    amount: Option<Money>,
    rental_id: Option<Uuid>,
    toll_id: Option<Uuid>,
    violation_id: Option<Uuid>,
}

impl Billed {
    /// Adds what an invoice bills. Anything else, and a void invoice, adds nothing.
    pub fn add(&mut self, json: &[u8]) {
        let Ok(invoice) = serde_json::from_slice::<Invoice>(json) else { return };
        if invoice.object != "invoice" || invoice.status.as_deref() == Some("void") {
            return;
        }
        for line in invoice.lines {
            if let Some(source) = line.rental_id.or(line.toll_id).or(line.violation_id) {
                self.lines.push((source, invoice.id, line.amount.unwrap_or_default()));
                self.is_sorted = false;
            }
        }
    }

    /// Ends the adding.
    pub fn sort(&mut self) {
        self.lines.sort_unstable_by_key(|(source, invoice, _)| (*source, *invoice));
        self.is_sorted = true;
    }

    /// Sets the members of an object that invoices can bill; any other object stays as it is.
    ///
    /// # Errors
    /// The object lacks the members.
    pub fn fill(&self, object: &str, id: Uuid, members: &mut Members) -> Result<(), String> {
        if !matches!(object, "rental" | "toll" | "violation") {
            return Ok(());
        }
        debug_assert!(self.is_sorted || self.lines.is_empty(), "`sort` comes before `fill`");
        let from = self.lines.partition_point(|(source, ..)| *source < id);
        let own = self.lines[from..].iter().take_while(|(source, ..)| *source == id);
        let (mut sum, mut invoices) = (Money::default(), Vec::new());
        for (_, invoice, amount) in own {
            sum = sum.plus(*amount).unwrap_or(Money::MAX);
            let text = format!("\"{invoice}\"");
            if invoices.last() != Some(&text) {
                invoices.push(text);
            }
        }
        members.set("amount_billed", sum.to_string())?;
        members.set("invoice_ids", format!("[{}]", invoices.join(",")))
    }
}
