//! A Redis Cluster: three masters with a replica each.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::Value;

use super::server::{Folder, Server, until};
use super::{PASSWORD, PASSWORD_IN_URL};

const MASTERS: usize = 3;
const SLOTS: usize = 1 << 14;

/// Six servers that form a cluster. The first three begin as masters.
pub struct Cluster {
    servers: Vec<Server>,
    // Last: servers must be gone before it.
    _folder: Folder,
}

impl Cluster {
    /// One for all tests of a process that only read and write it under names of their own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            // Long enough for a busy machine: nobody takes over where nobody was ended.
            let cluster = Arc::new(Self::start(Duration::from_secs(15)));
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    /// A new one. A replica takes over when its master has not answered for the given time.
    pub fn start(node_patience: Duration) -> Self {
        let folder = Folder::new();
        let servers: Vec<_> = (0..2 * MASTERS).map(|_| node(&folder)).collect();
        let cluster = Self { servers, _folder: folder };
        cluster.form();
        cluster.set_patience(node_patience);
        cluster
    }

    /// From now on a replica takes over when its master has not answered for so long.
    pub fn set_patience(&self, node_patience: Duration) {
        let patience = node_patience.as_millis().to_string();
        for server in &self.servers {
            server.ask::<()>(&["CONFIG", "SET", "cluster-node-timeout", &patience]).unwrap();
        }
    }

    /// The URL for a gateway. It names two nodes only; they know the others.
    pub fn url(&self) -> String {
        let [one, other] = [&self.servers[0], &self.servers[4]].map(Server::address);
        format!("redis+cluster://:{PASSWORD_IN_URL}@{one},{other}")
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub fn server(&mut self, number: usize) -> &mut Server {
        &mut self.servers[number]
    }

    /// The number of a key's master, and of its replica.
    pub fn places(&self, key: &str) -> (usize, usize) {
        self.places_by(self.alive(), key).unwrap()
    }

    pub fn slot(&self, key: &str) -> usize {
        self.alive().ask(&["CLUSTER", "KEYSLOT", key]).unwrap()
    }

    /// A key of each master's, in the order of their first slots.
    pub fn keys(&self, start: &str) -> Vec<String> {
        let layout = self.layout();
        let key = |wanted: &std::ops::RangeInclusive<usize>| {
            let mut names = (0..).map(|number| format!("{start}{number}"));
            names.find(|name| wanted.contains(&self.slot(name))).unwrap()
        };
        layout.iter().map(|(range, _)| key(range)).collect()
    }

    /// Makes a key's master and its replica change places, with nothing lost. All nodes know it
    /// when this returns. They vote about one master only once in a while: a test does this once
    /// for each.
    pub fn fail_over(&self, key: &str) {
        let (master, replica) = self.places(key);
        self.servers[replica].ask::<()>(&["CLUSTER", "FAILOVER"]).unwrap();
        let swapped = |server: &Server| {
            self.is_ready(server) && self.places_by(server, key) == Some((replica, master))
        };
        until(|| self.servers.iter().all(swapped).then_some(()));
    }

    /// The name that a node has among the others.
    pub fn id(&self, number: usize) -> String {
        self.servers[number].ask(&["CLUSTER", "MYID"]).unwrap()
    }

    fn form(&self) {
        for (number, server) in self.servers.iter().enumerate().take(MASTERS) {
            let epoch = (number + 1).to_string();
            server.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).unwrap();
            let first = number * SLOTS / MASTERS;
            let last = (number + 1) * SLOTS / MASTERS - 1;
            let (first, last) = (first.to_string(), last.to_string());
            server.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).unwrap();
        }
        self.meet();
        for (number, replica) in self.servers.iter().enumerate().skip(MASTERS) {
            let master = self.id(number - MASTERS);
            self.until_met(|| replica.ask::<()>(&["CLUSTER", "REPLICATE", &master]).ok());
        }
        self.until_met(|| self.servers.iter().all(|server| self.is_ready(server)).then_some(()));
    }

    /// Asks until there is an answer. Two nodes that could not shake hands in time forget each
    /// other, so they are told again.
    fn until_met<T>(&self, mut ask: impl FnMut() -> Option<T>) -> T {
        let mut asked = 0;
        until(|| {
            asked += 1;
            if asked % 500 == 0 {
                self.meet();
            }
            ask()
        })
    }

    /// All pairs at once, so that nobody has to wait for gossip. Those that know each other stay as
    /// they are.
    fn meet(&self) {
        for one in &self.servers {
            for other in &self.servers {
                let (port, bus) = (other.port().to_string(), other.bus().to_string());
                one.ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).unwrap();
            }
        }
    }

    fn is_ready(&self, server: &Server) -> bool {
        let replication: String = server.ask(&["INFO", "replication"]).unwrap_or_default();
        let replicates =
            replication.contains("master_link_status:up") || replication.contains("state=online");
        let agrees = self.layout_of(server).is_some_and(|ranges| {
            ranges.len() == MASTERS && ranges.iter().all(|(_, nodes)| nodes.len() == 2)
        });
        replicates && agrees && server.says(&["CLUSTER", "INFO"], "cluster_state:ok")
    }

    /// The same, as one node sees it. `None` while there are not two of them.
    fn places_by(&self, server: &Server, key: &str) -> Option<(usize, usize)> {
        let slot = self.slot(key);
        let mut ranges = self.layout_of(server)?.into_iter();
        let (_, nodes) = ranges.find(|(range, _)| range.contains(&slot))?;
        Some((*nodes.first()?, *nodes.get(1)?))
    }

    fn alive(&self) -> &Server {
        let answers = |server: &&Server| server.ask::<String>(&["PING"]).is_ok();
        self.servers.iter().find(answers).unwrap()
    }

    fn layout(&self) -> Vec<Range> {
        self.layout_of(self.alive()).unwrap()
    }

    fn layout_of(&self, server: &Server) -> Option<Vec<Range>> {
        let ranges: Vec<(usize, usize, Vec<Value>)> = server
            .ask::<Vec<Vec<Value>>>(&["CLUSTER", "SLOTS"])
            .ok()?
            .into_iter()
            .map(|range| (number(&range[0]), number(&range[1]), range[2..].to_vec()))
            .collect();
        let place = |node: &Value| {
            let Value::Array(parts) = node else { panic!("no node: {node:?}") };
            let port = number(&parts[1]);
            self.servers.iter().position(|server| usize::from(server.port()) == port)
        };
        let mut layout: Vec<Range> = ranges
            .into_iter()
            .map(|(first, last, nodes)| (first..=last, nodes.iter().filter_map(place).collect()))
            .collect();
        layout.sort_by_key(|(range, _)| *range.start());
        Some(layout)
    }
}

/// Some slots, and the numbers of their master and of its replicas.
type Range = (std::ops::RangeInclusive<usize>, Vec<usize>);

fn node(folder: &Folder) -> Server {
    Server::start_with(folder, |bus, _| {
        [
            ["--cluster-enabled", "yes"],
            ["--cluster-port", &bus.to_string()],
            // They talk to each other the more often, the shorter it is.
            ["--cluster-node-timeout", "1000"],
            ["--masterauth", PASSWORD],
            ["--save", ""],
            ["--repl-diskless-sync-delay", "0"],
            // A replica is named to others once it has received something.
            ["--repl-ping-replica-period", "1"],
        ]
        .as_flattened()
        .iter()
        .map(|&word| word.to_owned())
        .collect()
    })
}

fn number(value: &Value) -> usize {
    let Value::Int(number) = value else { panic!("no number: {value:?}") };
    usize::try_from(*number).unwrap()
}
