//! Objects by what people call them, so that nobody has to copy ids: a vehicle by its plate or name, a customer by email
//! address or full name, a rental by its booking id, a toll or violation by the agency's number, with the agency or without it,
//! a toll without a number by its passage, a block or calendar feed by its vehicle, an operator or API key by its name, a webhook endpoint by its URL.

use crate::{
    client::{access::Access, api::Api},
    commands::{by_agency, by_name::is_id, by_passage, described::describe, pages},
    failure::Failure,
    output::record::Record,
    text::word,
};
use rental_core::{
    resources::{Resource, Series, credit_note::CreditNote, invoice::Invoice, organization, specs, vehicle},
    schema::ResourceSpec,
    value::{folded, nfc},
};

/// How people name the objects of a resource.
struct Naming {
    object: &'static str,
    access: Access,
    /// Where a text is looked up, one after the other until an object is found.
    ways: &'static [Way],
    /// The names for the help of a command.
    names: &'static str,
    /// What stands for the value of a flag.
    placeholder: &'static str,
    /// The next step when there is no such object.
    hint: &'static str,
}

/// A way from a text to objects.
struct Way {
    by: By,
    /// What the text is then, for people.
    called: &'static str,
    /// Whether a text can be such a name.
    fits: fn(&str) -> bool,
}

enum By {
    /// A filter of the list.
    Filter(&'static str),
    /// A field that no filter is for. Pages of the list are read, up to a bound.
    Field(&'static str),
    /// The agency and the number.
    Agency,
    /// The passage of a toll without a number.
    Passage,
    /// The vehicle that it is of, by plate or name. Of objects with one of these words as status, the list has these only.
    Vehicle(Option<&'static str>),
}

const fn way(by: By, called: &'static str) -> Way {
    Way { by, called, fits: |_| true }
}

/// The agency and number, for a number that several agencies use.
const AGENCY: Way = Way { by: By::Agency, called: "the agency and number", fits: by_agency::fits };

const NAMINGS: &[Naming] = &[
    Naming {
        object: "vehicle",
        access: Access::Organization,
        ways: &[way(By::Filter("plate"), "the plate"), way(By::Field("name"), "the name")],
        names: "plate, name",
        placeholder: "ID|PLATE|NAME",
        hint: "`rental-cli vehicles list --all` shows names, plates and ids",
    },
    Naming {
        object: "customer",
        access: Access::Organization,
        ways: &[
            Way { by: By::Filter("email"), called: "the email address", fits: |text| text.contains('@') },
            Way { by: By::Field("full_name"), called: "the full name", fits: |text| !text.contains('@') },
        ],
        names: "email address, full name",
        placeholder: "ID|EMAIL|NAME",
        hint: "`rental-cli customers list --all` shows names, email addresses and ids",
    },
    Naming {
        object: "rental",
        access: Access::Organization,
        ways: &[way(By::Filter("booking_id"), "the booking id")],
        names: "booking id",
        placeholder: "ID|BOOKING",
        hint: "`rental-cli rentals list --all --columns booking_id,customer,vehicle,id` shows booking ids and ids",
    },
    Naming {
        object: "toll",
        access: Access::Organization,
        ways: &[
            Way {
                by: By::Filter("transaction_id"),
                called: "the transaction number",
                fits: |text| !by_passage::fits(text),
            },
            AGENCY,
            Way { by: By::Passage, called: "the passage", fits: by_passage::fits },
        ],
        names: "transaction number, AGENCY:NUMBER, PLATE@TIME",
        placeholder: "ID|NUMBER",
        hint: "`rental-cli tolls list --all --columns transaction_id,agency,amount,id` shows numbers and ids",
    },
    Naming {
        object: "violation",
        access: Access::Organization,
        ways: &[way(By::Filter("summons_number"), "the summons number"), AGENCY],
        names: "summons number, ISSUER:NUMBER",
        placeholder: "ID|NUMBER",
        hint: "`rental-cli violations list --all` shows numbers and ids",
    },
    Naming {
        object: "block",
        access: Access::Organization,
        ways: &[way(By::Vehicle(Some("active")), "the vehicle")],
        names: "plate or name of its vehicle,",
        placeholder: "ID|PLATE|NAME",
        hint: "`rental-cli blocks list --vehicle PLATE` shows the blocks of a vehicle, their days and ids",
    },
    Naming {
        object: "calendar_feed",
        access: Access::Organization,
        ways: &[way(By::Vehicle(None), "the vehicle")],
        names: "plate or name of its vehicle,",
        placeholder: "ID|PLATE|NAME",
        hint: "`rental-cli calendar-feeds list --vehicle PLATE` shows the calendar feeds of a vehicle and their ids",
    },
    Naming {
        object: "operator",
        access: Access::Operator,
        ways: &[way(By::Field("name"), "the name")],
        names: "name",
        placeholder: "ID|NAME",
        hint: "`rental-cli operators list --all` shows names and ids",
    },
    Naming {
        object: "api_key",
        access: Access::Operator,
        ways: &[way(By::Field("name"), "the name")],
        names: "name",
        placeholder: "ID|NAME",
        hint: "`rental-cli api-keys list --organization ID --all` shows names and ids",
    },
    Naming {
        object: "webhook_endpoint",
        access: Access::Operator,
        ways: &[Way { by: By::Field("url"), called: "the URL", fits: |text| text.contains("://") }],
        names: "URL",
        placeholder: "ID|URL",
        hint: "`rental-cli webhook-endpoints list --organization ID --all` shows URLs and ids",
    },
];

/// Ids or names that an error lists.
const MOST_LISTED: usize = 5;
/// Maximum number of pages that are read to find a name.
const MAX_PAGES: usize = 100;

fn naming(object: &str) -> Option<&'static Naming> {
    NAMINGS.iter().find(|naming| naming.object == object)
}

/// What stands for a value that names an object; `None` when only its id does.
pub(crate) fn placeholder(object: &str) -> Option<&'static str> {
    Some(naming(object)?.placeholder)
}

/// The names of a resource for the help of a command: `plate, name`.
pub(crate) fn names(object: &str) -> Option<&'static str> {
    Some(naming(object)?.names)
}

