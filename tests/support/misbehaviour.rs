//! Faults that a gateway can inject into one request.

use std::sync::Arc;

use tokio::sync::Notify;

/// The fault for one request.
#[derive(Clone, Debug)]
pub struct Fault {
    /// How often the real gateway receives it.
    pub executions: u8,
    /// How many of its commands the real gateway receives.
    pub commands: usize,
    /// Whether a copy is kept for later.
    pub copied: bool,
    /// The response that the client receives.
    pub answer: Said,
}

/// The response that the client receives.
#[derive(Clone, Debug)]
pub enum Said {
    /// The real gateway's last response.
    Truth,
    /// The real gateway's last response, once the test says so.
    LateTruth(Arc<Notify>),
    /// The real gateway's last response without its last bytes.
    HalfTheTruth,
    /// These bytes, from the status line on; the connection is closed after them.
    Bytes(Vec<u8>),
    /// Nothing, until the client closes the connection.
    Silence,
    /// Nothing: the connection is reset.
    Reset,
    /// An endless response, one byte at a time, until the client closes the connection.
    Slowly,
}

impl Fault {
    /// No fault.
    pub const fn none() -> Self {
        Self::after(Said::Truth)
    }

    pub const fn is_none(&self) -> bool {
        self.executions == 1
            && self.commands == usize::MAX
            && !self.copied
            && matches!(self.answer, Said::Truth)
    }

    /// The request is not executed, and `answer` is the response.
    pub const fn instead(answer: Said) -> Self {
        Self { executions: 0, commands: usize::MAX, copied: false, answer }
    }

    /// The request is executed, and `answer` is the response.
    pub const fn after(answer: Said) -> Self {
        Self::in_part(usize::MAX, answer)
    }

    /// The first `commands` commands of the request are executed, and `answer` is the response.
    pub const fn in_part(commands: usize, answer: Said) -> Self {
        Self { executions: 1, commands, copied: false, answer }
    }

    /// The request is executed twice.
    pub fn twice() -> Self {
        Self { executions: 2, ..Self::none() }
    }

    /// The same fault; a copy of the request is kept for later.
    pub fn copied(self) -> Self {
        Self { copied: true, ..self }
    }
}

/// A well-formed HTTP response.
pub fn http(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Said {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n");
    Said::Bytes([head.as_bytes(), headers.as_bytes(), b"\r\n", body].concat())
}

/// An HTTP response with a JSON body.
pub fn json(status: u16, body: &str) -> Said {
    http(status, "content-type: application/json\r\n", body)
}

/// An HTTP response with an HTML page.
pub fn page(status: u16) -> Said {
    http(status, "content-type: text/html\r\n", "<!DOCTYPE html><title>Sorry</title>")
}
