//! The vehicles of one rental: which one its customer had before a swap, and from when to when.

use super::{FieldValue, FromField, Timestamp, VehicleId};
use serde::{Deserialize, Serialize};

/// A vehicle that the customer of a rental had before the present one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierVehicle {
    /// The vehicle.
    pub vehicle_id: VehicleId,
    /// When the customer got the next vehicle for it.
    pub until: Timestamp,
}

/// The part of a rental in which its customer has one vehicle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// The vehicle.
    pub(crate) vehicle: VehicleId,
    /// The swap that it began with; `None` for the first one, which began with the pickup.
    pub(crate) from: Option<Timestamp>,
    /// The swap that it ended with; `None` for the last one, which ends with the return.
    pub(crate) until: Option<Timestamp>,
}

impl EarlierVehicle {
    /// Most earlier vehicles of a rental.
    pub const MOST: usize = 20;

    /// The vehicle as the value of a field.
    pub(crate) fn members(self) -> Vec<(&'static str, FieldValue)> {
        let id = FieldValue::Plain(self.vehicle_id.to_string());
        vec![("vehicle_id", id), ("until", FieldValue::Time(self.until))]
    }
}

impl FromField for Vec<EarlierVehicle> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        let FieldValue::Objects(objects) = value else { return None };
        let one = |members: &Vec<(&'static str, FieldValue)>| match members.as_slice() {
            [("vehicle_id", id), ("until", until)] => {
                Some(EarlierVehicle { vehicle_id: VehicleId::from_field(id)?, until: Timestamp::from_field(until)? })
            }
            _ => None,
        };
        objects.iter().map(one).collect()
    }
}
