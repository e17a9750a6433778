//! What calls take as the id of an object.

use crate::value::Id;
use std::fmt::Display;

/// The id of an object of kind `K`: an [`Id<K>`](Id), or text, such as a segment of a path. Text that is no id names nothing.
///
/// An id of another kind does not compile:
///
/// ```compile_fail,E0277
/// use rental_core::{error::Error, platform::Fleet, resources::{rental::Rental, vehicle::Vehicle}};
///
/// async fn vehicle_of(fleet: &Fleet, rental: &Rental) -> Result<String, Error> {
///     Ok(fleet.get::<Vehicle>(rental.id).await?.name.to_string())
/// }
/// ```
///
/// With the id of a vehicle it compiles:
///
/// ```
/// use rental_core::{error::Error, platform::Fleet, resources::{rental::Rental, vehicle::Vehicle}};
///
/// async fn vehicle_of(fleet: &Fleet, rental: &Rental) -> Result<String, Error> {
///     Ok(fleet.get::<Vehicle>(rental.vehicle_id).await?.name.to_string())
/// }
/// ```
pub trait IdOf<K>: Display {}

impl<K> IdOf<K> for Id<K> {}
impl<K> IdOf<K> for &str {}
impl<K> IdOf<K> for String {}
impl<K> IdOf<K> for &String {}
