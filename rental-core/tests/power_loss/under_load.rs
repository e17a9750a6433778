//! Power cuts and failing disks under real requests.

use crate::{
    broken::{Broken, Engine},
    disk::{Dice, Disk, Entry, Fault, Kept, LOSSES, apply, crash},
    history::{History, Life, dump},
    images::{Pace, Promised, crash_everywhere},
};
use std::{
    cell::RefCell,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

/// A number in the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Opens an image of this history and checks its rows; gives the operations of the recovery, and the group whose state it
/// holds.
fn recover(
    history: &History,
    judged: &RefCell<BTreeSet<usize>>,
    image: Vec<u8>,
    promised: Promised,
    place: &str,
) -> Result<(Vec<Entry>, usize), String> {
    let disk = Disk::holding(image);
    let engine = Engine::open(&disk, Broken::Nothing).map_err(|error| format!("{place}: it does not open: {error}"))?;
    let rows = dump(&engine);
    // A state that equals one of the model is judged once.
    let group = if history.states.is_empty() {
        history.judge(&rows, promised.0).map_err(|problem| format!("{place}: {problem}"))?;
        0
    } else {
        let group = history.matches(&rows, promised).map_err(|problem| format!("{place}: {problem}"))?;
        if judged.borrow_mut().insert(group) {
            history.judge(&rows, group).map_err(|problem| format!("{place}: {problem}"))?;
        }
        group
    };
    engine.redb.close().map_err(|error| format!("{place}: it does not close: {error}"))?;
    Ok((disk.log(), group))
}

/// Cuts the power everywhere in a life.
fn crash_a_life(history: &History, life: &Life, pace: Pace, dice: &mut Dice) -> Result<usize, String> {
    let judged = RefCell::default();
    let promised = (life.first, life.first);
    crash_everywhere(&life.base, &life.log, promised, pace, dice, &mut |image, promised, place| {
        recover(history, &judged, image, promised, place).map(|(log, _)| log)
    })
}

/// Cuts the power once in the later half of a life, at any operation; gives the image, and what was promised then.
fn one_crash(life: &Life, dice: &mut Dice) -> (Vec<u8>, Promised) {
    let end = life.log.len() / 2 + dice.roll(life.log.len() / 2);
    let synced = life.log[..end].iter().rposition(|entry| matches!(entry, Entry::Sync)).unwrap_or(0);
    let mut durable = life.base.clone();
    life.log[..synced].iter().for_each(|entry| apply(&mut durable, entry));
    let kept = LOSSES[dice.roll(LOSSES.len())];
    (crash(&durable, &life.log[synced..end], kept, dice), promised_until(life, end))
}

fn promised_until(life: &Life, end: usize) -> Promised {
    life.log[..end].iter().fold((life.first, life.first), |(acknowledged, asked), entry| match entry {
        Entry::Asked(n) => (acknowledged, asked.max(*n)),
        Entry::Acknowledged(n) => (acknowledged.max(*n), asked),
        _ => (acknowledged, asked),
    })
}

/// Three lives of one store, with the images of each; a power cut ends the first two.
fn three_lives(seed: u64) -> Result<usize, String> {
    let pace = Pace { syncs: 10, others: 150, losses: 3, again: 1 };
    let (mut history, mut image) = History::new(seed, Broken::Nothing);
    let mut dice = Dice(seed ^ 0x5eed);
    let mut images = 0;
    for life in 0..3 {
        let disk = Disk::holding(image);
        let told = |problem: String| format!("life {life}: {problem}");
        let lived = history.live(&disk, 12).map_err(told)?;
        images += crash_a_life(&history, &lived, pace, &mut dice).map_err(told)?;
        let promised;
        (image, promised) = one_crash(&lived, &mut dice);
        let place = "power cut at the end";
        let (_, group) = recover(&history, &RefCell::default(), image.clone(), promised, place).map_err(told)?;
        images += 1;
        history.rewind(promised.0, group);
    }
    if number("RENTAL_CRASH_SEED").is_some() {
        println!("{}", history.summary());
    }
    Ok(images)
}

/// Runs histories on two threads until there are so many images; prints how far it is.
fn many_images(goal: usize) -> Result<(u64, usize), String> {
    let (seeds, images, stop, begun) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicBool::new(false), Instant::now());
    let problem = Mutex::new(None);
    let worker = || {
        while images.load(Ordering::Relaxed) < goal && !stop.load(Ordering::Relaxed) {
            let seed = seeds.fetch_add(1, Ordering::Relaxed);
            match three_lives(seed) {
                Ok(more) => {
                    let all = images.fetch_add(more, Ordering::Relaxed) + more;
                    if all / 1000 != (all - more) / 1000 {
                        println!("{all} of {goal} images, {seed} seeds, {} s", begun.elapsed().as_secs());
                    }
                }
                Err(what) => {
                    stop.store(true, Ordering::Relaxed);
                    *problem.lock().expect("no worker panics with it") =
                        Some(format!("{what}\nreplay it with RENTAL_CRASH_SEED={seed}"));
                }
            }
        }
    };
    std::thread::scope(|scope| drop([scope.spawn(worker), scope.spawn(worker)]));
    match problem.into_inner().expect("no worker panics with it") {
        Some(problem) => Err(problem),
        None => Ok((seeds.into_inner(), images.into_inner())),
    }
}

