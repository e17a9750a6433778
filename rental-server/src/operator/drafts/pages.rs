//! The list of drafts, page by page. It has two parts: the rentals that have an entry in the look-up of unbilled ones, and then
//! customer by customer the other completed rentals of which a toll or violation is unbilled, and what belongs to no rental.
//!
//! A rental with more than an invoice can have is listed as often as it needs invoices. The cursor says where the page ended,
//! by what it listed and not by a count. So it holds while a client creates the invoices of each page before it asks for the next.

use super::{
    draft::{Billed, draft},
    unbilled::{Charge, Place, Unbilled, Wanted, probes},
};
use rental_core::{
    error::{Error, FieldCode},
    operations::{self, Listed},
    request::page,
    resources::{
        Resource,
        customer::{self, Customer},
        organization::Organization,
        parse,
        rental::{self, Rental, RentalStatus, unbilled_look_up},
    },
    rows::key,
    store::{DamagedRow, Span, Store, get_each, get_one},
    value::{CustomerId, RentalId},
};
use serde_json::{Value, json};
use std::{cmp::Reverse, collections::HashMap};
use uuid::Uuid;

/// Customers whose unbilled tolls and violations are looked for in one read.
const CUSTOMERS: usize = 500;
/// Most reads of customers for one page.
const MOST_READS: usize = 4;
/// A page ends when it has read so many objects.
const ENOUGH: usize = 20_000;

/// Why a draft of no rental is not billed by itself.
const OF_NO_RENTAL: &str = "The customer had no rental then. Make an invoice of the customer with `with_tolls` and \
     `with_violations`, or attach it to somebody else.";

/// Where a page ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cursor {
    /// Among the rentals of the look-up: behind a rental, or behind an item of it.
    Rental(Uuid, Option<Place>),
    /// Behind a customer; `None` is before the first one.
    Customer(Option<Uuid>),
    /// Behind a rental of a customer, or behind an item of it.
    Within(Uuid, Uuid, Option<Place>),
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, Error> {
        let place = |text: &str| {
            let (kind, id) = text.split_at_checked(1)?;
            let kind = match kind {
                "t" => Charge::Toll,
                "v" => Charge::Violation,
                _ => return None,
            };
            Some((kind, Reverse(page::id(id)?)))
        };
        let parts: Vec<&str> = text.split('.').collect();
        let cursor = match parts[..] {
            ["customers"] => Some(Self::Customer(None)),
            ["customers", customer] => page::id(customer).map(|customer| Self::Customer(Some(customer))),
            ["customers", customer, rental] => {
                page::id(customer).zip(page::id(rental)).map(|(customer, rental)| Self::Within(customer, rental, None))
            }
            ["customers", customer, rental, item] => page::id(customer)
                .zip(page::id(rental))
                .zip(place(item))
                .map(|((customer, rental), item)| Self::Within(customer, rental, Some(item))),
            [rental] => page::id(rental).map(|rental| Self::Rental(rental, None)),
            [rental, item] => page::id(rental).zip(place(item)).map(|(rental, item)| Self::Rental(rental, Some(item))),
            _ => None,
        };
        let rule = "must be the `next_cursor` of an earlier page";
        cursor.ok_or_else(|| Error::field("starting_after", FieldCode::Invalid, rule))
    }

    fn text(self) -> String {
        let item = |item: Option<Place>| {
            let letter = |kind| if kind == Charge::Toll { "t" } else { "v" };
            item.map(|(kind, Reverse(id))| format!(".{}{id}", letter(kind))).unwrap_or_default()
        };
        match self {
            Self::Rental(rental, place) => format!("{rental}{}", item(place)),
            Self::Customer(None) => "customers".into(),
            Self::Customer(Some(customer)) => format!("customers.{customer}"),
            Self::Within(customer, rental, place) => format!("customers.{customer}.{rental}{}", item(place)),
        }
    }
}

