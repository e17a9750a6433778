//! What stored JSON tells about a customer, and its removal when the customer is erased. The fields are marked in the
//! descriptions ([`Personal`]).

mod mentions;

pub use mentions::mentions;

use crate::{
    resources::{event, spec_of},
    schema::{Kind, Personal, ResourceSpec},
    value::{CustomerId, Members},
};
use bytes::Bytes;
use serde::Deserialize;
use std::borrow::Cow;

/// What is rewritten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// The record of an object. Fields that the law requires stay.
    Record,
    /// A copy of an object, in an event, a stored response or the audit log.
    Copy,
}

/// A person to find in stored JSON.
#[derive(Clone, Copy, Debug)]
pub struct Person<'a> {
    /// The id of the customer.
    pub id: CustomerId,
    /// E-mail addresses and phone numbers, also former ones. They find objects that name no customer, such as leads of before.
    pub known_as: &'a [String],
}

impl Person<'_> {
    /// Whether the personal fields of this object are about the person.
    #[must_use]
    pub fn is_subject(&self, spec: &ResourceSpec, object: &Members) -> bool {
        let Some(field) = spec.person() else { return false };
        match id_in(object, field) {
            Some(id) => id == self.id,
            None => spec.fields.iter().any(|field| {
                let text = object.get(field.name).filter(|_| field.personal != Personal::No);
                text.is_some_and(|text| mentions(text, self.known_as))
            }),
        }
    }
}

fn id_in(object: &Members, field: &str) -> Option<CustomerId> {
    CustomerId::parse(&serde_json::from_str::<String>(object.get(field)?).ok()?)
}

/// Replaces the personal fields of an object.
///
/// # Errors
/// The members are not those of an object of this resource.
pub fn redact(spec: &ResourceSpec, object: &mut Members, form: Form) -> Result<(), String> {
    for field in spec.fields.iter().filter(|field| !object_lacks(field.personal, form)) {
        let (Personal::Erased(replacement) | Personal::Kept(replacement)) = field.personal else { continue };
        if object.is_null(field.name) {
            continue;
        }
        match field.kind {
            Kind::Lines | Kind::CreditLines => {
                object.each_of(field.name, |line| match line.is_null("description") {
                    true => Ok(()),
                    false => line.set("description", replacement),
                })?
            }
            _ => object.set(field.name, replacement)?,
        }
    }
    Ok(())
}

fn object_lacks(personal: Personal, form: Form) -> bool {
    matches!((personal, form), (Personal::No, _) | (Personal::Kept(_), Form::Record))
}

/// Replaces the personal fields of a copy of an object, or of the object in an event, if it is about `person`. Returns
/// whether it is.
///
/// # Errors
/// The JSON is not what this program writes.
pub fn redact_copy(copy: &mut Members, person: &Person<'_>) -> Result<bool, String> {
    let Some(spec) = spec_in(copy) else { return Ok(false) };
    if spec.tag == event::SPEC.tag {
        let mut data = Members::parse(copy.get("data").unwrap_or_default().as_bytes())?;
        let about = redact_copy(&mut data, person)?;
        if data.is_changed() {
            copy.set("data", data.json())?;
        }
        return Ok(about);
    }
    let about = person.is_subject(spec, copy);
    if about {
        redact(spec, copy, Form::Copy)?;
    }
    Ok(about)
}

fn spec_in(object: &Members) -> Option<&'static ResourceSpec> {
    spec_of(&serde_json::from_str::<String>(object.get("object")?).ok()?)
}

/// The same for JSON text. `None` when nothing in it changes.
///
/// # Errors
/// The JSON is not what this program writes.
pub fn redacted_copy(json: &[u8], person: &Person<'_>) -> Result<Option<Bytes>, String> {
    let mut members = Members::parse(json)?;
    redact_copy(&mut members, person)?;
    Ok(members.is_changed().then(|| members.json().into()))
}

