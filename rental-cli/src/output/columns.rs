//! Which fields a list shows, and how a terminal shows their values. No I/O. A pipe gets the text of the response.

use crate::output::{
    clock::Clock,
    record::Record,
    references::{self, Names, name_column},
};
use rental_core::{
    resources::event,
    schema::{FieldSpec, Kind, ResourceSpec},
    value::Timestamp,
};

/// Shown for an empty value on a terminal.
pub(crate) const NOTHING: &str = "-";

/// The columns of each object type on a terminal: those by which a person recognizes an object, then those that are
/// shown where there is room. References are shown as names. All other fields are left to `get` and `--columns`.
const OF_TYPES: &[(&str, &[&str], &[&str])] = &[
    ("organization", &["id", "name", "plan"], &["default_currency", "time_zone", "created_at"]),
    ("api_key", &["id", "name", "organization_id", "scope", "revoked_at"], &["hint", "last_used_at", "expires_at"]),
    ("webhook_endpoint", &["id", "url", "status"], &["events", "disabled_reason", "created_at"]),
    ("event", &["id", "type", "data.name", "created", "data.id"], &[]),
    (
        "delivery",
        &["id", "event_type", "status", "attempts"],
        &["last_response_status", "next_attempt_at", "created_at"],
    ),
    ("vehicle", &["id", "name", "plate", "daily_rate", "status"], &["make", "model", "year", "plate_state"]),
    ("customer", &["id", "full_name", "email"], &["phone", "source_channel", "created_at"]),
    (
        "rental",
        &["id", "booking_id", "vehicle_id", "customer_id", "start_date", "end_date", "status", "final_price"],
        &["rental_days", "created_at"],
    ),
    ("block", &["id", "vehicle_id", "start_date", "end_date", "reason", "status"], &["source"]),
    (
        "calendar_feed",
        &["id", "vehicle_id", "status", "last_success_at"],
        &["conflicts", "events", "last_error", "url"],
    ),
    (
        "invoice",
        &["id", "invoice_number", "customer_id", "total", "due_date", "status"],
        &["amount_credited", "created_at", "paid_at"],
    ),
    (
        "credit_note",
        &["id", "credit_note_number", "invoice_number", "customer_id", "total", "reason"],
        &["refunded_at", "created_at"],
    ),
    (
        "toll",
        &["id", "occurred_at", "plate", "vehicle_id", "agency", "amount", "customer_id"],
        &["plaza", "transponder_number", "attribution", "amount_billed"],
    ),
    (
        "violation",
        &["id", "summons_number", "issue_date", "plate", "vehicle_id", "amount_due", "customer_id"],
        &["respond_by", "violation", "status", "amount_billed"],
    ),
    ("lead", &["id", "source_channel", "status", "created_at"], &["customer_id"]),
    ("operator", &["id", "name", "role", "revoked_at"], &["last_used_at", "expires_at", "hint"]),
    ("audit_entry", &["id", "created_at", "actor", "action", "resource_id"], &["organization_id", "address"]),
];

/// Texts that people copy or that programs gave, in addition to email addresses, phone numbers and URLs: other texts are cut
/// first.
const COPIED: [&str; 11] = [
    "plate",
    "booking_id",
    "invoice_number",
    "credit_note_number",
    "summons_number",
    "transaction_id",
    "transponder_number",
    "issue_date",
    "hint",
    "event_type",
    "action",
];

/// One column of a list.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(super) field: &'static FieldSpec,
    pub(super) form: Form,
    /// Whether the table is not complete without it.
    pub(super) essential: bool,
}

/// What a text is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextKind {
    /// A name or a sentence: a person recognizes it by its beginning.
    Words,
    /// A person copies all of it.
    Copied,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// The text of the response.
    Text,
    /// An amount, with the digits of its currency and its code.
    Money,
    /// A time, in the time zone of this computer.
    Time,
    /// The same from a number of seconds since 1970.
    UnixSeconds,
    /// A list of event types; `null` means all of them.
    EventTypes,
    /// The name of the object with this id.
    Name,
    /// What a person calls the object in this field.
    NameIn,
    /// The id of the object in this field.
    IdIn,
}

impl Form {
    /// Returns the form of a field of this object type. The field's name alone is ambiguous: `created` is a time in an
    /// event and a count in the summary of an import.
    pub(super) fn of(spec: &ResourceSpec, field: &FieldSpec) -> Self {
        match field.kind {
            Kind::EventTypes => Self::EventTypes,
            Kind::Money => Self::Money,
            Kind::Time => Self::Time,
            // The API's one time in Unix seconds (spec, Delivery 3).
            Kind::Integer(..) if spec.object == event::SPEC.object && field.name == "created" => Self::UnixSeconds,
            _ => Self::Text,
        }
    }
}

