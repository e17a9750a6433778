//! The command of rental-cli for an operation.
//!
//! The commands of most resources follow from the description of the resource, as those of rental-cli do. The others are a
//! table. A test runs each one (`tests/it/documents/reference_page.rs`).

use super::{
    book::{Chapter, Operation},
    markup::object,
};
use serde_json::Value;

/// Commands whose words do not follow from the path. `{name}` is a parameter of the path or a field of the example body. An
/// empty command is one that rental-cli does not have: it sends the request as it is.
const COMMANDS: &[(&str, &str)] = &[
    ("getMe", "me"),
    ("listEvents", ""),
    ("getEvent", ""),
    ("createVehicleCalendarFeed", "vehicles calendar-feed {id}"),
    ("pollCalendarFeed", "calendar-feeds poll {id}"),
    ("deleteCalendarFeed", "calendar-feeds delete {id}"),
    ("updateToll", "tolls attach {id} --customer {customer_id}"),
    ("updateViolation", "violations attach {id} --customer {customer_id}"),
    ("putOrganizationLogo", "organizations logo {organization} organizations.png"),
    ("deleteOrganizationLogo", "organizations logo {organization} --remove"),
    ("deleteOrganization", "organizations delete {id}"),
    ("rotateApiKey", "api-keys rotate {id}"),
    ("revokeApiKey", "api-keys revoke {id}"),
    ("deleteWebhookEndpoint", "webhook-endpoints delete {id}"),
    ("enableWebhookEndpoint", "webhook-endpoints enable {id}"),
    ("disableWebhookEndpoint", "webhook-endpoints disable {id}"),
    ("rotateWebhookSecret", "webhook-endpoints rotate-secret {id}"),
    ("testWebhookEndpoint", "webhook-endpoints test {id}"),
    ("recoverEvents", "events recover --endpoint {id} --since {since}"),
    ("enableWebhookEndpoints", "webhook-endpoints enable --all-disabled-since {disabled_since} --dry-run"),
    ("listAuditEntries", "audit list"),
    ("getAuditEntry", "audit get {id}"),
    ("listEventsOfOrganization", "events list --organization {organization}"),
    ("getEventOfAnyOrganization", "events get {id}"),
    ("resendEvent", "events resend {id}"),
    ("eraseCustomer", "customers erase {id} --organization 0190d0f2-7c3a-7cc0-8000-000000000000"),
    ("getErasure", "customers erasure {id}"),
    ("getVehicleAssignments", "vehicles assignments {id}"),
    ("putVehicleAssignments", "vehicles assign {id} --assignment plate=KAA1042 --assignment toll_tag=00412345678"),
    (
        "recordInvoice",
        "invoices create --organization {organization} --customer {customer_id} --line 'Extra cleaning=25'",
    ),
    ("listInvoicesOfOrganization", ""),
    ("listCreditNotesOfOrganization", ""),
    (
        "recordCreditNote",
        "credit-notes create --organization {organization} --invoice {invoice_id} --reason {reason} --line 0=25",
    ),
    ("recordToll", ""),
    ("recordViolation", ""),
    ("payInvoice", "invoices pay {id} --paid-at {paid_at}"),
    ("voidInvoice", "invoices void {id}"),
    ("printInvoice", "invoices print {id} --to invoice.html"),
    ("getInvoicePdf", "invoices pdf {id} --to invoice.pdf"),
    ("listInvoiceDrafts", "invoices draft-all --organization {organization} --dry-run"),
    ("createInvoiceOfRental", "invoices create --organization {organization} --rental {rental_id} --with-tolls"),
    ("creditInvoice", "invoices credit {id} --line 0=10 --reason {reason}"),
    ("rebillCreditNote", "credit-notes rebill {id}"),
    ("refundCreditNote", "credit-notes refund {id} --method {refund_method} --reference {refund_reference}"),
    ("printCreditNote", "credit-notes print {id} --to credit-note.html"),
    ("getCreditNotePdf", "credit-notes pdf {id} --to credit-note.pdf"),
    ("importTolls", "tolls import --organization {organization} tolls.csv"),
    ("suggestCustomersOfTolls", "tolls suggest --organization {organization}"),
    ("attachTolls", "tolls suggest --organization {organization} --attach"),
    ("reviewTolls", "tolls review --organization {organization}"),
    ("releaseToll", "tolls release {id}"),
    ("importViolations", "violations import --organization {organization} violations.csv"),
    ("suggestCustomersOfViolations", "violations suggest --organization {organization}"),
    ("attachViolations", "violations suggest --organization {organization} --attach"),
    ("reviewViolations", "violations review --organization {organization}"),
    ("releaseViolation", "violations release {id}"),
    ("exportOrganization", "export --organization {organization} --to organization.jsonl"),
    ("importOrganization", "import --organization {organization} organization.jsonl"),
    ("getMasterKey", "master-key get"),
    ("rotateMasterKey", "master-key rotate"),
    ("getBackup", "store backup --to rental.backup"),
    ("rotateOperator", "operators rotate {id}"),
    ("revokeOperator", "operators revoke {id}"),
];