/// A page of drafts. One that needs a damaged row is left out.
pub(super) async fn page_of(
    store: &dyn Store,
    organization: &Organization,
    limit: usize,
    after: Option<&str>,
) -> Result<Listed, Error> {
    let after = after.map(Cursor::parse).transpose()?;
    let mut page = Page {
        store,
        organization,
        limit,
        rows: Vec::new(),
        damaged: Vec::new(),
        read: 0,
        listed: Vec::new(),
        known: HashMap::new(),
    };
    let next = match after {
        None | Some(Cursor::Rental(..)) => match page.priced(after).await? {
            None => page.rest(Cursor::Customer(None)).await?,
            next => next,
        },
        Some(after) => page.rest(after).await?,
    };
    let Page { rows, mut damaged, .. } = page;
    // Both parts of the list can need the same row.
    damaged.sort_by(|one, other| one.key.cmp(&other.key));
    damaged.dedup_by(|one, other| one.key == other.key);
    let next = next.map(Cursor::text);
    let list = json!({"object": "list", "has_more": next.is_some(), "next_cursor": next, "data": rows});
    Ok(Listed { body: list.to_string().into(), damaged })
}

/// A page that is being made.
struct Page<'a> {
    store: &'a dyn Store,
    organization: &'a Organization,
    limit: usize,
    rows: Vec<Value>,
    damaged: Vec<DamagedRow>,
    read: usize,
    /// The rentals of the look-up on this page. Their invoices may be created before the next page is asked for, but not before
    /// this one is made.
    listed: Vec<RentalId>,
    /// What is known of customers: their names, and what is unbilled of them.
    known: HashMap<CustomerId, (Value, Unbilled)>,
}

