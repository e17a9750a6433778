//! Structs built from checked values.

use crate::value::{FieldValue, FromField};
use std::borrow::Cow;

/// Returns the name and value of the next field, in the order of the struct; `None` after the last one.
pub type Next<'a, 'v> = &'a mut dyn FnMut() -> Option<(&'static str, Cow<'v, FieldValue>)>;

/// A struct built from checked values, without JSON in between. The macro `fields!` of `resources/` implements it.
pub trait FromFields: Sized {
    /// Builds the struct from its fields, which `next` returns in the order of the struct.
    ///
    /// # Errors
    /// The name of the first field that is missing, out of order, or of another type.
    fn from_fields(next: Next<'_, '_>) -> Result<Self, &'static str>;

    /// Sets the field `name` to `value`.
    ///
    /// # Errors
    /// `name`, when the struct has no such field or the field has another type.
    fn set(&mut self, name: &'static str, value: &FieldValue) -> Result<(), &'static str>;
}

/// Builds the structs of a list of objects; `None` when it is no such list.
pub(crate) fn objects<T: FromFields>(value: &FieldValue) -> Option<Vec<T>> {
    let FieldValue::Objects(objects) = value else { return None };
    let one = |members: &Vec<(&'static str, FieldValue)>| {
        let mut members = members.iter().map(|(name, value)| (*name, Cow::Borrowed(value)));
        T::from_fields(&mut || members.next()).ok()
    };
    objects.iter().map(one).collect()
}

/// Takes the next field; an error unless it is called `name`.
pub(crate) fn read<T: FromField>(name: &'static str, next: Next<'_, '_>) -> Result<T, &'static str> {
    let (found, value) = next().ok_or(name)?;
    if found == name { T::from_field(&value).ok_or(name) } else { Err(name) }
}
