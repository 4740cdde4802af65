//! Raises the limit of open files and sockets of the program.

use std::io;
use std::time::Duration;

use edgelatch_gateway::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::interval;
use tracing::warn;

/// Files beside those that the configuration limits: connections beyond their limit until they are
/// refused, connections to Sentinels and to the nodes of a cluster that the URL names, and the
/// program's own files.
const RESERVE: usize = 128;
/// The interval between two checks of the number of Redis nodes.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The limit of open files of this process.
pub(crate) struct OpenFiles {
    /// `u64::MAX` if there is no limit.
    limit: u64,
    /// The largest need that was logged.
    warned: u64,
}

impl OpenFiles {
    /// Raises the limit of this process to the highest that it may set.
    pub(crate) fn raise_limit() -> Self {
        Self { limit: raise_to_maximum().unwrap_or(u64::MAX), warned: 0 }
    }

    /// Logs a warning if the limits in `config` need more with this number of Redis nodes: some
    /// clients' connections could then stop the gateway from accepting other ones.
    pub(crate) fn check(&mut self, config: &Config, nodes: usize) {
        let limit = self.limit;
        if let Some(needed) = self.new_excess(needed(config, nodes)) {
            warn!(
                "this process may have {limit} files open, and its limits need {needed}: raise the limit \
                 (ulimit -n, LimitNOFILE), or lower --connection-limit, --stream-limit or --wait-limit"
            );
        }
    }

    /// Checks again and again, since a cluster's nodes are known only after its first reply. Ends
    /// never.
    pub(crate) async fn watch(mut self, config: &Config, nodes: impl Fn() -> usize) {
        let mut checks = interval(CHECK_EVERY);
        loop {
            checks.tick().await;
            self.check(config, nodes());
        }
    }

    /// Returns `needed` if it is above the limit, and above every earlier need.
    fn new_excess(&mut self, needed: u64) -> Option<u64> {
        let is_new = needed > self.limit && needed > self.warned;
        is_new.then(|| {
            self.warned = needed;
            needed
        })
    }
}

/// Returns the number of files that the limits allow. Each node of a cluster has its own shared
/// connections, and a request that waits for replicas may wait on each of them.
fn needed(config: &Config, nodes: usize) -> u64 {
    let of_node = config.connections.saturating_add(config.wait_limit);
    let of_nodes = of_node.saturating_mul(nodes);
    let numbers = [config.connection_limit, config.stream_limit, of_nodes, RESERVE];
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

#[cfg(test)]
mod tests {
    use edgelatch_gateway::{RedisSource, Tokens};

    use super::*;

    #[test]
    fn each_node_of_a_cluster_needs_its_connections_and_waits() {
        let tokens = Tokens::new(["token-of-sixteen-characters"]).unwrap();
        let mut config = Config::new(RedisSource::Private, tokens);
        (config.connection_limit, config.stream_limit) = (200, 10);
        (config.connections, config.wait_limit) = (2, 3);
        assert_eq!([1, 3, 9].map(|nodes| needed(&config, nodes)), [343, 353, 383]);
        config.wait_limit = usize::MAX;
        assert_eq!(needed(&config, 9), u64::MAX);
    }

    #[test]
    fn a_need_beyond_the_limit_is_logged_once_until_it_grows() {
        let mut files = OpenFiles { limit: 350, warned: 0 };
        assert_eq!(
            [343, 353, 353, 343, 383].map(|needed| files.new_excess(needed)),
            [None, Some(353), None, None, Some(383)]
        );
    }
}