/// The command; `None` for paths that rental-cli has no access to.
pub(super) fn command(chapter: &Chapter<'_>, operation: &Operation<'_>) -> Option<String> {
    let known = COMMANDS.iter().find(|(id, _)| *id == operation.id()).map(|(_, command)| *command);
    let command = match known {
        Some("") => None,
        Some(template) => Some(filled(template, operation)),
        None => generic(chapter, operation),
    };
    command.or_else(|| raw(operation)).map(|command| format!("rental-cli {command}"))
}

/// `list`, `get`, `create` or `update` of a resource.
fn generic(chapter: &Chapter<'_>, operation: &Operation<'_>) -> Option<String> {
    let plural = chapter.spec?.plural;
    let group = plural.replace('_', "-");
    let of_all = operation.path.ends_with(&format!("/{plural}"));
    let of_one = operation.path.ends_with(&format!("/{plural}/{{id}}"));
    let verb = match operation.method.as_str() {
        "GET" if of_all => "list",
        "GET" if of_one => "get {id}",
        "POST" if of_all => "create",
        "PATCH" if of_one => "update {id}",
        _ => return None,
    };
    let organization = if operation.path.contains("{organization}") { " --organization {organization}" } else { "" };
    let body = operation.body_example();
    let flags = body.iter().flat_map(object).flat_map(|(name, value)| {
        let values = value.as_array().map_or_else(|| vec![value.clone()], Clone::clone);
        values.into_iter().map(move |value| format!(" --{} {}", name.replace('_', "-"), quoted(&plain(&value))))
    });
    let command = filled(&format!("{group} {verb}{organization}"), operation);
    Some(command + &flags.collect::<String>())
}

/// The request as it is.
fn raw(operation: &Operation<'_>) -> Option<String> {
    if !operation.path.starts_with("/v1/") && !operation.path.starts_with("/admin/v1/") {
        return None;
    }
    let path = operation.filled_path() + &operation.required_query();
    let data = operation.body_example().map(|body| format!(" --data {}", quoted(&body.to_string())));
    Some(format!("api {} {}{}", operation.method, quoted(&path), data.unwrap_or_default()))
}

/// The template with values in the place of `{name}`.
fn filled(template: &str, operation: &Operation<'_>) -> String {
    let body = operation.body_example().unwrap_or(Value::Null);
    let fields = object(&body).map(|(name, value)| (name.as_str(), plain(value)));
    let parameters = super::markup::array(&operation.value["parameters"]).iter();
    let ids = parameters.map(|one| (super::markup::text(&one["name"]), plain(&one["example"])));
    ids.chain(fields)
        .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), &quoted(&value)))
}

/// A value as a flag takes it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@+,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
