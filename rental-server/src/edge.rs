//! The one place that reads the clocks and makes random ids. While the wall clock cannot be trusted (`edge/watch.rs`), nothing is
//! written and nothing expires.

// The path is written, because the fuzz targets compile this file by its path.
#[path = "edge/watch.rs"]
pub(crate) mod watch;

use crate::trace_context::TraceId;
use rental_core::{operations::Edge, value::Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use uuid::{ContextV7, Uuid};
use watch::{Jump, Reading, TOLERANCE, Watch};

/// The present time, in milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub(crate) fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// The wall clock is watched from the start of the server on.
static WATCH: Mutex<Option<Watch>> = Mutex::new(None);
/// What a right wall clock showed at the last look, which is at most a second ago; or one of the two below.
static EXPECTED: AtomicI64 = AtomicI64::new(NOT_WATCHED);
const NOT_WATCHED: i64 = i64::MIN;
const JUMPED: i64 = i64::MAX;

fn signed(time: Timestamp) -> i64 {
    i64::try_from(time.millis()).unwrap_or(i64::MAX)
}

fn reading() -> Reading {
    let boot = clock_gettime(ClockId::Boottime);
    Reading { wall: signed(now()), boot: boot.tv_sec.saturating_mul(1000) + boot.tv_nsec / 1_000_000 }
}

/// Changes or asks the watch, if it has begun, and publishes what it says.
fn with_watch<T>(act: impl FnOnce(&mut Watch, Reading) -> T) -> Option<(T, Option<Jump>)> {
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let (watch, now) = (watch.as_mut()?, reading());
    let had_jumped = EXPECTED.load(Ordering::Relaxed) == JUMPED;
    let (answer, jump) = (act(watch, now), watch.look(now));
    EXPECTED.store(if jump.is_some() { JUMPED } else { watch.expected(now) }, Ordering::Relaxed);
    match jump {
        Some(jump) if !had_jumped => tracing::error!(
            against = jump.against.word(),
            seconds = jump.seconds(),
            "the clock has jumped: nothing is written and nothing expires until it is right; set the clock, or if it is right, run `rental-cli clock confirm`"
        ),
        None if had_jumped => tracing::info!("the clock is trusted again"),
        _ => {}
    }
    Some((answer, jump))
}

/// Begins to watch the wall clock. `newest` is when the newest object of the store was made, `database` what the clock of the
/// database shows.
pub(crate) fn watch(newest: Option<Timestamp>, database: Option<Timestamp>) {
    let now = reading();
    let mut watch = Watch::begin(newest.map(signed), now);
    database.into_iter().for_each(|time| watch.note_database(signed(time), now));
    *WATCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    jump();
}

/// Notes what the clock of the database shows.
pub(crate) fn note_database(time: Timestamp) {
    with_watch(|watch, now| watch.note_database(signed(time), now));
}

/// The jump of the wall clock, if it cannot be trusted now.
pub(crate) fn jump() -> Option<Jump> {
    with_watch(|_, _| ())?.1
}

/// Confirms the present jump, if it is one by about so many seconds; otherwise the error is the present one. [`unconfirm`] takes
/// the answer.
pub(crate) fn confirm(seconds: i64) -> Result<Confirmed, Option<Jump>> {
    let confirmed = with_watch(|watch, now| {
        let jump = watch.look(now);
        if jump.is_none_or(|jump| jump.seconds().abs_diff(seconds) > TOLERANCE.unsigned_abs() / 1000) {
            return Err(jump);
        }
        let before = *watch;
        watch.confirm(now);
        Ok(Confirmed(before))
    });
    confirmed.map_or(Err(None), |(confirmed, _)| confirmed)
}

/// What was known before a confirmation.
pub(crate) struct Confirmed(Watch);

/// Takes a confirmation back that could not be recorded.
pub(crate) fn unconfirm(Confirmed(before): Confirmed) {
    with_watch(|watch, _| *watch = before);
}

/// Whether a time that was read from the wall clock is to be trusted: one read of memory, unless it is not.
pub(crate) fn trusts(time: Timestamp) -> bool {
    let is_near = |expected: i64| signed(time).abs_diff(expected) <= TOLERANCE.unsigned_abs();
    let expected = EXPECTED.load(Ordering::Relaxed);
    // The last look can be long ago where the process was stopped.
    expected == NOT_WATCHED || is_near(expected) || (jump().is_none() && is_near(EXPECTED.load(Ordering::Relaxed)))
}

/// Whether the wall clock is to be trusted now. While it is not, the store takes no batch, and background tasks wait.
pub(crate) fn is_right() -> bool {
    trusts(now())
}

/// Orders the ids of one millisecond, and continues to rise when the clock is set back.
static IDS: LazyLock<Mutex<ContextV7>> = LazyLock::new(|| Mutex::new(ContextV7::new()));

/// Lets ids rise from this time on, although the clock may be behind it: new objects are newer than those of before.
pub(crate) fn ids_rise_from(newest: Timestamp) {
    let _ = FixedClock(newest).new_id();
}

/// The time at which a request began, the same for all that it does; and new ids.
pub(crate) struct FixedClock(Timestamp);

impl FixedClock {
    pub(crate) fn new() -> Self {
        Self(now())
    }
}

impl FixedClock {
    /// Whether what is dated by this time may be written.
    pub(crate) fn is_trusted(&self) -> bool {
        trusts(self.0)
    }

    /// The time by which keys expire: this one, or while it cannot be trusted, what a right clock would show.
    pub(crate) fn trusted(&self) -> Timestamp {
        match trusts(self.0) {
            true => self.0,
            false => {
                with_watch(|watch, now| watch.expected(now)).map_or(self.0, |(time, _)| Timestamp::from_millis(time))
            }
        }
    }
}

impl Edge for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }

    /// Rises within this process even when the clock is set back.
    fn new_id(&self) -> Uuid {
        let millis = self.0.millis();
        let nanos = u32::try_from(millis % 1000 * 1_000_000).unwrap_or(0);
        let context = IDS.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*context, millis / 1000, nanos))
    }
}

/// The present time at each call, for work that takes longer than a request.
pub(crate) struct Clock;

impl Edge for Clock {
    fn now(&self) -> Timestamp {
        now()
    }

    fn new_id(&self) -> Uuid {
        FixedClock::new().new_id()
    }
}

/// 32 random bytes for a secret, from the operating system.
///
/// # Panics
/// When the operating system has no random bytes; ids are made of them as well.
pub(crate) fn secret_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| panic!("no random bytes: {error}"));
    bytes
}

/// `req_` and 32 hexadecimal digits, unique among all servers; not a secret.
#[derive(Clone, Copy)]
pub(crate) struct RequestId([u8; 36]);

impl RequestId {
    pub(crate) fn new() -> Self {
        let mut text = *b"req_00000000000000000000000000000000";
        Uuid::from_u128(unique()).simple().encode_lower(&mut text[4..]);
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        // Always ASCII.
        std::str::from_utf8(&self.0).unwrap_or("")
    }
}

/// The number of a new span of a trace, never 0.
pub(crate) fn new_span() -> u64 {
    // The lower half differs among as many numbers as a process ever makes.
    (unique() as u64).max(1)
}

/// A new trace.
pub(crate) fn new_trace() -> TraceId {
    TraceId(unique().max(1))
}

/// A number that no other call in any process returns.
fn unique() -> u128 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static SEED: LazyLock<u128> =
        LazyLock::new(|| u128::from_be_bytes(secret_bytes()[..16].try_into().unwrap_or_default()));
    let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
    // An odd multiplier makes different numbers of different counts; the seed tells one process from another.
    SEED.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}
