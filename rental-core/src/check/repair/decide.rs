//! Decides what to do with a row that the audit does not accept.

use super::{view::View, waiter::Waiter};
use crate::{
    check::{
        audit::{classes, is_itself, is_png},
        expected::{effects_of, expected_keys, held_by},
    },
    operations::idempotency::IdempotencyRecord,
    resources::{
        Resource, api_key, assignment,
        calendar_feed::CalendarFeed,
        customer,
        delivery::Delivery,
        event,
        organization::{self, Organization, SYSTEM},
        parse, rental,
        row_words::in_words,
        series_of, spec_of_tag, to_json, toll,
        vehicle::{self, Vehicle},
        webhook_endpoint::WebhookEndpoint,
    },
    rows::{
        Marker, Row, Tag,
        calendar_feed::ImportedFeed,
        claim::{claim_value, identity_key, read_claim},
        key, outbox,
        recheck::Recheck,
        vehicle_feed::VehicleFeed,
    },
    schema::{Hold, ResourceSpec},
    store::{Key, Record},
    tasks::{Task, organization_deletion},
    value::{DeliveryId, EndpointId, Holder, Id, OrganizationId, Timestamp, VehicleId},
    webhooks::deletion,
};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashSet;
use uuid::Uuid;

/// Resources on whose records attachments rest.
const GROUNDS: [u8; 5] =
    [rental::SPEC.tag, assignment::SPEC.tag, vehicle::SPEC.tag, customer::SPEC.tag, toll::SPEC.tag];

/// Plans the changes for rows that the audit does not accept, one after the other in the order of their keys.
pub(super) struct Decider<'v, 's, W> {
    pub(super) view: &'v View<'s, W>,
    pub(super) now: Timestamp,
    /// Whether the round before planned no change.
    settled: bool,
    /// Whether the present round has put off the removal of a row.
    put_off: bool,
    /// API keys to which a row leads, of the present round.
    reached: HashSet<Uuid>,
    /// Damaged outbox rows. The records of their events come later in the walk.
    lost_outbox: HashSet<Uuid>,
    /// Damaged claims of identities. The next round finds the objects with these identities.
    lost_identities: HashSet<Key>,
    /// Organizations that lose a record on which attachments rest. At the end, what their tolls and violations rest on is marked.
    unattributed: HashSet<OrganizationId>,
}

impl<'v, 's, W: Waiter> Decider<'v, 's, W> {
    pub(super) fn new(view: &'v View<'s, W>, now: Timestamp) -> Self {
        let (lost_outbox, lost_identities) = (HashSet::new(), HashSet::new());
        let (reached, unattributed) = (HashSet::new(), HashSet::new());
        Self { view, now, settled: false, put_off: false, reached, lost_outbox, lost_identities, unattributed }
    }

    /// Begins a round. `settled`: the round before planned no change.
    pub(super) fn begin(&mut self, settled: bool) {
        self.reached.clear();
        (self.settled, self.put_off) = (settled, false);
    }

    /// Whether the round has put off the removal of a row, so that a settled round must follow.
    pub(super) fn has_put_off(&self) -> bool {
        self.put_off
    }

    /// Marks what the tolls and violations rest on that lost something, as they are after all other changes of the plan: so a plan that
    /// continues an interrupted repair has the same marks.
    pub(super) fn mark_unattributed(&self) {
        self.unattributed.iter().for_each(|organization| self.mark_all(*organization));
    }

    /// Notes a row that the audit accepts, and plans rows that its record lost and that only damage tells of.
    pub(super) fn passed(&mut self, record: &Record) {
        match Row::decode(&record.key) {
            Some(Row::Access { .. }) => {
                let id = record.value.get(32..48).and_then(|id| Uuid::from_slice(id).ok());
                self.reached.extend(id);
            }
            Some(Row::Record { organization, resource, id }) => {
                if resource == api_key::SPEC.tag && !self.reached.contains(&id) {
                    self.view.remove(&record.key, "no row leads to it, so no request can use it");
                }
                self.restore_lost(organization, resource, id, record);
            }
            _ => {}
        }
    }

