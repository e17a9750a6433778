//! Whether what lies in a store fits together: every row is what its key says, every record has its index entries and
//! holds, and whatever points somewhere points at something. Any engine's rows can be looked at, by rising key.

#[cfg(feature = "redb")]
use crate::store::redb::{Closed, Found};
use crate::{
    error::Error,
    operations::{access, idempotency::Memo},
    resources::{
        self, Resource, api_key,
        delivery::{self, Delivery},
        event,
        invoice::{self, Invoice},
        organization::{self, SYSTEM},
        parse, registry,
        rental::{self, Rental},
        row_words::{damage_in_words, in_words},
        vehicle,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::{Marker, Row, claim, key, outbox},
    schema::{Effects, ResourceSpec},
    store::{DamagedRow, Key, Record, StoreError},
    tasks::Task,
    webhooks::secret::Sealed,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Most problems that are listed; all are counted.
pub const MOST_LISTED: usize = 1000;

/// One thing that is not as it should be.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// Resource, id, organization and key in hex, as far as they are known.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Report {
    /// Rows that were read.
    pub rows: u64,
    /// Records among them, by resource.
    pub records: BTreeMap<&'static str, u64>,
    /// How many problems there are.
    pub problems: u64,
    /// The first of them.
    pub listed: Vec<Problem>,
}

impl Report {
    /// Notes a problem.
    pub fn add(&mut self, place: String, what: String) {
        self.problems += 1;
        if self.listed.len() < MOST_LISTED {
            self.listed.push(Problem { place, what });
        }
    }
}

/// Every key that must be there because this record is.
///
/// # Errors
/// The record is none of its resource.
pub fn expected_keys(
    organization: Uuid,
    spec: &'static ResourceSpec,
    id: Uuid,
    json: &[u8],
) -> Result<Vec<Key>, Error> {
    let place = key::record(organization, spec, id);
    let mut keys = Vec::new();
    let effects = effects_of(spec, &place, json)?;
    if let Some(hold) = effects.hold {
        keys.extend([hold.key(organization), key::calendar(organization, hold.vehicle)]);
    }
    keys.extend(effects.entries.iter().map(|prefix| prefix.entry(organization, spec, id)));
    keys.extend(effects.bills.iter().map(|source| key::billed(organization, *source)));
    if spec.tag == webhook_endpoint::SPEC.tag {
        let endpoint: WebhookEndpoint = parse(&place, json)?;
        keys.extend([key::secrets(id), key::subscribed(endpoint.organization_id)]);
    }
    Ok(keys)
}

/// What a record means beside itself; on the way it is parsed as what it should be. Its identity was claimed when it was
/// made and may differ by now: amounts are corrected.
pub(crate) fn effects_of(spec: &ResourceSpec, place: &Key, json: &[u8]) -> Result<Effects, Error> {
    let resource = registry::of_tag(spec.tag);
    let resource = resource.ok_or_else(|| Error::Internal(format!("no registry has a {}", spec.object)))?;
    (resource.effects)(place, json)
}

/// How a key leads to its record.
pub type Get<'g> = &'g dyn Fn(&Key) -> Result<Option<Record>, StoreError>;

/// A walk over all rows, by rising key: one call of [`Audit::row`] for each, then [`Audit::finish`].
pub struct Audit<'g> {
    get: Get<'g>,
    report: Report,
    /// Whether rows are known to be missing, so that counts cannot fit.
    gaps: bool,
    /// API keys, and the rows by which they are found.
    api_keys: (u64, u64),
    /// Invoices of the organization that the walk is in.
    invoices: Option<(Uuid, u64)>,
    /// The organization that was last found to be there.
    organization: Option<Uuid>,
    /// The endpoint whose due rows were last found to be in order.
    endpoint: Option<Uuid>,
}

/// Looks at every row of a closed file; `progress` is told the rows so far.
#[cfg(feature = "redb")]
#[must_use]
pub fn of_file(closed: &Closed, progress: &mut dyn FnMut(u64)) -> Report {
    let get = |key: &Key| closed.get(key);
    let mut audit = Audit::new(&get);
    if let Err(detail) = closed.pages() {
        audit.gaps = true;
        audit.report.add("the pages of the file".into(), detail.to_owned());
    }
    closed.walk(&mut |found| {
        match found {
            Found::Row(record) => audit.row(&record),
            Found::Damaged(row) => audit.damaged(&row),
            Found::Gap(after, detail) => audit.gap(after.as_ref(), &detail),
        }
        if audit.report.rows.is_multiple_of(10_000) {
            progress(audit.report.rows);
        }
        true
    });
    audit.finish()
}

