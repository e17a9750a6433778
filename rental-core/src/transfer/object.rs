//! A line becomes an object: what a GET of this version would give, or a sentence that says why it is none.

use crate::{
    body::{Fields, Verb, shorten},
    effects,
    error::Error,
    operation, page,
    resources::{
        Facts, Outcome, Portable, customer::Customer, invoice::Invoice, lead::Lead, organization::Organization,
        rental::Rental, toll::Toll, vehicle::Vehicle, violation::Violation,
    },
    spec::ResourceSpec,
    value::{Currency, Timestamp},
};
use serde::Deserialize;
use std::borrow::Cow;
use uuid::Uuid;

/// How far the clock of the server that made an object may be ahead of this one's.
const AHEAD_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// What is done with the lines of one resource.
pub(super) struct Porter {
    pub(super) spec: &'static ResourceSpec,
    pub(super) counter: Option<&'static str>,
    shape: fn(&str, Uuid) -> Result<Vec<u8>, Error>,
    pub(super) arrive: fn(Vec<u8>, &Facts<'_>) -> Result<Outcome, Error>,
}

const fn of<T: Portable>() -> Porter {
    Porter { spec: T::SPEC, counter: T::COUNTER, shape: shape::<T>, arrive: arrive::<T> }
}

static PORTERS: [Porter; 7] =
    [of::<Vehicle>(), of::<Customer>(), of::<Rental>(), of::<Toll>(), of::<Violation>(), of::<Invoice>(), of::<Lead>()];

/// A line that is an object, as far as this can be told without the store.
pub(super) struct Candidate {
    pub(super) porter: &'static Porter,
    pub(super) id: Uuid,
    pub(super) fields: Fields,
    /// As a GET will return it.
    pub(super) object: Vec<u8>,
    /// The number in the name of an invoice.
    pub(super) number: Option<u64>,
}

/// What every object says.
#[derive(Deserialize)]
struct Common {
    id: String,
    object: String,
    currency: Option<Currency>,
    organization_id: Option<String>,
    invoice_number: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    object: Cow<'a, str>,
}

/// Reads a line of an export of `source` for `target`.
pub(super) fn parse(line: &[u8], source: Uuid, target: &Organization, now: Timestamp) -> Result<Candidate, String> {
    let named: Named<'_> =
        serde_json::from_slice(line).map_err(|error| format!("It is no JSON object with an `object`: {error}."))?;
    let porter = PORTERS.iter().find(|porter| porter.spec.object == named.object).ok_or_else(|| {
        let known: Vec<&str> = PORTERS.iter().map(|porter| porter.spec.object).collect();
        format!("`object` is {:?}, but must be one of {}.", shorten(&named.object), known.join(", "))
    })?;
    let fields = Fields::parse(line, porter.spec, Verb::Whole, target.default_currency.digits()).map_err(sentence)?;
    let assembled = fields.object(|_| None);
    let common: Common = serde_json::from_str(&assembled).map_err(|error| format!("It cannot be read: {error}."))?;
    let id = common.check(porter.spec, source, target, now)?;
    let object = (porter.shape)(&assembled, target.id).map_err(sentence)?;
    let number = common.invoice_number.as_deref().and_then(|text| text.strip_prefix("INV-")?.parse().ok());
    Ok(Candidate { porter, id, fields, object, number })
}

impl Common {
    fn check(&self, spec: &ResourceSpec, source: Uuid, target: &Organization, now: Timestamp) -> Result<Uuid, String> {
        let id =
            page::id(&self.id).filter(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122);
        let id = id.ok_or("`id` must be a UUID of version 7, in lower case with hyphens.")?;
        // Lists by time are ranges of ids.
        if operation::created_at(id) != self.created_at {
            return Err("`created_at` must be the time in `id`.".into());
        }
        if self.updated_at < self.created_at {
            return Err("`updated_at` must not be before `created_at`.".into());
        }
        if self.updated_at > now.plus_millis(AHEAD_MILLIS) {
            return Err("`updated_at` must not lie in the future; set the clocks of both servers.".into());
        }
        if self.object != spec.object {
            return Err(format!("`object` must be {}.", spec.object));
        }
        if self.currency.is_some_and(|currency| currency != target.default_currency) {
            return Err(format!("`currency` must be {}, that of the organization.", target.default_currency));
        }
        if self.organization_id.as_ref().is_some_and(|whose| *whose != source.to_string()) {
            return Err("`organization_id` must be the id in the first line of the file.".into());
        }
        Ok(id)
    }
}

/// What is wrong, for the caller; [`Error::Internal`] cannot come of a line, as its fields were checked one by one.
pub(super) fn sentence(error: Error) -> String {
    match error {
        Error::Invalid(errors) => {
            errors.listed().iter().take(10).map(|error| error.message.as_str()).collect::<Vec<_>>().join(" ")
        }
        Error::Malformed(why)
        | Error::Conflict(why)
        | Error::VehicleUnavailable { message: why, .. }
        | Error::Internal(why) => why,
        Error::Damaged(row) => row.to_string(),
        other => format!("{other:?}"),
    }
}

fn shape<T: Portable>(assembled: &str, organization: Uuid) -> Result<Vec<u8>, Error> {
    let unlike = |error: serde_json::Error| Error::Malformed(format!("It is no {}: {error}.", T::SPEC.object));
    let mut object: T = serde_json::from_str(assembled).map_err(unlike)?;
    object.adopt(organization);
    serde_json::to_vec(&object).map_err(unlike)
}

fn arrive<T: Portable>(bytes: Vec<u8>, facts: &Facts<'_>) -> Result<Outcome, Error> {
    let object: T = serde_json::from_slice(&bytes).map_err(|error| Error::Internal(error.to_string()))?;
    object.arrive(facts)?;
    let effects = effects::of(&object);
    Ok(Outcome { object: bytes, changed: true, events: Vec::new(), effects_before: None, effects })
}
