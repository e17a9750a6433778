//! The kinds of values that a field can have.

/// The kind of a field's values. The rules are in `docs/decisions.md`, "Identity and values".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The object's own id, a UUIDv7.
    Id,
    /// The constant name of the resource.
    Object,
    /// Text of at most this many characters.
    Text(usize),
    /// Text of at most this many characters that is not blank.
    Name(usize),
    /// Text with line breaks (`\n` or `\r\n`): at most this many characters, and at most this many lines.
    Paragraph(usize, usize),
    /// An e-mail address.
    Email,
    /// A phone number in E.164, such as `+12125550123`.
    Phone,
    /// A BCP 47 language tag.
    Language,
    /// A whole number between these two, inclusive.
    Integer(i64, i64),
    /// An amount in the object's currency.
    Money,
    /// A percentage: a number from 0 to 100 with at most four decimals.
    Percent,
    /// A currency's code of ISO 4217.
    Currency,
    /// A JSON boolean: `true` or `false`.
    Boolean,
    /// A calendar date: `YYYY-MM-DD`.
    Date,
    /// A point in time in RFC 3339.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The id of an object of the same organization.
    Reference(&'static str),
    /// A list of different ids of objects of the same organization, which the server keeps.
    References(&'static str),
    /// A list of the vehicles that a rental had before, which the server keeps.
    EarlierVehicles,
    /// Any JSON object of at most this many bytes, kept as received.
    Json(usize),
    /// An http or https URL of at most 2048 bytes.
    Url,
    /// A list of different event types: at least one, at most all of them.
    EventTypes,
    /// The list of a delivery's attempts.
    AttemptLog,
    /// The lines of an invoice: a list of objects with `description`, `amount` and at most one billed object.
    Lines,
    /// The lines of a credit note: a list of objects, each with the place of a line of the invoice.
    CreditLines,
    /// The tags and plates of a vehicle: a list of objects with `kind`, `number`, `state`, `from` and `to`.
    Assignments,
    /// A name of the IANA time zone database.
    TimeZone,
}