impl Column {
    fn of(spec: &'static ResourceSpec, field: &'static FieldSpec) -> Self {
        Self { field, form: Form::of(spec, field), essential: true }
    }

    fn named(spec: &'static ResourceSpec, field: &'static FieldSpec) -> Self {
        let form = if name_column(field).is_some() { Form::Name } else { Form::of(spec, field) };
        Self { form, ..Self::of(spec, field) }
    }

    /// The column of a name in [`OF_TYPES`]: a field, or the name or the id of the object in a field.
    fn of_terminal(spec: &'static ResourceSpec, name: &str) -> Option<Self> {
        match name.split_once('.') {
            None => Some(Self::named(spec, spec.field(name)?)),
            Some((name, part)) => {
                let form = if part == "id" { Form::IdIn } else { Form::NameIn };
                Some(Self { form, ..Self::of(spec, spec.field(name)?) })
            }
        }
    }

    /// Whether the column has ids, which stand on a line of their own where there is no room. Commands take a booking id as one.
    pub(super) fn is_id(&self) -> bool {
        matches!(self.name(), "id" | "booking_id") || self.form == Form::IdIn
    }

    /// Whether the values are texts, of which a narrow terminal shows the beginning. `None`: they are never cut.
    pub(super) fn text(&self) -> Option<TextKind> {
        let named = matches!(self.form, Form::Name | Form::NameIn | Form::EventTypes);
        match self.field.kind {
            _ if named => Some(TextKind::Words),
            _ if self.form != Form::Text => None,
            Kind::Email | Kind::Phone | Kind::Url => Some(TextKind::Copied),
            Kind::Text(_) | Kind::Name(_) if COPIED.contains(&self.name()) => Some(TextKind::Copied),
            Kind::Id | Kind::Reference(_) | Kind::Integer(..) | Kind::Percent => None,
            Kind::Boolean | Kind::Date | Kind::Word(_) | Kind::Currency | Kind::Language => None,
            _ => Some(TextKind::Words),
        }
    }

    /// The column that makes this one unnecessary in the rows that have a value there. A toll that was read by transponder
    /// has no plate, but the server knows its vehicle.
    pub(super) fn instead_of(&self) -> Option<&'static str> {
        (self.form == Form::Name && self.name() == "vehicle_id").then_some("plate")
    }

    /// The field's name in JSON.
    pub(crate) fn name(&self) -> &'static str {
        self.field.name
    }

    /// The field's description.
    pub(crate) fn field(&self) -> &'static FieldSpec {
        self.field
    }

    /// Whether the values are names of other objects.
    pub(crate) fn is_name(&self) -> bool {
        self.form == Form::Name
    }

    /// The name of the column: that of the field, or of what its reference names.
    pub(super) fn label(&self) -> &'static str {
        match self.form {
            Form::Name => name_column(self.field).unwrap_or(self.field.name),
            Form::NameIn => "about",
            Form::IdIn => "about_id",
            _ => self.field.name,
        }
    }

    /// Whether the values are aligned to the right.
    pub(super) fn right(&self) -> bool {
        matches!(self.field.kind, Kind::Money | Kind::Percent | Kind::Integer(..)) && self.form != Form::UnixSeconds
    }

    /// The value in a pipe; `None` for `null`.
    pub(super) fn plain(&self, record: &Record, names: &Names) -> Option<String> {
        let text = record.text(self.field.name)?;
        match self.form {
            Form::NameIn => return references::recognized(&Record::read(&text).ok()?),
            Form::IdIn => return Record::read(&text).ok()?.text("id"),
            _ => {}
        }
        Some(if self.form == Form::Name { names.get(&text).map_or(text, str::to_owned) } else { text })
    }

    /// The value on a terminal; `None` for `null`.
    pub(super) fn shown(&self, record: &Record, names: &Names, clock: &Clock) -> Option<String> {
        let text = self.plain(record, names);
        let currency = || record.text("currency");
        text.map(|text| shown(self.form, &text, currency, |time| clock.short(time)))
    }
}

/// What a terminal shows for a value that is absent.
pub(super) fn absent(form: Form) -> &'static str {
    // An endpoint without a list of types gets all events.
    if form == Form::EventTypes { "(all)" } else { NOTHING }
}

