//! An attacker with invalid requests: sends random and mutated heads, lengths, chunks and bodies on
//! many concurrent connections, and drops streams. It attacks the program in a process of its own,
//! whose log shows a panic.
//!
//! The seed is fixed, so a failure repeats. `EDGELATCH_SEED` chooses another one,
//! `EDGELATCH_ATTACKS` the number of requests.

mod answers;
mod message;

use std::fs;
use std::net::SocketAddr;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::attacker::attacks;
use crate::program::{Running, program};
use crate::scopes::KEY;
use crate::support::{Redis, TIME_LIMIT, TOKEN, TestClient, until};
use message::{CANARY, Message};
use test_support::random::seed;

/// The default number of requests of a run.
const REQUESTS: u64 = 2000;
/// The most random requests on one connection, and the most concurrent connections.
const PIPELINED_MAX: usize = 6;
const AT_ONCE: usize = 16;
/// The number of requests with `Connection: close` at the end of each connection.
const ENDS: usize = 16;

/// The gateway's program, and a client that sends valid requests.
struct Target {
    gateway: Running,
    client: TestClient,
    address: SocketAddr,
}

impl Target {
    async fn start(redis: &Redis) -> Self {
        let mut command = program(&["--redis", &redis.url(), "--token", TOKEN]);
        command
            .env("EDGELATCH_SCOPE_KEYS", KEY)
            .env("EDGELATCH_LOG", "warn")
            .env("RUST_BACKTRACE", "0");
        let gateway = Running::start(command).await;
        let client = gateway.client(TOKEN);
        let address = gateway.line("listening on http://").unwrap().parse().unwrap();
        Self { gateway, client, address }
    }

