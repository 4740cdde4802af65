//! The map from slots to masters.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use redis::cluster::NodeAddress;
use redis::cluster_routing::Slot;
use redis::{ConnectionAddr, ConnectionInfo};

use super::layout::{Layout, Ranges};
use crate::backend::node::Node;

/// The number of slots of a cluster.
const SLOTS: u16 = 1 << 14;

/// The connected nodes, and the slots of each master.
pub(super) struct SlotMap {
    slots: HashMap<Slot, Arc<Node>>,
    /// The adopted layout, without the redirections since.
    ranges: Ranges,
    nodes: HashMap<NodeAddress, Arc<Node>>,
    known: HashSet<NodeAddress>,
    /// The login and the use of TLS, which are the same for every node.
    template: ConnectionInfo,
    connections: usize,
    /// The number of checks since the last refresh.
    checks: u32,
}

impl SlotMap {
    pub(super) fn new(template: ConnectionInfo, connections: usize) -> Self {
        Self {
            slots: HashMap::new(),
            ranges: Ranges::new(),
            nodes: HashMap::new(),
            known: HashSet::new(),
            template,
            connections,
            checks: 0,
        }
    }

    /// Returns the master of a slot. For no slot, and for a slot without a master, it is the master
    /// of the first assigned slot, whose reply says what is wrong.
    pub(super) fn master(&self, slot: Option<Slot>) -> Option<Arc<Node>> {
        slot.and_then(|slot| self.slots.get(&slot)).or_else(|| self.first_master()).cloned()
    }

    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.values().cloned().collect()
    }

    pub(super) fn ranges(&self) -> Ranges {
        self.ranges.clone()
    }

    pub(super) fn contains(&self, address: &NodeAddress) -> bool {
        self.known.contains(address)
    }

    /// Whether every slot has a master.
    pub(super) fn is_complete(&self) -> bool {
        self.slots.len() == usize::from(SLOTS)
    }

    pub(super) fn count_check(&mut self) -> u32 {
        self.checks += 1;
        self.checks
    }

    /// Returns the connections to a node, which it creates if needed; `None` for a node that the
    /// cluster does not name.
    pub(super) fn node(&mut self, address: &NodeAddress) -> Option<Arc<Node>> {
        if let Some(node) = self.nodes.get(address) {
            return Some(Arc::clone(node));
        }
        if !self.contains(address) {
            return None;
        }
        let info = self.template.clone().set_addr(self.connection_addr(address)?);
        let node = Node::new(info, self.connections).ok()?;
        self.nodes.insert(address.clone(), Arc::clone(&node));
        Some(node)
    }

    pub(super) fn assign(&mut self, slot: Slot, node: &Arc<Node>) {
        self.slots.insert(slot, Arc::clone(node));
    }

    /// Adopts a layout, and returns whether the masters have changed. Retires the nodes that have
    /// no slots any more; requests in flight there end by themselves.
    pub(super) fn apply(&mut self, layout: Layout) -> bool {
        self.checks = 0;
        self.known = layout.known;
        let before: HashSet<_> = self.nodes.keys().cloned().collect();
        let mut slots = HashMap::with_capacity(SLOTS.into());
        let mut masters = HashSet::new();
        for (first, last, address) in layout.ranges.clone() {
            let Some(node) = self.node(&address) else { continue };
            let range = (first..=last).filter_map(Slot::new);
            slots.extend(range.map(|slot| (slot, Arc::clone(&node))));
            // The layout names it again. If it fails once more, the map is refreshed once more.
            node.clear_suspicion();
            masters.insert(address);
        }
        (self.slots, self.ranges) = (slots, layout.ranges);
        self.nodes.retain(|address, node| {
            let stays = masters.contains(address);
            if !stays {
                node.retire();
            }
            stays
        });
        !before.is_empty() && before != masters
    }

    fn first_master(&self) -> Option<&Arc<Node>> {
        (0..SLOTS).filter_map(Slot::new).find_map(|slot| self.slots.get(&slot))
    }

    fn connection_addr(&self, address: &NodeAddress) -> Option<ConnectionAddr> {
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
    use crate::backend::cluster::layout::tests::{halves, node, range, read};

    fn host(map: &SlotMap, slot: u16) -> String {
        map.master(Slot::new(slot)).unwrap().address().to_string()
    }

    #[tokio::test]
    async fn the_map_follows_each_layout() {
        let mut map = SlotMap::new("redis://:secret@seed".into_connection_info().unwrap(), 1);
        assert!(map.master(None).is_none() && !map.is_complete());
        assert!(!map.apply(halves("one", "other")));
        assert!(map.is_complete());
        assert_eq!((host(&map, 0), host(&map, 16383)), ("one:6379".into(), "other:6379".into()));
        let former = map.master(Slot::new(16383)).unwrap();
        assert!(map.apply(halves("one", "next")));
        assert_eq!(map.ranges(), halves("one", "next").ranges);
        assert_eq!(host(&map, 16383), "next:6379");
        assert!(!map.apply(halves("one", "next")));
        assert!(!Arc::ptr_eq(&former, &map.master(Slot::new(16383)).unwrap()));
        // A replica that a redirection names is connected to; a node outside of the cluster is not.
        assert!(map.node(&NodeAddress::new("outsider", 6379)).is_none());
        let replica = map.node(&NodeAddress::new("replica", 6379)).unwrap();
        map.assign(Slot::new(5).unwrap(), &replica);
        assert_eq!((host(&map, 5), host(&map, 6)), ("replica:6379".into(), "one:6379".into()));
        // A command for a slot without a master goes to the first master.
        let half = range(8192, 16383, &[node("one", 6379)]);
        map.apply(read(&format!("*1\r\n{half}")).unwrap());
        assert_eq!(host(&map, 5), "one:6379");
        assert!(!map.is_complete());
    }
}
