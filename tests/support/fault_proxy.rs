//! A proxy in front of a real gateway that injects the faults of a plan.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use edgelatch_proto::protocol::script::scripts;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::faults::{Fault, FaultResponse};
use super::streaming::{Counted, Streaming, Streams};

/// Listens on loopback until it is dropped, and injects the fault that its plan returns for each
/// request.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: AbortHandle,
}

/// How far the clocks of the Redis behind it are ahead, as the scripts see them, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// The time of day. Keys expire as usual.
    pub time: i64,
    /// The time since the server's start.
    pub uptime: i64,
}

/// One call that it received.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The name of the script that it runs.
    pub script: &'static str,
    /// The number of this call among those of its script, from 1.
    pub number: usize,
    /// The command and its arguments.
    pub words: Vec<String>,
}

type Plan = Arc<dyn Fn(&RecordedCall) -> Fault + Send + Sync>;

struct Shared {
    target: Mutex<SocketAddr>,
    clocks: Mutex<Clocks>,
    plan: Mutex<Plan>,
    seen: Mutex<Vec<RecordedCall>>,
    copies: Mutex<Vec<Vec<u8>>>,
    /// The response to each pipeline; the pipeline is not executed.
    pipeline_response: Mutex<Option<FaultResponse>>,
    requests: AtomicUsize,
    answered: AtomicUsize,
    /// Requests that were read, and have neither a complete response nor an injected silence.
    in_progress: AtomicUsize,
    streams: Streams,
    /// Requests that the library never sends to a gateway.
    unexpected: Mutex<Vec<String>>,
}

impl FaultProxy {
    /// Starts a proxy that passes all requests on to `target` until it has a plan.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plan: Mutex<Plan> = Mutex::new(Arc::new(|_| Fault::none()));
        let (seen, copies) = (Mutex::default(), Mutex::default());
        let (target, clocks) = (Mutex::new(target), Mutex::default());
        let shared = Arc::new(Shared {
            target,
            clocks,
            plan,
            seen,
            copies,
            pipeline_response: Mutex::default(),
            requests: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            in_progress: AtomicUsize::new(0),
            streams: Streams::default(),
            unexpected: Mutex::default(),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared))).abort_handle();
        Self { address, shared, listening }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Forgets the calls so far, and handles further ones as `plan` says.
    pub fn plan(&self, plan: impl Fn(&RecordedCall) -> Fault + Send + Sync + 'static) {
        *self.shared.plan.lock().unwrap() = Arc::new(plan);
        self.shared.seen.lock().unwrap().clear();
        self.shared.copies.lock().unwrap().clear();
        self.shared.requests.store(0, Ordering::SeqCst);
        self.shared.answered.store(0, Ordering::SeqCst);
    }

    /// Responds to each pipeline with `response`, without executing it.
    pub fn refuse_pipelines(&self, response: FaultResponse) {
        *self.shared.pipeline_response.lock().unwrap() = Some(response);
    }

    /// The number of requests so far; a pipeline counts once, requests for streams do not count.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Passes requests on to `target` from now on.
    pub fn set_target(&self, target: SocketAddr) {
        *self.shared.target.lock().unwrap() = target;
    }

    /// Moves the clocks that scripts see.
    pub fn set_clocks(&self, change: impl FnOnce(&mut Clocks)) {
        change(&mut self.shared.clocks.lock().unwrap());
    }

    /// Handles further requests for streams in this way.
    pub fn set_streaming(&self, streaming: Streaming) {
        self.shared.streams.set(streaming);
    }

    /// Ends all open streams.
    pub fn cut_streams(&self) {
        self.shared.streams.cut();
    }

    /// The number of requests for streams so far, and of open streams.
    pub fn streams(&self) -> (usize, usize) {
        self.shared.streams.counts()
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Whether Redis has executed all calls since the last plan was set, and the gateway has
    /// responded to every request for a stream. Assumes that no call was pending or silenced at
    /// that time.
    pub fn is_quiet(&self) -> bool {
        self.shared.streams.are_answered()
            && self.shared.answered.load(Ordering::SeqCst) >= self.shared.seen.lock().unwrap().len()
    }

    /// Whether every request that was read has its whole response, or gets none, and the gateway
    /// has responded to every request for a stream.
    pub fn is_idle(&self) -> bool {
        self.shared.streams.are_answered() && self.shared.in_progress.load(Ordering::SeqCst) == 0
    }

    /// The number of calls of this script so far.
    pub fn count(&self, script: &str) -> usize {
        self.calls().iter().filter(|seen| seen.script == script).count()
    }

    /// Delivers the copies that were kept, oldest first; returns their number.
    pub async fn deliver_copies(&self) -> usize {
        let copies: Vec<_> = self.shared.copies.lock().unwrap().drain(..).collect();
        for copy in &copies {
            self.shared.forward(copy).await;
        }
        copies.len()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.listening.abort();
        // The task that received a stray request cannot fail the test, and the client may recover
        // from the response. So the check is here.
        let unexpected = std::mem::take(&mut *self.shared.unexpected.lock().unwrap());
        assert!(unexpected.is_empty() || std::thread::panicking(), "asked for: {unexpected:?}");
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this future, so no connection outlives the proxy.
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shared = Arc::clone(&shared);
        connections.spawn(async move { shared.serve(stream).await });
        while connections.try_join_next().is_some() {}
    }
}

