use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pauses so short that a test does not wait for them.
const SHORT: Limits = Limits {
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(2),
    recovered_after: Duration::from_secs(3600),
    most_deaths: 5,
    period: Duration::from_secs(3600),
};

/// A supervisor that hardly waits before it starts a task again.
pub(crate) fn hasty() -> Arc<Supervisor> {
    Supervisor::with(SHORT, Handle::current())
}

/// How often a task was started again.
pub(crate) fn restarts(supervisor: &Supervisor, task: &'static str) -> u64 {
    supervisor.restarts.get_or_create(&Labels { task }).get()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn pauses_double_up_to_thirty_seconds_and_begin_anew_after_a_minute() {
    let mut restarts = Restarts::default();
    let pauses: Vec<u64> = (0..7).map(|_| restarts.pause(seconds(59), &LIMITS).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(restarts.pause(seconds(60), &LIMITS), seconds(1));
    assert_eq!(restarts.pause(seconds(0), &LIMITS), seconds(2));
}

/// The deaths of a task that died at these seconds and was started again a second later each time.
fn died_at(times: &[u64]) -> (Instant, Deaths) {
    let (begin, mut deaths) = (Instant::now(), Deaths::default());
    for time in times {
        deaths.died(begin + seconds(*time), &LIMITS);
        deaths.started(begin + seconds(time + 1));
    }
    (begin, deaths)
}

#[test]
fn five_deaths_within_five_minutes_are_too_many_until_the_task_has_run_for_a_minute() {
    let (begin, deaths) = died_at(&[0, 10, 20, 30]);
    assert!(!deaths.are_too_many(begin + seconds(31), &LIMITS));
    let (begin, deaths) = died_at(&[0, 10, 20, 30, 300]);
    assert!(deaths.are_too_many(begin + seconds(301), &LIMITS));
    assert!(deaths.are_too_many(begin + seconds(360), &LIMITS));
    assert!(!deaths.are_too_many(begin + seconds(361), &LIMITS));
}

#[test]
fn deaths_that_are_further_apart_are_not_too_many() {
    let (begin, deaths) = died_at(&[0, 10, 20, 30, 301]);
    assert!(!deaths.are_too_many(begin + seconds(302), &LIMITS));
    let (begin, deaths) = died_at(&[0, 10, 20, 30, 301, 302]);
    assert!(deaths.are_too_many(begin + seconds(303), &LIMITS), "the last five");
}

#[test]
fn a_task_that_waits_for_its_restart_does_not_recover() {
    let (begin, mut deaths) = died_at(&[0, 1, 2, 3]);
    deaths.died(begin + seconds(4), &LIMITS);
    assert!(deaths.are_too_many(begin + seconds(4000), &LIMITS));
}

/// Work that dies `deaths` times and then runs until the server stops.
fn dying(supervisor: &Arc<Supervisor>, deaths: usize, panics: bool) -> impl Fn() -> BoxedWork + Send + Sync + 'static {
    let (supervisor, lives) = (Arc::clone(supervisor), Arc::new(AtomicUsize::new(0)));
    move || {
        let (supervisor, life) = (Arc::clone(&supervisor), lives.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move {
            match (life < deaths, panics) {
                (true, true) => panic!("injected"),
                (true, false) => {}
                (false, _) => drop(supervisor.stops_within(Duration::MAX).await),
            }
        })
    }
}

type BoxedWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until this holds. A test that waits in vain fails.
async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited in vain");
}

#[tokio::test]
async fn a_task_that_panics_or_ends_is_counted_and_started_again() {
    for panics in [true, false] {
        let supervisor = Supervisor::with(SHORT, Handle::current());
        let task = supervisor.start("relay", dying(&supervisor, 4, panics));
        until(|| restarts(&supervisor, "relay") == 4).await;
        assert_eq!(supervisor.failing(), None, "four deaths are not too many");
        supervisor.stop();
        task.await.unwrap();
        assert_eq!(restarts(&supervisor, "relay"), 4, "ending when the server stops is no death");
    }
}

#[tokio::test]
async fn a_task_that_keeps_dying_makes_the_server_not_ready_and_is_named() {
    let supervisor = Supervisor::with(SHORT, Handle::current());
    let well = supervisor.start("cluster", dying(&supervisor, 0, true));
    let task = supervisor.start("relay", dying(&supervisor, usize::MAX, true));
    until(|| supervisor.failing() == Some("relay")).await;
    supervisor.stop();
    task.await.unwrap();
    well.await.unwrap();
    assert!(restarts(&supervisor, "relay") >= 4);
    assert_eq!(restarts(&supervisor, "cluster"), 0);
}

#[tokio::test]
async fn a_panic_before_the_first_wait_is_caught_too() {
    let supervisor = Supervisor::with(SHORT, Handle::current());
    let lives = AtomicUsize::new(0);
    let call = || {
        assert!(lives.fetch_add(1, Ordering::Relaxed) > 1, "injected");
        async {}
    };
    supervisor.run_one_of("lane", call).await;
    assert_eq!(restarts(&supervisor, "lane"), 2);
}

#[tokio::test]
async fn one_of_many_may_end_and_its_deaths_leave_the_server_ready() {
    let supervisor = Supervisor::with(SHORT, Handle::current());
    let lives = AtomicUsize::new(0);
    supervisor
        .run_one_of("lane", || async {
            assert!(lives.fetch_add(1, Ordering::Relaxed) >= 9, "injected");
        })
        .await;
    assert_eq!(restarts(&supervisor, "lane"), 9);
    assert_eq!(supervisor.failing(), None);
}

#[tokio::test]
async fn a_stop_ends_the_pause_before_a_restart() {
    let supervisor = Supervisor::with(
        Limits { first_pause: Duration::MAX, longest_pause: Duration::MAX, ..SHORT },
        Handle::current(),
    );
    let task = supervisor.start("relay", dying(&supervisor, usize::MAX, true));
    until(|| restarts(&supervisor, "relay") == 1).await;
    supervisor.stop();
    task.await.unwrap();
}
