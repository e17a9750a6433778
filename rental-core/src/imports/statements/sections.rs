//! What is between the rows of a CSV file: titles, and headers of sections.

use super::{
    cells::{filled, is_total},
    formats::Kind,
    header::Header,
    layout::Layout,
    plan::{Plan, lacking},
    row::Values,
};

/// What a record is that is no row.
pub(super) enum Aside {
    /// A title, a total, or a line of blanks.
    Title,
    /// The header of a section with rows.
    Header(Layout),
    /// The header of a section whose rows cannot be read as those above. The sentence says why.
    Foreign(Layout, String),
}

/// What a record is that could not be read as a row, if it is no row.
pub(super) fn aside(kind: &Kind, values: &Values<'_>) -> Option<Aside> {
    let plan = values.plan;
    let header = Header::read(values.row);
    if header.count_of(&plan.mapping.names()) < 2 && !is_of_words(values) {
        return is_title(values).then_some(Aside::Title);
    }
    Some(match section(kind, plan, &header) {
        Ok(layout) => Aside::Header(layout),
        Err(why) => {
            let (file, shown) = (kind.resource.plural, header.shown());
            let why = format!(
                "begins a section in which {why}, so its rows are skipped; if they are {file}, name its columns in a mapping file. Found: {shown}"
            );
            Aside::Foreign(Layout::some(&plan.mapping, &header).0, why)
        }
    })
}

/// Whether a record has at least two texts and no digit, so that it can be the header of another kind of rows. Labels, totals and rows
/// that the mapping skips are no such headers, nor are titles of two texts.
fn is_of_words(values: &Values<'_>) -> bool {
    let cells: Vec<&str> = values.row.iter().filter_map(|cell| filled(cell)).collect();
    let is_word = |cell: &&str| !cell.chars().any(char::is_numeric) && !cell.ends_with(':');
    let least = if values.is_of_other_length() { 3 } else { 2 };
    cells.len() >= least
        && cells.iter().all(is_word)
        && cells.first().is_some_and(|first| !is_total(first))
        && !values.is_skipped()
}

/// Whether a record is a title, a total or a line of blanks. A row that was cut off has its date, and one whose quotation mark does not end
/// has the line breaks of the rows that are lost in it.
fn is_title(values: &Values<'_>) -> bool {
    let count = values.row.iter().filter(|cell| filled(cell).is_some()).count();
    let is_short = values.is_of_other_length() && !values.has_date();
    if values.row.iter().any(|cell| cell.contains(['\r', '\n'])) {
        return false;
    }
    count < 2 || is_short && (count == 2 || values.row.iter().any(|cell| is_total(cell)))
}

/// The columns of a section with this header. The error says why its rows cannot be read as those above.
fn section(kind: &Kind, plan: &Plan, header: &Header) -> Result<Layout, String> {
    let layout = Layout::find(&plan.mapping, header)?;
    if let Some(why) = lacking(kind, &plan.mapping, &layout, header) {
        return Err(why);
    }
    match plan.mapping.positive_with {
        Some((column, had)) if header.find(column).is_some() != had => Err(format!(
            "the signs of the amounts are other ones, because of the column `{column}`, which only one of the headers has"
        )),
        _ => Ok(layout),
    }
}
