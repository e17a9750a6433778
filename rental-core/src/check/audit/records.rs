//! The check of records, of their index entries, and of what invoices bill.

use super::{Audit, RowCheck};
use crate::{
    check::{decode::detail, expected::expected_keys, report::Remedy},
    resources::{
        self, Resource, api_key,
        assignment::{self, VehicleAssignments},
        credit_note::{self, CreditNote},
        invoice::{self, Invoice},
        operator, parse,
        row_words::in_words,
        series_of,
        vehicle::Vehicle,
    },
    rows::key,
    schema::ResourceSpec,
    store::Record,
    value::{Money, OrganizationId},
};
use serde::Deserialize;
use uuid::Uuid;

impl Audit<'_> {
    pub(super) fn record(&mut self, organization: OrganizationId, resource: u8, id: Uuid, record: &Record) -> RowCheck {
        let spec = resources::spec_of_tag(resource).ok_or("no record lies at such a key")?;
        let expected = expected_keys(organization, spec, id, &record.value).map_err(detail)?;
        self.count(organization, spec, record)?;
        self.organization_exists(organization)?;
        expected.iter().try_for_each(|key| self.must_exist(key))?;
        if spec.tag == assignment::SPEC.tag {
            self.remedy = Remedy::Decision;
            return self.assignments(organization, record);
        }
        self.remedy = Remedy::Backup;
        self.bills(organization, spec, record)
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
        let number = series.number_of(&record.value);
        self.count_numbered(Some((organization, series.counter)), number.unwrap_or(0));
        let counter = self.counter_of(organization, series.counter)?;
        match number {
            Some(number) if (1..=counter).contains(&number) => Ok(()),
            Some(number) => Err(format!("its number is {number}, but the counter stands at {counter}")),
            None => Err("it has no number".into()),
        }
    }

    /// Counts one numbered object of the organization and counter `now`. When they change, checks the previous count.
    pub(super) fn count_numbered(&mut self, now: Option<(OrganizationId, &'static str)>, number: u64) {
        match (&mut self.numbered, now) {
            (Some((place, count, highest)), Some(now)) if *place == now => {
                *count += 1;
                *highest = number.max(*highest);
            }
            _ => {
                let before = std::mem::replace(&mut self.numbered, now.map(|now| (now, 1, number)));
                let Some(((organization, name), count, highest)) = before.filter(|_| !self.gaps) else { return };
                match self.counter_of(organization, name) {
                    Ok(counter) if counter == count => {}
                    Ok(counter) => {
                        let found = counted(count, name);
                        let what = format!("it has {found}, but the counter stands at {counter}");
                        let remedy = match () {
                            () if count < counter => Remedy::Gone,
                            // A number that was given twice.
                            () if highest <= counter => Remedy::Backup,
                            () => Remedy::Repair,
                        };
                        self.report.add(format!("organization {organization}"), what, remedy);
                    }
                    Err(what) => self.report.add(format!("organization {organization}"), what, Remedy::Repair),
                }
            }
        }
    }

    fn counter_of(&self, organization: OrganizationId, name: &str) -> Result<u64, String> {
        Ok(self.find(&key::counter(organization, name))?.map_or(0, |record| record.revision))
    }

    pub(super) fn index_entry(&self, organization: OrganizationId, resource: u8, id: Uuid, entry: &Record) -> RowCheck {
        let spec = resources::spec_of_tag(resource).ok_or("it points at no record of a known resource")?;
        let record = self.find(&key::record(organization, spec, id))?.ok_or("its record is not there")?;
        let expected = expected_keys(organization, spec, id, &record.value).map_err(detail)?;
        if expected.contains(&entry.key) { Ok(()) } else { Err("its record has other values".into()) }
    }

    /// Checks that what an invoice bills lists it, that what it says of its credit notes is true, and that the invoice of a credit note
    /// lists it. What is damaged or gone is a problem of its own.
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
        if spec.tag != invoice::SPEC.tag {
            return Ok(());
        }
        let invoice: Invoice = parse(&record.key, &record.value).map_err(detail)?;
        #[derive(Deserialize)]
        struct Billed {
            invoice_ids: Vec<Uuid>,
        }
        for source in invoice.sources() {
            let place = source.key(organization);
            let Ok(Some(source)) = self.find(&place) else { continue };
            let billed: Result<Billed, _> = crate::value::read_json(&source.value);
            if billed.is_ok_and(|billed| !billed.invoice_ids.contains(&invoice.id.uuid())) {
                return Err(format!("it bills {}, which does not list it", in_words(&place)));
            }
        }
        self.credits(organization, &invoice)
    }

    /// Checks that the credit notes of an invoice credit what it says: no more, when one of them is not there. An import keeps such
    /// an invoice when its file has lost a credit note; of a lost record of this store the index tells.
    fn credits(&self, organization: OrganizationId, invoice: &Invoice) -> RowCheck {
        let (mut sum, mut all) = (Money::default(), true);
        for id in &invoice.credit_note_ids {
            let place = CreditNote::key(organization, *id);
            let Ok(found) = self.find(&place) else { return Ok(()) };
            let Some(found) = found else {
                all = false;
                continue;
            };
            let Ok(note) = parse::<CreditNote>(&place, &found.value) else { return Ok(()) };
            sum = sum.plus(note.total.unwrap_or_default()).unwrap_or(Money::MAX);
        }
        if sum == invoice.amount_credited || (!all && sum < invoice.amount_credited) {
            return Ok(());
        }
        Err(format!("its `amount_credited` is {}, but its credit notes credit {sum}", invoice.amount_credited))
    }
}

/// So many of what a counter counts: `2 credit notes`.
fn counted(count: u64, name: &str) -> String {
    let name = if count == 1 { name.trim_end_matches('s') } else { name };
    format!("{count} {}", name.replace('_', " "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_is_no_plural() {
        let counted =
            [(1, "credit_notes"), (0, "credit_notes"), (2, "invoices")].map(|(n, name)| super::counted(n, name));
        assert_eq!(counted, ["1 credit note", "0 credit notes", "2 invoices"]);
    }
}
