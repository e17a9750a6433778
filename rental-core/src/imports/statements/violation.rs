//! The rows of a list of violations.

use super::{
    cells,
    field::Field,
    formats::{Kind, VIOLATIONS},
    row::{NotRecorded, StatementRow, Values},
    time, when,
};
use crate::value::{Date, Money, Name, SignedMoney, Text, Timestamp, When, Zone};

/// A violation that a list reports.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each field but the last three is documented in the SPEC of violations")]
pub struct ViolationRow {
    pub summons_number: Name,
    pub amount_due: Money,
    pub plate: Option<Text>,
    pub state: Option<Text>,
    pub issue_date: Option<Text>,
    pub violation_time: Option<Text>,
    pub violation: Option<Text>,
    pub fine_amount: Option<Money>,
    pub penalty_amount: Option<Money>,
    pub interest_amount: Option<Money>,
    pub reduction_amount: Option<Money>,
    pub payment_amount: Option<Money>,
    pub issuing_agency: Option<Text>,
    pub status: Option<Text>,
    pub plate_type: Option<Text>,
    pub respond_by: Option<Date>,
    /// `issue_date` as a date; `None` when it is no valid date, such as `51/71/2004` in New York's lists.
    pub issued_on: Option<Date>,
    /// The instant of the violation; `None` when `violation_time` is no time of day, or can be one in the morning and one in the evening.
    pub issued_at: Option<Timestamp>,
    /// Where the clocks are that showed the time; `None` without a date.
    pub time_zone: Option<Zone>,
}

impl StatementRow for ViolationRow {
    const KIND: &'static Kind = &VIOLATIONS;

    fn read(values: &Values<'_>) -> Result<Self, NotRecorded> {
        if values.get(Field::Plate).is_none() && values.is_total() {
            return Err(NotRecorded::Total);
        }
        let summons_number = values.number(Field::SummonsNumber)?.ok_or_else(|| values.blank(Field::SummonsNumber))?;
        let summons_number = cells::name(&summons_number, values.label(Field::SummonsNumber))?;
        let day = if values.plan.layout.has(Field::Date) { Field::Date } else { Field::OccurredAt };
        let When { on: issued_on, at: issued_at, zone: time_zone } = match when::read(values, true) {
            Err(_) if values.plan.is_new_york => When::default(),
            read => read?,
        };
        let mut row = Self {
            summons_number,
            amount_due: Money::default(),
            plate: values.identifier(Field::Plate)?,
            // New York writes 99 for a state that nobody read.
            state: values.text(Field::PlateState)?.filter(|state| **state != *"99"),
            issue_date: values.text(day)?,
            violation_time: values.text(Field::Time)?,
            violation: values.text(Field::Violation)?,
            fine_amount: money(values, Field::Fine)?,
            penalty_amount: money(values, Field::Penalty)?,
            interest_amount: money(values, Field::Interest)?,
            reduction_amount: money(values, Field::Reduction)?,
            payment_amount: money(values, Field::Payment)?,
            issuing_agency: values.text(Field::Agency)?,
            status: values.text(Field::Status)?,
            plate_type: values.text(Field::PlateType)?,
            respond_by: respond_by(values)?,
            issued_on,
            issued_at,
            time_zone,
        };
        let due = money(values, Field::AmountDue)?.or_else(|| {
            due([row.fine_amount, row.penalty_amount, row.interest_amount, row.reduction_amount, row.payment_amount])
        });
        row.amount_due =
            due.ok_or_else(|| format!("{}, and there is no fine to compute it from", values.blank(Field::AmountDue)))?;
        Ok(row)
    }

    fn sum(&self) -> SignedMoney {
        self.amount_due.into()
    }

    fn sum_of(values: &Values<'_>) -> Option<SignedMoney> {
        let of = |field| money(values, field).ok();
        let parts =
            [of(Field::Fine)?, of(Field::Penalty)?, of(Field::Interest)?, of(Field::Reduction)?, of(Field::Payment)?];
        of(Field::AmountDue)?.or_else(|| due(parts)).map(SignedMoney::from)
    }
}

/// The last day to respond. A day that cannot be read is refused: nobody may take it for a violation without such a day.
fn respond_by(values: &Values<'_>) -> Result<Option<Date>, String> {
    let Some(given) = values.get(Field::RespondBy) else { return Ok(None) };
    let (dates, label) = (values.plan.mapping.dates, values.label(Field::RespondBy));
    let date = time::moment(&given, dates)
        .or_else(|why| given.get(..10).and_then(Date::parse).map(|date| (date, None)).ok_or(why));
    date.map(|(date, _)| Some(date)).map_err(|why| when::no_date(why, label, &given, dates))
}

fn money(values: &Values<'_>, field: Field) -> Result<Option<Money>, String> {
    match values.amount(field)? {
        Some(signed) if signed.negative && !signed.money.is_zero() => {
            Err(format!("`{}` must be 0 or more", values.label(field)))
        }
        signed => Ok(signed.map(|signed| signed.money)),
    }
}

/// Fine + penalty + interest - reduction - payment, at least 0. Rows of the city have this amount due.
fn due([fine, penalty, interest, reduction, payment]: [Option<Money>; 5]) -> Option<Money> {
    let or_zero = Option::unwrap_or_default;
    let owed = fine?.plus(or_zero(penalty))?.plus(or_zero(interest))?;
    let less = or_zero(reduction).plus(or_zero(payment))?;
    Some(owed.minus(less).unwrap_or_default())
}
