//! What a gateway may do wrong with one request.

use std::sync::Arc;

use tokio::sync::Notify;

/// What is done with one request.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// How often the real gateway gets it.
    pub(crate) executions: u8,
    /// How many of its commands that gateway gets.
    pub(crate) commands: usize,
    /// Whether a copy is kept for later.
    pub(crate) copied: bool,
    /// What the client hears.
    pub(crate) answer: Said,
}

/// What the client hears.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// What the real gateway answered, the last time.
    Truth,
    /// That, once the test says so.
    LateTruth(Arc<Notify>),
    /// That, without its last bytes.
    HalfTheTruth,
    /// These bytes, from the status line on; the connection is closed after them.
    Bytes(Vec<u8>),
    /// Nothing, until the client closes the connection.
    Silence,
    /// Nothing: the connection is reset.
    Reset,
    /// One byte after the other, without an end, until the client closes the connection.
    Slowly,
}

impl Fault {
    /// Nothing is wrong.
    pub(crate) const fn none() -> Self {
        Self::after(Said::Truth)
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.executions == 1
            && self.commands == usize::MAX
            && !self.copied
            && matches!(self.answer, Said::Truth)
    }

    /// The request is not executed, and this is said.
    pub(crate) const fn instead(answer: Said) -> Self {
        Self { executions: 0, commands: usize::MAX, copied: false, answer }
    }

    /// The request is executed, and then this is said.
    pub(crate) const fn after(answer: Said) -> Self {
        Self::in_part(usize::MAX, answer)
    }

    /// The first commands of the request are executed, so many, and then this is said.
    pub(crate) const fn in_part(commands: usize, answer: Said) -> Self {
        Self { executions: 1, commands, copied: false, answer }
    }

    /// The request is executed twice.
    pub(crate) fn twice() -> Self {
        Self { executions: 2, ..Self::none() }
    }

    /// As it is, and a copy is kept for later.
    pub(crate) fn copied(self) -> Self {
        Self { copied: true, ..self }
    }
}

/// An HTTP response that is well-formed as such.
pub(crate) fn http(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Said {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n");
    Said::Bytes([head.as_bytes(), headers.as_bytes(), b"\r\n", body].concat())
}

/// An HTTP response with JSON in it.
pub(crate) fn json(status: u16, body: &str) -> Said {
    http(status, "content-type: application/json\r\n", body)
}

/// An HTTP response with a page in it.
pub(crate) fn page(status: u16) -> Said {
    http(status, "content-type: text/html\r\n", "<!DOCTYPE html><title>Sorry</title>")
}
