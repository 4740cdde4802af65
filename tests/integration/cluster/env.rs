//! A gateway in front of several Redis servers, and clients that record the responses.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use edgelatch::client::{Client, Lease};
use edgelatch::error::FailureKind;
use edgelatch::host::TokioHost;
use edgelatch::timing::AttemptTime;
use edgelatch::transport::{
    Request, Reqwest, ReqwestStream, Response, StreamHead, StreamLimits, Transport,
};
use edgelatch::{Gateway, Publish};
use edgelatch_gateway::{Config, Gateway as GatewayServer, RedisSource, Tokens};
use edgelatch_proto::protocol::script::scripts;
use serde_json::Value;

use test_support::redis::TOKEN;
use test_support::test_env::LONG_ATTEMPT;

/// A client that records the responses.
pub(crate) type RecordingClient = Client<RecordingTransport, TokioHost>;
/// A lease of such a client.
pub(crate) type RecordingLease = Lease<RecordingTransport, TokioHost>;

/// A gateway in front of a cluster, or of a master that Sentinels name.
pub(crate) struct TestEnv {
    gateway: GatewayServer,
}

impl TestEnv {
    /// Starts a gateway in front of the Redis of this URL.
    pub(crate) async fn new(url: String) -> Self {
        let config = Config::new(RedisSource::Url(url), Tokens::new([TOKEN]).unwrap());
        Self { gateway: GatewayServer::start(config).await.unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.gateway.address())
    }

    /// A client of its own, and its record.
    pub(crate) fn client(&self) -> (RecordingClient, RecordingTransport) {
        self.client_with(|gateway| gateway)
    }

    /// A client whose gateway settings `set` changes, and its record.
    pub(crate) fn client_with(
        &self,
        set: impl FnOnce(Gateway) -> Gateway,
    ) -> (RecordingClient, RecordingTransport) {
        let recorder = RecordingTransport::default();
        let gateway = set(Gateway::upstash(&self.url(), TOKEN).unwrap());
        (Client::new(gateway, recorder.clone(), TokioHost::new()), recorder)
    }

    /// A client whose releases are published as `publish` says, and its record.
    pub(crate) fn client_publishing(
        &self,
        publish: Publish,
    ) -> (RecordingClient, RecordingTransport) {
        self.client_with(|gateway| gateway.publish(publish))
    }

    /// A client with short attempts (2 s), for tests in which Redis is down at times.
    pub(crate) fn client_with_short_attempts(&self) -> RecordingClient {
        self.client_with_timeout(Duration::from_secs(2))
    }

    /// A client for calls with a response of the gateway, however slow the machine is.
    pub(crate) fn client_with_long_attempts(&self) -> RecordingClient {
        self.client_with_timeout(LONG_ATTEMPT)
    }

    fn client_with_timeout(&self, attempt: Duration) -> RecordingClient {
        let attempt = AttemptTime::new(attempt).unwrap();
        self.client_with(|gateway| gateway.request_timeout(attempt)).0
    }
}

/// A transport that records requests and responses.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingTransport {
    transport: Reqwest,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    rejects_pipelines: bool,
}

/// One request and its response.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// The scripts' names, or the text of a script that is not edgelatch's.
    pub(crate) scripts: Vec<String>,
    /// The errors in the response.
    pub(crate) errors: Vec<String>,
}

impl RecordingTransport {
    /// A transport that rejects pipelines.
    pub(crate) fn without_pipelines() -> Self {
        Self { rejects_pipelines: true, ..Self::default() }
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }

    /// The number of requests.
    pub(crate) fn count(&self) -> usize {
        self.exchanges().len()
    }

    /// The scripts of all requests.
    pub(crate) fn scripts(&self) -> BTreeSet<String> {
        self.exchanges().into_iter().flat_map(|exchanges| exchanges.scripts).collect()
    }

    /// The errors of Redis, except for unknown scripts.
    pub(crate) fn redis_errors(&self) -> Vec<String> {
        let errors = self.exchanges().into_iter().flat_map(|exchanges| exchanges.errors);
        errors.filter(|error| !error.starts_with("NOSCRIPT")).collect()
    }
}

impl Transport for RecordingTransport {
    type Sending = Pin<Box<dyn Future<Output = Result<Response, FailureKind>> + Send>>;
    type Stream = ReqwestStream;

    async fn open(&self, request: Request) -> Result<(StreamHead, ReqwestStream), FailureKind> {
        self.transport.open(request).await
    }

    fn streams(&self) -> StreamLimits {
        self.transport.streams()
    }

    fn send(&self, request: Request) -> Self::Sending {
        let recorder = self.clone();
        Box::pin(async move {
            if recorder.rejects_pipelines && request.url.ends_with("/pipeline") {
                let body = br#"{"error":"ERR no such path"}"#.to_vec();
                return Ok(Response::new(404, body));
            }
            let scripts = scripts_of(&request.body);
            let answer = recorder.transport.send(request).await;
            let errors = answer
                .as_ref()
                .map_or_else(|kind| vec![kind.to_string()], |response| errors_in(&response.body));
            recorder.exchanges.lock().unwrap().push(Exchange { scripts, errors });
            answer
        })
    }
}

/// The scripts that a request runs.
fn scripts_of(body: &str) -> Vec<String> {
    let commands: Value = serde_json::from_str(body).unwrap();
    match commands.as_array().filter(|commands| commands[0].is_array()) {
        Some(commands) => {
            let is_script = |command: &&Value| command[0] != "WAIT";
            commands.iter().filter(is_script).map(script_of).collect()
        }
        None => vec![script_of(&commands)],
    }
}

fn script_of(command: &Value) -> String {
    let text = command[1].as_str().unwrap();
    let ours = scripts::ALL
        .iter()
        .find(|script| script.sha1(false) == text || text.ends_with(&script.source(false)));
    ours.map_or(text, |script| script.name).to_owned()
}

fn errors_in(body: &[u8]) -> Vec<String> {
    let answer: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let answers = match answer {
        Value::Array(answers) => answers,
        one => vec![one],
    };
    answers.iter().filter_map(|answer| answer["error"].as_str()).map(str::to_owned).collect()
}

/// Names that Redisson can place and that are unique to one test: plain, braced and unusual ones.
pub(crate) fn names(start: &str) -> [String; 6] {
    let long = start.len() + "{}".len();
    [
        start.to_owned(),
        format!("{{{start}}}:x"),
        format!("x{{{start}}}b"),
        format!("{start} é/?#%*[a-z] \"\\' ☂ \u{1f512}"),
        format!("{{{start} ::}}"),
        format!("{start}{}", "n".repeat(512 - long)),
    ]
}
