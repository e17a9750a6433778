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
        group::{Group, with_examples},
        session::{self, Session},
    },
    config::settings::{Origin, Secret, Source},
    edge,
    failure::Failure,
    output::{
        self,
        record::{self, Record},
    },
};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use rental_core::{
    operations::api_keys::KEY_PREFIX,
    resources::event::{EVENT_NAMES, EVENT_TYPES, EventType},
};
use serde_json::{Value, json};

pub(crate) const COMMAND: Group = Group { name: "trigger", command, run };

/// Name of all created objects.
const LABEL: &str = "Triggered by rental-cli";
/// Lifetime of the temporary key, which is revoked at the end of the run.
const KEY_LIFE_MS: i64 = 5 * 60 * 1000;
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
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if matches.get_flag("list") {
        return list(session);
    }
    let name = text(matches, "type");
    let row = EVENT_TYPES.iter().find(|row| row.1 == name);
    let Some((kind, ..)) = row else { return Err(Failure::Usage(format!("no such event type: {name}"))) };
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
    let mut run = Run { session, organization, api, steps: Vec::new() };
    let caused = run.cause(*kind);
    if let Some((id, _)) = &key {
        revoke(session, id);
    }
    caused?;
    let events = run.events(&began)?;
    run.show(name, &events)?;
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
        let row = |(_, name, object, doc): &(EventType, &str, &str, &str)| json!({"object": "event_type", "type": name, "data": object, "description": doc});
        let data: Vec<Value> = EVENT_TYPES.iter().map(row).collect();
        let list = json!({"object": "list", "has_more": false, "next_cursor": null, "data": data});
        return output::print(&format!("{list}\n"));
    }
    let rows: Vec<Vec<String>> =
        EVENT_TYPES.iter().map(|(_, name, _, doc)| vec![(*name).to_owned(), (*doc).to_owned()]).collect();
    session.out.rows(&["type", "when"], &rows)
}

