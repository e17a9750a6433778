//! Moves the outbox rows of versions 2 to 4. Their keys have no organization; since version 5 it comes before the event.

use super::{state::UpgradeError, walk::Upgrade, window::Window};
use crate::{
    rows::key,
    store::{Key, Prior, Record, get_each},
    value::{EventId, OrganizationId},
};

/// Bytes of an old key: tag and event.
const OLD_KEY: usize = 1 + 16;

impl Upgrade<'_> {
    /// Adds the next moves to the window; returns true after the last one. A damaged row stays where it is.
    ///
    /// A window can be several batches. So the new rows of a page are written first, and its old rows are removed in a later
    /// window, when the new ones are there: a crash loses no event.
    pub(super) async fn move_outbox_rows(&mut self, window: &mut Window) -> Result<bool, UpgradeError> {
        let mut span = key::outbox_rows();
        if let Some(at) = &self.marker.resume_at {
            span.from = Key::from_bytes(&hex::decode(at).unwrap_or_default());
        }
        while !window.is_full() {
            let Some(page) = self.next_page(&mut span).await? else { return Ok(true) };
            let (old, new): (Vec<Record>, Vec<Key>) =
                page.into_iter().flatten().filter_map(|row| new_key(&row).map(|key| (row, key))).unzip();
            let found = get_each(&self.store, &new).await?;
            if found.iter().any(|found| matches!(found, Ok(None))) {
                for (row, key) in old.iter().zip(new) {
                    window.put(key, row.revision, row.value.clone(), Prior::Any);
                }
                // A trial writes nothing, so it would never find them.
                if !self.is_trial() {
                    window.close();
                    return Ok(false);
                }
            }
            old.into_iter().for_each(|row| window.delete(row.key));
            self.marker.resume_at = Some(hex::encode(span.from.as_bytes()));
        }
        Ok(false)
    }
}

/// The new key of a row with an old one.
fn new_key(row: &Record) -> Option<Key> {
    let organization = row.value.get(..16).and_then(OrganizationId::from_slice)?;
    let event = row.key.id().filter(|_| row.key.as_bytes().len() == OLD_KEY)?;
    Some(key::outbox(organization, EventId::from_uuid(event)))
}
