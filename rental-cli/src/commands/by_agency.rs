//! Tolls and violations by agency and number, because two agencies can use the same number: `MTAB&T:61231234567`.

use crate::{
    client::api::Api,
    commands::{by_passage, pages},
    failure::Failure,
    output::record::Record,
};
use rental_core::{
    resources::{toll, violation},
    schema::ResourceSpec,
    value::folded,
};
use std::collections::HashMap;

/// Colons of a text at which agency and number are divided. Few agencies and numbers contain one.
const MOST_COLONS: usize = 3;

/// The fields of a resource with its agency and number: the number is a filter of the list, too.
fn members(spec: &ResourceSpec) -> Option<(&'static str, &'static str)> {
    let known = [(&toll::SPEC, ("agency", "transaction_id")), (&violation::SPEC, ("issuer", "summons_number"))];
    known.into_iter().find(|(one, _)| one.object == spec.object).map(|(_, members)| members)
}

/// Whether a text can be an agency and a number.
pub(super) fn fits(text: &str) -> bool {
    text.contains(':') && !by_passage::fits(text)
}

/// The agency and number of an object of a list, as a command takes them.
pub(super) fn name(spec: &ResourceSpec, record: &Record) -> Option<String> {
    let (agency, number) = members(spec)?;
    joined(record.text(agency), record.text(number))
}

/// The number of an object of a list.
pub(super) fn number(spec: &ResourceSpec, record: &Record) -> Option<String> {
    record.text(members(spec)?.1).filter(|number| !number.is_empty())
}

fn joined(agency: Option<String>, number: Option<String>) -> Option<String> {
    let [agency, number] = [agency, number].map(|text| text.filter(|text| !text.is_empty()));
    Some(format!("{}:{}", agency?, number?))
}

/// The objects that a text names. The agency is compared without regard to case.
pub(super) fn found(api: &Api, spec: &ResourceSpec, text: &str) -> Result<Vec<Record>, Failure> {
    let Some((agency, number)) = members(spec) else { return Ok(Vec::new()) };
    for (at, _) in text.match_indices(':').take(MOST_COLONS) {
        let [whose, which] = [&text[..at], &text[at + 1..]].map(str::trim);
        if whose.is_empty() || which.is_empty() {
            continue;
        }
        let mut found = pages::of_filter(api, spec.plural, (number, which))?;
        found.retain(|one| one.text(agency).is_some_and(|name| folded(&name) == folded(whose)));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// What a command takes for each row of a review: its number; with the agency if several rows have that number; of a toll
/// without a number its passage.
pub(super) fn names_of_rows(spec: &ResourceSpec, rows: &[Record]) -> Vec<Option<String>> {
    let number = |row: &Record| row.text("number").filter(|number| !number.is_empty());
    let passage =
        |row: &Record, exact| by_passage::name_of_row(row, exact).filter(|_| spec.object == toll::SPEC.object);
    let short: Vec<_> = rows.iter().map(|row| number(row).or_else(|| passage(row, false))).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in short.iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    let exact = |(row, short): (&Record, &Option<String>)| {
        let short = short.as_ref()?;
        let is_shared = counts.get(short.as_str()).is_some_and(|count| *count > 1);
        let exact = || match number(row) {
            number @ Some(_) => joined(row.text("agency"), number),
            None => passage(row, true),
        };
        if is_shared { exact().or_else(|| Some(short.clone())) } else { Some(short.clone()) }
    };
    rows.iter().zip(&short).map(exact).collect()
}
