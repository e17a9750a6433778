//! Opens a file of any kind and reads its rows.

use super::{
    failure::{Failed, Refused},
    formats::Kind,
    input::Input,
    mapping::Mapping,
    objects::Objects,
    plan::{Asked, Plan, Settings},
    row::{Row, StatementRow, Values},
    sections::{Aside, aside},
    table::{self, Fields, Table},
};
use crate::{
    request::body::{did_you_mean, shorten},
    value::SignedMoney,
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
        if format.is_some() && mapping.is_some() {
            return Err(Refused("give either a format or a mapping file, not both".into()).into());
        }
        let kind = T::KIND;
        let known =
            |name: &str| kind.layouts.iter().find(|format| format.name == name).ok_or_else(|| unknown(name, kind));
        let chosen = format.map(known).transpose()?.unwrap_or(&kind.layouts[0]);
        let (records, plan) = open(file, &Asked { kind, format: (chosen, format.is_some()), mapping, settings })?;
        Ok(Self { records, plan, ended: false, row: PhantomData })
    }
}

impl<R: Read, T: StatementRow> Iterator for Reader<R, T> {
    type Item = Result<(u64, Row<T>), Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let record = self.records.next();
            self.ended = !matches!(record, Ok(Some(_)));
            let row = record.transpose()?.and_then(|(number, fields)| match fields {
                Ok(fields) => Ok(read(&mut self.plan, number, &fields)?.map(|row| (number, row))),
                Err(why) => Ok(Some((number, Row::Invalid(why, SignedMoney::default())))),
            });
            self.ended |= row.is_err();
            if let Some(row) = row.transpose() {
                return Some(row);
            }
        }
        None
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

fn open<R: Read>(file: R, asked: &Asked<'_>) -> Result<(Records<R>, Plan), Failed> {
    let described = asked.description().map_err(Refused)?;
    let mut input = Input::open(file, described.encoding)?;
    if input.is_json() {
        if !asked.kind.json {
            let why = "expected CSV, but the file looks like JSON; download the statement as CSV";
            return Err(Refused(why.into()).into());
        }
        let objects = Objects::open(input, &described.names())?;
        let plan = asked.plan(&objects.header, 1, &[]).map_err(Refused)?;
        return Ok((Records::Json(Box::new(objects)), plan));
    }
    input.skip_lines(described.skip_lines)?;
    let head = input.next_bytes()?.to_vec();
    let place = table::find(&head, &described).below(described.skip_lines);
    let table = Table::open(input, place, described.encoding)?;
    let mut plan = asked.plan(&table.header, table.line, &head).map_err(Refused)?;
    plan.header = Some(table.line);
    Ok((Records::Csv(Box::new(table)), plan))
}

/// The error for a format that does not exist.
fn unknown(name: &str, kind: &Kind) -> Refused {
    let names: Vec<&str> = kind.formats.iter().map(|(known, _)| *known).collect();
    let near = did_you_mean(name, names.iter().copied());
    Refused(format!("there is no format `{}`{near}. Known formats: {}", shorten(name), names.join(", ")))
}

/// The row of a record, or `None` for the header of a section, below which the plan is another one.
fn read<T: StatementRow>(plan: &mut Plan, line: u64, fields: &[&str]) -> Result<Option<Row<T>>, Failed> {
    let values = Values { plan, row: fields };
    let (found, expected) = (fields.len(), plan.layout.count);
    let row = match found == expected {
        _ if plan.is_skipped => {
            // The amount of a total is that of other rows.
            let has_sum = found == expected && !values.is_total();
            let sum = T::sum_of(&values).filter(|_| has_sum).unwrap_or_default();
            Row::Skipped("a row of a section that cannot be read as the others", sum)
        }
        true => Row::read(&values),
        false => Row::Invalid(
            format!("has {found} fields where the header names {expected} columns; is a quotation mark missing?"),
            SignedMoney::default(),
        ),
    };
    let Some(header) = plan.header.filter(|_| !plan.strict && !matches!(row, Row::Record(_))) else {
        plan.has_rows = true;
        return Ok(Some(row));
    };
    Ok(match aside(T::KIND, &values) {
        Some(Aside::Title) => Some(Row::Skipped("a title, a total or a line of blanks", SignedMoney::default())),
        Some(Aside::Header(layout)) => {
            plan.enter(layout, line, false);
            None
        }
        Some(Aside::Foreign(layout, why)) => {
            plan.enter(layout, line, true);
            Some(Row::Section(why))
        }
        // If the header lacks a name, every value would belong to a wrong column.
        None if found != expected && !plan.has_rows && !plan.is_skipped => {
            return Err(Refused(format!(
                "the header in line {header} names {expected} columns, but the first record, in line {line}, has {found} fields, so no \
                 value can be told; export the file again, or correct its header"
            ))
            .into());
        }
        None => {
            plan.has_rows = true;
            Some(row)
        }
    })
}
