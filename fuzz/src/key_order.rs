//! Keys of the store: byte order is logical order, and every key can be taken apart again.

use crate::{Pieces, specs};
use rental_core::{
    rows::key,
    schema::{IndexPrefix, ResourceSpec},
    store::{self, Follow, Key},
    value::{Holder, OrganizationId, RentalId, VehicleId},
};
use uuid::Uuid;

struct Place {
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: Uuid,
    vehicle: VehicleId,
    class: u8,
    start: u32,
    millis: u64,
    values: Vec<Vec<u8>>,
}

impl Place {
    /// Few different bytes, so that two places share long heads.
    fn read(pieces: &mut Pieces<'_>) -> Self {
        let mut id = || {
            let [fill, at, byte] = pieces.array::<3>();
            let mut bytes = [if fill & 1 == 0 { 0 } else { 0xff }; 16];
            bytes[usize::from(at) % 16] = byte;
            Uuid::from_bytes(bytes)
        };
        let (organization, id_, vehicle) = (OrganizationId::from_uuid(id()), id(), VehicleId::from_uuid(id()));
        let specs = specs();
        let spec = specs[usize::from(pieces.byte()) % specs.len()];
        let (class, start) = (pieces.byte() % 22, u32::from_be_bytes(pieces.array()));
        let millis = u64::from_be_bytes(pieces.array());
        let values =
            (0..pieces.byte() % 3).map(|_| pieces.array::<3>()[..usize::from(pieces.byte() % 4)].to_vec()).collect();
        Self { organization, spec, id: id_, vehicle, class, start, millis, values }
    }
}

/// Two places are compared as values and as keys.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let (a, b) = (Place::read(&mut pieces), Place::read(&mut pieces));
    let tail = pieces.0;
    let record = |at: &Place| key::record(at.organization, at.spec, at.id);
    let logical = |at: &Place| (at.organization, at.spec.tag, at.id);
    assert_eq!(record(&a).cmp(&record(&b)), logical(&a).cmp(&logical(&b)));
    assert_eq!(record(&a).id(), Some(a.id));
    let hold = |at: &Place| {
        key::hold(at.organization, at.vehicle, at.class, at.start, Holder::Rental(RentalId::from_uuid(at.id)))
    };
    let logical = |at: &Place| (at.organization, at.vehicle, at.class, at.start, at.id);
    assert_eq!(hold(&a).cmp(&hold(&b)), logical(&a).cmp(&logical(&b)));
    assert_eq!(key::hold_parts(&hold(&a)), Some((a.start, Holder::Rental(RentalId::from_uuid(a.id)))));
    assert!(key::holds_from(a.organization, a.vehicle, a.class, a.start) <= hold(&a));
    expiries(&a, &b, tail);
    indexes(&a, &b);
    prefixes(&record(&a), tail);
}

fn expiries(a: &Place, b: &Place, tail: &[u8]) {
    let name: String = tail.iter().map(|byte| char::from(b'!' + byte % 94)).collect();
    let expiry = |at: &Place| key::idempotency_expiry(at.millis, at.organization, &name);
    if a.millis != b.millis {
        assert_eq!(expiry(a).cmp(&expiry(b)), a.millis.cmp(&b.millis), "what expires first comes first");
    }
    assert_eq!(key::idempotency_record_of(&expiry(a)), Some(key::idempotency_record(a.organization, &name)));
    let due = key::idempotency_expiries_until(b.millis);
    assert_eq!(due.from <= expiry(a) && expiry(a) < due.to, a.millis < b.millis);
}

fn indexes(a: &Place, b: &Place) {
    let number = |at: &Place| (1u8 << at.values.len()) - 1;
    let prefix = |at: &Place| {
        let with = |prefix: IndexPrefix, value: &Vec<u8>| prefix.with(value);
        at.values.iter().fold(IndexPrefix::new(number(at)), with).prefix(at.organization, at.spec)
    };
    let entry = key::entry(&prefix(a), a.id);
    let follow = Follow { prefix: key::records(a.organization, a.spec) };
    assert_eq!(follow.target(entry.as_bytes()), Some(key::record(a.organization, a.spec, a.id)));
    assert_eq!(entry.id(), Some(a.id));
    let same = (a.organization, a.spec.tag, &a.values) == (b.organization, b.spec.tag, &b.values);
    let (left, right) = (prefix(a), prefix(b));
    assert_eq!(left.as_bytes().starts_with(right.as_bytes()), same, "other values are another range");
    if same {
        assert_eq!(entry.cmp(&key::entry(&right, b.id)), a.id.cmp(&b.id), "one range is in the order of its ids");
    }
}

fn prefixes(prefix: &Key, tail: &[u8]) {
    let longer = Key::from_bytes(&[prefix.as_bytes(), tail].concat());
    assert!(*prefix <= longer && longer < store::after(prefix));
    let other = Key::from_bytes(tail);
    if !tail.starts_with(prefix.as_bytes()) {
        assert!(other < *prefix || other >= store::after(prefix));
    }
}
