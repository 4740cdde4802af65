//! The WebAssembly exports of the entry `edgelatch/testing` of the npm package: `pkg/testing.js`
//! calls them. Times are milliseconds since 1970.

use std::task::Poll;
use std::time::Duration;

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::protocol::gateway::{Request, Response};
use wasm_bindgen::prelude::*;

use crate::{HoldError, HoldOptions, Kind, MemoryGateway, StreamId};

/// A gateway in memory.
#[wasm_bindgen(skip_typescript)]
pub struct TestGateway(MemoryGateway);

/// A hold of another client.
#[wasm_bindgen(skip_typescript)]
pub struct OtherHold(crate::OtherHold);

/// Reads a time.
fn time(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()
}

fn request(url: String, authorization: Option<String>, body: String) -> Request {
    Request { url, authorization, sync_token: None, content_type: "application/json", body }
}

#[wasm_bindgen]
impl TestGateway {
    /// Creates a gateway with this host, whose Redis is empty.
    #[wasm_bindgen(constructor)]
    pub fn new(host: &str) -> Self {
        Self(MemoryGateway::new(host))
    }

    /// Returns the address that clients connect to, a space, and the token that the gateway
    /// requires.
    pub fn address(&self) -> String {
        [self.0.url(), " ", MemoryGateway::TOKEN].concat()
    }

    /// Executes a request; returns the status of its response, a space and the body. Without a
    /// response: `down` if it was not sent, otherwise `lost`.
    pub fn send(
        &mut self,
        url: String,
        authorization: Option<String>,
        body: String,
        now: f64,
    ) -> String {
        match self.0.send(&request(url, authorization, body), time(now)) {
            Ok(Response { status, body, .. }) => {
                [&status.to_string(), " ", &String::from_utf8_lossy(&body)].concat()
            }
            Err(FailureKind::NotSent) => "down".into(),
            Err(_) => "lost".into(),
        }
    }

    /// Opens a stream; returns the status of its response, a space and the number of the stream;
    /// `down` if the request was not sent.
    pub fn open(&mut self, url: String, authorization: Option<String>, body: String) -> String {
        match self.0.open(&request(url, authorization, body)) {
            Ok((status, StreamId(id))) => format!("{status} {id}"),
            Err(_) => "down".into(),
        }
    }

    /// Returns the text that arrived on a stream since the last call: an empty text at its end,
    /// `None` if there is no new text.
    pub fn read(&mut self, stream: u32) -> Option<String> {
        match self.0.read(StreamId(stream)) {
            Poll::Ready(text) => Some(text.unwrap_or_default()),
            Poll::Pending => None,
        }
    }

    /// Closes a stream.
    pub fn close(&mut self, stream: u32) {
        self.0.close(StreamId(stream));
    }

    /// Loses the responses to the next requests.
    #[wasm_bindgen(js_name = loseReplies)]
    pub fn lose_replies(&mut self, requests: u32) {
        self.0.lose_replies(requests);
    }

    /// Refuses the next requests.
    pub fn refuse(&mut self, requests: u32) {
        self.0.refuse(requests);
    }

    /// Stops the gateway, or starts it again.
    #[wasm_bindgen(js_name = setDown)]
    pub fn set_down(&mut self, is_down: bool) {
        self.0.set_down(is_down);
    }

    /// Ends the leases of all holds of this name; returns whether there was one.
    pub fn expire(&mut self, name: &str, now: f64) -> bool {
        self.0.expire(Some(name), time(now)) > 0
    }

    /// Acquires an object for another client.
    ///
    /// # Errors
    /// The message of the error.
    pub fn hold(
        &mut self,
        name: &str,
        kind: &str,
        lease_ms: f64,
        permits: u32,
        now: f64,
    ) -> Result<OtherHold, String> {
        let kind = Kind::with_name(kind).ok_or("`kind` is not the name of a kind")?;
        let options = HoldOptions { kind, lease: time(lease_ms), permits };
        let hold = self.0.hold(name, options, time(now));
        hold.map(OtherHold).map_err(|error: HoldError| error.to_string())
    }

    /// Ends a hold of another client; returns whether it existed.
    pub fn release(&mut self, hold: &OtherHold, now: f64) -> bool {
        self.0.release(&hold.0, time(now))
    }

    /// Lists what is held, as JSON: the name, the kind, the number of holds and the remaining
    /// milliseconds of each object.
    pub fn held(&self, now: f64) -> String {
        let rows = self.0.held(time(now)).into_iter().map(|held| {
            let remaining = held
                .remaining
                .map_or_else(|| "null".to_owned(), |remaining| remaining.as_millis().to_string());
            let name = crate::command::json_string(&held.name);
            format!(r#"[{name},"{}",{},{remaining}]"#, held.kind.name(), held.holds)
        });
        ["[", &rows.collect::<Vec<_>>().join(","), "]"].concat()
    }
}

#[wasm_bindgen]
impl OtherHold {
    /// The fencing token of the grant.
    #[wasm_bindgen(getter)]
    #[expect(clippy::cast_precision_loss, reason = "a token is below 2^53")]
    pub fn token(&self) -> f64 {
        self.0.token().as_u64() as f64
    }
}