impl Shared {
    async fn serve(&self, mut stream: TcpStream) {
        let Some((raw, body_at)) = read_request(&mut stream).await else { return };
        let head = String::from_utf8_lossy(&raw[..body_at]);
        if !is_expected(&head, stream.local_addr().unwrap()) {
            self.unexpected.lock().unwrap().push(head.into_owned());
            return;
        }
        if head.lines().next().unwrap().contains("subscribe/") {
            let target = *self.target.lock().unwrap();
            return self.streams.answer(stream, &raw, target).await;
        }
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut in_progress = Some(Counted::new(&self.in_progress));
        let (commands, is_pipeline) = commands(&raw[body_at..]);
        let refused = self.pipeline_response.lock().unwrap().clone().filter(|_| is_pipeline);
        let (fault, calls) = match refused {
            Some(response) => (Fault::not_executed(response), 0),
            None => (self.fault(&commands), commands.len()),
        };
        if fault.copied {
            self.copies.lock().unwrap().push(raw.clone());
        }
        let raw = self.rewritten(raw, body_at, commands, is_pipeline, fault.commands);
        let mut truth = Vec::new();
        for _ in 0..fault.executions {
            truth = self.forward(&raw).await;
        }
        let answer = match fault.response {
            FaultResponse::Real => truth,
            FaultResponse::Delayed(notify) => {
                notify.notified().await;
                truth
            }
            FaultResponse::Truncated => truth[..truth.len() - 20].to_vec(),
            FaultResponse::Bytes(bytes) => bytes,
            FaultResponse::Silence => {
                drop(in_progress.take());
                // Until the client closes the connection.
                let _ = stream.read(&mut [0]).await;
                Vec::new()
            }
            FaultResponse::Trickle => {
                drop(in_progress.take());
                trickle(&mut stream).await;
                Vec::new()
            }
            FaultResponse::Reset => return stream.set_zero_linger().unwrap(),
        };
        self.answered.fetch_add(calls, Ordering::SeqCst);
        // The client may have closed the connection already.
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
        drop(in_progress);
        // Closing a socket with unread bytes would reset the connection and discard what was sent.
        while stream.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
    }

    /// The whole response of the real gateway to a request.
    async fn forward(&self, raw: &[u8]) -> Vec<u8> {
        let target = *self.target.lock().unwrap();
        let mut stream = TcpStream::connect(target).await.unwrap();
        let line_end = raw.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        stream.write_all(&raw[..line_end]).await.unwrap();
        stream.write_all(b"connection: close\r\n").await.unwrap();
        stream.write_all(&raw[line_end..]).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        answer
    }

    /// The fault for a request; for a pipeline, the first fault that its commands have.
    fn fault(&self, commands: &[Vec<String>]) -> Fault {
        let plan = Arc::clone(&self.plan.lock().unwrap());
        let faults: Vec<Fault> =
            commands.iter().map(|words| plan(&self.record(words.clone()))).collect();
        faults.into_iter().find(|fault| !fault.is_none()).unwrap_or_else(Fault::none)
    }

