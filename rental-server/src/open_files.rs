//! The limit of open files (file descriptors) of this process. A connection needs one, also to a receiver of webhooks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files for everything but connections and webhook attempts: the store and its database connections, sockets that listen,
/// look-ups of names.
const RESERVE: u64 = 256;

/// Raises the soft limit to the hard limit, which needs no privilege. Logs a warning when the limit is below what `clients`
/// connections and webhook attempts together and [`RESERVE`] need.
pub(crate) fn raise_limit(clients: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "the soft limit of open files could not be raised to the hard limit");
    }
    let needed = clients.saturating_add(RESERVE);
    // `None`: no limit.
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < needed) {
        tracing::warn!(
            limit,
            needed,
            "the limit of open files is too low for --max-connections, operators and webhooks: under load, connections wait and webhooks are delayed; set LimitNOFILE= of the systemd unit (or ulimit -n) to at least the number in `needed`, or lower --max-connections"
        );
    }
}
