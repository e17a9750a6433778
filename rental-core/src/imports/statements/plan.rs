//! Decides how the rows of a file are read: by the mapping or format that the operator named, or by the first format of its kind.

use super::{
    field::Field,
    formats::{Format, Kind},
    header::Header,
    input::Input,
    layout::Layout,
    mapping::Mapping,
    table::{self, Table},
};
use crate::{
    request::body::did_you_mean,
    value::{Currency, Zone},
};

/// The settings of an import that the format does not define.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The organization's currency.
    pub currency: Currency,
    /// The time zone of local times; `None` means that of the format or mapping, and the organization's where these have none.
    pub zone: Option<Zone>,
    /// The time zone of the organization.
    pub home: Zone,
}

/// How the rows of one file are read.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) mapping: Mapping,
    pub(super) layout: Layout,
    pub(super) zone: Option<Zone>,
    /// The time zone of the organization, as an example in messages.
    pub(super) home: Zone,
    pub(super) currency: Currency,
    /// Whether the file is in the product's own format. Then an unknown column is an error of the file, a row with another number of
    /// fields is an error of this row only, and a row needs an agency but no time.
    pub(super) strict: bool,
    /// Whether the file is one of New York's lists: impossible dates stay as they are, and times can have lost their A or P.
    pub(super) is_new_york: bool,
    /// Whether the rows are in a section that has no columns for what a row needs.
    pub(super) is_skipped: bool,
    /// The line of the header in a CSV file.
    pub(super) header: Option<u64>,
    /// Whether a row below this header was read.
    pub(super) has_rows: bool,
}

impl Plan {
    /// The plan for the file of an agency or city.
    fn new(mapping: Mapping, layout: Layout, settings: &Settings) -> Self {
        let (zone, home, currency) = (settings.zone.or(mapping.zone), settings.home, settings.currency);
        let (strict, is_new_york, is_skipped, has_rows) = (false, false, false, false);
        Self { mapping, layout, zone, home, currency, strict, is_new_york, is_skipped, header: None, has_rows }
    }

    /// Reads the rows below another header.
    pub(super) fn enter(&mut self, layout: Layout, line: u64, is_skipped: bool) {
        (self.layout, self.header, self.is_skipped, self.has_rows) = (layout, Some(line), is_skipped, false);
    }
}

/// What the operator says about a file.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) kind: &'static Kind,
    /// The format, and whether it was named.
    pub(super) format: (&'static Format, bool),
    pub(super) mapping: Option<&'a Mapping>,
    pub(super) settings: &'a Settings,
}

