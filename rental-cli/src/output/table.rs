//! Formats rows: aligned on a terminal, tab-separated in a pipe. No I/O.

use crate::{
    output::{
        clock::Clock,
        columns::{self, Column, Form, NOTHING, TextKind},
        layout::{self, GAP, Layout, Need},
        nested,
        style::{self, Paint},
    },
    text::{tsv_cell, wrapped},
};
use rental_core::schema::{Kind, ResourceSpec};
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Width of a name or sentence that is enough where the table does not fit as a whole, in columns of a terminal.
const CELL_MAX: usize = 40;
/// Width down to which texts are cut where there is no room.
const CELL_LEAST: usize = 14;
/// Space between two columns.
const SPACE: &str = "  ";
const _: () = assert!(SPACE.len() == GAP);

/// One row: the text of each column, `None` for `null`.
pub(crate) type Row = Vec<Option<String>>;

/// Formats the names of columns as the first line of tab-separated values.
pub(crate) fn tsv_names(columns: &[Column]) -> String {
    columns.iter().map(Column::label).collect::<Vec<_>>().join("\t") + "\n"
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

/// A table, and how many of its essential columns did not fit.
pub(crate) struct Table {
    pub(crate) text: String,
    pub(crate) hidden: usize,
}

/// Formats a table of at most `width` terminal columns. If the essential columns do not fit beside the id, which is the first
/// column, the ids of each row have a line of their own under it. If they do not fit then, the longest texts are cut. If
/// somebody chose the columns, all of them are shown beside each other, and the longest texts are cut.
pub(crate) fn aligned(columns: &[Column], rows: &[Row], width: usize, is_chosen: bool, paint: Paint) -> Table {
    // Columns that are empty in every row are left out, unless somebody chose them.
    let filled = |at: &usize| is_chosen || rows.iter().any(|row| row[*at].is_some());
    let needs: Vec<(usize, Need)> = (0..columns.len()).filter(filled).map(|at| (at, need(columns, rows, at))).collect();
    let lay_out = if is_chosen { layout::chosen } else { layout::layout };
    let Layout { beside, under, hidden } = lay_out(&needs, width);
    let mut text = String::new();
    let heads = beside.iter().map(|(at, width)| (cut(&heading(&columns[*at]), *width), *width, columns[*at].right()));
    push_line(&mut text, heads, |text| paint.with(style::HEADING, text));
    for row in rows {
        let cells =
            beside.iter().map(|(at, width)| (cut(cell(&columns[*at], row, *at), *width), *width, columns[*at].right()));
        push_line(&mut text, cells, |text| paint.status(text));
        if !under.is_empty() {
            let ids = under.iter().filter(|at| row[**at].is_some()).map(|at| cell(&columns[*at], row, *at));
            let ids = ids.collect::<Vec<_>>().join(SPACE);
            text.push_str(&format!("{SPACE}{}\n", paint.with(style::DIM, &ids)));
        }
    }
    Table { text, hidden }
}

/// What a column of these rows needs.
fn need(columns: &[Column], rows: &[Row], at: usize) -> Need {
    let column = &columns[at];
    let head = heading(column).width();
    let width = rows.iter().map(|row| cell(column, row, at).width()).chain([head]).max().unwrap_or(0);
    let instead = column.instead_of().and_then(|name| columns.iter().position(|other| other.name() == name));
    let is_essential = column.essential
        && instead.is_none_or(|other| rows.iter().any(|row| row[other].is_none() && row[at].is_some()));
    let text = column.text();
    let is_copied = text == Some(TextKind::Copied);
    let most = if text.is_none() || (is_copied && is_essential) { width } else { width.min(CELL_MAX) };
    let least = if text.is_none() { width } else { most.min(CELL_LEAST.max(head)) };
    Need { whole: width, width: most, least, is_copied, is_essential, is_id: column.is_id() }
}

/// Formats rows without a description under their names: in at most `width` columns of a terminal, else tab-separated. What
/// does not fit beside the other columns is below its row, after its name.
pub(crate) fn plain(names: &[&str], rows: &[Vec<String>], width: Option<usize>, paint: Paint) -> String {
    let Some(room) = width else {
        let lines = rows.iter().map(|row| row.join("\t"));
        return [names.join("\t")].into_iter().chain(lines).map(|line| line + "\n").collect();
    };
    let given = |row: &Vec<String>, at: usize| row.get(at).filter(|text| !text.is_empty()).cloned();
    let cell = |row: &Vec<String>, at: usize| cut(&given(row, at).unwrap_or_else(|| NOTHING.to_owned()), room);
    let width = |at: usize| rows.iter().map(|row| cell(row, at).width()).chain([names[at].width()]).max().unwrap_or(0);
    let (mut shown, mut below, mut used) = (Vec::new(), Vec::new(), 0);
    for (at, width) in (0..names.len()).map(width).enumerate() {
        let needed = width + if shown.is_empty() { 0 } else { GAP };
        if shown.is_empty() || used + needed <= room {
            used += needed;
            shown.push((at, width));
        } else {
            below.push(at);
        }
    }
    let mut text = String::new();
    let heads = shown.iter().map(|(at, width)| (names[*at].replace('_', " ").to_uppercase(), *width, false));
    push_line(&mut text, heads, |text| paint.with(style::HEADING, text));
    for row in rows {
        let cells = shown.iter().map(|(at, width)| (cell(row, *at), *width, false));
        push_line(&mut text, cells, |text| paint.status(text));
        for at in &below {
            let Some(value) = given(row, *at) else { continue };
            let lines = wrapped(SPACE, &format!("{}: {value}", names[*at].replace('_', " ")), room);
            text.extend(lines.lines().map(|line| paint.with(style::DIM, line) + "\n"));
        }
    }
    text
}

/// Formats one field per line. `spec` is the description of the object type, if it has one; `clock` is there on a
/// terminal.
pub(crate) fn fields(
    spec: Option<&ResourceSpec>,
    fields: &[(String, Option<String>)],
    currency: Option<&str>,
    (clock, paint): (Option<Clock>, Paint),
) -> String {
    let form = |name: &str| spec.and_then(|spec| Some(Form::of(spec, spec.field(name)?))).unwrap_or(Form::Text);
    let longest = fields.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let line = |(name, value): &(String, Option<String>)| {
        let Some(clock) = clock else { return format!("{name}\t{}\n", tsv_cell(value.as_deref().unwrap_or(""))) };
        let padding = " ".repeat(longest - name.width() + 1);
        let name_shown = paint.with(style::HEADING, &format!("{name}:"));
        let form = form(name);
        let is_text = spec.and_then(|spec| spec.field(name)).is_some_and(|field| matches!(field.kind, Kind::Text(_)));
        let inside = value.as_deref().filter(|_| !is_text).and_then(|json| nested::lines(json, clock, currency));
        if let Some(lines) = inside {
            return format!("{name_shown}\n{lines}");
        }
        let shown = value.as_ref().map_or_else(
            || columns::absent(form).to_owned(),
            |text| columns::shown(form, text, || currency.map(str::to_owned), |time| clock.long(time)),
        );
        format!("{name_shown}{padding}{}\n", paint.status(&shown))
    };
    fields.iter().map(line).collect()
}

/// Heading of a column: its name, shortened.
fn heading(column: &Column) -> String {
    // Shorter than their fields, so that they fit beside the other columns of a terminal of 80 columns.
    let label = column.label().replace("_response_", "_").replace("final_", "");
    label.replace('_', " ").to_uppercase()
}

fn cell<'r>(column: &Column, row: &'r Row, at: usize) -> &'r str {
    row[at].as_deref().unwrap_or_else(|| columns::absent(column.form))
}

