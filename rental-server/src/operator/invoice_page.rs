//! An invoice as a page that prints well and loads nothing.

use maud::{PreEscaped, html};
use rental_core::{
    resources::{
        customer::Customer,
        invoice::{Invoice, InvoiceStatus},
        organization::Organization,
    },
    value::{Money, Timestamp},
};

/// The page may use its own style and nothing else.
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
    let amount =
        |money: Option<Money>| format!("{} {}", money.unwrap_or_default().with_digits(digits), invoice.currency);
    let day = |time: Timestamp| organization.time_zone.local(time).date().to_string();
    let status = match (invoice.status, invoice.paid_at, invoice.voided_at) {
        (Some(InvoiceStatus::Paid), Some(time), _) => html! { span class="paid" { "Paid on " (day(time)) } },
        (Some(InvoiceStatus::Void), _, Some(time)) => html! { span class="void" { "Void since " (day(time)) } },
        _ => html! { "Open" },
    };
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8"; meta name="viewport" content="width=device-width";
                title { (number) " " (organization.name) } style { (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                "\n"
                header {
                    h1 { (organization.name) }
                    dl { dt { "Invoice" } dd { (number) } dt { "Date" } dd { (day(invoice.created_at)) } dt { "Status" } dd { (status) } }
                }
                "\n"
                address {
                    (customer.full_name)
                    @for contact in [customer.email.as_deref(), customer.phone.as_deref()].into_iter().flatten() { br; (contact) }
                }
                "\n"
                table {
                    thead { tr { th scope="col" { "Description" } th scope="col" { "Amount" } } } "\n"
                    tbody {
                        "\n"
                        @for line in &invoice.lines {
                            tr { td { (line.description.as_deref().unwrap_or_default()) } td { (amount(line.amount)) } } "\n"
                        }
                    }
                    "\n"
                    tfoot { tr { td { "Total" } td { (amount(invoice.total)) } } }
                }
                "\n"
            }
        }
        "\n"
    };
    // maud escapes everything else that has a meaning in HTML.
    page.into_string().replace('\'', "&#39;")
}
