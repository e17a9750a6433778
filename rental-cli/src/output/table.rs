//! Formats rows: aligned on a terminal, tab-separated in a pipe. No I/O.

use crate::{
    output::style::{self, Paint},
    text::tsv_cell,
};
use rental_core::{
    resources::event,
    schema::{FieldSpec, Kind, Presence, ResourceSpec},
    value::Timestamp,
};
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Maximum width of a cell on a terminal, in columns. Longer text is truncated.
const CELL_MAX: usize = 40;
/// Space between two columns.
const GAP: &str = "  ";
/// Shown for an empty value on a terminal.
const NOTHING: &str = "-";

/// Rank of columns that tables never show.
const NEVER_SHOWN: u8 = 9;

/// One row: the text of each column, `None` for `null`.
pub(crate) type Row = Vec<Option<String>>;

/// One column of a list.
pub(crate) struct Column {
    field: &'static FieldSpec,
    form: Form,
}

impl Column {
    /// The field's name in JSON.
    pub(crate) fn name(&self) -> &'static str {
        self.field.name
    }

    /// Whether the field is an amount of money.
    pub(crate) fn is_amount(&self) -> bool {
        self.field.kind == Kind::Money
    }
}

/// How a terminal shows a value. In a pipe every value is the text of the response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// The text of the response.
    Text,
    /// The date and time of a number of seconds since 1970.
    UnixSeconds,
    /// A list of event types; `null` means all of them.
    EventTypes,
}

impl Form {
    /// Returns the form of a field of this object type. The field's name alone is ambiguous: `created` is a time in an
    /// event and a count in the summary of an import.
    fn of(spec: &ResourceSpec, field: &FieldSpec) -> Self {
        match field.kind {
            Kind::EventTypes => Self::EventTypes,
            // The API's one time in Unix seconds (spec, Delivery 3).
            Kind::Integer(..) if spec.object == event::SPEC.object && field.name == "created" => Self::UnixSeconds,
            _ => Self::Text,
        }
    }
}

/// Columns of a list: all fields except `object`, and logs, which are lists themselves.
pub(crate) fn columns(spec: &'static ResourceSpec) -> Vec<Column> {
    let shown = spec.fields.iter().filter(|field| !matches!(field.kind, Kind::Object | Kind::AttemptLog));
    shown.map(|field| Column { field, form: Form::of(spec, field) }).collect()
}

/// Formats the names of columns as the first line of tab-separated values.
pub(crate) fn tsv_names(columns: &[Column]) -> String {
    columns.iter().map(Column::name).collect::<Vec<_>>().join("\t") + "\n"
}

/// Formats rows as tab-separated values. `null` is empty. No cell is a formula of a spreadsheet.
pub(crate) fn tsv(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Cow<'_, str>> = row.iter().map(|cell| tsv_cell(cell.as_deref().unwrap_or(""))).collect();
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}

/// Formats a table of at most `width` terminal columns. Also returns the number of hidden fields.
pub(crate) fn aligned(columns: &[Column], rows: &[Row], width: usize, paint: Paint) -> (String, usize) {
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            rows.iter()
                .map(|row| cell(&columns[at], row, at).width())
                .chain([heading(&columns[at]).width()])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let filled = |at: usize| rows.iter().any(|row| row[at].is_some());
    // Columns by rank, as many as fit. Columns that are empty in every row are left out.
    let mut wanted: Vec<usize> =
        (0..columns.len()).filter(|at| rank(columns[*at].field) < NEVER_SHOWN && filled(*at)).collect();
    wanted.sort_by_key(|at| rank(columns[*at].field));
    let (mut shown, mut hidden, mut used) = (Vec::new(), 0, 0);
    for at in wanted {
        let needed = widths[at] + if shown.is_empty() { 0 } else { GAP.len() };
        if shown.is_empty() || used + needed <= width {
            used += needed;
            shown.push(at);
        } else {
            hidden += 1;
        }
    }
    shown.sort_unstable();
    let mut text = String::new();
    let heads = shown.iter().map(|at| (heading(&columns[*at]), widths[*at], right(&columns[*at])));
    push_line(&mut text, heads, |text| paint.with(style::HEADING, text));
    for row in rows {
        let cells = shown.iter().map(|at| (cell(&columns[*at], row, *at), widths[*at], right(&columns[*at])));
        push_line(&mut text, cells, |text| paint.status(text));
    }
    (text, hidden)
}

