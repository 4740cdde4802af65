//! A fake Redis that replies as a test configures.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use redis::{Value, ValueCodec};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::Notify;
use tokio_util::codec::FramedRead;

const OK: &str = "+OK\r\n";

/// How a peer handles a command.
#[derive(Clone)]
pub(crate) enum Action {
    /// Closes the connection without a reply.
    Drop,
    /// Reads further commands, and replies to this and later ones when the test notifies it.
    Hold(Arc<Notify>),
    Reply(String),
    /// Sends no further reply on this connection.
    Stall,
}

/// Replies to commands by their first words, with `OK` if no rule matches, and records their names.
#[derive(Clone)]
pub(crate) struct Peer {
    port: u16,
    rules: Arc<Mutex<Vec<(String, Action)>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let peer = Self { port, rules: Arc::default(), seen: Arc::default() };
        let serving = peer.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        peer.on_command("DROP", Action::Drop);
        peer.on_command("STALL", Action::Stall);
        peer
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn on_command(&self, start: &str, action: Action) {
        let mut rules = self.rules.lock().unwrap();
        rules.retain(|(other, _)| other != start);
        rules.push((start.to_owned(), action));
    }

    pub(crate) fn reply_to(&self, start: &str, line: &str) {
        self.on_command(start, Action::Reply(format!("{line}\r\n")));
    }

    /// Makes this peer and `others` a cluster, in which this peer has all slots.
    pub(crate) fn serve_cluster(&self, others: &[&Self]) {
        let node = |peer: &Self| format!("*3\r\n$9\r\n127.0.0.1\r\n:{}\r\n$1\r\nx\r\n", peer.port);
        let nodes: String = others.iter().map(|peer| node(peer)).collect();
        let range = format!("*{}\r\n:0\r\n:16383\r\n{}{nodes}", 3 + others.len(), node(self));
        for peer in [&[self], others].concat() {
            peer.on_command("CLUSTER SLOTS", Action::Reply(format!("*1\r\n{range}")));
        }
    }

    /// Makes this peer a Sentinel that names the other one as the master.
    pub(crate) fn monitor(&self, master: &Self) {
        master.reply_to("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0");
        self.reply_to("ROLE", "*2\r\n$8\r\nsentinel\r\n*1\r\n$4\r\nmain");
        let port = master.port.to_string();
        let fields = ["name", "main", "ip", "127.0.0.1", "port", &port, "flags", "master"];
        let fields: Vec<_> =
            fields.iter().map(|field| format!("${}\r\n{field}", field.len())).collect();
        self.reply_to("SENTINEL MASTERS", &format!("*1\r\n*8\r\n{}", fields.join("\r\n")));
    }

    /// Returns how many commands of this name the peer has received.
    pub(crate) fn seen(&self, name: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| *seen == name).count()
    }

    async fn serve(self, mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let (reader, mut writer) = stream.split();
        let mut commands = FramedRead::new(reader, ValueCodec::default());
        while let Some(Ok(Value::Array(words))) = commands.next().await {
            match self.record(&words) {
                Action::Hold(release) => {
                    let mut held = OK.to_owned();
                    loop {
                        select! {
                            () = release.notified() => break,
                            Some(Ok(Value::Array(words))) = commands.next() => {
                                let action = self.record(&words);
                                held += if let Action::Reply(line) = &action { line } else { OK };
                            }
                        }
                    }
                    writer.write_all(held.as_bytes()).await.unwrap();
                }
                Action::Reply(line) => writer.write_all(line.as_bytes()).await.unwrap(),
                Action::Drop => return,
                Action::Stall => {
                    while commands.next().await.is_some() {}
                    return;
                }
            }
        }
    }

    /// Records a command, and returns how to handle it.
    fn record(&self, words: &[Value]) -> Action {
        let words: Vec<_> = words.iter().map(text).collect();
        self.seen.lock().unwrap().push(words[0].clone());
        self.rule(&words.join(" "))
    }

    fn rule(&self, command: &str) -> Action {
        let rules = self.rules.lock().unwrap();
        let rule = rules.iter().find(|(start, _)| command.starts_with(start.as_str()));
        rule.map_or_else(|| Action::Reply(OK.to_owned()), |(_, action)| action.clone())
    }
}

fn text(word: &Value) -> String {
    let Value::BulkString(bytes) = word else { panic!("no word: {word:?}") };
    String::from_utf8_lossy(bytes).into_owned()
}
