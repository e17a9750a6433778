//! The rows of a toll agency's statement.

use super::{
    amount::Signed,
    cells::{bare, loss, text},
    field::Field,
    formats::{Kind, NOT_TOLLS, TOLLS},
    mapping::Charges,
    row::{NotRecorded, StatementRow, Values},
    when,
};
use crate::value::{Date, Money, Name, Plate, SignedMoney, Text, Timestamp, When, Zone, tag_and_no_plate, tag_digits};

/// A charge or a credit of a toll agency's statement.
#[derive(Clone, Debug, PartialEq)]
pub struct TollRow {
    /// The amount, always more than 0.
    pub amount: Money,
    /// Whether the row is a credit: the agency refunds a toll.
    pub credit: bool,
    /// The agency that charged the toll.
    pub agency: Name,
    /// The agency's number of the transaction, if its format has one.
    pub transaction_id: Option<Text>,
    /// The local date of the passage.
    pub occurred_on: Option<Date>,
    /// The instant of the passage, if the statement has a time of day. A local time that occurred twice gets the earlier
    /// instant.
    pub occurred_at: Option<Timestamp>,
    /// Where the clocks are that showed the time or the day; `None` when the time has an offset from UTC.
    pub time_zone: Option<Zone>,
    /// The name of the plaza or gantry.
    pub plaza: Option<Text>,
    /// The plate as reported; without its state if it is from a column for both tags and plates.
    pub plate: Option<Text>,
    /// The state as reported, or the one that was part of the plate.
    pub plate_state: Option<Text>,
    /// The transponder's number as reported; its digits only if it is from a column for both tags and plates.
    pub transponder_number: Option<Text>,
}

/// Transponder, plate and the plate's state.
type Identifiers = (Option<Text>, Option<Text>, Option<Text>);

impl StatementRow for TollRow {
    const KIND: &'static Kind = &TOLLS;

    fn read(values: &Values<'_>) -> Result<Self, NotRecorded> {
        skip(values)?;
        let (amount, credit) = amount(values)?;
        if amount.is_zero() {
            return Err(NotRecorded::Skipped("no charge: the amount is 0"));
        }
        let agency = agency(values, credit)?;
        let When { on: occurred_on, at: occurred_at, zone: time_zone } = occurred(values)?;
        let (transponder_number, plate, plate_state) = vehicle(values)?;
        Ok(Self {
            amount,
            credit,
            agency,
            transaction_id: values.number(Field::TransactionId)?.filter(|number| !number.is_empty()),
            occurred_on,
            occurred_at,
            time_zone,
            plaza: values.text(Field::Plaza)?,
            plate,
            plate_state,
            transponder_number,
        })
    }

    fn sum(&self) -> SignedMoney {
        signed(self.amount, self.credit)
    }

    fn sum_of(values: &Values<'_>) -> Option<SignedMoney> {
        amount(values).ok().map(|(amount, credit)| signed(amount, credit))
    }
}

fn signed(amount: Money, credit: bool) -> SignedMoney {
    if credit { -SignedMoney::from(amount) } else { amount.into() }
}

/// Skips rows whose type says that they are no tolls.
fn skip(values: &Values<'_>) -> Result<(), NotRecorded> {
    let other = |given: &str| NOT_TOLLS.iter().any(|word| given.to_lowercase().contains(word));
    if values.all(Field::Kind).any(other) {
        return Err(NotRecorded::Skipped("a payment or a fee of the account, not a toll"));
    }
    Ok(())
}

/// The amount, and whether it is a credit.
fn amount(values: &Values<'_>) -> Result<(Money, bool), String> {
    if !values.plan.layout.has(Field::Debit) {
        let Signed { negative, money } = values.amount(Field::Amount)?.ok_or_else(|| values.blank(Field::Amount))?;
        return Ok((money, negative == (values.plan.mapping.charges == Charges::Positive)));
    }
    let (debit, credit) = (values.amount(Field::Debit)?, values.amount(Field::Credit)?);
    if [debit, credit].into_iter().flatten().any(|signed| signed.negative) {
        return Err("has a negative debit or credit, which could mean either; correct the row, or give both columns to `amount` in a mapping".into());
    }
    match (debit.map(|signed| signed.money), credit.map(|signed| signed.money)) {
        (None, None) => Err(values.blank(Field::Debit)),
        (Some(debit), Some(credit)) if !debit.is_zero() && !credit.is_zero() => {
            Err("has both a debit and a credit; correct the row".into())
        }
        (Some(debit), credit) if !debit.is_zero() || credit.is_none() => Ok((debit, false)),
        (_, credit) => Ok((credit.unwrap_or_default(), true)),
    }
}

fn agency(values: &Values<'_>, credit: bool) -> Result<Name, NotRecorded> {
    if let Some(agency) = &values.plan.mapping.agency {
        return Ok(agency.clone());
    }
    match values.agency(Field::Agency)? {
        Some(agency) => Ok(agency),
        // A credit without an agency refunds no toll.
        None if credit && !values.plan.strict => {
            Err(NotRecorded::Skipped("money that came in without an agency: a payment, not a toll"))
        }
        None => Err(NotRecorded::Invalid(values.blank(Field::Agency))),
    }
}

/// The local date, and the instant if there is a time of day.
fn occurred(values: &Values<'_>) -> Result<When, String> {
    let field = if values.plan.layout.has(Field::Date) { Field::Date } else { Field::OccurredAt };
    match values.get(field) {
        None if !values.plan.strict => Err(values.blank(field)),
        _ => when::read(values, false),
    }
}

/// The identifiers of the vehicle. One whose value is lost is left out if there is another.
fn vehicle(values: &Values<'_>) -> Result<Identifiers, String> {
    let mut lost = None;
    let mut known = |field: Field| match values.get(field).and_then(|given| loss(&bare(&given), values.label(field))) {
        Some(why) => {
            lost = Some(why);
            Ok(None)
        }
        None => values.identifier(field).map(|known| known.filter(|known| !known.is_empty())),
    };
    let (mut tag, mut plate, mut state) = (known(Field::Transponder)?, known(Field::Plate)?, known(Field::PlateState)?);
    if let Some(given) = values.get(Field::TagOrPlate) {
        let label = values.label(Field::TagOrPlate);
        let given = text(&bare(given.trim_matches(['\'', '"'])), label)?;
        if let Some(why) = loss(&given, label).filter(|_| tag_digits(&given).is_none()) {
            lost = Some(why);
        } else if let Some(number) = tag_and_no_plate(&given) {
            tag = tag.map_or_else(|| text(&number, label).map(Some), |tag| Ok(Some(tag)))?;
        } else if let (None, Some(found)) = (&plate, Plate::parse(&given, state.as_deref())) {
            plate = Some(text(&found.number, label)?);
            state = found.state.map(|state| text(&state, label)).transpose()?.or(state);
        }
    }
    match lost {
        Some(why) if plate.is_none() && tag.is_none() => Err(why),
        _ => Ok((tag, plate, state)),
    }
}
