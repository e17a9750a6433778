//! Compares the rows that records should have with the stored ones, and writes the differences.

use super::{
    derive,
    state::UpgradeError,
    walk::{Lifted, Upgrade},
    window::Window,
};
use crate::store::{Key, Prior, Revision, get_each};
use bytes::Bytes;

impl Upgrade<'_> {
    /// Adds the rows that differ from the stored ones to the window.
    pub(super) async fn write(&mut self, window: &mut Window, lifted: Vec<Lifted>) -> Result<(), UpgradeError> {
        let (mut derived, mut state) = (Vec::new(), Vec::new());
        for one in lifted {
            if let Some((revision, value)) = one.changed {
                window.put(one.key, revision, value, Prior::Any);
            }
            derived.extend(one.rows.derived);
            state.extend(one.rows.state);
        }
        // Read in the order of the keys, because rows with similar keys are on the same pages.
        derived.sort_unstable();
        let keys: Vec<Key> = derived.iter().map(|(key, _)| key.clone()).collect();
        let found = get_each(&self.store, &keys).await?;
        let mut rows = derived.into_iter().zip(found).peekable();
        while let Some(((first, _), _)) = rows.peek() {
            let group = first.clone();
            let (mut expected, mut new) = (0, 0);
            while let Some(((key, value), there)) =
                rows.next_if(|((key, _), _)| derive::prefix(key) == derive::prefix(&group))
            {
                expected += 1;
                match there {
                    Ok(Some(present)) if present.value == value => {}
                    Ok(None) => {
                        new += 1;
                        window.put(key, 0, value, Prior::New);
                    }
                    // A damaged derived row is written again.
                    _ => window.put(key, 0, value, Prior::Any),
                }
            }
            let group = derive::group(&group);
            *self.pending.entry(group.clone()).or_default() += new;
            *self.marker.expected.entry(group).or_default() += expected;
        }
        self.claim(window, state).await
    }

    /// Adds missing claims. If several records need the same claim, the first one gets it.
    async fn claim(&mut self, window: &mut Window, mut state: Vec<(Key, Revision, Bytes)>) -> Result<(), UpgradeError> {
        state.sort_by(|one, other| one.0.cmp(&other.0));
        state.dedup_by(|later, first| later.0 == first.0);
        let keys: Vec<Key> = state.iter().map(|(key, ..)| key.clone()).collect();
        for ((key, revision, value), there) in state.into_iter().zip(get_each(&self.store, &keys).await?) {
            match there {
                // A batch that is not committed yet may contain the same claim.
                Ok(None) if self.claimed.insert(key.clone()) => window.put(key, revision, value, Prior::New),
                Ok(_) => {}
                Err(_) => self.marker.note(&key, "it is damaged"),
            }
        }
        Ok(())
    }
}
