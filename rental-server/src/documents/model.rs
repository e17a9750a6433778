//! What an invoice or a credit note says: every text in its language, in its order. HTML and PDF lay it out.

use super::{
    formats,
    logo::Logo,
    words::{self, Words},
};
use rental_core::{
    resources::{
        Source as Billed,
        credit_note::{CreditLine, CreditNote},
        customer::Customer,
        invoice::{Invoice, InvoiceStatus, Line},
        organization::{InvoiceLanguage, Organization, PaperSize},
        rental::Rental,
        vehicle::Vehicle,
    },
    value::{Date, Money, RentalId, Timestamp},
};
use std::{borrow::Cow, collections::HashMap};

/// The objects of which an invoice is made.
pub(crate) struct Source<'a> {
    pub(crate) organization: &'a Organization,
    /// `None` when its record is lost.
    pub(crate) customer: Option<&'a Customer>,
    pub(crate) invoice: &'a Invoice,
    /// The rentals that it names, each with its vehicle.
    pub(crate) rentals: &'a HashMap<RentalId, (Rental, Option<Vehicle>)>,
    pub(crate) logo: Option<Logo>,
}

/// What the caller asks for; `None` for what the customer and the organization prefer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Preferences {
    pub(crate) language: Option<InvoiceLanguage>,
    pub(crate) paper: Option<PaperSize>,
}

/// An invoice as texts.
pub(crate) struct Document {
    /// The tag of its language.
    pub(super) language: &'static str,
    pub(super) paper: PaperSize,
    pub(super) logo: Option<Logo>,
    /// The word for invoice.
    pub(super) heading: &'static str,
    pub(super) number: String,
    pub(super) seller: String,
    pub(super) seller_lines: Vec<String>,
    /// Number, dates and status, each after its name.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) state: State,
    pub(super) buyer_heading: &'static str,
    pub(super) buyer: Vec<String>,
    /// The headings of the two columns.
    pub(super) columns: [String; 2],
    pub(super) rows: Vec<Row>,
    /// Sums below the lines; the last one is the total.
    pub(super) sums: Vec<(Cow<'static, str>, String)>,
    /// The heading and the lines; none when nothing is left to pay.
    pub(super) payment: Option<(&'static str, Vec<String>)>,
    page: &'static str,
    of: &'static str,
}

/// Whether an invoice is paid, for its colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Open,
    Paid,
    Void,
}

/// One line of an invoice.
pub(super) struct Row {
    pub(super) description: String,
    /// Vehicle, dates and nights of a rental.
    pub(super) detail: Option<String>,
    pub(super) amount: String,
}

impl Document {
    /// The document of an invoice.
    pub(crate) fn of(source: Source<'_>, preferred: Preferences) -> Self {
        let Source { organization, customer, invoice, rentals, logo } = source;
        let language = preferred.language.unwrap_or_else(|| language_for(customer, organization));
        let words = words::of(language);
        let money = |amount: Money| formats::money(amount, invoice.currency, language);
        let (state, status) = status(organization, invoice, language);
        let number = invoice.invoice_number.as_deref().unwrap_or_default().to_owned();
        let row = |line: &Line| {
            let rental = line.rental_id.and_then(|id| rentals.get(&id));
            Row {
                description: in_language(line.description.as_deref().unwrap_or_default(), line, words, language),
                detail: rental.map(|rental| detail(rental, line, language)),
                amount: formats::signed_number(line.amount.unwrap_or_default(), invoice.currency.digits(), language),
            }
        };
        let mut facts =
            vec![(words.number, number.clone()), (words.date, day(organization, invoice.created_at, language))];
        facts.extend(invoice.due_date.map(|due| (words.due, formats::date(due, language))));
        facts.push((words.status, status));
        let (total, credited) = (invoice.total.unwrap_or_default(), invoice.amount_credited);
        let left = total.minus(credited).unwrap_or_default();
        let is_due = state == State::Open && !left.is_zero();
        let instructions = organization.payment_instructions.as_deref().filter(|_| is_due || credited.is_zero());
        let instructions = instructions.filter(|_| state == State::Open);
        let mut sums = taxes(invoice, [invoice.total, invoice.tax_amount], words, language);
        sums.push((words.total.into(), money(total)));
        if !credited.is_zero() {
            let rest = if state == State::Open { words.amount_due } else { words.after_credits };
            sums.extend([(words.credited.into(), format!("-{}", money(credited))), (rest.into(), money(left))]);
        }
        Self {
            language: words.tag,
            paper: preferred.paper.unwrap_or_else(|| paper_for(organization)),
            logo,
            heading: words.invoice,
            seller: seller_name(organization, invoice),
            seller_lines: seller(organization, invoice, words.tax_id),
            facts,
            number,
            state,
            buyer_heading: words.bill_to,
            buyer: buyer(customer, invoice),
            columns: [words.description.to_owned(), format!("{} ({})", words.amount, invoice.currency)],
            rows: invoice.lines.iter().map(row).collect(),
            sums,
            payment: instructions.map(|text| (words.payment, lines(text))),
            page: words.page,
            of: words.of,
        }
    }

