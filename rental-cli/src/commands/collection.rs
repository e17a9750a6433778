//! The commands that all resources have: list, get, create, update. Built from a resource's description.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        by_field, by_number, candidates, confirm,
        days::{self, Whose},
        fields::{self, Body},
        group::with_examples,
        handover::{self, noted_for},
        json_text::JsonText,
        session::Session,
    },
    config::values,
    edge,
    failure::Failure,
    output::{record::Record, references},
};
use clap::{Arg, ArgMatches, Command};
use rental_core::{
    request::body::Verb,
    resources::{invoice, organization, spec_of},
    schema::{FieldSpec, Kind, ResourceSpec},
};
use reqwest::header::HeaderValue;
use std::time::Duration;

pub(crate) use crate::commands::fields::organization;

/// A resource and its half of the API.
pub(crate) struct Collection {
    /// Description of the resource.
    pub(crate) spec: &'static ResourceSpec,
    /// Half of the API.
    pub(crate) access: Access,
}

/// Builds `list`, with the filters of the resource.
pub(crate) fn list(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("List {}, newest first", display_name(spec.plural));
    with_examples(Command::new("list").about(about).args(fields::list_args(spec)), examples)
}

/// Builds `get ID`.
pub(crate) fn get(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Show one {}", display_name(spec.object));
    with_examples(Command::new("get").about(about).arg(id(spec)).arg(fields::columns_of(spec)), examples)
}

/// Builds `create`, with a flag for each field.
pub(crate) fn create(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Create {}", with_article(spec));
    let command = Command::new("create").about(about).args(fields::field_args(spec, Verb::Create));
    with_examples(writing(command.arg(fields::columns_of(spec))), examples)
}

/// Builds `update ID`, with a flag for each field.
pub(crate) fn update(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Change {}; omitted fields keep their value", with_article(spec));
    let command = Command::new("update").about(about).arg(id(spec)).args(fields::field_args(spec, Verb::Update));
    with_examples(writing(command.arg(fields::columns_of(spec))), examples)
}

/// Builds `attach ID --customer ID`, for resources whose only change is the customer.
pub(crate) fn attach(spec: &'static ResourceSpec, examples: &[&str]) -> Command {
    let about = format!("Attach {} to the customer who pays it", with_article(spec));
    let customer = fields::field_args(spec, Verb::Update).into_iter().filter(|arg| arg.get_id() == "customer_id");
    let customer = customer.map(|arg| arg.required(true).help("Customer to bill; '' removes the customer"));
    let command = Command::new("attach").about(about).arg(id(spec)).args(customer);
    with_examples(writing(command.arg(fields::columns_of(spec))), examples)
}

/// Builds `VERB ID`, an action on one object.
pub(crate) fn action(
    spec: &'static ResourceSpec,
    verb: &'static str,
    about: &'static str,
    examples: &[&str],
) -> Command {
    action_that_shows(fields::columns_of(spec), spec, verb, about, examples)
}

/// The same for an action whose response is another object: `columns` is its `--columns`.
pub(crate) fn action_that_shows(
    columns: Arg,
    spec: &'static ResourceSpec,
    verb: &'static str,
    about: &'static str,
    examples: &[&str],
) -> Command {
    let command = Command::new(verb).about(about).arg(id(spec)).arg(columns.display_order(900));
    with_examples(writing(command), examples)
}

/// Adds `--expires-in` to the command that creates a key or token.
pub(crate) fn expiring(create: Command) -> Command {
    let ahead = Arg::new("expires_in")
        .long("expires-in")
        .value_name("DURATION")
        .value_parser(values::duration)
        .conflicts_with("expires_at")
        .help("Time from now until it expires: 12h, 90d");
    let create = create.mut_arg("expires_at", |arg| {
        arg.help(
            "When it stops working (RFC 3339), such as 2099-05-05T09:30:00Z, or the day at whose beginning it does",
        )
    });
    create.arg(ahead)
}

