//! A line of JSON for each request.

use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, SystemTime};

use humantime::{Rfc3339Timestamp, format_rfc3339_millis};
use serde::{Serialize, Serializer};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::warn;

/// The most lines that wait for the writer. Further ones are dropped, so that a reader that has
/// stopped never stops the gateway.
const MAX_WAITING_LINES: usize = 8192;
/// The longest wait for the last lines when the gateway shuts down.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes a line of JSON for each request. Clones write to the same place.
///
/// A thread of its own writes. If it falls behind by 8192 lines, further lines are dropped, and
/// counted by the metric `edgelatch_gateway_log_lines_dropped`.
#[derive(Clone)]
pub struct AccessLog(Sender<Entry>);

enum Entry {
    Line(Vec<u8>),
    /// Sent to when all earlier lines are written.
    Flush(oneshot::Sender<()>),
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").finish_non_exhaustive()
    }
}

impl AccessLog {
    /// Starts a log that writes to `writer`, such as the standard output.
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    pub fn new(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel(MAX_WAITING_LINES);
        let write = move || {
            if let Err(error) = write_all(writer, receiver) {
                warn!(%error, "the access log cannot be written and ends");
            }
        };
        thread::Builder::new().name("access-log".to_owned()).spawn(write)?;
        Ok(Self(sender))
    }

    /// Queues a line. Returns whether there was room for it.
    pub(super) fn write(&self, line: &Line) -> bool {
        let Ok(mut bytes) = serde_json::to_vec(line) else { return false };
        bytes.push(b'\n');
        self.0.try_send(Entry::Line(bytes)).is_ok()
    }

    /// Waits until all lines are written, but for a second at most.
    pub(crate) async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        let flushing = async {
            if self.0.send(Entry::Flush(sender)).await.is_ok() {
                let _ = receiver.await;
            }
        };
        let _ = timeout(FLUSH_TIMEOUT, flushing).await;
    }
}

/// Writes lines until no [`AccessLog`] is left, and flushes when none waits.
fn write_all(mut writer: impl Write, mut entries: Receiver<Entry>) -> io::Result<()> {
    while let Some(entry) = entries.blocking_recv() {
        match entry {
            Entry::Line(line) => writer.write_all(&line)?,
            Entry::Flush(done) => {
                writer.flush()?;
                let _ = done.send(());
            }
        }
        if entries.is_empty() {
            writer.flush()?;
        }
    }
    Ok(())
}

/// A line of the log, for one request. It has neither path nor headers, since both can have keys
/// and tokens.
#[derive(Serialize)]
pub(super) struct Line {
    /// When the response began.
    #[serde(serialize_with = "as_rfc3339")]
    pub(super) time: SystemTime,
    pub(super) route: &'static str,
    pub(super) method: &'static str,
    pub(super) status: u16,
    #[serde(serialize_with = "as_milliseconds", rename = "durationMs")]
    pub(super) duration: Duration,
    /// The client's address.
    pub(super) address: IpAddr,
    /// The kind of token: `full` or `scoped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<&'static str>,
    #[serde(rename = "requestBytes", skip_serializing_if = "Option::is_none")]
    pub(super) request_bytes: Option<u64>,
    /// Absent for a stream.
    #[serde(rename = "responseBytes", skip_serializing_if = "Option::is_none")]
    pub(super) response_bytes: Option<u64>,
    /// The kind of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'static str>,
    /// The rule of the scoped token that the request broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<&'static str>,
}

fn as_rfc3339<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    let text: Rfc3339Timestamp = format_rfc3339_millis(*time);
    to.collect_str(&text)
}

/// Writes milliseconds with three decimal places, as numbers.
fn as_milliseconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let microseconds = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    to.serialize_f64(f64::from(microseconds) / 1000.0)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::UNIX_EPOCH;

    use super::*;

    fn line() -> Line {
        Line {
            time: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            route: "command",
            method: "POST",
            status: 200,
            duration: Duration::from_micros(1_234),
            address: IpAddr::from([192, 0, 2, 1]),
            token: Some("full"),
            request_bytes: Some(17),
            response_bytes: Some(15),
            error: None,
            rule: None,
        }
    }

    /// A writer whose reader decides when each write is done.
    struct Gate(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            self.1.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_line_is_json_and_is_written_before_the_flush_ends() {
        let (written, lines) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        open.send(()).unwrap();
        let log = AccessLog::new(Gate(written, gate)).unwrap();
        assert!(log.write(&line()));
        log.flush().await;
        let text = String::from_utf8(lines.recv().unwrap()).unwrap();
        assert_eq!(
            text,
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"route\":\"command\",\"method\":\"POST\",\
             \"status\":200,\"durationMs\":1.234,\"address\":\"192.0.2.1\",\"token\":\"full\",\
             \"requestBytes\":17,\"responseBytes\":15}\n"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_has_stopped_costs_lines_and_never_blocks() {
        let (written, lines) = mpsc::channel();
        let (_open, gate) = mpsc::channel();
        let log = AccessLog::new(Gate(written, gate)).unwrap();
        assert!(log.write(&line()));
        // The writer has the first line, and waits for its reader.
        drop(lines.recv().unwrap());
        for _ in 0..MAX_WAITING_LINES {
            assert!(log.write(&line()));
        }
        assert!(!log.write(&line()));
        log.flush().await;
    }
}
