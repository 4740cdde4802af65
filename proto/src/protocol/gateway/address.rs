//! A gateway's address, checked more strictly than by any URL parser, so that nothing in it is
//! misread later.

use alloc::string::String;

use crate::error::InvalidOption;

/// A valid address.
#[derive(Debug)]
pub(super) struct Address {
    /// Scheme, host, port and path, without a trailing slash.
    pub(super) base: String,
    host: String,
}

impl Address {
    pub(super) fn is_below(&self, domain: &str) -> bool {
        self.host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether the path begins with a command or an endpoint of Upstash's protocol, as in an
    /// example that was copied. A gateway would execute such a command, with the body of each
    /// request as its last argument.
    pub(super) fn names_command(&self) -> bool {
        let path = self.base.split('/').nth(3).unwrap_or_default();
        COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(path))
    }
}

/// Upstash's endpoints, and the commands for which the path and one more argument are enough.
const COMMANDS: [&str; 23] = [
    "append",
    "decr",
    "del",
    "echo",
    "eval",
    "evalsha",
    "get",
    "getset",
    "incr",
    "lpush",
    "monitor",
    "multi-exec",
    "pipeline",
    "psubscribe",
    "publish",
    "rpush",
    "sadd",
    "set",
    "setex",
    "setnx",
    "subscribe",
    "unlink",
    "zadd",
];

pub(super) fn parse(url: &str, plain_http: bool) -> Result<Address, InvalidOption> {
    let refused = |accepted| Err(InvalidOption::new("url", accepted));
    let (secure, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) if is_of_redis(url) => {
            return refused(
                "the https:// address of a REST gateway, not of Redis itself, since edgelatch sends HTTP requests: use the provider's REST URL, or run edgelatch-gateway in front of Redis",
            );
        }
        (None, None) => {
            return refused("the gateway's REST URL, which begins with https://, without quotes");
        }
    };
    if rest.contains(['@', '?', '#']) {
        return refused("an address without user, query and fragment: pass the token as `token`");
    }
    if rest.bytes().any(|byte| !byte.is_ascii_graphic() || b"\\\"'<>^`{|}%".contains(&byte)) {
        return refused(
            "an address of letters, digits and - . _ ~ : / [ ] alone, without quotes, white space or escapes",
        );
    }
    let slash = rest.find('/').and_then(|slash| rest.split_at_checked(slash));
    let (authority, path) = slash.unwrap_or((rest, ""));
    let Some(host) = host(authority) else {
        return refused("an address with a host, and a port of 1 to 65535 if any");
    };
    let host = host.to_ascii_lowercase();
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.split('/').skip(1).any(|segment| matches!(segment, "" | "." | "..")) {
        return refused("an address with a plain path");
    }
    if !(secure || plain_http || is_loopback(&host)) {
        return refused(
            "https://; http:// only on loopback, or in a private network with `Gateway::upstash_over_http` or `webdis_over_http`, since the token travels unencrypted",
        );
    }
    let base = url.strip_suffix('/').unwrap_or(url).into();
    Ok(Address { base, host })
}

/// Whether the address is one of a Redis server, such as `redis://` or `valkeys://`.
fn is_of_redis(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let scheme = scheme.to_ascii_lowercase();
    rest.starts_with("//")
        && (scheme == "tcp" || scheme.starts_with("redis") || scheme.starts_with("valkey"))
}

/// The host of an authority that consists of a host and an optional valid port.
fn host(authority: &str) -> Option<&str> {
    let after_host = authority.find(']').map_or(0, |bracket| bracket + 1);
    let colon = authority.bytes().skip(after_host).position(|byte| byte == b':');
    let (host, port) =
        authority.split_at_checked(colon.map_or(authority.len(), |place| place + after_host))?;
    let is_host = match host.strip_prefix('[') {
        Some(rest) => is_ipv6(rest.strip_suffix(']')?),
        None => host.split('.').all(|label| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !label.is_empty() && label.bytes().all(fits)
        }),
    };
    let is_port = match port.strip_prefix(':') {
        None => true,
        Some(port) => decimal(port).is_some_and(|port| (1..=65_535).contains(&port)),
    };
    (is_host && is_port).then_some(host)
}

