//! What a gateway may do wrong with one request.

use std::sync::Arc;

use tokio::sync::Notify;

/// What is done with one request.
#[derive(Clone, Debug)]
pub struct Fault {
    /// How often the real gateway gets it.
    pub executions: u8,
    /// How many of its commands that gateway gets.
    pub commands: usize,
    /// Whether a copy is kept for later.
    pub copied: bool,
    /// What the client hears.
    pub answer: Said,
}

/// What the client hears.
#[derive(Clone, Debug)]
pub enum Said {
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
    pub const fn none() -> Self {
        Self::after(Said::Truth)
    }

    pub const fn is_none(&self) -> bool {
        self.executions == 1
            && self.commands == usize::MAX
            && !self.copied
            && matches!(self.answer, Said::Truth)
    }

    /// The request is not executed, and this is said.
    pub const fn instead(answer: Said) -> Self {
        Self { executions: 0, commands: usize::MAX, copied: false, answer }
    }

    /// The request is executed, and then this is said.
    pub const fn after(answer: Said) -> Self {
        Self::in_part(usize::MAX, answer)
    }

    /// The first commands of the request are executed, so many, and then this is said.
    pub const fn in_part(commands: usize, answer: Said) -> Self {
        Self { executions: 1, commands, copied: false, answer }
    }

    /// The request is executed twice.
    pub fn twice() -> Self {
        Self { executions: 2, ..Self::none() }
    }

    /// As it is, and a copy is kept for later.
    pub fn copied(self) -> Self {
        Self { copied: true, ..self }
    }
}

/// An HTTP response that is well-formed as such.
pub fn http(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Said {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n");
    Said::Bytes([head.as_bytes(), headers.as_bytes(), b"\r\n", body].concat())
}

/// An HTTP response with JSON in it.
pub fn json(status: u16, body: &str) -> Said {
    http(status, "content-type: application/json\r\n", body)
}

/// An HTTP response with a page in it.
pub fn page(status: u16) -> Said {
    http(status, "content-type: text/html\r\n", "<!DOCTYPE html><title>Sorry</title>")
}
