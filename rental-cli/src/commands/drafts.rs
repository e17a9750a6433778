//! `invoices draft-all`: the invoices of everything that is completed and not billed.

use crate::{
    client::{access::Access, request::Request},
    commands::{collection, confirm, group::with_examples, session::Session},
    failure::Failure,
    output::{
        counted, print,
        progress::Progress,
        record::{Page, Record, amount, next_page},
    },
    text::tsv_cell,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    resources::{invoice::SPEC, organization, toll, violation},
    schema::ResourceSpec,
    value::Money,
};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The members of a row.
const MEMBERS: [&str; 10] = [
    "rental_id",
    "customer_id",
    "customer_name",
    "start_date",
    "invoice_number",
    "invoice_id",
    "tolls",
    "violations",
    "total",
    "problem",
];
/// Columns of a terminal, which has no room for ids.
const SHOWN: [&str; 7] = ["customer_name", "start_date", "invoice_number", "tolls", "violations", "total", "problem"];

pub(super) fn command() -> Command {
    let command = Command::new("draft-all")
        .about("Create the invoices of all that is completed and not billed: rentals, tolls and violations (operator)")
        .arg(collection::organization("Organization that bills"))
        .arg(Arg::new("dry_run").long("dry-run").action(ArgAction::SetTrue).help("Only show what would be billed"))
        .arg(confirm::yes_on_terminal());
    with_examples(
        command,
        &[
            "rental-cli invoices draft-all --organization ID --dry-run",
            "rental-cli invoices draft-all --organization ID",
        ],
    )
}

/// What was done so far.
#[derive(Default)]
struct Done {
    rows: Vec<Value>,
    invoices: u64,
    skipped: u64,
    total: Money,
    /// The rentals that could not be billed.
    refused: HashSet<String>,
    /// Whether a draft of this pass left something for another invoice.
    more: bool,
    /// The rental of the last draft, if that left something which the next draft bills.
    continued: Option<String>,
    /// Whether a draft left something that no other draft of the list bills.
    unread: bool,
    /// The currency of the organization; `None` before the first draft.
    currency: Option<String>,
}

pub(super) fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let path = [organization::SPEC.plural, session.organization(matches)?, SPEC.plural, "drafts"];
    let dry_run = matches.get_flag("dry_run");
    if !dry_run && confirm::asks_on_terminal(matches) {
        ask(matches, &path, session)?;
    }
    let mut done = Done::default();
    let mut progress = Progress::count(None, "drafts looked at");
    loop {
        let before = done.invoices;
        done.pass(&path, dry_run, session, &mut progress)?;
        // Each pass bills something, so that this ends.
        if dry_run || !std::mem::take(&mut done.more) || done.invoices == before {
            break;
        }
    }
    progress.finish();
    done.show(dry_run, session)?;
    for spec in [&toll::SPEC, &violation::SPEC] {
        if let Err(failure) = hint(spec, matches, session) {
            // The invoices are created, and another run would find none.
            let (problem, what) = (failure.problem_and_hint().0, spec.plural);
            session.out.note(&format!("it is not known which {what} fit a rental and are not attached: {problem}"));
        }
    }
    if !dry_run && session.out.has_notes() {
        for spec in [&toll::SPEC, &violation::SPEC] {
            note_unbilled(spec, session.organization(matches)?, session);
        }
    }
    Ok(())
}

/// Asks a person whether to create these invoices: a run cannot be undone, each invoice has to be voided. With nothing to create
/// it does not ask.
fn ask(matches: &ArgMatches, path: &[&str], session: &Session) -> Result<(), Failure> {
    let mut planned = Done::default();
    let mut progress = Progress::count(None, "drafts looked at");
    planned.pass(path, true, session, &mut progress)?;
    progress.finish();
    if planned.invoices == 0 {
        return Ok(());
    }
    let total = amount(&planned.total.to_string(), planned.currency.as_deref());
    let currency = planned.currency.map(|currency| format!(" {currency}")).unwrap_or_default();
    let what = format!("Create {} over {total}{currency}", counted(planned.invoices, "invoices"));
    confirm::confirm_on_terminal(matches, &what)
}