    /// Plans what repairs the problem `why` of a row; `sound` is `None` for a row whose bytes are damaged. Returns false when
    /// nothing can be done without the loss of an organization.
    pub(super) fn repairs(&mut self, key: &Key, sound: Option<&Record>, why: &str) -> bool {
        let Some(row) = Row::decode(key) else {
            self.view.remove(key, why);
            return true;
        };
        if row.organization().is_some_and(|organization| self.deletes_again(organization)) {
            return true;
        }
        let keeps = match row {
            Row::Record { organization, resource, id } => {
                let is_repaired = self.record(organization, resource, id, key, sound, why);
                if GROUNDS.contains(&resource) && !self.view.has(key) {
                    self.unattributed.insert(organization);
                }
                return is_repaired;
            }
            Row::Calendar { organization, vehicle } => return self.calendar(organization, vehicle, key, sound, why),
            // Objects that come later in the walk may name the vehicle. Then it gets a stand-in, and keeps the row.
            Row::VehicleFeed { organization, vehicle } if self.waits_for_vehicle(organization, vehicle) => {
                self.put_off = true;
                return true;
            }
            Row::Recheck { organization, marked }
                if marked.as_vehicle().is_some_and(|vehicle| self.waits_for_vehicle(organization, vehicle)) =>
            {
                self.put_off = true;
                return true;
            }
            // Deriving too much again is harmless.
            Row::Recheck { organization, marked }
                if marked.as_vehicle().is_none_or(|vehicle| self.view.has(&Vehicle::key(organization, vehicle))) =>
            {
                let revision = sound.map_or(0, |row| row.revision) + 1;
                self.view.put(key, revision, Recheck::of_all().value(), why);
                return true;
            }
            Row::Due { endpoint, delivery, .. } => return self.due(endpoint, delivery, key, sound, why),
            Row::CalendarFeed { organization, feed } => {
                return self.calendar_feed(&CalendarFeed::key(organization, feed), key, sound, why);
            }
            Row::Secrets { endpoint } => return self.secrets(endpoint, key, why),
            Row::Erased { organization, resource, id } => {
                return self.erased((organization, resource, id), key, sound, why);
            }
            Row::IdempotencyRecord { organization, name } => {
                return self.idempotency_record(organization, name, key, sound, why);
            }
            Row::Marker(Marker::Loading | Marker::Upgrade) => true,
            Row::IndexEntry { resource, id, .. } => {
                resource == organization::SPEC.tag && self.is_damaged_organization(id)
            }
            Row::Hold { organization, holder, .. } => match self.held(organization, holder, key, sound) {
                Some(hold) => return self.hold_of(organization, hold, why),
                None => false,
            },
            // Beside the row itself, only its organization can be missing.
            Row::Subscribed { .. } => sound.is_some(),
            Row::VehicleFeed { organization, vehicle } => {
                let is_sound = sound.is_some_and(|row| VehicleFeed::read(row).is_ok());
                is_sound && self.view.has(&Vehicle::key(organization, vehicle))
            }
            Row::Logo { .. } => sound.is_some_and(|row| is_png(&row.value)),
            Row::Counter { .. } => sound.is_some_and(|row| row.revision > 0),
            Row::IdempotencyExpiry { organization, name, .. } => {
                let empty = |row: &Record| row.revision == 0 && row.value.is_empty();
                sound.is_some_and(empty) && self.view.has(&key::idempotency_record(organization, name))
            }
            Row::Outbox { event, .. } => {
                if sound.is_none_or(|row| outbox::read(row).is_err()) {
                    self.lost_outbox.insert(event.uuid());
                }
                false
            }
            Row::Identity { .. } => {
                if sound.is_none_or(|row| read_claim(row).is_err()) {
                    self.lost_identities.insert(key.clone());
                }
                false
            }
            Row::Marker(Marker::MasterKey)
            | Row::Access { .. }
            | Row::Bell { .. }
            | Row::Recheck { .. }
            | Row::Heartbeat { .. }
            | Row::Usage { .. }
            | Row::Owner { .. } => false,
            Row::Task { id } => {
                let organization = OrganizationId::from_uuid(id.uuid());
                let mut rows = organization_deletion::rows_named_by_key(organization);
                if rows.any(|span| self.view.has_any(span)) && self.deletes_again(organization) {
                    return true;
                }
                false
            }
        };
        if !keeps {
            self.view.remove(key, why);
        }
        !keeps
    }

