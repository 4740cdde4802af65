//! The URLs of requests: at the configured gateway, with a known path, and the token only in its
//! header.
//!
//! The first byte selects the dialect and whether plain HTTP is allowed; then follow an address, a
//! line feed, and the name of a lock.

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{LockCalls, Target};
use edgelatch_proto::protocol::exchange::{Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, Request};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::LeaseTime;
use url::{Host, Url};

use crate::kit::{first_call, granted, replicated};

const TOKEN: &str = "s3cret:t0ken";

pub(crate) fn run(input: &[u8]) {
    let Some((flags, Ok(text))) =
        input.split_first().map(|(flags, rest)| (flags, std::str::from_utf8(rest)))
    else {
        return;
    };
    let (webdis, plain) = (flags & 1 == 1, flags & 2 == 2);
    let (address, name) = text.split_once('\n').unwrap_or((text, "job"));
    let new = match (webdis, plain) {
        (false, false) => Gateway::upstash,
        (false, true) => Gateway::upstash_over_http,
        (true, false) => Gateway::webdis,
        (true, true) => Gateway::webdis_over_http,
    };
    let Ok(gateway) = new(address, TOKEN) else { return };
    // The address may be shown, and nothing else of it.
    if text.contains("s3cret") {
        return;
    }
    assert!(!format!("{gateway:?}").contains("s3cret"));
    let base = address.trim();
    let base = base.strip_suffix('/').unwrap_or(base);
    // An address that browsers cannot parse is never used.
    let Ok(origin) = Url::parse(base) else { return };
    prints_no_secret(&origin, plain);

    let Ok(name) = LockName::parse(name) else { return };
    let target = Target::Lock(LockCalls::new(
        name,
        if flags & 4 == 0 { Publish::Plain } else { Publish::Sharded },
    ));
    let inspect_call = first_call(1, |request| target.inspect(request, None));
    let Step::Send(single) =
        Exchange::new(&gateway, inspect_call.clone(), &GatewayCapabilities::default()).1
    else {
        return;
    };
    assert_goes(&single, base, &origin, "");
    if !webdis {
        assert_goes(&Request::several(&single, [&single].into_iter()), base, &origin, "pipeline");
        let Step::Send(waits) =
            Exchange::new(&gateway, replicated(1), &GatewayCapabilities::default()).1
        else {
            panic!("nothing is sent")
        };
        assert_goes(&waits, base, &origin, "pipeline");
    }
    stream(&gateway, webdis, &target, base, &origin);
}

/// A token is sent unencrypted only to loopback, unless plain HTTP was allowed.
fn prints_no_secret(origin: &Url, plain: bool) {
    let is_loopback = match origin.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    };
    assert!(
        origin.scheme() == "https" || (origin.scheme() == "http" && (plain || is_loopback)),
        "{origin}"
    );
}

fn assert_goes(request: &Request, base: &str, origin: &Url, path: &str) {
    assert_eq!(request.url, format!("{base}/{path}"));
    let url = Url::parse(&request.url).expect("an address");
    assert_eq!(url.origin(), origin.origin());
    assert_eq!(
        (url.username(), url.password(), url.query(), url.fragment()),
        ("", None, None, None)
    );
    // No part of the URL changes when it is parsed again.
    let (_, host_and_path) = request.url.split_once("://").unwrap();
    let (_, written) = host_and_path.split_once('/').unwrap();
    assert_eq!(url.path(), format!("/{written}"));
    assert!(!request.url.contains("s3cret") && !request.body.contains("s3cret"));
    let header = request.authorization.as_deref().expect("a token");
    assert!(header.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{header}");
    assert!(!format!("{request:?}").contains("s3cret"));
}

fn stream(gateway: &Gateway, webdis: bool, target: &Target, base: &str, origin: &Url) {
    let owner = granted(target.clone(), LeaseTime::DEFAULT, Instant::from_millis(0, 0)).owner;
    let (code, value) = (Code::No, "1".to_owned());
    let busy = Reply { code, value, ms: 1, server_ms: 1, acknowledged: None };
    let topic = target.topic(owner, &busy);
    let (request, _) = gateway.listen(&topic);
    let (path, command) = if webdis {
        ("", request.body.strip_prefix('S').expect("a verb").split_once('/'))
    } else {
        let path =
            request.url.strip_prefix(base).and_then(|path| path.strip_prefix('/')).expect("a path");
        (path, path.split_once('/'))
    };
    let (verb, channel) = command.expect("a verb and a channel");
    assert!(["subscribe", "ssubscribe", "UBSCRIBE", "SUBSCRIBE"].contains(&verb), "{verb}");
    assert_goes(&request, base, origin, path);
    // One part of a path, which contains only the channel.
    assert!(
        channel.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~%".contains(&byte)),
        "{channel}"
    );
    assert_eq!(decoded(channel), topic.channel());
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(&rest[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "https://eu1-x.upstash.io\njob",
        "https://example.com:8443/redis/\nx/../../flushall",
        "http://127.0.0.1:8079\n%2e%2e",
        "http://[::1]:8079/\n\\..\\",
        "https://[2001:db8::a:1]/x\n?a#b",
        "http://localhost\n{a}, \"b\" [é]",
        "http://a.localhost/a.b/~c\n.",
        " https://example.com \n..",
        "https://user:pw@example.com\na",
        "https://example.com?x=1\na",
        "https://example.com/../x\na",
        "http://10.0.0.1\na",
        "https://exämple.com\na",
        "http://0x7f.1\na",
        "http://127.1\na",
        "https://example.com\\@evil.example\na",
        "https://example.com:443/:\na;b",
        "http://127.0.0.08\na",
    ];
    let flags = [0, 1, 2, 5];
    let seeds = texts.iter().flat_map(|text| flags.map(|flag| [&[flag], text.as_bytes()].concat()));
    seeds.collect()
}
