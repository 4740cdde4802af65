//! Parses the redirections `MOVED` and `ASK`.

use redis::cluster::NodeAddress;
use redis::cluster_routing::Slot;
use redis::{ConnectionAddr, ServerError, ServerErrorKind};

use crate::backend::node::Node;

/// A redirection: Redis did not run the command, and names the node that will.
pub(super) struct Redirection {
    slot: Slot,
    /// The host of the named node; empty if it is that of the node that sent the redirection.
    host: String,
    port: u16,
    is_ask: bool,
}

impl Redirection {
    /// Parses a redirection; `None` unless Redis itself redirects this slot: then the error has two
    /// words after its code and nothing else. When a call inside of a script is redirected, Redis
    /// appends the name of the script, and a part of the script has run.
    pub(super) fn read(error: &ServerError, slot: Slot) -> Option<Self> {
        let is_ask = match error.kind() {
            Some(ServerErrorKind::Ask) => true,
            Some(ServerErrorKind::Moved) => false,
            _ => return None,
        };
        let (number, address) = error.details()?.split_once(' ')?;
        if Slot::new(number.parse().ok()?) != Some(slot) {
            return None;
        }
        let (host, port) = address.rsplit_once(':')?;
        Some(Self { slot, host: host.to_owned(), port: port.parse().ok()?, is_ask })
    }

    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    /// Whether only this command goes to the other node, and the slot stays where it is.
    pub(super) fn is_ask(&self) -> bool {
        self.is_ask
    }

    pub(super) fn address(&self, from: &Node) -> Option<NodeAddress> {
        let host = match self.host.as_str() {
            "" => host(from.address())?,
            host => host,
        };
        Some(NodeAddress::new(host, self.port))
    }
}

pub(super) fn host(address: &ConnectionAddr) -> Option<&str> {
    match address {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => Some(host),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn read(line: &str) -> Option<(String, u16, bool)> {
        let Value::ServerError(error) = parse_redis_value(line.as_bytes()).unwrap() else {
            panic!("no error: {line}");
        };
        let found = Redirection::read(&error, Slot::new(7).unwrap())?;
        Some((found.host, found.port, found.is_ask))
    }

    #[test]
    fn a_redirection_is_of_the_commands_own_slot_and_nothing_more() {
        let to = |host: &str, is_ask| Some((host.to_owned(), 6380, is_ask));
        assert_eq!(read("-MOVED 7 10.0.0.1:6380\r\n"), to("10.0.0.1", false));
        assert_eq!(read("-ASK 7 node.example:6380\r\n"), to("node.example", true));
        assert_eq!(read("-MOVED 7 2001:db8::1:6380\r\n"), to("2001:db8::1", false));
        assert_eq!(read("-MOVED 7 :6380\r\n"), to("", false));
        for other in [
            "-MOVED 8 10.0.0.1:6380\r\n",
            "-MOVED 99999 10.0.0.1:6380\r\n",
            "-MOVED 7 10.0.0.1:6380 script: f, on @user_script:1.\r\n",
            "-MOVED 7 10.0.0.1\r\n",
            "-MOVED 7\r\n",
            "-MOVED\r\n",
            "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
            "-ERR MOVED 7 10.0.0.1:6380\r\n",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
