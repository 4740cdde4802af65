//! Raises the limit of open files and sockets of the program.

use std::io;

use edgelatch_gateway::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Files beside those that the configuration limits: connections that are refused for lack of room,
/// connections to Sentinels and to further nodes of a cluster, and the program's own files.
const RESERVE: usize = 128;

/// Raises the limit of this process to the highest that it may set, and logs a warning if the
/// limits in `config` need more: some clients' connections could then stop the gateway from
/// accepting other ones.
pub(crate) fn raise_limit(config: &Config) {
    let needed = needed(config);
    let limit = raise_to_maximum().unwrap_or(u64::MAX);
    if needed > limit {
        warn!(
            "this process may have {limit} files open, and its limits need {needed}: raise the limit \
             (ulimit -n, LimitNOFILE), or lower --connection-limit, --stream-limit or --wait-limit"
        );
    }
}

fn needed(config: &Config) -> u64 {
    let numbers = [
        config.connection_limit,
        config.stream_limit,
        config.wait_limit,
        config.connections,
        RESERVE,
    ];
    u64::try_from(numbers.into_iter().fold(0, usize::saturating_add)).unwrap_or(u64::MAX)
}

/// Raises the limit, and returns the new one; `None` if there is no limit.
fn raise_to_maximum() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    match setrlimit(Resource::Nofile, raised).map_err(io::Error::from) {
        Ok(()) => maximum,
        Err(error) => {
            warn!(%error, "cannot raise the limit of open files");
            current
        }
    }
}