/// Formats rows without a description under their names: aligned, or tab-separated.
pub(crate) fn plain(names: &[&str], rows: &[Vec<String>], aligned: bool, paint: Paint) -> String {
    if !aligned {
        let lines = rows.iter().map(|row| row.join("\t"));
        return [names.join("\t")].into_iter().chain(lines).map(|line| line + "\n").collect();
    }
    let cell = |row: &Vec<String>, at: usize| {
        row.get(at).filter(|text| !text.is_empty()).map_or(NOTHING, |text| text).to_owned()
    };
    let width = |at: usize| rows.iter().map(|row| cell(row, at).width()).chain([names[at].width()]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let mut text = String::new();
    let heads = names.iter().zip(&widths).map(|(name, width)| (name.replace('_', " ").to_uppercase(), *width, false));
    push_line(&mut text, heads, |text| paint.with(style::HEADING, text));
    for row in rows {
        let cells = widths.iter().enumerate().map(|(at, width)| (cell(row, at), *width, false));
        push_line(&mut text, cells, |text| paint.status(text));
    }
    text
}

/// Formats one field per line. `spec` is the description of the object type, if it has one.
pub(crate) fn fields(
    spec: Option<&ResourceSpec>,
    fields: &[(String, Option<String>)],
    aligned: bool,
    paint: Paint,
) -> String {
    let form = |name: &str| spec.and_then(|spec| Some(Form::of(spec, spec.field(name)?))).unwrap_or(Form::Text);
    let longest = fields.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let line = |(name, value): &(String, Option<String>)| {
        if aligned {
            let padding = " ".repeat(longest - name.width() + 1);
            let name_shown = paint.with(style::HEADING, &format!("{name}:"));
            format!("{name_shown}{padding}{}\n", paint.status(&shown(form(name), value.as_deref())))
        } else {
            format!("{name}\t{}\n", tsv_cell(value.as_deref().unwrap_or("")))
        }
    };
    fields.iter().map(line).collect()
}

/// Rank of a column: 0 is the most important. [`NEVER_SHOWN`] leaves it to `get`.
fn rank(field: &FieldSpec) -> u8 {
    match field.kind {
        Kind::Id if field.name == "id" => 0,
        Kind::Id
        | Kind::Object
        | Kind::References(_)
        | Kind::EarlierVehicles
        | Kind::Json(_)
        | Kind::Lines
        | Kind::CreditLines
        | Kind::Assignments
        | Kind::AttemptLog => NEVER_SHOWN,
        Kind::Text(max) if max > 255 => NEVER_SHOWN,
        Kind::Paragraph(_) => NEVER_SHOWN,
        Kind::Time if field.name == "updated_at" => NEVER_SHOWN,
        Kind::Time if field.name == "next_attempt_at" => 3,
        Kind::Reference(_) => 4,
        Kind::Currency | Kind::Time => 5,
        Kind::Word(_) if !field.nullable => 1,
        Kind::Name(_) => 1,
        _ if field.create == Presence::Required => 1,
        Kind::Money | Kind::Date => 2,
        _ => 3,
    }
}

/// Heading of a column: the field's name, shortened.
fn heading(column: &Column) -> String {
    column.name().replace("_response_", "_").replace('_', " ").to_uppercase()
}

fn right(column: &Column) -> bool {
    matches!(column.field.kind, Kind::Money | Kind::Percent | Kind::Integer(..)) && column.form != Form::UnixSeconds
}

/// Formats a value for a terminal.
fn shown(form: Form, value: Option<&str>) -> Cow<'_, str> {
    match (form, value) {
        (Form::UnixSeconds, Some(text)) => match text.parse::<i64>() {
            Ok(seconds) => Timestamp::from_millis(seconds.saturating_mul(1000)).to_string().into(),
            Err(_) => text.into(),
        },
        (_, Some(text)) => text.into(),
        // An endpoint without a list of types gets all events.
        (Form::EventTypes, None) => "(all)".into(),
        (_, None) => NOTHING.into(),
    }
}

fn cell(column: &Column, row: &Row, at: usize) -> String {
    let text = shown(column.form, row[at].as_deref());
    if text.width() <= CELL_MAX {
        return text.into_owned();
    }
    let mut room = CELL_MAX - 1;
    let kept = text.chars().take_while(|char| {
        let width = char.width().unwrap_or(0);
        let fits = width <= room;
        room = if fits { room - width } else { 0 };
        fits
    });
    kept.chain(['…']).collect()
}

