//! One draft: the lines of an invoice of a rental, its fees and its tax.

use super::unbilled::{Charge, Item};
use rental_core::{
    error::Error,
    resources::{
        Billable, Resource, TOLL_FEE, VIOLATION_FEE,
        invoice::{Invoice, Line},
        organization::Organization,
        parse,
        rental::Rental,
    },
    rows::key,
    store::{Key, Store},
    value::{CustomerId, InvoiceId, Money},
};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// Most lines of an invoice for the rental, tolls and violations: beside them it has two for fees.
pub(super) const MOST_LINES: usize = 198;

/// What an invoice is of.
#[derive(Clone, Copy)]
pub(super) struct Billed<'a> {
    /// Who gets it.
    pub(super) customer: CustomerId,
    /// The rental; `None` for tolls and violations that belong to no rental of the customer.
    pub(super) rental: Option<&'a Rental>,
}

impl<'a> Billed<'a> {
    pub(super) fn rental(rental: &'a Rental) -> Self {
        Self { customer: rental.customer_id, rental: Some(rental) }
    }
}

/// The lines of an invoice that is not made yet.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) lines: Vec<Value>,
    /// The sum of the lines, and what the customer pays.
    pub(super) sum: Money,
    pub(super) total: Money,
    tax: Option<Money>,
    tolls: usize,
    violations: usize,
    /// Whether the invoice cannot have, or the search did not reach, all that belongs to the rental.
    pub(super) is_cut: bool,
    /// Why no invoice can be made.
    pub(super) problem: Option<&'static str>,
}

impl Draft {
    /// Adds a line. A total of [`Money::MAX`] is a problem of the draft.
    fn add(&mut self, member: &str, id: &dyn std::fmt::Display, left: Money) {
        self.sum = self.sum.plus(left).unwrap_or(Money::MAX);
        self.lines.push(json!({member: id.to_string(), "amount": left}));
    }

    /// Adds a line with the fee for `count` tolls or violations.
    fn add_fee(&mut self, what: &str, count: u32, fee: Option<Money>, organization: &Organization) {
        let Some(fee) = fee.filter(|fee| !fee.is_zero() && count > 0) else { return };
        let all = fee.times(count).unwrap_or(Money::MAX);
        self.sum = self.sum.plus(all).unwrap_or(Money::MAX);
        let each = fee.with_digits(organization.default_currency.digits());
        self.lines.push(json!({"description": format!("{what}: {count} × {each}"), "amount": all}));
    }

    pub(super) fn row(self, of: Billed, organization: &Organization, customer: &Value) -> Value {
        let rental = of.rental;
        json!({
            "object": "invoice_draft", "rental_id": rental.map(|rental| rental.id), "customer_id": of.customer,
            "customer_name": customer, "start_date": rental.map(|rental| rental.start_date),
            "end_date": rental.map(|rental| rental.end_date), "lines": self.lines,
            "total": self.total, "tax_amount": self.tax,
            "currency": rental.map_or(organization.default_currency, |rental| rental.currency),
            "tolls": self.tolls, "violations": self.violations,
            "more": self.is_cut, "problem": self.problem,
        })
    }
}

