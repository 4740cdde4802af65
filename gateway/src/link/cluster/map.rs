//! Who has which slot.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use redis::cluster::NodeAddress;
use redis::cluster_routing::Slot;
use redis::{ConnectionAddr, ConnectionInfo};

use super::layout::Layout;
use crate::link::node::Node;

/// How many slots there are.
const SLOTS: u16 = 1 << 14;

/// The masters that are connected to, and the slots that they have.
pub(super) struct Map {
    slots: HashMap<Slot, Arc<Node>>,
    nodes: HashMap<NodeAddress, Arc<Node>>,
    known: HashSet<NodeAddress>,
    /// How to log in, and whether by TLS: the same at every node.
    template: ConnectionInfo,
    connections: usize,
    /// How many checks have passed since the nodes were asked.
    checks: u32,
}

impl Map {
    pub(super) fn new(template: ConnectionInfo, connections: usize) -> Self {
        Self {
            slots: HashMap::new(),
            nodes: HashMap::new(),
            known: HashSet::new(),
            template,
            connections,
            checks: 0,
        }
    }

    /// The master of a slot. Where nobody has it, and where there is no slot, the master of the
    /// first that somebody has: it will say what is the matter.
    pub(super) fn master(&self, slot: Option<Slot>) -> Option<Arc<Node>> {
        slot.and_then(|slot| self.slots.get(&slot)).or_else(|| self.first()).cloned()
    }

    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.values().cloned().collect()
    }

    pub(super) fn knows(&self, address: &NodeAddress) -> bool {
        self.known.contains(address)
    }

    /// Whether every slot has a master.
    pub(super) fn is_whole(&self) -> bool {
        self.slots.len() == usize::from(SLOTS)
    }

    pub(super) fn count_check(&mut self) -> u32 {
        self.checks += 1;
        self.checks
    }

    /// The connections to a node that the cluster knows.
    pub(super) fn node(&mut self, address: &NodeAddress) -> Option<Arc<Node>> {
        if let Some(node) = self.nodes.get(address) {
            return Some(Arc::clone(node));
        }
        if !self.knows(address) {
            return None;
        }
        let info = self.template.clone().set_addr(self.at(address)?);
        let node = Node::new(info, self.connections).ok()?;
        self.nodes.insert(address.clone(), Arc::clone(&node));
        Some(node)
    }

    pub(super) fn assign(&mut self, slot: Slot, node: &Arc<Node>) {
        self.slots.insert(slot, Arc::clone(node));
    }

    /// Takes what a node says for true, and says whether other nodes are masters now. Who has lost
    /// its slots is left; requests that are under way there end by themselves.
    pub(super) fn settle(&mut self, layout: Layout) -> bool {
        self.checks = 0;
        self.known = layout.known;
        let before: HashSet<_> = self.nodes.keys().cloned().collect();
        let mut slots = HashMap::with_capacity(SLOTS.into());
        let mut masters = HashSet::new();
        for (first, last, address) in layout.ranges {
            let Some(node) = self.node(&address) else { continue };
            let range = (first..=last).filter_map(Slot::new);
            slots.extend(range.map(|slot| (slot, Arc::clone(&node))));
            // It was named again; should it fail again, that is asked again.
            node.trust();
            masters.insert(address);
        }
        self.slots = slots;
        self.nodes.retain(|address, node| {
            let stays = masters.contains(address);
            if !stays {
                node.retire();
            }
            stays
        });
        !before.is_empty() && before != masters
    }

    fn first(&self) -> Option<&Arc<Node>> {
        (0..SLOTS).filter_map(Slot::new).find_map(|slot| self.slots.get(&slot))
    }

    fn at(&self, address: &NodeAddress) -> Option<ConnectionAddr> {
        let (host, port) = (address.host().to_owned(), address.port());
        match self.template.addr() {
            ConnectionAddr::Tcp(..) => Some(ConnectionAddr::Tcp(host, port)),
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => Some(ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::IntoConnectionInfo as _;

    use super::*;
    use crate::link::cluster::layout::tests::{halves, node, range, read};

    fn host(map: &Map, slot: u16) -> String {
        map.master(Slot::new(slot)).unwrap().address().to_string()
    }

    #[tokio::test]
    async fn the_map_follows_what_is_said() {
        let mut map = Map::new("redis://:secret@seed".into_connection_info().unwrap(), 1);
        assert!(map.master(None).is_none() && !map.is_whole());
        assert!(!map.settle(halves("one", "other")));
        assert!(map.is_whole());
        assert_eq!((host(&map, 0), host(&map, 16383)), ("one:6379".into(), "other:6379".into()));
        let former = map.master(Slot::new(16383)).unwrap();
        assert!(map.settle(halves("one", "next")));
        assert_eq!(host(&map, 16383), "next:6379");
        assert!(!map.settle(halves("one", "next")));
        assert!(!Arc::ptr_eq(&former, &map.master(Slot::new(16383)).unwrap()));
        // A replica is known, and connected to when it is pointed to; a stranger is not.
        assert!(map.node(&NodeAddress::new("stranger", 6379)).is_none());
        let replica = map.node(&NodeAddress::new("replica", 6379)).unwrap();
        map.assign(Slot::new(5).unwrap(), &replica);
        assert_eq!((host(&map, 5), host(&map, 6)), ("replica:6379".into(), "one:6379".into()));
        // Where nobody has a slot, somebody will say so.
        let half = range(8192, 16383, &[node("one", 6379)]);
        map.settle(read(&format!("*1\r\n{half}")).unwrap());
        assert_eq!(host(&map, 5), "one:6379");
        assert!(!map.is_whole());
    }
}
