//! Reads the body of a request, and the format that it requests for its response.

use std::mem;
use std::sync::Arc;

use axum::body::{BodyDataStream, HttpBody as _};
use axum::extract::Request;
use axum::http::header::EXPECT;
use futures_util::StreamExt as _;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::command::MalformedCommand;
use crate::failure::Failure;
use crate::limits::{Admitted, PoolPermit};
use crate::reply::Format;
use crate::routes::Context;

/// How much of a body that is too large is still read, as a multiple of the limit.
const MAX_DISCARD_FACTOR: usize = 4;

/// The largest capacity that is allocated for a body with a `Content-Length`, as a multiple of the
/// bytes that have arrived. The operating system commits a page when it is first written, so this
/// bounds only the address space.
const MAX_GROWTH: usize = 8;
/// Spare capacity after a body: the command that is made from it is a little longer, and can then
/// use the same memory.
const BODY_SLACK: usize = 64;

/// A request whose body has been read.
pub(crate) struct ReceivedRequest {
    body: Vec<u8>,
    /// The memory of the body, reserved until the response is ready.
    _memory: Option<PoolPermit>,
    /// When the request times out.
    pub(crate) deadline: Instant,
    pub(crate) format: Format,
}

impl ReceivedRequest {
    /// Reads the whole body, within the limits of its client.
    pub(crate) async fn read(
        shared: &Context,
        admitted: &Arc<Admitted>,
        request: Request,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + shared.request_time;
        let format = Format::requested(request.headers())?;
        let limit = shared.limits.max_body(admitted);
        // A body with too large a `Content-Length` is refused before it is read.
        let content_length =
            usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
        // A client with `Expect: 100-continue` sends no body after a refusal.
        let expects_continue = request.headers().contains_key(EXPECT);
        let mut chunks = request.into_body().into_data_stream();
        let read = if content_length > limit {
            Err(Failure::TooLarge)
        } else {
            let reading = read_body(shared, admitted, &mut chunks, content_length, limit);
            timeout_at(deadline, reading).await.map_err(|_| Failure::SlowBody)?
        };
        if matches!(read, Err(Failure::TooLarge)) && !expects_continue {
            // The request counts against its client's limits while the rest of its body is read.
            let admitted = Arc::clone(admitted);
            drop(tokio::spawn(async move {
                let discarding = discard(chunks, limit.saturating_mul(MAX_DISCARD_FACTOR));
                let _: Result<(), Elapsed> = timeout_at(deadline, discarding).await;
                drop(admitted);
            }));
        }
        let (body, memory) = read?;
        shared.limits.count_body(admitted, body.len())?;
        Ok(Self { body, _memory: memory, deadline, format })
    }

    /// Takes the body. The caller drops it before Redis replies.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        mem::take(&mut self.body)
    }

    /// Takes the body as [`take_body`](Self::take_body) does.
    pub(crate) fn take_text(&mut self) -> Result<String, MalformedCommand> {
        String::from_utf8(self.take_body()).map_err(|_| MalformedCommand::Encoding)
    }
}

/// Reads a body. Reserves memory for each chunk as it arrives, not for the announced length.
async fn read_body(
    shared: &Context,
    admitted: &Admitted,
    chunks: &mut BodyDataStream,
    content_length: usize,
    limit: usize,
) -> Result<(Vec<u8>, Option<PoolPermit>), Failure> {
    let (mut whole, mut memory) = (Vec::new(), None);
    while let Some(chunk) = chunks.next().await {
        let broken = |_| Failure::Refused("ERR the request body broke off".to_owned());
        let chunk = chunk.map_err(broken)?;
        let length = whole.len() + chunk.len();
        if length > limit {
            return Err(Failure::TooLarge);
        }
        shared.limits.reserve_body(admitted, &mut memory, chunk.len())?;
        if length > whole.capacity() {
            let next = if length <= content_length {
                content_length.min(MAX_GROWTH * length)
            } else {
                2 * length
            };
            whole.reserve_exact(next + BODY_SLACK - whole.len());
        }
        whole.extend_from_slice(&chunk);
    }
    Ok((whole, memory))
}

/// Reads and drops up to `max` bytes of a refused body. If the connection were closed while the
/// client sends, it could not read the reason.
async fn discard(mut chunks: BodyDataStream, max: usize) {
    let mut left = max;
    while let Some(Ok(chunk)) = chunks.next().await {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
