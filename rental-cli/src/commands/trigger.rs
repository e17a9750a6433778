//! `trigger`: causes an event by making the change that emits it.
//!
//! Objects are created and changed through the API, so the event is a real one. The objects are kept; their name says that
//! `trigger` created them.

use crate::{
    client::{
        access::Access,
        api::Api,
        event_feed::{Event, Server},
        request::Request,
    },
    commands::{
        collection::{self, text},
        fields,
        group::{Group, with_examples},
        session::{self, Session},
    },
    config::settings::{Origin, Secret, Source},
    failure::Failure,
    output::{
        counted,
        record::{self, Record},
    },
};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use rental_core::{
    resources::{
        Entry, RESOURCES,
        event::{Cause, EVENT_NAMES, EVENT_TYPES, EventSpec},
        invoice,
    },
    schema::{Kind, Presence, ResourceSpec},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub(crate) const COMMAND: Group = Group { name: "trigger", command, run };

/// Name of all created objects.
const LABEL: &str = "Triggered by rental-cli";
/// A field that nobody requires, and without which a vehicle is not for rent. Whole numbers are amounts of every currency.
const RATE: (&str, &str) = ("vehicle", "daily_rate");
/// Lifetime of the temporary key, which is revoked at the end of the run.
const KEY_LIFE_MS: i64 = 5 * 60 * 1000;
/// Columns of the events that a run caused.
const COLUMNS: [&str; 3] = ["id", "type", "object_id"];
const MORE: &str = "\
Uses the API key that is set, or else a temporary key that is revoked at the end. The objects that it creates are kept; \
their name is \"Triggered by rental-cli\". Objects that the event needs are created too, and emit events of their own.";

fn command() -> Command {
    let examples = ["rental-cli trigger rental.completed --organization ID", "rental-cli trigger --list"];
    let command = Command::new(COMMAND.name)
        .about("Cause an event, by making the change that emits it (operator)")
        .arg(
            Arg::new("type")
                .value_name("TYPE")
                .required_unless_present("list")
                .value_parser(PossibleValuesParser::new(EVENT_NAMES))
                .hide_possible_values(true)
                .help("Event type; --list shows all"),
        )
        .arg(collection::organization("Organization of the event"))
        .arg(Arg::new("list").long("list").action(ArgAction::SetTrue).help("List the event types"))
        .arg(fields::columns_among(COLUMNS.into_iter().chain(["about"])).conflicts_with("list"))
        .after_help(MORE);
    with_examples(command, &examples)
}

/// One change that was made.
struct Step {
    did: &'static str,
    object: &'static str,
    id: String,
}

/// One run of the command.
struct Run<'a> {
    session: &'a Session,
    organization: &'a str,
    /// Client with an API key of the organization.
    api: Api,
    steps: Vec<Step>,
    /// Whether the invoice is paid as soon as it is created.
    pays: bool,
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if matches.get_flag("list") {
        return list(session);
    }
    let name = text(matches, "type");
    let event = EVENT_TYPES.iter().find(|event| event.name == name);
    let event = event.ok_or_else(|| Failure::Usage(format!("no such event type: {name}")))?;
    let organization = session.organization(matches)?;
    let server = Server::ask(&session.api)?;
    let began = server.now().plus_millis(-1000).to_string();
    let key = match &session.settings.api_key {
        Some(_) => {
            check_key(session, organization)?;
            None
        }
        None => Some(temporary_key(session, organization, &server)?),
    };
    let api = match &key {
        Some((_, text)) => {
            let source = Source::Text(text.into());
            session.api.with_api_key(Secret { source, origin: Origin::Variable("the key of this run".into()) })
        }
        None => session.api.clone(),
    };
    let mut run = Run { session, organization, api, steps: Vec::new(), pays: false };
    let caused = run.cause(event);
    if let Some((id, _)) = &key {
        revoke(session, id);
    }
    let shown = caused.and_then(|()| run.events(&began)).and_then(|events| run.show(name, &events).map(|()| events));
    run.note_kept();
    let events = shown?;
    if events.iter().any(|event| event.kind == name) {
        return Ok(());
    }
    Err(Failure::Unsuccessful {
        kind: "not_seen",
        problem: format!("all changes were made, but the organization has no new event {name}"),
        hint: "check that RENTAL_API_KEY is a key of the organization in --organization",
    })
}

