//! Repairs of what the deletion of an organization leaves.

use crate::{
    sound::{NOW, repaired, rows, store},
    stores::{everything, same, wait},
};
use rental_core::{
    check::repair::Action,
    erasing::Erasure,
    resources::lead,
    rows::key,
    value::{CustomerId, OrganizationId},
};
use uuid::Uuid;

const GONE: OrganizationId = OrganizationId::from_u128(0x77);

#[test]
fn marks_of_erased_customers_go_with_the_last_record_of_their_organization() {
    let mark = Erasure::new(GONE, CustomerId::from_u128(8), NOW);
    let with_mark = || {
        let mut rows = rows().clone();
        rows.insert(mark.key(), (1, serde_json::to_vec(&mark).unwrap().into()));
        rows
    };
    let alone = store(&with_mark());
    let made = repaired(&alone);
    assert_eq!(made.left.listed, []);
    assert_eq!(made.changes.keys().collect::<Vec<_>>(), [&mark.key()]);
    same(&wait(everything(&alone)), rows(), "the store without the mark");

    // A record that is removed does not count.
    let lead = key::record(GONE, &lead::SPEC, Uuid::from_u128(9));
    let mut with_damaged = with_mark();
    with_damaged.insert(lead.clone(), (1, "?".into()));
    let made = repaired(&store(&with_damaged));
    assert_eq!(made.left.listed, []);
    assert!(made.changes.values().all(|change| change.action == Action::Remove));

    // The record of the organization is lost, and a restore can bring it back.
    let mut with_lead = with_mark();
    let json = format!(
        r#"{{"id":"{}","object":"lead","source_channel":"api","customer_id":null,"raw_data":null,"status":"NEW","created_at":"{NOW}","updated_at":"{NOW}"}}"#,
        Uuid::from_u128(9)
    );
    with_lead.insert(lead, (1, json.into()));
    let kept = store(&with_lead);
    repaired(&kept);
    assert!(wait(everything(&kept)).contains_key(&mark.key()));
}
