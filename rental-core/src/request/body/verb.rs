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

/// Whether a body of `verb` may or must have the field.
pub(super) fn presence(field: &FieldSpec, verb: Verb) -> Presence {
    match verb {
        Verb::Create => field.create,
        Verb::Update => field.update,
        Verb::Whole => Presence::Required,
    }
}
