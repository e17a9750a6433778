//! `invoices draft-all`: the invoices of everything that is completed and not billed.

use crate::{
    client::{access::Access, request::Request},
    commands::{collection, confirm, fields, group::with_examples, mentions::Mentions, session::Session},
    failure::Failure,
    output::{
        columns::money,
        counted, print,
        progress::Progress,
        record::{Page, Record, next_page},
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

/// The members of a row that a pipe shows.
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
/// The member that only `--columns` and JSON show.
const CURRENCY: &str = "currency";
/// Columns of a terminal, which has no room for ids.
const SHOWN: [&str; 7] = ["customer_name", "start_date", "invoice_number", "tolls", "violations", "total", "problem"];

pub(super) fn command() -> Command {
    let command = Command::new("draft-all")
        .about("Create the invoices of all that is completed and not billed: rentals, tolls and violations (operator)")
        .arg(collection::organization("Organization that bills"))
        .arg(Arg::new("dry_run").long("dry-run").action(ArgAction::SetTrue).help("Only show what would be billed"))
        .arg(fields::columns_among(MEMBERS.into_iter().chain([CURRENCY])))
        .arg(confirm::yes_on_terminal());
    with_examples(
        command,
        &[
            "rental-cli invoices draft-all --organization ID --dry-run",
            "rental-cli invoices draft-all --organization ID",
            "rental-cli invoices draft-all --organization ID --dry-run --columns customer_name,total,currency",
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
    /// The rentals that could not be billed, and the customers whose tolls or violations belong to no rental.
    refused: HashSet<String>,
    /// How many of them are customers.
    without_rental: u64,
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
    let is_hinted = !dry_run && confirm::asks_on_terminal(matches) && ask(matches, &path, session)?;
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
    if !is_hinted {
        hints(matches, session);
    }
    Ok(())
}

/// Says what fits a rental and is not attached. Without an answer of the server it says that: what is created stays created.
fn hints(matches: &ArgMatches, session: &Session) {
    for spec in [&toll::SPEC, &violation::SPEC] {
        if let Err(failure) = hint(spec, matches, session) {
            let (problem, what) = (failure.problem_and_hint().0, spec.plural);
            session.out.note(&format!("it is not known which {what} fit a rental and are not attached: {problem}"));
        }
    }
}

/// Asks a person whether to create these invoices, after what is not attached yet: a run cannot be undone, each invoice has to be
/// voided. Returns whether it asked; with nothing to create it does not.
fn ask(matches: &ArgMatches, path: &[&str], session: &Session) -> Result<bool, Failure> {
    let mut planned = Done::default();
    let mut progress = Progress::count(None, "drafts looked at");
    planned.pass(path, true, session, &mut progress)?;
    progress.finish();
    if planned.invoices == 0 {
        return Ok(false);
    }
    hints(matches, session);
    let total = with_currency(planned.total, planned.currency.as_deref());
    let what = format!("Create {} over {total}", counted(planned.invoices, "invoices"));
    confirm::confirm_on_terminal(matches, &what).map(|()| true)
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
        let (rental, customer) = (draft.text("rental_id"), draft.text("customer_id"));
        let subject = rental.clone().or(customer).unwrap_or_default();
        if self.refused.contains(&subject) {
            // Another pass lists again what an earlier one could not bill.
            return Ok(());
        }
        self.note_rest(draft);
        let mut row = json!({});
        for name in MEMBERS.into_iter().chain([CURRENCY]) {
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
            *if rental.is_some() { &mut self.skipped } else { &mut self.without_rental } += 1;
            self.refused.insert(subject);
        } else {
            self.invoices += 1;
            self.total = self.total.plus(sum).unwrap_or(Money::MAX);
        }
        row["problem"] = problem.map_or(Value::Null, Value::from);
        self.rows.push(row);
        Ok(())
    }

    fn show(&self, dry_run: bool, session: &Session) -> Result<(), Failure> {
        let Self { rows, invoices, skipped, without_rental, total, currency, .. } = self;
        if session.out.json {
            let summary = json!({
                "object": "invoice_run", "dry_run": dry_run, "invoices": invoices, "skipped": skipped,
                "customers_without_rental": without_rental,
                "total": number(*total), "currency": currency, "data": rows,
            });
            return session.out.json(&summary.to_string());
        }
        let mut mentions = Mentions::new(&session.api);
        if session.out.is_terminal() {
            mentions.learn(rows.iter().filter_map(|row| row["problem"].as_str()));
        }
        let cell = |row: &Value, name: &str| match &row[name] {
            Value::Null => String::new(),
            Value::String(text) if name == "problem" && session.out.is_terminal() => mentions.named(text),
            Value::String(text) => text.clone(),
            total if name == "total" && session.out.is_terminal() => match row[CURRENCY].as_str() {
                Some(currency) => money(&total.to_string(), currency),
                None => total.to_string(),
            },
            other => other.to_string(),
        };
        let columns = session.out.columns_or(if session.out.is_terminal() { &SHOWN } else { &MEMBERS });
        let cells: Vec<Vec<String>> =
            rows.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect()).collect();
        if session.out.is_terminal() {
            if !cells.is_empty() {
                session.out.rows(&columns, &cells)?;
            }
        } else {
            let line = |row: &Vec<String>| row.iter().map(|cell| tsv_cell(cell)).collect::<Vec<_>>().join("\t") + "\n";
            print(&(columns.join("\t") + "\n" + &cells.iter().map(line).collect::<String>()))?;
        }
        let [created, skipped] =
            [(*invoices, "invoices"), (*skipped, "rentals")].map(|(count, many)| counted(count, many));
        let would = if dry_run { "would be " } else { "" };
        let total = with_currency(*total, currency.as_deref());
        session.out.note(&format!("{created} {would}created over {total}, {skipped} skipped"));
        if *without_rental > 0 {
            let customers = counted(*without_rental, "customers");
            let have = if *without_rental == 1 { "has" } else { "have" };
            session.out.note(&format!(
                "{customers} {have} unbilled tolls or violations of a time without a rental; \
                 `rental-cli invoices create --customer EMAIL --with-tolls --with-violations` bills those of one customer"
            ));
        }
        if dry_run && self.unread {
            session.out.note(
                "a customer has more unbilled tolls or violations than a dry run reads; a run without --dry-run bills those too",
            );
        }
        Ok(())
    }
}

/// An amount with its currency, if that is known.
fn with_currency(total: Money, currency: Option<&str>) -> String {
    currency.map_or_else(|| total.to_string(), |currency| money(&total.to_string(), currency))
}

/// An amount as a JSON number.
fn number(amount: Money) -> Value {
    serde_json::to_value(amount).unwrap_or(Value::Null)
}
