//! The kinds of requests with a body, and the fields that each takes.

use crate::schema::{FieldSpec, Presence};

/// The kind of request that a body belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// POST: required fields must be sent, and `null` means the same as an absent field.
    Create,
    /// PATCH: an absent field stays unchanged, and `null` clears a field.
    Update,
    /// A whole object, as a GET returns it: every field must be present.
    Whole,
}

impl Verb {
    /// Whether a body of this kind may or must contain a field.
    #[must_use]
    pub fn presence(self, field: &FieldSpec) -> Presence {
        match self {
            Self::Create => field.create,
            Self::Update => field.update,
            Self::Whole => Presence::Required,
        }
    }
}
