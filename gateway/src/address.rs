//! The client addresses of requests.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};

pub(crate) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The remote address of a request's connection: that of the client, or of a reverse proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl Peer {
    /// Returns the address of the client behind `proxies` reverse proxies. Each of them has
    /// appended to `X-Forwarded-For` the address that its request came from. Earlier entries are
    /// ignored, since the client can write any.
    pub(crate) fn client(self, headers: &HeaderMap, proxies: usize) -> IpAddr {
        let forwarded = proxies.checked_sub(1).and_then(|behind| {
            let lines = headers.get_all(FORWARDED_FOR).iter().rev();
            let mut entries = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
            address(entries.nth(behind)?.trim())
        });
        forwarded.unwrap_or(self.0)
    }
}

/// Parses an address. A port behind it, which some proxies add, is ignored.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

/// Returns the network that counts as one address: for IPv6 that of 64 bits, since one subscriber
/// has all addresses in it (RFC 6177).
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }

    #[test]
    fn the_address_is_that_which_the_outermost_trusted_proxy_saw() {
        let client = |lines: &[&'static str], proxies| {
            let lines = lines.iter().map(|line| (FORWARDED_FOR, HeaderValue::from_static(line)));
            let peer = Peer(IpAddr::from([127, 0, 0, 1]));
            peer.client(&HeaderMap::from_iter(lines), proxies).to_string()
        };
        let lines = ["192.0.2.9", "192.0.2.1, 192.0.2.2:80", " [2001:db8::1]:80 "];
        assert_eq!(client(&lines[2..], 1), "2001:db8::1");
        assert_eq!(client(&lines[1..2], 0), "127.0.0.1");
        assert_eq!(client(&lines[1..2], 1), "192.0.2.2");
        assert_eq!(client(&lines[1..2], 2), "192.0.2.1");
        // With fewer entries than proxies, or text that is no address, it is the connection's own.
        assert_eq!(client(&lines[1..2], 3), "127.0.0.1");
        assert_eq!(client(&["192.0.2.1, unknown"], 1), "127.0.0.1");
        assert_eq!(client(&[], 1), "127.0.0.1");
    }
}
