//! Checks a line of an export, and builds the bytes that a GET returns.

use crate::{
    error::Error,
    operations,
    request::{
        body::{Verb, shorten},
        page,
    },
    resources::{
        Porter, Resource, credit_note::CreditNote, invoice::Invoice, organization::Organization, porters, row_words,
        toll::Toll, violation::Violation,
    },
    schema::{Fields, ResourceSpec},
    value::{Currency, FromField, Money, OrganizationId, SignedMoney, Text, Timestamp},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use uuid::Uuid;

/// Most milliseconds by which the clock of the exporting server may be ahead of this server's.
const AHEAD_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A line that passed all checks that need no store.
pub(super) struct ParsedLine {
    pub(super) resource: &'static Porter,
    pub(super) id: Uuid,
    pub(super) fields: Fields,
    /// The bytes that a GET will return.
    pub(super) object: Bytes,
    /// The counter and the number of a numbered object, such as an invoice.
    pub(super) number: Option<(&'static str, u64)>,
    /// What it charges or credits, see [`amount`].
    pub(super) amount: Amount,
}

/// What an object charges or credits, with the plural of its resource.
pub(super) type Amount = Option<(&'static str, SignedMoney)>;

/// Reads what the object of a line charges or credits, also when the line is otherwise wrong; `None` when it has no such amount, or
/// none that can be read.
pub(super) fn amount(line: &[u8], target: &Organization) -> Amount {
    #[derive(Deserialize)]
    struct Charging<'a> {
        #[serde(borrow)]
        object: Cow<'a, str>,
        #[serde(borrow)]
        amount: Option<&'a RawValue>,
        #[serde(borrow)]
        amount_due: Option<&'a RawValue>,
        #[serde(borrow)]
        total: Option<&'a RawValue>,
    }
    let of: Charging<'_> = serde_json::from_slice(line).ok()?;
    let all = [
        (Toll::SPEC, of.amount),
        (Violation::SPEC, of.amount_due),
        (Invoice::SPEC, of.total),
        (CreditNote::SPEC, of.total),
    ];
    let (spec, text) = all.into_iter().find(|(spec, _)| spec.object == of.object)?;
    let money = Money::parse(text?.get(), target.default_currency.digits()).ok()?;
    Some((spec.plural, SignedMoney::from(money)))
}

/// The fields that several resources have.
struct Common<'a> {
    id: &'a str,
    object: &'a str,
    currency: Option<Currency>,
    organization_id: Option<&'a str>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    object: Cow<'a, str>,
}

/// Reads a line of an export of `source` for `target`.
pub(super) fn parse(
    line: &[u8],
    source: OrganizationId,
    target: &Organization,
    now: Timestamp,
) -> Result<ParsedLine, String> {
    let named: Named<'_> =
        serde_json::from_slice(line).map_err(|error| format!("It is no JSON object with an `object`: {error}."))?;
    let resource = porters().find(|resource| resource.spec.object == named.object).ok_or_else(|| {
        let known: Vec<&str> = porters().map(|resource| resource.spec.object).collect();
        format!("`object` is {:?}, but must be one of {}.", shorten(&named.object), known.join(", "))
    })?;
    let fields = Fields::parse(line, resource.spec, Verb::Whole, target.default_currency.digits()).map_err(sentence)?;
    let common = Common::of(&fields).ok_or("It has no id, no `object`, or no times.")?;
    let id = common.check(resource.spec, source, target, now)?;
    let object = (resource.shape)(&fields, target.id).map_err(sentence)?;
    let number = resource.series.and_then(|series| {
        let text = fields.get(series.field).and_then(Text::from_field)?;
        series.number(&text).map(|number| (series.counter, number))
    });
    Ok(ParsedLine { resource, id, fields, object, number, amount: amount(line, target) })
}

impl<'a> Common<'a> {
    fn of(fields: &'a Fields) -> Option<Self> {
        Some(Self {
            id: fields.plain("id")?,
            object: fields.plain("object")?,
            currency: fields.get("currency").and_then(Currency::from_field),
            organization_id: fields.plain("organization_id"),
            created_at: fields.get("created_at").and_then(Timestamp::from_field)?,
            updated_at: fields.get("updated_at").and_then(Timestamp::from_field)?,
        })
    }

    fn check(
        &self,
        spec: &ResourceSpec,
        source: OrganizationId,
        target: &Organization,
        now: Timestamp,
    ) -> Result<Uuid, String> {
        let id = page::id(self.id).filter(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122);
        let id = id.ok_or("`id` must be a UUID of version 7, in lower case with hyphens.")?;
        // Ids are ahead of the clock of a server whose clock was set back.
        if self.created_at > operations::id_time(id) {
            return Err("`created_at` must not be after the time in `id`.".into());
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
        if self.organization_id.is_some_and(|whose| whose != source.to_string()) {
            return Err("`organization_id` must be the id in the first line of the file.".into());
        }
        Ok(id)
    }
}

/// The message of an error, for the operator. [`Error::Internal`] cannot occur, because the fields were checked.
pub(super) fn sentence(error: Error) -> String {
    match error {
        Error::Invalid(errors) => {
            errors.listed().iter().take(10).map(|error| error.message.as_str()).collect::<Vec<_>>().join(" ")
        }
        Error::Malformed(why)
        | Error::Conflict(why)
        | Error::VehicleUnavailable { message: why, .. }
        | Error::Internal(why) => why,
        Error::Damaged(row) => row_words::damage_in_words(&row),
        other => format!("{other:?}"),
    }
}
