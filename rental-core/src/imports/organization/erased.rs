//! The list of erased people in an import: its lines, and the objects of people on the list of the target.

use super::object::ParsedLine;
use crate::{
    erasing::Erasure,
    error::Error,
    operations::erased::erased_key,
    request::body::Verb,
    resources::{
        customer::{self, Customer},
        organization::Organization,
        personal::{Form, person_in, redact},
    },
    schema::Fields,
    store::{Batch, Store, get_one},
    tasks::erasing::names_of,
    value::{CustomerId, Members, OrganizationId},
};
use serde::Deserialize;
use std::borrow::Cow;

/// The value of `object` in a line of the list.
const ERASURE: &str = "erasure";

/// Adds an entry to the audit log: it names a customer whom the batch begins to erase.
pub type AuditErasing<'a> = dyn Fn(CustomerId, &mut Batch) -> Result<(), Error> + 'a;

/// Why the list of an import erases nobody. The words are those of a role that is too small.
pub(super) const NEEDS_OWNER: &str = "The list of erased people names a customer who is here and is not erased. Nobody was \
     erased: this needs an operator with the role `owner` or the admin token. Ask an owner to import the file, or to erase the \
     customer.";

/// Reads a line of the list in an export of `source`. `None` for another line.
pub(super) fn line(line: &[u8], source: OrganizationId) -> Option<Result<Erasure, String>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        object: Cow<'a, str>,
    }
    let named: Named<'_> = serde_json::from_slice(line).ok()?;
    if named.object != ERASURE {
        return None;
    }
    let erasure = serde_json::from_slice::<Erasure>(line).map_err(|error| format!("It is no erasure: {error}."));
    Some(erasure.and_then(|erasure| match erasure.organization_id == source {
        true => Ok(erasure),
        false => Err("`organization_id` must be the id in the first line of the file.".into()),
    }))
}

/// The same object without personal data, if its customer is on the list of the target.
///
/// # Errors
/// The store is not available.
pub(super) async fn redacted(
    store: &dyn Store,
    organization: &Organization,
    line: &ParsedLine,
) -> Result<Option<ParsedLine>, Error> {
    let Some(customer) = person_in(&line.object) else { return Ok(None) };
    let Some(row) = get_one(store, &erased_key(organization.id, customer)).await? else { return Ok(None) };
    let spec = line.resource.spec;
    let unlike = |why: String| Error::Internal(format!("a checked {} has other members: {why}", spec.object));
    let mut members = Members::parse(&line.object).map_err(unlike)?;
    redact(spec, &mut members, Form::Record).map_err(unlike)?;
    if spec.tag == customer::SPEC.tag {
        members.set("erased_at", format!("\"{}\"", Erasure::read(&row)?.erased_at)).map_err(unlike)?;
    }
    let object = members.json();
    let fields = Fields::parse(object.as_bytes(), spec, Verb::Whole, organization.default_currency.digits())?;
    let ParsedLine { resource, id, number, amount, .. } = *line;
    Ok(Some(ParsedLine { resource, id, fields, object: object.into(), number, amount }))
}

/// The person of a line of a customer, with the email and phone in it. `None` for other lines and for one without both.
pub(super) fn names_in(line: &ParsedLine) -> Option<(CustomerId, Vec<String>)> {
    if line.resource.spec.tag != customer::SPEC.tag {
        return None;
    }
    let customer: Customer = crate::value::read_json(&line.object).ok()?;
    Some((customer.id, names_of(&customer))).filter(|(_, names)| !names.is_empty())
}
