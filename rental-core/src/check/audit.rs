//! The walk over all rows, and the check of each kind.

mod nights;
mod records;
mod rows;

use nights::{Nights, Twice};

use super::{
    decode::decode,
    needs::{Without, needs},
    report::{Remedy, Report},
};
use crate::{
    resources::{
        Resource,
        organization::{self, BookingPolicy, Organization, SYSTEM},
        parse,
        row_words::{damage_in_words, in_words},
        spec_of_tag,
        vehicle::Vehicle,
    },
    rows::{Marker, Row, key},
    store::{DamagedRow, Key, Record, StoreError},
    tasks::organization_deletion,
    value::{EndpointId, OrganizationId, Timestamp},
};
use std::collections::HashSet;

/// Reads the row of a key.
pub type Get<'g> = &'g dyn Fn(&Key) -> Result<Option<Record>, StoreError>;

/// A check of all rows by ascending key: call [`Audit::row`] for each row, then [`Audit::finish`].
pub struct Audit<'g> {
    get: Get<'g>,
    /// When the check is made, if that is known.
    now: Option<Timestamp>,
    pub(super) report: Report,
    /// Whether rows are missing or damaged, so that counts cannot be compared.
    pub(super) gaps: bool,
    /// What mends the problem of the last row.
    pub(super) remedy: Remedy,
    /// Number of API keys, and of the rows that find them.
    api_keys: (u64, u64),
    /// Number of operators, and of the rows that find one by its present token.
    tokens: (u64, u64),
    /// Invoices of the organization that the walk is in.
    numbered: Option<((OrganizationId, &'static str), u64, u64)>,
    /// Holds of the vehicle that the walk is at.
    nights: Nights,
    /// The last organization that was found to exist.
    organization: Option<OrganizationId>,
    /// The last organization that was found to be deleted by a task.
    leaving: Option<OrganizationId>,
    /// The last organization that was found to be gone, and not by a deletion.
    lost: Option<OrganizationId>,
    /// The last endpoint that was found to exist.
    endpoint: Option<EndpointId>,
    /// What is gone and objects name.
    named: HashSet<Key>,
}

/// The problem of a row, as a sentence that follows its place.
pub(super) type RowCheck = Result<(), String>;

impl<'g> Audit<'g> {
    /// Starts a check; `get` reads other rows of the same store.
    #[must_use]
    pub fn new(get: Get<'g>) -> Self {
        Self {
            get,
            now: None,
            report: Report::default(),
            gaps: false,
            remedy: Remedy::Repair,
            api_keys: (0, 0),
            tokens: (0, 0),
            numbered: None,
            nights: Nights::default(),
            organization: None,
            leaving: None,
            lost: None,
            endpoint: None,
            named: HashSet::new(),
        }
    }

    /// The check is made at this time. Blocks that have not ended are checked, too.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }

    /// Checks one row.
    pub fn row(&mut self, record: &Record) {
        self.report.rows += 1;
        self.remedy = Remedy::Repair;
        if let Err(what) = self.check(record) {
            self.report.add(in_words(&record.key), what, self.remedy);
        }
    }

    fn check(&mut self, row: &Record) -> RowCheck {
        if let Some(kind) = Row::decode(&row.key) {
            let owner = kind.organization().or_else(|| match kind {
                Row::Due { .. } => OrganizationId::from_slice(&row.value),
                _ => None,
            });
            if let Some(owner) = owner
                && self.is_leaving(owner)?
            {
                return Ok(());
            }
            self.tally(&kind);
        }
        let kind = decode(row).inspect_err(|_| self.remedy = remedy_of(&row.key))?;
        self.has_needs(&kind, row)?;
        match kind {
            Row::Record { organization, resource, id } => self.record(organization, resource, id, row),
            Row::IndexEntry { organization, resource, id, .. } => self.index_entry(organization, resource, id, row),
            Row::Access { .. } => self.access(row),
            Row::Hold { organization, vehicle, holder, .. } => self.hold(organization, vehicle, holder, row),
            Row::Due { endpoint, delivery, .. } => self.due(endpoint, delivery, row),
            Row::IdempotencyRecord { organization, .. }
            | Row::IdempotencyExpiry { organization, .. }
            | Row::Subscribed { organization }
            | Row::Logo { organization }
            | Row::Counter { organization, .. } => self.organization_exists(organization),
            Row::Secrets { .. } => self.secrets(row),
            Row::Marker(Marker::Loading) => {
                self.remedy = Remedy::Backup;
                Err("a copy into this store was broken off: what is there is not whole".into())
            }
            Row::Marker(Marker::MasterKey) => self.master_key(row),
            Row::Erased { organization, resource, .. } => self.erased(organization, resource, row),
            Row::Marker(Marker::Upgrade)
            | Row::Calendar { .. }
            | Row::VehicleFeed { .. }
            | Row::CalendarFeed { .. }
            | Row::Recheck { .. }
            | Row::Outbox { .. }
            | Row::Identity { .. }
            | Row::Task { .. }
            // Rows of running servers.
            | Row::Heartbeat { .. }
            | Row::Owner { .. }
            | Row::Bell { .. }
            | Row::Usage { .. } => Ok(()),
        }
    }

    /// Counts the objects by resource, and those of a lost organization.
    fn tally(&mut self, kind: &Row<'_>) {
        let Row::Record { organization, resource, .. } = *kind else { return };
        if self.lost == Some(organization) {
            *self.report.lost_organizations.entry(organization).or_default() += 1;
        }
        if let Some(spec) = spec_of_tag(resource) {
            *self.report.records.entry(spec.object).or_default() += 1;
        }
    }

    /// Checks that the rows are there which a row needs. What objects name and is gone is listed for each name.
    fn has_needs(&mut self, kind: &Row<'_>, row: &Record) -> RowCheck {
        for need in needs(kind, row, self.now) {
            let (mut is_there, mut damage) = (false, None);
            for key in &need.any_of {
                match self.find(key) {
                    Ok(found) => is_there |= found.is_some(),
                    Err(what) => damage = Some(what),
                }
            }
            match (&need.without, damage) {
                _ if is_there => {}
                // What is damaged is a problem of its own.
                (Without::Tell(_) | Without::Write(_), Some(_)) => {}
                (Without::Tell(what), None) => {
                    self.report.add(in_words(&row.key), what.clone(), Remedy::Gone);
                    self.named.extend(need.any_of);
                }
                (Without::Remove, Some(damage)) => return Err(damage),
                // A repair keeps the claim of what an invoice bills, so that no import records it again.
                (Without::Remove, None)
                    if matches!(kind, Row::Identity { .. })
                        && need.any_of.iter().any(|key| self.named.contains(key)) => {}
                (Without::Remove | Without::Write(_), None) => return Err(need.missing()),
            }
        }
        Ok(())
    }

    /// Adds a row that cannot be read.
    pub fn damaged(&mut self, row: &DamagedRow) {
        self.gaps = true;
        self.report.add(in_words(&row.key), row.reason.clone(), remedy_of(&row.key));
    }

    /// Adds a gap: rows after a key, or from the first row on, cannot be read.
    pub fn gap(&mut self, after: Option<&Key>, detail: &str) {
        self.gaps = true;
        let place = after.map_or_else(|| "from the first row on".to_owned(), |key| format!("behind {}", in_words(key)));
        self.report.add(place, format!("rows cannot be read: {detail}"), Remedy::Repair);
    }

    /// Ends the check after the last row.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.count_numbered(None, 0);
        let twice = self.nights.end();
        self.held_twice(twice);
        let ways = [("API keys", self.api_keys, Remedy::Repair), ("operators", self.tokens, Remedy::Decision)];
        for (what, (count, ways), remedy) in ways {
            if count != ways && !self.gaps {
                let problem =
                    format!("there are {count} of them, and {ways} rows that lead to one by its key or token");
                self.report.add(what.into(), problem, remedy);
            }
        }
        self.report.tell_lost_organizations();
        self.report
    }

    /// Adds a vehicle that is held more than once on a night. In an organization that records all bookings, that is no problem.
    fn held_twice(&mut self, twice: Option<Twice>) {
        let Some(Twice { organization, vehicle, what }) = twice else { return };
        let place = Organization::key(SYSTEM, organization);
        // An organization that cannot be read is a problem of its own.
        let owner = self.find(&place).ok().flatten().and_then(|row| parse::<Organization>(&place, &row.value).ok());
        if owner.is_some_and(|owner| owner.booking_policy == BookingPolicy::Exclusive) {
            let place = in_words(&Vehicle::key(organization, vehicle));
            what.into_iter().for_each(|what| self.report.add(place.clone(), what, Remedy::Decision));
        }
    }

    fn find(&self, key: &Key) -> Result<Option<Record>, String> {
        (self.get)(key).map_err(|error| match error {
            StoreError::Damaged(row) => damage_in_words(&row),
            error => format!("{} cannot be read: {error}", in_words(key)),
        })
    }

    fn must_exist(&self, key: &Key) -> RowCheck {
        self.find(key)?.map(drop).ok_or_else(|| format!("{} is not there", in_words(key)))
    }

    /// Whether a task deletes this organization. Then other rows of it are gone already, and this one will be.
    fn is_leaving(&mut self, id: OrganizationId) -> Result<bool, String> {
        if id == SYSTEM || [self.organization, self.leaving, self.lost].contains(&Some(id)) {
            return Ok(self.leaving == Some(id));
        }
        match self.find(&Organization::key(SYSTEM, id)) {
            Ok(Some(_)) => self.organization = Some(id),
            Ok(None) if self.find(&key::task(organization_deletion::task_id(id)))?.is_some() => self.leaving = Some(id),
            Ok(None) => self.lost = Some(id),
            // A damaged organization is a problem of its own.
            Err(_) => {}
        }
        Ok(self.leaving == Some(id))
    }

    fn organization_exists(&mut self, id: OrganizationId) -> RowCheck {
        if id != SYSTEM && self.organization != Some(id) {
            self.remedy = Remedy::Backup;
            self.must_exist(&Organization::key(SYSTEM, id))?;
            self.remedy = Remedy::Repair;
            self.organization = Some(id);
        }
        Ok(())
    }
}

/// What mends a row that cannot be read: a repair keeps the record of an organization.
pub(super) fn remedy_of(key: &Key) -> Remedy {
    match Row::decode(key) {
        Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag => Remedy::Backup,
        _ => Remedy::Repair,
    }
}

/// The length classes of holds in the calendar of a vehicle, as bits.
pub(super) fn classes(row: &Record) -> Option<u32> {
    row.value.as_ref().try_into().ok().map(u32::from_be_bytes)
}
