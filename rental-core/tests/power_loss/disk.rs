//! A disk that remembers what was not yet synced, fails on demand, and can be cut off from its power.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

/// What happened to the disk, and when answers were asked for and given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    Write(usize, Vec<u8>),
    SetLen(usize),
    Sync,
    Asked(usize),
    Acknowledged(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Io,
    Full,
    /// Half of the bytes are written, then the disk fails.
    Torn,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// What reads see: durable and pending together.
    pub(crate) live: Vec<u8>,
    pub(crate) log: Vec<Entry>,
    pub(crate) operations: u64,
    pub(crate) fail_at: Option<(u64, Fault)>,
    pub(crate) struck: bool,
    /// The failed operation was a write or a change of the length.
    pub(crate) struck_a_write: bool,
    /// Every write and every growth fails for lack of room.
    pub(crate) full: bool,
    /// Syncs do nothing, and succeed: a negative control.
    pub(crate) lies: bool,
    /// Changes of the disk wait.
    held: bool,
    /// A change of the disk waits.
    waits: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<(Mutex<State>, Condvar)>);

impl Disk {
    pub(crate) fn holding(image: Vec<u8>) -> Self {
        let disk = Self::default();
        disk.with(|state| state.live = image);
        disk
    }

    pub(crate) fn failing_at(operation: u64, fault: Fault) -> Self {
        let disk = Self::default();
        disk.with(|state| state.fail_at = Some((operation, fault)));
        disk
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().expect("no thread panics with it")
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.lock())
    }

    pub(crate) fn note(&self, entry: Entry) {
        self.with(|state| state.log.push(entry));
    }

    pub(crate) fn log(&self) -> Vec<Entry> {
        self.with(|state| state.log.clone())
    }

    /// Lets every change of the disk wait until [`Disk::release`].
    pub(crate) fn hold(&self) {
        self.with(|state| (state.held, state.waits) = (true, false));
    }

    /// Waits a moment for a change that [`Disk::hold`] stopped; tells whether there is one.
    pub(crate) fn holds_a_change(&self) -> bool {
        let state = self.lock();
        let moment = Duration::from_millis(20);
        let waited = self.0.1.wait_timeout_while(state, moment, |state| !state.waits);
        waited.expect("no thread panics with it").0.waits
    }

    pub(crate) fn release(&self) {
        self.with(|state| state.held = false);
        self.0.1.notify_all();
    }

    /// One operation of the engine, which fails if it is its turn to.
    fn operate<T>(&self, entry: Option<Entry>, read: impl FnOnce(&State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.lock();
        while state.held && entry.is_some() {
            state.waits = true;
            self.0.1.notify_all();
            state = self.0.1.wait(state).expect("no thread panics with it");
        }
        state.operations += 1;
        let fault = state.fail_at.filter(|(at, _)| *at == state.operations).map(|(_, fault)| fault);
        state.struck |= fault.is_some();
        let writes = matches!(entry, Some(Entry::Write(..) | Entry::SetLen(_)));
        state.struck_a_write |= fault.is_some() && writes;
        let fault = fault.or_else(|| (state.full && writes).then_some(Fault::Full));
        let entry = match (fault, entry) {
            (Some(Fault::Torn), Some(Entry::Write(at, data))) => {
                Some(Entry::Write(at, data[..data.len() / 2].to_vec()))
            }
            (Some(_), _) => None,
            (None, Some(Entry::Sync)) if state.lies => None,
            (None, entry) => entry,
        };
        if let Some(entry) = entry {
            apply(&mut state.live, &entry);
            state.log.push(entry);
        }
        match fault {
            None => read(&state),
            Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(_) => Err(io::Error::from_raw_os_error(5)),
        }
    }
}

impl redb::StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.operate(None, |state| Ok(state.live.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.operate(None, |state| {
            let from = offset as usize;
            let bytes = state.live.get(from..from + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operate(Some(Entry::SetLen(len as usize)), |_| Ok(()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.operate(Some(Entry::Sync), |_| Ok(()))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operate(Some(Entry::Write(offset as usize, data.to_vec())), |_| Ok(()))
    }
}

pub(crate) fn apply(image: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::Write(at, data) => {
            image.resize(image.len().max(at + data.len()), 0);
            image[*at..at + data.len()].copy_from_slice(data);
        }
        Entry::SetLen(len) => image.resize(*len, 0),
        Entry::Sync | Entry::Asked(_) | Entry::Acknowledged(_) => {}
    }
}

/// What a power cut leaves of the pending operations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    Nothing,
    Everything,
    /// Any blocks of this size, and any change of the length.
    Blocks(usize),
    /// The first operations, the last of them torn at a sector: a disk that keeps the order.
    First,
    /// Everything but one operation.
    AllButOne,
    /// Only what was written to the first page: redb's header overtakes the data.
    Header,
}

/// Every kind of loss, the four with the most different outcomes first.
pub(crate) const LOSSES: [Kept; 7] = [
    Kept::Nothing,
    Kept::Everything,
    Kept::Blocks(4096),
    Kept::Blocks(512),
    Kept::First,
    Kept::AllButOne,
    Kept::Header,
];

pub(crate) fn crash(durable: &[u8], pending: &[Entry], kept: Kept, dice: &mut Dice) -> Vec<u8> {
    let mut image = durable.to_vec();
    let chosen = dice.roll(pending.len().max(1));
    for (at, entry) in pending.iter().enumerate() {
        match (kept, entry) {
            (Kept::Nothing, _) => {}
            (Kept::Blocks(size), Entry::Write(at, data)) => {
                let mut from = 0;
                while from < data.len() {
                    let to = ((at + from) / size * size + size - at).min(data.len());
                    if dice.roll(2) == 0 {
                        apply(&mut image, &Entry::Write(at + from, data[from..to].to_vec()));
                    }
                    from = to;
                }
            }
            (Kept::Blocks(_), Entry::SetLen(_)) if dice.roll(2) == 0 => {}
            (Kept::First, Entry::Write(place, data)) if at == chosen => {
                let sectors = dice.roll(data.len() / 512 + 1) * 512;
                apply(&mut image, &Entry::Write(*place, data[..sectors.min(data.len())].to_vec()));
            }
            (Kept::First, _) if at > chosen => {}
            (Kept::AllButOne, _) if at == chosen => {}
            (Kept::Header, Entry::Write(place, _)) if *place >= 4096 => {}
            (_, entry) => apply(&mut image, entry),
        }
    }
    image
}

/// A small generator, so that a failing run can be repeated from its number.
#[derive(Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.roll(chances) == 0
    }
}
