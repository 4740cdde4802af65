//! The failures of requests, and the limits on streams, in a JavaScript runtime.

use super::{Response, StreamLimits};
use crate::error::FailureKind;
use crate::web::{self, names};

/// Where the numbers of failures and of kinds of runtimes are written.
const WEB_JS: &str = include_str!("../web.js");

const NO_STREAMS: StreamLimits = StreamLimits { max: 0, shared: true };

/// `web.js` reads as many bytes of a body as any other transport.
const _: () = assert!(names::number(WEB_JS, "const BODY_MAX = ") as usize == Response::BODY_MAX);

/// Returns the limits on streams in this runtime.
pub(crate) fn stream_limits() -> StreamLimits {
    const PROGRAM: u32 = names::number(WEB_JS, "const PROGRAM = ");
    const WORKER: u32 = names::number(WEB_JS, "const WORKER = ");
    const PAGE: u32 = names::number(WEB_JS, "const PAGE = ");
    const SLOTS: usize = names::number(WEB_JS, "const STREAM_SLOTS = ") as usize;
    match web::runtime() {
        // Node, Deno, Bun.
        PROGRAM => StreamLimits { max: 64, shared: true },
        // Each request has six connections of its own, and no other request may use them.
        WORKER => StreamLimits { max: 4, shared: false },
        // For all clients and tabs together, a limit that `web.js` enforces.
        PAGE => StreamLimits { max: SLOTS, shared: true },
        // A page without `navigator.locks`: it cannot know how many streams other pages have open.
        _ => NO_STREAMS,
    }
}

/// Returns the failure with this number.
pub(crate) const fn failure(number: u32) -> FailureKind {
    const NOT_SENT: u32 = names::number(WEB_JS, "const NOT_SENT = ");
    const REDIRECTED: u32 = names::number(WEB_JS, "const REDIRECTED = ");
    const GARBLED: u32 = names::number(WEB_JS, "const GARBLED = ");
    const TOO_LARGE: u32 = names::number(WEB_JS, "const TOO_LARGE = ");
    match number {
        NOT_SENT => FailureKind::NotSent,
        REDIRECTED => FailureKind::Redirected,
        GARBLED => FailureKind::Garbled { status: 0 },
        TOO_LARGE => FailureKind::TooLarge,
        _ => FailureKind::Broken,
    }
}