/// Rejects an API key of another organization before anything is created there. Compares the hints of keys.
fn check_key(session: &Session, organization: &str) -> Result<(), Failure> {
    let header = session.api.authorization(Access::Organization)?;
    let key = header.to_str().unwrap_or_default();
    let tail: String = key.chars().skip(key.chars().count().saturating_sub(4)).collect();
    let hint = format!("{KEY_PREFIX}…{tail}");
    let query = vec![("organization".to_owned(), organization.to_owned())];
    let known = session::any_object(&session.api, &["api_keys"], query, |raw| {
        Ok(Record::read(raw.get())?.text("hint").as_deref() == Some(&hint))
    })?;
    if known {
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

impl Run<'_> {
    /// Makes the change that emits the event.
    fn cause(&mut self, kind: EventType) -> Result<(), Failure> {
        match kind {
            EventType::VehicleCreated => self.vehicle().map(drop),
            EventType::VehicleUpdated => {
                let vehicle = self.vehicle()?;
                self.change("vehicle", "vehicles", &vehicle, &json!({"color": "Blue"}))
            }
            EventType::CustomerCreated => self.customer().map(drop),
            EventType::CustomerUpdated => {
                let customer = self.customer()?;
                self.change("customer", "customers", &customer, &json!({"notes": LABEL}))
            }
            EventType::RentalCreated => self.rental().map(drop),
            EventType::RentalUpdated => self.rental_becomes(&json!({"damage_at_return": true})),
            EventType::RentalCompleted => self.rental_becomes(&json!({"status": "COMPLETED"})),
            EventType::RentalCancelled => self.rental_becomes(&json!({"status": "CANCELLED"})),
            EventType::InvoiceCreated => self.invoice().map(drop),
            EventType::InvoicePaid => self.settle("pay", "paid"),
            EventType::InvoiceVoided => self.settle("void", "voided"),
            EventType::TollAttached => {
                let body = json!({"amount": 1, "agency": LABEL});
                self.attach("toll", "tolls", &body)
            }
            EventType::ViolationAttached => {
                // Summons numbers are unique, so each run uses its own.
                let number = format!("{LABEL} {}", edge::idempotency_key());
                self.attach("violation", "violations", &json!({"summons_number": number, "amount_due": 1}))
            }
            EventType::LeadReceived => {
                self.make(Access::Organization, "lead", &["leads"], &json!({"source_channel": LABEL})).map(drop)
            }
        }
    }

    fn vehicle(&mut self) -> Result<String, Failure> {
        self.make(Access::Organization, "vehicle", &["vehicles"], &json!({"name": LABEL}))
    }

    fn customer(&mut self) -> Result<String, Failure> {
        self.make(Access::Organization, "customer", &["customers"], &json!({"full_name": LABEL}))
    }

    fn rental(&mut self) -> Result<String, Failure> {
        let (vehicle, customer) = (self.vehicle()?, self.customer()?);
        let body = json!({"vehicle_id": vehicle, "customer_id": customer, "booking_id": LABEL});
        self.make(Access::Organization, "rental", &["rentals"], &body)
    }

    fn rental_becomes(&mut self, change: &Value) -> Result<(), Failure> {
        let rental = self.rental()?;
        self.change("rental", "rentals", &rental, change)
    }

    fn invoice(&mut self) -> Result<String, Failure> {
        let customer = self.customer()?;
        let body = json!({"customer_id": customer, "lines": [{"description": LABEL, "amount": 1}]});
        let path = ["organizations", self.organization, "invoices"];
        self.make(Access::Operator, "invoice", &path, &body)
    }

    fn settle(&mut self, word: &str, did: &'static str) -> Result<(), Failure> {
        let invoice = self.invoice()?;
        self.ask(&Request::post(Access::Operator, &["invoices", &invoice, word], None))?;
        self.did(did, "invoice", invoice);
        Ok(())
    }

    fn attach(&mut self, object: &'static str, plural: &'static str, body: &Value) -> Result<(), Failure> {
        let customer = self.customer()?;
        let id = self.make(Access::Operator, object, &["organizations", self.organization, plural], body)?;
        self.change(object, plural, &id, &json!({"customer_id": customer}))
    }

    fn make(&mut self, access: Access, object: &'static str, path: &[&str], body: &Value) -> Result<String, Failure> {
        let made = self.ask(&Request::post(access, path, Some(body.to_string())))?;
        let id = made.text("id").ok_or_else(|| Failure::Unreadable("the response has no id".into()))?;
        self.did("created", object, id.clone());
        Ok(id)
    }

    fn change(&mut self, object: &'static str, plural: &str, id: &str, body: &Value) -> Result<(), Failure> {
        self.ask(&Request::patch(Access::Organization, &[plural, id], body.to_string()))?;
        self.did("changed", object, id.to_owned());
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
        session::any_object(&self.session.api, &["organizations", self.organization, "events"], query, |raw| {
            let event = Event::read(raw)?;
            if self.steps.iter().any(|step| step.id == event.object_id) {
                events.push(event);
            }
            Ok(false)
        })?;
        events.sort_by_key(|event| event.id);
        Ok(events)
    }

    fn show(&self, kind: &str, events: &[Event]) -> Result<(), Failure> {
        if self.session.out.json {
            let step = |step: &Step| json!({"did": step.did, "object": step.object, "id": step.id});
            let event = |event: &Event| json!({"id": event.id, "type": event.kind, "object_id": event.object_id});
            let steps: Vec<Value> = self.steps.iter().map(step).collect();
            let events: Vec<Value> = events.iter().map(event).collect();
            return output::print(&format!(
                "{}\n",
                json!({"object": "trigger", "type": kind, "steps": steps, "events": events})
            ));
        }
        let row = |event: &Event| vec![event.id.to_string(), event.kind.clone(), event.object_id.clone()];
        let rows: Vec<Vec<String>> = events.iter().map(row).collect();
        self.session.out.rows(&["id", "type", "object_id"], &rows)
    }
}