    /// The document of a credit note. `source.invoice` is the invoice that it credits.
    pub(crate) fn of_credit(note: &CreditNote, source: Source<'_>, preferred: Preferences) -> Self {
        let (organization, customer, invoice) = (source.organization, source.customer, source.invoice);
        let language = preferred.language.unwrap_or_else(|| language_for(customer, organization));
        let words = words::of(language);
        let whole = Self::of(source, preferred);
        let number = note.credit_note_number.as_deref().unwrap_or_default().to_owned();
        let row = |line: &CreditLine| {
            let billed = usize::try_from(line.line).ok().and_then(|at| invoice.lines.get(at));
            let text = line.description.as_deref().unwrap_or_default();
            let description =
                billed.map_or_else(|| text.to_owned(), |billed| in_language(text, billed, words, language));
            let amount = formats::number(line.amount.unwrap_or_default(), note.currency.digits(), language);
            Row { description, detail: None, amount }
        };
        let mut facts = vec![
            (words.credit_note_number, number.clone()),
            (words.date, day(organization, note.created_at, language)),
            (words.number, whole.number),
        ];
        let refund = note.refunded_at.map(|at| {
            let how = note.refund_method.iter().chain(&note.refund_reference).map(|text| format!(" · {text}"));
            format!("{}{}", day(organization, at, language), how.collect::<String>())
        });
        let state = if refund.is_some() { State::Paid } else { State::Open };
        facts.extend(refund.map(|text| (words.refunded_on, text)));
        let mut sums = taxes(invoice, [note.total, note.tax_amount], words, language);
        let total = formats::money(note.total.unwrap_or_default(), note.currency, language);
        sums.push((words.total_credit.into(), total));
        Self {
            heading: words.credit_note,
            number,
            facts,
            state,
            rows: note.lines.iter().map(row).collect(),
            sums,
            payment: note.reason.as_deref().map(|text| (words.reason, lines(text))),
            ..whole
        }
    }

    /// The text at the end of a page.
    pub(super) fn page_of(&self, page: usize, pages: usize) -> String {
        format!("{} {page} {} {pages}", self.page, self.of)
    }

    /// The title of the document.
    pub(super) fn title(&self) -> String {
        format!("{} {} - {}", self.heading, self.number, self.seller)
    }

