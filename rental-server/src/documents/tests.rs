//! Tests of documents: the text that `pdftotext` (poppler-utils) finds in them, and their pages.

use super::{
    html,
    logo::{Logo, MOST_BYTES, MOST_PIXELS},
    model::{Document, Preferences, Source},
    pdf,
};
use bytes::Bytes;
use proptest::prelude::*;
use rental_core::{
    resources::{
        credit_note::CreditNote,
        customer::Customer,
        invoice::Invoice,
        organization::{InvoiceLanguage, Organization, PaperSize},
        rental::Rental,
        vehicle::Vehicle,
    },
    value::RentalId,
};
use serde_json::{Value, json};
use std::{collections::HashMap, io::Write, process::Command};

const ID: &str = "0190d0f2-7c3a-7cc0-8000-000000000001";
const TIME: &str = "2026-05-05T09:30:00.000Z";

fn organization(more: Value) -> Organization {
    let mut object = serde_json::to_value(Organization::system()).unwrap();
    let default = json!({
        "name": "Sunrise Rentals",
        "legal_name": "Sunrise Rentals LLC",
        "address": "1 Ocean Drive\nMiami Beach, FL 33139",
        "tax_id": "12-3456789",
        "contact_email": "billing@sunrise.example",
        "payment_instructions": "Bank: First Example Bank\nIBAN: DE02 1203 0000 0000 2020 51",
    });
    for members in [default, more] {
        object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    }
    serde_json::from_value(object).unwrap()
}

fn customer(name: &str, language: &str) -> Customer {
    let object = json!({
        "id": ID, "object": "customer", "full_name": name, "email": "ada@example.com", "phone": "+14155550123",
        "preferred_language": language, "language_chosen": true, "source_channel": null, "notes": null, "erased_at": null, "created_at": TIME, "updated_at": TIME,
    });
    serde_json::from_value(object).unwrap()
}

fn line(description: &str, amount: &str) -> Value {
    let amount: Value = serde_json::from_str(amount).unwrap();
    json!({"description": description, "amount": amount, "rental_id": null, "toll_id": null, "violation_id": null})
}

