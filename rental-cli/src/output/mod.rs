//! What goes to stdout, and the notes that go to stderr.

pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod style;
mod table;
pub(crate) mod whole_file;

use crate::{failure::Failure, objects, text::printable};
use record::{Page, Record};
use rental_core::spec::ResourceSpec;
use std::io::{self, IsTerminal as _, Write as _};
use style::{ASIDE, Paint};
use table::Row;

/// How wide a table may be when the terminal does not say.
const USUAL_WIDTH: usize = 80;

/// The forms that the user chose.
#[derive(Clone)]
pub(crate) struct Output {
    /// One JSON value on stdout, and no notes.
    pub(crate) json: bool,
    /// No notes.
    pub(crate) quiet: bool,
    terminal: Option<usize>,
    /// Whether stdout is coloured.
    pub(crate) paint: Paint,
}

impl Output {
    /// Looks at what stdout is.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        if json || quiet {
            progress::silence();
        }
        let width = || terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        Self { json, quiet, terminal: io::stdout().is_terminal().then(width), paint: Paint::stdout() }
    }

    /// Prints one object: as it came with `--json`, else field by field.
    pub(crate) fn object(&self, json: &str) -> Result<(), Failure> {
        if self.json {
            return print(&format!("{}\n", json.trim()));
        }
        let record = Record::read(json)?;
        let spec = record.text("object").and_then(|object| objects::description(&object));
        let fields: Vec<_> = record.fields().collect();
        print(&table::fields(spec, &fields, self.is_terminal(), self.paint))
    }

    /// Prints one object that this program made.
    pub(crate) fn value(&self, object: &serde_json::Value) -> Result<(), Failure> {
        self.object(&object.to_string())
    }

    /// Prints names and values that no resource describes.
    pub(crate) fn fields(&self, fields: &[(String, Option<String>)]) -> Result<(), Failure> {
        print(&table::fields(None, fields, self.is_terminal(), self.paint))
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Prints rows of texts under names: aligned on a terminal, else with tabs.
    pub(crate) fn rows(&self, names: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|text| printable(text)).collect()).collect();
        print(&table::plain(names, &rows, self.is_terminal(), self.paint))
    }

    /// Tells the user something that is not data.
    pub(crate) fn note(&self, text: &str) {
        if !self.json && !self.quiet {
            // A note that nobody reads is no failure.
            let _ = writeln!(anstream::stderr(), "{ASIDE}{text}{ASIDE:#}");
        }
    }

    /// Begins the output of a list.
    pub(crate) fn list(&self, spec: &'static ResourceSpec) -> List<'_> {
        List { output: self, spec, rows: Vec::new(), data: Vec::new(), begun: false }
    }
}

/// A list on its way out, page by page. In a pipe each page goes out as it comes; the other forms need all of them.
pub(crate) struct List<'a> {
    output: &'a Output,
    spec: &'static ResourceSpec,
    rows: Vec<Row>,
    data: Vec<String>,
    begun: bool,
}

impl List<'_> {
    /// Takes the next page.
    pub(crate) fn page(&mut self, page: &Page) -> Result<(), Failure> {
        if self.output.json {
            self.data.extend(page.data.iter().map(|object| object.get().to_owned()));
            return Ok(());
        }
        let columns = table::columns(self.spec);
        for object in &page.data {
            let record = Record::read(object.get())?;
            self.rows.push(columns.iter().map(|column| record.text(column.name())).collect());
        }
        if self.output.terminal.is_none() {
            print(&table::tsv(&columns, &self.rows, !self.begun))?;
            self.begun = true;
            self.rows.clear();
        }
        Ok(())
    }

    /// Prints what was kept back; `next_cursor` is where more follow.
    pub(crate) fn end(self, next_cursor: Option<&str>) -> Result<(), Failure> {
        if self.output.json {
            // Only for several pages: a single one goes out as it came.
            return print(&format!(
                "{{\"object\":\"list\",\"has_more\":false,\"next_cursor\":null,\"data\":[{}]}}\n",
                self.data.join(",")
            ));
        }
        if let Some(width) = self.output.terminal {
            self.table(width)?;
        }
        if let Some(cursor) = next_cursor {
            self.output.note(&format!("there are more: use --starting-after {cursor}, or --all"));
        }
        Ok(())
    }

    fn table(&self, width: usize) -> Result<(), Failure> {
        if self.rows.is_empty() {
            self.output.note(&format!("no {} found", self.spec.plural.replace('_', " ")));
            return Ok(());
        }
        let (text, hidden) = table::aligned(&table::columns(self.spec), &self.rows, width, self.output.paint);
        print(&text)?;
        match hidden {
            0 => {}
            1 => self.output.note("1 column is hidden because the terminal is too narrow; --json shows all fields"),
            _ => self.output.note(&format!(
                "{hidden} columns are hidden because the terminal is too narrow; --json shows all fields"
            )),
        }
        Ok(())
    }
}

/// Says on stderr why a command failed, as one line of JSON or as text; help and version go to stdout. A reader that went
/// away is no news.
pub(crate) fn failure(failure: &Failure, json: bool) {
    let text = match failure {
        Failure::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => return,
        Failure::Clap(error) if !json || !error.use_stderr() => {
            // Nobody is left to tell when this fails.
            let _ = error.print();
            return;
        }
        _ if json => failure.json() + "\n",
        _ => style::report(&failure.text()),
    };
    // Here as well.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Writes data to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::stdout)
}
