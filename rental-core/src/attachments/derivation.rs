//! Who pays for a toll or violation, by what is recorded now.

use crate::{
    error::Error,
    fleet::{
        VehicleMatch,
        attribution::{Candidate, Verdict, When, decide},
        rentals_around, vehicle_of,
    },
    resources::{Attributable, organization::Organization},
    store::Store,
    value::VehicleId,
};

/// Who pays for an object, by what is recorded now.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The vehicle, if it is known.
    pub vehicle: Option<VehicleId>,
    /// Whether one customer clearly pays.
    pub verdict: Verdict,
}

impl Derived {
    /// The rental whose customer clearly pays.
    #[must_use]
    pub fn clear(&self) -> Option<&Candidate> {
        match &self.verdict {
            Verdict::Clear(candidate) => Some(candidate),
            Verdict::Unclear(..) | Verdict::Nobody(..) => None,
        }
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        match &self.verdict {
            Verdict::Clear(candidate) => &candidate.reason,
            Verdict::Unclear(reason, _) | Verdict::Nobody(reason, _) => reason,
        }
    }
}

/// Derives who pays for an object. Its transponder and plate find the vehicle; an object without both keeps the one it has.
///
/// # Errors
/// The store is not available.
pub async fn derive<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    object: &T,
) -> Result<Derived, Error> {
    let nobody = |why: &str| Verdict::Nobody(why.to_owned(), Vec::new());
    let [tag, plate, state] = object.identifiers();
    let whose = match object.known_vehicle() {
        Some(vehicle) if tag.is_none() && plate.is_none() => VehicleMatch::One(vehicle),
        _ => vehicle_of(store, organization.id, tag, (plate, state)).await?,
    };
    let vehicle = match whose {
        VehicleMatch::One(vehicle) => vehicle,
        VehicleMatch::None => {
            let verdict = nobody("No vehicle has this transponder or plate.");
            return Ok(Derived { vehicle: None, verdict });
        }
        VehicleMatch::Unclear(why) => {
            return Ok(Derived { vehicle: None, verdict: Verdict::Unclear(why, Vec::new()) });
        }
    };
    let (at, on) = object.when();
    let when = When { at, on };
    let Some(about) = when.about(organization.time_zone) else {
        return Ok(Derived { vehicle: Some(vehicle), verdict: nobody("It is not known when it happened.") });
    };
    let rentals = rentals_around(store, organization.id, vehicle, about).await?;
    Ok(Derived { vehicle: Some(vehicle), verdict: decide(&rentals, when, object.occasion()) })
}
