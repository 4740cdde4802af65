//! The peer of a transport under test: an HTTP server whose paths select its behaviour.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The time in its `Date` header.
const DATE: &str = "Sun, 22 Nov 2026 10:00:00 GMT";

/// Listens on loopback until it is dropped.
pub(crate) struct Peer {
    url: String,
    _listening: JoinSet<()>,
}

#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, u64>>);

impl Peer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, url.clone()));
        Self { url, _listening: listening }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// An address without a listener.
    pub(crate) async fn unreachable_address() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }
}

async fn listen(listener: TcpListener, url: String) {
    let counts = Arc::new(Counts::default());
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (url, counts) = (url.clone(), Arc::clone(&counts));
        connections.spawn(async move {
            // A client may close the connection at any time.
            let _ = serve(stream, &url, &counts).await;
        });
    }
}

impl Counts {
    fn add(&self, counter: &str) {
        *self.0.lock().unwrap().entry(counter.to_owned()).or_default() += 1;
    }

    fn get(&self, counter: &str) -> u64 {
        self.0.lock().unwrap().get(counter).copied().unwrap_or(0)
    }
}

async fn serve(mut stream: TcpStream, url: &str, counts: &Counts) -> std::io::Result<()> {
    let Some((head, body)) = read(&mut stream).await? else { return Ok(()) };
    let line = head.lines().next().unwrap_or_default();
    let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (kind, rest) = path.split_once('/').unwrap_or((path, ""));
    if !matches!(kind, "count" | "reset-counts") {
        counts.add(path);
    }
    let response_bytes = match kind {
        "status" => {
            let sync_token = format!("upstash-sync-token: after-{rest}\r\n");
            response(rest, &sync_token, b"body")
        }
        "retry-after" => {
            let value = rest.replace("%20", " ");
            let headers = format!("date: {DATE}\r\nretry-after: {value}\r\n");
            response("429", &headers, b"")
        }
        "mirror" => response("200", "", mirror(line, &head, &body).to_string().as_bytes()),
        "bytes" => response("200", "", &vec![b'x'; rest.parse().unwrap_or(0)]),
        "chunks" => chunks(rest.parse().unwrap_or(0)),
        "redirect" => response(rest, &format!("location: {url}/target\r\n"), b""),
        "broken" => broken(rest).to_vec(),
        "count" => response("200", "", counts.get(rest).to_string().as_bytes()),
        "reset-counts" => {
            counts.0.lock().unwrap().clear();
            response("200", "", b"")
        }
        "silence" | "stream" => {
            if kind == "stream" {
                stream.write_all(STREAM_START).await?;
            }
            // Returns when the client closes or resets the connection.
            let _ = stream.read(&mut [0]).await;
            counts.add("closed");
            return Ok(());
        }
        _ => response("404", "", b""),
    };
    stream.write_all(&response_bytes).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes would reset the connection and discard what was sent.
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// Reads the head and the body of a request; `None` if the client closes the connection first.
async fn read(stream: &mut TcpStream) -> std::io::Result<Option<(String, String)>> {
    let mut raw = Vec::new();
    loop {
        if let Some(at) = raw.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&raw[..at]).into_owned();
            let length = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, length)| length.parse::<usize>().ok())
                .unwrap_or(0);
            if raw.len() >= at + 4 + length {
                let body = String::from_utf8_lossy(&raw[at + 4..]).into_owned();
                return Ok(Some((head, body)));
            }
        }
        if stream.read_buf(&mut raw).await? == 0 {
            return Ok(None);
        }
    }
}

fn mirror(line: &str, head: &str, body: &str) -> Value {
    let headers: Map<String, Value> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), json!(value)))
        .collect();
    json!({ "line": line, "headers": headers, "body": body })
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn chunks(length: usize) -> Vec<u8> {
    let mut response_bytes =
        b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".to_vec();
    for chunk in vec![b'x'; length].chunks(1_000) {
        response_bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        response_bytes.extend(chunk);
        response_bytes.extend(b"\r\n");
    }
    response_bytes.extend(b"0\r\n\r\n");
    response_bytes
}

const STREAM_START: &[u8] = b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";

fn broken(place: &str) -> &'static [u8] {
    match place {
        "head" => b"HTTP/1.1 200",
        "body" => b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nhalf",
        "chunk" => b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n8\r\nhalf",
        _ => b"",
    }
}