impl Asked<'_> {
    /// The columns and the encoding that are looked for in the file.
    pub(super) fn description(&self) -> Result<Mapping, String> {
        self.mapping.map_or_else(|| self.format.0.mapping(self.kind, |_| false), |mapping| Ok(mapping.clone()))
    }

    /// The plan for a file with this header. `line` is its line in a CSV file, whose first bytes are `head`. The error says what is
    /// missing and which other format fits.
    pub(super) fn plan(&self, header: &Header, line: u64, head: &[u8]) -> Result<Plan, String> {
        let (format, is_named) = self.format;
        let (what, fitted) = match (self.mapping, is_named) {
            (Some(mapping), _) => ("the mapping file", described(self.kind, mapping.clone(), header)),
            (None, true) => (format.name, fit(self.kind, format, header)),
            (None, false) => (self.kind.file, fit(self.kind, format, header)),
        };
        let (mapping, layout) = fitted.map_err(|why| {
            let described = self.description();
            let names = &described.as_ref().map(Mapping::names).unwrap_or_default();
            let place = if line > 1 { format!(" in line {line}") } else { String::new() };
            let hint = if self.mapping.is_some() {
                "correct the name in the mapping, or write it in `optional` if files or sections can lack it".to_owned()
            } else {
                self.other(header, head)
            };
            let below = if header.count_of(names) == 0 && table::is_long(head) { table::BELOW } else { "" };
            format!("expected the columns of {what}{place}, but {why}; {hint}{below}. Found: {}", header.shown())
        })?;
        let mut plan = Plan::new(mapping, layout, self.settings);
        if self.mapping.is_some() || format.is_mapped() {
            plan.zone = plan.zone.or(Some(self.settings.home));
            return Ok(plan);
        }
        (plan.strict, plan.is_new_york) = (format.strict, format.is_new_york() && self.kind.has_issuer);
        // The members of a JSON object can have any of the names.
        if format.spellings && !head.is_empty() {
            plan.layout = plan.layout.without_alternatives();
        }
        if plan.is_new_york && !is_named { self.of_no_format(plan) } else { Ok(plan) }
    }

    /// The plan for a list without a format, which has the columns of New York's lists. Its zone and the order of its dates are New
    /// York's only where the organization or the operator says so.
    fn of_no_format(&self, mut plan: Plan) -> Result<Plan, String> {
        let Settings { zone, home, .. } = self.settings;
        match zone.unwrap_or(*home) {
            Zone::NEW_YORK => Ok(plan),
            _ if zone.is_some() => {
                (plan.is_new_york, plan.mapping.dates) = (false, None);
                Ok(plan)
            }
            home => Err(format!(
                "nothing says where the times of this list are from; give --time-zone, such as --time-zone {home}, or --format {} if \
                 the list is New York's, or the --format of the city",
                self.format.0.name
            )),
        }
    }

    /// What to do with a file that is not in the format.
    fn other(&self, header: &Header, head: &[u8]) -> String {
        let fits = |other: &&Format| {
            let Ok(mapping) = other.mapping(self.kind, |_| false) else { return false };
            let place = table::find(head, &mapping);
            let table = Input::open(head, None).and_then(|input| Table::open(input, place, mapping.encoding));
            table.is_ok_and(|table| fit(self.kind, other, &table.header).is_ok())
        };
        if let Some(other) = self.kind.layouts.iter().find(fits) {
            return format!("this looks like {0}; use --format {0}", other.name);
        }
        let has = |name: &&str| header.find(name).is_some();
        let known = self.kind.other_files.iter().find(|file| has(&file.column) && !file.lacks.iter().any(has));
        known.map_or(self.kind.advice, |file| file.hint).to_owned()
    }
}

/// Finds the columns of a mapping in a file. The error says which ones are missing.
fn described(kind: &Kind, mapping: Mapping, header: &Header) -> Result<(Mapping, Layout), String> {
    let layout = Layout::find(&mapping, header)?;
    match lacking(kind, &mapping, &layout, header) {
        Some(why) => Err(why),
        None => Ok((mapping, layout)),
    }
}

/// What every row needs and a header has no column for.
pub(super) fn lacking(kind: &Kind, mapping: &Mapping, layout: &Layout, header: &Header) -> Option<String> {
    let needs: [&[Field]; 3] = if kind.has_issuer {
        [&[Field::SummonsNumber], &[Field::Plate], &[Field::AmountDue, Field::Fine]]
    } else {
        [
            &[Field::Amount, Field::Debit],
            &[Field::Date, Field::OccurredAt],
            &[Field::Plate, Field::Transponder, Field::TagOrPlate],
        ]
    };
    let missing = needs.into_iter().find(|fields| !fields.iter().any(|field| layout.has(*field)))?;
    let names = mapping.columns.iter().filter(|(field, _)| missing.contains(field));
    let names: Vec<&str> = names.filter_map(|(_, source)| source.names.first().map(String::as_str)).collect();
    Some(header.lacks(&names))
}

/// Finds the columns of a format in a file. The error says which ones are missing.
fn fit(kind: &Kind, format: &Format, header: &Header) -> Result<(Mapping, Layout), String> {
    if let Some(mark) = format.mark.filter(|mark| header.find(mark).is_none()) {
        return Err(header.lacks(&[mark]));
    }
    let mapping = format.mapping(kind, |name| header.find(name).is_some())?;
    if format.is_mapped() {
        return described(kind, mapping, header);
    }
    let layout = Layout::find(&mapping, header)?;
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
