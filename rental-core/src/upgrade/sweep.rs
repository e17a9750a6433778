//! The sweep: removes derived rows of an organization that belong to none of its records, and raises what is at least as high as
//! its records say: the counters of its numbers, and the calendars of its vehicles.

use super::{
    derive,
    marker::Phase,
    state::{UpgradeError, yield_to_other_tasks},
    walk::{Upgrade, owner, parts},
    window::Window,
};
use crate::{
    resources::spec_of_tag,
    rows::{Row, Tag, key},
    schema::Hold,
    store::{Key, Order, Pages, Prior, Record, Scanned, Span, Store, after, get_each, key_of, move_behind},
    value::OrganizationId,
};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Rows in one scan.
const PAGE: usize = 1000;

impl Upgrade<'_> {
    /// Adds the next removals to the window; returns true at the end of the last sweep.
    pub(super) async fn sweep(&mut self, window: &mut Window) -> Result<bool, UpgradeError> {
        if self.marker.stale.is_empty() {
            self.raise_counters(window).await?;
            self.marker.stale = self.stale(window).await?;
        }
        while let Some(group) = self.marker.stale.first().cloned() {
            if !self.remove_stale(&group, window).await? {
                return Ok(false);
            }
            self.marker.stale.remove(0);
            self.marker.resume_at = None;
        }
        let ended = self.marker.organization.is_none();
        self.marker.swept = self.marker.organization.take().or(self.marker.swept);
        self.marker.expected.clear();
        self.marker.numbers.clear();
        self.marker.damage_here = false;
        self.pending.clear();
        self.marker.phase = Phase::Records;
        Ok(ended)
    }

    /// The spans of derived rows from the end of the last sweep up to and including the present organization.
    fn ranges(&self) -> Vec<Span> {
        let at = |tag: Tag, organization: OrganizationId| {
            Key::from_bytes(&[&[tag as u8][..], organization.as_bytes()].concat())
        };
        let range = |tag: Tag| {
            let whole = Key::from_bytes(&[tag as u8]);
            let from = self.marker.swept.map_or_else(|| whole.clone(), |swept| after(&at(tag, swept)));
            let to = self.marker.organization.map_or_else(|| after(&whole), |own| after(&at(tag, own)));
            Span { from, to, order: Order::Ascending, follow: None }
        };
        derive::DERIVED_TAGS.into_iter().map(range).collect()
    }

    /// The prefixes whose number of rows differs from the expected one. Adds the lengths of all holds to the window that calendars lack.
    async fn stale(&mut self, window: &mut Window) -> Result<Vec<String>, UpgradeError> {
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        let is_leaving = self.is_leaving().await?;
        let (spans, mut lengths) = (self.ranges(), BTreeMap::new());
        let is_here = |key: &Key| spans.iter().any(|span| (&span.from..&span.to).contains(&key));
        let mut new: BTreeMap<Key, u32> = BTreeMap::new();
        for (calendar, bit) in
            window.puts().filter(|(key, _)| is_here(key)).filter_map(|(key, value)| length(key, value))
        {
            *new.entry(calendar).or_default() |= bit;
        }
        for span in spans {
            let mut pages = Pages::of(&self.store, span, PAGE);
            while let Some(page) = pages.next().await? {
                yield_to_other_tasks().await;
                for row in &page {
                    *counted.entry(derive::group(key_of(row))).or_default() += 1;
                    if let Some((calendar, bit)) =
                        row.as_ref().ok().filter(|_| !is_leaving).and_then(|row| length(&row.key, &row.value))
                    {
                        let bits = lengths
                            .entry(calendar)
                            .or_insert_with_key(|calendar| new.remove(calendar).unwrap_or_default());
                        *bits |= bit;
                    }
                }
                // The holds of the last vehicle can go on.
                let last = lengths.pop_last();
                raise_calendars(&self.store, window, std::mem::take(&mut lengths)).await?;
                lengths.extend(last);
            }
        }
        lengths.extend(new);
        raise_calendars(&self.store, window, lengths).await?;
        counted.retain(|group, count| {
            let expected = self.marker.expected.get(group).copied().unwrap_or_default();
            let pending = self.pending.get(group).copied().unwrap_or_default();
            *count + pending != expected
        });
        Ok(counted.into_keys().collect())
    }

    /// A counter below a number would give the number again.
    async fn raise_counters(&mut self, window: &mut Window) -> Result<(), UpgradeError> {
        let Some(organization) = self.marker.organization else { return Ok(()) };
        for (name, highest) in &self.marker.numbers {
            let key = key::counter(organization, name);
            let found = get_each(&self.store, std::slice::from_ref(&key)).await?.pop();
            if let Some(Ok(row)) = found
                && row.is_none_or(|row| row.revision < *highest)
            {
                window.put(key, *highest, Bytes::new(), Prior::Any);
            }
        }
        Ok(())
    }

    /// Removes rows of one prefix that belong to no record; returns false when the window is full.
    async fn remove_stale(&mut self, group: &str, window: &mut Window) -> Result<bool, UpgradeError> {
        let prefix = Key::from_bytes(&hex::decode(group).unwrap_or_default());
        let mut span = Span { to: after(&prefix), from: prefix, order: Order::Ascending, follow: None };
        if let Some(at) = &self.marker.resume_at {
            span.from = Key::from_bytes(&hex::decode(at).unwrap_or_default());
        }
        // If no record has rows with this prefix and no record is damaged, all of these rows are stale. A walk from the present version
        // looks at each of them, because a server that has the store open can write rows during the walk.
        let is_fenced = self.marker.from != self.marker.to;
        let unknown = is_fenced && !self.marker.expected.contains_key(group) && !self.marker.damage_here;
        while !window.is_full() {
            let Some(page) = self.next_page(&mut span).await? else { return Ok(true) };
            self.marker.resume_at = Some(hex::encode(span.from.as_bytes()));
            let keys: Vec<Key> = page.iter().map(|row| key_of(row).clone()).collect();
            let stale = if unknown { keys } else { self.without_record(keys).await? };
            stale.into_iter().for_each(|key| window.delete(key));
        }
        Ok(false)
    }

    /// The next rows of a span, which is moved behind them; `None` at its end.
    pub(super) async fn next_page(&mut self, span: &mut Span) -> Result<Option<Vec<Scanned>>, UpgradeError> {
        yield_to_other_tasks().await;
        let page = self.store.scan(span, PAGE).await?;
        if page.is_empty() {
            return Ok(None);
        }
        move_behind(span, &page);
        Ok(Some(page))
    }

    /// The keys whose record does not exist or does not have this row. Rows of a damaged record are kept.
    async fn without_record(&mut self, keys: Vec<Key>) -> Result<Vec<Key>, UpgradeError> {
        let mut stale = Vec::new();
        let (pointing, nowhere): (Vec<_>, Vec<_>) =
            keys.into_iter().map(|key| (target(&key), key)).partition(|(target, _)| target.is_some());
        stale.extend(nowhere.into_iter().map(|(_, key)| key));
        let targets: Vec<Key> = pointing.iter().filter_map(|(target, _)| target.clone()).collect();
        for (found, (_, key)) in get_each(&self.store, &targets).await?.into_iter().zip(pointing) {
            let kept = match found {
                Ok(Some(record)) => self.has(&record, &key).await?,
                Ok(None) => false,
                Err(_) => true,
            };
            if !kept {
                stale.push(key);
            }
        }
        Ok(stale)
    }

    /// Whether a derived row belongs to this record. For a record that does not parse the result is true.
    async fn has(&mut self, record: &Record, key: &Key) -> Result<bool, UpgradeError> {
        let Some((spec, id)) = parts(&record.key) else { return Ok(true) };
        let organization = owner(&record.key);
        self.load(organization).await?;
        let rows = self.apply(organization, spec, id, record.clone());
        Ok(rows.map_or(true, |lifted| lifted.rows.derived.iter().any(|(own, _)| own == key)))
    }
}