/// Drafts an invoice that bills the first of these items, and what is left of the price of its rental unless an earlier draft of
/// the same list does. Returns how many of the items it bills.
pub(super) async fn draft(
    store: &dyn Store,
    organization: &Organization,
    of: Billed<'_>,
    items: &[Item],
    with_price: bool,
) -> Result<(Draft, usize), Error> {
    let mut draft = Draft::default();
    if let Some(rental) = of.rental.filter(|rental| with_price && !rental.left_to_bill().is_zero()) {
        draft.add("rental_id", &rental.id, rental.left_to_bill());
    }
    let items = &items[..items.len().min(MOST_LINES - draft.lines.len())];
    let mut new = [0; 2];
    for Item { place: (kind, Reverse(id)), left, invoices, .. } in items {
        let (member, fee, count) = match kind {
            Charge::Toll => ("toll_id", TOLL_FEE, &mut draft.tolls),
            Charge::Violation => ("violation_id", VIOLATION_FEE, &mut draft.violations),
        };
        *count += 1;
        new[*kind as usize] += u32::from(has_fee(store, organization, of.customer, (fee, invoices)).await?);
        draft.add(member, id, *left);
    }
    draft.add_fee(TOLL_FEE, new[0], organization.toll_fee, organization);
    draft.add_fee(VIOLATION_FEE, new[1], organization.violation_fee, organization);
    let taxed = organization.taxed(draft.sum);
    (draft.tax, draft.total) = (taxed.map(|(tax, _)| tax), taxed.map_or(draft.sum, |(_, total)| total));
    draft.problem = match of.rental {
        Some(rental) if rental.price().is_none() && rental.invoice_ids.is_empty() && with_price => {
            Some("This rental has no price. Set its `final_price`, or create an invoice with the amount in a line.")
        }
        Some(_) if draft.lines.is_empty() => Some("Nothing of this rental is left to bill."),
        None if draft.lines.is_empty() => {
            Some("Nothing is left to bill of this customer that belongs to no rental of the customer.")
        }
        _ if draft.total == Money::MAX => Some(
            "Its lines add up to more than the largest amount. Lower the fees of the organization, or bill it with several invoices.",
        ),
        _ => None,
    };
    Ok((draft, items.len()))
}

/// Whether the server is about to derive again who pays one of these, because something that decides it has changed.
pub(super) async fn are_derived_again(
    store: &dyn Store,
    organization: &Organization,
    items: &[Item],
) -> Result<bool, Error> {
    let mut marks: Vec<Key> =
        items.iter().flat_map(|item| &item.decided_by).map(|decides| key::recheck(organization.id, *decides)).collect();
    marks.sort_unstable();
    marks.dedup();
    Ok(!marks.is_empty() && store.get(&marks).await?.iter().any(Option::is_some))
}

/// Whether a toll or violation on these invoices has a fee: once for each customer. It has another one when the earlier invoice, and so its
/// fee, is void or all of it was credited. A void invoice is not among them. An invoice of the rest after a correction has no line
/// with a fee, and so is none that had it.
async fn has_fee(
    store: &dyn Store,
    organization: &Organization,
    customer: CustomerId,
    (fee, invoices): (&str, &[InvoiceId]),
) -> Result<bool, Error> {
    let keys: Vec<_> = invoices.iter().map(|id| Invoice::key(organization.id, *id)).collect();
    if keys.is_empty() {
        return Ok(true);
    }
    for record in store.get(&keys).await?.into_iter().flatten() {
        let invoice: Invoice = parse(&record.key, &record.value)?;
        let is_standing = Some(invoice.amount_credited) != invoice.total;
        let bills_fee = |line: &Line| line.description.as_deref().is_some_and(|text| text.starts_with(fee));
        if invoice.customer_id == customer && is_standing && invoice.lines.iter().any(bills_fee) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rental_core::{
        rows::recheck::{Marked, Recheck},
        store::{Batch, Commit, Prior, memory::Memory},
        value::VehicleId,
    };
    use uuid::Uuid;

    #[tokio::test]
    async fn what_a_mark_concerns_is_derived_again_and_nothing_else() {
        let (store, organization) = (Memory::default(), Organization::system());
        let [marked, other] = [1, 2].map(|number| Marked::vehicle(VehicleId::from_u128(number)));
        let amount = Money::parse("5", 2).unwrap();
        let item = |decides| Item {
            place: (Charge::Toll, Reverse(Uuid::from_u128(9))),
            left: amount,
            invoices: Vec::new(),
            decided_by: vec![decides],
        };
        let waits = async |decides| are_derived_again(&store, &organization, &[item(decides)]).await.unwrap();
        let (mut mark, mut done) = (Batch::default(), Batch::default());
        let place = key::recheck(organization.id, marked);
        mark.put(place.clone(), Recheck::of_all().value(), Prior::Any);
        assert_eq!(store.commit(mark).await, Ok(Commit::Applied));
        assert!(waits(marked).await && !waits(other).await);
        done.delete(place);
        assert_eq!(store.commit(done).await, Ok(Commit::Applied));
        assert!(!waits(marked).await);
    }
}
