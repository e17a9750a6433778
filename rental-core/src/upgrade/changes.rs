//! What the rows of some records differ in from those that are there.

use super::{
    derive,
    state::UpgradeError,
    walk::{Lifted, Upgrade},
    window::Work,
};
use crate::store::{Key, Prior, Revision, get_each};
use bytes::Bytes;

impl Upgrade<'_> {
    /// Adds what differs from what is there to the window.
    pub(super) async fn write(&mut self, work: &mut Work, lifted: Vec<Lifted>) -> Result<(), UpgradeError> {
        let (mut derived, mut state) = (Vec::new(), Vec::new());
        for one in lifted {
            if let Some((revision, value)) = one.changed {
                work.put(one.key, revision, value, Prior::Any);
            }
            derived.extend(one.rows.derived);
            state.extend(one.rows.state);
        }
        // Looked up in the order of the keys: neighbours share their pages.
        derived.sort_unstable();
        let keys: Vec<Key> = derived.iter().map(|(key, _)| key.clone()).collect();
        let found = get_each(self.store, &keys).await?;
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
                        work.put(key, 0, value, Prior::New);
                    }
                    // A derived row that is damaged is made again.
                    _ => work.put(key, 0, value, Prior::Any),
                }
            }
            let group = derive::group(&group);
            *self.pending.entry(group.clone()).or_default() += new;
            *self.marker.expected.entry(group).or_default() += expected;
        }
        self.claim(work, state).await
    }

    /// Adds claims that nobody has made. The first record that makes a claim has it.
    async fn claim(&mut self, work: &mut Work, mut state: Vec<(Key, Revision, Bytes)>) -> Result<(), UpgradeError> {
        state.sort_by(|one, other| one.0.cmp(&other.0));
        state.dedup_by(|later, first| later.0 == first.0);
        let keys: Vec<Key> = state.iter().map(|(key, ..)| key.clone()).collect();
        for ((key, revision, value), there) in state.into_iter().zip(get_each(self.store, &keys).await?) {
            match there {
                // A record of a batch that is not committed yet may have made the same claim.
                Ok(None) if self.claimed.insert(key.clone()) => work.put(key, revision, value, Prior::New),
                Ok(_) => {}
                Err(_) => self.marker.note(&key, "it is damaged"),
            }
        }
        Ok(())
    }
}
