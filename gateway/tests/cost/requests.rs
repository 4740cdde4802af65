//! The longest requests that the gateway accepts, and the same of half the size.

use std::time::Duration;

use edgelatch_gateway::{ScopeKeys, ScopedNames, ScopedToken};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    BatchSize, FairCalls, FairSettings, GroupCalls, LockCalls, Member, PermitCalls, Target,
};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::timing::PeerSkew;
use serde_json::json;
use test_support::calls::{owner, request};

const MEBI: usize = 1 << 20;

/// A request, and what it consists of.
pub(crate) struct Request {
    path: &'static str,
    pub(crate) body: String,
    pub(crate) commands: usize,
    pub(crate) words: usize,
    pub(crate) has_scoped_token: bool,
}

/// The tokens of the requests.
pub(crate) struct Credentials {
    pub(crate) full: String,
    pub(crate) scoped: String,
}

impl Credentials {
    pub(crate) fn new(full: &str, scope_key: &str) -> Self {
        let names = ScopedNames {
            locks: Some("app:".to_owned()),
            permits: Some("permits:".to_owned()),
            ..ScopedNames::default()
        };
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        let token = ScopedToken::of(names, minute, hour);
        let scoped = ScopeKeys::new([scope_key]).unwrap().sign(&token).unwrap();
        Self { full: full.to_owned(), scoped }
    }
}

impl Request {
    /// The whole request, after which the gateway closes the connection.
    pub(crate) fn bytes(&self, credentials: &Credentials) -> Vec<u8> {
        let Self { path, body, .. } = self;
        let token = if self.has_scoped_token { &credentials.scoped } else { &credentials.full };
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .into()
    }
}

/// A kind of request, of any size up to the largest.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The largest size, in the unit of `build`.
    pub(crate) size: usize,
    /// The status of the response.
    pub(crate) status: u16,
    build: fn(usize) -> Request,
}

impl Shape {
    pub(crate) fn request(&self, size: usize) -> Request {
        (self.build)(size)
    }
}

pub(crate) fn shapes() -> Vec<Shape> {
    let shape = |name, size, status, build| Shape { name, size, status, build };
    vec![
        shape("one word", 10 * MEBI - 64, 200, |size| {
            full("/", format!(r#"["SET","key","{}"]"#, "x".repeat(size)), 1, 3)
        }),
        shape("one word of escapes", 10 * MEBI / 6 - 64, 200, |size| {
            full("/", format!(r#"["SET","key","{}"]"#, r"\u0061".repeat(size)), 1, 3)
        }),
        shape("many short words", MEBI / 2, 200, |size| {
            full("/", format!(r#"["DEL"{}]"#, ",0".repeat(size / 2)), 1, size / 2 + 1)
        }),
        shape("a pipeline of short commands", 1_000, 200, |size| {
            full("/pipeline", list(size, r#"["PING"]"#), size, size)
        }),
        shape("a pipeline of long commands", 1_000, 200, |size| {
            let command = format!(r#"["SET","key","{}"]"#, "x".repeat(10_000));
            full("/pipeline", list(size, &command), size, 3 * size)
        }),
        shape("a transaction", 1_000, 200, |size| {
            full("/multi-exec", list(size, r#"["PING"]"#), size, size)
        }),
        shape("too many commands", 5 * MEBI - 64, 413, |size| {
            full("/pipeline", list(size, "0"), 0, 0)
        }),
        shape("lists in lists", 10 * MEBI, 400, |size| full("/", "[".repeat(size), 0, 0)),
        shape("values of a group", 1_000, 200, |size| {
            let values = (0..size).map(|number| number.to_string());
            let calls =
                GroupCalls::new(name("app:group"), values, PeerSkew::DEFAULT, Publish::Plain);
            scoped("/", &[Target::Group(calls.unwrap()).inspect(request(1), Some(owner(1)))])
        }),
        shape("permits", 1_000, 200, |size| {
            let batch = BatchSize::new(u16::try_from(size).unwrap()).unwrap();
            let calls =
                PermitCalls::new(name("permits:a"), Publish::Plain, batch, PeerSkew::DEFAULT);
            scoped("/", &[Target::Permits(calls).inspect(request(1), Some(owner(1)))])
        }),
        shape("locks with the longest names", 100, 200, |size| {
            let members = (0..size).map(|number| format!("app:{number:0>508}"));
            let members = members.map(|text| Member { name: name(&text), fenced: false });
            let calls = LockCalls::of_set(members, Publish::Plain).unwrap();
            let bound = test_support::calls::UNBOUND;
            scoped("/", &[Target::Lock(calls).release(request(1), bound, owner(1))])
        }),
        shape("a pipeline of a scoped token", 1_000, 200, |size| {
            let calls = FairCalls::new(name("app:fair"), FairSettings::default(), Publish::Plain);
            let call = calls.queue(request(1), Some(owner(1)));
            scoped("/pipeline", &vec![call; size])
        }),
    ]
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

/// A JSON list of this many copies of an element.
fn list(number: usize, element: &str) -> String {
    format!("[{}]", vec![element; number].join(","))
}

fn full(path: &'static str, body: String, commands: usize, words: usize) -> Request {
    Request { path, body, commands, words, has_scoped_token: false }
}

/// A request with a scoped token. The scripts are named by their digests. The gateway sends the
/// text of a script that Redis does not know, except in a pipeline, where Redis refuses each call.
fn scoped(path: &'static str, calls: &[ScriptCall]) -> Request {
    let words: Vec<Vec<String>> = calls.iter().map(words).collect();
    let number = words.iter().map(Vec::len).sum();
    let body = if path == "/" { json!(words[0]) } else { json!(words) };
    let (body, commands) = (body.to_string(), calls.len());
    Request { path, body, commands, words: number, has_scoped_token: true }
}

fn words(call: &ScriptCall) -> Vec<String> {
    let head = ["EVALSHA".to_owned(), call.sha1(false).unwrap().to_owned()];
    let count = call.keys().len().to_string();
    let words = head.into_iter().chain([count]);
    words.chain(call.keys().iter().cloned()).chain(call.args().iter().cloned()).collect()
}
