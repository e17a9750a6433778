//! Whose failure it is when DNS gives no answer for a name.
//!
//! A DNS server responds with SERVFAIL, or not at all, when it is out of order, and also when only the DNS servers of that
//! name are. The failure is the name's when DNS resolved another name while this one failed. Otherwise it is ours.

use rental_core::webhooks::attempt::Failure;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Most names that are remembered because they fail. A forgotten name fails as if for the first time: the failure is ours.
const MOST_FAILING: usize = 1024;
/// For how long a resolved name shows that DNS works.
const WORKS: Duration = Duration::from_secs(60);
/// A name that was not looked up for this long fails as if for the first time. A failing endpoint is probed far more often.
const FORGOTTEN: Duration = Duration::from_secs(300);
/// Last labels of names that are resolved without the DNS servers of the Internet.
const LOCAL: [&str; 3] = ["localhost", "local", "internal"];

/// The names that were resolved last, and those that fail.
#[derive(Default)]
pub(super) struct NameFailures(Mutex<Names>);

#[derive(Default)]
struct Names {
    /// The last two different names that DNS resolved, the newer one first: one of them is another name than any given one.
    resolved: [Option<(String, Instant)>; 2],
    failing: HashMap<String, Failing>,
}

/// Look-ups of a name that all failed.
struct Failing {
    first: Instant,
    last: Instant,
}

impl NameFailures {
    /// Notes that a name was resolved.
    pub(super) fn note_resolved(&self, name: &str, now: Instant) {
        let is_local = is_local(name, || std::fs::read_to_string("/etc/hosts").unwrap_or_default());
        self.names().note_resolved(name, is_local, now);
    }

    /// Notes that DNS gave no answer for a name, and tells whose failure this is.
    pub(super) fn note_failed(&self, name: &str, now: Instant) -> Failure {
        self.names().note_failed(name, now)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    fn note_resolved(&mut self, name: &str, is_local: bool, now: Instant) {
        self.failing.remove(name);
        if is_local {
            return;
        }
        let [first, second] = &mut self.resolved;
        if first.as_ref().is_none_or(|(known, _)| known != name) {
            *second = first.take();
        }
        *first = Some((name.to_owned(), now));
    }

    fn note_failed(&mut self, name: &str, now: Instant) -> Failure {
        if self.failing.len() >= MOST_FAILING && !self.failing.contains_key(name) {
            let oldest = self.failing.iter().min_by_key(|(_, failing)| failing.last);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.failing.remove(&oldest);
            }
        }
        let failing = self.failing.entry(name.to_owned()).or_insert(Failing { first: now, last: now });
        if now.saturating_duration_since(failing.last) >= FORGOTTEN {
            failing.first = now;
        }
        failing.last = now;
        let first = failing.first;
        let other = self.resolved.iter().flatten().find(|(known, _)| known != name);
        match other {
            Some((_, at)) if *at > first && now.saturating_duration_since(*at) < WORKS => Failure::CannotConnect,
            _ => Failure::ResolverFailed,
        }
    }
}

/// Whether a name is, or may be, resolved without DNS servers elsewhere: it shows nothing about them.
fn is_local(name: &str, hosts: impl FnOnce() -> String) -> bool {
    let Some((_, last)) = name.trim_end_matches('.').rsplit_once('.') else { return true };
    LOCAL.contains(&last) || is_in_hosts(name.trim_end_matches('.'), &hosts())
}

/// Whether a file like `/etc/hosts` has a name.
fn is_in_hosts(name: &str, hosts: &str) -> bool {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(|line| line.split_whitespace().skip(1)).any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Failure = Failure::ResolverFailed;
    const ITS: Failure = Failure::CannotConnect;

    /// Names, and a clock of seconds.
    fn names() -> (Names, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        (Names::default(), move |second| start + Duration::from_secs(second))
    }

    #[test]
    fn a_name_that_fails_while_another_one_is_resolved_fails_by_itself() {
        let (mut names, at) = names();
        assert_eq!(names.note_failed("dead.example", at(1)), OURS, "nothing shows that DNS works");
        names.note_resolved("live.example", false, at(2));
        assert_eq!(names.note_failed("dead.example", at(3)), ITS);
        assert_eq!(names.note_failed("dead.example", at(61)), ITS);
        assert_eq!(names.note_failed("dead.example", at(62)), OURS, "a minute has passed");
        names.note_resolved("live.example", false, at(63));
        assert_eq!(names.note_failed("dead.example", at(64)), ITS);
    }

    #[test]
    fn what_was_resolved_before_the_first_failure_shows_nothing() {
        let (mut names, at) = names();
        names.note_resolved("one.example", false, at(1));
        names.note_resolved("two.example", false, at(2));
        for second in 3..60 {
            for name in ["one.example", "two.example", "three.example"] {
                assert_eq!(names.note_failed(name, at(second)), OURS, "{name} at {second}");
            }
        }
        // The outage is over for one name; it begins again for all of them.
        names.note_resolved("one.example", false, at(60));
        assert_eq!(names.note_failed("one.example", at(61)), OURS);
        assert_eq!(names.note_failed("two.example", at(61)), ITS);
    }

    #[test]
    fn only_another_name_that_dns_resolved_shows_that_it_works() {
        let (mut names, at) = names();
        assert_eq!(names.note_failed("dead.example", at(1)), OURS);
        names.note_resolved("dead.example", false, at(2));
        assert_eq!(names.note_failed("dead.example", at(3)), OURS, "only itself");
        names.note_resolved("in-hosts.example", true, at(4));
        assert_eq!(names.note_failed("dead.example", at(5)), OURS, "not by DNS");
        names.note_resolved("other.example", false, at(6));
        assert_eq!(names.note_failed("dead.example", at(7)), ITS);
        for second in 8..12 {
            names.note_resolved("third.example", false, at(second));
        }
        assert_eq!(names.note_failed("dead.example", at(12)), ITS);
        assert_eq!(
            names.note_failed("third.example", at(13)),
            OURS,
            "it began to fail after the other one was resolved"
        );
    }

    #[test]
    fn a_name_that_was_not_looked_up_for_minutes_fails_as_if_for_the_first_time() {
        let (mut names, at) = names();
        assert_eq!(names.note_failed("dead.example", at(0)), OURS);
        names.note_resolved("live.example", false, at(310));
        assert_eq!(names.note_failed("dead.example", at(311)), OURS);
    }

    #[test]
    fn the_names_that_fail_are_bounded() {
        let (mut names, at) = names();
        for second in 0..MOST_FAILING as u64 + 10 {
            names.note_failed(&format!("name-{second}.example"), at(second));
        }
        assert_eq!(names.failing.len(), MOST_FAILING);
        assert!(!names.failing.contains_key("name-9.example") && names.failing.contains_key("name-10.example"));
    }

    #[test]
    fn names_of_the_machine_and_its_network_are_local() {
        let hosts = || {
            "127.0.0.1 localhost\n192.0.2.1\tOne.Example two.example # three.example\n#192.0.2.2 four.example\n"
                .to_owned()
        };
        for name in ["receiver", "a.localhost", "svc.cluster.local", "db.internal.", "one.example", "two.example."] {
            assert!(is_local(name, hosts), "{name}");
        }
        for name in ["three.example", "four.example", "192.0.2.1.example", "local.example"] {
            assert!(!is_local(name, hosts), "{name}");
        }
    }
}