/// The fields by which people name the objects of a resource, in the order of the look-up. Completion and messages use them too, so
/// that a name that they show is one that a command takes.
pub(crate) fn fields(spec: &'static ResourceSpec) -> Vec<&'static str> {
    let field = |way: &Way| match way.by {
        By::Filter(param) => spec.filters.iter().find(|filter| filter.param == param).map(|filter| filter.field),
        By::Field(field) => Some(field),
        By::Agency | By::Passage | By::Vehicle(_) => None,
    };
    let ways = naming(spec.object).map_or(&[][..], |naming| naming.ways);
    ways.iter().filter_map(field).chain(series(spec).map(|series| series.field)).collect()
}

/// How the objects of a resource are numbered; `None` where they are not.
pub(super) fn series(spec: &ResourceSpec) -> Option<Series> {
    let all = [(Invoice::SPEC, Invoice::SERIES), (CreditNote::SPEC, CreditNote::SERIES)];
    all.into_iter().find(|(numbered, _)| numbered.object == spec.object)?.1
}

/// The names by which a command takes this object of a collection, the best one first.
pub(crate) fn names_of(plural: &str, record: &Record) -> Vec<String> {
    let fields = specs().find(|spec| spec.plural == plural).map(fields).unwrap_or_default();
    fields.into_iter().filter_map(|field| record.text(field)).filter(|name| !name.is_empty()).collect()
}

/// Whether people name the objects of a collection, so that it is worth a request to look one up.
pub(crate) fn is_named(plural: &str) -> bool {
    let is_organization = plural == organization::SPEC.plural;
    is_organization || specs().find(|spec| spec.plural == plural).is_some_and(|spec| !fields(spec).is_empty())
}

/// Which half of the API has the objects of a collection by their ids.
pub(crate) fn access(plural: &str) -> Access {
    let named = specs().find(|spec| spec.plural == plural).and_then(|spec| naming(spec.object));
    match named {
        _ if plural == organization::SPEC.plural => Access::Operator,
        Some(naming) => naming.access,
        None => Access::Organization,
    }
}

/// Whether a command takes the vehicle of this object as its name. `None`: no object of this resource is named by its vehicle.
pub(crate) fn is_named_by_vehicle(object: &str, record: &Record) -> Option<bool> {
    let statuses = naming(object)?.ways.iter().find_map(|way| match way.by {
        By::Vehicle(status) => Some(status),
        By::Filter(_) | By::Field(_) | By::Agency | By::Passage => None,
    })?;
    Some(statuses.is_none_or(|status| record.text("status").as_deref() == Some(status)))
}

/// Whether the list that has the names of these objects has those of all organizations.
pub(crate) fn is_list_of_all_organizations(spec: &ResourceSpec) -> bool {
    naming(spec.object).is_some_and(|naming| naming.access == Access::Operator && naming.object != "operator")
}

/// Whether a text is a name that objects of several organizations can have: of an operator's list that has those of all.
pub(crate) fn is_named_within_an_organization(spec: &ResourceSpec, text: &str) -> bool {
    let named = naming(spec.object).filter(|_| !text.is_empty() && !is_id(text));
    named.is_some_and(|naming| is_list_of_all_organizations(spec) && naming.ways.iter().any(|way| (way.fits)(text)))
}

/// The id of the one object that a text names, of an organization if one is given. An id is returned as it is, without a request.
pub(crate) fn resolve(
    api: &Api,
    spec: &'static ResourceSpec,
    text: &str,
    organization: Option<&str>,
) -> Result<String, Failure> {
    let Some(naming) = naming(spec.object).filter(|_| !text.is_empty() && !is_id(text)) else {
        return Ok(text.to_owned());
    };
    let mut tried = Vec::new();
    for way in naming.ways.iter().filter(|way| (way.fits)(text)) {
        let found = look_up((api, naming.access), spec, &way.by, (text, organization))
            .map_err(|failure| needs_a_key(failure, spec, text))?;
        match found.as_slice() {
            [] => tried.push(way.called),
            [one] => return Ok(one.id.clone()),
            found => return Err(ambiguous((api, naming.access), spec, (way.called, text), found)),
        }
    }
    if tried.is_empty() {
        return Ok(text.to_owned());
    }
    let called = tried.join(" or ");
    let problem = format!("no {} has {called} \"{text}\", and it is not an id", spoken(spec.object));
    Err(Failure::Unsuccessful { kind: "not_found", problem, hint: naming.hint })
}

/// A name of the API as English words.
fn spoken(name: &str) -> String {
    name.replace("api_", "API ").replace('_', " ")
}

/// An object that a text names.
struct Found {
    id: String,
    /// What also tells it from others of that name: its agency and number, or its passage with the plaza.
    name: Option<String>,
}

impl Found {
    fn of(spec: &ResourceSpec, record: &Record) -> Option<Self> {
        Some(Self { id: record.text("id")?, name: by_agency::name(spec, record) })
    }
}

/// The objects that a text names in one way.
fn look_up(
    (api, access): (&Api, Access),
    spec: &ResourceSpec,
    by: &By,
    (text, organization): (&str, Option<&str>),
) -> Result<Vec<Found>, Failure> {
    let limit = (MOST_LISTED + 1).to_string();
    let limit = ("limit", limit.as_str());
    let found = |records: Vec<Record>| records.iter().filter_map(|record| Found::of(spec, record)).collect();
    match by {
        By::Filter(param) => pages::filtered((api, access), spec.plural, &[(param, text), limit]).map(found),
        By::Field(field) => with_field((api, access), spec, field, (text, organization)),
        By::Agency => by_agency::found(api, spec, text).map(found),
        By::Passage => {
            let found = by_passage::found(api, text)?.into_iter();
            Ok(found.map(|(id, name)| Found { id, name }).collect())
        }
        By::Vehicle(status) => {
            let vehicle = resolve(api, &vehicle::SPEC, text, None)?;
            let status = status.map(|status| ("status", status));
            let filters = [Some(("vehicle", vehicle.as_str())), status, Some(limit)];
            pages::filtered((api, access), spec.plural, &filters.into_iter().flatten().collect::<Vec<_>>()).map(found)
        }
    }
}

/// The objects with this text in a field; if there is none, those with it in other capital or small letters, which mean
/// something in a URL. The API has no filter for it: all pages are read, up to a bound. What is revoked has no name any more.
fn with_field(
    (api, access): (&Api, Access),
    spec: &ResourceSpec,
    field: &str,
    (text, organization): (&str, Option<&str>),
) -> Result<Vec<Found>, Failure> {
    let (mut exact, mut alike) = (Vec::new(), Vec::new());
    let (wanted, wanted_in_any_case) = (nfc(text), folded(text));
    let of: Vec<_> = organization.map(|id| ("organization".to_owned(), id.to_owned())).into_iter().collect();
    let is_complete = pages::each_object((api, access), &[spec.plural], &of, MAX_PAGES, |raw| {
        let record = Record::read(raw.get())?;
        let name = record.text(field).filter(|_| record.text("revoked_at").is_none());
        let found = match name.as_deref() {
            Some(name) if nfc(name) == wanted => &mut exact,
            Some(name) if field != "url" && folded(name) == wanted_in_any_case => &mut alike,
            _ => return Ok(true),
        };
        if found.len() <= MOST_LISTED {
            found.extend(Found::of(spec, &record));
        }
        Ok(exact.len() <= MOST_LISTED)
    })?;
    if is_complete || exact.len() > MOST_LISTED {
        return Ok(if exact.is_empty() { alike } else { exact });
    }
    let read = MAX_PAGES * pages::MAX_LIMIT as usize;
    let many = spoken(spec.plural);
    let problem = format!("there are more than {read} {many}, so \"{text}\" was not looked up in all of them");
    Err(Failure::Unsuccessful { kind: "ambiguous_name", problem, hint: other_name(spec) })
}

/// What else names an object that has the same name as another one, or that was not found.
fn other_name(spec: &ResourceSpec) -> &'static str {
    match spec.object {
        "customer" => "use the email address or the id",
        "vehicle" => "use the plate or the id",
        _ => "use the id",
    }
}

