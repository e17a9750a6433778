//! Reads a list page by page.

use crate::{
    client::{access::Access, api::Api, request::Request},
    failure::Failure,
    output::record::{self, Page, Record},
};
use serde_json::value::RawValue;

/// Maximum objects of a page.
pub(super) const MAX_LIMIT: u32 = 100;

/// Gives the objects of a list to `visit`, newest first, as long as it returns true. Returns whether this were all
/// objects of the list: false if `visit` ended it, and after `pages` pages if there are more.
pub(super) fn each_object(
    (api, access): (&Api, Access),
    path: &[&str],
    query: &[(String, String)],
    pages: usize,
    mut visit: impl FnMut(&RawValue) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut cursor: Option<String> = None;
    for _ in 0..pages {
        let mut query = query.to_vec();
        query.push(("limit".into(), MAX_LIMIT.to_string()));
        query.extend(cursor.take().map(|cursor| ("starting_after".to_owned(), cursor)));
        let request = Request::get(access, path).with_query(query);
        let page = Page::read(&record::json(api.send(&request)?)?)?;
        for raw in &page.data {
            if !visit(raw)? {
                return Ok(false);
            }
        }
        match page.next_cursor.filter(|_| page.has_more) {
            Some(next) => cursor = Some(next),
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// The objects of the first page of a list with these parameters, newest first.
pub(super) fn filtered(
    (api, access): (&Api, Access),
    plural: &str,
    query: &[(&str, &str)],
) -> Result<Vec<Record>, Failure> {
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let page = Page::read(&record::json(api.send(&Request::get(access, &[plural]).with_query(query))?)?)?;
    page.data.iter().map(|raw| Record::read(raw.get())).collect()
}

/// The same for the objects of an organization with this value of a filter: at most a whole page.
pub(super) fn of_filter(api: &Api, plural: &str, filter: (&str, &str)) -> Result<Vec<Record>, Failure> {
    filtered((api, Access::Organization), plural, &[filter, ("limit", &MAX_LIMIT.to_string())])
}