    /// The name of a file with this document, in visible ASCII.
    pub(crate) fn file_name(&self, extension: &str) -> String {
        let fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = self.number.chars().filter(fine).collect();
        format!("{}.{extension}", if name.is_empty() { "invoice" } else { &name })
    }
}

/// The lines below "Bill to": the customer as the invoice was issued, or today's for an invoice of before.
fn buyer(customer: Option<&Customer>, invoice: &Invoice) -> Vec<String> {
    let (name, address, email, phone) = match (&invoice.buyer_name, customer) {
        (Some(name), _) => (name, &invoice.buyer_address, &invoice.buyer_email, &invoice.buyer_phone),
        (None, Some(customer)) => (&customer.full_name, &customer.address, &customer.email, &customer.phone),
        (None, None) => return Vec::new(),
    };
    let mut all = vec![name.to_string()];
    all.extend(address.as_deref().map(lines).unwrap_or_default());
    all.extend([email.as_deref(), phone.as_deref()].into_iter().flatten().map(str::to_owned));
    all
}

/// The rows above the total of a taxed invoice, or of a credit note about it: total and tax of the document.
fn taxes(
    invoice: &Invoice,
    [total, tax]: [Option<Money>; 2],
    words: &Words,
    language: InvoiceLanguage,
) -> Vec<(Cow<'static, str>, String)> {
    let money = |amount: Money| formats::money(amount, invoice.currency, language);
    let (Some(label), Some(tax)) = (tax_label(invoice, words, language), tax) else { return Vec::new() };
    let net = total.unwrap_or_default().minus(tax).unwrap_or_default();
    let added = invoice.tax_included != Some(true);
    let subtotal = added.then(|| (words.subtotal.into(), money(net)));
    subtotal.into_iter().chain([(label.into(), money(tax))]).collect()
}

/// The name and the rate of the tax: `VAT 19%`, with a word when prices contain it.
fn tax_label(invoice: &Invoice, words: &Words, language: InvoiceLanguage) -> Option<String> {
    let (name, rate) = invoice.tax_name.as_ref().zip(invoice.tax_rate)?;
    let mut rate = rate.to_string();
    if language != InvoiceLanguage::English {
        rate = rate.replace('.', ",");
    }
    let included = if invoice.tax_included == Some(true) { format!(" ({})", words.included) } else { String::new() };
    Some(format!("{name} {rate}%{included}"))
}

/// The fixed words with which the server begins the description of a line, in English and in the language of the document.
fn word_of(line: &Line, description: &str, words: &Words) -> Option<(&'static str, &'static str)> {
    let english = &words::ENGLISH;
    let Some((_, source)) = line.source() else {
        let fees = [(english.toll_fee, words.toll_fee), (english.violation_fee, words.violation_fee)];
        let is_fee = |fee: &str| description.strip_prefix(fee).is_some_and(|rest| rest.starts_with(": "));
        return fees.into_iter().find(|(fee, _)| is_fee(fee));
    };
    Some(match source {
        Billed::Rental(_) => (english.rental, words.rental),
        Billed::Toll(_) => (english.toll, words.toll),
        Billed::Violation(_) => (english.violation, words.violation),
    })
}

/// A description in the language of the document, as far as the server wrote it: its first word, dates, and the amount of a fee.
fn in_language(description: &str, line: &Line, words: &Words, language: InvoiceLanguage) -> String {
    let rest = word_of(line, description, words);
    let rest = rest.and_then(|(english, own)| Some((own, description.strip_prefix(english)?)));
    let Some((own, rest)) = rest.filter(|(_, rest)| rest.is_empty() || rest.starts_with([' ', ':'])) else {
        return description.to_owned();
    };
    let dates = rest.trim_start().split_once(" to ").and_then(|(start, end)| Date::parse(start).zip(Date::parse(end)));
    match dates.filter(|_| own == words.rental) {
        Some((start, end)) => {
            format!("{own} {} – {}", formats::date(start, language), formats::date(end, language))
        }
        None => format!("{own}{}", words_in_language(rest, line, language)),
    }
}

/// What follows the first word of a toll, a violation or a fee.
fn words_in_language(rest: &str, line: &Line, language: InvoiceLanguage) -> String {
    if line.source().is_some() {
        let word = |word: &str| Date::parse(word).map_or_else(|| word.to_owned(), |date| formats::date(date, language));
        return rest.split(' ').map(word).collect::<Vec<_>>().join(" ");
    }
    let fee = rest.rsplit_once(" × ").and_then(|(count, each)| {
        let digits = each.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = u32::try_from(digits).ok()?;
        Some(format!("{count} × {}", formats::number(Money::parse(each, digits).ok()?, digits, language)))
    });
    fee.unwrap_or_else(|| rest.to_owned())
}

/// The language that the customer chose if an invoice can be in it, otherwise that of the organization.
fn language_for(customer: Option<&Customer>, organization: &Organization) -> InvoiceLanguage {
    let customer = customer.filter(|customer| customer.language_chosen);
    let chosen = customer.and_then(|customer| customer.preferred_language.split('-').next());
    chosen.and_then(InvoiceLanguage::parse).unwrap_or(organization.invoice_language)
}

/// The organization's paper; by default that of its country, as far as its currency tells.
fn paper_for(organization: &Organization) -> PaperSize {
    organization.paper_size.unwrap_or_else(|| match organization.default_currency.to_string().as_str() {
        "USD" | "CAD" => PaperSize::Letter,
        _ => PaperSize::A4,
    })
}

fn day(organization: &Organization, time: Timestamp, language: InvoiceLanguage) -> String {
    formats::date(organization.time_zone.local(time).date(), language)
}

fn status(organization: &Organization, invoice: &Invoice, language: InvoiceLanguage) -> (State, String) {
    let words = words::of(language);
    let since = |what: &str, time: Option<Timestamp>| {
        time.map_or_else(|| what.to_owned(), |time| format!("{what} {}", day(organization, time, language)))
    };
    match invoice.status {
        Some(InvoiceStatus::Paid) => (State::Paid, since(words.paid_on, invoice.paid_at)),
        Some(InvoiceStatus::Void) => (State::Void, since(words.void_since, invoice.voided_at)),
        Some(InvoiceStatus::Open) | None => (State::Open, words.open.to_owned()),
    }
}

/// The seller as the invoice was issued, or today's for an invoice of before.
fn seller_name(organization: &Organization, invoice: &Invoice) -> String {
    let today = organization.legal_name.as_ref().unwrap_or(&organization.name);
    invoice.seller_name.as_ref().unwrap_or(today).to_string()
}

/// The lines below the seller's name.
fn seller(organization: &Organization, invoice: &Invoice, tax_id: &str) -> Vec<String> {
    let it = invoice;
    let (address, tax, email, phone) = match it.seller_name {
        Some(_) => (&it.seller_address, &it.seller_tax_id, &it.seller_email, &it.seller_phone),
        None => {
            let it = organization;
            (&it.address, &it.tax_id, &it.contact_email, &it.contact_phone)
        }
    };
    let mut all = address.as_deref().map(lines).unwrap_or_default();
    all.extend(tax.as_ref().map(|id| format!("{tax_id}: {id}")));
    all.extend(email.as_deref().map(str::to_owned));
    all.extend(phone.as_deref().map(str::to_owned));
    all
}

fn lines(text: &str) -> Vec<String> {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Vehicle, plate, dates and nights of a rental, such as `4 nights × 59.00`.
fn detail((rental, vehicle): &(Rental, Option<Vehicle>), line: &Line, language: InvoiceLanguage) -> String {
    let words = words::of(language);
    let mut parts = Vec::new();
    if let Some(issued) = &line.vehicle {
        parts.push(issued.to_string());
    } else if let Some(vehicle) = vehicle {
        parts.push(vehicle.name.to_string());
        parts.extend(vehicle.plate.as_deref().map(str::to_owned));
    }
    if let (Some(start), Some(end)) = (rental.start_date, rental.end_date) {
        parts.push(format!("{} – {}", formats::date(start, language), formats::date(end, language)));
    }
    if let Some(nights) = rental.rental_days.filter(|nights| *nights > 0) {
        let word = if nights == 1 { words.one_night } else { words.nights };
        let digits = rental.currency.digits();
        let each = share(line.billed(), nights, digits);
        let each = each.map(|each| format!(" × {}", formats::number(each, digits, language))).unwrap_or_default();
        parts.push(format!("{nights} {word}{each}"));
    }
    parts.join(" · ")
}

/// The amount for one of `count` nights; `None` if that has more decimals than the currency.
fn share(amount: Money, count: u32, digits: u32) -> Option<Money> {
    let places = usize::try_from(digits).ok()?;
    let plain = amount.with_digits(digits);
    let (_, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    if fraction.len() > places {
        return None;
    }
    let units: u128 = plain.replace('.', "").parse().ok()?;
    let each = units.is_multiple_of(u128::from(count)).then(|| units / u128::from(count))?;
    let text = format!("{each:0>width$}", width = places + 1);
    let (whole, fraction) = text.split_at_checked(text.len() - places)?;
    Money::parse(&if places == 0 { whole.to_owned() } else { format!("{whole}.{fraction}") }, digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_of_a_night_is_shown_when_it_is_exact() {
        let check = |(amount, nights, digits): (&str, u32, u32), expected: Option<&str>| {
            let each = share(Money::parse(amount, 4).unwrap(), nights, digits);
            assert_eq!(each.map(|each| each.with_digits(digits)).as_deref(), expected, "{amount} in {nights}");
        };
        check(("236", 4, 2), Some("59.00"));
        check(("0.04", 4, 2), Some("0.01"));
        check(("100", 3, 2), None);
        check(("9000", 3, 0), Some("3000"));
        check(("0", 2, 2), Some("0.00"));
    }
}
