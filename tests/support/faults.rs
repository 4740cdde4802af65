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
    pub response: FaultResponse,
}

/// The response that the client receives.
#[derive(Clone, Debug)]
pub enum FaultResponse {
    /// The real gateway's last response.
    Real,
    /// The real gateway's last response, once the test says so.
    Delayed(Arc<Notify>),
    /// The real gateway's last response without its last bytes.
    Truncated,
    /// These bytes, from the status line on; the connection is closed after them.
    Bytes(Vec<u8>),
    /// Nothing, until the client closes the connection.
    Silence,
    /// Nothing: the connection is reset.
    Reset,
    /// An endless response, one byte at a time, until the client closes the connection.
    Trickle,
}

impl Fault {
    /// No fault.
    pub const fn none() -> Self {
        Self::executed(FaultResponse::Real)
    }

    pub const fn is_none(&self) -> bool {
        self.executions == 1
            && self.commands == usize::MAX
            && !self.copied
            && matches!(self.response, FaultResponse::Real)
    }

    /// The request is not executed, and `response` is returned.
    pub const fn not_executed(response: FaultResponse) -> Self {
        Self { executions: 0, commands: usize::MAX, copied: false, response }
    }

    /// The request is executed, and `response` is returned.
    pub const fn executed(response: FaultResponse) -> Self {
        Self::partly_executed(usize::MAX, response)
    }

    /// The first `commands` commands of the request are executed, and `response` is returned.
    pub const fn partly_executed(commands: usize, response: FaultResponse) -> Self {
        Self { executions: 1, commands, copied: false, response }
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
pub fn http(status: u16, headers: &str, body: impl AsRef<[u8]>) -> FaultResponse {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n");
    FaultResponse::Bytes([head.as_bytes(), headers.as_bytes(), b"\r\n", body].concat())
}

/// An HTTP response with a JSON body.
pub fn json(status: u16, body: &str) -> FaultResponse {
    http(status, "content-type: application/json\r\n", body)
}

/// The response of a gateway whose Redis does not know the script.
pub fn no_script() -> FaultResponse {
    json(400, r#"{"error":"NOSCRIPT No matching script."}"#)
}

/// An HTTP response with an HTML page.
pub fn page(status: u16) -> FaultResponse {
    http(status, "content-type: text/html\r\n", "<!DOCTYPE html><title>Sorry</title>")
}
