//! A gateway that misbehaves as it is told, in front of a real one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use edgelatch::protocol::script::scripts;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::misbehaviour::{Fault, Said};

/// Listens on loopback until it is dropped, and does what its plan says for each request.
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: AbortHandle,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The name of the script that it runs.
    pub(crate) script: &'static str,
    /// How many requests of that script there were, this one counted.
    pub(crate) number: usize,
    /// The command and its arguments.
    pub(crate) words: Vec<String>,
}

type Plan = Arc<dyn Fn(&Seen) -> Fault + Send + Sync>;

struct Shared {
    target: SocketAddr,
    plan: Mutex<Plan>,
    seen: Mutex<Vec<Seen>>,
    copies: Mutex<Vec<Vec<u8>>>,
}

impl Relay {
    /// Passes everything on to `target`, until it is told otherwise.
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plan: Mutex<Plan> = Mutex::new(Arc::new(|_| Fault::none()));
        let (seen, copies) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { target, plan, seen, copies });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared))).abort_handle();
        Self { address, shared, listening }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Forgets what it has seen, and does with each further request what `plan` says.
    pub(crate) fn plan(&self, plan: impl Fn(&Seen) -> Fault + Send + Sync + 'static) {
        *self.shared.plan.lock().unwrap() = Arc::new(plan);
        self.shared.seen.lock().unwrap().clear();
        self.shared.copies.lock().unwrap().clear();
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// How many requests of this script came so far.
    pub(crate) fn count(&self, script: &str) -> usize {
        self.seen().iter().filter(|seen| seen.script == script).count()
    }

    /// Delivers the copies that were kept, oldest first; answers how many.
    pub(crate) async fn deliver_copies(&self) -> usize {
        let copies: Vec<_> = self.shared.copies.lock().unwrap().drain(..).collect();
        for copy in &copies {
            self.shared.pass_on(copy).await;
        }
        copies.len()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    // Ends with this future, so nothing outlives the relay.
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
        let plan = Arc::clone(&self.plan.lock().unwrap());
        let fault = plan(&self.note(&raw[body_at..]));
        if fault.copied {
            self.copies.lock().unwrap().push(raw.clone());
        }
        let mut truth = Vec::new();
        for _ in 0..fault.executions {
            truth = self.pass_on(&raw).await;
        }
        let answer = match fault.answer {
            Said::Truth => truth,
            Said::HalfTheTruth => truth[..truth.len() - 20].to_vec(),
            Said::Bytes(bytes) => bytes,
            Said::Silence => {
                // Until the client has had enough.
                let _ = stream.read(&mut [0]).await;
                return;
            }
        };
        // The client may be gone by now; that is its right.
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
        // A socket that is closed with unread bytes in it takes back what it has sent.
        while stream.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
    }

    /// The whole answer of the real gateway to a request.
    async fn pass_on(&self, raw: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.target).await.unwrap();
        let line_end = raw.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        stream.write_all(&raw[..line_end]).await.unwrap();
        stream.write_all(b"connection: close\r\n").await.unwrap();
        stream.write_all(&raw[line_end..]).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        answer
    }

    fn note(&self, body: &[u8]) -> Seen {
        let words: Vec<String> = serde_json::from_slice(body).unwrap();
        let runs = |script: &&'static _| is(script, &words[1]);
        let script = scripts::ALL.iter().copied().find(runs).unwrap().name;
        let mut all = self.seen.lock().unwrap();
        let number = all.iter().filter(|seen| seen.script == script).count() + 1;
        let seen = Seen { script, number, words };
        all.push(seen.clone());
        seen
    }
}

fn is(script: &edgelatch::protocol::script::Script, text: &str) -> bool {
    [false, true].iter().any(|lock| script.sha1(*lock) == text || script.source(*lock) == text)
}

/// Reads one request; answers its bytes and where its body begins.
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