impl Page<'_> {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.limit || self.read >= ENOUGH
    }

    /// Adds the drafts of the rentals that have an entry in the look-up, newest first. Returns where the page ends, and `None`
    /// when it goes on with the customers.
    async fn priced(&mut self, after: Option<Cursor>) -> Result<Option<Cursor>, Error> {
        let organization = self.organization.id;
        let look_up = unbilled_look_up();
        let mut span = look_up.span(organization, &rental::SPEC);
        if let Some(Cursor::Rental(id, item)) = after {
            span = span.before_id(&look_up.prefix(organization, &rental::SPEC), id);
            // The first invoice may have billed the rental, so that it has no entry any more.
            if item.is_some() {
                let found = get_one(self.store, &Rental::key(organization, RentalId::from_uuid(id))).await;
                let rental = found
                    .map_err(Error::from)
                    .and_then(|found| found.map(|record| parse::<Rental>(&record.key, &record.value)).transpose());
                if let Some(rental) = Error::note_damage(rental, &mut self.damaged)?.flatten() {
                    self.listed.push(rental.id);
                    if let Some(item) = self.add(&rental, item).await? {
                        return Ok(Some(Cursor::Rental(id, Some(item))));
                    }
                }
            }
            if self.is_full() {
                return Ok(Some(Cursor::Rental(id, None)));
            }
        }
        let room = self.limit.saturating_sub(self.rows.len());
        let (mut found, mut damaged) = operations::sound_page(self.store, &span, room).await?;
        self.damaged.append(&mut damaged);
        let has_more = found.len() > room;
        found.truncate(room);
        let mut last = None;
        for record in &found {
            let Some(id) = record.key.id() else { continue };
            if last.is_some() && self.is_full() {
                return Ok(last.map(|last| Cursor::Rental(last, None)));
            }
            last = Some(id);
            let rental = Error::note_damage(parse::<Rental>(&record.key, &record.value), &mut self.damaged)?;
            let Some(rental) = rental else { continue };
            self.listed.push(rental.id);
            if let Some(item) = self.add(&rental, None).await? {
                return Ok(Some(Cursor::Rental(id, Some(item))));
            }
        }
        match last {
            Some(last) if has_more => Ok(Some(Cursor::Rental(last, None))),
            _ if self.is_full() => Ok(Some(Cursor::Customer(None))),
            _ => Ok(None),
        }
    }

    /// Adds the drafts of other rentals, customer by customer. Returns where the page ends, and `None` at the end of the list.
    async fn rest(&mut self, after: Cursor) -> Result<Option<Cursor>, Error> {
        let organization = self.organization;
        let mut behind = match after {
            Cursor::Customer(customer) => customer,
            Cursor::Within(customer, rental, item) => {
                let end = self.of_customer(CustomerId::from_uuid(customer), Some((rental, item))).await?;
                if end.is_some() {
                    return Ok(end);
                }
                Some(customer)
            }
            Cursor::Rental(..) => None,
        };
        let prefix = key::records(organization.id, &customer::SPEC);
        for _ in 0..MOST_READS {
            if self.is_full() {
                break;
            }
            let mut span = Span::newest_first(&prefix);
            if let Some(customer) = behind {
                span = span.before_id(&prefix, customer);
            }
            let (mut found, mut damaged) = operations::sound_page(self.store, &span, CUSTOMERS).await?;
            self.damaged.append(&mut damaged);
            let has_more = found.len() > CUSTOMERS;
            found.truncate(CUSTOMERS);
            let customers: Vec<Uuid> = found.iter().filter_map(|record| record.key.id()).collect();
            let mut scans = Vec::with_capacity(2 * customers.len());
            for id in &customers {
                scans.extend(probes(organization, CustomerId::from_uuid(*id))?.map(|span| (span, 1)));
            }
            let entries = self.store.scan_each(&scans).await?;
            for (id, entries) in customers.into_iter().zip(entries.chunks(2)) {
                if entries.iter().any(|found| !found.is_empty()) {
                    if self.is_full() {
                        return Ok(Some(Cursor::Customer(behind)));
                    }
                    let end = self.of_customer(CustomerId::from_uuid(id), None).await?;
                    if end.is_some() {
                        return Ok(end);
                    }
                }
                behind = Some(id);
            }
            if !has_more {
                return Ok(None);
            }
        }
        Ok(Some(Cursor::Customer(behind)))
    }

    /// Adds the drafts of the rentals of one customer that have no entry in the look-up. Returns where the page ends, if it is full.
    async fn of_customer(
        &mut self,
        customer: CustomerId,
        after: Option<(Uuid, Option<Place>)>,
    ) -> Result<Option<Cursor>, Error> {
        let known = self.know(customer).await;
        if Error::note_damage(known, &mut self.damaged)?.is_none() {
            return Ok(None);
        }
        let mut rentals = self.known.get(&customer).map(|(_, unbilled)| unbilled.rentals()).unwrap_or_default();
        let (mut last, mut item) = (None, None);
        if let Some((rental, place)) = after {
            item = place;
            rentals.retain(|id| id.uuid() < rental || (id.uuid() == rental && item.is_some()));
            last = Some(rental);
        }
        for ids in rentals.chunks(100) {
            let keys: Vec<_> = ids.iter().map(|id| Rental::key(self.organization.id, *id)).collect();
            for (id, found) in ids.iter().zip(get_each(self.store, &keys).await?) {
                if let Some(last) = last.filter(|_| self.rows.len() >= self.limit) {
                    return Ok(Some(Cursor::Within(customer.uuid(), last, None)));
                }
                let item = item.take().filter(|_| last == Some(id.uuid()));
                last = Some(id.uuid());
                let rental = found
                    .map_err(Error::Damaged)
                    .and_then(|found| found.map(|record| parse::<Rental>(&record.key, &record.value)).transpose());
                let Some(rental) = Error::note_damage(rental, &mut self.damaged)?.flatten() else { continue };
                let is_listed = rental.awaits_invoice() || self.listed.contains(id);
                if rental.status != RentalStatus::Completed || rental.customer_id != customer || is_listed {
                    continue;
                }
                if let Some(item) = self.add(&rental, item).await? {
                    return Ok(Some(Cursor::Within(customer.uuid(), id.uuid(), Some(item))));
                }
            }
        }
        if let Some(last) = last.filter(|_| self.rows.len() >= self.limit) {
            return Ok(Some(Cursor::Within(customer.uuid(), last, None)));
        }
        let added = self.try_add_rest(customer).await;
        Error::note_damage(added, &mut self.damaged)?;
        Ok(None)
    }

    /// Adds what belongs to no rental of a customer, as a draft that a person has to decide about.
    async fn try_add_rest(&mut self, customer: CustomerId) -> Result<(), Error> {
        let Some((name, unbilled)) = self.known.get(&customer) else { return Ok(()) };
        let items = unbilled.of(None);
        if items.is_empty() {
            return Ok(());
        }
        let of = Billed { customer, rental: None };
        let (mut draft, used) = draft(self.store, self.organization, of, items, false).await?;
        draft.is_cut = used < items.len() || unbilled.is_cut;
        draft.problem = draft.problem.or(Some(OF_NO_RENTAL));
        self.rows.push(draft.row(of, self.organization, name));
        Ok(())
    }

    /// Adds the drafts of one rental, from an item on. Returns the last item when the page is full before all are added.
    async fn add(&mut self, rental: &Rental, after: Option<Place>) -> Result<Option<Place>, Error> {
        let added = self.try_add(rental, after).await;
        Ok(Error::note_damage(added, &mut self.damaged)?.flatten())
    }

    async fn try_add(&mut self, rental: &Rental, after: Option<Place>) -> Result<Option<Place>, Error> {
        self.know(rental.customer_id).await?;
        let Some((name, unbilled)) = self.known.get(&rental.customer_id) else { return Ok(None) };
        let mut items = unbilled.of(Some(rental.id));
        let mut is_first = true;
        if let Some(after) = after {
            items = &items[items.partition_point(|item| item.place <= after)..];
            is_first = false;
        }
        while is_first || !items.is_empty() {
            let (mut draft, used) =
                draft(self.store, self.organization, Billed::rental(rental), items, is_first).await?;
            let (these, others) = items.split_at(used);
            items = others;
            is_first = false;
            draft.is_cut = !items.is_empty() || unbilled.is_cut;
            let is_refused = draft.problem.is_some();
            self.rows.push(draft.row(Billed::rental(rental), self.organization, name));
            if is_refused {
                break;
            }
            if let Some(last) = these.last().filter(|_| !items.is_empty() && self.rows.len() >= self.limit) {
                return Ok(Some(last.place));
            }
        }
        Ok(None)
    }

    /// Reads what is not known yet of a customer.
    async fn know(&mut self, id: CustomerId) -> Result<(), Error> {
        if self.known.contains_key(&id) {
            return Ok(());
        }
        let found = get_one(self.store, &Customer::key(self.organization.id, id)).await?;
        let found = found.map(|record| parse::<Customer>(&record.key, &record.value)).transpose()?;
        let unbilled = Unbilled::read(self.store, self.organization, id, Wanted::All).await?;
        self.read += unbilled.read;
        self.known.insert(id, (json!(found.map(|customer| customer.full_name)), unbilled));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_wrote_and_refuses_all_else() {
        let [one, other, item] = [1, 2, 3].map(Uuid::from_u128);
        for cursor in [
            Cursor::Rental(one, None),
            Cursor::Rental(one, Some((Charge::Toll, Reverse(item)))),
            Cursor::Customer(None),
            Cursor::Customer(Some(one)),
            Cursor::Within(one, other, None),
            Cursor::Within(one, other, Some((Charge::Violation, Reverse(item)))),
        ] {
            assert_eq!(Cursor::parse(&cursor.text()).ok(), Some(cursor), "{}", cursor.text());
        }
        let id = one.to_string();
        for text in
            ["", "x", "customers.", &format!("{id}."), &format!("{id}.x{id}"), &format!("customers.{id}.{id}.t{id}.t")]
        {
            assert!(Cursor::parse(text).is_err(), "{text}");
        }
    }
}