fn list(session: &Session) -> Result<(), Failure> {
    if session.out.json {
        let row = |event: &EventSpec| json!({"object": "event_type", "type": event.name, "data": event.object(), "description": event.doc});
        let data: Vec<Value> = EVENT_TYPES.iter().map(row).collect();
        let list = json!({"object": "list", "has_more": false, "next_cursor": null, "data": data});
        return session.out.json(&list.to_string());
    }
    let rows = EVENT_TYPES.iter().map(|event| vec![event.name.to_owned(), event.doc.to_owned()]);
    session.out.rows(&["type", "when"], &rows.collect::<Vec<_>>())
}

/// Rejects an API key of another organization before anything is created there.
fn check_key(session: &Session, organization: &str) -> Result<(), Failure> {
    let me = Record::read(&session.send(&Request::get(Access::Organization, &["me"]))?)?;
    let id = |text: &str| Uuid::try_parse(text).ok();
    if me.text("organization_id").and_then(|own| id(&own)).is_some_and(|own| id(organization) == Some(own)) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the API key that is set belongs to another organization than {organization}; nothing was changed; correct --organization, or unset RENTAL_API_KEY to use a temporary key"
    )))
}

/// A key for this run as (id, text).
fn temporary_key(session: &Session, organization: &str, server: &Server) -> Result<(String, String), Failure> {
    let expires = server.now().plus_millis(KEY_LIFE_MS).to_string();
    let body = json!({"organization_id": organization, "scope": "read_write", "name": LABEL, "expires_at": expires});
    let key = session.send(&Request::post(Access::Operator, &["api_keys"], Some(body.to_string())))?;
    let key = Record::read(&key)?;
    key.text("id").zip(key.text("key")).ok_or_else(|| Failure::Unreadable("the response is not a new API key".into()))
}

fn revoke(session: &Session, id: &str) {
    if let Err(failure) = session.send(&Request::post(Access::Operator, &["api_keys", id, "revoke"], None)) {
        let problem = failure.problem_and_hint().0;
        session.out.note(&format!("the temporary key {id} was not revoked ({problem}); it expires within 5 minutes"));
    }
}

/// The resource of this name.
fn entry(object: &str) -> Result<&'static Entry, Failure> {
    RESOURCES.iter().find(|entry| entry.spec.object == object).ok_or_else(|| unknown(object))
}

fn unknown(object: &str) -> Failure {
    Failure::Unreadable(format!("this version of rental-cli cannot create: {object}"))
}

