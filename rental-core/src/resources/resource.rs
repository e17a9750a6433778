//! The traits of all resources, the macro that declares their structs, and the JSON of their stored objects.

use crate::{
    error::{Error, FieldCode},
    rows::key,
    schema::{Ask, Effects, IndexPrefix, IndexValue, ResourceSpec},
    store::Key,
    value::{Id, Members, OrganizationId, Text, Timestamp},
};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use std::{any::Any, fmt};
use uuid::Uuid;

/// The fields that code for all resources reads and writes. The macro `fields!` implements it.
pub trait Object {
    /// What its ids name: the `K` of its [`Id`].
    type Kind: 'static;

    /// The id of the object.
    fn id(&self) -> Id<Self::Kind>;

    /// The value of a field in the key of an index entry; `None` when the field is `null`.
    fn index_value(&self, field: &str) -> Option<IndexValue<'_>>;

    /// Sets `updated_at` for a change at `now`.
    fn touch(&mut self, now: Timestamp);
}

/// A resource: the struct of its objects and its description.
pub trait Resource: Object + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The description, which checks, indexes and the documentation use.
    const SPEC: &'static ResourceSpec;
    /// How new objects are numbered; `None` when they are not.
    const SERIES: Option<Series> = None;

    /// The key of the object of `organization` with this id.
    #[must_use]
    fn key(organization: OrganizationId, id: Id<Self::Kind>) -> Key {
        key::record(organization, Self::SPEC, id.uuid())
    }

    /// The organization that the object names: the owner of a key or webhook endpoint, or an organization itself.
    fn organization(&self) -> Option<OrganizationId> {
        match self.index_value("organization_id") {
            Some(IndexValue::Id(id)) => Some(OrganizationId::from_uuid(id)),
            _ => None,
        }
    }

    /// What a filter compares that is no field of the object, such as `billed`.
    fn computed(&self, _name: &str) -> Option<bool> {
        None
    }

    /// The value of a field, or of what is computed, in the key of an index entry.
    fn indexed(&self, name: &str) -> Option<IndexValue<'_>> {
        let computed = || self.computed(name).map(|is| IndexValue::Text(if is { "true" } else { "false" }));
        self.index_value(name).or_else(computed)
    }

    /// The rows derived from the object, without its index entries; [`effects::of`](super::effects::of) adds them.
    fn effects(&self) -> Effects {
        Effects::default()
    }

    /// What a POST, or a PATCH of `before`, asks for the notices of its response.
    fn asks(&self, _before: Option<&Self>) -> Vec<Ask> {
        Vec::new()
    }

    /// The entry of the object in the index over these fields; `None` while one of them is null.
    fn entry(&self, fields: &[&str]) -> Option<IndexPrefix> {
        Self::SPEC.index_over(fields, None)?.with(|field| self.indexed(field))
    }

    /// The `updated_at` of an object that changes at `now`; never earlier than before.
    ///
    /// Where a list is ordered by `updated_at`, it is always later than before: also for two changes within one millisecond
    /// or after the clock was set back. So the list shows the object again.
    #[must_use]
    fn update_time(before: Timestamp, now: Timestamp) -> Timestamp {
        match Self::SPEC.ranges {
            [] => before.max(now),
            _ if now > before => now,
            _ => before.plus_millis(1),
        }
    }
}

/// How the objects of a resource are numbered: without gaps within an organization.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The name of the counter.
    pub counter: &'static str,
    /// The text before the number, with its hyphen.
    pub prefix: &'static str,
    /// The field with the number.
    pub field: &'static str,
}

impl Series {
    /// The text of a number: `INV-000042`.
    #[must_use]
    pub fn text(self, number: u64) -> Text {
        Text::fit(&format!("{}{number:06}", self.prefix), 255)
    }

    /// The number in a text; `None` when it is none of this series.
    #[must_use]
    pub fn number(self, text: &str) -> Option<u64> {
        text.strip_prefix(self.prefix)?.parse().ok()
    }

    /// The number of a stored object of this series.
    pub(crate) fn number_of(self, json: &[u8]) -> Option<u64> {
        let members = Members::parse(json).ok()?;
        self.number(&serde_json::from_str::<String>(members.get(self.field)?).ok()?)
    }

    /// Checks that the number of an imported object is the next one.
    pub(crate) fn check(self, number: Option<&str>, next: u64, what: &str) -> Result<(), Error> {
        let next = self.text(next);
        if number == Some(&*next) {
            return Ok(());
        }
        let rule = format!(
            "must be {next}, the next one of this organization: numbers have no gaps, and none is given twice; import \
             the {what} before this one first"
        );
        Err(Error::field(self.field, FieldCode::Invalid, &rule))
    }
}

/// Declares a struct and implements [`FromFields`](crate::value::FromFields). The fields must be those of the resource's
/// SPEC, in the same order. If the first field is `id`, the struct is that of a resource, and gets [`Object`] too.
macro_rules! fields {
    ($(#[$meta:meta])* pub struct $name:ident { pub id: $id:ty, $(pub $field:ident: $type:ty,)+ }) => {
        $crate::resources::fields! { @ $(#[$meta])* pub struct $name { pub id: $id, $(pub $field: $type,)+ } }

        impl $crate::resources::Object for $name {
            type Kind = <$id as $crate::value::IdType>::Kind;

            fn id(&self) -> $id {
                self.id
            }

            fn index_value(&self, field: &str) -> Option<$crate::value::IndexValue<'_>> {
                match field {
                    $(stringify!($field) => $crate::value::FromField::index_value(&self.$field),)+
                    _ => None,
                }
            }

            fn touch(&mut self, now: $crate::value::Timestamp) {
                self.updated_at = <Self as $crate::resources::Resource>::update_time(self.updated_at, now);
            }
        }
    };
    ($(@)? $(#[$meta:meta])* pub struct $name:ident { $($(#[$on_field:meta])* pub $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$on_field])* pub $field: $type,)+
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

/// An object whose resource is known only at run time. `&dyn Any` gives it its type again.
pub trait AnyObject: Any + Send + Sync {
    /// The organization that the object names, and the id of the object.
    fn subject(&self) -> (Option<OrganizationId>, Uuid);
}

impl<T: Resource> AnyObject for T {
    fn subject(&self) -> (Option<OrganizationId>, Uuid) {
        (self.organization(), self.id().uuid())
    }
}

impl fmt::Debug for dyn AnyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyObject").field(&self.subject().1).finish()
    }
}

/// Parses a stored object.
///
/// # Errors
/// [`Error::Damaged`]: the record does not parse.
pub fn parse<T: Resource>(key: &Key, value: &[u8]) -> Result<T, Error> {
    crate::value::read_json(value).map_err(|error| Error::damaged(key, &error))
}

/// Serializes an object for the store. [`parse`] is the inverse.
///
/// # Errors
/// [`Error::Internal`]: the object cannot be serialized, which is a bug.
pub fn to_json(object: &impl Serialize) -> Result<Bytes, Error> {
    let unwritable = |error| Error::Internal(format!("an object cannot be written as JSON: {error}"));
    serde_json::to_vec(object).map(Bytes::from).map_err(unwritable)
}
