//! The description of one field, and the functions that build it.

use super::kind::Kind;

/// Whether a request may contain a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// The request must not contain the field; only the server sets it.
    Never,
    /// The request may contain the field.
    Optional,
    /// The request must contain the field.
    Required,
}

/// Whether the values of a field tell something about a customer, and what replaces them when the customer is erased
/// ([`crate::resources::personal`]). The replacement is JSON text and valid for the field. A `null` stays `null`. In a list of
/// lines it replaces the description of each line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Personal {
    /// The values tell nothing about a customer.
    No,
    /// The values are replaced everywhere.
    Erased(&'static str),
    /// The values stay in the record, because the law requires it, and are replaced in all copies of it.
    Kept(&'static str),
}

/// One field of a resource.
#[derive(Debug)]
pub struct FieldSpec {
    /// The name of the field in JSON.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Whether a POST may or must contain it.
    pub create: Presence,
    /// Whether a PATCH may or must contain it.
    pub update: Presence,
    /// Whether the value can be `null`.
    pub nullable: bool,
    /// The value as JSON text when a POST does not send the field; without a default it is `null`.
    pub default: Option<&'static str>,
    /// Whether its values tell something about a customer.
    pub personal: Personal,
    /// One sentence for the documentation of the API.
    pub doc: &'static str,
    /// An example value as JSON text.
    pub example: &'static str,
    /// The same in a request, which can have fewer members.
    pub example_sent: &'static str,
}

/// A field that only the server sets and that is never `null`. The methods of [`FieldSpec`] change this.
#[must_use]
pub(crate) const fn field(name: &'static str, kind: Kind, doc: &'static str, example: &'static str) -> FieldSpec {
    FieldSpec {
        name,
        kind,
        create: Presence::Never,
        update: Presence::Never,
        nullable: false,
        default: None,
        personal: Personal::No,
        doc,
        example,
        example_sent: example,
    }
}

impl FieldSpec {
    /// Required in a POST, optional in a PATCH, never `null`.
    #[must_use]
    pub(crate) const fn required(mut self) -> Self {
        (self.create, self.update) = (Presence::Required, Presence::Optional);
        self
    }

    /// Optional in a POST and a PATCH. The value is `null` until it is set, and `null` clears it.
    #[must_use]
    pub(crate) const fn optional(mut self) -> Self {
        (self.create, self.update, self.nullable) = (Presence::Optional, Presence::Optional, true);
        self
    }

    /// Optional in a POST and a PATCH, never `null`. `default` is its initial value as JSON text.
    #[must_use]
    pub(crate) const fn starts_as(mut self, default: &'static str) -> Self {
        (self.create, self.update, self.default) = (Presence::Optional, Presence::Optional, Some(default));
        self
    }

    /// A request has this example, with fewer members than a response.
    #[must_use]
    pub(crate) const fn sent_as(mut self, example: &'static str) -> Self {
        self.example_sent = example;
        self
    }

    /// A POST may contain it, such as this example; otherwise the server computes it. Never `null`, and never in a PATCH.
    #[must_use]
    pub(crate) const fn or_computed(mut self, example_sent: &'static str) -> Self {
        self.create = Presence::Optional;
        self.example_sent = example_sent;
        self
    }

    /// The value may be `null`.
    #[must_use]
    pub(crate) const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Its values tell something about a customer. `replacement` is their JSON text once the customer is erased.
    #[must_use]
    pub(crate) const fn personal(mut self, replacement: &'static str) -> Self {
        self.personal = Personal::Erased(replacement);
        self
    }

    /// The same, but the law requires that the record keeps them.
    #[must_use]
    pub(crate) const fn personal_but_kept(mut self, replacement: &'static str) -> Self {
        self.personal = Personal::Kept(replacement);
        self
    }

    /// A PATCH must not contain the field.
    #[must_use]
    pub(crate) const fn fixed(mut self) -> Self {
        self.update = Presence::Never;
        self
    }

    /// Only a PATCH may contain the field, not a POST.
    #[must_use]
    pub(crate) const fn update_only(mut self) -> Self {
        (self.create, self.update) = (Presence::Never, Presence::Optional);
        self
    }
}
