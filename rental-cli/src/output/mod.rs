//! Prints data to stdout, and notes and errors to stderr.

mod clock;
pub(crate) mod columns;
pub(crate) mod jq;
mod layout;
mod nested;
mod pager;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod references;
pub(crate) mod style;
mod table;
pub(crate) mod whole_file;

use crate::{
    edge,
    failure::Failure,
    text::{printable, printable_document, printable_styled, wrapped},
};
use clock::Clock;
use columns::Column;
use jq::Filter;
use record::{Page, Record};
use references::Names;
use rental_core::{resources::spec_of, schema::ResourceSpec, value::Timestamp};
use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
};
use style::{DIM, Paint};
use table::Row;

/// Width of tables, in columns, if the terminal does not report its width.
const USUAL_WIDTH: usize = 80;

/// Width of lines that are wrapped also where there is no terminal.
const LINE_WIDTH: usize = 100;

/// Members that responses show only once, and which are shown always. They are no fields of an object.
const SECRETS: [&str; 5] = ["key", "path", "secret", "token", "url"];

/// Output format: JSON, a table on a terminal, or tab-separated values in a pipe.
#[derive(Clone)]
pub(crate) struct Output {
    /// Print one JSON value and no notes.
    pub(crate) json: bool,
    /// Print no notes.
    pub(crate) quiet: bool,
    terminal: Option<usize>,
    /// The fields of an object to show, in this order; empty for all.
    columns: Vec<String>,
    /// Show long lists in a pager, if this is a terminal.
    pager: bool,
    clock: Clock,
    /// The filter of `--jq`, which all JSON goes through.
    filter: Option<Arc<Filter>>,
    /// Colours of stdout.
    pub(crate) paint: Paint,
}

impl Output {
    /// Chooses the format from the flags and from whether stdout is a terminal.
    pub(crate) fn new(json: bool, quiet: bool, filter: Option<Filter>) -> Self {
        let json = json || filter.is_some();
        if json || quiet {
            progress::silence();
        }
        let width = || terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        Self {
            json,
            quiet,
            terminal: io::stdout().is_terminal().then(width),
            columns: Vec::new(),
            pager: true,
            clock: Clock::at(edge::now()),
            filter: filter.map(Arc::new),
            paint: Paint::stdout(),
        }
    }

    /// The same output, which shows these fields of an object.
    pub(crate) fn with_columns(self, columns: Vec<String>) -> Self {
        Self { columns, ..self }
    }

    /// The same output, which shows no list in a pager.
    pub(crate) fn without_pager(self) -> Self {
        Self { pager: false, ..self }
    }

    /// Prints one JSON value, or what `--jq` makes of it.
    pub(crate) fn json(&self, json: &str) -> Result<(), Failure> {
        print_document(&self.document(json)?)
    }

    /// Prints the JSON of a list like [`Output::json`], in a pager if it is long.
    pub(crate) fn json_list(&self, json: &str) -> Result<(), Failure> {
        let text = self.document(json)?;
        if self.is_paged() { paged(&printable_document(&text)) } else { print_document(&text) }
    }

    /// Prints the JSON of objects of several pages as one list.
    pub(crate) fn json_objects(&self, objects: &[String], next_cursor: Option<&str>) -> Result<(), Failure> {
        let (more, cursor) = (next_cursor.is_some(), serde_json::json!(next_cursor));
        self.json_list(&format!(
            "{{\"object\":\"list\",\"has_more\":{more},\"next_cursor\":{cursor},\"data\":[{}]}}",
            objects.join(",")
        ))
    }

    fn document(&self, json: &str) -> Result<String, Failure> {
        match &self.filter {
            Some(filter) => filter.run(json),
            None => Ok(format!("{}\n", json.trim())),
        }
    }

    fn is_paged(&self) -> bool {
        self.pager && self.is_terminal()
    }

    /// Prints one object of a response: unchanged with `--json`, else one field per line.
    pub(crate) fn object(&self, json: &str) -> Result<(), Failure> {
        self.object_with(json, &Names::default())
    }

    /// The same with the names of the objects that the chosen columns show, or that a terminal shows beside their ids.
    pub(crate) fn object_with(&self, json: &str, names: &Names) -> Result<(), Failure> {
        if self.json {
            return self.json(json);
        }
        let record = Record::read(json)?;
        // Summaries, such as `import`, have no description.
        let spec = record.text("object").and_then(|object| spec_of(&object));
        let fields: Vec<_> = match &self.columns[..] {
            [] => {
                let field = |name: &str| spec.and_then(|spec| spec.field(name));
                let beside = |name: &str, text: String| match field(name) {
                    Some(field) => references::beside(field, &text, names),
                    None => text,
                };
                record.fields().map(|(name, text)| (name.clone(), text.map(|text| beside(&name, text)))).collect()
            }
            columns => {
                let is_secret =
                    |name: &str| SECRETS.contains(&name) && spec.is_none_or(|spec| spec.field(name).is_none());
                let value = |name: &String| match spec.and_then(|spec| columns::reference(spec, name)) {
                    Some(field) => {
                        record.text(field.name).map(|id| names.get(&id).map_or_else(|| id.clone(), str::to_owned))
                    }
                    None => record.text(name),
                };
                let left = |name: &str| !columns.iter().any(|chosen| chosen == name);
                let chosen = columns.iter().map(|name| (name.clone(), value(name)));
                chosen.chain(record.fields().filter(|(name, _)| is_secret(name) && left(name))).collect()
            }
        };
        // Also when its column is not chosen: it decides how amounts are written.
        let currency = record.text("currency").or_else(|| record.text("default_currency"));
        print(&table::fields(spec, &fields, currency.as_deref(), (self.clock(), self.paint)))
    }