    /// The request with the first `commands` of its commands, whose scripts read the moved clocks.
    fn rewritten(
        &self,
        raw: Vec<u8>,
        body_at: usize,
        mut commands: Vec<Vec<String>>,
        is_pipeline: bool,
        count: usize,
    ) -> Vec<u8> {
        let clocks = *self.clocks.lock().unwrap();
        let mut changed = commands.len() > count;
        commands.truncate(count);
        for words in &mut commands {
            changed |= clocks.rewrite(words);
        }
        if !changed {
            return raw;
        }
        let body = match is_pipeline {
            true => serde_json::to_vec(&commands).unwrap(),
            false => serde_json::to_vec(&commands[0]).unwrap(),
        };
        let head = String::from_utf8_lossy(&raw[..body_at]);
        let is_length = |line: &&str| line.to_ascii_lowercase().starts_with("content-length:");
        let lines = head.trim_end().lines().filter(|line| !is_length(line));
        let head: String = lines.map(|line| format!("{line}\r\n")).collect();
        let head = head + &format!("content-length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body].concat()
    }

    fn record(&self, words: Vec<String>) -> RecordedCall {
        let runs = |script: &&'static _| is(script, &words[1]);
        let script = scripts::ALL.iter().copied().find(runs).map_or("own", |script| script.name);
        let mut all = self.seen.lock().unwrap();
        let number = all.iter().filter(|seen| seen.script == script).count() + 1;
        let seen = RecordedCall { script, number, words };
        all.push(seen.clone());
        seen
    }
}

impl Clocks {
    /// Makes a script read these clocks; returns whether that changed the command.
    fn rewrite(self, words: &mut [String]) -> bool {
        let Self { time, uptime } = self;
        let script = scripts::ALL.iter().find(|script| is(script, &words[1]));
        let Some(script) = script.filter(|_| (time, uptime) != (0, 0)) else { return false };
        let source = script.source(false);
        let now = "local t=redis.call('TIME')";
        assert!(source.contains(now), "{}", script.name);
        let seconds = ":match('uptime_in_seconds:(%d+)')";
        words[0] = "EVAL".into();
        words[1] = source
            .replace(now, &format!("{now} t[1]=t[1]+{time}"))
            .replace(seconds, &format!("{seconds}-1000*{uptime}"));
        true
    }
}

/// Whether a request has one of the few forms that the library sends, and names this host.
fn is_expected(head: &str, host: SocketAddr) -> bool {
    let path = head.lines().next().and_then(|line| {
        line.strip_prefix("POST /").and_then(|rest| rest.strip_suffix(" HTTP/1.1"))
    });
    let is_channel = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~%".contains(&byte);
        !text.is_empty() && text.bytes().all(is_plain)
    };
    let is_path = path.is_some_and(|path| match path.split_once('/') {
        Some((verb, channel)) => ["subscribe", "ssubscribe"].contains(&verb) && is_channel(channel),
        None => ["", "pipeline"].contains(&path),
    });
    let host = format!("host: {host}");
    is_path && head.lines().any(|line| line.eq_ignore_ascii_case(&host))
}

/// The commands of a request, and whether it is a pipeline.
fn commands(body: &[u8]) -> (Vec<Vec<String>>, bool) {
    match serde_json::from_slice(body) {
        Ok(words) => (vec![words], false),
        Err(_) => (serde_json::from_slice(body).unwrap(), true),
    }
}

fn is(script: &edgelatch_proto::protocol::script::Script, text: &str) -> bool {
    [false, true].iter().any(|lock| script.sha1(*lock) == text || script.source(*lock) == text)
}

/// Sends an endless response, one byte at a time, until the client closes the connection.
async fn trickle(stream: &mut TcpStream) {
    let head = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n";
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    for byte in head.iter().chain(std::iter::repeat(&b' ')) {
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        pace.tick().await;
    }
}

/// Reads one request; returns its bytes and the position of its body.
async fn read_request(stream: &mut TcpStream) -> Option<(Vec<u8>, usize)> {
    let mut raw = Vec::new();
    loop {
        if let Some(body_at) = raw.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4) {
            let head = String::from_utf8_lossy(&raw[..body_at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if raw.len() >= body_at + length?.trim().parse::<usize>().ok()? {
                return Some((raw, body_at));
            }
        }
        if stream.read_buf(&mut raw).await.ok()? == 0 {
            return None;
        }
    }
}
