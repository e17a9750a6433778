//! `credit-notes`: read with an organization's key, written by the operator. Also `invoices credit`.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        by_number,
        collection::{self, Collection, chosen_key, text},
        confirm,
        days::{self, Whose},
        documents,
        fields::{self, Body},
        group::{Group, with_examples},
        json_text::JsonText,
        session::Session,
    },
    failure::Failure,
    output::record::Record,
};
use clap::{Arg, ArgMatches, Command};
use rental_core::{
    request::body::Verb,
    resources::{TOLL_FEE, VIOLATION_FEE, credit_note::SPEC, invoice, organization, toll, violation},
    schema::{Kind, ResourceSpec},
};
use serde_json::json;

pub(crate) const GROUP: Group = Group { name: "credit-notes", command, run };

const COLLECTION: Collection = Collection { spec: &SPEC, access: Access::Organization };

const REFUNDED_AT: &str = "refunded_at";
/// The members of the body of a refund, with the flags that set them.
const REFUND: [(&str, &str, &str, &str); 3] = [
    (REFUNDED_AT, "at", "TIME", "When the money was given back: a time (RFC 3339) or a day [default: now]"),
    ("refund_method", "method", "TEXT", "How it was given back, such as card"),
    ("refund_reference", "reference", "TEXT", "Number of the payment"),
];

fn command() -> Command {
    let list = ["rental-cli credit-notes list --invoice ID"];
    let get = ["rental-cli credit-notes get CN-000007"];
    let create = [
        "rental-cli credit-notes create --invoice INV-000042 --reason 'Not driven by this customer' --rebill true",
        "rental-cli credit-notes create --invoice INV-000042 --line 0=10.00 --line 2",
    ];
    let refund = ["rental-cli credit-notes refund CN-000007 --method card --reference re_4711"];
    let rebill = ["rental-cli credit-notes rebill CN-000007"];
    let pdf = ["rental-cli credit-notes pdf CN-000007 --to CN-000007.pdf"];
    let print = ["rental-cli credit-notes print CN-000007 --to CN-000007.html"];
    let made = collection::create(&SPEC, &create).arg(collection::organization("Organization that credits"));
    let made = made.mut_arg("invoice_id", |arg| arg.value_name("NUMBER|ID").help("Invoice that it credits"));
    let action = collection::action(&SPEC, "refund", "Note that the money of a credit note was given back", &refund);
    let again = collection::action(
        &SPEC,
        "rebill",
        "Let the tolls, violations and rentals that it credits be billed again",
        &rebill,
    );
    let flags = REFUND.map(|(name, flag, value, help)| Arg::new(name).long(flag).value_name(value).help(help));
    let pdf = with_examples(documents::command(&SPEC, "pdf", "Get a credit note as a PDF file"), &pdf);
    let print =
        with_examples(documents::command(&SPEC, "print", "Get the printable page of a credit note (HTML)"), &print);
    let command = Command::new(GROUP.name)
        .about("Manage credit notes (list, get: organization; all else: operator)")
        .subcommand(collection::list(&SPEC, &list))
        .subcommand(by_number::id(&SPEC, collection::get(&SPEC, &get)))
        .subcommand(made)
        .subcommand(by_number::operator_id(&SPEC, action.args(flags)))
        .subcommand(by_number::operator_id(&SPEC, again))
        .subcommand(pdf)
        .subcommand(print);
    with_examples(command, &[create[0], refund[0]])
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (verb, matches) = collection::verb(matches)?;
    let request = match verb {
        "create" => {
            let mut body = Body::read(matches, &SPEC, Verb::Create)?;
            let invoice = matches.get_one::<JsonText>("invoice_id").and_then(JsonText::text).unwrap_or_default();
            let invoice = by_number::resolve(&invoice::SPEC, &invoice, (Access::Operator, matches), session)?;
            body.replace("invoice_id", &invoice);
            place_lines(&mut body, &invoice, session)?;
            let path = [organization::SPEC.plural, session.organization(matches)?, SPEC.plural];
            let request = Request::post(Access::Operator, &path, Some(body.into_json()));
            let made = session.object(&request.with_idempotency_key(chosen_key(matches)))?;
            return note_next(&made, matches, session);
        }
        "refund" => {
            let id = by_number::resolve(&SPEC, text(matches, "id"), (Access::Operator, matches), session)?;
            let given = |name: &str| matches.get_one::<String>(name).map(|text| (name.to_owned(), json!(text)));
            let mut body: serde_json::Map<_, _> = REFUND.iter().filter_map(|(name, ..)| given(name)).collect();
            if let Some(at) = matches.get_one::<String>(REFUNDED_AT) {
                let whose = Whose::of(Access::Operator, matches);
                body[REFUNDED_AT] = json!(days::resolved(Kind::Time, at, &whose, session)?);
            }
            Request::post(
                Access::Operator,
                &[SPEC.plural, &id, verb],
                Some(serde_json::Value::Object(body).to_string()),
            )
        }
        "rebill" => {
            let id = by_number::resolve(&SPEC, text(matches, "id"), (Access::Operator, matches), session)?;
            Request::post(Access::Operator, &[SPEC.plural, &id, verb], None)
        }
        "get" => {
            let id = by_number::resolve(&SPEC, text(matches, "id"), (Access::Organization, matches), session)?;
            return session.object(&Request::get(Access::Organization, &[SPEC.plural, &id])).map(drop);
        }
        "pdf" | "print" => return documents::save(&SPEC, verb, matches, session),
        _ => return COLLECTION.run(verb, matches, session),
    };
    session.object(&request.with_idempotency_key(chosen_key(matches))).map(drop)
}

