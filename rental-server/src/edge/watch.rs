//! Decides whether the wall clock can be trusted. Pure: the readings of the clocks are arguments.
//!
//! The boot clock goes on while the machine sleeps and nobody can set it. So it tells a wall clock that was set from time that
//! has passed. A jump ends when the wall clock is right again, or when an operator confirms it.

/// What the clocks show at one moment, in milliseconds: the wall clock since 1970, the boot clock since the machine was started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Reading {
    pub(crate) wall: i64,
    pub(crate) boot: i64,
}

/// A wall clock that is off by this many milliseconds or less is right.
pub(crate) const TOLERANCE: i64 = 5 * 60_000;
/// At a start, the newest object may be so many milliseconds ahead of the wall clock.
const NEWEST_AHEAD: i64 = 24 * 3_600_000;
/// The watch follows slow corrections of the wall clock: a millisecond in this many. A clock drifts by less.
const FOLLOWED: i64 = 60;

/// What the wall clock was compared with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Against {
    /// The wall clock itself when it was right, and the time that has passed since by the boot clock.
    BootClock,
    /// The clock of the database.
    Database,
    /// The newest object of the store, at the start.
    NewestObject,
}

impl Against {
    /// All of them, as the API names them.
    pub(crate) const WORDS: [&str; 3] = ["boot_clock", "database", "newest_object"];

    pub(crate) fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// The wall clock cannot be trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Jump {
    pub(crate) against: Against,
    /// By how much the wall clock is ahead, in milliseconds; negative when it is behind.
    pub(crate) millis: i64,
}

impl Jump {
    /// The same in seconds, rounded.
    pub(crate) fn seconds(self) -> i64 {
        (self.millis + self.millis.signum() * 500) / 1000
    }
}

/// What is known of the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// Wall clock less boot clock; `None` until the wall clock has been right once.
    right: Option<i64>,
    /// The date of the newest object at the start, until the wall clock has been right once.
    newest: Option<i64>,
    /// The database's clock less the boot clock, as last read.
    database: Option<i64>,
    /// By how much the wall clock is ahead of the database's, as an operator has confirmed.
    confirmed: i64,
    /// The boot clock up to which corrections were followed.
    looked: i64,
}

impl Watch {
    /// Begins at a start; `newest` is when the newest object of the store was made.
    pub(crate) fn begin(newest: Option<i64>, now: Reading) -> Self {
        Self { right: None, newest, database: None, confirmed: 0, looked: now.boot }
    }

    /// Notes what the database's clock shows.
    pub(crate) fn note_database(&mut self, time: i64, now: Reading) {
        self.database = Some(time - now.boot);
    }

    /// Compares the clocks.
    pub(crate) fn look(&mut self, now: Reading) -> Option<Jump> {
        let jump = self.jump(now);
        let most = ((now.boot - self.looked) / FOLLOWED).max(0);
        if jump.is_none() {
            let offset = now.wall - now.boot;
            // The first time that the clock is right, there is nothing to follow yet.
            let right = self.right.unwrap_or(offset);
            self.right = Some(right + (offset - right).clamp(-most, most));
            self.newest = None;
        }
        self.looked += most * FOLLOWED;
        jump
    }

    fn jump(&self, now: Reading) -> Option<Jump> {
        let offset = now.wall - now.boot;
        let off = |against, other: i64| {
            let millis = offset - other;
            (millis.abs() > TOLERANCE).then_some(Jump { against, millis })
        };
        let behind_newest = self.newest.map(|newest| now.wall - newest).filter(|millis| *millis < -NEWEST_AHEAD);
        (self.right.and_then(|right| off(Against::BootClock, right)))
            .or_else(|| off(Against::Database, self.database? + self.confirmed))
            .or_else(|| Some(Jump { against: Against::NewestObject, millis: behind_newest? }))
    }

    /// What a right wall clock would show: the wall clock itself where nothing better is known.
    pub(crate) fn expected(&self, now: Reading) -> i64 {
        let database = self.database.map(|database| database + self.confirmed);
        self.right.or(database).map_or(now.wall, |offset| now.boot + offset)
    }

    /// The wall clock is right as it is: an operator says so.
    pub(crate) fn confirm(&mut self, now: Reading) {
        let offset = now.wall - now.boot;
        (self.right, self.newest) = (Some(offset), None);
        self.confirmed = self.database.map_or(0, |database| offset - database);
    }
}

#[cfg(test)]
mod tests {
    use super::{Against::*, *};

    const MINUTE: i64 = 60_000;
    const DAY: i64 = 24 * 60 * MINUTE;
    /// The machine has run for an hour when the tests begin.
    const START: Reading = Reading { wall: 20_000 * DAY, boot: 60 * MINUTE };