/// Says how many of the newest 100 unbilled tolls or violations have a customer: the run did not bill them. Without an API key of
/// this organization it says nothing: only such a key can list them.
fn note_unbilled(spec: &ResourceSpec, organization: &str, session: &Session) {
    let get = |path: &str, query: &[(&str, &str)]| {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        session.send(&Request::get(Access::Organization, &[path]).with_query(query)).ok()
    };
    let organization_of_key = || Record::read(&get("me", &[])?).ok()?.text("organization_id");
    let unbilled = || Page::read(&get(spec.plural, &[("billed", "false"), ("limit", "100")])?).ok();
    let Some(page) = organization_of_key().filter(|of_key| of_key == organization).and_then(|_| unbilled()) else {
        return;
    };
    let attached =
        page.data.iter().filter(|raw| Record::read(raw.get()).is_ok_and(|record| record.text("customer_id").is_some()));
    let count = attached.count() as u64;
    if count > 0 {
        let at_least = if page.has_more { "at least " } else { "" };
        let (has, none) = if count == 1 { ("has", "it has none") } else { ("have", "they have none") };
        session.out.note(&format!(
            "{at_least}{} {has} a customer and no invoice: the rental is not completed, or has no price, or {none}; `rental-cli {plural} list --billed false` shows them, and `rental-cli invoices create --customer EMAIL --line {}:NUMBER` bills one",
            counted(count, spec.plural),
            spec.object,
            plural = spec.plural
        ));
    }
}

/// Says how many of the newest 100 unattached tolls or violations fit a rental: no invoice bills them before they are attached.
fn hint(spec: &ResourceSpec, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if !session.out.has_notes() {
        return Ok(());
    }
    let path = [organization::SPEC.plural, session.organization(matches)?, spec.plural, "suggestions"];
    let newest = Request::get(Access::Operator, &path).with_query(vec![("limit".into(), "100".into())]);
    let page = Page::read(&session.send(&newest)?)?;
    let mut clear = 0;
    for suggestion in &page.data {
        clear += u64::from(Record::read(suggestion.get())?.text("verdict").as_deref() == Some("clear"));
    }
    if clear > 0 {
        let (at_least, found) = (if page.has_more { "at least " } else { "" }, counted(clear, spec.plural));
        let (fit, are, them) = if clear == 1 { ("fits", "is", "it") } else { ("fit", "are", "them") };
        session.out.note(&format!(
            "{at_least}{found} {fit} a rental and {are} not attached; attach {them} with `rental-cli {} suggest --attach`",
            spec.plural
        ));
    }
    Ok(())
}

impl Done {
    /// Says what was created before an error.
    fn note_created(&self, dry_run: bool, session: &Session) {
        if !dry_run {
            let created = counted(self.invoices, "invoices");
            session.out.note(&format!("{created} created before this error; run it again to go on"));
        }
    }

    /// Goes through the list of drafts once.
    fn pass(
        &mut self,
        path: &[&str],
        dry_run: bool,
        session: &Session,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut cursor = None::<String>;
        loop {
            let after = cursor.as_ref().map(|cursor| ("starting_after".to_owned(), cursor.clone()));
            let query = [("limit".to_owned(), "20".to_owned())].into_iter().chain(after).collect();
            let page = session.send(&Request::get(Access::Operator, path).with_query(query));
            let page = page.and_then(|page| Page::read(&page)).inspect_err(|_| self.note_created(dry_run, session))?;
            for draft in &page.data {
                let draft = Record::read(draft.get())?;
                if let Err(failure) = self.bill(&draft, path, dry_run, session) {
                    self.note_created(dry_run, session);
                    return Err(failure);
                }
            }
            progress.at(self.rows.len() as u64);
            cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
            if cursor.is_none() {
                self.unread |= self.continued.take().is_some();
                return Ok(());
            }
        }
    }

    /// Notes whether a draft left something, and whether the next one of the same rental follows it.
    fn note_rest(&mut self, draft: &Record) {
        let rental = draft.text("rental_id");
        self.unread |= self.continued.take().is_some_and(|before| Some(&before) != rental.as_ref());
        if draft.text("more").as_deref() == Some("true") {
            self.more = true;
            self.continued = rental;
        }
    }

