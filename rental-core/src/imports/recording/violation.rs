//! Violations. A list contains the present state of each violation, so the last row replaces earlier ones.

use super::importable::{Importable, NewObject, with_other_zeros};
use crate::{
    imports::statements::ViolationRow,
    resources::violation::{self, Violation},
    value::{Money, Name, Plate, Text, VehicleId},
};

impl Importable for Violation {
    type Row = ViolationRow;

    fn from_row(row: &ViolationRow, new: &NewObject<'_, Self::Kind>) -> Self {
        let mut violation = Self {
            id: new.id,
            object: violation::SPEC.object.into(),
            summons_number: row.summons_number.clone(),
            issuer: Some(new.issuer.clone()),
            amount_due: row.amount_due,
            currency: new.organization.default_currency,
            vehicle_id: None,
            customer_id: None,
            plate: None,
            state: None,
            issue_date: None,
            violation_time: None,
            issued_on: None,
            issued_at: None,
            time_zone: None,
            violation: None,
            fine_amount: None,
            penalty_amount: None,
            interest_amount: None,
            reduction_amount: None,
            payment_amount: None,
            issuing_agency: None,
            status: None,
            plate_type: None,
            respond_by: None,
            attribution: None,
            rental_id: None,
            attribution_reason: None,
            review_reason: None,
            amount_billed: Money::default(),
            invoice_ids: Vec::new(),
            created_at: new.created_at,
            updated_at: new.created_at,
        };
        copy(&mut violation, row);
        violation
    }

    fn identity(&self) -> Option<String> {
        self.issuer.as_deref().map(|issuer| violation::identity(issuer, &self.summons_number))
    }

    fn correct(&mut self, row: &ViolationRow, vehicle: Option<VehicleId>, _: Money) -> Option<()> {
        copy(self, row);
        self.vehicle_id = self.vehicle_id.or(vehicle);
        Some(())
    }

    fn respellings(&self) -> Vec<Self> {
        let others = with_other_zeros(&self.summons_number);
        let numbers = others.iter().filter_map(|number| Name::parse(number, 255).ok());
        numbers.map(|summons_number| Self { summons_number, ..self.clone() }).collect()
    }

    /// One of the same car and day.
    fn is_respelled(&self, other: &Self) -> bool {
        let plate = |one: &Self| Plate::parse(one.plate.as_deref()?, one.state.as_deref()).map(|plate| plate.number);
        plate(self) == plate(other) && self.issued_on == other.issued_on
    }

    /// Cities correct a plate or a day. Both at once are another violation: one of the numbers is wrong, and nothing may be lost
    /// for it.
    fn contradiction(&self, other: &Self) -> Option<&'static str> {
        let plate = |one: &Self| Plate::parse(one.plate.as_deref()?, one.state.as_deref());
        let plates_differ = plate(self).zip(plate(other)).is_some_and(|(one, other)| {
            one.number != other.number || one.state.zip(other.state).is_some_and(|(one, other)| one != other)
        });
        let days_differ = self.issued_on.zip(other.issued_on).is_some_and(|(one, other)| one != other);
        (plates_differ && days_differ).then_some("plate and day")
    }

    fn amounts(&self) -> Vec<Money> {
        let parts =
            [self.fine_amount, self.penalty_amount, self.interest_amount, self.reduction_amount, self.payment_amount];
        std::iter::once(self.amount_due).chain(parts.map(Option::unwrap_or_default)).collect()
    }

    /// The plate and the day.
    fn place(&self) -> Option<String> {
        let plate = Plate::parse(self.plate.as_deref()?, None)?.number;
        Some(format!("{plate}\n{}", self.issued_on?))
    }

    fn remark(before: &[Money], after: &[Money]) -> Option<&'static str> {
        let (&[was_due, ..], &[due, _, _, _, reduction, payment]) = (before, after) else { return None };
        let is_settled = due.is_zero() && !was_due.is_zero() && reduction.is_zero() && payment.is_zero();
        is_settled.then_some(
            "states that nothing is due any more, and not whether it was paid or dismissed; if the fleet has paid it, set \
             `payment_amount`, because nobody is billed for it otherwise",
        )
    }
}

/// Whether both are known and not equal.
fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Copies the values of the row. A field without a value in the row stays unchanged.
fn copy(violation: &mut Violation, row: &ViolationRow) {
    fn keep<T: Clone>(old: &mut Option<T>, new: &Option<T>) {
        if new.is_some() {
            old.clone_from(new);
        }
    }
    violation.amount_due = row.amount_due;
    // The state belongs to the plate, and the time to the day: another one says nothing about what is known.
    let number = |plate: &Option<Text>| Plate::parse(plate.as_deref()?, None).map(|plate| plate.number);
    if differ(number(&violation.plate), number(&row.plate)) {
        violation.state = None;
    }
    if differ(violation.issued_on, row.issued_on) {
        (violation.issued_at, violation.violation_time) = (None, None);
    }
    keep(&mut violation.plate, &row.plate);
    keep(&mut violation.state, &row.state);
    keep(&mut violation.issue_date, &row.issue_date);
    keep(&mut violation.violation_time, &row.violation_time);
    keep(&mut violation.violation, &row.violation);
    keep(&mut violation.fine_amount, &row.fine_amount);
    keep(&mut violation.penalty_amount, &row.penalty_amount);
    keep(&mut violation.interest_amount, &row.interest_amount);
    keep(&mut violation.reduction_amount, &row.reduction_amount);
    keep(&mut violation.payment_amount, &row.payment_amount);
    keep(&mut violation.issuing_agency, &row.issuing_agency);
    keep(&mut violation.status, &row.status);
    keep(&mut violation.plate_type, &row.plate_type);
    keep(&mut violation.respond_by, &row.respond_by);
    keep(&mut violation.issued_on, &row.issued_on);
    // The zone belongs to the time: a row without one says nothing about the clocks of a time that is known.
    if row.issued_at.is_some() || violation.issued_at.is_none() {
        keep(&mut violation.time_zone, &row.time_zone);
    }
    keep(&mut violation.issued_at, &row.issued_at);
}
