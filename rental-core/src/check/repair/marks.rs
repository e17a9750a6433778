//! Plans marks of vehicles and numbers, so that a server derives their tolls and violations again.

use super::{decide::Decider, waiter::Waiter};
use crate::{
    operations::recheck::automatic,
    resources::{
        Resource, automatic_look_ups, decided_by, toll,
        vehicle::{self, Vehicle},
        violation,
    },
    rows::{
        key,
        recheck::{Marked, Recheck},
    },
    schema::{Effects, ResourceSpec},
    store::Span,
    value::{OrganizationId, VehicleId},
};

impl<W: Waiter> Decider<'_, '_, W> {
    /// Marks the vehicles of an organization and the numbers that its tolls and violations name: while a row was damaged, nothing could
    /// be derived from it. Marks are written before the removals of records, so an interrupted repair has both, or still the
    /// damage.
    pub(super) fn mark_all(&self, organization: OrganizationId) {
        let why = "something that its tolls and violations rest on was damaged";
        let vehicles = self.view.keys_under(key::records(organization, &vehicle::SPEC));
        for vehicle in vehicles.iter().filter(|key| self.view.has(key)).filter_map(|key| key.id()) {
            self.mark_if_unmarked(organization, Marked::vehicle(VehicleId::from_uuid(vehicle)), why);
        }
        for spec in [&toll::SPEC, &violation::SPEC] {
            self.mark_named(organization, spec, why);
        }
    }

    /// Marks the numbers that the objects of a resource name. Of each number and vehicle it reads the index entries up to the first one
    /// that the plan does not remove.
    fn mark_named(&self, organization: OrganizationId, spec: &'static ResourceSpec, why: &str) {
        let mut rest = Span::under(automatic_look_ups().prefix(organization, spec));
        while let Some(entry) = self.view.first_key(&rest) {
            rest.from = entry.next();
            let Some(marked) = decided_by(&entry).filter(|_| self.view.has(&entry)) else { continue };
            rest.from = rest.from.max(automatic(organization, spec, marked, 0).to);
            if marked.as_vehicle().is_none() {
                self.mark_if_unmarked(organization, marked, why);
            }
        }
    }

    /// Marks the vehicle and the transponders and plates of assignments that change.
    pub(super) fn mark_assigned(&self, organization: OrganizationId, vehicle: VehicleId, of: &Effects, why: &str) {
        let numbers = of.entries.iter().filter(|entry| vehicle::is_name_look_up(entry)).map(Marked::number);
        for marked in numbers.chain([Marked::vehicle(vehicle)]) {
            self.mark(organization, marked, why);
        }
    }

    /// Marks a vehicle that is there.
    pub(super) fn mark_vehicle(&self, organization: OrganizationId, vehicle: VehicleId, why: &str) {
        if self.view.has(&Vehicle::key(organization, vehicle)) {
            self.mark(organization, Marked::vehicle(vehicle), why);
        }
    }

    fn mark_if_unmarked(&self, organization: OrganizationId, marked: Marked, why: &str) {
        if !self.view.has(&key::recheck(organization, marked)) {
            self.mark(organization, marked, why);
        }
    }

    fn mark(&self, organization: OrganizationId, marked: Marked, why: &str) {
        let place = key::recheck(organization, marked);
        self.view.put(&place, self.new_revision(), Recheck::of_all().value(), why);
    }
}
