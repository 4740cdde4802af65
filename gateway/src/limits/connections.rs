//! Limits the open connections, in all and of each address. They count from their start, before any
//! token is known.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::address::network;
use crate::config::Config;

/// The limits, and the numbers of open connections.
pub(crate) struct ConnectionLimits {
    max: usize,
    max_per_address: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    all: usize,
    /// The number of open connections of each address that has any.
    addresses: HashMap<IpAddr, usize>,
}

/// An admitted connection. It counts against the limits until this is dropped.
pub(crate) struct ConnectionPermit {
    open: Arc<Mutex<Open>>,
    address: IpAddr,
}

impl ConnectionLimits {
    pub(crate) fn new(config: &Config) -> Self {
        let max = config.connection_limit;
        // Trusted proxies may have all connections, since each forwards for many addresses.
        let is_direct = config.trusted_proxies == 0;
        let max_per_address = if is_direct { config.address_connections } else { max };
        Self { max, max_per_address, open: Arc::default() }
    }

    /// Admits a connection of this address; `None` if a limit is reached.
    pub(crate) fn connect(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let address = network(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.addresses.get(&address).copied().unwrap_or(0);
        if open.all >= self.max || number >= self.max_per_address {
            return None;
        }
        open.all += 1;
        open.addresses.insert(address, number + 1);
        Some(ConnectionPermit { open: Arc::clone(&self.open), address })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Entry::Occupied(mut entry) = open.addresses.entry(self.address) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RedisSource;
    use crate::tokens::Tokens;

    fn connections(set: impl FnOnce(&mut Config)) -> ConnectionLimits {
        let tokens = Tokens::new(["token-of-sixteen-characters"]).unwrap();
        let mut config = Config::new(RedisSource::Private, tokens);
        (config.connection_limit, config.address_connections) = (3, 2);
        set(&mut config);
        ConnectionLimits::new(&config)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn connections_are_limited_per_address_and_in_all() {
        let connections = connections(|_| ());
        let connect = |text: &str| connections.connect(address(text));
        let first = connect("2001:db8::1").unwrap();
        let second = connect("2001:db8::2").unwrap();
        assert!(connect("2001:db8::3").is_none());
        let third = connect("2001:db8:0:1::1").unwrap();
        assert!(connect("192.0.2.1").is_none());
        drop(first);
        assert!(connect("192.0.2.1").is_some());
        assert!(connect("2001:db8::3").is_some());
        drop((second, third));
        // Neither admitted nor refused connections leave an entry.
        let open = connections.open.lock().unwrap();
        assert!(open.all == 0 && open.addresses.is_empty());
    }

    #[test]
    fn trusted_proxies_may_have_all_connections() {
        let connections = connections(|config| config.trusted_proxies = 1);
        let all: Vec<_> = (0..4).map_while(|_| connections.connect(address("192.0.2.1"))).collect();
        assert_eq!(all.len(), 3);
    }
}