/// The customer whom an object, an event or the body of a response is about. `None` for JSON that is about no customer.
#[must_use]
pub fn person_in(json: &[u8]) -> Option<CustomerId> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        object: Cow<'a, str>,
        #[serde(borrow)]
        id: Option<Cow<'a, str>>,
        #[serde(borrow)]
        customer_id: Option<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        data: Named<'a>,
    }
    let named: Named<'_> = crate::value::read_json(json).ok()?;
    let named = match named.object == event::SPEC.object {
        true => crate::value::read_json::<Event<'_>>(json).ok()?.data,
        false => named,
    };
    let id = match spec_of(&named.object)?.person()? {
        "id" => named.id,
        _ => named.customer_id,
    };
    CustomerId::parse(&id?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::specs;

    /// Each field that can contain free text is personal or listed here. A new one must be decided.
    #[test]
    fn every_field_with_free_text_is_personal_or_known_not_to_be() {
        let open = |kind: Kind| {
            matches!(
                kind,
                Kind::Text(_)
                    | Kind::Name(_)
                    | Kind::Paragraph(..)
                    | Kind::Email
                    | Kind::Phone
                    | Kind::Language
                    | Kind::Json(_)
                    | Kind::Lines
                    | Kind::CreditLines
                    | Kind::Assignments
                    | Kind::AttemptLog
                    | Kind::Url
            )
        };
        let named = |personal: bool| -> Vec<String> {
            let fields = specs().flat_map(|spec| spec.fields.iter().map(move |field| (spec, field)));
            let found = fields.filter(|(_, field)| open(field.kind) && (field.personal != Personal::No) == personal);
            found.map(|(spec, field)| format!("{}.{}", spec.object, field.name)).collect()
        };
        let personal = [
            "customer.full_name",
            "customer.email",
            "customer.phone",
            "customer.preferred_language",
            "customer.source_channel",
            "customer.notes",
            "customer.address",
            "rental.booking_id",
            "rental.delivery_location",
            "invoice.lines",
            "invoice.buyer_name",
            "invoice.buyer_address",
            "invoice.buyer_email",
            "invoice.buyer_phone",
            "credit_note.reason",
            "credit_note.lines",
            "credit_note.refund_reference",
            "lead.source_channel",
            "lead.raw_data",
        ];
        assert_eq!(named(true), personal);
        // Of the fleet, of agencies and of operators. `event.data`, `delivery.log` and `audit_entry.details` can contain copies
        // of objects, which `erasing` rewrites by the fields of these objects.
        let not_personal = [
            "vehicle.name",
            "vehicle.make",
            "vehicle.model",
            "vehicle.color",
            "vehicle.plate",
            "vehicle.plate_state",
            "vehicle.transponder_number",
            "vehicle.turo_listing_id",
            "block.notes",
            "block.calendar_uid",
            "block.conflicts_with",
            "calendar_feed.url",
            "calendar_feed.last_error",
            "vehicle_assignments.assignments",
            "invoice.invoice_number",
            "invoice.tax_name",
            "invoice.seller_name",
            "invoice.seller_address",
            "invoice.seller_tax_id",
            "invoice.seller_email",
            "invoice.seller_phone",
            "credit_note.credit_note_number",
            "credit_note.invoice_number",
            "credit_note.refund_method",
            "toll.agency",
            "toll.transaction_id",
            "toll.plaza",
            "toll.plate",
            "toll.plate_state",
            "toll.transponder_number",
            "toll.attribution_reason",
            "toll.review_reason",
            "violation.summons_number",
            "violation.issuer",
            "violation.plate",
            "violation.state",
            "violation.issue_date",
            "violation.violation_time",
            "violation.violation",
            "violation.issuing_agency",
            "violation.status",
            "violation.plate_type",
            "violation.attribution_reason",
            "violation.review_reason",
            "organization.name",
            "organization.legal_name",
            "organization.address",
            "organization.tax_id",
            "organization.contact_email",
            "organization.contact_phone",
            "organization.payment_instructions",
            "organization.tax_name",
            "api_key.name",
            "api_key.hint",
            "webhook_endpoint.url",
            "webhook_endpoint.disabled_reason",
            "webhook_endpoint.api_version",
            "event.api_version",
            "event.data",
            "delivery.event_type",
            "delivery.last_error",
            "delivery.log",
            "audit_entry.action",
            "audit_entry.actor",
            "audit_entry.address",
            "audit_entry.path",
            "audit_entry.details",
            "audit_entry.request_id",
            "operator.name",
            "operator.hint",
        ];
        assert_eq!(named(false), not_personal);
    }

    #[test]
    fn every_resource_with_personal_fields_says_whom_they_are_about() {
        for spec in specs().filter(|spec| spec.fields.iter().any(|field| field.personal != Personal::No)) {
            assert!(spec.person().is_some(), "{}", spec.object);
        }
    }

    #[test]
    fn a_copy_in_an_event_loses_what_a_record_keeps() {
        let id = CustomerId::from_u128(7);
        let invoice = format!(
            r#"{{"id":"x","object":"invoice","customer_id":"{id}","lines":[{{"description":"For Ada","amount":1.50}}],"total":1.50}}"#
        );
        let event = format!(r#"{{"id":"e","object":"event","type":"invoice.paid","data":{invoice}}}"#);
        assert_eq!((person_in(event.as_bytes()), person_in(invoice.as_bytes())), (Some(id), Some(id)));
        let person = Person { id, known_as: &[] };
        let redacted = redacted_copy(event.as_bytes(), &person).unwrap().unwrap();
        assert_eq!(redacted, event.replace("For Ada", "erased"));
        assert_eq!(redacted_copy(&redacted, &person), Ok(None));
        assert_eq!(redacted_copy(event.as_bytes(), &Person { id: CustomerId::from_u128(8), ..person }), Ok(None));
        let mut record = Members::parse(invoice.as_bytes()).unwrap();
        redact(spec_of("invoice").unwrap(), &mut record, Form::Record).unwrap();
        assert_eq!(record.json(), invoice);
    }

    #[test]
    fn a_lead_without_a_customer_is_found_by_the_address() {
        let lead = r#"{"object":"lead","source_channel":"api","customer_id":null,"raw_data":{"mail": "ada@x.com"}}"#;
        let names = ["ada@x.com".to_owned()];
        let person = Person { id: CustomerId::from_u128(7), known_as: &names };
        let redacted = redacted_copy(lead.as_bytes(), &person).unwrap().unwrap();
        assert_eq!(redacted, r#"{"object":"lead","source_channel":"erased","customer_id":null,"raw_data":null}"#);
        let other = lead.replace("null,\"raw", &format!("\"{}\",\"raw", CustomerId::from_u128(8)));
        assert_eq!(redacted_copy(other.as_bytes(), &person), Ok(None), "it is about another customer");
    }
}
