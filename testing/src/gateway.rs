//! The gateway: requests, streams and faults.

use std::task::Poll;
use std::time::Duration;

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::protocol::gateway::{Request, Response};
use edgelatch_proto::protocol::reply::RespValue;

use crate::command::{Command, CommandResult, error_body, words_of, write_result};
use crate::redis::Redis;
use crate::streams::{StreamId, Streams};

/// Redis' error while it reads its data after a start: it executes nothing.
const LOADING: &str = "LOADING Redis is loading the dataset in memory";

/// A gateway in memory, with a Redis of its own. It speaks Upstash's dialect.
///
/// It has no clock and does no I/O: time is an argument, the time since 1970 by the clock of its
/// Redis, and a transport passes requests to it.
#[derive(Debug)]
pub struct MemoryGateway {
    url: String,
    pub(crate) redis: Redis,
    streams: Streams,
    faults: Faults,
}

/// The faults of the next requests.
#[derive(Debug, Default)]
struct Faults {
    is_down: bool,
    /// The number of requests whose responses are lost.
    lost: u32,
    /// The number of requests that Redis refuses.
    refused: u32,
    delay: Duration,
}

impl MemoryGateway {
    /// The token that it requires.
    pub const TOKEN: &'static str = "test-token";

    /// Creates a gateway with this host, whose Redis is empty. The gateways of one redLock need
    /// different hosts.
    pub fn new(host: &str) -> Self {
        let url = ["https://", host].concat();
        Self { url, redis: Redis::new(), streams: Streams::default(), faults: Faults::default() }
    }

    /// The address that clients connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Executes a request at `now`, and returns its response, which arrives
    /// [`reply_delay`](Self::reply_delay) later.
    ///
    /// # Errors
    /// * [`FailureKind::NotSent`] while the gateway is [down](Self::set_down).
    /// * [`FailureKind::Broken`] if the response [is lost](Self::lose_replies).
    pub fn send(&mut self, request: &Request, now: Duration) -> Result<Response, FailureKind> {
        if self.faults.is_down {
            return Err(FailureKind::NotSent);
        }
        let response = self.respond(request, now);
        if take_one(&mut self.faults.lost) {
            return Err(FailureKind::Broken);
        }
        Ok(response)
    }

    fn respond(&mut self, request: &Request, now: Duration) -> Response {
        let Some(path) = self.authorized_path(request) else {
            return Response::new(401, error_body("Unauthorized"));
        };
        let is_list = path == "pipeline";
        if !is_list && !path.is_empty() {
            return Response::new(404, error_body("ERR no such path"));
        }
        let Some(commands) = words_of(&request.body, is_list) else {
            return Response::new(400, error_body("ERR syntax error"));
        };
        if take_one(&mut self.faults.refused) {
            return Response::new(400, error_body(LOADING));
        }
        let results: Vec<CommandResult> =
            commands.iter().map(|words| self.execute(words, now)).collect();
        let mut body = String::new();
        for (index, result) in results.iter().enumerate() {
            body.push(if index == 0 { '[' } else { ',' });
            write_result(&mut body, result);
        }
        match results.as_slice() {
            [result] if !is_list => {
                let status = if result.is_ok() { 200 } else { 400 };
                Response::new(status, body.split_off(1))
            }
            [] => Response::new(200, "[]"),
            _ => Response::new(200, body + "]"),
        }
    }

    fn execute(&mut self, words: &[String], now: Duration) -> CommandResult {
        match Command::parse(words)? {
            Command::Wait { replicas } => Ok(vec![RespValue::Int(replicas)]),
            Command::Run { script, keys, args } => {
                self.redis.set_subscribed(self.streams.channels());
                let result = self.redis.run(script, keys, args, now);
                self.publish();
                result
            }
        }
    }

    /// Delivers the messages that the last script has published.
    pub(crate) fn publish(&mut self) {
        for message in self.redis.take_published() {
            self.streams.publish(&message);
        }
    }

    /// Opens the stream that a request asks for; returns its HTTP status and its number.
    ///
    /// # Errors
    /// [`FailureKind::NotSent`] while the gateway is [down](Self::set_down).
    pub fn open(&mut self, request: &Request) -> Result<(u16, StreamId), FailureKind> {
        if self.faults.is_down {
            return Err(FailureKind::NotSent);
        }
        let Some(path) = self.authorized_path(request) else {
            return Ok((401, self.streams.open_ended()));
        };
        Ok(match self.streams.open(path) {
            Some(id) => (200, id),
            None => (404, self.streams.open_ended()),
        })
    }

    /// The path of an authorized request below the root.
    fn authorized_path<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let token = request.authorization.as_deref()?.strip_prefix("Bearer ")?;
        let path = request.url.strip_prefix(&self.url)?.strip_prefix('/')?;
        (token == Self::TOKEN).then_some(path)
    }

    /// Takes the bytes that arrived on a stream since the last call; `None` at its end.
    pub fn read(&mut self, stream: StreamId) -> Poll<Option<String>> {
        self.streams.read(stream)
    }

    /// Closes a stream.
    pub fn close(&mut self, stream: StreamId) {
        self.streams.close(stream);
    }

    /// Loses the responses to the next `requests` requests: the gateway executes them, and then
    /// their connections break.
    pub const fn lose_replies(&mut self, requests: u32) {
        self.faults.lost = requests;
    }

    /// Refuses the next `requests` requests, with the error of a Redis that reads its data: nothing
    /// is executed.
    pub const fn refuse(&mut self, requests: u32) {
        self.faults.refused = requests;
    }

    /// Sets how long each response takes from now on. Default: none.
    pub const fn delay_replies(&mut self, delay: Duration) {
        self.faults.delay = delay;
    }

    /// How long each response takes.
    pub const fn reply_delay(&self) -> Duration {
        self.faults.delay
    }

    /// Stops the gateway, or starts it again with all data: while it is down, it refuses
    /// connections, and its streams have ended.
    pub fn set_down(&mut self, is_down: bool) {
        self.faults.is_down = is_down;
        if is_down {
            self.streams.end_all();
        }
    }
}

/// Counts one down; returns whether there was one.
const fn take_one(count: &mut u32) -> bool {
    let has_one = *count > 0;
    *count = count.saturating_sub(1);
    has_one
}
