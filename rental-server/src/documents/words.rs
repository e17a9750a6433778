//! The fixed words of an invoice, in four languages.

use rental_core::resources::organization::InvoiceLanguage;

/// The fixed words of one language.
pub(super) struct Words {
    /// The tag of the language, for `lang` in HTML and PDF.
    pub(super) tag: &'static str,
    pub(super) invoice: &'static str,
    pub(super) number: &'static str,
    pub(super) date: &'static str,
    pub(super) status: &'static str,
    pub(super) open: &'static str,
    /// Before the date.
    pub(super) paid_on: &'static str,
    /// Before the date.
    pub(super) void_since: &'static str,
    pub(super) bill_to: &'static str,
    pub(super) tax_id: &'static str,
    pub(super) description: &'static str,
    pub(super) amount: &'static str,
    pub(super) total: &'static str,
    pub(super) payment: &'static str,
    pub(super) one_night: &'static str,
    pub(super) nights: &'static str,
    pub(super) page: &'static str,
    /// Between the number of a page and the number of pages.
    pub(super) of: &'static str,
}

const ENGLISH: Words = Words {
    tag: "en",
    invoice: "Invoice",
    number: "Invoice number",
    date: "Date",
    status: "Status",
    open: "Open",
    paid_on: "Paid on",
    void_since: "Void since",
    bill_to: "Bill to",
    tax_id: "Tax ID",
    description: "Description",
    amount: "Amount",
    total: "Total",
    payment: "Payment",
    one_night: "night",
    nights: "nights",
    page: "Page",
    of: "of",
};

const SPANISH: Words = Words {
    tag: "es",
    invoice: "Factura",
    number: "Número de factura",
    date: "Fecha",
    status: "Estado",
    open: "Pendiente",
    paid_on: "Pagada el",
    void_since: "Anulada el",
    bill_to: "Facturar a",
    tax_id: "NIF",
    description: "Descripción",
    amount: "Importe",
    total: "Total",
    payment: "Forma de pago",
    one_night: "noche",
    nights: "noches",
    page: "Página",
    of: "de",
};

const FRENCH: Words = Words {
    tag: "fr",
    invoice: "Facture",
    number: "Numéro de facture",
    date: "Date",
    status: "Statut",
    open: "À payer",
    paid_on: "Payée le",
    void_since: "Annulée le",
    bill_to: "Facturé à",
    tax_id: "Numéro fiscal",
    description: "Description",
    amount: "Montant",
    total: "Total",
    payment: "Paiement",
    one_night: "nuit",
    nights: "nuits",
    page: "Page",
    of: "sur",
};

const GERMAN: Words = Words {
    tag: "de",
    invoice: "Rechnung",
    number: "Rechnungsnummer",
    date: "Datum",
    status: "Status",
    open: "Offen",
    paid_on: "Bezahlt am",
    void_since: "Storniert am",
    bill_to: "Rechnung an",
    tax_id: "Steuernummer",
    description: "Beschreibung",
    amount: "Betrag",
    total: "Gesamtbetrag",
    payment: "Zahlung",
    one_night: "Nacht",
    nights: "Nächte",
    page: "Seite",
    of: "von",
};

/// The fixed words of a language.
pub(super) const fn of(language: InvoiceLanguage) -> &'static Words {
    match language {
        InvoiceLanguage::English => &ENGLISH,
        InvoiceLanguage::Spanish => &SPANISH,
        InvoiceLanguage::French => &FRENCH,
        InvoiceLanguage::German => &GERMAN,
    }
}
