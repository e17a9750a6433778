//! Structs that are made of checked values: the macro that declares them, and the trait that it implements.

use crate::value::{FieldValue, FromField};
use std::borrow::Cow;

/// Gives the name and the value of the next field, in the order of the struct.
pub type Next<'a, 'v> = &'a mut dyn FnMut() -> Option<(&'static str, Cow<'v, FieldValue>)>;

/// A struct that is made of checked values, without JSON in between. `fields!` implements it.
pub trait FromFields: Sized {
    /// Makes the struct of its fields in their order.
    ///
    /// # Errors
    /// The name of the first field that does not come next, or whose value has another type.
    fn from_fields(next: Next<'_, '_>) -> Result<Self, &'static str>;

    /// Sets one field.
    ///
    /// # Errors
    /// The name of the field, when the struct has no such field, or one of another type.
    fn set(&mut self, name: &'static str, value: &FieldValue) -> Result<(), &'static str>;
}

/// Declares a struct whose fields are those of its description, in the same order, and implements [`FromFields`].
macro_rules! fields {
    ($(#[$meta:meta])* pub struct $name:ident { $(pub $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        pub struct $name {
            $(pub $field: $type,)+
        }

        impl $crate::value::FromFields for $name {
            fn from_fields(next: $crate::value::Next<'_, '_>) -> Result<Self, &'static str> {
                Ok(Self { $($field: $crate::value::read(stringify!($field), next)?,)+ })
            }

            fn set(&mut self, name: &'static str, value: &$crate::value::FieldValue) -> Result<(), &'static str> {
                match name {
                    $(stringify!($field) => {
                        self.$field = $crate::value::FromField::from_field(value).ok_or(name)?;
                    })+
                    _ => return Err(name),
                }
                Ok(())
            }
        }
    };
}

pub(crate) use fields;

/// The next field, which must be the one called `name`.
pub(crate) fn read<T: FromField>(name: &'static str, next: Next<'_, '_>) -> Result<T, &'static str> {
    let (found, value) = next().ok_or(name)?;
    if found == name { T::from_field(&value).ok_or(name) } else { Err(name) }
}