/// Sets the expiry of a key or token from `--expires-in`.
pub(crate) fn set_expiry(matches: &ArgMatches, body: &mut Body) {
    if let Some(ahead) = matches.get_one::<Duration>("expires_in") {
        body.set("expires_at", JsonText::string(&edge::time_in(*ahead).to_string()));
    }
}

/// Builds `--overlap`, the time in which a replaced secret stays valid.
pub(crate) fn overlap(help: &'static str) -> Arg {
    Arg::new("overlap")
        .long("overlap")
        .value_name("DURATION")
        .value_parser(values::overlap)
        .default_value("24h")
        .help(help)
}

/// Request body with the overlap.
pub(crate) fn overlap_body(matches: &ArgMatches) -> String {
    let overlap = matches.get_one::<Duration>("overlap").copied().unwrap_or_default();
    format!("{{\"overlap_seconds\":{}}}", overlap.as_secs())
}

/// Asks on a terminal when there is no overlap: what is replaced stops working at once. `what` says it, such as `API key ID`.
pub(crate) fn confirm_replacing(
    matches: &ArgMatches,
    what: impl FnOnce() -> Result<String, Failure>,
) -> Result<(), Failure> {
    match matches.get_one::<Duration>("overlap") {
        Some(overlap) if overlap.is_zero() => {
            confirm::confirm_on_terminal(matches, &format!("Replace {}, which stops working at once", what()?))
        }
        _ => Ok(()),
    }
}

/// Adds the flags of every command that writes.
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

/// Builds the positional `ID`.
pub(crate) fn id(spec: &'static ResourceSpec) -> Arg {
    let (name, what) = match by_field::names(spec.object) {
        _ if spec.object == organization::SPEC.object => (fields::ID_OR_NAME, "Id or name".to_owned()),
        Some(names) => (by_field::placeholder(spec.object).unwrap_or("ID"), capitalized(&format!("{names} or id"))),
        None => ("ID", "Id".to_owned()),
    };
    Arg::new("id")
        .value_name(name)
        .required(true)
        .value_parser(values::id)
        .add(candidates::ids(spec.plural))
        .help(format!("{what} of the {}", display_name(spec.object)))
}

/// Returns the text of a required argument.
pub(crate) fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

/// Returns `--idempotency-key`.
pub(crate) fn chosen_key(matches: &ArgMatches) -> Option<&HeaderValue> {
    matches.get_one("idempotency_key")
}

/// Returns the subcommand, which clap requires.
pub(crate) fn verb(matches: &ArgMatches) -> Result<(&str, &ArgMatches), Failure> {
    matches.subcommand().ok_or_else(|| Failure::Usage("no command given".into()))
}

impl Collection {
    /// Runs the subcommand of a group that has only list, get, create, update and attach.
    pub(crate) fn run_group(&self, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
        let (verb, matches) = verb(matches)?;
        self.run(verb, matches, session)
    }

    /// Runs list, get, create, update or attach.
    pub(crate) fn run(&self, verb: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
        match verb {
            "list" => self.list(matches, session, &[self.spec.plural]),
            "get" => {
                session.object(&Request::get(self.access, &[self.spec.plural, &self.id(matches, session)?])).map(drop)
            }
            "create" => self.create(matches, session, Body::read(matches, self.spec, Verb::Create)?).map(drop),
            "update" | "attach" => self.update(matches, session, Body::read(matches, self.spec, Verb::Update)?),
            _ => Err(Failure::Usage(format!("no such command: {verb}"))),
        }
    }

    /// The id of the object that a command names.
    pub(crate) fn id(&self, matches: &ArgMatches, session: &Session) -> Result<String, Failure> {
        let text = text(matches, "id");
        if self.spec.object == organization::SPEC.object {
            return session.organization_id(text).map(str::to_owned);
        }
        session.object_id(self.spec, text)
    }

    /// An object as the question before a command names it: `"Website" (ID)`. Where a person is asked, the server is asked
    /// first, so that nobody answers a question about an object that does not exist.
    pub(crate) fn called(&self, id: &str, matches: &ArgMatches, session: &Session) -> Result<String, Failure> {
        if !confirm::asks_on_terminal(matches) {
            return Ok(id.to_owned());
        }
        let object = session.send(&Request::get(self.access, &[self.spec.plural, id]))?;
        let name = references::name_of(&Record::read(&object)?).filter(|name| !name.is_empty());
        Ok(name.map_or_else(|| id.to_owned(), |name| format!("{name:?} ({id})")))
    }

