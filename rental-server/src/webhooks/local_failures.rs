//! Failures of this server and its network: which system errors tell of one, and a log line for each episode.

use rental_core::{value::EndpointId, webhooks::attempt::Failure};
use rustix::io::Errno;
use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The failure of this server that an error tells of, if it does.
pub(super) fn local_failure(error: &io::Error) -> Option<Failure> {
    Some(match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Failure::NoFileDescriptors,
        Errno::NOMEM | Errno::NOBUFS => Failure::NoMemory,
        Errno::ADDRNOTAVAIL => Failure::NoLocalPort,
        Errno::NETUNREACH | Errno::NETDOWN | Errno::ACCESS | Errno::PERM => Failure::NoRoute,
        _ => return None,
    })
}

/// An episode is over when there was no such failure for this long: several times the longest pause between two attempts.
const EPISODE_GAP: Duration = Duration::from_secs(300);

/// When each kind of failure was last seen.
#[derive(Default)]
pub(super) struct LocalFailures(Mutex<HashMap<Failure, Instant>>);

impl LocalFailures {
    /// Logs the first failure of an episode.
    pub(super) fn note(&self, failure: Failure, endpoint: EndpointId) {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(failure, Instant::now());
        if last.is_some_and(|last| last.elapsed() < EPISODE_GAP) {
            return;
        }
        let (failure, advice) = (failure.as_str(), advice(failure));
        tracing::warn!(failure, %endpoint, "this server cannot send webhook deliveries; they are tried again and count against no endpoint; {advice}");
    }
}

fn advice(failure: Failure) -> &'static str {
    match failure {
        Failure::NoFileDescriptors => "raise the limit of open files (LimitNOFILE)",
        Failure::NoMemory => "free memory on this machine",
        Failure::NoLocalPort => "widen net.ipv4.ip_local_port_range, or check the addresses of this machine",
        Failure::NoRoute => "check the routes, the gateway and the firewall of this machine",
        Failure::ResolverFailed => "check the DNS servers of this machine",
        _ => "check this machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_this_machine_are_local_and_those_of_a_receiver_are_not() {
        for (error, failure) in [
            (Errno::MFILE, Failure::NoFileDescriptors),
            (Errno::NFILE, Failure::NoFileDescriptors),
            (Errno::NOMEM, Failure::NoMemory),
            (Errno::NOBUFS, Failure::NoMemory),
            (Errno::ADDRNOTAVAIL, Failure::NoLocalPort),
            (Errno::NETUNREACH, Failure::NoRoute),
            (Errno::NETDOWN, Failure::NoRoute),
            (Errno::ACCESS, Failure::NoRoute),
            (Errno::PERM, Failure::NoRoute),
        ] {
            assert_eq!(local_failure(&error.into()), Some(failure), "{error}");
            assert!(failure.is_local());
        }
        for error in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::TIMEDOUT, Errno::HOSTUNREACH, Errno::PIPE] {
            assert_eq!(local_failure(&error.into()), None, "{error}");
        }
    }
}
