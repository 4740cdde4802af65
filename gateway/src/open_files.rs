//! How many files and sockets the program may have open.

use std::io;

use edgelatch_gateway::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Beside the connections that have a limit: those that are told that there is no room, the shared
/// ones to Redis, and what the program has open itself.
const RESERVE: usize = 128;

/// Raises the limit of this process as far as it may, and warns if the limits of `config` go beyond
/// it: then clients that open connections keep the gateway from accepting others.
pub(crate) fn make_room(config: &Config) {
    let needed = needed(config);
    let limit = raise().unwrap_or(u64::MAX);
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

/// The limit that holds from now on; `None` if there is none.
fn raise() -> Option<u64> {
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