    /// Whether a vehicle is not there, and an object that comes later in the walk may name it.
    fn waits_for_vehicle(&self, organization: OrganizationId, vehicle: VehicleId) -> bool {
        !self.settled && !self.view.has(&Vehicle::key(organization, vehicle))
    }

    /// A record that is no object is removed. A sound one gets the derived rows that it lacks.
    fn record(
        &self,
        organization: OrganizationId,
        resource: u8,
        id: Uuid,
        key: &Key,
        sound: Option<&Record>,
        why: &str,
    ) -> bool {
        let spec = spec_of_tag(resource);
        let object = sound.zip(spec).filter(|(record, spec)| {
            is_itself(spec, id, &record.value).is_ok() && effects_of(spec, key, &record.value).is_ok()
        });
        let Some((record, spec)) = object else {
            if resource == organization::SPEC.tag {
                return false;
            }
            self.view.remove(key, why);
            return true;
        };
        if record.revision == 0 {
            self.view.put(key, 1, record.value.clone(), why);
            return true;
        }
        let missing = expected_keys(organization, spec, id, &record.value).unwrap_or_default();
        let missing: Vec<Key> = missing.into_iter().filter(|key| !self.view.has(key)).collect();
        for derived in &missing {
            self.derive(organization, spec, record, derived);
        }
        let lost = self.find_lost(organization, spec, record)
            || self.complete_assignments(organization, spec, record)
            || self.list_credit(organization, spec, record)
            || self.sum_credits(organization, spec, record)
            || self.release_block(organization, spec, record);
        lost || !missing.is_empty() || self.counter(organization, spec, record)
    }

    /// Plans a row that must exist because of a record.
    fn derive(&self, organization: OrganizationId, spec: &'static ResourceSpec, record: &Record, derived: &Key) {
        let why = format!("it is missing or damaged, and {} needs it", in_words(&record.key));
        let put = |revision, value| self.view.put(derived, revision, value, &why);
        match Row::decode(derived) {
            Some(Row::Hold { .. } | Row::Calendar { .. }) => {
                let holds = effects_of(spec, &record.key, &record.value).map(|effects| effects.holds);
                for hold in holds.unwrap_or_default() {
                    self.hold_of(organization, hold, &why);
                }
            }
            Some(Row::Subscribed { .. }) => put(1, Bytes::new()),
            // Its content is lost. An empty list lets the operator rotate the secret; nothing is sent until then.
            Some(Row::Secrets { .. }) => put(1, Bytes::from_static(b"[]")),
            _ => put(0, Bytes::new()),
        }
    }

    /// Plans a hold, and its length class in the calendar of the vehicle. Returns whether one of them was missing.
    fn hold_of(&self, organization: OrganizationId, hold: Hold, why: &str) -> bool {
        let place = hold.key(organization);
        let is_missing = !self.view.has(&place);
        if is_missing {
            self.view.put(&place, 0, hold.value(), why);
        }
        let calendar = key::calendar(organization, hold.vehicle);
        let stored = self.view.get(&calendar).ok().flatten();
        let revision = stored.as_ref().map_or(0, |row| row.revision);
        let present = stored.as_ref().and_then(classes);
        let with = present.unwrap_or_else(|| self.classes_of_holds(organization, hold.vehicle)) | hold.calendar_bit();
        if present != Some(with) {
            self.view.put(&calendar, revision + 1, Bytes::copy_from_slice(&with.to_be_bytes()), why);
        }
        is_missing || present != Some(with)
    }