/// Appends a line of cells (text, width, whether right-aligned). The last cell is not padded.
fn push_line(text: &mut String, cells: impl Iterator<Item = (String, usize, bool)>, paint: impl Fn(&str) -> String) {
    let (mut line, mut due) = (String::new(), 0);
    for (at, (cell, width, right)) in cells.enumerate() {
        let padding = width.saturating_sub(cell.width());
        let (before, after) = if right { (padding, 0) } else { (0, padding) };
        // Padding after a cell is written before the next cell, so that no line ends in spaces.
        let gap = if at > 0 { GAP.len() } else { 0 };
        line.push_str(&" ".repeat(due + gap + before));
        line.push_str(&paint(&cell));
        due = after;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use rental_core::resources::{delivery, rental, vehicle, webhook_endpoint};

    fn row(columns: &[Column], values: &[(&str, &str)]) -> Row {
        let value = |name| values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        columns.iter().map(|column| value(column.name())).collect()
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let columns = columns(&vehicle::SPEC);
        let rows = [
            row(&columns, &[("id", "1"), ("name", "東京 Van"), ("daily_rate", "9.5"), ("status", "available")]),
            row(&columns, &[("id", "22"), ("name", "Bus"), ("daily_rate", "120"), ("status", "rented")]),
            row(&columns, &[("id", "3"), ("name", "Cart"), ("status", "rented")]),
        ];
        let (text, hidden) = aligned(&columns, &rows, 80, Paint::NONE);
        let expected = "ID  NAME      DAILY RATE  STATUS\n\
                        1   東京 Van         9.5  available\n\
                        22  Bus              120  rented\n\
                        3   Cart               -  rented\n";
        assert_eq!((text.as_str(), hidden), (expected, 0));
    }

    #[test]
    fn a_narrow_terminal_keeps_id_and_status() {
        let columns = columns(&rental::SPEC);
        let long = "0190d0f2-7c3a-7cc0-8000-000000000001";
        let values = [
            ("id", long),
            ("customer_id", long),
            ("vehicle_id", long),
            ("start_date", "2026-06-01"),
            ("status", "ACTIVE"),
        ];
        let (text, hidden) = aligned(&columns, &[row(&columns, &values)], 60, Paint::NONE);
        assert_eq!(text.lines().next(), Some("ID                                    START DATE  STATUS"));
        assert_eq!(hidden, 2, "customer and vehicle");
        assert!(text.lines().all(|line| line.width() <= 60));
        let (text, _) = aligned(&columns, &[row(&columns, &values)], 10, Paint::NONE);
        assert!(text.contains(long), "an id is never cut");
    }

    #[test]
    fn a_table_of_deliveries_tells_how_they_went() {
        let columns = columns(&delivery::SPEC);
        let long = "0190d0f2-7c3a-7cc0-8000-000000000001";
        let values = [
            ("id", long),
            ("endpoint_id", long),
            ("event_id", long),
            ("event_type", "rental.created"),
            ("status", "pending"),
            ("attempts", "2"),
            ("next_attempt_at", "2026-05-05T09:30:00.000Z"),
            ("last_response_status", "500"),
        ];
        let (text, _) = aligned(&columns, &[row(&columns, &values)], 120, Paint::NONE);
        let names = text.lines().next().unwrap_or_default().split("  ").filter(|name| !name.is_empty());
        let names: Vec<&str> = names.map(str::trim).collect();
        assert_eq!(names, ["ID", "EVENT TYPE", "STATUS", "ATTEMPTS", "NEXT ATTEMPT AT", "LAST STATUS"]);
    }

    #[test]
    fn the_time_of_an_event_is_readable() {
        let columns = columns(&event::SPEC);
        let (text, _) = aligned(&columns, &[row(&columns, &[("id", "1"), ("created", "1795294579")])], 80, Paint::NONE);
        assert_eq!(text, "ID  CREATED\n1   2026-11-21T20:56:19.000Z\n");
        assert_eq!(shown(Form::UnixSeconds, Some("soon")), "soon");
        assert!(tsv(&[row(&columns, &[("created", "1795294579")])]).contains("\t1795294579\t"));
    }

    #[test]
    fn an_endpoint_without_a_choice_gets_all_events() {
        let columns = columns(&webhook_endpoint::SPEC);
        let rows = [row(&columns, &[("id", "1"), ("events", "[\"rental.created\"]")]), row(&columns, &[("id", "2")])];
        let (text, _) = aligned(&columns, &rows, 80, Paint::NONE);
        assert_eq!(text, "ID  EVENTS\n1   [\"rental.created\"]\n2   (all)\n");
        assert_eq!(
            fields(Some(&webhook_endpoint::SPEC), &[("events".into(), None), ("url".into(), None)], true, Paint::NONE),
            "events: (all)\nurl:    -\n"
        );
    }

    #[test]
    fn long_texts_are_cut_to_their_width() {
        let text = cell(&columns(&vehicle::SPEC)[0], &vec![Some("東".repeat(40))], 0);
        assert!(text.ends_with('…') && text.width() <= CELL_MAX, "{text}");
    }

    #[test]
    fn tsv_names_every_field_and_leaves_nulls_empty() {
        let columns = columns(&vehicle::SPEC);
        let text = tsv_names(&columns) + &tsv(&[row(&columns, &[("id", "1"), ("status", "rented")])]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines[0].len(), lines[1].len());
        assert_eq!((lines[0][0], lines[0][1], lines[1][0], lines[1][1]), ("id", "name", "1", ""));
    }
}