/// `RENTAL_CRASH_IMAGES=100000` builds that many images, `RENTAL_CRASH_SEED=17` those of one seed.
#[test]
fn a_power_cut_under_requests_loses_nothing_and_leaves_nothing_half_done() {
    if let Some(seed) = number("RENTAL_CRASH_SEED") {
        let images = three_lives(seed).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        return println!("seed {seed}: {images} images");
    }
    let goal = number("RENTAL_CRASH_IMAGES").unwrap_or(2_000) as usize;
    let (seeds, images) = many_images(goal).unwrap_or_else(|problem| panic!("{problem}"));
    println!("{images} images of {seeds} histories");
    assert!(images >= goal);
}

#[test]
fn a_seed_replays_the_same_operations_of_the_disk() {
    let log = || {
        let (mut history, image) = History::new(5, Broken::Nothing);
        history.live(&Disk::holding(image), 12).unwrap().log
    };
    let (one, other) = (log(), log());
    assert!(one.iter().filter(|entry| matches!(entry, Entry::Sync)).count() > 20);
    assert!(one == other, "{} and {} operations", one.len(), other.len());
}

/// One life on a disk whose operation `at` fails, then a power cut; gives whether the life got that far.
fn fail_once(at: u64, fault: Fault) -> Result<bool, String> {
    let (mut history, image) = History::new(11, Broken::Nothing);
    let disk = Disk::holding(image);
    disk.with(|state| state.fail_at = Some((at, fault)));
    let base = disk.with(|state| state.live.clone());
    let lived = history.live(&disk, 8);
    if !disk.with(|state| state.struck) {
        return lived.map(|_| false);
    }
    // An engine that did not open has answered nothing; any other problem is one.
    if let Err(problem) = lived
        && !problem.starts_with("cannot open")
        && !problem.starts_with("the store cannot serve")
        && !problem.starts_with("the store is damaged: the storage cannot be read")
    {
        return Err(problem);
    }
    let life = Life { base, log: disk.log(), first: 0 };
    let promised = promised_until(&life, life.log.len());
    let synced = life.log.iter().rposition(|entry| matches!(entry, Entry::Sync)).unwrap_or(0);
    let mut durable = life.base.clone();
    life.log[..synced].iter().for_each(|entry| apply(&mut durable, entry));
    for kept in [Kept::Nothing, Kept::Everything, Kept::Blocks(512)] {
        let image = crash(&durable, &life.log[synced..], kept, &mut Dice(at));
        recover(&history, &RefCell::default(), image, promised, &format!("then a power cut ({kept:?})"))?;
    }
    Ok(true)
}