impl Run<'_> {
    /// Makes the change that emits the event.
    fn cause(&mut self, event: &EventSpec) -> Result<(), Failure> {
        let object = entry(event.object())?.spec;
        match event.cause {
            Cause::Create => self.create(object.object).map(drop),
            Cause::Set(field, value) => {
                let id = self.create(object.object)?;
                self.change(object, id, format!("{{\"{field}\":{value}}}"))
            }
            Cause::Attach(field) => self.attach(object, field).map(drop),
            Cause::Release(field) => {
                let id = self.attach(object, field)?;
                self.ask(&Request::post(Access::Operator, &[object.plural, &id, "release"], None))?;
                self.did("released", object.object, id);
                Ok(())
            }
            Cause::Operator(action) | Cause::OfPaid(action) => {
                self.pays = matches!(event.cause, Cause::OfPaid(_));
                let id = self.create(object.object)?;
                self.ask(&Request::post(Access::Operator, &[object.plural, &id, action], None))?;
                let did = event.name.split_once('.').map_or(action, |(_, did)| did);
                self.did(did, object.object, id);
                Ok(())
            }
        }
    }

    /// Creates an object and sets a field of it to the id of another new object. Returns the id of the first one.
    fn attach(&mut self, spec: &'static ResourceSpec, field: &'static str) -> Result<String, Failure> {
        let kind = spec.field(field).map(|field| field.kind);
        let Some(Kind::Reference(other)) = kind else { return Err(unknown(spec.object)) };
        let body = json!({field: self.create(other)?});
        let id = self.create(spec.object)?;
        self.change(spec, id.clone(), body.to_string())?;
        Ok(id)
    }

    /// Pays the invoice that this run created.
    fn pay(&mut self) -> Result<(), Failure> {
        let invoice = invoice::SPEC.object;
        let created = self.steps.iter().find(|step| step.object == invoice).map(|step| step.id.clone());
        let id = created.ok_or_else(|| unknown(invoice))?;
        self.ask(&Request::post(Access::Operator, &[invoice::SPEC.plural, &id, "pay"], None))?;
        self.did("paid", invoice, id);
        Ok(())
    }

    /// Creates an object with the fields that it requires, and with [`LABEL`] in its first text.
    fn create(&mut self, object: &str) -> Result<String, Failure> {
        let entry = entry(object)?;
        let mut body = Map::new();
        let mut labelled = false;
        for field in entry.spec.fields.iter().filter(|field| field.create != Presence::Never) {
            let required = field.create == Presence::Required;
            let value = match field.kind {
                Kind::Text(_) | Kind::Name(_) if required || !labelled => {
                    labelled = true;
                    json!(LABEL)
                }
                Kind::Money if (entry.spec.object, field.name) == RATE => json!(50),
                _ if !required => continue,
                Kind::Reference(other) => json!(self.create(other)?),
                Kind::Lines => {
                    labelled = true;
                    json!([{"description": LABEL, "amount": 1}])
                }
                // The example can have more decimals than the organization's currency.
                Kind::Money => json!(1),
                _ => serde_json::from_str(field.example)
                    .map_err(|_| Failure::Unreadable(format!("the example of {} is not JSON", field.name)))?,
            };
            body.insert(field.name.into(), value);
        }
        let offered = entry.public.is_some_and(|collection| collection.create.is_some());
        let recorded = ["organizations", self.organization, entry.spec.plural];
        let (access, path) =
            if offered { (Access::Organization, &recorded[2..]) } else { (Access::Operator, &recorded[..]) };
        let made = self.ask(&Request::post(access, path, Some(Value::Object(body).to_string())))?;
        let id = made.text("id").ok_or_else(|| Failure::Unreadable("the response has no id".into()))?;
        self.did("created", entry.spec.object, id.clone());
        if self.pays && entry.spec.object == invoice::SPEC.object {
            self.pay()?;
        }
        Ok(id)
    }

    fn change(&mut self, spec: &ResourceSpec, id: String, body: String) -> Result<(), Failure> {
        self.ask(&Request::patch(Access::Organization, &[spec.plural, &id], body))?;
        self.did("changed", spec.object, id);
        Ok(())
    }

    fn ask(&self, request: &Request) -> Result<Record, Failure> {
        Record::read(&record::json(self.api.send(request)?)?)
    }

    fn did(&mut self, did: &'static str, object: &'static str, id: String) {
        self.session.out.note(&format!("{did} {object} {id}"));
        self.steps.push(Step { did, object, id });
    }

    /// Events of the objects of this run, oldest first.
    fn events(&self, began: &str) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        let query = vec![("created[gte]".to_owned(), began.to_owned())];
        session::any_object(&self.session.api, &["organizations", self.organization, "events"], &query, |raw| {
            let event = Event::read(raw)?;
            if self.steps.iter().any(|step| step.id == event.object_id) {
                events.push(event);
            }
            Ok(false)
        })?;
        events.sort_by_key(|event| event.id);
        Ok(events)
    }

    /// Says what stays behind. The API deletes no vehicle, customer or booking.
    fn note_kept(&self) {
        let made = self.steps.iter().filter(|step| step.did == "created").count() as u64;
        if made == 0 {
            return;
        }
        let stay = if made == 1 { "stays" } else { "stay" };
        self.session.out.note(&format!(
            "{} {stay} in the organization, named \"{LABEL}\"; use an organization of its own for tests",
            counted(made, "objects")
        ));
    }

    fn show(&self, kind: &str, events: &[Event]) -> Result<(), Failure> {
        if self.session.out.json {
            let step = |step: &Step| json!({"did": step.did, "object": step.object, "id": step.id});
            let event = |event: &Event| json!({"id": event.id, "type": event.kind, "object_id": event.object_id});
            let steps: Vec<Value> = self.steps.iter().map(step).collect();
            let events: Vec<Value> = events.iter().map(event).collect();
            let done = json!({"object": "trigger", "type": kind, "steps": steps, "events": events});
            return self.session.out.json(&done.to_string());
        }
        let columns = self.session.out.columns_or(&COLUMNS);
        let cell = |event: &Event, name: &str| match name {
            "id" => event.id.to_string(),
            "type" => event.kind.clone(),
            "about" => event.about.clone().unwrap_or_default(),
            _ => event.object_id.clone(),
        };
        let rows = events.iter().map(|event| columns.iter().map(|name| cell(event, name)).collect());
        self.session.out.rows(&columns, &rows.collect::<Vec<_>>())
    }
}
