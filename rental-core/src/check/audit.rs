//! The walk over all rows, and the check of each kind.

use super::{
    expected::{expected_keys, held_by, references},
    report::{Remedy, Report},
};
use crate::{
    erasing::{Erasure, ErasureStatus, task_id},
    error::Error,
    operations::{api_keys, idempotency::IdempotencyRecord},
    resources::{
        self, Resource,
        api_key::{self, ApiKey},
        assignment::{self, VehicleAssignments},
        calendar_feed::CalendarFeed,
        credit_note::{self, CreditNote},
        customer::{self, Customer},
        delivery::Delivery,
        event,
        invoice::Invoice,
        operator::{self, Operator},
        organization::{Organization, SYSTEM},
        parse,
        row_words::{damage_in_words, in_words},
        series_of,
        vehicle::Vehicle,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::{Marker, Row, calendar_feed::ImportedFeed, claim, key, outbox, recheck::Recheck, vehicle_feed::VehicleFeed},
    schema::{Hold, ResourceSpec},
    store::{DamagedRow, Key, Record, StoreError},
    tasks::{Task, organization_deletion},
    value::{DeliveryId, EndpointId, Holder, OrganizationId, VehicleId},
    webhooks::{deletion, secret::Sealed},
};
use serde::Deserialize;
use uuid::Uuid;

/// Reads the row of a key.
pub type Get<'g> = &'g dyn Fn(&Key) -> Result<Option<Record>, StoreError>;

/// A check of all rows by ascending key: call [`Audit::row`] for each row, then [`Audit::finish`].
pub struct Audit<'g> {
    get: Get<'g>,
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
    numbered: Option<((OrganizationId, &'static str), u64)>,
    /// The last organization that was found to exist.
    organization: Option<OrganizationId>,
    /// The last organization that was found to be deleted by a task.
    leaving: Option<OrganizationId>,
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
            report: Report::default(),
            gaps: false,
            remedy: Remedy::Repair,
            api_keys: (0, 0),
            tokens: (0, 0),
            numbered: None,
            organization: None,
            leaving: None,
            endpoint: None,
        }
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
        match Row::decode(&record.key) {
            Some(row) => self.check(row, record),
            None => Err("no program that knows this store makes such a row".into()),
        }
    }

    /// Checks a row of a known kind.
    fn check(&mut self, kind: Row<'_>, row: &Record) -> RowCheck {
        if let Some(organization) = kind.organization()
            && self.is_leaving(organization)?
        {
            return Ok(());
        }
        match kind {
            Row::Record { organization, resource, id } => self.record(organization, resource, id, row),
            Row::IndexEntry { organization, resource, id, .. } => self.index_entry(organization, resource, id, row),
            Row::Access { .. } => self.access(row),
            Row::Calendar { organization, vehicle } => self.calendar(organization, vehicle, row),
            Row::Recheck { organization, vehicle } => {
                Recheck::read(row).map_err(detail)?;
                self.must_exist(&Vehicle::key(organization, vehicle))
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
            Row::Billed { .. } => Err("programs of schema version 6 write no such row; an upgrade removes it".into()),
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
        self.report.add(place, format!("rows cannot be read: {detail}"), Remedy::Backup);
    }

    /// Ends the check after the last row.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.count_numbered(None);
        for (what, (count, ways)) in [("API keys", self.api_keys), ("operators", self.tokens)] {
            if count != ways && !self.gaps {
                let problem = format!("there are {count} of them, and {ways} rows that lead to one");
                self.report.add(what.into(), problem, Remedy::Repair);
            }
        }
        self.report
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
        if id == SYSTEM || self.organization == Some(id) || self.leaving == Some(id) {
            return Ok(self.leaving == Some(id));
        }
        match self.find(&Organization::key(SYSTEM, id)) {
            Ok(Some(_)) => self.organization = Some(id),
            Ok(None) if self.find(&key::task(organization_deletion::task_id(id)))?.is_some() => self.leaving = Some(id),
            // A damaged organization is a problem of its own.
            Ok(None) | Err(_) => {}
        }
        Ok(self.leaving == Some(id))
    }

    fn organization_exists(&mut self, id: OrganizationId) -> RowCheck {
        if id != SYSTEM && self.organization != Some(id) {
            self.must_exist(&Organization::key(SYSTEM, id))?;
            self.organization = Some(id);
        }
        Ok(())
    }

    fn record(&mut self, organization: OrganizationId, resource: u8, id: Uuid, record: &Record) -> RowCheck {
        let spec = resources::spec_of_tag(resource).ok_or("no record lies at such a key")?;
        *self.report.records.entry(spec.object).or_default() += 1;
        if record.revision == 0 {
            return Err("it has no revision".into());
        }
        is_itself(spec, id, &record.value)?;
        let expected = expected_keys(organization, spec, id, &record.value).map_err(detail)?;
        self.count(organization, spec, record)?;
        self.organization_exists(organization)?;
        expected.iter().try_for_each(|key| self.must_exist(key))?;
        for (field, target, id) in references(spec, &record.value) {
            let place = key::record(organization, target, id);
            // What is damaged is a problem of its own.
            if matches!(self.find(&place), Ok(None)) {
                return Err(format!("its `{}` is {}, which is not there", field.name, in_words(&place)));
            }
        }
        if spec.tag == assignment::SPEC.tag { self.assignments(organization, record) } else { Ok(()) }
    }

    /// Checks that assignments have what their vehicle has by its own fields.
    fn assignments(&self, organization: OrganizationId, record: &Record) -> RowCheck {
        let all: VehicleAssignments = parse(&record.key, &record.value).map_err(detail)?;
        let place = Vehicle::key(organization, all.vehicle_id);
        // What is damaged is a problem of its own.
        let Ok(Some(found)) = self.find(&place) else { return Ok(()) };
        let Ok(vehicle) = parse::<Vehicle>(&place, &found.value) else { return Ok(()) };
        match assignment::lacking(&all.assignments, &vehicle).first() {
            Some(own) => {
                let (what, number) = (own.kind_in_words(), &*own.number);
                Err(format!(
                    "{} has the {what} {number} by its own fields, and no assignment without an end says so",
                    in_words(&place)
                ))
            }
            None => Ok(()),
        }
    }

    /// Counts records. The invoices and the credit notes of an organization must have every number up to its counter exactly
    /// once.
    fn count(&mut self, organization: OrganizationId, spec: &ResourceSpec, record: &Record) -> RowCheck {
        if spec.tag == api_key::SPEC.tag {
            self.api_keys.0 += 1;
        }
        if spec.tag == operator::SPEC.tag {
            self.tokens.0 += 1;
        }
        let Some(series) = series_of(spec) else { return Ok(()) };
        self.count_numbered(Some((organization, series.counter)));
        let counter = self.counter_of(organization, series.counter)?;
        match series.number_of(&record.value) {
            Some(number) if (1..=counter).contains(&number) => self.bills(organization, spec, record),
            Some(number) => Err(format!("its number is {number}, but the counter stands at {counter}")),
            None => Err("it has no number".into()),
        }
    }

    /// Counts one numbered object of the organization and counter `now`. When they change, checks the previous count.
    fn count_numbered(&mut self, now: Option<(OrganizationId, &'static str)>) {
        match (&mut self.numbered, now) {
            (Some((place, count)), Some(now)) if *place == now => *count += 1,
            _ => {
                let before = std::mem::replace(&mut self.numbered, now.map(|now| (now, 1)));
                let Some(((organization, name), count)) = before.filter(|_| !self.gaps) else { return };
                match self.counter_of(organization, name) {
                    Ok(counter) if counter == count => {}
                    Ok(counter) => {
                        let many = name.replace('_', " ");
                        let what = format!("it has {count} {many}, but the counter stands at {counter}");
                        self.report.add(format!("organization {organization}"), what, Remedy::Repair);
                    }
                    Err(what) => self.report.add(format!("organization {organization}"), what, Remedy::Repair),
                }
            }
        }
    }

    fn counter_of(&self, organization: OrganizationId, name: &str) -> Result<u64, String> {
        Ok(self.find(&key::counter(organization, name))?.map_or(0, |record| record.revision))
    }

    fn index_entry(&self, organization: OrganizationId, resource: u8, id: Uuid, entry: &Record) -> RowCheck {
        marker(entry)?;
        let spec = resources::spec_of_tag(resource).ok_or("it points at no record of a known resource")?;
        let record = self.find(&key::record(organization, spec, id))?.ok_or("its record is not there")?;
        let expected = expected_keys(organization, spec, id, &record.value).map_err(detail)?;
        if expected.contains(&entry.key) { Ok(()) } else { Err("its record has other values".into()) }
    }

    fn access(&mut self, row: &Record) -> RowCheck {
        let hash: Option<[u8; 32]> = row.value.get(..32).and_then(|hash| hash.try_into().ok());
        let hash = hash.ok_or("it has no hash")?;
        if key::access(&hash) != row.key {
            return Err("it belongs to another hash".into());
        }
        if let Some((id, rotation)) = api_keys::open_operator_entry(&row.value, &hash) {
            let place = Operator::key(SYSTEM, id);
            let record = self.find(&place)?.ok_or_else(|| format!("{} is not there", in_words(&place)))?;
            let operator: Operator = parse(&place, &record.value).map_err(detail)?;
            self.tokens.1 += u64::from(operator.rotations == rotation);
            return Ok(());
        }
        self.api_keys.1 += 1;
        let id = api_keys::open_entry(&row.value, &hash).ok_or("it names no API key and no operator")?;
        self.must_exist(&ApiKey::key(SYSTEM, id))
    }

    fn calendar(&self, organization: OrganizationId, vehicle: VehicleId, row: &Record) -> RowCheck {
        self.must_exist(&Vehicle::key(organization, vehicle))?;
        if row.value.len() == 4 { Ok(()) } else { Err("it has the wrong size".into()) }
    }

    fn hold(&self, organization: OrganizationId, vehicle: VehicleId, holder: Holder, row: &Record) -> RowCheck {
        self.must_exist(&Vehicle::key(organization, vehicle))?;
        let object = holder.object();
        let record = self.find(&key::holder(organization, holder))?;
        let record = record.ok_or_else(|| format!("its {object} is not there"))?;
        let held = held_by(holder, &record).map_err(detail)?;
        if held.is_empty() {
            return Err(format!("its {object} holds nothing"));
        }
        let same = |held: &&Hold| held.key(organization) == row.key && held.end.to_be_bytes() == *row.value;
        let held = held.iter().find(same).ok_or_else(|| format!("its {object} holds other nights"))?;
        let place = key::calendar(organization, vehicle);
        let bits = self.find(&place)?.as_ref().and_then(classes);
        // A bit too many makes a look-up longer. A missing one hides the hold from it.
        match bits.is_some_and(|bits| bits & held.calendar_bit() != 0) {
            true => Ok(()),
            false => Err(format!("{} does not have its length", in_words(&place))),
        }
    }

    fn idempotency_record(&mut self, organization: OrganizationId, name: &str, row: &Record) -> RowCheck {
        let stored: IdempotencyRecord =
            serde_json::from_slice(&row.value).map_err(|error| format!("it does not parse: {error}"))?;
        self.organization_exists(organization)?;
        self.must_exist(&key::idempotency_expiry(stored.expires_at().millis(), organization, name))
    }

    fn idempotency_expiry(&mut self, organization: OrganizationId, name: &str, row: &Record) -> RowCheck {
        marker(row)?;
        self.organization_exists(organization)?;
        self.must_exist(&key::idempotency_record(organization, name))
    }

    fn outbox(&self, row: &Record) -> RowCheck {
        let waiting = outbox::read(row).map_err(detail)?;
        self.must_exist(&event::key(waiting.organization, waiting.event))
    }

    /// Checks that a due row refers to a delivery. Its endpoint or organization may be deleted while a task removes its
    /// remaining rows.
    fn due(&mut self, endpoint: EndpointId, delivery: DeliveryId, row: &Record) -> RowCheck {
        let organization = OrganizationId::from_slice(&row.value).ok_or("it names no organization")?;
        if self.is_leaving(organization)? {
            return Ok(());
        }
        let place = Delivery::key(organization, delivery);
        let record = self.find(&place)?.ok_or("its delivery is not there")?;
        let delivery: Delivery = parse(&place, &record.value).map_err(detail)?;
        if delivery.endpoint_id != endpoint {
            return Err("its delivery goes to another endpoint".into());
        }
        if self.endpoint != Some(endpoint) {
            // A damaged endpoint is reported as a separate problem.
            let gone = matches!(self.find(&WebhookEndpoint::key(SYSTEM, endpoint)), Ok(None));
            if gone && self.find(&key::task(deletion::task_id(endpoint)))?.is_none() {
                self.remedy = Remedy::Start;
                return Err(
                    "its endpoint was deleted, and no task removes the row; a server begins one at its start".into()
                );
            }
            self.endpoint = Some(endpoint);
        }
        Ok(())
    }

    fn master_key(&mut self, row: &Record) -> RowCheck {
        let in_use = serde_json::from_slice(&row.value).map_err(|error| format!("it does not parse: {error}"))?;
        self.report.master_key.in_use = Some(in_use);
        Ok(())
    }

    /// Counts the endpoints whose newest secret only another master key opens. The row of the master key comes before.
    fn secrets(&mut self, endpoint: EndpointId, row: &Record) -> RowCheck {
        let sealed: Sealed =
            serde_json::from_slice(&row.value).map_err(|error| format!("they do not parse: {error}"))?;
        let keys = &mut self.report.master_key;
        if sealed.0.is_empty() {
            // A repair of the store leaves this when the secrets were lost.
            keys.unreadable += 1;
        } else if let (Some(in_use), Some(key)) =
            (&keys.in_use, sealed.0.first().and_then(|newest| newest.key.as_ref()))
            && in_use.current != *key
            && in_use.former.as_ref() != Some(key)
        {
            keys.unreadable += 1;
        }
        self.must_exist(&WebhookEndpoint::key(SYSTEM, endpoint))
    }

    /// Checks that the claim of an identity refers to an object of the resource in its key.
    fn identity(&self, organization: OrganizationId, resource: u8, row: &Record) -> RowCheck {
        let spec = resources::spec_of_tag(resource).ok_or("it is of no known resource")?;
        let (id, _) = claim::read_claim(&row.value).map_err(detail)?;
        self.must_exist(&key::record(organization, spec, id))
    }

    /// Checks that what an invoice bills is there and lists it, and that the invoice of a credit note does. What is damaged is a
    /// problem of its own.
    fn bills(&self, organization: OrganizationId, spec: &ResourceSpec, record: &Record) -> RowCheck {
        if spec.tag == credit_note::SPEC.tag {
            let note: CreditNote = parse(&record.key, &record.value).map_err(detail)?;
            let place = Invoice::key(organization, note.invoice_id);
            let Ok(Some(credited)) = self.find(&place) else { return Ok(()) };
            let invoice: Invoice = parse(&place, &credited.value).map_err(detail)?;
            let lists = invoice.credit_note_ids.contains(&note.id);
            return if lists {
                Ok(())
            } else {
                Err(format!("it credits {}, which does not list it", in_words(&place)))
            };
        }
        let invoice: Invoice = parse(&record.key, &record.value).map_err(detail)?;
        #[derive(Deserialize)]
        struct Billed {
            invoice_ids: Vec<Uuid>,
        }
        for source in invoice.sources() {
            let place = source.key(organization);
            let record = match self.find(&place) {
                Ok(Some(record)) => record,
                Ok(None) => return Err(format!("it bills {}, which is not there", in_words(&place))),
                Err(_) => continue,
            };
            let billed: Result<Billed, _> = serde_json::from_slice(&record.value);
            if billed.is_ok_and(|billed| !billed.invoice_ids.contains(&invoice.id.uuid())) {
                return Err(format!("it bills {}, which does not list it", in_words(&record.key)));
            }
        }
        Ok(())
    }

    /// Checks that a customer on the list of erased people is erased. A customer who is not in this store stays on the list.
    fn erased(&mut self, organization: OrganizationId, resource: u8, row: &Record) -> RowCheck {
        let spec = resources::spec_of_tag(resource).ok_or("it is of no known resource")?;
        self.organization_exists(organization)?;
        if spec.tag != customer::SPEC.tag {
            return Ok(());
        }
        let erasure = Erasure::read(row).map_err(detail)?;
        let place = Customer::key(organization, erasure.customer_id);
        let Some(record) = self.find(&place)? else { return Ok(()) };
        let erased_at = parse::<Customer>(&place, &record.value).map_err(detail)?.erased_at;
        let running = erasure.status == ErasureStatus::Running;
        match erased_at {
            None => {
                self.remedy = Remedy::Start;
                Err("its customer is not erased; a server erases the customer at its start".into())
            }
            Some(_) if running && self.find(&key::task(task_id(erasure.customer_id)))?.is_none() => {
                self.remedy = Remedy::Start;
                Err("it is not complete, and no task continues it; a server begins one at its start".into())
            }
            Some(_) => Ok(()),
        }
    }

    fn counter(&mut self, organization: OrganizationId, row: &Record) -> RowCheck {
        if row.revision == 0 {
            return Err("it has no number".into());
        }
        self.organization_exists(organization)
    }
}

/// Checks that a stored object says that it is the object of its key.
pub(super) fn is_itself(spec: &ResourceSpec, id: Uuid, json: &[u8]) -> RowCheck {
    #[derive(Deserialize)]
    struct Any {
        id: Uuid,
        object: String,
    }
    let any: Any = serde_json::from_slice(json).map_err(|error| format!("it does not parse: {error}"))?;
    if any.id == id && any.object == spec.object {
        return Ok(());
    }
    Err(format!("it says that it is {} {}", any.object, any.id))
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

fn json(row: &Record) -> RowCheck {
    let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(&row.value);
    parsed.map(drop).map_err(|error| format!("it does not parse: {error}"))
}

fn detail(error: Error) -> String {
    match error {
        Error::Internal(detail) => detail,
        Error::Damaged(row) => damage_in_words(&row),
        other => format!("{other:?}"),
    }
}