/// A length that is missing in a calendar hides the hold from those who look for free nights. One too many does no harm.
async fn raise_calendars(
    store: &dyn Store,
    window: &mut Window,
    lengths: BTreeMap<Key, u32>,
) -> Result<(), UpgradeError> {
    let keys: Vec<Key> = lengths.keys().cloned().collect();
    for ((key, bits), found) in lengths.into_iter().zip(get_each(store, &keys).await?) {
        let (revision, present) = match &found {
            Ok(Some(row)) => (row.revision, row.value.as_ref().try_into().map(u32::from_be_bytes).ok()),
            Ok(None) => (0, None),
            Err(_) => continue,
        };
        let raised = present.unwrap_or_default() | bits;
        if present != Some(raised) {
            window.put(key, revision + 1, Bytes::copy_from_slice(&raised.to_be_bytes()), Prior::Any);
        }
    }
    Ok(())
}

/// The calendar of the vehicle of a hold, and the bit of its length there.
fn length(key: &Key, value: &[u8]) -> Option<(Key, u32)> {
    let Some(Row::Hold { organization, vehicle, holder, start, .. }) = Row::decode(key) else { return None };
    let end = u32::from_be_bytes(value.try_into().ok()?);
    let hold = Hold::nights(vehicle, holder, (start, end))?;
    Some((key::calendar(organization, vehicle), hold.calendar_bit()))
}

/// The record that a derived row belongs to.
fn target(key: &Key) -> Option<Key> {
    let bytes = key.as_bytes();
    let organization = OrganizationId::from_slice(bytes.get(1..17)?)?;
    match Tag::of(*bytes.first()?)? {
        Tag::Hold => Some(key::holder(organization, key::hold_parts(key)?.1)),
        _ => Some(key::record(organization, spec_of_tag(*bytes.get(17)?)?, key.id()?)),
    }
}
