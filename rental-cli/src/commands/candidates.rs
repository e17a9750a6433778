//! Values that completion offers: profiles, formats, and ids with names from the server. Without a key or an answer in
//! time there are none, and no message.

use crate::{
    client::{access::Access, request::Request},
    commands::{by_agency, by_field, by_name::is_id, completion, session},
    config::{
        profiles::{self, Profiles},
        settings::Settings,
        values,
    },
    output::{
        record::{Page, Record, json},
        references,
    },
};
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use rental_core::resources::{Collection, Entry, RESOURCES, specs, vehicle};
use std::{ffi::OsStr, time::Duration};

/// Time for the request of a completion.
const TIME: Duration = Duration::from_millis(300);
/// Objects that are offered, the newest first.
const MOST: &str = "100";

/// Arguments that take the id of an object, and its collection.
const REFERENCES: [(&str, &str); 11] = [
    ("organization", "organizations"),
    ("organization_id", "organizations"),
    ("vehicle", "vehicles"),
    ("vehicle_id", "vehicles"),
    ("customer", "customers"),
    ("customer_id", "customers"),
    ("rental", "rentals"),
    ("rental_id", "rentals"),
    ("invoice_id", "invoices"),
    ("endpoint", "webhook_endpoints"),
    ("endpoint_id", "webhook_endpoints"),
];

/// Adds candidates to the arguments of a command and of those below it.
pub(crate) fn offered(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "profile" | "save_profile" => named_profiles(arg),
        "lines" => arg.add(billed()),
        id => match REFERENCES.iter().find(|(known, _)| *known == id) {
            Some((_, plural)) => arg.add(ids(plural)),
            None => arg,
        },
    });
    command.mut_subcommands(offered)
}

/// Offers the names of profiles.
pub(super) fn named_profiles(arg: Arg) -> Arg {
    arg.add(ArgValueCandidates::new(|| {
        let profiles = Profiles::load().ok();
        profiles.iter().flat_map(Profiles::all).map(|(name, _)| CompletionCandidate::new(name)).collect()
    }))
}

/// Offers words.
pub(super) fn words(arg: Arg, words: Vec<&'static str>) -> Arg {
    arg.add(ArgValueCandidates::new(move || words.iter().map(CompletionCandidate::new).collect()))
}

/// Offers the objects of a collection by what people call them, such as plates, and by their ids where somebody types one; of
/// organizations both.
pub(super) fn ids(plural: &'static str) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let found = current.to_str().and_then(|current| {
            let mut found = listed(plural, !current.is_empty())?;
            found.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(current));
            Some(found)
        });
        found.unwrap_or_default()
    })
}

/// Offers what a line of an invoice or credit note bills: `toll:`, and behind it the numbers of tolls.
fn billed() -> ArgValueCompleter {
    const SOURCES: [(&str, &str); 3] = [("rental:", "rentals"), ("toll:", "tolls"), ("violation:", "violations")];
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(current) = current.to_str() else { return Vec::new() };
        let Some((source, plural)) = SOURCES.iter().find(|(source, _)| current.starts_with(source)) else {
            let begun = SOURCES.iter().filter(|(source, _)| source.starts_with(current));
            return begun.map(|(source, _)| CompletionCandidate::new(source)).collect();
        };
        let found = listed(plural, false).unwrap_or_default().into_iter().map(|one| one.add_prefix(source));
        found.filter(|one| one.get_value().to_string_lossy().starts_with(current)).collect()
    })
}

/// Offers the paths of the API that need no id.
pub(super) fn paths(arg: Arg) -> Arg {
    let paths = |half: Access, collections: Vec<&str>| {
        collections.into_iter().map(|plural| format!("{}/{plural}", half.prefix())).collect::<Vec<_>>()
    };
    let offers = |collection: Option<&Collection>| collection.is_some_and(|one| one.list || one.create.is_some());
    let of = |of: fn(&Entry) -> Option<&Collection>| {
        let entries = RESOURCES.iter().filter(|entry| offers(of(entry)));
        entries.map(|entry| entry.spec.plural).collect::<Vec<_>>()
    };
    let own = [of(|entry| entry.public.as_ref()), vec!["availability", "events", "me"]].concat();
    let operator = [of(|entry| entry.operator.as_ref()), vec!["status", "master_key"]].concat();
    let mut known = [paths(Access::Organization, own), paths(Access::Operator, operator)].concat();
    known.sort_unstable();
    known.dedup();
    arg.add(ArgValueCandidates::new(move || known.iter().map(CompletionCandidate::new).collect()))
}

