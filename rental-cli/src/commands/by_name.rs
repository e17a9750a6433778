//! Organizations by their exact names, so that nobody has to copy ids. The server has no index of names: all pages are read,
//! up to a bound.

use crate::{
    client::{access::Access, api::Api},
    commands::pages,
    failure::Failure,
    output::record::Record,
};
use rental_core::resources::organization::SPEC;
use uuid::Uuid;

/// Maximum number of pages of organizations that are read to find a name.
const MAX_PAGES: usize = 100;
/// Ids that an error lists.
const MOST_LISTED: usize = 5;

/// Whether a text is an id. Everything else is a name.
pub(super) fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok()
}

/// The id of the one organization that has exactly this name.
pub(super) fn resolve(api: &Api, name: &str) -> Result<String, Failure> {
    let (mut same, mut similar) = (Vec::new(), None);
    let is_complete = pages::each_object((api, Access::Operator), &[SPEC.plural], &[], MAX_PAGES, |raw| {
        let record = Record::read(raw.get())?;
        if let Some((id, known)) = record.text("id").zip(record.text("name")) {
            if known == name {
                same.push(id);
            } else if known.trim().to_lowercase() == name.trim().to_lowercase() {
                similar = Some(known);
            }
        }
        Ok(true)
    })?;
    match same.as_slice() {
        [id] if is_complete => Ok(id.clone()),
        same => Err(unresolved(name, same, similar.as_deref(), is_complete)),
    }
}

/// Why a name does not lead to one organization.
fn unresolved(name: &str, same: &[String], similar: Option<&str>, is_complete: bool) -> Failure {
    let failure = |kind, problem, hint| Failure::Unsuccessful { kind, problem, hint };
    match (same, similar) {
        ([_, _, ..], _) => {
            let more = if same.len() > MOST_LISTED { ", ..." } else { "" };
            let ids = same.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
            let problem = format!("{} organizations have the name {name:?}: {ids}{more}", same.len());
            failure("ambiguous_name", problem, "use the id of the one that you mean")
        }
        _ if !is_complete => {
            let read = MAX_PAGES * pages::MAX_LIMIT as usize;
            let problem =
                format!("there are more than {read} organizations, so {name:?} was not looked up in all of them");
            failure("ambiguous_name", problem, "use the id of the organization")
        }
        (_, Some(similar)) => {
            let problem = format!("no organization has the name {name:?}; there is {similar:?}");
            failure("not_found", problem, "write the name exactly as it is, or use the id")
        }
        _ => {
            let problem = format!("no organization has the name {name:?}");
            failure("not_found", problem, "`rental-cli organizations list --all` shows names and ids")
        }
    }
}
