//! An invoice as a page that prints well and needs nothing from elsewhere.

use rental_core::{
    resources::{
        customer::Customer,
        invoice::{Invoice, InvoiceStatus, Line},
        organization::Organization,
    },
    value::{Money, Timestamp},
};

/// What the page may do: nothing but show its own style.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
@page{size:auto;margin:18mm}\
body{font:11pt/1.45 system-ui,sans-serif;color:#111;max-width:46rem;margin:2rem auto;padding:0 1rem}\
header{display:flex;justify-content:space-between;gap:2rem;border-bottom:2px solid #111;padding-bottom:.75rem}\
h1{font-size:1.5rem;margin:0}dl{display:grid;grid-template-columns:auto auto;gap:.1rem 1rem;margin:0}\
dt{color:#555}dd{margin:0;text-align:right}address{font-style:normal;margin:1.5rem 0}\
table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.4rem .5rem;border-bottom:1px solid #ccc;vertical-align:top}\
th:last-child,td:last-child{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
thead{display:table-header-group}tr{break-inside:avoid}tfoot td{font-weight:700;border-bottom:none;border-top:2px solid #111}\
.void{color:#a00;font-weight:700}.paid{color:#060;font-weight:700}td{overflow-wrap:anywhere}\
@media print{body{margin:0;max-width:none;padding:0}}";

/// The whole page.
pub(crate) fn page(organization: &Organization, customer: &Customer, invoice: &Invoice) -> String {
    let number = invoice.invoice_number.as_deref().unwrap_or_default();
    let digits = invoice.currency.digits();
    let amount = |money: Money| format!("{} {}", money.with_digits(digits), invoice.currency);
    let day = |time: Timestamp| organization.time_zone.local(time).date().to_string();
    let status = match (invoice.status, invoice.paid_at, invoice.voided_at) {
        (Some(InvoiceStatus::Paid), Some(time), _) => format!("<span class=\"paid\">Paid on {}</span>", day(time)),
        (Some(InvoiceStatus::Void), _, Some(time)) => format!("<span class=\"void\">Void since {}</span>", day(time)),
        _ => "Open".to_owned(),
    };
    let lines: String = invoice.lines.iter().map(|line| row(line, &amount)).collect();
    let contact = [Some(&*customer.full_name), customer.email.as_deref(), customer.phone.as_deref()];
    let address: Vec<String> = contact.into_iter().flatten().map(escape).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{number} {organization}</title><style>{STYLE}</style></head>\n<body>\n\
         <header><h1>{organization}</h1><dl><dt>Invoice</dt><dd>{number}</dd><dt>Date</dt><dd>{date}</dd>\
         <dt>Status</dt><dd>{status}</dd></dl></header>\n\
         <address>{address}</address>\n\
         <table><thead><tr><th scope=\"col\">Description</th><th scope=\"col\">Amount</th></tr></thead>\n<tbody>\n{lines}</tbody>\n\
         <tfoot><tr><td>Total</td><td>{total}</td></tr></tfoot></table>\n</body></html>\n",
        number = escape(number),
        organization = escape(&organization.name),
        date = day(invoice.created_at),
        address = address.join("<br>"),
        total = amount(invoice.total.unwrap_or_default()),
    )
}

fn row(line: &Line, amount: &dyn Fn(Money) -> String) -> String {
    let text = escape(line.description.as_deref().unwrap_or_default());
    format!("<tr><td>{text}</td><td>{}</td></tr>\n", amount(line.amount.unwrap_or_default()))
}

/// Text as HTML.
fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut html, c| {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(c),
        }
        html
    })
}