/// What is wrong with a row, as a sentence that follows its place.
type Verdict = Result<(), String>;

impl<'g> Audit<'g> {
    /// Begins a walk; `get` reads other rows of the same store.
    #[must_use]
    pub fn new(get: Get<'g>) -> Self {
        Self {
            get,
            report: Report::default(),
            gaps: false,
            api_keys: (0, 0),
            invoices: None,
            organization: None,
            endpoint: None,
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Looks at one row.
    pub fn row(&mut self, record: &Record) {
        self.report.rows += 1;
        let verdict = match Row::decode(&record.key) {
            Some(row) => self.verdict(row, record),
            None => Err("no program that knows this store makes such a row".into()),
        };
        if let Err(what) = verdict {
            self.report.add(in_words(&record.key), what);
        }
    }

    /// What is wrong with a row of a known kind.
    fn verdict(&mut self, kind: Row<'_>, row: &Record) -> Verdict {
        match kind {
            Row::Record { organization, resource, id } => self.record(organization, resource, id, row),
            Row::IndexEntry { organization, resource, id, .. } => self.index_entry(organization, resource, id, row),
            Row::Access { .. } => self.access(row),
            Row::Calendar { organization, vehicle } => self.calendar(organization, vehicle, row),
            Row::Hold { organization, vehicle, rental, .. } => self.hold(organization, vehicle, rental, row),
            Row::Memo { organization, name } => self.memo(organization, name, row),
            Row::MemoExpiry { organization, name, .. } => self.memo_expiry(organization, name, row),
            Row::Outbox { .. } => self.outbox(row),
            Row::Due { endpoint, delivery, .. } => self.due(endpoint, delivery, row),
            Row::Task { .. } => Task::read(row).map(drop).map_err(detail),
            Row::Subscribed { organization } => self.organization_exists(organization),
            Row::Secrets { endpoint } => self.secrets(endpoint, row),
            Row::Counter { organization, .. } => self.counter(organization, row),
            Row::Identity { organization, resource, .. } => self.identity(organization, resource, row),
            Row::Billed { organization, source } => self.billed(organization, source, row),
            // Of servers, which come and go.
            Row::Beat { .. } | Row::Owner { .. } | Row::Bell { .. } => Ok(()),
            Row::Marker(Marker::Loading) => {
                Err("a copy into this store was broken off: what is there is not whole".into())
            }
            Row::Marker(Marker::Upgrade) => json(row),
            Row::Erased { organization, resource, .. } => {
                resources::spec_of_tag(resource).ok_or("it is of no known resource")?;
                self.organization_exists(organization)
            }
        }
    }

    /// Notes a row that cannot be read.
    pub fn damaged(&mut self, row: &DamagedRow) {
        self.gaps = true;
        self.report.add(in_words(&row.key), row.reason.clone());
    }

    /// Notes that rows are missing behind a key, or from the beginning.
    pub fn gap(&mut self, after: Option<&Key>, detail: &str) {
        self.gaps = true;
        let place = after.map_or_else(|| "from the first row on".to_owned(), |key| format!("behind {}", in_words(key)));
        self.report.add(place, format!("rows cannot be read: {detail}"));
    }

    /// Ends the walk.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.count_invoices(None);
        let (keys, ways) = self.api_keys;
        if keys != ways && !self.gaps {
            self.report.add("API keys".into(), format!("there are {keys} of them, and {ways} rows that lead to one"));
        }
        self.report
    }

    fn find(&self, key: &Key) -> Result<Option<Record>, String> {
        (self.get)(key).map_err(|error| match error {
            StoreError::Damaged(row) => damage_in_words(&row),
            error => format!("{} cannot be read: {error}", in_words(key)),
        })
    }

    fn must_exist(&self, key: &Key) -> Verdict {
        self.find(key)?.map(drop).ok_or_else(|| format!("{} is not there", in_words(key)))
    }

    fn organization_exists(&mut self, id: Uuid) -> Verdict {
        if id != SYSTEM && self.organization != Some(id) {
            self.must_exist(&key::record(SYSTEM, &organization::SPEC, id))?;
            self.organization = Some(id);
        }
        Ok(())
    }

    fn record(&mut self, organization: Uuid, resource: u8, id: Uuid, record: &Record) -> Verdict {
        #[derive(Deserialize)]
        struct Any {
            id: Uuid,
            object: String,
        }
        let spec = resources::spec_of_tag(resource).ok_or("no record lies at such a key")?;
        *self.report.records.entry(spec.object).or_default() += 1;
        if record.revision == 0 {
            return Err("it has no revision".into());
        }
        let any: Any = serde_json::from_slice(&record.value).map_err(|error| format!("it does not parse: {error}"))?;
        if any.id != id || any.object != spec.object {
            return Err(format!("it says that it is {} {}", any.object, any.id));
        }
        let expected = expected_keys(organization, spec, id, &record.value).map_err(detail)?;
        self.count(organization, spec, record)?;
        self.organization_exists(organization)?;
        expected.iter().try_for_each(|key| self.must_exist(key))
    }

    /// Invoices have every number up to their organization's counter, once each.
    fn count(&mut self, organization: Uuid, spec: &ResourceSpec, record: &Record) -> Verdict {
        if spec.tag == api_key::SPEC.tag {
            self.api_keys.0 += 1;
        }
        if spec.tag != invoice::SPEC.tag {
            return Ok(());
        }
        self.count_invoices(Some(organization));
        let counter = self.invoice_counter(organization)?;
        let invoice: Invoice = parse(&record.key, &record.value).map_err(detail)?;
        let digits = invoice.invoice_number.as_deref().and_then(|text| text.strip_prefix("INV-"));
        match digits.and_then(|digits| digits.parse::<u64>().ok()) {
            Some(number) if (1..=counter).contains(&number) => Ok(()),
            Some(number) => Err(format!("its number is {number}, but the counter stands at {counter}")),
            None => Err("it has no number".into()),
        }
    }

    /// Adds one invoice of `now`; when that is another organization than before, the one before must be complete.
    fn count_invoices(&mut self, now: Option<Uuid>) {
        match (&mut self.invoices, now) {
            (Some((organization, count)), Some(now)) if *organization == now => *count += 1,
            _ => {
                let before = std::mem::replace(&mut self.invoices, now.map(|now| (now, 1)));
                let Some((organization, count)) = before.filter(|_| !self.gaps) else { return };
                match self.invoice_counter(organization) {
                    Ok(counter) if counter == count => {}
                    Ok(counter) => {
                        let what = format!("it has {count} invoices, but the counter stands at {counter}");
                        self.report.add(format!("organization {organization}"), what);
                    }
                    Err(what) => self.report.add(format!("organization {organization}"), what),
                }
            }
        }
    }

    fn invoice_counter(&self, organization: Uuid) -> Result<u64, String> {
        let name = Invoice::COUNTER.unwrap_or_default();
        Ok(self.find(&key::counter(organization, name))?.map_or(0, |record| record.revision))
    }

    fn index_entry(&self, organization: Uuid, resource: u8, id: Uuid, entry: &Record) -> Verdict {
        marker(entry)?;
        let spec = resources::spec_of_tag(resource).ok_or("it points at no record of a known resource")?;
        let record = self.find(&key::record(organization, spec, id))?.ok_or("its record is not there")?;
        let expected = expected_keys(organization, spec, id, &record.value).map_err(detail)?;
        if expected.contains(&entry.key) { Ok(()) } else { Err("its record has other values".into()) }
    }

    fn access(&mut self, row: &Record) -> Verdict {
        self.api_keys.1 += 1;
        let hash: [u8; 32] = row.value.get(..32).and_then(|hash| hash.try_into().ok()).ok_or("it has no hash")?;
        let id = access::open_entry(&row.value, &hash).ok_or("it names no API key")?;
        if key::access(&hash) != row.key {
            return Err("it belongs to another hash".into());
        }
        self.must_exist(&key::record(SYSTEM, &api_key::SPEC, id))
    }

    fn calendar(&self, organization: Uuid, vehicle: Uuid, row: &Record) -> Verdict {
        self.must_exist(&key::record(organization, &vehicle::SPEC, vehicle))?;
        if row.value.len() == 4 { Ok(()) } else { Err("it has the wrong size".into()) }
    }

    fn hold(&self, organization: Uuid, vehicle: Uuid, rental: Uuid, row: &Record) -> Verdict {
        self.must_exist(&key::record(organization, &vehicle::SPEC, vehicle))?;
        let place = key::record(organization, &rental::SPEC, rental);
        let record = self.find(&place)?.ok_or("its rental is not there")?;
        let held = parse::<Rental>(&place, &record.value).map_err(detail)?.effects().hold;
        let held = held.ok_or("its rental holds nothing")?;
        let same = held.key(organization) == row.key && held.end.to_be_bytes() == *row.value;
        if same { Ok(()) } else { Err("its rental holds other nights".into()) }
    }

    fn memo(&mut self, organization: Uuid, name: &str, row: &Record) -> Verdict {
        let memo: Memo = serde_json::from_slice(&row.value).map_err(|error| format!("it does not parse: {error}"))?;
        self.organization_exists(organization)?;
        self.must_exist(&key::memo_expiry(memo.expires_at().millis(), organization, name))
    }

    fn memo_expiry(&mut self, organization: Uuid, name: &str, row: &Record) -> Verdict {
        marker(row)?;
        self.organization_exists(organization)?;
        self.must_exist(&key::memo(organization, name))
    }

    fn outbox(&self, row: &Record) -> Verdict {
        let waiting = outbox::read(row).map_err(detail)?;
        self.must_exist(&key::record(waiting.organization, &event::SPEC, waiting.event))
    }

    /// Leads to a delivery. Its endpoint may be deleted while a task removes what is left of it.
    fn due(&mut self, endpoint: Uuid, delivery: Uuid, row: &Record) -> Verdict {
        let organization = Uuid::from_slice(&row.value).map_err(|_| "it names no organization")?;
        let place = key::record(organization, &delivery::SPEC, delivery);
        let record = self.find(&place)?.ok_or("its delivery is not there")?;
        let delivery: Delivery = parse(&place, &record.value).map_err(detail)?;
        if delivery.endpoint_id != endpoint {
            return Err("its delivery goes to another endpoint".into());
        }
        if self.endpoint != Some(endpoint) {
            // A corrupted endpoint is a problem of its own.
            let gone = matches!(self.find(&key::record(SYSTEM, &webhook_endpoint::SPEC, endpoint)), Ok(None));
            if gone && self.find(&key::task(endpoint))?.is_none() {
                return Err(
                    "its endpoint was deleted, and no task removes the row; a server begins one at its start".into()
                );
            }
            self.endpoint = Some(endpoint);
        }
        Ok(())
    }

    fn secrets(&self, endpoint: Uuid, row: &Record) -> Verdict {
        serde_json::from_slice::<Sealed>(&row.value).map_err(|error| format!("they do not parse: {error}"))?;
        self.must_exist(&key::record(SYSTEM, &webhook_endpoint::SPEC, endpoint))
    }

    /// Leads to an object of the resource in its key.
    fn identity(&self, organization: Uuid, resource: u8, row: &Record) -> Verdict {
        let spec = resources::spec_of_tag(resource).ok_or("it is of no known resource")?;
        let (id, _) = claim::read_claim(&row.value).map_err(detail)?;
        self.must_exist(&key::record(organization, spec, id))
    }

    /// Leads to an invoice that bills what the key names.
    fn billed(&self, organization: Uuid, source: Uuid, row: &Record) -> Verdict {
        let (id, _) = claim::read_claim(&row.value).map_err(detail)?;
        let place = key::record(organization, &invoice::SPEC, id);
        let record = self.find(&place)?.ok_or("its invoice is not there")?;
        let invoice: Invoice = parse(&place, &record.value).map_err(detail)?;
        if invoice.effects().bills.contains(&source) { Ok(()) } else { Err("its invoice does not bill it".into()) }
    }

    fn counter(&mut self, organization: Uuid, row: &Record) -> Verdict {
        if row.revision == 0 {
            return Err("it has no number".into());
        }
        self.organization_exists(organization)
    }
}

fn marker(row: &Record) -> Verdict {
    if row.revision == 0 && row.value.is_empty() { Ok(()) } else { Err("it should be empty".into()) }
}

fn json(row: &Record) -> Verdict {
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