    /// The length classes of the holds of a vehicle, as bits. Those of damaged holds count, because a bit too many is harmless.
    fn classes_of_holds(&self, organization: OrganizationId, vehicle: VehicleId) -> u32 {
        let prefix = [&[Tag::Hold as u8][..], organization.as_bytes(), vehicle.as_bytes()].concat();
        let holds = self.view.keys_under(Key::from(prefix));
        let bits = holds.iter().filter_map(|hold| match Row::decode(hold) {
            Some(Row::Hold { class, start, .. }) => {
                let row = self.view.get(hold).ok().flatten();
                let end = row.and_then(|row| row.value.as_ref().try_into().ok()).map(u32::from_be_bytes);
                let nights = end.and_then(|end| end.checked_sub(start)).and_then(u32::checked_ilog2);
                Some(nights.map_or_else(|| Hold::calendar_bits(class), |bit| 1 << bit))
            }
            _ => None,
        });
        bits.fold(0, |all, bit| all | bit)
    }

    /// Raises the counter of a numbered object to its number, if it is lower.
    fn counter(&self, organization: OrganizationId, spec: &ResourceSpec, record: &Record) -> bool {
        let Some(series) = series_of(spec) else { return false };
        let Some(number) = series.number_of(&record.value) else { return false };
        let counter = key::counter(organization, series.counter);
        let stands = self.view.get(&counter).ok().flatten().map_or(0, |row| row.revision);
        if stands < number {
            let why = format!("it stands at {stands}, and {} has the number {number}", in_words(&record.key));
            self.view.put(&counter, number, Bytes::new(), &why);
        }
        stands < number
    }

