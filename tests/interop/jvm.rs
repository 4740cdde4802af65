//! The connection to the Java side: a JVM that serves all test processes, or one of this process.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Port of 127.0.0.1 at which `Peer --listen` runs. If it is unset, each test process starts a JVM
/// of its own.
const PORT: &str = "EDGELATCH_PEER_PORT";
/// Folder with the classes and libraries of the Java side.
const FOLDER: &str = "EDGELATCH_PEER";

/// Connects at the first command. The session on the Java side ends with this process.
pub(super) static JVM: LazyLock<Jvm> = LazyLock::new(|| match env::var(PORT) {
    Ok(port) => Jvm::connect(&port),
    Err(_) => Jvm::start(),
});

/// A session with the Java side.
pub(super) struct Jvm {
    commands: Mutex<Box<dyn Write + Send>>,
    pending: Arc<Pending>,
    next_id: AtomicU64,
}

/// The receivers of responses by the ids of their commands; `None` once the session has ended.
struct Pending(Mutex<Option<HashMap<u64, oneshot::Sender<Value>>>>);

impl Jvm {
    fn connect(port: &str) -> Self {
        let port: u16 = port.parse().unwrap_or_else(|_| panic!("{PORT} is not a port: {port}"));
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .unwrap_or_else(|error| panic!("no Java side at {PORT}={port}: {error}"));
        stream.set_nodelay(true).unwrap();
        let answers = stream.try_clone().unwrap();
        Self::new(stream, answers, || ())
    }

    fn start() -> Self {
        let folder = env::var_os(FOLDER).map(PathBuf::from).unwrap_or_else(|| {
            panic!("neither {PORT} nor {FOLDER} is set: run `cargo xtask test interop`")
        });
        let (classes, libraries) = (folder.join("classes"), folder.join("lib"));
        assert!(
            classes.exists(),
            "the Java side is not built in {FOLDER}: run `cargo xtask test interop`"
        );
        let mut java = Command::new("java")
            // The JVM runs for seconds only: a fast start matters more than fast code.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
            .arg(format!("{}:{}/*", classes.display(), libraries.display()))
            .arg("edgelatch.peer.Peer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("java cannot be started");
        let (commands, answers) = (java.stdin.take().unwrap(), java.stdout.take().unwrap());
        Self::new(commands, answers, move || drop(java.wait()))
    }

    /// Starts the thread that reads responses; it calls `on_end` after the last one.
    fn new(
        commands: impl Write + Send + 'static,
        answers: impl Read + Send + 'static,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Self {
        let pending = Arc::new(Pending(Mutex::new(Some(HashMap::new()))));
        let receivers = Arc::clone(&pending);
        thread::spawn(move || {
            receivers.deliver(answers);
            on_end();
        });
        Self { commands: Mutex::new(Box::new(commands)), pending, next_id: AtomicU64::new(1) }
    }

    /// Sends a command. Returns it with its id, and the receiver of its response, which fails if
    /// the session ends first.
    pub(super) fn send(&self, mut command: Value) -> (Value, oneshot::Receiver<Value>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        command["id"] = json!(id);
        let (sender, answer) = oneshot::channel();
        self.pending.insert(id, sender);
        // One write for the whole line. If the session has ended, the receiver fails.
        let line = format!("{command}\n");
        let _ = self.commands.lock().unwrap().write_all(line.as_bytes());
        (command, answer)
    }
}

impl Pending {
    fn insert(&self, id: u64, sender: oneshot::Sender<Value>) {
        if let Some(pending) = self.0.lock().unwrap().as_mut() {
            pending.insert(id, sender);
        }
    }

    /// Passes each response to its receiver, which may be dropped, until the session ends.
    fn deliver(&self, answers: impl Read) {
        for line in BufReader::new(answers).lines().map_while(Result::ok) {
            let answer: Value = serde_json::from_str(&line).expect("the JVM answers in JSON");
            let id = answer["id"].as_u64().expect("an answer has an id");
            let sender = self.0.lock().unwrap().as_mut().and_then(|pending| pending.remove(&id));
            let _ = sender.expect("an answer is for a command").send(answer);
        }
        self.0.lock().unwrap().take();
    }
}
