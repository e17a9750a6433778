//! list, get, create and update: the same for every resource, driven by its description.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        fields::{self, Body, Verb},
        group::with_examples,
        session::Session,
    },
    config::values,
    failure::Failure,
};
use clap::{Arg, ArgMatches, Command};
use rental_core::spec::ResourceSpec;
use reqwest::header::HeaderValue;
use std::time::Duration;

/// A resource and the half of the API that it is in.
pub(crate) struct Collection {
    /// The description.
    pub(crate) spec: &'static ResourceSpec,
    /// Who may ask for it.
    pub(crate) access: Access,
}

/// `list` with the filters of the resource.
pub(crate) fn list(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("List {}, newest first", words(spec.plural));
    with_examples(Command::new("list").about(about).args(fields::of_list(spec)), examples)
}

/// `get ID`.
pub(crate) fn get(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Show one {}", words(spec.object));
    with_examples(Command::new("get").about(about).arg(id(spec)), examples)
}

/// `create` with a flag for each field.
pub(crate) fn create(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Create {}", a(spec));
    with_examples(writing(Command::new("create").about(about).args(fields::of_fields(spec, Verb::Create))), examples)
}

/// `update ID` with a flag for each field.
pub(crate) fn update(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Change {}; omitted fields keep their value", a(spec));
    let command = Command::new("update").about(about).arg(id(spec)).args(fields::of_fields(spec, Verb::Update));
    with_examples(writing(command), examples)
}

/// `attach ID --customer ID`, for what the API changes in no other way.
pub(crate) fn attach(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Attach {} to the customer who pays it", a(spec));
    let customer = fields::of_fields(spec, Verb::Update).into_iter().filter(|arg| arg.get_id() == "customer_id");
    let customer = customer.map(|arg| arg.required(true).help("Customer to bill; '' removes the customer"));
    with_examples(writing(Command::new("attach").about(about).arg(id(spec)).args(customer)), examples)
}

/// `VERB ID`, for what is done with one object.
pub(crate) fn action(
    spec: &'static ResourceSpec,
    verb: &'static str,
    about: &'static str,
    examples: &[&str],
) -> Command {
    with_examples(writing(Command::new(verb).about(about).arg(id(spec))), examples)
}

/// `--overlap`, of what is replaced but works on for a while.
pub(crate) fn overlap(help: &'static str) -> Arg {
    Arg::new("overlap")
        .long("overlap")
        .value_name("DURATION")
        .value_parser(values::duration)
        .default_value("24h")
        .help(help)
}

/// The body that says the overlap.
pub(crate) fn overlap_body(matches: &ArgMatches) -> String {
    let overlap = matches.get_one::<Duration>("overlap").copied().unwrap_or_default();
    format!("{{\"overlap_seconds\":{}}}", overlap.as_secs())
}

/// `--organization`, for what the operator does below one.
pub(crate) fn organization(help: &'static str) -> Arg {
    Arg::new("organization")
        .long("organization")
        .value_name("ID")
        .value_parser(values::id)
        .help(fields::defaulted(help))
}

/// Adds what every command that writes takes.
pub(crate) fn writing(command: Command) -> Command {
    command.arg(
        Arg::new("idempotency_key")
            .long("idempotency-key")
            .value_name("KEY")
            .value_parser(values::idempotency_key)
            .display_order(900)
            .help("Repeat a command safely: the server runs each key once [default: a random key]"),
    )
}

/// The positional `ID` of an object.
pub(crate) fn id(spec: &ResourceSpec) -> Arg {
    Arg::new("id")
        .value_name("ID")
        .required(true)
        .value_parser(values::id)
        .help(format!("Id of the {}", words(spec.object)))
}

/// The text of an argument that clap made sure is there.
pub(crate) fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

/// The idempotency key, if the user chose one.
pub(crate) fn chosen_key(matches: &ArgMatches) -> Option<&HeaderValue> {
    matches.get_one("idempotency_key")
}

/// The verb of a group's command line, which clap made sure is there.
pub(crate) fn verb(matches: &ArgMatches) -> Result<(&str, &ArgMatches), Failure> {
    matches.subcommand().ok_or_else(|| Failure::Usage("no command given".into()))
}

impl Collection {
    /// Carries out one of the four verbs.
    pub(crate) fn run(&self, verb: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
        match verb {
            "list" => self.list(matches, session, &[self.spec.plural]),
            "get" => session.object(&Request::get(self.access, &[self.spec.plural, text(matches, "id")])).map(drop),
            "create" => self.create(matches, session, Body::read(matches, self.spec, Verb::Create)?).map(drop),
            "update" | "attach" => self.update(matches, session, Body::read(matches, self.spec, Verb::Update)?),
            _ => Err(Failure::Usage(format!("no such command: {verb}"))),
        }
    }

    /// Creates an object from a finished body; gives the answer.
    pub(crate) fn create(&self, matches: &ArgMatches, session: &Session, body: Body) -> Result<String, Failure> {
        let request = Request::post(self.access, &[self.spec.plural], Some(body.into_json()));
        session.object(&request.with_idempotency_key(chosen_key(matches)))
    }

    /// Carries out a word of the API on one object; gives the answer.
    pub(crate) fn act(
        &self,
        word: &str,
        body: Option<String>,
        matches: &ArgMatches,
        session: &Session,
    ) -> Result<String, Failure> {
        let request = Request::post(self.access, &[self.spec.plural, text(matches, "id"), word], body);
        session.object(&request.with_idempotency_key(chosen_key(matches)))
    }

    /// Lists what is at `path`.
    pub(crate) fn list(&self, matches: &ArgMatches, session: &Session, path: &[&str]) -> Result<(), Failure> {
        let query = fields::query(matches, self.spec);
        session.list(self.spec, matches.get_flag("all"), |cursor| {
            let mut query = query.clone();
            if let Some(cursor) = cursor {
                query.retain(|(name, _)| name != "starting_after");
                query.push(("starting_after".into(), cursor.to_owned()));
            }
            Request::get(self.access, path).with_query(query)
        })
    }

    /// Changes an object by a finished body.
    pub(crate) fn update(&self, matches: &ArgMatches, session: &Session, body: Body) -> Result<(), Failure> {
        if body.is_empty() {
            return Err(Failure::Usage("nothing was changed: give at least one field".into()));
        }
        let request = Request::patch(self.access, &[self.spec.plural, text(matches, "id")], body.into_json());
        session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
    }
}

/// A name of the API as English writes it.
fn words(name: &str) -> String {
    name.replace("api_", "API ").replace('_', " ")
}

fn a(spec: &ResourceSpec) -> String {
    let article = if spec.object.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {}", words(spec.object))
}
