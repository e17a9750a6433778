//! Threads of the server: those of requests, and those of its background tasks, which yield to them.

use std::{future::Future, io, time::Duration};
use tokio::runtime::{Builder, Handle, Runtime};

/// While both want a processor, a thread of background tasks gets a tenth of the time that one of requests gets.
/// Deliveries go on under load, and most of the processors stays with requests.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// How long the exit waits for threads that are at work when everything has stopped and the store is closed.
const LONGEST_LEFT_OVER: Duration = Duration::from_secs(1);

/// Runs the server to its end on the threads of requests. It gets those of background tasks.
pub(crate) fn run<F>(server: impl FnOnce(Handle) -> F) -> Result<(), String>
where
    F: Future<Output = Result<(), String>>,
{
    let failed = |error| format!("cannot start: {error}");
    let (requests, background) = (of_requests().map_err(failed)?, of_background().map_err(failed)?);
    let outcome = requests.block_on(server(background.handle().clone()));
    // Without this, the exit would wait for threads of look-ups of names, and a silent name server answers none of them.
    background.shutdown_timeout(LONGEST_LEFT_OVER);
    requests.shutdown_timeout(LONGEST_LEFT_OVER);
    outcome
}

/// The threads that serve requests.
fn of_requests() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// The threads of background tasks. On other systems than Linux, where the priority is that of the process, they are like those of
/// requests.
fn of_background() -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        // A thread that another one of them starts has its priority already, so it is set and not lowered once more.
        let priority = getpriority_process(None)? + NICE;
        builder.on_thread_start(move || {
            let _ = setpriority_process(None, priority);
        });
    }
    builder.thread_name("background").enable_all().build()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn background_tasks_yield_to_requests() {
        let priority = |threads: &Runtime| {
            let asked = threads.spawn_blocking(|| {
                // A thread that is started by one of them.
                let next = Handle::current().spawn_blocking(|| getpriority_process(None).unwrap());
                (getpriority_process(None).unwrap(), Handle::current().block_on(next).unwrap())
            });
            threads.block_on(asked).unwrap()
        };
        let own = getpriority_process(None).unwrap();
        assert_eq!(priority(&of_requests().unwrap()), (own, own));
        let lower = (own + NICE).min(19);
        assert_eq!(priority(&of_background().unwrap()), (lower, lower));
    }
}
