//! The walk over all rows, and the check of each kind.

mod nights;
mod records;
mod rows;

use nights::{Nights, Twice};
pub(super) use records::is_itself;

use super::report::{Remedy, Report};
use crate::{
    error::Error,
    resources::{
        Resource,
        calendar_feed::CalendarFeed,
        organization::{BookingPolicy, Organization, SYSTEM},
        parse,
        row_words::{damage_in_words, in_words},
        vehicle::Vehicle,
    },
    rows::{Marker, Row, calendar_feed::ImportedFeed, key, recheck::Recheck, vehicle_feed::VehicleFeed},
    store::{DamagedRow, Key, Record, StoreError},
    tasks::{Task, organization_deletion},
    value::{EndpointId, OrganizationId, Timestamp},
};

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
    /// Whether the problem of the last row is that the record of its organization is lost.
    lacks_organization: bool,
    /// Number of API keys, and of the rows that find them.
    api_keys: (u64, u64),
    /// Number of operators, and of the rows that find one by its present token.
    tokens: (u64, u64),
    /// Invoices of the organization that the walk is in.
    numbered: Option<((OrganizationId, &'static str), u64)>,
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
            lacks_organization: false,
            api_keys: (0, 0),
            tokens: (0, 0),
            numbered: None,
            nights: Nights::default(),
            organization: None,
            leaving: None,
            lost: None,
            endpoint: None,
        }
    }

    /// The check is made at this time. Blocks that have not ended are checked, too.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }

    /// The result so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Checks one row.
    pub fn row(&mut self, record: &Record) {
        if let Err(what) = self.check_row(record) {
            self.report.add(in_words(&record.key), what, self.remedy);
        }
    }

    /// Checks one row and returns its problem, which the report does not contain yet.
    pub(super) fn check_row(&mut self, record: &Record) -> RowCheck {
        self.report.rows += 1;
        self.remedy = Remedy::Repair;
        self.lacks_organization = false;
        let checked = match Row::decode(&record.key) {
            Some(row) => self.check(row, record),
            None => Err("no program that knows this store makes such a row".into()),
        };
        if let Err(what) = &checked {
            self.report.other_members += u64::from(has_other_members(what));
            self.report.without_organization += u64::from(self.lacks_organization);
        }
        checked
    }

    /// Checks a row of a known kind.
    fn check(&mut self, kind: Row<'_>, row: &Record) -> RowCheck {
        if let Some(organization) = kind.organization()
            && self.is_leaving(organization)?
        {
            return Ok(());
        }
        if let Row::Record { organization, .. } = kind
            && self.lost == Some(organization)
        {
            *self.report.lost_organizations.entry(organization).or_default() += 1;
        }
        match kind {
            Row::Record { organization, resource, id } => self.record(organization, resource, id, row),
            Row::IndexEntry { organization, resource, id, .. } => self.index_entry(organization, resource, id, row),
            Row::Access { .. } => self.access(row),
            Row::Calendar { organization, vehicle } => self.calendar(organization, vehicle, row),
            Row::Recheck { organization, marked } => {
                Recheck::read(row).map_err(detail)?;
                marked.as_vehicle().map_or(Ok(()), |vehicle| self.must_exist(&Vehicle::key(organization, vehicle)))
            }
            Row::CalendarFeed { organization, feed } => {
                let place = CalendarFeed::key(organization, feed);
                let is_removed = ImportedFeed::read(row).map_err(detail)?.removed;
                if is_removed { Ok(()) } else { self.must_exist(&place) }
            }
            Row::VehicleFeed { organization, vehicle } => {
                VehicleFeed::read(row).map_err(detail)?;
                self.must_exist(&Vehicle::key(organization, vehicle))
            }
            Row::Hold { organization, vehicle, holder, .. } => self.hold(organization, vehicle, holder, row),
            Row::IdempotencyRecord { organization, name } => self.idempotency_record(organization, name, row),
            Row::IdempotencyExpiry { organization, name, .. } => self.idempotency_expiry(organization, name, row),
            Row::Outbox { .. } => self.outbox(row),
            Row::Due { endpoint, delivery, .. } => self.due(endpoint, delivery, row),
            Row::Subscribed { organization } => self.organization_exists(organization),
            Row::Logo { organization } if is_png(&row.value) => self.organization_exists(organization),
            Row::Logo { .. } => Err("it is not a PNG image".into()),
            Row::Secrets { endpoint } => self.secrets(endpoint, row),
            Row::Counter { organization, .. } => self.counter(organization, row),
            Row::Identity { organization, resource, .. } => self.identity(organization, resource, row),
            // Rows of running servers.
            Row::Heartbeat { .. } | Row::Owner { .. } | Row::Bell { .. } => Ok(()),
            Row::Usage { .. } => json(row),
            Row::Marker(Marker::Loading) => {
                Err("a copy into this store was broken off: what is there is not whole".into())
            }
            Row::Marker(Marker::MasterKey) => self.master_key(row),
            Row::Marker(Marker::Upgrade) => json(row),
            Row::Task { .. } => Task::read(row).map(drop).map_err(detail),
            Row::Erased { organization, resource, .. } => self.erased(organization, resource, row),
        }
    }

    /// Adds a row that cannot be read.
    pub fn damaged(&mut self, row: &DamagedRow) {
        self.gaps = true;
        self.report.add(in_words(&row.key), row.reason.clone(), Remedy::Repair);
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
        self.count_numbered(None);
        let twice = self.nights.end();
        self.held_twice(twice);
        for (what, (count, ways)) in [("API keys", self.api_keys), ("operators", self.tokens)] {
            if count != ways && !self.gaps {
                let problem = format!("there are {count} of them, and {ways} rows that lead to one");
                self.report.add(what.into(), problem, Remedy::Repair);
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
            let found = self.must_exist(&Organization::key(SYSTEM, id));
            self.lacks_organization = found.is_err();
            found?;
            self.organization = Some(id);
        }
        Ok(())
    }
}

/// The length classes of holds in the calendar of a vehicle, as bits.
pub(super) fn classes(row: &Record) -> Option<u32> {
    row.value.as_ref().try_into().ok().map(u32::from_be_bytes)
}

/// Whether the row of a logo begins like a PNG image.
pub(super) fn is_png(value: &[u8]) -> bool {
    value.starts_with(b"\x89PNG\r\n\x1a\n")
}

fn marker(row: &Record) -> RowCheck {
    if row.revision == 0 && row.value.is_empty() { Ok(()) } else { Err("it should be empty".into()) }
}

/// Whether a problem tells of an object with other members: damage changes bytes, which the checksum of the row tells, and not
/// the members.
fn has_other_members(what: &str) -> bool {
    what.contains("missing field") || what.contains("unknown field")
}

fn json(row: &Record) -> RowCheck {
    let parsed = crate::value::read_json::<serde::de::IgnoredAny>(&row.value);
    parsed.map(drop).map_err(|error| format!("it does not parse: {error}"))
}

fn detail(error: Error) -> String {
    match error {
        Error::Internal(detail) => detail,
        Error::Damaged(row) => damage_in_words(&row),
        other => format!("{other:?}"),
    }
}