    /// Creates an object, prints it, and returns its JSON.
    pub(crate) fn create(&self, matches: &ArgMatches, session: &Session, mut body: Body) -> Result<String, Failure> {
        body.resolve(self.spec, Whose::of(self.access, matches), session)?;
        let request = Request::post(self.access, &[self.spec.plural], Some(body.into_json()));
        session.object(&request.with_idempotency_key(chosen_key(matches)))
    }

    /// Runs an action of the API on one object, prints the response, and returns its JSON.
    pub(crate) fn act(
        &self,
        word: &str,
        body: Option<String>,
        matches: &ArgMatches,
        session: &Session,
    ) -> Result<String, Failure> {
        self.act_on(&self.id(matches, session)?, word, body, matches, session)
    }

    /// The same for the object with this id.
    pub(crate) fn act_on(
        &self,
        id: &str,
        word: &str,
        body: Option<String>,
        matches: &ArgMatches,
        session: &Session,
    ) -> Result<String, Failure> {
        let request = Request::post(self.access, &[self.spec.plural, id, word], body);
        session.object(&request.with_idempotency_key(chosen_key(matches)))
    }

    /// Prints the list at `path`.
    pub(crate) fn list(&self, matches: &ArgMatches, session: &Session, path: &[&str]) -> Result<(), Failure> {
        let mut query = fields::query(matches, self.spec);
        let whose = Whose::of(self.access, matches);
        for (name, value) in &mut query {
            if let Some(kind) = fields::kind_of_bound(self.spec, name) {
                *value = days::resolved(kind, value, &whose, session)?;
            }
            match self
                .spec
                .filters
                .iter()
                .find(|filter| filter.param == name)
                .and_then(|filter| self.spec.field(filter.field))
            {
                _ if name == "organization" => *value = session.organization_id(value)?.to_owned(),
                Some(FieldSpec { kind: Kind::Reference("invoice"), .. }) => {
                    *value = by_number::resolve(&invoice::SPEC, value, (self.access, matches), session)?;
                }
                Some(FieldSpec { kind: Kind::Reference(object), .. }) => {
                    if let Some(spec) = spec_of(object) {
                        *value = session.object_id(spec, value)?;
                    }
                }
                _ => {}
            }
        }
        session.list(self.spec, &fields::wanted(matches), |cursor, size| {
            let mut query = query.clone();
            query.extend(size.map(|size| ("limit".to_owned(), size.to_string())));
            if let Some(cursor) = cursor {
                query.retain(|(name, _)| name != "starting_after");
                query.push(("starting_after".into(), cursor.to_owned()));
            }
            Request::get(self.access, path).with_query(query)
        })
    }

    /// Changes an object and prints it.
    pub(crate) fn update(&self, matches: &ArgMatches, session: &Session, mut body: Body) -> Result<(), Failure> {
        if body.is_empty() {
            return Err(Failure::Usage("nothing was changed: give at least one field".into()));
        }
        let id = self.id(matches, session)?;
        body.resolve(self.spec, Whose::of(self.access, matches), session)?;
        let noted = Some(self.spec.object).filter(|object| *object == "rental").and_then(|_| noted_for(&mut body));
        let request = Request::patch(self.access, &[self.spec.plural, &id], body.into_json());
        let changed = session.object(&request.with_idempotency_key(chosen_key(matches)))?;
        noted.map_or(Ok(()), |noted| handover::tell(noted, text(matches, "id"), &changed, session))
    }
}

/// Returns a name of the API as English words: `API key` for `api_key`.
fn display_name(name: &str) -> String {
    name.replace("api_", "API ").replace('_', " ")
}

/// The text with a capital first letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn with_article(spec: &ResourceSpec) -> String {
    let article = if spec.object.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {}", display_name(spec.object))
}
