//! The check of rows that are no records: keys, calendars, idempotency, deliveries, secrets, erased people, counters.

use super::{Audit, RowCheck, classes};
use crate::{
    check::{decode::detail, expected::held_by, report::Remedy},
    erasing::{Erasure, ErasureStatus, task_id},
    operations::api_keys,
    resources::{
        self, Resource,
        customer::{self, Customer},
        delivery::Delivery,
        operator::Operator,
        organization::SYSTEM,
        parse,
        row_words::in_words,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::key,
    schema::Hold,
    store::Record,
    value::{DeliveryId, EndpointId, Holder, OrganizationId, VehicleId},
    webhooks::{deletion, secret::Sealed},
};

impl Audit<'_> {
    /// Counts the ways to API keys and operators.
    pub(super) fn access(&mut self, row: &Record) -> RowCheck {
        let hash = row.value.get(..32).and_then(|hash| hash.try_into().ok()).unwrap_or_default();
        let Some((id, rotation)) = api_keys::open_operator_entry(&row.value, &hash) else {
            self.api_keys.1 += 1;
            return Ok(());
        };
        let place = Operator::key(SYSTEM, id);
        let Some(record) = self.find(&place)? else { return Ok(()) };
        let operator: Operator = parse(&place, &record.value).map_err(detail)?;
        self.tokens.1 += u64::from(operator.rotations == rotation);
        Ok(())
    }

    pub(super) fn hold(
        &mut self,
        organization: OrganizationId,
        vehicle: VehicleId,
        holder: Holder,
        row: &Record,
    ) -> RowCheck {
        let object = holder.object();
        let record = self.find(&key::holder(organization, holder))?;
        let record = record.ok_or_else(|| format!("its {object} is not there"))?;
        let held = held_by(holder, &record).map_err(detail)?;
        if held.is_empty() {
            return Err(format!("its {object} holds nothing"));
        }
        let same = |held: &&Hold| held.key(organization) == row.key && held.end.to_be_bytes() == *row.value;
        let held = *held.iter().find(same).ok_or_else(|| format!("its {object} holds other nights"))?;
        let twice = self.nights.add(organization, held);
        self.held_twice(twice);
        let place = key::calendar(organization, vehicle);
        let bits = self.find(&place)?.as_ref().and_then(classes);
        // A bit too many makes a look-up longer. A missing one hides the hold from it.
        match bits.is_some_and(|bits| bits & held.calendar_bit() != 0) {
            true => Ok(()),
            false => Err(format!("{} does not have its length", in_words(&place))),
        }
    }

    /// Checks that a due row is of the endpoint of its delivery. The endpoint may be deleted while a task removes its remaining rows.
    pub(super) fn due(&mut self, endpoint: EndpointId, delivery: DeliveryId, row: &Record) -> RowCheck {
        let organization = OrganizationId::from_slice(&row.value).ok_or("it names no organization")?;
        let place = Delivery::key(organization, delivery);
        let record = self.find(&place)?.ok_or("its delivery is not there")?;
        let delivery: Delivery = parse(&place, &record.value).map_err(detail)?;
        if delivery.endpoint_id != endpoint {
            self.remedy = Remedy::Backup;
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

    pub(super) fn master_key(&mut self, row: &Record) -> RowCheck {
        let in_use = crate::value::read_json(&row.value).map_err(|error| format!("it does not parse: {error}"))?;
        self.report.master_key.in_use = Some(in_use);
        Ok(())
    }

    /// Counts the endpoints whose newest secret only another master key opens. The row of the master key comes before.
    pub(super) fn secrets(&mut self, row: &Record) -> RowCheck {
        let sealed: Sealed =
            crate::value::read_json(&row.value).map_err(|error| format!("they do not parse: {error}"))?;
        let keys = &mut self.report.master_key;
        if sealed.0.is_empty() {
            // A repair of the store leaves this when the secrets were lost.
            keys.unreadable += 1;
        } else if let (Some(in_use), Some(key)) = (&keys.in_use, sealed.0.first().map(|newest| &newest.key))
            && in_use.current != *key
            && in_use.former.as_ref() != Some(key)
        {
            keys.unreadable += 1;
        }
        Ok(())
    }

    /// Checks that a customer on the list of erased people is erased. A customer who is not in this store stays on the list.
    pub(super) fn erased(&mut self, organization: OrganizationId, resource: u8, row: &Record) -> RowCheck {
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
}
