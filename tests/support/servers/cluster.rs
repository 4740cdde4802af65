//! A Redis Cluster: three masters with one replica each.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::Value;

use super::server::{Folder, Server, until};
use super::{PASSWORD, PASSWORD_IN_URL};

const MASTERS: usize = 3;
const SLOTS: usize = 1 << 14;

/// Six servers that form a cluster. The first three start as masters.
pub struct Cluster {
    servers: Vec<Server>,
    // Last: the servers must be dropped before their folder.
    _folder: Folder,
}

impl Cluster {
    /// A cluster shared by all tests of a process that only read and write under names of their
    /// own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            // 15 s: no replica takes over just because the machine is busy.
            let cluster = Arc::new(Self::start(Duration::from_secs(15)));
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    /// Starts a new cluster. A replica takes over when its master has been unresponsive for
    /// `node_patience`.
    pub fn start(node_patience: Duration) -> Self {
        let folder = Folder::new();
        let servers: Vec<_> = (0..2 * MASTERS).map(|_| node(&folder)).collect();
        let cluster = Self { servers, _folder: folder };
        cluster.form();
        cluster.set_patience(node_patience);
        cluster
    }

    /// Sets how long a master may be unresponsive before a replica takes over.
    pub fn set_patience(&self, node_patience: Duration) {
        let patience = node_patience.as_millis().to_string();
        for server in &self.servers {
            server.query::<()>(&["CONFIG", "SET", "cluster-node-timeout", &patience]).unwrap();
        }
    }

    /// The URL for a gateway. It names two nodes; they report the others.
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
        self.alive().query(&["CLUSTER", "KEYSLOT", key]).unwrap()
    }

    /// A key of each master, in the order of their first slots.
    pub fn keys(&self, start: &str) -> Vec<String> {
        let layout = self.layout();
        let key = |wanted: &std::ops::RangeInclusive<usize>| {
            let mut names = (0..).map(|number| format!("{start}{number}"));
            names.find(|name| wanted.contains(&self.slot(name))).unwrap()
        };
        layout.iter().map(|(range, _)| key(range)).collect()
    }

    /// Makes a key's master and its replica change roles without any loss. All nodes know it when
    /// this returns. The nodes vote about one master only once in a while, so a test calls this
    /// once for each master.
    pub fn fail_over(&self, key: &str) {
        let (master, replica) = self.places(key);
        self.servers[replica].query::<()>(&["CLUSTER", "FAILOVER"]).unwrap();
        let swapped = |server: &Server| {
            self.is_ready(server) && self.places_by(server, key) == Some((replica, master))
        };
        until(|| self.servers.iter().all(swapped).then_some(()));
    }

    /// The cluster id of a node.
    pub fn id(&self, number: usize) -> String {
        self.servers[number].query(&["CLUSTER", "MYID"]).unwrap()
    }

    fn form(&self) {
        for (number, server) in self.servers.iter().enumerate().take(MASTERS) {
            let epoch = (number + 1).to_string();
            server.query::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).unwrap();
            let first = number * SLOTS / MASTERS;
            let last = (number + 1) * SLOTS / MASTERS - 1;
            let (first, last) = (first.to_string(), last.to_string());
            server.query::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).unwrap();
        }
        self.meet();
        for (number, replica) in self.servers.iter().enumerate().skip(MASTERS) {
            let master = self.id(number - MASTERS);
            self.until_met(|| replica.query::<()>(&["CLUSTER", "REPLICATE", &master]).ok());
        }
        self.until_met(|| self.servers.iter().all(|server| self.is_ready(server)).then_some(()));
    }

    /// Retries `ask` until it returns a value. Two nodes that could not complete their handshake
    /// forget each other, so `CLUSTER MEET` is repeated.
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

    /// Introduces all pairs at once, so that no node waits for gossip. Nodes that know each other
    /// ignore it.
    fn meet(&self) {
        for one in &self.servers {
            for other in &self.servers {
                let (port, bus) = (other.port().to_string(), other.bus().to_string());
                one.query::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).unwrap();
            }
        }
    }

    fn is_ready(&self, server: &Server) -> bool {
        let replication: String = server.query(&["INFO", "replication"]).unwrap_or_default();
        let replicates =
            replication.contains("master_link_status:up") || replication.contains("state=online");
        let agrees = self.layout_of(server).is_some_and(|ranges| {
            ranges.len() == MASTERS && ranges.iter().all(|(_, nodes)| nodes.len() == 2)
        });
        replicates && agrees && server.says(&["CLUSTER", "INFO"], "cluster_state:ok")
    }

    /// The numbers of a key's master and of its replica, as `server` sees them; `None` until it
    /// knows both.
    fn places_by(&self, server: &Server, key: &str) -> Option<(usize, usize)> {
        let slot = self.slot(key);
        let mut ranges = self.layout_of(server)?.into_iter();
        let (_, nodes) = ranges.find(|(range, _)| range.contains(&slot))?;
        Some((*nodes.first()?, *nodes.get(1)?))
    }

    fn alive(&self) -> &Server {
        let answers = |server: &&Server| server.query::<String>(&["PING"]).is_ok();
        self.servers.iter().find(answers).unwrap()
    }

    fn layout(&self) -> Vec<Range> {
        self.layout_of(self.alive()).unwrap()
    }

    fn layout_of(&self, server: &Server) -> Option<Vec<Range>> {
        let ranges: Vec<(usize, usize, Vec<Value>)> = server
            .query::<Vec<Vec<Value>>>(&["CLUSTER", "SLOTS"])
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

/// A range of slots, and the numbers of its master and of its replicas.
type Range = (std::ops::RangeInclusive<usize>, Vec<usize>);

fn node(folder: &Folder) -> Server {
    Server::start_with(folder, |bus, _| {
        [
            ["--cluster-enabled", "yes"],
            ["--cluster-port", &bus.to_string()],
            // The shorter this is, the more often nodes send messages to each other.
            ["--cluster-node-timeout", "1000"],
            ["--masterauth", PASSWORD],
            ["--save", ""],
            ["--repl-diskless-sync-delay", "0"],
            // The cluster announces a replica once it has received a ping from its master.
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
