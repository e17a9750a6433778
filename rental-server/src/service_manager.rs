//! A service manager such as systemd: the sockets that it opens for the server (socket activation), and what the server tells
//! it (`sd_notify`). Without one, there are no sockets and nobody is told.

use listenfd::ListenFd;
use sd_notify::NotifyState;
use std::{
    net::TcpListener,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

/// How long the service manager waits for the next message of a server that opens or upgrades its store. It gets one every 5 s.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(120);
/// How often it gets a message of a server that opens its store.
const OPENING_TOLD_EVERY: Duration = Duration::from_secs(5);

/// The sockets that the service manager has opened, in its order. Changes the environment, so call it before threads start.
pub(crate) fn sockets() -> Result<Vec<TcpListener>, String> {
    let mut passed = ListenFd::from_env();
    let number = passed.len();
    let take = |at| match passed.take_tcp_listener(at) {
        Ok(Some(listener)) => Ok(listener),
        Ok(None) => Err(format!("socket {at} of the service manager is missing")),
        Err(error) => Err(format!(
            "socket {at} of the service manager cannot be used: {error}; ListenStream= must be an IP address and a port"
        )),
    };
    (0..number).map(take).collect()
}

/// Checks that there is one socket for each address that would be listened on without a service manager.
pub(crate) fn check_number(passed: usize, operator_listen: bool) -> Result<(), String> {
    match (passed, operator_listen) {
        (1, false) | (2, true) => Ok(()),
        (_, false) => Err(format!(
            "the service manager passes {passed} sockets, and one is needed: keep one ListenStream=, or set --operator-listen \
             (RENTAL_OPERATOR_LISTEN) and keep two"
        )),
        (_, true) => Err(format!(
            "the service manager passes {passed} sockets, and two are needed: a ListenStream= for clients, and after it one \
             for operators, because --operator-listen is set"
        )),
    }
}

/// The server serves.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// The server shuts down.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing the requests in progress")]);
}

/// The server opens or upgrades its store: it needs more time to become ready.
pub(crate) fn not_yet_ready(status: &str) {
    let micros = u32::try_from(UPGRADE_PATIENCE.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::ExtendTimeoutUsec(micros), NotifyState::Status(status)]);
}

/// Tells the service manager every few seconds that a start needs more time, until it is dropped.
pub(crate) struct Patience {
    _ends: Sender<()>,
}

impl Patience {
    /// `status` says what takes its time.
    pub(crate) fn start(status: &'static str) -> Self {
        let (ends, ended) = mpsc::channel();
        // A thread of its own: what it waits for occupies that of the runtime. Without the thread, the start is only less patient.
        let _ = thread::Builder::new().name("patience".into()).spawn(move || {
            while matches!(ended.recv_timeout(OPENING_TOLD_EVERY), Err(RecvTimeoutError::Timeout)) {
                not_yet_ready(status);
            }
        });
        Self { _ends: ends }
    }
}

fn tell(state: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager could not be told the state of the server (NOTIFY_SOCKET)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_socket_for_each_address() {
        for (passed, operator_listen, fits) in
            [(1, false, true), (2, true, true), (2, false, false), (1, true, false), (3, true, false)]
        {
            assert_eq!(check_number(passed, operator_listen).is_ok(), fits, "{passed} {operator_listen}");
        }
    }
}
