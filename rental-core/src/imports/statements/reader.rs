//! Opens a file of any kind and reads its rows.

use super::{
    failure::{Failed, Refused},
    formats::{Format, Kind},
    header::Header,
    input::Input,
    layout::Layout,
    mapping::Mapping,
    objects::Objects,
    row::{Plan, Row, Settings, StatementRow, Values},
    table::{Fields, Table},
};
use crate::{
    request::body::{did_you_mean, shorten},
    value::Sum,
};
use std::{io::Read, marker::PhantomData};

/// An iterator over the rows of one file, with their numbers: of a CSV row the line where it begins, of a JSON object its
/// position, both from 1. It ends after an error.
pub struct Reader<R, T> {
    records: Records<R>,
    plan: Plan,
    ended: bool,
    row: PhantomData<fn() -> T>,
}

enum Records<R> {
    Csv(Box<Table<R>>),
    Json(Box<Objects<R>>),
}

impl<R: Read, T: StatementRow> Reader<R, T> {
    /// Opens a file in the format with this name, by default the first one of its kind, or in the format of a mapping.
    ///
    /// # Errors
    /// [`Failed::Refused`] when the file is not in this format. The sentence names the missing column, or the right format.
    /// [`Failed::Read`] when the file cannot be read.
    pub fn open(file: R, format: Option<&str>, mapping: Option<&Mapping>, settings: &Settings) -> Result<Self, Failed> {
        let (records, plan) = open(T::KIND, file, format, mapping, settings)?;
        Ok(Self { records, plan, ended: false, row: PhantomData })
    }
}

impl<R: Read, T: StatementRow> Iterator for Reader<R, T> {
    type Item = Result<(u64, Row<T>), Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.records.next();
        self.ended = !matches!(record, Ok(Some(_)));
        let (number, fields) = match record.transpose()? {
            Ok(record) => record,
            Err(failed) => return Some(Err(failed)),
        };
        let row = match fields {
            Ok(fields) => Row::read(&Values { plan: &self.plan, row: &fields }),
            Err(why) => Row::Invalid(why, Sum::default()),
        };
        Some(Ok((number, row)))
    }
}

impl<R: Read> Records<R> {
    fn next(&mut self) -> Result<Option<Fields<'_>>, Failed> {
        match self {
            Self::Csv(table) => table.next(),
            Self::Json(objects) => objects.next(),
        }
    }
}

fn open<R: Read>(
    kind: &Kind,
    file: R,
    format: Option<&str>,
    mapping: Option<&Mapping>,
    settings: &Settings,
) -> Result<(Records<R>, Plan), Failed> {
    if format.is_some() && mapping.is_some() {
        return Err(Refused("give either a format or a mapping file, not both".into()).into());
    }
    let format = match format {
        Some(name) => kind.layouts.iter().find(|format| format.name == name).ok_or_else(|| unknown(name, kind))?,
        None => &kind.layouts[0],
    };
    let input = Input::open(file)?;
    if !input.is_json() {
        let mut table = Table::open(input)?;
        let plan = match mapping {
            Some(mapping) => described(mapping, &table.header, settings),
            None => known(kind, format, &table.header, settings),
        }
        .map_err(Refused)?;
        if plan.strict {
            table = table.forgiving();
        }
        return Ok((Records::Csv(Box::new(table)), plan));
    }
    if !kind.json {
        let why = "expected CSV, but the file looks like JSON; download the statement as CSV";
        return Err(Refused(why.into()).into());
    }
    let names = format.columns.iter().flat_map(|(_, names)| names.iter().copied());
    let objects = Objects::open(input, names)?;
    let (mapping, layout) = fit(format, &objects.header).map_err(Refused)?;
    let plan = Plan { strict: format.strict, ..Plan::new(mapping, layout, settings) };
    Ok((Records::Json(Box::new(objects)), plan))
}

/// The error for a format that does not exist.
fn unknown(name: &str, kind: &Kind) -> Refused {
    let names: Vec<&str> = kind.formats.iter().map(|(known, _)| *known).collect();
    let near = did_you_mean(name, names.iter().copied());
    Refused(format!("there is no format `{}`{near}. Known formats: {}", shorten(name), names.join(", ")))
}

/// The plan for a file with a mapping.
fn described(mapping: &Mapping, header: &Header, settings: &Settings) -> Result<Plan, String> {
    let layout = Layout::find(mapping, None, header)
        .map_err(|why| format!("expected the columns of the mapping file, but {why}. Found: {}", header.shown()))?;
    let plan = Plan::new(mapping.clone(), layout, settings);
    if plan.zone.is_none() && mapping.has_local_dates() {
        return Err("the times of this file are local: give `time_zone` in the mapping, or --time-zone".into());
    }
    Ok(plan)
}

/// The plan for a CSV file in a known format. The error says what is missing and which other format fits.
fn known(kind: &Kind, format: &Format, header: &Header, settings: &Settings) -> Result<Plan, String> {
    let why = match fit(format, header) {
        Ok((mapping, mut layout)) => {
            if format.spellings {
                layout = layout.without_alternatives();
            }
            return Ok(Plan { strict: format.strict, ..Plan::new(mapping, layout, settings) });
        }
        Err(why) => why,
    };
    let fitting = kind.layouts.iter().find(|other| fit(other, header).is_ok());
    let has = |name: &&str| header.find(name).is_some();
    let other_file = kind.other_files.iter().find(|file| has(&file.column) && !file.lacks.iter().any(has));
    let hint = match (fitting, other_file) {
        (Some(other), _) => format!("this looks like {0}; use --format {0}", other.name),
        (None, Some(file)) => file.hint.to_owned(),
        (None, None) => kind.advice.to_owned(),
    };
    Err(format!("expected the columns of {}, but {why}; {hint}. Found: {}", format.name, header.shown()))
}

/// Finds the columns of a format in a file. The error says which one is missing.
fn fit(format: &Format, header: &Header) -> Result<(Mapping, Layout), String> {
    if let Some(mark) = format.mark.filter(|mark| header.find(mark).is_none()) {
        return Err(header.lacks(&[mark]));
    }
    let mapping = format.mapping(|name| header.find(name).is_some());
    let layout = Layout::find(&mapping, format.required, header)?;
    if format.strict {
        let known: Vec<&str> = format.columns.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        if let Some(name) = header.others(&known).next() {
            let near = did_you_mean(&name.to_lowercase(), known.iter().copied());
            return Err(format!("`{name}` is none of them{near}"));
        }
    }
    if !format.one_of.is_empty() && !format.one_of.iter().any(|field| layout.has(*field)) {
        let names: Vec<&str> = format.one_of.iter().filter_map(|field| format.names(*field).first().copied()).collect();
        return Err(header.lacks(&names));
    }
    Ok((mapping, layout))
}