/// Whether a text is an IPv6 address: eight groups, or fewer with one gap. An embedded IPv4 address
/// is not supported.
fn is_ipv6(text: &str) -> bool {
    let is_group = |group: &str| {
        (1..=4).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let count = |part: &str| match part {
        "" => Some(0),
        part => part.split(':').all(is_group).then(|| part.split(':').count()),
    };
    match text.as_bytes().windows(2).position(|pair| pair == b"::") {
        None => count(text) == Some(8),
        Some(gap) => {
            let (front, back) =
                (text.get(..gap).and_then(count), text.get(gap + 2..).and_then(count));
            front.zip(back).is_some_and(|(front, back)| front + back < 8)
        }
    }
}

/// Whether a host is loopback, in one of the usual forms. Other forms are not trusted with an
/// unencrypted token.
fn is_loopback(host: &str) -> bool {
    let is_byte = |number: &str| decimal(number).is_some_and(|number| number < 256);
    host == "[::1]"
        || host == "localhost"
        || host.ends_with(".localhost")
        || host
            .strip_prefix("127.")
            .is_some_and(|rest| rest.split('.').count() == 3 && rest.split('.').all(is_byte))
}

/// Parses at most five digits.
fn decimal(text: &str) -> Option<u64> {
    let is_number = text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
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
            ("https://[2001:db8::a:1]/x", "https://[2001:db8::a:1]/x"),
            ("https://[1:2:3:4:5:6:7:8]", "https://[1:2:3:4:5:6:7:8]"),
            ("https://[::]:1", "https://[::]:1"),
        ] {
            assert_eq!(parse(url, false).unwrap().base, base);
        }
    }

    #[test]
    fn an_address_with_more_than_a_plain_origin_is_refused() {
        for url in [
            "",
            "x",
            "example.com",
            "ftp://example.com",
            "https://",
            "https:///x",
            "https://user:pw@example.com",
            "https://example.com?x=1",
            "https://example.com/#x",
            "https://exa mple.com",
            "https://example.com/%2e%2e",
            "https://example.com/../x",
            "https://example.com//x",
            "https://example.com:0",
            "https://example.com:99999",
            "https://example.com:",
            "https://example.com:8a",
            "https://.com",
            "https://a..b",
            "https://[::1",
            "https://[x]",
            "https://é.com",
            "http://example.com",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "https://[]",
            "https://[:::]",
            "https://[1::2::3]",
            "https://[1:2:3:4:5:6:7]",
            "https://[1:2:3:4:5:6:7:8:9]",
            "https://[1:2:3:4:5:6:7::8]",
            "https://[12345::]",
            "https://[::g]",
            "https://[::1]x",
            "https://x[::1]",
            "https://[:1]",
            "https://[1:]",
            "https://example.com/x//",
            "http://0127.0.0.1",
            "http://127.1",
            "http://127.0.0.256",
            "http://127.000000.0.1",
        ] {
            assert_eq!(parse(url, false).unwrap_err().option(), "url", "{url}");
        }
    }

    #[test]
    fn each_common_mistake_gets_advice() {
        for (url, advice) in [
            ("redis://default:secret@host:6379", "edgelatch-gateway in front of Redis"),
            ("rediss://default:secret@x.upstash.io:6379", "the provider's REST URL"),
            ("REDIS+cluster://a,b", "not of Redis itself"),
            ("valkeys://host", "not of Redis itself"),
            ("tcp://host:6379", "not of Redis itself"),
            ("x.upstash.io", "begins with https://"),
            ("\"https://x.upstash.io\"", "without quotes"),
            ("https://x.upstash.io\"", "without quotes"),
            ("https://x.upstash.io'", "without quotes"),
            ("https://x. upstash.io", "white space"),
            ("https://default:secret@x.upstash.io", "pass the token as `token`"),
            ("https://x.upstash.io?_token=secret", "pass the token as `token`"),
            ("http://gateway:8079", "upstash_over_http"),
        ] {
            let error = parse(url, false).unwrap_err();
            assert!(error.accepted().contains(advice), "{url}: {error}");
            assert!(!error.message().contains("secret"), "{error}");
        }
    }

    #[test]
    fn plain_http_beyond_loopback_needs_an_option() {
        assert!(parse("http://gateway:8079", false).is_err());
        assert!(parse("http://gateway:8079", true).is_ok());
    }

    #[test]
    fn a_path_that_begins_with_a_command_is_recognised() {
        let names =
            |host: &str, path| parse(&[host, path].concat(), false).unwrap().names_command();
        for url in ["/set", "/SET/foo", "/pipeline/", "/multi-exec", "/get/key"] {
            assert!(names("https://example.com", url), "{url}");
        }
        for url in ["", "/", "/redis", "/settings", "/redis/get"] {
            assert!(!names("https://example.com:1", url), "{url}");
        }
    }

    #[test]
    fn upstash_is_known_by_its_domain() {
        let below = |url| parse(url, false).unwrap().is_below("upstash.io");
        assert!(below("https://x.Upstash.io"));
        assert!(!below("https://upstash.io.example.com") && !below("https://notupstash.io"));
    }
}
