//! What an object means for keys beside its own: the nights that it holds, the look-ups that find it, what it bills.
//! A resource says it once, as a value.

use super::{hold::Hold, index::IndexPrefix};
use crate::value::{CustomerId, Money};
use uuid::Uuid;

/// Who pays for something and how much: fixed while an invoice bills it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Charge {
    /// Who it is attached to.
    pub customer: Option<CustomerId>,
    /// How much, if that is fixed too: what is due to a city changes when somebody pays it.
    pub amount: Option<Money>,
}

/// Everything that an object means beside itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// The nights for which it holds a vehicle.
    pub hold: Option<Hold>,
    /// Its entries in indexes and look-ups, without the organization and the id.
    pub entries: Vec<IndexPrefix>,
    /// What there can be only one of, in words; looked at when the object is made.
    pub identity: Option<String>,
    /// The tolls and violations that it bills, which share one kind of row.
    pub bills: Vec<Uuid>,
    /// What an invoice can bill of it.
    pub charge: Option<Charge>,
}
