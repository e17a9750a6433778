//! Names of the files in the folder of backups, and which of them go. Pure.

use rental_core::value::Timestamp;
use std::collections::BTreeSet;

/// Ending of a backup that was written to its end and checked.
pub(super) const GOOD: &str = ".backup";
/// Ending of one that lacks damaged rows or could not be read back. Nothing relies on it.
pub(super) const FAILED: &str = ".failed.backup";
/// Ending of one that is being written, or was when its server was killed.
pub(super) const PARTIAL: &str = ".backup.partial";
/// The newest backup of each of so many days stays.
const DAYS: usize = 14;
/// So many failed backups stay, the newest ones: each has nearly the whole store.
const MOST_FAILED: usize = 2;

/// The name of a backup without its ending: `rental-20260505T093000000Z`. Names rise with their times.
pub(super) fn stem(time: Timestamp) -> String {
    let digits: String = time.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("rental-{digits}")
}

/// When the backup with this name began; `None` for any other file.
pub(super) fn time(stem: &str) -> Option<Timestamp> {
    let digits = stem.strip_prefix("rental-").filter(|digits| digits.len() == 19 && digits.is_ascii())?;
    let part = |from: usize, to: usize| &digits[from..to];
    let date = [part(0, 4), part(4, 6), part(6, 8)].join("-");
    let clock = [part(9, 11), part(11, 13), part(13, 15)].join(":");
    Timestamp::parse(&format!("{date}T{clock}.{}Z", part(15, 18))).filter(|time| self::stem(*time) == stem)
}

/// What of the folder's files is ours, by rising times.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) good: BTreeSet<String>,
    pub(super) failed: BTreeSet<String>,
    pub(super) partial: BTreeSet<String>,
}

impl Files {
    /// Sorts the names of a folder.
    pub(super) fn among(names: impl IntoIterator<Item = String>) -> Self {
        let mut files = Self::default();
        for name in names {
            let kinds = [(FAILED, &mut files.failed), (PARTIAL, &mut files.partial), (GOOD, &mut files.good)];
            for (ending, kind) in kinds {
                if let Some(stem) = name.strip_suffix(ending).filter(|stem| time(stem).is_some()) {
                    kind.insert(stem.to_owned());
                    break;
                }
            }
        }
        files
    }

    /// When the newest good backup was begun. One from the future was made by a wrong clock and does not count.
    pub(super) fn newest(&self, now: Timestamp) -> Option<Timestamp> {
        self.good.iter().rev().filter_map(|stem| time(stem)).find(|time| *time <= now)
    }

    /// The names of the files that go after a good backup: beside the newest `keep` and the newest of each of the last
    /// [`DAYS`] days that have one, everything.
    pub(super) fn outdated(&self, keep: usize) -> Vec<String> {
        let (mut days, mut outdated) = (BTreeSet::new(), Vec::new());
        let mut oldest_kept = None;
        for (at, stem) in self.good.iter().rev().enumerate() {
            let is_newest_of_day = days.insert(stem.get(..15));
            if at < keep || (is_newest_of_day && days.len() <= DAYS) {
                oldest_kept = Some(stem);
            } else {
                outdated.push(format!("{stem}{GOOD}"));
            }
        }
        let failed = self.failed.iter().rev().take(MOST_FAILED).filter(|stem| Some(*stem) < oldest_kept);
        outdated.extend(failed.map(|stem| format!("{stem}{FAILED}")));
        outdated.extend(self.surplus());
        outdated
    }

    /// The names of the failed backups that go after any backup.
    pub(super) fn surplus(&self) -> impl Iterator<Item = String> {
        self.failed.iter().rev().skip(MOST_FAILED).map(|stem| format!("{stem}{FAILED}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_name_tells_its_time_and_other_files_are_left_alone() {
        let now = at("2026-05-05T09:30:00.250Z");
        assert_eq!(stem(now), "rental-20260505T093000250Z");
        assert_eq!(time(&stem(now)), Some(now));
        let names = [
            "rental-20260505T093000250Z.backup",
            "rental-2026-05-05.backup",
            "rental-20269905T093000250Z.backup",
            "notes.txt",
        ];
        let files = Files::among(names.map(str::to_owned));
        assert_eq!((files.good.len(), files.failed.len(), files.partial.len()), (1, 0, 0));
        let kinds = ["rental-20260505T093000250Z.failed.backup", "rental-20260505T093000250Z.backup.partial"];
        let files = Files::among(kinds.map(str::to_owned));
        assert_eq!((files.good.len(), files.failed.len(), files.partial.len()), (0, 1, 1));
    }

    #[test]
    fn a_backup_from_the_future_is_not_the_newest() {
        let files = Files::among(
            ["2026-05-05T00:00:00Z", "2030-01-01T00:00:00Z"].map(|time| format!("{}{GOOD}", stem(at(time)))),
        );
        assert_eq!(files.newest(at("2026-05-06T00:00:00Z")), Some(at("2026-05-05T00:00:00Z")));
        assert_eq!(files.newest(at("2026-05-04T00:00:00Z")), None);
    }

    #[test]
    fn the_newest_24_and_the_newest_of_14_days_stay() {
        // One each hour of 20 days.
        let first = at("2026-05-01T00:00:00Z");
        let hour = |n: i64| stem(first.plus_millis(n * 3_600_000));
        let files = Files::among((0..480).map(|n| format!("{}{GOOD}", hour(n))));
        let outdated = files.outdated(24);
        assert_eq!(outdated.len(), 480 - 24 - 13, "the newest day is among the 24");
        for (kept, n) in
            [(true, 479), (true, 456), (false, 454), (true, 455), (true, 6 * 24 + 23), (false, 5 * 24 + 23)]
        {
            assert_eq!(!outdated.contains(&format!("{}{GOOD}", hour(n))), kept, "hour {n}");
        }
        // A server that was off for a year loses nothing by that, and the number that is kept is at least one.
        let files = Files::among([0, 1, 2, 9000].map(|n| format!("{}{GOOD}", hour(n))));
        assert_eq!(files.outdated(1), [1, 0].map(|n| format!("{}{GOOD}", hour(n))));
    }

    #[test]
    fn a_failed_backup_goes_once_a_good_one_that_is_kept_is_older_than_all_that_it_has() {
        let names = ["2026-05-01T00:00:00Z", "2026-05-03T00:00:00Z"].map(|time| format!("{}{FAILED}", stem(at(time))));
        let good = format!("{}{GOOD}", stem(at("2026-05-02T00:00:00Z")));
        let files = Files::among(names.clone().into_iter().chain([good]));
        assert_eq!(files.outdated(24), names[..1]);
    }

    #[test]
    fn the_newest_two_failed_backups_stay_and_each_goes_once() {
        let names = [1, 2, 3, 4].map(|day| format!("{}{FAILED}", stem(at(&format!("2026-05-0{day}T00:00:00Z")))));
        let files = Files::among(names.clone());
        assert_eq!(files.surplus().collect::<Vec<_>>(), [names[1].clone(), names[0].clone()]);
        let good = format!("{}{GOOD}", stem(at("2026-05-04T00:00:00Z")));
        let files = Files::among(names.clone().into_iter().chain([good]));
        assert_eq!(files.outdated(24), [2, 1, 0].map(|at| names[at].clone()));
    }
}
