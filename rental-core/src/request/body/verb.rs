//! The requests that have a body, and which fields each takes.

use crate::schema::{FieldSpec, Presence};

/// Which request a body belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// POST: required fields must be there, `null` is the same as absent.
    Create,
    /// PATCH: absent is unchanged, `null` clears.
    Update,
    /// A whole object, as a GET gives it: every field must be there.
    Whole,
}

impl Verb {
    /// Whether the body takes this field.
    #[must_use]
    pub fn presence(self, field: &FieldSpec) -> Presence {
        match self {
            Self::Create => field.create,
            Self::Update => field.update,
            Self::Whole => Presence::Required,
        }
    }
}
