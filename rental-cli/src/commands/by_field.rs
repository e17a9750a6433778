//! Objects of a fleet by what people call them, so that nobody has to copy ids: a vehicle by its plate, a customer by email
//! address or full name, a rental by its booking id, a toll or violation by the agency's number.

use crate::{
    client::{access::Access, api::Api, request::Request},
    commands::{by_name::is_id, pages},
    failure::Failure,
    output::record::{self, Page, Record},
};
use rental_core::{resources::customer, schema::ResourceSpec};

/// How people name the objects of a resource.
struct Naming {
    object: &'static str,
    /// The filter of its list.
    param: &'static str,
    /// The same for people.
    called: &'static str,
    /// What stands for the value of a flag.
    placeholder: &'static str,
    /// The next step when there is no such object.
    hint: &'static str,
}

const NAMINGS: [Naming; 5] = [
    Naming {
        object: "vehicle",
        param: "plate",
        called: "the plate",
        placeholder: "ID|PLATE",
        hint: "`rental-cli vehicles list --all` shows plates and ids",
    },
    Naming {
        object: "customer",
        param: "email",
        called: "the email address",
        placeholder: "ID|EMAIL|NAME",
        hint: "`rental-cli customers list --all` shows names, email addresses and ids",
    },
    Naming {
        object: "rental",
        param: "booking_id",
        called: "the booking id",
        placeholder: "ID|BOOKING",
        hint: "`rental-cli rentals list --all --columns booking_id,customer,vehicle,id` shows booking ids and ids",
    },
    Naming {
        object: "toll",
        param: "transaction_id",
        called: "the transaction number",
        placeholder: "ID|NUMBER",
        hint: "`rental-cli tolls list --all --columns transaction_id,agency,amount,id` shows numbers and ids",
    },
    Naming {
        object: "violation",
        param: "summons_number",
        called: "the summons number",
        placeholder: "ID|NUMBER",
        hint: "`rental-cli violations list --all` shows numbers and ids",
    },
];

/// Ids that an error lists.
const MOST_LISTED: usize = 5;
/// Maximum number of pages of customers that are read to find a name.
const MAX_PAGES: usize = 100;

fn naming(object: &str) -> Option<&'static Naming> {
    NAMINGS.iter().find(|naming| naming.object == object)
}

/// What stands for a value that names an object; `None` when only its id does.
pub(crate) fn placeholder(object: &str) -> Option<&'static str> {
    Some(naming(object)?.placeholder)
}

/// The names of a resource for the help of a command: `plate`, or `email address or full name`.
pub(crate) fn names(object: &str) -> Option<String> {
    let words = naming(object)?.called.trim_start_matches("the ");
    Some(if object == customer::SPEC.object { format!("{words}, full name") } else { words.to_owned() })
}

/// The id of the one object that a text names. An id is returned as it is, without a request.
pub(crate) fn resolve(api: &Api, spec: &'static ResourceSpec, text: &str) -> Result<String, Failure> {
    let Some(naming) = naming(spec.object).filter(|_| !text.is_empty() && !is_id(text)) else {
        return Ok(text.to_owned());
    };
    let is_name = spec.object == customer::SPEC.object && !text.contains('@');
    let found = if is_name { with_name(api, spec, text) } else { with_field(api, spec, naming.param, text) };
    let ids = found.map_err(|failure| needs_a_key(failure, spec, text))?;
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        ids => {
            let called = if is_name { "the full name" } else { naming.called };
            Err(unresolved(spec, (called, text), ids, naming.hint))
        }
    }
}

fn with_field(api: &Api, spec: &ResourceSpec, param: &str, text: &str) -> Result<Vec<String>, Failure> {
    let limit = (MOST_LISTED + 1).to_string();
    let query = vec![(param.to_owned(), text.to_owned()), ("limit".to_owned(), limit)];
    let page =
        Page::read(&record::json(api.send(&Request::get(Access::Organization, &[spec.plural]).with_query(query))?)?)?;
    let ids = page.data.iter().map(|raw| Ok(Record::read(raw.get())?.text("id")));
    Ok(ids.collect::<Result<Vec<_>, Failure>>()?.into_iter().flatten().collect())
}

/// The ids of the customers with exactly this name. The API has no filter for names: all pages are read, up to a bound.
fn with_name(api: &Api, spec: &ResourceSpec, name: &str) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    let is_complete = pages::each_object((api, Access::Organization), &[spec.plural], &[], MAX_PAGES, |raw| {
        let record = Record::read(raw.get())?;
        if record.text("full_name").as_deref() == Some(name) {
            ids.extend(record.text("id"));
        }
        Ok(ids.len() <= MOST_LISTED)
    })?;
    if is_complete || ids.len() > MOST_LISTED {
        return Ok(ids);
    }
    let read = MAX_PAGES * pages::MAX_LIMIT as usize;
    let problem = format!("there are more than {read} customers, so {name:?} was not looked up in all of them");
    Err(Failure::Unsuccessful { kind: "ambiguous_name", problem, hint: "use the email address or the id" })
}

/// Says what an API key is needed for, in commands of operators too.
fn needs_a_key(failure: Failure, spec: &ResourceSpec, text: &str) -> Failure {
    match failure {
        Failure::NoCredential { problem, hint } => {
            let problem =
                format!("{text:?} is not an id, and an API key is needed to look up the {}: {problem}", spec.object);
            Failure::NoCredential { problem, hint }
        }
        other => other,
    }
}

/// Why a text does not lead to one object.
fn unresolved(spec: &ResourceSpec, (called, text): (&str, &str), ids: &[String], hint: &'static str) -> Failure {
    if ids.is_empty() {
        let problem = format!("no {} has {called} {text:?}, and it is not an id", spec.object);
        return Failure::Unsuccessful { kind: "not_found", problem, hint };
    }
    let (count, more) = match ids.get(..MOST_LISTED) {
        Some(_) if ids.len() > MOST_LISTED => (format!("more than {MOST_LISTED}"), ", ..."),
        _ => (ids.len().to_string(), ""),
    };
    let listed = ids.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
    let problem = format!("{count} {} have {called} {text:?}: {listed}{more}", spec.plural);
    Failure::Unsuccessful { kind: "ambiguous_name", problem, hint: "use the id of the one that you mean" }
}