    /// Prints one object that this program built.
    pub(crate) fn value(&self, object: &serde_json::Value) -> Result<(), Failure> {
        self.object(&object.to_string())
    }

    /// The columns that `--columns` names; none for the usual ones.
    pub(crate) fn chosen(&self) -> &[String] {
        &self.columns
    }

    /// The columns of a table without a description: those that `--columns` names, else the usual ones.
    pub(crate) fn columns_or<'a>(&'a self, usual: &[&'a str]) -> Vec<&'a str> {
        match &self.columns[..] {
            [] => usual.to_vec(),
            chosen => chosen.iter().map(String::as_str).collect(),
        }
    }

    /// Prints a table without a description: of each record the columns that `--columns` names, else the usual ones.
    pub(crate) fn records(&self, usual: &[&str], records: &[Record]) -> Result<(), Failure> {
        let columns = self.columns_or(usual);
        let cell = |record: &Record, name: &&str| self.time(record.text(name).unwrap_or_default());
        let cells = |record: &Record| columns.iter().map(|name| cell(record, name)).collect();
        self.rows(&columns, &records.iter().map(cells).collect::<Vec<Vec<String>>>())
    }

    /// Prints names and values of an object without a description: of those that `--columns` names, else all.
    pub(crate) fn only(&self, fields: Vec<(String, Option<String>)>) -> Result<(), Failure> {
        self.fields(&self.selected(fields))
    }

    /// The names and values that `--columns` names, else all.
    pub(crate) fn selected(&self, fields: Vec<(String, Option<String>)>) -> Vec<(String, Option<String>)> {
        if self.columns.is_empty() {
            return fields;
        }
        let of = |name: &String| fields.iter().find(|(known, _)| known == name).and_then(|(_, text)| text.clone());
        self.columns.iter().map(|name| (name.clone(), of(name))).collect()
    }

    /// Prints names and values of an object without a description.
    pub(crate) fn fields(&self, fields: &[(String, Option<String>)]) -> Result<(), Failure> {
        let currency = fields.iter().find(|(name, _)| name == "currency").and_then(|(_, text)| text.as_deref());
        print(&table::fields(None, fields, currency, (self.clock(), self.paint)))
    }

    /// A cell with a time: local on a terminal, else as the API gives it.
    pub(crate) fn time(&self, text: String) -> String {
        match (self.clock(), Timestamp::parse(&text)) {
            (Some(clock), Some(time)) => clock.short(time),
            _ => text,
        }
    }

    /// A moment of something that goes on: local and to the second on a terminal, else as the API gives times.
    pub(crate) fn moment(&self, time: Timestamp) -> String {
        if self.is_terminal() { Clock::moment(time) } else { time.to_string() }
    }

    /// The clock of times on a terminal.
    fn clock(&self) -> Option<Clock> {
        self.terminal.map(|_| self.clock)
    }

    /// The width of the terminal; `None` when the output goes elsewhere.
    pub(crate) fn width(&self) -> Option<usize> {
        self.terminal
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Prints rows of an object type without a description: as wide as the terminal allows, else tab-separated.
    pub(crate) fn rows(&self, names: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|text| printable(text)).collect()).collect();
        print(&table::plain(names, &rows, self.terminal, self.paint))
    }

    /// Prints a note on stderr, unless `--json` or `--quiet` is set.
    pub(crate) fn note(&self, text: &str) {
        if self.has_notes() {
            // The command succeeds even if stderr is closed.
            let _ = writeln!(anstream::stderr(), "{DIM}{}{DIM:#}", printable(text));
        }
    }

    /// Prints a note on stderr that is of use only to a person at a terminal, and not in the log of a script.
    pub(crate) fn note_to_person(&self, text: &str) {
        if io::stderr().is_terminal() {
            self.note(text);
        }
    }

    /// Whether notes are printed.
    pub(crate) fn has_notes(&self) -> bool {
        !self.json && !self.quiet
    }

    /// Prints a warning on stderr, also with `--json`, unless `--quiet` is set.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            // As above.
            let _ = writeln!(anstream::stderr(), "{}", printable(text));
        }
    }

    /// Starts the output of a list. Without `chosen` columns, a terminal gets those for people, and a pipe all fields.
    pub(crate) fn list(&self, spec: &'static ResourceSpec, chosen: &[String]) -> List<'_> {
        let columns = match (chosen, self.terminal) {
            ([], Some(_)) => columns::of_terminal(spec),
            ([], None) => columns::of_pipe(spec),
            (names, _) => columns::chosen(spec, names),
        };
        let chosen = !chosen.is_empty();
        List { output: self, spec, columns, chosen, rows: Vec::new(), data: Vec::new(), begun: false }
    }
}

