//! What an object names and is not there: a customer or vehicle gets a stand-in, anything else is no longer named, if the object
//! can be without it.
//!
//! Rentals, invoices and tolls of a lost customer stay what they are: a *stand-in* with the id of the customer takes its place,
//! and a person gives it the data again. So nothing is attached to somebody who is not there, and an export of the
//! organization can be imported.

use super::{decide::Decider, waiter::Waiter};
use crate::{
    check::expected::{effects_of, references},
    erasing::Erasure,
    operations::{created_at, erased::erased_key},
    resources::{
        Object, Resource,
        assignment::{self, VehicleAssignments},
        block::{Block, BlockStatus},
        calendar_feed::CalendarFeed,
        credit_note::{self, CreditNote},
        customer::{self, Customer},
        invoice::Invoice,
        organization::{Organization, SYSTEM},
        parse,
        row_words::in_words,
        to_json,
        vehicle::{self, Vehicle, VehicleStatus},
    },
    rows::key,
    schema::{Facts, Grounds, ResourceSpec},
    store::{Record, Revision},
    value::{CreditNoteId, Id, Language, Members, Money, Name, OrganizationId, Text},
};
use bytes::Bytes;
use serde::Serialize;
use uuid::Uuid;

/// The name of a stand-in, until a person gives it another one.
const LOST: &str = "Lost record";

impl<W: Waiter> Decider<'_, '_, W> {
    /// Plans stand-ins for customers and vehicles that this record names, and the record without what else is not there.
    /// Returns whether anything was planned.
    pub(super) fn find_lost(&self, organization: OrganizationId, spec: &'static ResourceSpec, record: &Record) -> bool {
        let named = references(spec, &record.value);
        let mut lost = named
            .into_iter()
            .map(|(field, target, id)| (field, key::record(organization, target, id), target, id))
            .filter(|(_, place, ..)| matches!(self.view.get(place), Ok(None)))
            .peekable();
        if lost.peek().is_none() {
            return false;
        }
        let (mut members, mut planned) = (Members::parse(&record.value), false);
        for (field, place, target, id) in lost {
            if let Some(value) = self.stand_in(organization, target, id) {
                let why = format!("{} names it, and it is not there", in_words(&record.key));
                self.view.put(&place, self.new_revision(), value, &why);
                planned = true;
            } else if field.nullable
                && let Ok(members) = &mut members
            {
                planned |= members.set(field.name, "null").is_ok();
            }
        }
        if let Some(mut members) = members.ok().filter(Members::is_changed) {
            self.forget(organization, spec, record, &mut members);
        }
        planned
    }

    /// Plans a record that no longer names what is not there. What was attached automatically is derived again.
    fn forget(
        &self,
        organization: OrganizationId,
        spec: &'static ResourceSpec,
        record: &Record,
        members: &mut Members,
    ) {
        let updated = format!("\"{}\"", self.now);
        // An object without such a member keeps what it says about its changes.
        let _ = members.set("updated_at", updated);
        let why = "what it named is not there";
        self.view.put(&record.key, record.revision + 1, members.json().into(), why);
        let grounds = effects_of(spec, &record.key, &record.value).ok().and_then(|effects| effects.grounds);
        if let Some(Grounds { vehicle, facts: Facts::Attached(_), .. }) = grounds {
            self.mark_vehicle(organization, vehicle, &format!("{} must be attached again", in_words(&record.key)));
        }
    }

    /// Plans assignments with what their vehicle has by its own fields. Returns whether they lacked something.
    pub(super) fn complete_assignments(
        &self,
        organization: OrganizationId,
        spec: &ResourceSpec,
        record: &Record,
    ) -> bool {
        if spec.tag != assignment::SPEC.tag {
            return false;
        }
        let Ok(mut all) = parse::<VehicleAssignments>(&record.key, &record.value) else { return false };
        let Some(vehicle) = self.view.object::<Vehicle>(&Vehicle::key(organization, all.vehicle_id)) else {
            return false;
        };
        if assignment::lacking(&all.assignments, &vehicle).is_empty() {
            return false;
        }
        all.assignments = assignment::completed(all.assignments, &vehicle, self.now);
        all.touch(self.now);
        let Ok(value) = to_json(&all) else { return false };
        let why = format!("it lacks what {} has by its own fields", in_words(&Vehicle::key(organization, vehicle.id)));
        self.view.put(&record.key, record.revision + 1, value, &why);
        self.mark_assigned(organization, vehicle.id, &all.effects(), &why);
        true
    }

    /// Plans the invoice of a credit note that it does not list: it gets the credit note, and what all of its credit notes
    /// credit. Returns whether the invoice lacked it.
    pub(super) fn list_credit(&self, organization: OrganizationId, spec: &ResourceSpec, record: &Record) -> bool {
        if spec.tag != credit_note::SPEC.tag {
            return false;
        }
        let Ok(note) = parse::<CreditNote>(&record.key, &record.value) else { return false };
        let place = Invoice::key(organization, note.invoice_id);
        let Some(stored) = self.view.get(&place).ok().flatten() else { return false };
        let Ok(mut invoice) = parse::<Invoice>(&place, &stored.value) else { return false };
        if invoice.credit_note_ids.contains(&note.id) {
            return false;
        }
        invoice.credit_note_ids.push(note.id);
        // An id begins with its time.
        invoice.credit_note_ids.sort_unstable();
        let of = |id: &CreditNoteId| self.view.object::<CreditNote>(&CreditNote::key(organization, *id));
        let known = invoice.credit_note_ids.iter().filter_map(of).filter_map(|note| note.total);
        let sum = known.fold(Money::default(), |sum, total| sum.plus(total).unwrap_or(Money::MAX));
        // Another credit note can be lost: what is credited never falls.
        invoice.amount_credited = invoice.amount_credited.max(sum);
        invoice.touch(self.now);
        let Ok(value) = to_json(&invoice) else { return false };
        self.view.put(&place, stored.revision + 1, value, &format!("it does not list {}", in_words(&record.key)));
        true
    }

