//! Threads of the server: those of requests, and those of its background tasks, which yield to them.

use std::io;
use tokio::runtime::{Builder, Runtime};

/// While both want a processor, a thread of background tasks gets a tenth of the time that one of requests gets.
/// Deliveries go on under load, and most of the processors stays with requests.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// The threads that serve requests.
pub(crate) fn of_requests() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// The threads of background tasks. On other systems than Linux, where the priority is that of the process, they are like those of
/// requests.
pub(crate) fn of_background() -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    #[cfg(target_os = "linux")]
    builder.on_thread_start(|| {
        let _ = rustix::process::nice(NICE);
    });
    builder.thread_name("background").enable_all().build()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn background_tasks_yield_to_requests() {
        let priority = |threads: Runtime| {
            let asked = threads.spawn_blocking(|| getpriority_process(None).unwrap());
            threads.block_on(asked).unwrap()
        };
        let own = getpriority_process(None).unwrap();
        assert_eq!(priority(of_requests().unwrap()), own);
        assert_eq!(priority(of_background().unwrap()), (own + NICE).min(19));
    }
}
