//! Parses the replies to `CLUSTER SLOTS`.

use std::collections::{HashMap, HashSet};

use redis::cluster::NodeAddress;
use redis::{Cmd, ConnectionAddr, Value, from_redis_value_ref};

use super::redirection::host;

/// The slots of each master, as one node of the cluster reports them.
pub(super) struct Layout {
    pub(super) ranges: Ranges,
    /// Masters and replicas.
    pub(super) known: HashSet<NodeAddress>,
}

/// Returns the command whose reply [`Layout::read`] parses.
pub(super) fn query() -> Cmd {
    let mut query = redis::cmd("CLUSTER");
    query.arg("SLOTS");
    query
}

impl Layout {
    /// Parses a reply; `None` if it is malformed, or has no slots, as from a node outside of any
    /// cluster.
    pub(super) fn read(reply: &Value, from: &ConnectionAddr) -> Option<Self> {
        let mut layout = Self { ranges: Vec::new(), known: HashSet::new() };
        let ranges: Vec<Vec<Value>> = from_redis_value_ref(reply).ok()?;
        for range in &ranges {
            let [Value::Int(first), Value::Int(last), nodes @ ..] = range.as_slice() else {
                return None;
            };
            let mut nodes = nodes.iter().map(|node| address(node, from));
            let master = nodes.next()??;
            let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
            layout.known.insert(master.clone());
            layout.known.extend(nodes.flatten());
            layout.ranges.push((first, last, master));
        }
        // The order of the ranges differs between nodes.
        layout.ranges.sort_unstable_by_key(|(first, ..)| *first);
        (!layout.ranges.is_empty()).then_some(layout)
    }

    /// Returns the assignment of slots that most of the layouts have, and all nodes that those
    /// layouts name.
    pub(super) fn prevailing(layouts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut votes: HashMap<Ranges, (usize, HashSet<NodeAddress>)> = HashMap::new();
        for layout in layouts {
            let (count, known) = votes.entry(layout.ranges).or_default();
            *count += 1;
            known.extend(layout.known);
        }
        let (ranges, (_, known)) = votes.into_iter().max_by_key(|(_, (count, _))| *count)?;
        Some(Self { ranges, known })
    }
}

/// First slot, last slot, and the master that has them.
pub(super) type Ranges = Vec<(u16, u16, NodeAddress)>;

fn address(node: &Value, from: &ConnectionAddr) -> Option<NodeAddress> {
    let Value::Array(parts) = node else { return None };
    let [name, Value::Int(port), ..] = parts.as_slice() else { return None };
    let name: Option<String> = from_redis_value_ref(name).ok()?;
    let name = match name.as_deref() {
        // A node that does not know its own name has the address that the reply came from.
        None | Some("") => host(from)?,
        Some("?") => return None,
        Some(name) => name,
    };
    Some(NodeAddress::new(name, u16::try_from(*port).ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use redis::parse_redis_value;

    use super::*;

    pub(in crate::backend::cluster) fn read(wire: &str) -> Option<Layout> {
        let from = ConnectionAddr::Tcp("queried".to_owned(), 1);
        Layout::read(&parse_redis_value(wire.as_bytes()).unwrap(), &from)
    }

    pub(in crate::backend::cluster) fn node(name: &str, port: u16) -> String {
        format!("*3\r\n${}\r\n{name}\r\n:{port}\r\n$2\r\nid\r\n", name.len())
    }

    pub(in crate::backend::cluster) fn range(first: u16, last: u16, nodes: &[String]) -> String {
        let nodes = (nodes.len(), nodes.concat());
        format!("*{}\r\n:{first}\r\n:{last}\r\n{}", 2 + nodes.0, nodes.1)
    }

    /// Two masters with half of the slots each, and a replica.
    pub(in crate::backend::cluster) fn halves(one: &str, other: &str) -> Layout {
        let upper = range(8192, 16383, &[node(other, 6379), node("replica", 6379)]);
        read(&format!("*2\r\n{upper}{}", range(0, 8191, &[node(one, 6379)]))).unwrap()
    }

    #[test]
    fn a_reply_names_masters_and_all_nodes() {
        let layout = halves("one", "other");
        let masters: Vec<_> = layout.ranges.iter().map(|(.., node)| node.host()).collect();
        assert_eq!(masters, ["one", "other"]);
        assert!(layout.known.contains(&NodeAddress::new("replica", 6379)));
        // A node that does not know its own name, and below one with an unknown name.
        let nameless = read(&format!("*1\r\n{}", range(0, 1, &[node("", 2)]))).unwrap();
        assert_eq!(nameless.ranges[0].2, NodeAddress::new("queried", 2));
        for wire in [
            "*0\r\n".to_owned(),
            "+OK\r\n".to_owned(),
            "-ERR This instance has cluster support disabled\r\n".to_owned(),
            format!("*1\r\n{}", range(0, 1, &[])),
            format!("*1\r\n{}", range(0, 1, &[node("?", 2)])),
        ] {
            assert!(read(&wire).is_none(), "{wire}");
        }
    }

    #[test]
    fn the_most_frequent_layout_prevails() {
        let layouts = [halves("one", "cut-off"), halves("one", "new"), halves("one", "new")];
        let prevailing = Layout::prevailing(layouts).unwrap();
        assert_eq!(prevailing.ranges[1].2.host(), "new");
        assert!(Layout::prevailing([]).is_none());
    }
}
