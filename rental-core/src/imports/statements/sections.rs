//! What is between the rows of a CSV file: titles, and headers of sections.

use super::{
    cells::{filled, is_total},
    formats::Kind,
    header::Header,
    layout::Layout,
    plan::{Plan, lacking},
};

/// What a record is that is no row.
pub(super) enum Aside {
    /// A title, a total, or a line of blanks.
    Title,
    /// The header of a section with rows.
    Header(Layout),
    /// The header of a section without the columns that a row needs. The sentence names one.
    Foreign(Layout, String),
}

/// What a record is that could not be read as a row, if it is no row. A header has the name of the column of the amounts.
pub(super) fn aside(kind: &Kind, plan: &Plan, fields: &[&str]) -> Option<Aside> {
    let count = fields.iter().filter(|field| filled(field).is_some()).count();
    let is_short = fields.len() != plan.layout.count;
    let header = Header::read(fields);
    let amounts = plan.mapping.columns.iter().filter(|(field, _)| field.is_amount());
    let has_amount = amounts.flat_map(|(_, source)| &source.names).any(|name| header.find(name).is_some());
    if !has_amount || count < 2 {
        let is_title = count < 2 || is_short && (count == 2 || fields.iter().any(|field| is_total(field)));
        return is_title.then_some(Aside::Title);
    }
    let (layout, _) = Layout::some(&plan.mapping, &header);
    Some(match lacking(kind, &plan.mapping, &layout, &header) {
        None => Aside::Header(layout),
        Some(why) => {
            let (file, shown) = (kind.resource.plural, header.shown());
            let why = format!(
                "begins a section in which {why}, so its rows are skipped; if they are {file}, name its columns in a mapping file. Found: {shown}"
            );
            Aside::Foreign(layout, why)
        }
    })
}