/// The text, of which at most `room` columns are shown.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut room = room.saturating_sub(1);
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
        let gap = if at > 0 { GAP } else { 0 };
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
    use crate::output::{
        columns::{of_pipe, of_terminal},
        record::Record,
        references::Names,
    };
    use rental_core::{
        resources::{delivery, event, rental, vehicle, webhook_endpoint},
        value::Timestamp,
    };

    const LONG: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";

    fn clock() -> Clock {
        Clock::at(Timestamp::parse("2026-05-05T09:30:00.000Z").unwrap())
    }

    fn row(columns: &[Column], json: &str) -> Row {
        let record = Record::read(json).unwrap();
        let mut names = Names::default();
        names.insert("v".into(), "White Tesla".into());
        columns.iter().map(|column| column.shown(&record, &names, &clock())).collect()
    }

    fn table(spec: &'static ResourceSpec, rows: &[&str], width: usize) -> Table {
        let columns = of_terminal(spec);
        let rows: Vec<Row> = rows.iter().map(|json| row(&columns, json)).collect();
        aligned(&columns, &rows, width, false, Paint::NONE)
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let rows = [
            r#"{"id":"1","name":"東京 Van","daily_rate":9.5,"currency":"USD","status":"available"}"#,
            r#"{"id":"22","name":"Bus","daily_rate":120,"currency":"USD","status":"rented"}"#,
            r#"{"id":"3","name":"Cart","currency":"USD","status":"rented"}"#,
        ];
        let table = table(&vehicle::SPEC, &rows, 80);
        let expected = "ID  NAME      DAILY RATE  STATUS\n\
                        1   東京 Van    9.50 USD  available\n\
                        22  Bus       120.00 USD  rented\n\
                        3   Cart               -  rented\n";
        assert_eq!((table.text.as_str(), table.hidden), (expected, 0));
    }

    #[test]
    fn a_narrow_terminal_shows_each_id_under_its_row() {
        let rental = format!(
            r#"{{"id":"{LONG}","vehicle_id":"v","customer_id":"c","start_date":"2026-06-01","end_date":"2026-06-05","final_price":400,"currency":"USD","status":"ACTIVE","booking_id":"BK-1"}}"#
        );
        let narrow = table(&rental::SPEC, &[&rental], 80);
        let expected = format!(
            "VEHICLE      CUSTOMER  START DATE  END DATE    STATUS       PRICE\n\
             White Tesla  c         2026-06-01  2026-06-05  ACTIVE  400.00 USD\n  {LONG}  BK-1\n"
        );
        assert_eq!((narrow.text, narrow.hidden), (expected, 0));
        let wide = table(&rental::SPEC, &[&rental], 140);
        assert!(wide.text.starts_with("ID  ") && wide.text.lines().count() == 2, "{}", wide.text);
        let dear = table(&rental::SPEC, &[&rental.replace(":400,", ":400000.00,")], 70);
        assert!(dear.text.contains("400000.00 USD") && dear.text.contains("BK-1"), "{}", dear.text);
        let tiny = table(&rental::SPEC, &[&rental], 30);
        assert!(tiny.hidden > 0 && tiny.text.contains(LONG), "an id is never cut: {}", tiny.text);
        assert!(tiny.text.lines().all(|line| line.contains(LONG) || line.width() <= 30));
    }

    #[test]
    fn a_table_of_deliveries_tells_how_they_went() {
        let delivery = format!(
            r#"{{"id":"{LONG}","endpoint_id":"{LONG}","event_type":"rental.created","status":"pending","attempts":2,"next_attempt_at":"2026-05-05T09:40:00.000Z","last_response_status":500}}"#
        );
        let text = table(&delivery::SPEC, &[&delivery], 120).text;
        let names = text.lines().next().unwrap_or_default().split("  ").filter(|name| !name.is_empty());
        let names: Vec<&str> = names.map(str::trim).collect();
        assert_eq!(names, ["ID", "EVENT TYPE", "STATUS", "ATTEMPTS", "LAST STATUS", "NEXT ATTEMPT AT"]);
        assert!(text.contains("  in 10 min\n"), "{text}");
    }

    #[test]
    fn the_time_of_an_event_is_readable() {
        let event = r#"{"id":"1","created":1777973400}"#;
        assert_eq!(table(&event::SPEC, &[event], 80).text, "ID  CREATED\n1   now\n");
        let columns = of_pipe(&event::SPEC);
        let record = Record::read(event).unwrap();
        let plain: Row = columns.iter().map(|column| column.plain(&record, &Names::default())).collect();
        assert!(tsv(&[plain]).contains("\t1777973400\t"));
    }

    #[test]
    fn an_endpoint_without_a_choice_gets_all_events() {
        let rows = [r#"{"id":"1","events":["rental.created"]}"#, r#"{"id":"2"}"#];
        let text = table(&webhook_endpoint::SPEC, &rows, 80).text;
        assert_eq!(text, "ID  EVENTS\n1   [\"rental.created\"]\n2   (all)\n");
        let shown = [("events".into(), None), ("url".into(), None)];
        assert_eq!(
            fields(Some(&webhook_endpoint::SPEC), &shown, None, (Some(clock()), Paint::NONE)),
            "events: (all)\nurl:    -\n"
        );
    }

    #[test]
    fn what_does_not_fit_beside_the_other_columns_is_below_its_row() {
        let names = ["name", "base_url", "admin_token_file"];
        let row = |words: [&str; 3]| words.map(str::to_owned).to_vec();
        let rows = [row(["own", "http://127.0.0.1:8081", "/home/ada/token of the fleet"]), row(["b", "", ""])];
        let narrow = "NAME  BASE URL\nown   http://127.0.0.1:8081\n  admin token file:\n  /home/ada/token of the fleet\nb     -\n";
        assert_eq!(plain(&names, &rows, Some(30), Paint::NONE), narrow);
        let wide = plain(&names, &rows, Some(80), Paint::NONE);
        assert!(wide.starts_with("NAME  BASE URL               ADMIN TOKEN FILE\n"), "{wide}");
        let piped =
            "name\tbase_url\tadmin_token_file\nown\thttp://127.0.0.1:8081\t/home/ada/token of the fleet\nb\t\t\n";
        assert_eq!(plain(&names, &rows, None, Paint::NONE), piped);
        let tiny = plain(&["name"], &[vec!["x".repeat(50)]], Some(20), Paint::NONE);
        assert!(tiny.lines().all(|line| line.width() <= 20), "{tiny}");
    }

    #[test]
    fn long_texts_are_cut_to_their_width() {
        let rental = format!(
            r#"{{"id":"{LONG}","vehicle_id":"{0}","customer_id":"{0}","start_date":"2026-06-01","end_date":"2026-06-05","final_price":400,"currency":"USD","status":"COMPLETED"}}"#,
            "東".repeat(40)
        );
        for (room, cut) in [(200, "東".repeat(27)), (80, "東".repeat(7))] {
            let Table { text, hidden } = table(&rental::SPEC, &[&rental], room);
            assert!(hidden == 0 && text.contains(&(cut + "… ")) && text.contains("  400.00 USD\n"), "{room}: {text}");
            assert!(text.lines().all(|line| line.width() <= room), "{room}: {text}");
        }
    }

    #[test]
    fn tsv_names_every_field_and_leaves_nulls_empty() {
        let columns = of_pipe(&vehicle::SPEC);
        let text = tsv_names(&columns) + &tsv(&[row(&columns, r#"{"id":"1","status":"rented"}"#)]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines[0].len(), lines[1].len());
        assert_eq!((lines[0][0], lines[0][1], lines[1][0], lines[1][1]), ("id", "name", "1", ""));
    }
}
