//! What counts for the quotas of an organization.

use super::RESOURCES;
use crate::{rows::Tag, store::Share};
use uuid::Uuid;

/// By the first byte of a key: whether it begins with an organization.
const IS_OWNED: [bool; 256] = {
    let (mut owned, mut at) = ([false; 256], 0);
    while at < Tag::ALL.len() {
        owned[Tag::ALL[at] as usize] = Tag::ALL[at].is_owned();
        at += 1;
    }
    owned
};

/// By the tag of a resource: whether an export has it. What the server itself makes, such as events, is no object.
const IS_OBJECT: [bool; 256] = {
    let (mut objects, mut at) = ([false; 256], 0);
    while at < RESOURCES.len() {
        objects[RESOURCES[at].spec.tag as usize] = RESOURCES[at].porter.is_some();
        at += 1;
    }
    objects
};

/// The organization of a row whose key begins with one, and whether the row is an object. Rows of the operator have no share.
#[must_use]
pub fn share_of(key: &[u8]) -> Option<Share> {
    let (tag, rest) = key.split_first()?;
    if !IS_OWNED[usize::from(*tag)] {
        return None;
    }
    let (owner, rest) = rest.split_first_chunk()?;
    let owner = Uuid::from_bytes(*owner);
    let is_object = *tag == Tag::Record as u8 && rest.first().is_some_and(|resource| IS_OBJECT[usize::from(*resource)]);
    (!owner.is_nil()).then_some(Share { owner, is_object })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::{event, organization, vehicle},
        rows::{Row, key},
        store::Key,
        value::OrganizationId,
    };

    #[test]
    fn every_kind_whose_rows_name_their_organization_first_is_counted_and_no_other() {
        let organization = OrganizationId::from_u128(7);
        for tag in Tag::ALL {
            let keys =
                (0..64).map(|rest| Key::from([&[*tag as u8], &organization.as_bytes()[..], &vec![0; rest]].concat()));
            // Of the lengths, those that are a row of this kind.
            let names = |key: &Key| Row::decode(key).is_some_and(|row| row.organization() == Some(organization));
            let (named, others): (Vec<Key>, Vec<Key>) = keys.partition(names);
            match named.is_empty() {
                true => assert!(others.iter().all(|key| share_of(key.as_bytes()).is_none()), "{tag:?}"),
                false => assert!(named.iter().all(|key| share_of(key.as_bytes()).is_some()), "{tag:?}"),
            }
        }
        let counter = Row::Counter { organization, name: "invoices" }.encode();
        assert_eq!(share_of(counter.as_bytes()), Some(Share { owner: organization.uuid(), is_object: false }));
    }

    #[test]
    fn what_clients_make_is_an_object_and_what_the_server_makes_is_not() {
        let (organization, id) = (OrganizationId::from_u128(7), Uuid::from_u128(8));
        let is_object = |spec| share_of(key::record(organization, spec, id).as_bytes()).map(|share| share.is_object);
        assert_eq!(is_object(&vehicle::SPEC), Some(true));
        assert_eq!(is_object(&event::SPEC), Some(false));
        assert_eq!(share_of(key::record(organization::SYSTEM, &organization::SPEC, id).as_bytes()), None);
        assert_eq!(share_of(b""), None);
        assert_eq!(share_of(b"r123"), None);
    }
}
