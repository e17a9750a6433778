//! A full disk: writes are refused, reads go on, and writes are taken again once there is room, without a restart.

use crate::{
    Plan, check,
    disk::{Disk, Fault},
    rows, wait,
};
use rental_core::store::{Commit, Store, StoreError, redb::Redb};
use std::time::Duration;

fn open(disk: &Disk) -> Result<Redb, StoreError> {
    let (storage, room) = (disk.clone(), disk.clone());
    Redb::on_backends(move || storage.clone(), move || room.with(|state| !state.full))
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_recovers_when_there_is_room() {
    let (disk, plan) = (Disk::default(), Plan::new(21, 6));
    let store = open(&disk).expect("an empty disk takes a store");
    assert_eq!(wait(store.commit(plan.batches[0].clone())), Ok(Commit::Applied));
    for (at, batch) in plan.batches.iter().enumerate().skip(1) {
        disk.with(|state| state.full = true);
        // The first one finds that there is no room, and nothing of it is there.
        let refused = wait(store.commit(batch.clone()));
        assert!(matches!(refused, Err(StoreError::NoRoom | StoreError::Unknown(_))), "{refused:?}");
        assert_eq!(wait(store.commit(batch.clone())), Err(StoreError::NoRoom));
        assert_eq!(wait(store.ready()), Err(StoreError::NoRoom));
        assert!(rows(&store) == plan.states[at], "reads go on, and nothing was written");
        disk.with(|state| state.full = false);
        while wait(store.ready()) == Err(StoreError::NoRoom) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(wait(store.commit(batch.clone())), Ok(Commit::Applied));
        assert!(rows(&store) == plan.states[at + 1]);
    }
    store.close().expect("it closes");
    let last = (plan.batches.len(), plan.batches.len());
    check(disk.with(|state| state.live.clone()), &plan, last, "after a full disk");
}

/// Commits all batches, each again while there is no room or its outcome is unknown; false when the engine failed.
fn insist(store: &Redb, plan: &Plan) -> bool {
    for (at, batch) in plan.batches.iter().enumerate() {
        let mut unknown = false;
        loop {
            match wait(store.commit(batch.clone())) {
                Ok(Commit::Applied) => break,
                Ok(Commit::Stale(_)) if unknown => break,
                Err(StoreError::NoRoom) => std::thread::sleep(Duration::from_millis(2)),
                Err(StoreError::Unknown(_)) => unknown = true,
                Err(StoreError::Unavailable(_)) => return false,
                other => panic!("batch {at}: {other:?}"),
            }
        }
        assert!(rows(store) == plan.states[at + 1], "the rows after batch {at}");
    }
    true
}

#[test]
fn whichever_write_finds_no_room_the_engine_goes_on() {
    let plan = Plan::new(22, 12);
    let (mut at, mut survived) = (1, 0);
    loop {
        let disk = Disk::failing_at(at, Fault::Full);
        if let Ok(store) = open(&disk) {
            let whole = insist(&store, &plan);
            let (struck, a_write) = disk.with(|state| (state.struck, state.struck_a_write));
            assert!(whole || !a_write, "operation {at} found no room, and the engine failed: {}", wait(store.failed()));
            assert!(whole != (struck && !a_write), "operation {at} is a read or a sync, and its failure was ignored");
            survived += usize::from(struck && a_write);
            let _ = store.close();
            if !struck {
                break;
            }
        }
        at += 1;
    }
    assert!(survived > 30, "only {survived} writes of {at} operations");
}
