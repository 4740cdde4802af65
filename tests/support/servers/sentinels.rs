//! A master, two replicas, and three Sentinels that monitor them.

use std::collections::HashMap;
use std::time::Duration;
use std::{fs, iter};

use super::server::{Folder, Server, until};
use super::{PASSWORD, PASSWORD_IN_URL};

/// The master's name in the Sentinels' configuration.
const NAME: &str = "main";
const COUNT: usize = 3;

/// Three servers, the first of them the initial master, and three Sentinels.
pub struct Sentinels {
    servers: Vec<Server>,
    /// The port at which the other servers reach each server.
    ports: Vec<u16>,
    sentinels: Vec<Server>,
    // Last: the servers must be dropped before their folder.
    _folder: Folder,
}

impl Sentinels {
    /// Starts servers that are ready to vote. A master that is unresponsive for two seconds is
    /// voted out.
    pub fn start() -> Self {
        Self::start_behind(|port| port)
    }

    /// Starts servers that are ready to vote. Replicas, Sentinels and clients reach the first
    /// master at the port that `lead` returns for its port.
    pub fn start_behind(lead: impl FnOnce(u16) -> u16) -> Self {
        let folder = Folder::new();
        let master = Server::start(&folder, &common());
        let port = lead(master.port());
        let address = format!("127.0.0.1 {port}");
        let mut servers = vec![master];
        for _ in 1..COUNT {
            let options = [&common()[..], &["--replicaof", &address]].concat();
            servers.push(Server::start(&folder, &options));
        }
        until(|| {
            let replication = servers[0].query::<String>(&["INFO", "replication"]).ok()?;
            (replication.matches("state=online").count() == COUNT - 1).then_some(())
        });
        let replicas = servers[1..].iter().map(Server::port);
        let ports = iter::once(port).chain(replicas).collect();
        let sentinels: Vec<_> = (0..COUNT).map(|_| sentinel(&folder, port)).collect();
        let all = Self { servers, ports, sentinels, _folder: folder };
        until(|| all.sentinels.iter().all(is_ready).then_some(()));
        all
    }

    /// The URL for a gateway.
    pub fn url(&self) -> String {
        let sentinels: Vec<_> = self.sentinels.iter().map(Server::address).collect();
        let sentinels = sentinels.join(",");
        format!(
            "redis+sentinel://:{PASSWORD_IN_URL}@{sentinels}/{NAME}/0\
             ?sentinel-password={PASSWORD_IN_URL}"
        )
    }

    /// Sets how long a master may be unresponsive before it is voted out.
    pub fn set_patience(&self, patience: Duration) {
        let after = patience.as_millis().to_string();
        let set = ["SENTINEL", "SET", NAME, "down-after-milliseconds", &after];
        for sentinel in &self.sentinels {
            sentinel.query::<()>(&set).unwrap();
        }
    }

    pub fn server(&mut self, number: usize) -> &mut Server {
        &mut self.servers[number]
    }

    pub fn sentinel(&mut self, number: usize) -> &mut Server {
        &mut self.sentinels[number]
    }

    /// The number of the server that most Sentinels regard as the master.
    pub fn master(&self) -> usize {
        until(|| {
            let mut votes = [0; COUNT];
            for sentinel in &self.sentinels {
                let named: Option<(String, u16)> =
                    sentinel.query(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).unwrap_or(None);
                let (_, port) = named.unwrap_or_default();
                if let Some(at) = self.ports.iter().position(|known| *known == port) {
                    votes[at] += 1;
                }
            }
            votes.iter().position(|&count| count > COUNT / 2)
        })
    }

    /// The replicas of the current master.
    pub fn replicas(&self) -> Vec<&Server> {
        let master = self.master();
        let others = self.servers.iter().enumerate().filter(|(number, _)| *number != master);
        others.map(|(_, server)| server).collect()
    }

    /// Makes the Sentinels elect another master, and waits until most of them report it. The
    /// current one may be down.
    pub fn fail_over(&self) {
        let former = self.master();
        // Sentinel refuses this while another failover is in progress.
        until(|| self.sentinels[0].query::<()>(&["SENTINEL", "FAILOVER", NAME]).ok());
        until(|| (self.master() != former).then_some(()));
    }
}

fn common() -> [&'static str; 6] {
    ["--masterauth", PASSWORD, "--save", "", "--repl-diskless-sync-delay", "0"]
}

fn sentinel(folder: &Folder, master: u16) -> Server {
    Server::start_with(folder, |_, own| {
        let file = own.join("sentinel.conf");
        let lines = format!(
            "sentinel monitor {NAME} 127.0.0.1 {master} 2\n\
             sentinel auth-pass {NAME} \"{PASSWORD}\"\n\
             sentinel sentinel-pass \"{PASSWORD}\"\n\
             sentinel down-after-milliseconds {NAME} 2000\n\
             sentinel failover-timeout {NAME} 6000\n"
        );
        fs::write(&file, lines).unwrap();
        vec![file.display().to_string(), "--sentinel".to_owned()]
    })
}

/// Whether a Sentinel knows both replicas and both other Sentinels, and regards no server as down.
fn is_ready(sentinel: &Server) -> bool {
    let master: HashMap<String, String> =
        sentinel.query(&["SENTINEL", "MASTER", NAME]).unwrap_or_default();
    let is = |field: &str, value: &str| master.get(field).is_some_and(|found| found == value);
    is("num-slaves", "2")
        && is("num-other-sentinels", "2")
        && is("flags", "master")
        && sentinel.query::<String>(&["SENTINEL", "CKQUORUM", NAME]).is_ok()
}