/// Says what an API key is needed for, in commands of operators too.
fn needs_a_key(failure: Failure, spec: &ResourceSpec, text: &str) -> Failure {
    match failure {
        Failure::NoCredential { problem, hint }
            if naming(spec.object).is_none_or(|naming| naming.access == Access::Organization) =>
        {
            let problem = format!(
                "\"{text}\" is not an id, and an API key is needed to look up the {}: {problem}",
                spoken(spec.object)
            );
            Failure::NoCredential { problem, hint }
        }
        other => other,
    }
}

/// A text names more than one object. They are listed by names that tell them apart, if they have such names, else by id.
fn ambiguous(
    (api, access): (&Api, Access),
    spec: &ResourceSpec,
    (called, text): (&str, &str),
    found: &[Found],
) -> Failure {
    let (count, more) = match found.get(..MOST_LISTED) {
        Some(_) if found.len() > MOST_LISTED => (format!("more than {MOST_LISTED}"), ", ..."),
        _ => (found.len().to_string(), ""),
    };
    let is_own = |one: &Found| one.name.is_some() && found.iter().filter(|other| other.name == one.name).count() == 1;
    let all_own = found.iter().all(is_own);
    let listed = found.iter().take(MOST_LISTED);
    let is_described = access == Access::Organization && ["vehicle", "customer", "rental"].contains(&spec.object);
    let listed = match (all_own, is_described) {
        (true, _) => listed.filter_map(|one| one.name.as_deref()).map(word).collect::<Vec<_>>().join(", "),
        (false, true) => {
            let objects: Vec<(&str, &str)> = listed.map(|one| (spec.plural, one.id.as_str())).collect();
            describe(api, &objects).join("; ")
        }
        (false, false) => listed.map(|one| one.id.clone()).collect::<Vec<_>>().join(", "),
    };
    let problem = format!("{count} {} have {called} \"{text}\": {listed}{more}", spoken(spec.plural));
    let hint = match all_own {
        true => "use one of these names, which tell them apart",
        false => "use the id of the one that you mean",
    };
    Failure::Unsuccessful { kind: "ambiguous_name", problem, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rental_core::resources::spec_of;

    /// So completion can offer what the look-up finds.
    #[test]
    fn every_way_of_the_look_up_is_a_field_the_vehicle_or_a_name_of_several_fields() {
        for naming in NAMINGS {
            let spec = spec_of(naming.object).unwrap();
            let of_vehicle = is_named_by_vehicle(naming.object, &Record::read("{}").unwrap()).is_some();
            let composed = naming.ways.iter().filter(|way| matches!(way.by, By::Agency | By::Passage)).count();
            let of_fields = naming.ways.len() - composed;
            assert_eq!(fields(spec).len() + usize::from(of_vehicle), of_fields, "{}", naming.object);
            assert!(fields(spec).iter().all(|name| spec.field(name).is_some()), "{}", naming.object);
        }
        assert_eq!(fields(spec_of("credit_note").unwrap()), ["credit_note_number"]);
        assert_eq!(fields(spec_of("invoice").unwrap()), ["invoice_number"]);
    }
}
