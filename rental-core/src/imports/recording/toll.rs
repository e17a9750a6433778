//! Tolls. A statement can repeat, correct and credit them.

use super::importable::{Importable, NewObject};
use crate::{
    imports::{RowOutcome, statements::TollRow},
    resources::toll::{self, Toll},
    schema::IndexPrefix,
    value::{Money, VehicleId},
};

impl Importable for Toll {
    type Row = TollRow;

    const REPEATED_IN_DRY_RUN: RowOutcome = RowOutcome::Duplicate;

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
            plaza: row.plaza.clone(),
            plate: row.plate.clone(),
            plate_state: row.plate_state.clone(),
            transponder_number: row.transponder_number.clone(),
            attribution: None,
            rental_id: None,
            created_at: new.created_at,
            updated_at: new.created_at,
        }
    }

    fn identity(&self) -> Option<String> {
        Self::identity(self)
    }

    /// The agency reports a transaction again with another amount. The toll's amount changes by the difference.
    fn correct(&mut self, row: &TollRow, _: Option<VehicleId>, before: Money) -> Option<()> {
        self.amount = self.amount.plus(row.amount)?.minus(before)?;
        Some(())
    }

    fn stated_amount(row: &TollRow) -> Option<Money> {
        Some(row.amount)
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