/// Builds `invoices credit ID`.
pub(super) fn of_invoice() -> Command {
    let examples = [
        "rental-cli invoices credit INV-000042 --line toll:61231234567 --reason 'Toll of another car' --rebill true",
        "rental-cli invoices credit INV-000042 --line 0 --line 2=4.50",
        "rental-cli invoices credit INV-000042 --reason Kindness",
    ];
    let about = "Create a credit note for an invoice: for lines of it, or for all that is left of it";
    let args = fields::field_args(&SPEC, Verb::Create).into_iter().filter(|arg| arg.get_id() != "invoice_id");
    let columns = fields::columns_of(&SPEC);
    let command = collection::action_that_shows(columns, &invoice::SPEC, "credit", about, &examples);
    by_number::operator_id(&invoice::SPEC, command.args(args).arg(confirm::yes_on_terminal()))
}

/// Runs `invoices credit ID`.
pub(super) fn credit(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let id = by_number::resolve(&invoice::SPEC, text(matches, "id"), (Access::Operator, matches), session)?;
    let mut body = Body::read(matches, &SPEC, Verb::Create)?;
    if body.field_mut("lines").is_none() {
        let what = format!("Credit all that is left of invoice {}, because no --line is given", text(matches, "id"));
        confirm::confirm_on_terminal(matches, &what)?;
    }
    let fees = place_lines(&mut body, &id, session)?;
    let request = Request::post(Access::Operator, &[invoice::SPEC.plural, &id, "credit"], Some(body.into_json()));
    let made = session.object(&request.with_idempotency_key(chosen_key(matches)))?;
    for (place, description) in fees {
        session.out.note(&format!(
            "line {place} of the invoice, \"{description}\", is not credited: to give the fee back too, use `rental-cli invoices credit {} --line {place}=AMOUNT`",
            text(matches, "id")
        ));
    }
    note_next(&made, matches, session)
}

/// Says what follows a credit note: the customer gets it, and the money if the invoice was paid.
fn note_next(made: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if let Some(number) = Record::read(made)?.text("credit_note_number") {
        let of = by_number::organization_flag(matches);
        session.out.note(&format!(
            "next: rental-cli credit-notes pdf {number}{of} --to {number}.pdf; once the money of a paid invoice was given back: rental-cli credit-notes refund {number}{of}"
        ));
    }
    Ok(())
}

/// What fees are for, and how the description of their lines begins.
const FEES: [(&ResourceSpec, &str); 2] = [(&toll::SPEC, TOLL_FEE), (&violation::SPEC, VIOLATION_FEE)];

/// Replaces lines that name a toll, violation or rental by their places on the invoice. If there are such lines, returns the places
/// and descriptions of the invoice's fees that are not credited with them.
fn place_lines(body: &mut Body, invoice: &str, session: &Session) -> Result<Vec<(usize, String)>, Failure> {
    let Some(value) = body.field_mut("lines") else { return Ok(Vec::new()) };
    let mut lines = value.items();
    let mut of_invoice: Option<Vec<Record>> = None;
    let mut credited = Vec::new();
    for line in &mut lines {
        let Some((spec, member, name)) = fields::billed(line) else { continue };
        let of_invoice = match &mut of_invoice {
            Some(read) => read,
            None => {
                let request = Request::get(Access::Organization, &[invoice::SPEC.plural, invoice]);
                of_invoice.insert(Record::read(&session.send(&request)?)?.list("lines"))
            }
        };
        let id = session.object_id(spec, &name)?;
        let place = of_invoice.iter().position(|billed| billed.text(member).as_ref() == Some(&id));
        let place = place.ok_or_else(|| Failure::Unsuccessful {
            kind: "not_found",
            problem: format!("this invoice does not bill {} {name}", spec.object),
            hint: "`rental-cli invoices get` shows what an invoice bills",
        })?;
        *line = line.at_place(place);
        credited.push(spec.object);
    }
    *value = JsonText::list(&lines);
    let is_credited = |place: usize| lines.iter().any(|line| line.is_of_line(place));
    let of_invoice = of_invoice.iter().flatten().enumerate().filter(|(place, _)| !is_credited(*place));
    let described = of_invoice.filter_map(|(place, line)| line.text("description").map(|text| (place, text)));
    let begins = |text: &str, fee: &str| text.strip_prefix(fee).is_some_and(|rest| rest.starts_with(": "));
    let is_fee = |text: &str| FEES.iter().any(|(spec, fee)| credited.contains(&spec.object) && begins(text, fee));
    Ok(described.filter(|(_, text)| is_fee(text)).collect())
}