/// Every operation of the disk fails once, reads included: with an I/O error, for lack of room, or in the middle of a write.
#[test]
fn whichever_operation_fails_under_requests_nothing_acknowledged_is_lost() {
    let faults = [Fault::Io, Fault::Full, Fault::Torn];
    let all = number("RENTAL_CRASH_IMAGES").is_some();
    let mut at = 1;
    loop {
        let chosen = if all { &faults[..] } else { &faults[at as usize % 3..=at as usize % 3] };
        let struck = chosen.iter().filter(|fault| {
            fail_once(at, **fault).unwrap_or_else(|problem| panic!("operation {at} failed ({fault:?}): {problem}"))
        });
        if struck.count() == 0 {
            break;
        }
        at += 1;
    }
    println!("each of {at} operations failed");
    assert!(at > 150, "only {at} operations");
}

/// What the tests above say of an engine with a broken promise, and after how many histories.
fn caught(broken: Broken) -> (u64, String) {
    for seed in 0..40 {
        let (mut history, image) = History::new(seed, broken);
        history.states.clear();
        let disk = Disk::holding(image);
        let pace = Pace { syncs: 3, others: 10, losses: 2, again: 0 };
        let mut crash =
            || history.live(&disk, 12).and_then(|life| crash_a_life(&history, &life, pace, &mut Dice(seed)));
        // redb panics over some of the pages that a disk without syncs keeps.
        let found = catch_unwind(AssertUnwindSafe(&mut crash));
        if let Err(problem) = found.unwrap_or_else(|_| Err("the engine panics, so it does not open".into())) {
            println!("{broken:?}: {} histories, {problem}", seed + 1);
            return (seed + 1, problem);
        }
    }
    panic!("the tests do not notice {broken:?}");
}

#[test]
fn an_engine_that_never_syncs_is_caught() {
    let (histories, problem) = caught(Broken::Sync);
    assert!(problem.contains("was acknowledged, and lost") || problem.contains("does not open"), "{problem}");
    assert!(histories <= 3, "after {histories} histories: {problem}");
}

#[test]
fn an_engine_that_acknowledges_before_the_commit_is_caught() {
    let (histories, problem) = caught(Broken::Acknowledgement);
    // The second: a client sent its request again, and the first answer was one to a batch that was stale.
    let faces = ["was acknowledged, and lost", "was answered, and now"];
    assert!(faces.iter().any(|face| problem.contains(face)), "{problem}");
    assert!(histories <= 3, "after {histories} histories: {problem}");
}

#[test]
fn an_event_outside_of_the_transaction_is_caught() {
    let (histories, problem) = caught(Broken::Events);
    // The second: the relay's deliveries are in one batch, and the outbox rows that it removes in another one.
    let faces = ["a change has no event", "or waits, or neither"];
    assert!(faces.iter().any(|face| problem.contains(face)), "{problem}");
    assert!(histories <= 3, "after {histories} histories: {problem}");
}

#[test]
fn an_account_outside_of_the_transaction_is_caught() {
    let (histories, problem) = caught(Broken::Accounts);
    let faces = ["is billed", "credited"];
    assert!(faces.iter().any(|face| problem.contains(face)), "{problem}");
    assert!(histories <= 20, "after {histories} histories: {problem}");
}

#[test]
fn a_check_outside_of_the_transaction_is_caught() {
    let (histories, problem) = caught(Broken::Checks);
    let faces = [
        "overlap",
        "idempotency record",
        "a second answer",
        "and now",
        "differs from the answer",
        "has deliveries to",
        "credited",
        "is billed",
    ];
    assert!(faces.iter().any(|face| problem.contains(face)), "{problem}");
    assert!(histories <= 20, "after {histories} histories: {problem}");
}
