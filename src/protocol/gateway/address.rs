//! A gateway's address, checked more strictly than any URL parser would: nothing in it may surprise later.

use alloc::string::String;

use crate::error::InvalidOption;

/// An address that passed.
#[derive(Debug)]
pub(super) struct Address {
    /// Scheme, host, port and path, without a slash at the end.
    pub(super) base: String,
    host: String,
}

impl Address {
    pub(super) fn is_below(&self, domain: &str) -> bool {
        self.host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    }
}

pub(super) fn parse(url: &str, plain_http: bool) -> Result<Address, InvalidOption> {
    let refused = |accepted| Err(InvalidOption::new("url", accepted));
    let Some((scheme, rest)) = url.split_once("://") else {
        return refused("an address that begins with https://");
    };
    if url.bytes().any(|byte| !byte.is_ascii_graphic() || b"?#@\\\"<>^`{|}%".contains(&byte)) {
        return refused("an address without user, query, fragment, escapes or other signs than letters, digits and - . _ ~ : / [ ]");
    }
    let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let Some(host) = host(authority) else {
        return refused("an address with a host, and a port of 1 to 65535 if any");
    };
    if path.split('/').any(|segment| segment == "." || segment == "..") || path.contains("//") {
        return refused("an address with a plain path");
    }
    match scheme {
        "https" => {}
        "http" if plain_http || is_loopback(host) => {}
        "http" => return refused("https:// (http:// only on loopback, or when plain HTTP is allowed)"),
        _ => return refused("an address that begins with https://"),
    }
    Ok(Address { base: url.trim_end_matches('/').into(), host: host.to_ascii_lowercase() })
}

/// The host of an authority that has nothing else in it than a sensible port.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = if authority.starts_with('[') {
        let (host, rest) = authority.split_at(authority.find(']')? + 1);
        let inside = host.get(1..host.len() - 1)?;
        inside.parse::<core::net::Ipv6Addr>().ok()?;
        (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else {
        authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)))
    };
    let named = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    let labels = !host.split('.').any(str::is_empty);
    if !(host.starts_with('[') || named && labels) {
        return None;
    }
    match port {
        None => Some(host),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (port.parse::<u16>().ok()? != 0).then_some(host)
        }
        Some(_) => None,
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || bare.parse::<core::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_path_and_loses_its_last_slash() {
        for (url, base) in [
            ("https://eu1-x.upstash.io", "https://eu1-x.upstash.io"),
            ("https://example.com:8443/redis/", "https://example.com:8443/redis"),
            ("http://127.0.0.1:8079", "http://127.0.0.1:8079"),
            ("http://[::1]:8079/", "http://[::1]:8079"),
            ("http://localhost", "http://localhost"),
        ] {
            assert_eq!(parse(url, false).unwrap().base, base);
        }
    }

    #[test]
    fn what_is_no_plain_address_is_refused() {
        for url in [
            "", "x", "example.com", "ftp://example.com", "https://", "https:///x", "https://user:pw@example.com",
            "https://example.com?x=1", "https://example.com/#x", "https://exa mple.com", "https://example.com/%2e%2e",
            "https://example.com/../x", "https://example.com//x", "https://example.com:0", "https://example.com:99999",
            "https://example.com:", "https://example.com:8a", "https://.com", "https://a..b", "https://[::1", "https://[x]",
            "https://é.com", "http://example.com", "http://127.0.0.1.example.com", "http://localhost.example.com",
        ] {
            assert_eq!(parse(url, false).unwrap_err().option(), "url", "{url}");
        }
    }

    #[test]
    fn plain_http_beyond_loopback_must_be_asked_for() {
        assert!(parse("http://gateway:8079", false).is_err());
        assert!(parse("http://gateway:8079", true).is_ok());
    }

    #[test]
    fn upstash_is_known_by_its_domain() {
        let below = |url| parse(url, false).unwrap().is_below("upstash.io");
        assert!(below("https://x.Upstash.io"));
        assert!(!below("https://upstash.io.example.com") && !below("https://notupstash.io"));
    }
}
