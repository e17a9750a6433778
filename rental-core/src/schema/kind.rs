//! The kinds of values that fields hold.

/// Which values a field holds. The rules are in `docs/decisions.md`, "Identity and values".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The object's own id, a UUIDv7.
    Id,
    /// The constant name of the resource.
    Object,
    /// Text of at most this many characters.
    Text(usize),
    /// The same, not blank.
    Name(usize),
    /// An e-mail address.
    Email,
    /// A phone number in E.164.
    Phone,
    /// A BCP 47 language tag.
    Language,
    /// A whole number from..=to.
    Integer(i64, i64),
    /// An amount in the object's currency.
    Money,
    /// An ISO 4217 code.
    Currency,
    /// `true` or `false`.
    Boolean,
    /// A calendar date.
    Date,
    /// A point in time.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The id of an object of the same organization.
    Reference(&'static str),
    /// Any JSON object of at most this many bytes, kept as received.
    Json(usize),
    /// An http or https URL of at most 2048 bytes.
    Url,
    /// A list of 1 to 14 different event types.
    EventTypes,
    /// The attempts of a delivery.
    AttemptLog,
    /// Lines of an invoice: a list of objects with `description`, `amount` and at most one thing that they bill.
    Lines,
    /// A name of the IANA time zone database.
    TimeZone,
}
