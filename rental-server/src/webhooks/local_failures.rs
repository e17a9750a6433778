//! Attempts that failed for a reason of this server or its network: logged once for each episode.

use rental_core::{value::EndpointId, webhooks::attempt::Failure};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

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