/// Formats a value. What is not of the form stays as it is.
pub(super) fn shown(
    form: Form,
    text: &str,
    currency: impl FnOnce() -> Option<String>,
    time: impl FnOnce(Timestamp) -> String,
) -> String {
    let formatted = match form {
        Form::Money => currency().map(|currency| money(text, &currency)),
        Form::Time => Timestamp::parse(text).map(time),
        Form::UnixSeconds => {
            text.parse::<i64>().ok().map(|seconds| time(Timestamp::from_millis(seconds.saturating_mul(1000))))
        }
        Form::Text | Form::EventTypes | Form::Name | Form::NameIn | Form::IdIn => None,
    };
    formatted.unwrap_or_else(|| text.to_owned())
}

/// An amount with all digits of its currency: `400.00 USD`.
pub(crate) fn money(amount: &str, currency: &str) -> String {
    format!("{} {currency}", super::record::amount(amount, Some(currency)))
}

/// Columns of a list in a pipe: all fields except `object`, and logs, which are lists themselves.
pub(crate) fn of_pipe(spec: &'static ResourceSpec) -> Vec<Column> {
    let shown = spec.fields.iter().filter(|field| !matches!(field.kind, Kind::Object | Kind::AttemptLog));
    shown.map(|field| Column::of(spec, field)).collect()
}

/// Columns of a list on a terminal, the most important first.
pub(crate) fn of_terminal(spec: &'static ResourceSpec) -> Vec<Column> {
    let Some((_, essential, more)) = OF_TYPES.iter().find(|(object, ..)| *object == spec.object) else {
        return of_pipe(spec);
    };
    let column = |name: &&str, essential| Some(Column { essential, ..Column::of_terminal(spec, name)? });
    essential
        .iter()
        .filter_map(|name| column(name, true))
        .chain(more.iter().filter_map(|name| column(name, false)))
        .collect()
}

/// The objects that a terminal names beside their ids in one object, by id and collection.
pub(crate) fn named_beside(spec: &'static ResourceSpec, record: &Record) -> Vec<(String, String)> {
    let listed = of_terminal(spec);
    let is_listed = |field: &FieldSpec| listed.iter().any(|column| column.is_name() && column.name() == field.name);
    references::named_beside(spec, record, is_listed)
}

/// The columns that `--columns` names.
pub(crate) fn chosen(spec: &'static ResourceSpec, names: &[String]) -> Vec<Column> {
    let column = |name: &String| {
        let field = spec.field(name).map(|field| Column::of(spec, field));
        field.or_else(|| reference(spec, name).map(|field| Column::named(spec, field)))
    };
    names.iter().filter_map(column).collect()
}

/// The field whose object a column names: `vehicle_id` for `vehicle`. `None` if the column is a field itself.
pub(crate) fn reference(spec: &ResourceSpec, name: &str) -> Option<&'static FieldSpec> {
    spec.fields.iter().find(|field| name_column(field) == Some(name) && spec.field(name).is_none())
}

/// All names that `--columns` takes.
pub(crate) fn choices(spec: &'static ResourceSpec) -> impl Iterator<Item = &'static str> {
    let names = spec.fields.iter().filter_map(name_column).filter(|name| spec.field(name).is_none());
    of_pipe(spec).into_iter().map(|column| column.name()).chain(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rental_core::resources;

    #[test]
    fn every_column_of_a_terminal_is_a_field() {
        for (object, essential, more) in OF_TYPES {
            let spec = resources::spec_of(object).unwrap();
            assert_eq!(of_terminal(spec).len(), essential.len() + more.len(), "{object}");
            assert_eq!(essential.first(), Some(&"id"), "{object}: `table` treats the first column as the id");
        }
    }

    #[test]
    fn every_list_has_columns_for_people() {
        // `vehicles assignments` has a table of its own.
        for spec in resources::specs().filter(|spec| spec.object != "vehicle_assignments") {
            assert!(OF_TYPES.iter().any(|(object, ..)| *object == spec.object), "{}", spec.object);
        }
    }

    #[test]
    fn amounts_have_the_digits_of_their_currency() {
        for (amount, currency, expected) in [
            ("400", "USD", "400.00 USD"),
            ("89.5", "USD", "89.50 USD"),
            ("-6.94", "EUR", "-6.94 EUR"),
            ("5000", "JPY", "5000 JPY"),
            ("1.5", "KWD", "1.500 KWD"),
            ("odd", "USD", "odd USD"),
        ] {
            assert_eq!(money(amount, currency), expected);
        }
    }

    #[test]
    fn a_choice_takes_fields_and_names_of_references() {
        let spec = &resources::rental::SPEC;
        let columns = chosen(spec, &["vehicle".into(), "vehicle_id".into(), "nothing".into()]);
        assert_eq!(columns.iter().map(Column::label).collect::<Vec<_>>(), ["vehicle", "vehicle_id"]);
        assert!(choices(spec).any(|name| name == "customer"));
    }
}