/// A number of things in words: `1 invoice`, `2 invoices`. `many` is a plural that ends in `s`.
pub(crate) fn counted(count: u64, many: &str) -> String {
    let things = if count == 1 { many.strip_suffix('s').unwrap_or(many) } else { many };
    format!("{count} {things}")
}

/// Prints a list that arrives page by page. In a pipe each page is printed at once; JSON and tables need all pages.
pub(crate) struct List<'a> {
    output: &'a Output,
    spec: &'static ResourceSpec,
    columns: Vec<Column>,
    chosen: bool,
    rows: Vec<Row>,
    data: Vec<String>,
    begun: bool,
}

impl List<'_> {
    /// The columns whose values are names of objects.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !self.output.json && column.is_name())
    }

    /// Adds the next page. `names` has names of objects that it refers to.
    pub(crate) fn add_page(&mut self, page: &Page, names: &Names) -> Result<(), Failure> {
        if self.output.json {
            self.data.extend(page.data.iter().map(|object| object.get().to_owned()));
            return Ok(());
        }
        let clock = self.output.clock();
        for object in &page.data {
            let record = Record::read(object.get())?;
            let value = |column: &Column| match &clock {
                Some(clock) => column.shown(&record, names, clock),
                None => column.plain(&record, names),
            };
            self.rows.push(self.columns.iter().map(value).collect());
        }
        if self.output.terminal.is_none() {
            let heads = if self.begun { String::new() } else { table::tsv_names(&self.columns) };
            print(&(heads + &table::tsv(&self.rows)))?;
            self.begun = true;
            self.rows.clear();
        }
        Ok(())
    }

    /// Prints the rest of the list. `next_cursor` is set if there are more objects.
    pub(crate) fn finish(self, next_cursor: Option<&str>) -> Result<(), Failure> {
        if self.output.json {
            // `Session::list` prints a single page as it came.
            return self.output.json_objects(&self.data, next_cursor);
        }
        if let Some(width) = self.output.terminal {
            self.table(width)?;
        }
        if let Some(cursor) = next_cursor {
            self.output.note(&format!("there are more: use --limit N or --all, or --starting-after {cursor}"));
        }
        Ok(())
    }

    fn table(&self, width: usize) -> Result<(), Failure> {
        if self.rows.is_empty() {
            self.output.note(&format!("no {} found", self.spec.plural.replace('_', " ")));
            return Ok(());
        }
        let table = table::aligned(&self.columns, &self.rows, width, self.chosen, self.output.paint);
        if self.output.is_paged() {
            paged(&printable_styled(&table.text))?;
        } else {
            print(&table.text)?;
        }
        let hidden = match table.hidden {
            0 => return Ok(()),
            1 => "1 column is hidden".to_owned(),
            hidden => format!("{hidden} columns are hidden"),
        };
        self.output.note(&format!("{hidden} because the terminal is too narrow; choose with --columns"));
        Ok(())
    }
}

/// A row and what is wrong with it, in lines of at most 100 columns: what the row is, its key, and the problem.
pub(crate) fn item(place: &str, what: &str) -> String {
    let (name, key) = place.split_once(" (").map_or((place, None), |(name, key)| (name, Some(key)));
    let key = key.map(|key| wrapped("  ", &printable(key.trim_end_matches(')')), LINE_WIDTH)).unwrap_or_default();
    wrapped("", &printable(name), LINE_WIDTH) + &key + &wrapped("  ", &printable(what), LINE_WIDTH)
}

/// Prints a failure on stderr, as one line of JSON or as text. Help and version go to stdout. A closed pipe is not reported.
pub(crate) fn show_failure(failure: &Failure, json: bool) {
    let text = match failure {
        Failure::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => return,
        Failure::Clap(error) if !json || !error.use_stderr() => {
            // Nothing can be reported if stderr is closed.
            let _ = error.print();
            return;
        }
        _ if json && io::stderr().is_terminal() => printable_document(&failure.json()).into_owned() + "\n",
        _ if json => failure.json() + "\n",
        _ => style::report(&failure.text()),
    };
    // As above.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Writes a document to stdout as it is, or on a terminal without the characters that it would obey.
pub(crate) fn print_bytes(document: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return print_document(&String::from_utf8_lossy(document));
    }
    write(document)
}

/// Writes JSON, or what was made of it. On a terminal, characters that it would obey are escaped as in JSON.
fn print_document(text: &str) -> Result<(), Failure> {
    let text = if io::stdout().is_terminal() { printable_document(text) } else { text.into() };
    write(text.as_bytes())
}

/// Writes text of this program, whose values are escaped, to stdout and flushes it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let text = if io::stdout().is_terminal() { printable_styled(text) } else { text.into() };
    write(text.as_bytes())
}

/// Writes a text, in a pager if it is longer than the terminal.
fn paged(text: &str) -> Result<(), Failure> {
    if pager::shows(text) { Ok(()) } else { write(text.as_bytes()) }
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::stdout)
}
