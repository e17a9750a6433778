//! An invoice as a page that prints well and loads nothing.

use super::model::{Document, State};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{Markup, PreEscaped, html};
use rental_core::resources::organization::PaperSize;

/// The page may use its own style and the images inside it, and nothing else.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
body{font:10.5pt/1.45 system-ui,sans-serif;color:#111;max-width:46rem;margin:2rem auto;padding:0 1rem}\
header,.parties{display:flex;justify-content:space-between;gap:2rem}header{align-items:flex-start}\
header img{max-width:15rem;max-height:5rem}h1{font-size:1.6rem;margin:0}h2{font-size:.8rem;color:#555;font-weight:400;margin:0 0 .2rem}\
.seller{font-weight:700;font-size:1.15rem}.parties{margin:1.5rem 0;align-items:flex-start}address{font-style:normal;overflow-wrap:anywhere}\
dl{display:grid;grid-template-columns:auto auto;gap:.1rem 1rem;margin:0}dt{color:#555}dd{margin:0;text-align:right}\
table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.4rem .5rem;border-bottom:1px solid #ccc;vertical-align:top}\
th:last-child,td:last-child{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
thead{display:table-header-group}tr{break-inside:avoid}td{overflow-wrap:anywhere}small{color:#555}\
tfoot{display:table-row-group}tfoot td{border-bottom:none;text-align:right}tfoot tr:last-child td{font-weight:700;border-top:2px solid #111}\
.void{color:#a00;font-weight:700}.paid{color:#060;font-weight:700}.payment{margin-top:1.5rem;break-inside:avoid}\
@media print{body{margin:0;max-width:none;padding:0}}";

/// The whole page.
pub(crate) fn page(document: &Document) -> String {
    let size = match document.paper {
        PaperSize::A4 => "@page{size:A4;margin:18mm}",
        PaperSize::Letter => "@page{size:letter;margin:18mm}",
    };
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang=(document.language) {
            head {
                meta charset="utf-8"; meta name="viewport" content="width=device-width";
                title { (document.title()) } style { (PreEscaped(size)) (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                "\n"
                (heading(document)) "\n"
                div class="parties" {
                    address { h2 { (document.buyer_heading) } (lines(&document.buyer)) }
                    dl { @for (name, value) in &document.facts { dt { (name) } dd { (fact(document, name, value)) } } }
                }
                "\n"
                (table(document)) "\n"
                @if let Some((name, instructions)) = &document.payment {
                    section class="payment" { h2 { (name) } (lines(instructions)) } "\n"
                }
            }
        }
        "\n"
    };
    // maud escapes everything else that has a meaning in HTML.
    page.into_string().replace('\'', "&#39;")
}

/// The name of the document and who sends it.
fn heading(document: &Document) -> Markup {
    html! {
        header {
            div {
                @if let Some(logo) = &document.logo {
                    img alt="" width=(logo.width) height=(logo.height) style="height:auto;width:auto"
                        src={ "data:image/png;base64," (STANDARD.encode(&logo.png)) };
                }
                div class="seller" dir="auto" { (document.seller) }
                address { (lines(&document.seller_lines)) }
            }
            h1 { (document.heading) }
        }
    }
}

fn table(document: &Document) -> Markup {
    let [description, amount] = &document.columns;
    html! {
        table {
            thead { tr { th scope="col" { (description) } th scope="col" { (amount) } } } "\n"
            tbody {
                "\n"
                @for row in &document.rows {
                    tr {
                        td { span dir="auto" { (row.description) } @if let Some(detail) = &row.detail { br; small { (detail) } } }
                        td { (row.amount) }
                    }
                    "\n"
                }
            }
            "\n"
            tfoot { @for (name, sum) in &document.sums { tr { td { (name) } td { (sum) } } } }
        }
    }
}

/// Lines of text, each in its own direction.
fn lines(lines: &[String]) -> Markup {
    html! { @for line in lines { div dir="auto" { (line) } } }
}

/// A fact; the status has a colour.
fn fact(document: &Document, name: &str, value: &str) -> Markup {
    let class = match document.state {
        State::Paid => "paid",
        State::Void => "void",
        State::Open => "",
    };
    let is_status = document.facts.last().is_some_and(|(last, _)| *last == name);
    html! { @if is_status && !class.is_empty() { span class=(class) { (value) } } @else { (value) } }
}