fn listed(plural: &str, with_ids: bool) -> Option<Vec<CompletionCandidate>> {
    let matches = typed_so_far()?;
    let settings = Settings::read(&matches, None).ok()?;
    let (access, path) = match plural {
        "organizations" | "api_keys" | "webhook_endpoints" | "operators" | "audit_entries" => {
            (Access::Operator, vec![plural])
        }
        "events" | "deliveries" => (Access::Operator, vec!["organizations", settings.organization().ok()?, plural]),
        _ => (Access::Organization, vec![plural]),
    };
    let spec = specs().find(|spec| spec.plural == plural)?;
    // Names of other organizations are no names here.
    let of = settings.organization().ok().filter(|id| is_id(id) && by_field::is_list_of_all_organizations(spec));
    let of: Vec<_> = of.map(|id| ("organization".to_owned(), id.to_owned())).into_iter().collect();
    let api = session::api(&settings, &matches);
    let read = |path: &[&str], mut query: Vec<(String, String)>| {
        query.push(("limit".into(), MOST.into()));
        let request = Request::get(access, path).with_query(query);
        let page = Page::read(&api.get_within(&request, TIME).and_then(json).ok()?).ok()?;
        Some(page.data.iter().filter_map(|object| Record::read(object.get()).ok()).collect::<Vec<_>>())
    };
    let mut records = read(&path, of)?;
    // What is revoked has no name any more.
    records.retain(|record| record.text("revoked_at").is_none());
    let named_by_vehicle = |record: &Record| by_field::is_named_by_vehicle(spec.object, record) == Some(true);
    let of_vehicles: Vec<_> = records.iter().filter(|record| named_by_vehicle(record)).collect();
    let mut vehicles = if of_vehicles.is_empty() { Vec::new() } else { read(&["vehicles"], Vec::new())? };
    vehicles.retain(|vehicle| of_vehicles.iter().any(|record| record.text("vehicle_id") == vehicle.text("id")));
    let offered = |record: &Record, value: String| {
        let about = [references::name_of(record), record.text("type"), record.text("status")];
        let about: Vec<String> = about.into_iter().flatten().filter(|text| *text != value).collect();
        let help = (!about.is_empty()).then(|| about.join(", ").into());
        CompletionCandidate::new(value).help(help)
    };
    // A number that several agencies use names nothing without the agency.
    let is_shared = |name: &str| {
        let number = |record: &&Record| by_agency::number(spec, record).as_deref() == Some(name);
        records.iter().filter(number).count() > 1
    };
    let candidate = |record: &Record, spec, id: Option<String>| {
        let called = by_field::fields(spec);
        let names = called.into_iter().filter_map(|field| record.text(field)).filter(|name| !name.is_empty());
        let names =
            names.map(|name| if is_shared(&name) { by_agency::name(spec, record).unwrap_or(name) } else { name });
        let names: Vec<String> = names.chain(id).collect();
        let shown = if with_ids { names.len() } else { 1 };
        names.into_iter().take(shown).map(|value| offered(record, value)).collect::<Vec<_>>()
    };
    let names = records.iter().filter(|_| plural == "organizations").filter_map(|record| {
        let help = record.text("id").map(Into::into);
        Some(CompletionCandidate::new(record.text("name")?).help(help))
    });
    let by_vehicle = vehicles.iter().flat_map(|vehicle| candidate(vehicle, &vehicle::SPEC, None));
    let own = records.iter().filter(|_| with_ids || vehicles.is_empty());
    let own = own.flat_map(|record| candidate(record, spec, record.text("id")));
    Some(by_vehicle.chain(own).chain(names).collect())
}

/// The server and the profile on the command line that is completed, whose other words may be incomplete.
fn typed_so_far() -> Option<clap::ArgMatches> {
    let words = completion::typed_so_far();
    let mut known = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word.as_str(), words.get(at + 1).map(String::as_str)),
        };
        if let ("--profile" | "--base-url", Some(value)) = (flag, value) {
            known.push(format!("{flag}={value}"));
        }
    }
    let base_url = Arg::new("base_url").long("base-url").value_parser(values::base_url);
    let profile = Arg::new("profile").long("profile").value_parser(profiles::name);
    let flag = |name: &'static str| Arg::new(name).long(name).action(clap::ArgAction::SetTrue);
    let command = Command::new("typed").no_binary_name(true).args([base_url, profile, flag("debug")]);
    let timeout = Arg::new("timeout").value_parser(values::timeout);
    command.arg(timeout).try_get_matches_from(known).ok()
}
