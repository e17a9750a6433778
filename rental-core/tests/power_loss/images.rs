//! Crash images of a recorded history: what the disk can contain after a power cut at any of its operations.

use crate::disk::{Dice, Entry, LOSSES, apply, crash};

/// The number of the last acknowledged group of batches, and of the last one that was asked for.
pub(crate) type Promised = (usize, usize);

/// Opens an image, checks what it contains, and gives the operations of its recovery.
pub(crate) type Check<'c> = &'c mut dyn FnMut(Vec<u8>, Promised, &str) -> Result<Vec<Entry>, String>;

/// How many images are built: at one in so many syncs, at one in so many other operations, so many kinds of loss each.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) syncs: usize,
    pub(crate) others: usize,
    pub(crate) losses: usize,
    /// How many crashes during a recovery follow each other.
    pub(crate) again: usize,
}

/// Builds images along a recorded history that began with the durable bytes `base`, and checks each; one recovery in five
/// is itself such a history.
pub(crate) fn crash_everywhere(
    base: &[u8],
    log: &[Entry],
    promised: Promised,
    pace: Pace,
    dice: &mut Dice,
    check: Check<'_>,
) -> Result<usize, String> {
    let (mut durable, mut synced) = (base.to_vec(), 0);
    let (mut acknowledged, mut asked) = promised;
    let mut images = 0;
    for (at, entry) in log.iter().enumerate() {
        let losses = match entry {
            Entry::Asked(n) => {
                asked = asked.max(*n);
                0
            }
            Entry::Acknowledged(n) => {
                acknowledged = acknowledged.max(*n);
                // What is acknowledged needs no later sync.
                usize::from(dice.one_in(pace.others))
            }
            // Before a sync most is at stake; in between a few points are enough.
            Entry::Sync if dice.one_in(pace.syncs) => pace.losses,
            Entry::Write(..) | Entry::SetLen(_) if dice.one_in(pace.others) => pace.losses,
            _ => 0,
        };
        // With fewer losses than there are, each point begins with another one.
        let first = if losses == 1 { 0 } else { dice.roll(LOSSES.len()) };
        for nth in 0..losses {
            let kept = LOSSES[(first + nth) % LOSSES.len()];
            let image = crash(&durable, &log[synced..at], kept, dice);
            let place = format!("power cut at operation {at} of {} ({kept:?})", log.len());
            let recovery = check(image.clone(), (acknowledged, asked), &place)?;
            images += 1;
            if pace.again > 0 && dice.one_in(5) {
                let within =
                    Pace { syncs: pace.syncs.min(2), others: 12, losses: pace.losses.min(2), again: pace.again - 1 };
                let again = crash_everywhere(&image, &recovery, (acknowledged, asked), within, dice, check);
                images += again.map_err(|problem| format!("{place}, then in its recovery: {problem}"))?;
            }
        }
        if matches!(entry, Entry::Sync) {
            log[synced..at].iter().for_each(|entry| apply(&mut durable, entry));
            synced = at;
        }
    }
    Ok(images)
}

/// Sorts writes that nothing separates by their place. redb flushes its pages in no fixed order, and a replay must find the
/// same history.
pub(crate) fn in_order(mut log: Vec<Entry>) -> Vec<Entry> {
    let place = |entry: &Entry| if let Entry::Write(at, _) = entry { Some(*at) } else { None };
    for run in log.chunk_by_mut(|one, next| place(one).is_some() && place(next).is_some()) {
        run.sort_by_key(place);
    }
    log
}
