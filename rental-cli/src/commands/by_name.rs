//! Organizations by their names, so that nobody has to copy ids. The server has no index of names: all pages are read,
//! up to a bound.

use crate::{
    client::{access::Access, api::Api},
    commands::pages,
    failure::Failure,
    output::record::Record,
};
use rental_core::{
    resources::organization::SPEC,
    value::{folded, nfc},
};
use uuid::Uuid;

/// Maximum number of pages of organizations that are read to find a name.
const MAX_PAGES: usize = 100;
/// Ids that an error lists.
const MOST_LISTED: usize = 5;

/// Whether a text is an id. Everything else is a name.
pub(super) fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok()
}

/// The id of the one organization that has this name; if there is none, of the one that has it in other capital or small letters.
pub(super) fn resolve(api: &Api, name: &str) -> Result<String, Failure> {
    let (mut exact, mut alike) = (Vec::new(), Vec::new());
    let (wanted, wanted_in_any_case) = (nfc(name), folded(name.trim()));
    let is_complete = pages::each_object((api, Access::Operator), &[SPEC.plural], &[], MAX_PAGES, |raw| {
        let record = Record::read(raw.get())?;
        if let Some((id, known)) = record.text("id").zip(record.text("name")) {
            if nfc(&known) == wanted {
                exact.push(id);
            } else if folded(known.trim()) == wanted_in_any_case {
                alike.push((id, known));
            }
        }
        Ok(true)
    })?;
    match (exact.as_slice(), alike.as_slice()) {
        ([id], _) | ([], [(id, _)]) if is_complete => Ok(id.clone()),
        ([], alike) => {
            let found: Vec<String> = alike.iter().map(|(id, known)| format!("{id} ({known})")).collect();
            Err(unresolved(name, &found, is_complete))
        }
        (exact, _) => Err(unresolved(name, exact, is_complete)),
    }
}

/// Why a name does not lead to one organization.
fn unresolved(name: &str, found: &[String], is_complete: bool) -> Failure {
    let failure = |kind, problem, hint| Failure::Unsuccessful { kind, problem, hint };
    if let [_, _, ..] = found {
        let more = if found.len() > MOST_LISTED { ", ..." } else { "" };
        let listed = found.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
        let problem = format!("{} organizations have the name \"{name}\": {listed}{more}", found.len());
        return failure("ambiguous_name", problem, "use the id of the one that you mean");
    }
    if !is_complete {
        let read = MAX_PAGES * pages::MAX_LIMIT as usize;
        let problem =
            format!("there are more than {read} organizations, so \"{name}\" was not looked up in all of them");
        return failure("ambiguous_name", problem, "use the id of the organization");
    }
    let problem = format!("no organization has the name \"{name}\"");
    failure("not_found", problem, "`rental-cli organizations list --all` shows names and ids")
}
