//! Tolls. A statement can repeat, correct and credit them.

use super::importable::{Importable, NewObject, with_other_zeros};
use crate::{
    imports::statements::TollRow,
    resources::{
        Attributable,
        toll::{self, Toll},
    },
    schema::IndexPrefix,
    value::{Date, Money, Plate, Text, VehicleId, folded, same_tag, tag_digits, tag_number, tag_serial},
};

impl Importable for Toll {
    type Row = TollRow;

    fn from_row(row: &TollRow, new: &NewObject<'_, Self::Kind>) -> Self {
        let zone = new.organization.time_zone;
        Self {
            id: new.id,
            object: toll::SPEC.object.into(),
            amount: row.amount,
            currency: new.organization.default_currency,
            agency: row.agency.clone(),
            vehicle_id: None,
            customer_id: None,
            transaction_id: row.transaction_id.clone(),
            occurred_at: row.occurred_at,
            occurred_on: row.occurred_on.or_else(|| row.occurred_at.map(|time| zone.local(time).date())),
            time_zone: row.time_zone,
            plaza: row.plaza.clone(),
            plate: row.plate.clone(),
            plate_state: row.plate_state.clone(),
            transponder_number: row.transponder_number.clone(),
            attribution: None,
            rental_id: None,
            attribution_reason: None,
            review_reason: None,
            amount_billed: Money::default(),
            invoice_ids: Vec::new(),
            created_at: new.created_at,
            updated_at: new.created_at,
        }
    }

    fn identity(&self) -> Option<String> {
        Self::identity(self)
    }

    /// The agency reports a transaction again with another amount. The toll's amount changes by the difference. When all of it was
    /// given back, the agency charges it anew.
    fn correct(&mut self, row: &TollRow, _: Option<VehicleId>, before: Money) -> Option<()> {
        let is_given_back = self.amount.is_zero();
        self.amount = if is_given_back { row.amount } else { self.amount.plus(row.amount)?.minus(before)? };
        Some(())
    }

    fn stated_amount(row: &TollRow) -> Option<Money> {
        Some(row.amount)
    }

    fn respellings(&self) -> Vec<Self> {
        match (&self.transaction_id, &self.transponder_number) {
            (Some(number), _) => {
                let respelled = |number: String| Self { transaction_id: Some(Text::fit(&number, 255)), ..self.clone() };
                with_other_zeros(number).into_iter().map(respelled).collect()
            }
            (None, Some(tag)) => {
                let respelled = |tag: String| Self { transponder_number: Some(Text::fit(&tag, 255)), ..self.clone() };
                tag_digits(tag).iter().flat_map(|tag| with_other_zeros(tag)).map(respelled).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// Agencies never reuse a number. So another vehicle, time or plaza means that a number is wrong, and nothing may be lost
    /// for it.
    fn contradiction(&self, other: &Self) -> Option<&'static str> {
        fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.zip(other).is_some_and(|(one, other)| one != other)
        }
        let tag = |toll: &Self| toll.transponder_number.as_deref().and_then(tag_number);
        let tags_differ = tag(self).zip(tag(other)).is_some_and(|(one, other)| !same_tag(&one, &other));
        let plate = |toll: &Self| Plate::parse(toll.plate.as_deref()?, toll.plate_state.as_deref());
        let plates_differ = plate(self)
            .zip(plate(other))
            .is_some_and(|(one, other)| one.number != other.number || differ(one.state, other.state));
        let plaza = |toll: &Self| toll.plaza.as_deref().map(folded);
        // An hour that came twice can be stated by the clocks in one file and with an offset in another one.
        let times_differ = match (self.when().instants(), other.when().instants()) {
            (Some(one), Some(other)) => one.0 != other.0 && one.0 != other.1 && one.1 != other.0,
            _ => differ(self.occurred_on, other.occurred_on),
        };
        // Equal identifiers mean one row: which vehicle had them then can have been corrected since. One row can have the tag and
        // another one the plate: they are of one car only when both are known to be those of one vehicle.
        let identifiers = |toll: &Self| (tag(toll).map(|tag| tag_serial(&tag).to_owned()), plate(toll));
        let vehicles_differ = match (identifiers(self), identifiers(other)) {
            ((Some(_), None), (None, Some(_))) | ((None, Some(_)), (Some(_), None)) => {
                self.vehicle_id.is_none() || self.vehicle_id != other.vehicle_id
            }
            (one, other_one) => one != other_one && differ(self.vehicle_id, other.vehicle_id),
        };
        let found = [
            (tags_differ || plates_differ || vehicles_differ, "vehicle"),
            (times_differ, "time"),
            (differ(plaza(self), plaza(other)), "plaza"),
        ];
        found.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }

    /// Its time.
    fn is_completed_by(&self, other: &Self) -> bool {
        self.occurred_at.is_none() && other.occurred_at.is_some()
    }

    fn complete(&mut self, other: &Self) {
        (self.occurred_at, self.time_zone) = (other.occurred_at, other.time_zone.or(self.time_zone));
        self.occurred_on = other.occurred_on.or(self.occurred_on);
    }

    fn is_told_by_day(&self) -> bool {
        self.transaction_id.is_none() && self.occurred_at.is_none()
    }

    fn at(row: &TollRow) -> Option<i64> {
        /// Days from 0001-01-01 to 1970-01-01.
        const TO_1970: i64 = 719_162;
        let midnight = |day: Date| (i64::from(day.day_number()) - TO_1970) * 24 * 3600 * 1000;
        let instant = row.occurred_at.and_then(|at| i64::try_from(at.millis()).ok());
        instant.or_else(|| row.occurred_on.map(midnight))
    }

    fn is_credit(row: &TollRow) -> bool {
        row.credit
    }

    fn credit_look_up(&self) -> Option<IndexPrefix> {
        self.passage()
    }

    fn take_back(&mut self, credit: &TollRow) -> Option<()> {
        self.amount = self.amount.minus(credit.amount)?;
        Some(())
    }
}