    /// The clocks after so many milliseconds, with the wall clock set ahead by `ahead`.
    fn after(passed: i64, ahead: i64) -> Reading {
        Reading { wall: START.wall + passed + ahead, boot: START.boot + passed }
    }

    fn jump(against: Against, millis: i64) -> Option<Jump> {
        Some(Jump { against, millis })
    }

    /// Looks at each of these times (milliseconds since the start, wall clock ahead, the jump that is found).
    #[track_caller]
    fn check(mut watch: Watch, looks: &[(i64, i64, Option<Jump>)]) -> Watch {
        for (passed, ahead, expected) in looks {
            assert_eq!(watch.look(after(*passed, *ahead)), *expected, "after {passed} ms, {ahead} ms ahead");
        }
        watch
    }

    fn right() -> Watch {
        check(Watch::begin(None, START), &[(0, 0, None)])
    }

    #[test]
    fn more_than_five_minutes_are_a_jump_either_way_until_the_clock_is_right_again() {
        for ahead in [400 * DAY, TOLERANCE + 1, -TOLERANCE - 1, -400 * DAY] {
            check(
                right(),
                &[(1000, ahead, jump(BootClock, ahead)), (2000, ahead, jump(BootClock, ahead)), (3000, 0, None)],
            );
        }
        for ahead in [TOLERANCE, -TOLERANCE] {
            check(right(), &[(1000, ahead, None), (2000, 0, None)]);
        }
    }

    #[test]
    fn time_that_passes_is_no_jump_also_while_the_machine_sleeps() {
        check(right(), &[(1000, 0, None), (30 * DAY, 0, None)]);
    }

    #[test]
    fn a_clock_that_is_corrected_slowly_is_followed() {
        // A second in each of 600 minutes; then as much at once is a jump.
        let looks: Vec<_> = (1..=600).map(|minute| (minute * MINUTE, minute * 1000, None)).collect();
        let watch = check(right(), &looks);
        check(watch, &[(601 * MINUTE, 1_200_000, jump(BootClock, 600_000))]);
    }

    #[test]
    fn what_should_be_now_is_told_while_the_clock_is_wrong() {
        let mut watch = right();
        watch.look(after(MINUTE, 400 * DAY));
        assert_eq!(watch.expected(after(2 * MINUTE, 400 * DAY)), START.wall + 2 * MINUTE);
    }

    #[test]
    fn a_confirmation_is_for_one_jump() {
        let mut watch = right();
        watch.look(after(1000, DAY));
        watch.confirm(after(2000, DAY));
        check(watch, &[(3000, DAY, None), (4000, 2 * DAY, jump(BootClock, DAY)), (5000, 0, jump(BootClock, -DAY))]);
    }

    #[test]
    fn a_start_more_than_a_day_before_the_newest_object_is_a_jump() {
        let begin = |ahead: i64| Watch::begin(Some(START.wall + ahead), START);
        check(begin(DAY), &[(0, 0, None)]);
        check(begin(-400 * DAY), &[(0, 0, None)]);
        let found = jump(NewestObject, -400 * DAY);
        // Its clock is set: that is no second jump, and from then on it is watched.
        let next = [(1000, 400 * DAY, None), (2000, 500 * DAY, jump(BootClock, 100 * DAY))];
        check(begin(400 * DAY), &[&[(0, 0, found)][..], &next].concat());
        let mut watch = check(begin(400 * DAY), &[(0, 0, found)]);
        watch.confirm(after(1000, 0));
        check(watch, &[(2000, 0, None), (3000, -DAY, jump(BootClock, -DAY))]);
    }

    #[test]
    fn the_clock_of_a_database_is_one_more_to_agree_with() {
        let mut watch = Watch::begin(None, START);
        watch.note_database(START.wall - DAY, START);
        let mut watch = check(watch, &[(0, 0, jump(Database, DAY)), (1000, 0, jump(Database, DAY))]);
        assert_eq!(watch.expected(after(1000, 0)), START.wall + 1000 - DAY);
        check(watch, &[(2000, -DAY, None), (3000, 0, jump(BootClock, DAY))]);
        // Confirmed: the difference of a day is right from now on, and a further one is not.
        watch.confirm(after(2000, 0));
        let mut watch = check(watch, &[(3000, 0, None)]);
        watch.note_database(START.wall + 4000 - DAY, after(4000, 0));
        let mut watch = check(watch, &[(4000, 0, None)]);
        watch.note_database(START.wall + 5000 - 2 * DAY, after(5000, 0));
        check(watch, &[(5000, 0, jump(Database, DAY))]);
    }
}