    /// Plans the outbox row of an event and the claim of an object, when damaged ones were removed.
    fn restore_lost(&mut self, organization: OrganizationId, resource: u8, id: Uuid, record: &Record) {
        #[derive(Deserialize)]
        struct Kind {
            r#type: String,
        }
        if resource == event::SPEC.tag
            && self.lost_outbox.remove(&id)
            && let Ok(kind) = crate::value::read_json::<Kind>(&record.value)
        {
            let value = outbox::value(organization, &kind.r#type);
            self.view.put(
                &key::outbox(organization, Id::from_uuid(id)),
                0,
                value,
                "it was damaged, and its event is there",
            );
        }
        let Some(spec) = spec_of_tag(resource).filter(|_| !self.lost_identities.is_empty()) else { return };
        let Ok(effects) = effects_of(spec, &record.key, &record.value) else { return };
        let Some(identity) = effects.identity else { return };
        let claim = identity_key(organization, spec, &identity);
        if self.lost_identities.remove(&claim) {
            let value = claim_value(id, effects.charge.and_then(|charge| charge.amount));
            self.view.put(&claim, 1, value, "it was damaged, and its object is there");
        }
    }

    fn is_damaged_organization(&self, id: Uuid) -> bool {
        let place = key::record(SYSTEM, &organization::SPEC, id);
        match self.view.get(&place) {
            Ok(None) => false,
            Ok(Some(record)) => parse::<Organization>(&place, &record.value).is_err(),
            Err(_) => true,
        }
    }

    /// The hold in this row, if it is one of its rental or block.
    fn held(&self, organization: OrganizationId, holder: Holder, key: &Key, sound: Option<&Record>) -> Option<Hold> {
        let (row, record) = (sound?, self.view.get(&key::holder(organization, holder)).ok().flatten()?);
        let held = held_by(holder, &record).ok()?;
        held.into_iter().find(|hold| hold.key(organization) == *key && hold.value() == row.value)
    }

    /// The calendar of a vehicle follows from its holds. Without holds and without a vehicle it is removed.
    fn calendar(
        &self,
        organization: OrganizationId,
        vehicle: VehicleId,
        key: &Key,
        sound: Option<&Record>,
        why: &str,
    ) -> bool {
        let bits = self.classes_of_holds(organization, vehicle);
        let has_vehicle = self.view.has(&Vehicle::key(organization, vehicle));
        if bits == 0 && !has_vehicle {
            self.view.remove(key, why);
            return true;
        }
        if sound.is_some_and(|row| classes(row).is_some()) {
            return false;
        }
        let revision = sound.map_or(0, |row| row.revision);
        self.view.put(key, revision + 1, Bytes::copy_from_slice(&bits.to_be_bytes()), why);
        true
    }

    /// A due row follows from its endpoint, which names the organization, and its delivery.
    fn due(&self, endpoint: EndpointId, delivery: DeliveryId, key: &Key, sound: Option<&Record>, why: &str) -> bool {
        let owner: Option<WebhookEndpoint> = self.view.object(&WebhookEndpoint::key(SYSTEM, endpoint));
        let stored = sound.and_then(|row| OrganizationId::from_slice(&row.value));
        let organization = owner.as_ref().map(|owner| owner.organization_id).or(stored);
        let delivers = organization.is_some_and(|organization| {
            let delivery: Option<Delivery> = self.view.object(&Delivery::key(organization, delivery));
            delivery.is_some_and(|delivery| delivery.endpoint_id == endpoint)
        });
        let Some(organization) = organization.filter(|_| delivers) else {
            self.view.remove(key, why);
            return true;
        };
        if owner.is_some() {
            let value = Bytes::copy_from_slice(organization.as_bytes());
            let correct = sound.is_some_and(|row| row.value == value);
            if !correct {
                self.view.put(key, 0, value, why);
            }
            return !correct;
        }
        let task = key::task(deletion::task_id(endpoint));
        let Ok(state) = serde_json::to_vec(&Task::endpoint_deletion(endpoint, self.now)) else { return false };
        if self.view.has(&task) {
            return false;
        }
        self.view.put(&task, 1, state.into(), why);
        true
    }

    /// Secrets of an endpoint that exists cannot be computed, so they are replaced by an empty list.
    fn secrets(&self, endpoint: EndpointId, key: &Key, why: &str) -> bool {
        let place = WebhookEndpoint::key(SYSTEM, endpoint);
        let exists = self.view.object::<WebhookEndpoint>(&place).is_some();
        if exists {
            self.view.put(key, 1, Bytes::from_static(b"[]"), why);
        } else {
            self.view.remove(key, why);
        }
        true
    }

    /// A feed whose address was lost says so when it is read. Without its object, its blocks are cancelled.
    fn calendar_feed(&self, place: &Key, key: &Key, sound: Option<&Record>, why: &str) -> bool {
        let exists = self.view.has(place);
        let feed = sound.and_then(|row| ImportedFeed::read(row).ok());
        let mut feed = feed.unwrap_or_else(|| ImportedFeed::new(None, Timestamp::from_millis(0)));
        feed.removed |= !exists;
        let Ok(value) = to_json(&feed) else { return false };
        self.view.put(key, sound.map_or(0, |row| row.revision) + 1, value, why);
        true
    }

    fn idempotency_record(
        &self,
        organization: OrganizationId,
        name: &str,
        key: &Key,
        sound: Option<&Record>,
        why: &str,
    ) -> bool {
        let stored = sound.and_then(|row| crate::value::read_json::<IdempotencyRecord>(&row.value).ok());
        let Some(stored) = stored else {
            self.view.remove(key, why);
            return true;
        };
        let expiry = key::idempotency_expiry(stored.expires_at().millis(), organization, name);
        let missing = !self.view.has(&expiry);
        if missing {
            self.view.put(&expiry, 0, Bytes::new(), why);
        }
        missing
    }
}
