//! Names of flags: each field of the API has one.

use rental_core::{
    resources::specs,
    schema::{FieldSpec, Presence},
};

/// Returns the flag of a field that an error names: `daily-rate` for `daily_rate`. `None` if no request has that field.
pub(crate) fn flag_of(field: &str) -> Option<String> {
    // Parameters and members of actions, which no resource describes.
    match field {
        "overlap_seconds" => return Some("overlap".into()),
        "format" | "mapping" | "issuer" | "paid_at" => return Some(flag(field)),
        _ => {}
    }
    let mut known = specs().flat_map(|spec| spec.fields);
    known.find(|known| known.name == field && sendable(known)).map(|known| flag(known.name))
}

/// What a path into a list is on a command line, where a repeated flag has the items: `the amount of --line number 1` for
/// `lines[0].amount`. `None` if no flag has that list.
pub(crate) fn in_list(path: &str) -> Option<String> {
    let (list, rest) = path.split_once('[')?;
    let (place, member) = rest.split_once(']')?;
    let (flag, number) = (flag_of(list)?, place.parse::<usize>().ok()?.checked_add(1)?);
    let item = format!("--{flag} number {number}");
    Some(match member.strip_prefix('.') {
        Some(member) => format!("the {} of {item}", member.trim_end_matches("_id").replace('_', " ")),
        None => item,
    })
}

fn sendable(field: &FieldSpec) -> bool {
    field.create != Presence::Never || field.update != Presence::Never
}

/// Returns the flag of a field: its name in kebab-case. References lose `_id`, as in the filters of lists.
pub(crate) fn flag(field: &str) -> String {
    match field {
        "default_currency" => "currency".into(),
        "lines" => "line".into(),
        "events" => "event".into(),
        "assignments" => "assignment".into(),
        "customer_id" | "vehicle_id" | "rental_id" | "invoice_id" | "organization_id" => {
            field.trim_end_matches("_id").into()
        }
        _ => field.replace('_', "-"),
    }
}