    /// Returns the number of open files, sockets and pipes of the program.
    fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.gateway.id())).unwrap().count()
    }

    async fn assert_healthy(&self) {
        let pong = (200, r#"{"result":"PONG"}"#.to_owned());
        assert_eq!(self.client.command(r#"["PING"]"#).await, pong);
    }

    /// Fails if the gateway has executed a request inside of another one.
    async fn assert_none_smuggled(&self, connections: &[Vec<Message>]) {
        let (_, canary) = self.client.command(&format!(r#"["GET","{CANARY}"]"#)).await;
        let value = canary.trim_start_matches(r#"{"result":""#).trim_end_matches(r#""}"#);
        let texts = connections.iter().map(|messages| text(messages));
        let around: Vec<String> = texts.filter(|text| text.contains(value)).collect();
        assert_eq!(
            canary, r#"{"result":null}"#,
            "a request in another one was executed: {around:?}"
        );
    }

    /// Sends requests on one connection, and reads all responses. Fails unless each well-formed
    /// request has one.
    async fn exchange(&self, messages: &[Message]) -> usize {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let bytes: Vec<u8> = messages.iter().flat_map(|message| message.bytes.clone()).collect();
        let mut answer = Vec::new();
        let exchange = async {
            let reading = async {
                // A reset connection counts as ended.
                let mut part = [0; 4096];
                while let Ok(length @ 1..) = reader.read(&mut part).await {
                    answer.extend_from_slice(&part[..length]);
                }
            };
            // The gateway may close the connection before all bytes are sent.
            tokio::join!(reading, writer.write_all(&bytes)).1.is_ok()
        };
        timeout(TIME_LIMIT, exchange).await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let sent = || self::text(messages);
        assert!(!text.contains(TOKEN) && !text.contains(KEY), "a secret was sent: {text}");
        let has_body: Vec<bool> = messages.iter().map(|message| message.has_body).collect();
        let answers = answers::read(&answer, &has_body);
        let answers = answers.unwrap_or_else(|wrong| panic!("{wrong}: {text}\nafter {}", sent()));
        let wrong = answers.iter().find(|answer| !answer.is_fine());
        assert!(wrong.is_none(), "{wrong:?}: {text}\nafter {}", sent());
        let first = messages.iter().take_while(|message| message.is_well_formed).count();
        let first = first.min(messages.len() - ENDS + 1);
        assert!(
            answers.len() >= first,
            "{} answers to {first}: {text}\nafter {}",
            answers.len(),
            sent()
        );
        answers.len()
    }
}

/// Returns the beginning of the requests as text, for messages of failures.
fn text(messages: &[Message]) -> String {
    let bytes: Vec<u8> = messages.iter().flat_map(|message| message.bytes.clone()).collect();
    String::from_utf8_lossy(&bytes).chars().take(4000).collect()
}

fn messages(rng: &mut Rng) -> Vec<Message> {
    let mut messages: Vec<Message> =
        (0..rng.usize(..PIPELINED_MAX)).map(|_| Message::random(rng)).collect();
    // No request that writes follows a truncated one, whose announced length could end right in
    // front of it.
    let cut = messages.iter().position(|message| message.is_cut);
    messages.truncate(cut.map_or(messages.len(), |place| place + 1));
    // A truncated body swallows some of the last requests. Enough of them remain to close every
    // connection.
    messages.extend((0..ENDS).map(|_| Message::last()));
    messages
}

// Slow: thousands of requests.
#[tokio::test]
async fn arbitrary_http_is_read_as_one_request_each_and_other_clients_are_served() {
    let redis = Redis::start().await;
    let target = Target::start(&redis).await;
    target.assert_healthy().await;
    let mut rng = Rng::with_seed(seed());
    let (mut sent, mut answered, mut well_formed) = (0, 0, 0);
    while sent < attacks(REQUESTS) {
        let connections: Vec<Vec<Message>> =
            (0..rng.usize(1..=AT_ONCE)).map(|_| messages(&mut rng)).collect();
        // On each connection one of the last requests has a response.
        let ends = (ENDS - 1) * connections.len();
        let all = || connections.iter().flatten();
        sent += (all().count() - ends) as u64;
        well_formed += all().filter(|message| message.is_well_formed).count() - ends;
        let exchanges = connections.iter().map(|messages| target.exchange(messages));
        answered += join_all(exchanges).await.iter().sum::<usize>();
        target.assert_healthy().await;
        target.assert_none_smuggled(&connections).await;
    }
    println!("{sent} requests, {well_formed} of them well-formed, {answered} answers");
    assert!(answered > 100 && well_formed > 100, "{answered} {well_formed}");
    assert_quiet(target, redis).await;
}

#[tokio::test]
async fn streams_that_are_dropped_and_connections_that_say_nothing_leave_nothing() {
    let redis = Redis::start().await;
    let target = Target::start(&redis).await;
    target.assert_healthy().await;
    let mut rng = Rng::with_seed(seed());
    for _ in 0..5 {
        let mut open = Vec::new();
        for _ in 0..60 {
            let mut stream = TcpStream::connect(target.address).await.unwrap();
            let path = ["subscribe", "psubscribe", "ssubscribe"][rng.usize(..3)];
            let head = format!(
                "GET /{path}/{} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n",
                rng.u8(..8)
            );
            // Some connections send nothing, some a part of the head.
            let bytes =
                &head.as_bytes()[..[0, head.len() / 2, head.len(), head.len()][rng.usize(..4)]];
            stream.write_all(bytes).await.unwrap();
            if bytes.len() == head.len() && rng.bool() {
                let mut start = [0; 12];
                timeout(TIME_LIMIT, stream.read_exact(&mut start)).await.unwrap().unwrap();
                assert_eq!(&start, b"HTTP/1.1 200");
            }
            open.push(stream);
        }
        target.assert_healthy().await;
        drop(open);
    }
    assert_quiet(target, redis).await;
}

/// Checks that nothing is left of the attack: no connection of a client or to Redis, and no panic
/// in the log.
async fn assert_quiet(target: Target, redis: Redis) {
    let mut connection = redis.connect().await;
    // The gateway's connection, this one, and those of the valid client.
    until(async || {
        let clients: String =
            redis::cmd("CLIENT").arg("LIST").query_async(&mut connection).await.unwrap();
        (clients.lines().count() <= 4).then_some(())
    })
    .await;
    let idle = Target::start(&redis).await;
    idle.assert_healthy().await;
    let usual = idle.open_files() + 8;
    until(async || (target.open_files() <= usual).then_some(())).await;
    target.assert_healthy().await;
    assert!(target.gateway.is_running().await, "the gateway has ended");
    let log = target.gateway.kill().await;
    assert!(!log.contains("panicked") && !log.contains(TOKEN) && !log.contains(KEY), "{log}");
}