    /// Creates the invoice of one draft. In a dry run, and when the draft has a problem, only notes it.
    fn bill(&mut self, draft: &Record, path: &[&str], dry_run: bool, session: &Session) -> Result<(), Failure> {
        let rental = draft.text("rental_id").unwrap_or_default();
        if self.refused.contains(&rental) {
            // Another pass lists again what an earlier one could not bill.
            return Ok(());
        }
        self.note_rest(draft);
        let mut row = json!({});
        for name in MEMBERS {
            row[name] = draft.text(name).map_or(Value::Null, Value::from);
        }
        self.currency = draft.text("currency").or_else(|| self.currency.take());
        let mut problem = draft.text("problem");
        let mut billed = draft.text("total");
        if problem.is_none() && !dry_run {
            let body = json!({"rental_id": rental, "with_tolls": true, "with_violations": true}).to_string();
            match session.send(&Request::post(Access::Operator, path, Some(body))) {
                Ok(invoice) => {
                    let invoice = Record::read(&invoice)?;
                    row["invoice_id"] = invoice.text("id").map_or(Value::Null, Value::from);
                    row["invoice_number"] = invoice.text("invoice_number").map_or(Value::Null, Value::from);
                    billed = invoice.text("total");
                }
                // Somebody else billed or changed the rental since the page was read.
                Err(Failure::ErrorResponse(response)) if matches!(response.status, 400 | 409) => {
                    problem = Some(response.message().to_owned());
                }
                Err(failure) => return Err(failure),
            }
        }
        let sum = billed.and_then(|text| Money::parse(&text, 4).ok()).unwrap_or_default();
        row["total"] = number(sum);
        for name in ["tolls", "violations"] {
            row[name] = draft.text(name).and_then(|text| text.parse::<u64>().ok()).map_or(Value::Null, Value::from);
        }
        if problem.is_some() {
            self.skipped += 1;
            self.refused.insert(rental);
        } else {
            self.invoices += 1;
            self.total = self.total.plus(sum).unwrap_or(Money::MAX);
        }
        row["problem"] = problem.map_or(Value::Null, Value::from);
        self.rows.push(row);
        Ok(())
    }

    fn show(&self, dry_run: bool, session: &Session) -> Result<(), Failure> {
        let Self { rows, invoices, skipped, total, currency, .. } = self;
        if session.out.json {
            let summary = json!({
                "object": "invoice_run", "dry_run": dry_run, "invoices": invoices, "skipped": skipped,
                "total": number(*total), "data": rows,
            });
            return session.out.json(&summary.to_string());
        }
        let cell = |row: &Value, name: &str| match &row[name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            total if name == "total" && session.out.is_terminal() => amount(&total.to_string(), currency.as_deref()),
            other => other.to_string(),
        };
        let columns = if session.out.is_terminal() { &SHOWN[..] } else { &MEMBERS[..] };
        let cells: Vec<Vec<String>> =
            rows.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect()).collect();
        if session.out.is_terminal() {
            if !cells.is_empty() {
                session.out.rows(columns, &cells)?;
            }
        } else {
            let line = |row: &Vec<String>| row.iter().map(|cell| tsv_cell(cell)).collect::<Vec<_>>().join("\t") + "\n";
            print(&(columns.join("\t") + "\n" + &cells.iter().map(line).collect::<String>()))?;
        }
        let [created, skipped] =
            [(*invoices, "invoices"), (*skipped, "rentals")].map(|(count, many)| counted(count, many));
        let would = if dry_run { "would be " } else { "" };
        let total = amount(&total.to_string(), currency.as_deref());
        session.out.note(&format!("{created} {would}created over {total}, {skipped} skipped"));
        if dry_run && self.unread {
            session.out.note(
                "a customer has more unbilled tolls or violations than a dry run reads; a run without --dry-run bills those too",
            );
        }
        Ok(())
    }
}

/// An amount as a JSON number.
fn number(amount: Money) -> Value {
    serde_json::to_value(amount).unwrap_or(Value::Null)
}