fn invoice(lines: &[Value], total: &str, more: Value) -> Invoice {
    let total: Value = serde_json::from_str(total).unwrap();
    let mut object = json!({
        "id": ID, "object": "invoice", "invoice_number": "INV-000042", "customer_id": ID, "rental_id": null, "lines": lines,
        "total": total, "currency": "USD", "status": "open", "paid_at": null, "voided_at": null, "amount_credited": 0, "credit_note_ids": [], "created_at": TIME, "updated_at": TIME,
    });
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn rentals() -> HashMap<RentalId, (Rental, Option<Vehicle>)> {
    let rental = json!({
        "id": ID, "object": "rental", "booking_id": null, "customer_id": ID, "vehicle_id": ID, "start_date": "2026-05-01",
        "end_date": "2026-05-05", "rental_days": 4, "pickup_type": null, "delivery_location": null, "final_price": 236,
        "currency": "USD", "status": "COMPLETED", "damage_at_return": false, "activated_at": null, "completed_at": null,
        "vehicle_changed_at": null, "earlier_vehicles": [],
        "time_zone": "America/New_York", "amount_billed": 236, "invoice_ids": [ID], "created_at": TIME, "updated_at": TIME,
    });
    let vehicle = json!({
        "id": ID, "object": "vehicle", "name": "Toyota Corolla", "make": null, "model": null, "year": null, "color": null,
        "plate": "ABC123", "plate_state": null, "transponder_number": null, "turo_listing_id": null, "daily_rate": null,
        "deposit_amount": null, "currency": "USD", "status": "available", "organization_id": ID, "created_at": TIME, "updated_at": TIME,
    });
    let rental: Rental = serde_json::from_value(rental).unwrap();
    HashMap::from([(rental.id, (rental, Some(serde_json::from_value(vehicle).unwrap())))])
}

fn document(organization: &Organization, customer: &Customer, invoice: &Invoice, preferred: Preferences) -> Document {
    Document::of(Source { organization, customer: Some(customer), invoice, rentals: &rentals(), logo: None }, preferred)
}

/// The document of an invoice with one line, for a buyer with this name.
fn simple(name: &str, description: &str) -> Document {
    let invoice = invoice(&[line(description, "1234.5")], "1234.5", json!({}));
    document(&organization(json!({})), &customer(name, "en"), &invoice, Preferences::default())
}

/// What a program of poppler-utils says about a PDF.
fn poppler(program: &str, arguments: &[&str], file: &[u8]) -> String {
    let mut kept = tempfile::NamedTempFile::new().unwrap();
    kept.write_all(file).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg(kept.path());
    if program == "pdftotext" {
        command.arg("-");
    }
    let output = command.output().unwrap_or_else(|error| panic!("{program} (package poppler-utils): {error}"));
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a PDF, with plain spaces, without marks of direction.
fn text_of(document: &Document) -> String {
    let file = pdf::file(document).unwrap().bytes;
    let text = poppler("pdftotext", &["-layout"], &file);
    let directions =
        ['\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}'];
    text.replace(['\u{a0}', '\u{202f}'], " ").replace(directions, "")
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn names_in_every_script_are_extracted_as_they_are_written() {
    for name in [
        "Ada Lovelace",
        "Ελένη Παπαδοπούλου",
        "Александра Иванова",
        "محمد عبد الله الأحمد",
        "סבטלנה כהן",
        "王小明",
        "山田太郎 ヤマダ",
        "김민준",
        "สมชาย ใจดี",
        "राम प्रसाद शर्मा",
        "श्रीमती क्षितिज त्रिवेदी",
        "მარიამ ბერიძე",
        "Արամ Խաչատրյան",
        "கார்த்திக் சுப்பிரமணியன்",
        "অনির্বাণ চট্টোপাধ্যায়",
        "જ્યોતિ પટેલ",
        "ਗੁਰਪ੍ਰੀਤ ਸਿੰਘ",
        "ಕೃಷ್ಣಮೂರ್ತಿ",
        "സ്മിത കൃഷ്ണൻ",
        "శ్రీనివాస్ రెడ్డి",
        "චන්ද්‍රිකා",
        "សុខ ស្រីមុំ",
        "ສົມສັກ",
        "မောင်မောင်",
        "ተስፋዬ ገብረ",
        "Zoë Łukaszewska-O'Neil",
    ] {
        has(&text_of(&simple(name, name)), &[name, "INV-000042", "$1,234.50"]);
    }
}

#[test]
fn dates_of_tolls_and_violations_and_amounts_of_fees_are_in_the_language_of_the_document() {
    let mut toll = line("Toll MTAB&T RKB 2026-06-02 13:14 ABC1234", "7");
    toll["toll_id"] = json!(ID);
    let mut violation = line("Violation 4631234567 SPEED 2026-06-03", "50");
    violation["violation_id"] = json!(ID);
    let lines = [toll, violation, line("Toll fee: 3 × 1.50", "4.5"), line("Parking on 2026-06-04", "5")];
    let invoice = invoice(&lines, "66.5", json!({}));
    for (language, expected) in [
        ("en", ["Toll MTAB&T RKB June 2, 2026 13:14 ABC1234", "SPEED June 3, 2026", "Toll fee: 3 × 1.50"]),
        ("de", ["Maut MTAB&T RKB 2. Juni 2026 13:14 ABC1234", "SPEED 3. Juni 2026", "Mautgebühr: 3 × 1,50"]),
        ("fr", ["MTAB&T RKB 2 juin 2026 13:14 ABC1234", "SPEED 3 juin 2026", "Frais de péage: 3 × 1,50"]),
    ] {
        let document = document(&organization(json!({})), &customer("Ada", language), &invoice, Preferences::default());
        let text = text_of(&document);
        has(&text, &expected);
        has(&text, &["Parking on 2026-06-04"]);
    }
}

#[test]
fn a_credit_note_has_a_subtotal_when_its_tax_is_added() {
    for (included, total, subtotal) in [(false, "119", true), (true, "100", false)] {
        let tax = json!({"tax_name": "VAT", "tax_rate": 19, "tax_included": included, "tax_amount": 19});
        let invoice = invoice(&[line("Extra cleaning", "100")], total, tax);
        let note: CreditNote = serde_json::from_value(json!({
            "id": ID, "object": "credit_note", "credit_note_number": "CN-000001", "invoice_id": ID, "rebill": false,
            "lines": [{"line": 0, "description": "Extra cleaning", "amount": 50}], "total": if included { 50.0 } else { 59.5 },
            "tax_amount": if included { 7.98 } else { 9.5 }, "currency": "USD", "created_at": TIME, "updated_at": TIME,
        }))
        .unwrap();
        let (organization, customer, rentals) = (organization(json!({})), customer("Ada", "en"), rentals());
        let source = Source {
            organization: &organization,
            customer: Some(&customer),
            invoice: &invoice,
            rentals: &rentals,
            logo: None,
        };
        let document = Document::of_credit(&note, source, Preferences::default());
        for text in [text_of(&document), html::page(&document)] {
            let rows: &[&str] =
                if included { &["$7.98", "$50.00"] } else { &["Subtotal", "$50.00", "$9.50", "$59.50"] };
            has(&text, rows);
            assert_eq!(text.contains("Subtotal"), subtotal, "{text}");
        }
    }
}

#[test]
fn scripts_can_be_mixed_in_one_line() {
    let text = text_of(&simple("Ada 王小明 Иванова", "Toll E-ZPass 東京 and Αθήνα, 2026"));
    has(&text, &["Ada 王小明 Иванова", "Toll E-ZPass 東京 and Αθήνα, 2026"]);
}

#[test]
fn characters_that_no_font_has_harm_nothing_and_are_told() {
    let document = simple("Ada 🚗 Lovelace", "ᚠᚢ rune");
    has(&text_of(&document), &["Ada", "Lovelace", "rune", "$1,234.50"]);
    assert_eq!(pdf::file(&document).unwrap().not_shown, ['🚗', 'ᚠ', 'ᚢ'].into());
    // Joiners and marks of direction are not to be seen.
    let document = simple("राम\u{200d} \u{200e}محمد\u{200c} é", "e\u{301} 王\u{fe0f}");
    assert!(pdf::file(&document).unwrap().not_shown.is_empty());
}

#[test]
fn two_hundred_lines_go_over_pages_with_numbers_and_headings() {
    let lines: Vec<Value> = (1..=200).map(|n| line(&format!("Toll number {n} of the month"), "1.5")).collect();
    for paper in [PaperSize::A4, PaperSize::Letter] {
        let preferred = Preferences { paper: Some(paper), ..Preferences::default() };
        let invoice = invoice(&lines, "300", json!({}));
        let document = document(&organization(json!({})), &customer("Ada", "en"), &invoice, preferred);
        let text = text_of(&document);
        for n in 1..=200 {
            has(&text, &[&format!("Toll number {n} of the month")]);
        }
        let pages: Vec<&str> = text.trim_end_matches('\u{c}').split('\u{c}').collect();
        assert!((4..12).contains(&pages.len()), "{}", pages.len());
        for (at, page) in pages.iter().enumerate() {
            has(page, &[&format!("Page {} of {}", at + 1, pages.len()), "Description", "Amount (USD)"]);
        }
        has(pages[pages.len() - 1], &["Total", "$300.00", "IBAN: DE02 1203 0000 0000 2020 51"]);
    }
}

#[test]
fn both_papers_have_their_size() {
    for (paper, size) in [(PaperSize::A4, "595.28 x 841.89"), (PaperSize::Letter, "612 x 792")] {
        let invoice = invoice(&[line("Cleaning", "25")], "25", json!({}));
        let preferred = Preferences { paper: Some(paper), ..Preferences::default() };
        let document = document(&organization(json!({})), &customer("Ada", "en"), &invoice, preferred);
        has(&poppler("pdfinfo", &[], &pdf::file(&document).unwrap().bytes), &[size]);
        let css = if paper == PaperSize::A4 { "@page{size:A4;" } else { "@page{size:letter;" };
        has(&html::page(&document), &[css]);
    }
}

#[test]
fn paper_follows_the_organization_and_without_a_choice_its_currency() {
    let invoice = invoice(&[line("Cleaning", "25")], "25", json!({}));
    let paper = |more| document(&organization(more), &customer("Ada", "en"), &invoice, Preferences::default()).paper;
    assert_eq!(paper(json!({})), PaperSize::Letter);
    assert_eq!(paper(json!({"default_currency": "EUR"})), PaperSize::A4);
    assert_eq!(paper(json!({"paper_size": "a4"})), PaperSize::A4);
}

#[test]
fn fixed_words_dates_and_amounts_are_in_the_customers_language() {
    let line = json!({"description": "Rental", "amount": 236, "rental_id": ID, "toll_id": null, "violation_id": null});
    let invoice = invoice(&[line], "236", json!({}));
    let check = |(language, of_organization): (&str, &str), words: &[&str]| {
        let organization = organization(json!({"invoice_language": of_organization}));
        let document = document(&organization, &customer("Ada", language), &invoice, Preferences::default());
        has(&text_of(&document), words);
        has(&html::page(&document).replace(['\u{a0}', '\u{202f}'], " "), words);
    };
    let english = [
        "Invoice",
        "May 5, 2026",
        "Bill to",
        "Total",
        "$236.00",
        "4 nights × 59.00",
        "Toyota Corolla · ABC123",
        "Open",
    ];
    check(("en-GB", "de"), &english);
    check(
        ("es-MX", "en"),
        &["Factura", "5 de mayo de 2026", "Importe (USD)", "236,00 USD", "4 noches × 59,00", "Pendiente"],
    );
    check(("fr", "en"), &["Facture", "5 mai 2026", "Montant (USD)", "236,00 USD", "4 nuits × 59,00", "À payer"]);
    check(("de-AT", "en"), &["Rechnung", "5. Mai 2026", "Gesamtbetrag", "236,00 USD", "4 Nächte × 59,00", "Offen"]);
    check(("ja", "de"), &["Rechnung", "5. Mai 2026"]);
    let by_default = Customer { language_chosen: false, ..customer("Ada", "en") };
    let document_of_default =
        document(&organization(json!({"invoice_language": "de"})), &by_default, &invoice, Preferences::default());
    has(&text_of(&document_of_default), &["Rechnung", "5. Mai 2026"]);
    let asked = Preferences { language: Some(InvoiceLanguage::French), ..Preferences::default() };
    let document = document(&organization(json!({})), &customer("Ada", "es"), &invoice, asked);
    has(&text_of(&document), &["Facture", "5 mai 2026"]);
}

#[test]
fn the_seller_is_on_both_documents_and_a_closed_invoice_asks_for_no_payment() {
    let seller = [
        "Sunrise Rentals LLC",
        "1 Ocean Drive",
        "Miami Beach, FL 33139",
        "Tax ID: 12-3456789",
        "billing@sunrise.example",
    ];
    let check = |more: Value, status: &str, pays: bool| {
        let invoice = invoice(&[line("Cleaning", "25")], "25", more);
        let document = document(&organization(json!({})), &customer("Ada", "en"), &invoice, Preferences::default());
        for text in [text_of(&document), html::page(&document)] {
            has(&text, &seller);
            has(&text, &[status]);
            assert_eq!(text.contains("IBAN: DE02"), pays, "{text}");
        }
    };
    check(json!({}), "Open", true);
    check(json!({"status": "paid", "paid_at": TIME}), "Paid on May 5, 2026", false);
    check(json!({"status": "void", "voided_at": TIME}), "Void since May 5, 2026", false);
}

#[test]
fn the_same_invoice_gives_the_same_bytes() {
    let file = || pdf::file(&simple("Ada 王小明", "Cleaning")).unwrap().bytes;
    assert_eq!(file(), file());
}

/// Characters of many kinds: scripts, marks, directions, spaces, what no font has.
fn any_text() -> impl Strategy<Value = String> {
    let hard =
        "[ \u{a0}\u{2003}\u{200f}\u{202e}\u{2066}\u{2029}\u{feff}\u{301}\u{64b}אبلاء王김ก็😀\u{10ffff}Wi/.-]{0,255}";
    prop_oneof![hard, "\\PC{0,255}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_text_makes_a_file(name in any_text(), description in any_text()) {
        let document = simple(&name, &description);
        prop_assert!(pdf::file(&document).unwrap().bytes.starts_with(b"%PDF-"));
        prop_assert!(html::page(&document).ends_with("</html>\n"));
    }
}

#[test]
fn a_text_of_many_scripts_is_broken_into_lines_that_can_all_be_found() {
    let name = "محمد عبد الله / 王小明 / 김민준 / Ελένη Παπαδοπούλου / สมชาย ใจดี / סבטלנה";
    let text = text_of(&simple(
        name,
        "山田太郎 ヤマダ 東京都千代田区の長い説明文がここにあり、行の幅を超えて折り返される必要があります。",
    ));
    has(&text, &["王小明", "김민준", "Ελένη", "Παπαδοπούλου", "สมชาย", "סבטלנה", "山田太郎", "محمد", "要があります。"]);
}

#[test]
fn the_longest_texts_stay_on_the_pages() {
    let lines: Vec<Value> = (0..200).map(|_| line(&"W".repeat(255), "99999999999.9999")).collect();
    let long = organization(json!({
        "legal_name": "W".repeat(255),
        "address": vec!["W".repeat(24); 20].join("\n"),
        "payment_instructions": vec!["王".repeat(49); 20].join("\n"),
    }));
    let invoice = invoice(&lines, "99999999999.9999", json!({}));
    let document = document(&long, &customer(&"W".repeat(255), "en"), &invoice, Preferences::default());
    let boxes = poppler("pdftotext", &["-bbox"], &pdf::file(&document).unwrap().bytes);
    let mut words = 0;
    for word in boxes.lines().filter(|line| line.contains("<word ")) {
        let at = |name: &str| {
            word.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse::<f32>().unwrap()
        };
        assert!(at("xMin") >= 50.0 && at("xMax") <= 612.0 - 50.0, "{word}");
        assert!(at("yMin") >= 30.0 && at("yMax") <= 792.0 - 30.0, "{word}");
        words += 1;
    }
    assert!(words > 600, "{words}");
}

/// A PNG of one colour.
fn png(width: u32, height: u32, colour: png::ColorType) -> Bytes {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let pixels = vec![127; (width * height) as usize * colour.samples()];
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    file.into()
}

#[test]
fn logos_are_png_images_of_a_bounded_size() {
    for colour in [png::ColorType::Grayscale, png::ColorType::GrayscaleAlpha, png::ColorType::Rgb, png::ColorType::Rgba]
    {
        let logo = Logo::decode(png(30, 20, colour)).unwrap();
        assert_eq!((logo.size(), logo.pixels.len()), ((30, 20), 30 * 20 * 4));
    }
    let refused = |png: Bytes, rule: &str| {
        let error = Logo::decode(png).map(|logo| logo.size()).unwrap_err();
        assert!(error.contains(rule), "{error}");
    };
    refused(png(MOST_PIXELS + 1, 1, png::ColorType::Rgb), "1200 pixels");
    refused(png(1, MOST_PIXELS + 1, png::ColorType::Rgb), "1200 pixels");
    refused(vec![0; MOST_BYTES + 1].into(), "256 KiB");
    refused(Bytes::from_static(b"GIF89a"), "must be a PNG image");
    refused(Bytes::new(), "must be a PNG image");
    let whole = png(100, 100, png::ColorType::Rgb);
    refused(whole.slice(..whole.len() / 2), "must be a PNG image");
}

#[test]
fn a_logo_is_drawn_on_both_documents() {
    let invoice = invoice(&[line("Cleaning", "25")], "25", json!({}));
    let (organization, customer) = (organization(json!({})), customer("Ada", "en"));
    let logo = Some(Logo::decode(png(300, 100, png::ColorType::Rgb)).unwrap());
    let source =
        Source { organization: &organization, customer: Some(&customer), invoice: &invoice, rentals: &rentals(), logo };
    let document = Document::of(source, Preferences::default());
    has(&text_of(&document), &["Sunrise Rentals LLC"]);
    has(&poppler("pdfimages", &["-list"], &pdf::file(&document).unwrap().bytes), &["300   100"]);
    has(&html::page(&document), &["src=\"data:image/png;base64,iVBOR"]);
}
