//! The description of one field, and how a resource writes it down.

use super::kind::Kind;

/// When a request may carry a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// Set by the server alone.
    Never,
    /// May be sent.
    Optional,
    /// Must be sent.
    Required,
}

/// One field of a resource.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name in JSON.
    pub name: &'static str,
    /// Which values it holds.
    pub kind: Kind,
    /// Whether POST takes it.
    pub create: Presence,
    /// Whether PATCH takes it.
    pub update: Presence,
    /// Whether it can be empty, which is written `null`.
    pub nullable: bool,
    /// The value as JSON text when a POST does not send the field; without a default it is `null`.
    pub default: Option<&'static str>,
    /// One sentence for documents.
    pub doc: &'static str,
    /// An example value as JSON text.
    pub example: &'static str,
}

/// A field that only the server sets.
#[must_use]
pub const fn field(name: &'static str, kind: Kind, doc: &'static str, example: &'static str) -> FieldSpec {
    FieldSpec {
        name,
        kind,
        create: Presence::Never,
        update: Presence::Never,
        nullable: false,
        default: None,
        doc,
        example,
    }
}

impl FieldSpec {
    /// Required on POST, changeable on PATCH, never empty.
    #[must_use]
    pub const fn required(mut self) -> Self {
        (self.create, self.update) = (Presence::Required, Presence::Optional);
        self
    }

    /// Optional on POST and PATCH; empty until set, and cleared by `null`.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        (self.create, self.update, self.nullable) = (Presence::Optional, Presence::Optional, true);
        self
    }

    /// Optional on POST and PATCH, never empty: starts as this JSON text.
    #[must_use]
    pub const fn starts_as(mut self, default: &'static str) -> Self {
        (self.create, self.update, self.default) = (Presence::Optional, Presence::Optional, Some(default));
        self
    }

    /// May be empty.
    #[must_use]
    pub const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Not changed by PATCH.
    #[must_use]
    pub const fn fixed(mut self) -> Self {
        self.update = Presence::Never;
        self
    }

    /// Set by PATCH alone.
    #[must_use]
    pub const fn update_only(mut self) -> Self {
        (self.create, self.update) = (Presence::Never, Presence::Optional);
        self
    }
}