    /// Plans an invoice with what its credit notes credit, if all of them are there. Returns whether it said something else.
    pub(super) fn sum_credits(&self, organization: OrganizationId, spec: &ResourceSpec, record: &Record) -> bool {
        let Some(mut invoice) = stored::<Invoice>(spec, record) else { return false };
        let of = |id: &CreditNoteId| self.view.object::<CreditNote>(&CreditNote::key(organization, *id));
        let Some(notes) = invoice.credit_note_ids.iter().map(of).collect::<Option<Vec<CreditNote>>>() else {
            return false;
        };
        let totals = notes.into_iter().map(|note| note.total.unwrap_or_default());
        let sum = totals.fold(Money::default(), |sum, total| sum.plus(total).unwrap_or(Money::MAX));
        let is_possible = Some(sum) <= invoice.total && sum.is_zero() == invoice.credit_note_ids.is_empty();
        if !is_possible || sum == invoice.amount_credited {
            return false;
        }
        let why = format!("its credit notes credit {sum}, and not {}", invoice.amount_credited);
        invoice.amount_credited = sum;
        self.rewrite(record, invoice, &why)
    }

    /// Plans a block whose calendar feed is gone as one that people change: its days may be taken still. Returns whether it is one.
    pub(super) fn release_block(&self, organization: OrganizationId, spec: &ResourceSpec, record: &Record) -> bool {
        let Some(mut block) = stored::<Block>(spec, record) else { return false };
        let has_ended = block.end_date.day_number() <= self.now.day_number();
        let Some(feed) = block.calendar_feed_id.filter(|_| block.status != BlockStatus::Cancelled && !has_ended) else {
            return false;
        };
        if self.view.has(&CalendarFeed::key(organization, feed))
            || self.view.has(&key::calendar_feed(organization, feed))
        {
            return false;
        }
        block.calendar_feed_id = None;
        self.rewrite(record, block, "its calendar feed is not there, so nobody could change it")
    }

    /// Plans another value of a record.
    fn rewrite<T: Object + Serialize>(&self, record: &Record, mut object: T, why: &str) -> bool {
        object.touch(self.now);
        let Ok(value) = to_json(&object) else { return false };
        self.view.put(&record.key, record.revision + 1, value, why);
        true
    }

    /// A revision that no client has seen for the same object.
    pub(super) fn new_revision(&self) -> Revision {
        self.now.millis().max(1)
    }

    /// The record that takes the place of a lost customer or vehicle; `None` for other resources.
    fn stand_in(&self, organization: OrganizationId, spec: &ResourceSpec, id: Uuid) -> Option<Bytes> {
        let (name, created_at) = (Name::parse(LOST, 255).ok()?, created_at(id, self.now));
        let updated_at = self.now.max(created_at);
        let told =
            "The record of it was damaged, and `store repair` put this one in its place. Give it its data again.";
        if spec.tag == customer::SPEC.tag {
            let id = Id::from_uuid(id);
            let erasure = self.view.get(&erased_key(organization, id)).ok().flatten();
            let erased_at = erasure.and_then(|row| Erasure::read(&row).ok()).map(|erasure| erasure.erased_at);
            return to_json(&Customer {
                id,
                object: customer::SPEC.object.into(),
                full_name: if erased_at.is_some() { Name::parse("erased", 255).ok()? } else { name },
                email: None,
                phone: None,
                preferred_language: Language::parse("en").ok()?,
                language_chosen: false,
                source_channel: None,
                notes: erased_at.is_none().then(|| Text::fit(told, 255)),
                address: None,
                erased_at,
                created_at,
                updated_at,
            })
            .ok();
        }
        if spec.tag != vehicle::SPEC.tag {
            return None;
        }
        let owner: Organization = self.view.object(&Organization::key(SYSTEM, organization))?;
        to_json(&Vehicle {
            id: Id::from_uuid(id),
            object: vehicle::SPEC.object.into(),
            name,
            make: None,
            model: None,
            year: None,
            color: None,
            plate: None,
            plate_state: None,
            transponder_number: None,
            turo_listing_id: None,
            daily_rate: None,
            deposit_amount: None,
            currency: owner.default_currency,
            status: VehicleStatus::Unavailable,
            organization_id: organization,
            created_at,
            updated_at,
        })
        .ok()
    }
}

/// The object of a record, if it is of this resource.
fn stored<T: Resource>(spec: &ResourceSpec, record: &Record) -> Option<T> {
    (spec.tag == T::SPEC.tag).then(|| parse(&record.key, &record.value).ok()).flatten()
}
