//! The rows derived from an object: index entries, look-ups, holds, billing markers. A resource computes them as a value.

use super::{hold::Hold, index::IndexPrefix};
use crate::value::{CustomerId, Money};
use uuid::Uuid;

/// Who pays for an object and how much. Neither can change while an invoice bills the object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Charge {
    /// The customer that the object is attached to.
    pub customer: Option<CustomerId>,
    /// The amount; `None` for a violation, whose amount due changes when somebody pays the city.
    pub amount: Option<Money>,
}

/// The rows derived from an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// The nights for which a rental or a block holds its vehicle.
    pub hold: Option<Hold>,
    /// The entries in indexes and look-ups, without the organization and the id.
    pub entries: Vec<IndexPrefix>,
    /// A text that only one object of the organization can have. It is checked when the object is created.
    pub identity: Option<String>,
    /// The ids of the tolls and violations that an invoice bills.
    pub bills: Vec<Uuid>,
    /// The customer whom the personal fields of the object are about.
    pub person: Option<CustomerId>,
    /// The part of the object that an invoice can bill.
    pub charge: Option<Charge>,
}
