//! Reads the body of a request, and the format that it requests for its response.

use std::sync::Arc;

use axum::body::{BodyDataStream, HttpBody as _};
use axum::extract::Request;
use axum::http::header::EXPECT;
use futures_util::StreamExt as _;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::command::Malformed;
use crate::failure::Failure;
use crate::limits::{Admitted, Room};
use crate::reply::Format;
use crate::routes::Context;

/// How much of a body that is too large is still read, as a multiple of the limit.
const DISCARD_TIMES: usize = 4;

/// A request whose body has been read.
pub(crate) struct Arrived {
    pub(crate) body: Vec<u8>,
    /// The memory of the body, reserved until the response is ready.
    _room: Option<Room>,
    /// When the request times out.
    pub(crate) deadline: Instant,
    pub(crate) format: Format,
}

impl Arrived {
    /// Reads the whole body, within the limits of its client.
    pub(crate) async fn read(
        shared: &Context,
        admitted: &Arc<Admitted>,
        request: Request,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + shared.request_time;
        let format = Format::requested(request.headers())?;
        let limit = shared.limits.body_max(admitted);
        // A body with too large a `Content-Length` is refused before it is read.
        let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
        // A client with `Expect: 100-continue` sends no body after a refusal.
        let asks = request.headers().contains_key(EXPECT);
        let mut parts = request.into_body().into_data_stream();
        let read = if announced > limit {
            Err(Failure::TooLarge)
        } else {
            let reading = read_body(shared, admitted, &mut parts, limit);
            timeout_at(deadline, reading).await.map_err(|_| Failure::SlowBody)?
        };
        if matches!(read, Err(Failure::TooLarge)) && !asks {
            // The request counts against its client's limits while the rest of its body is read.
            let admitted = Arc::clone(admitted);
            drop(tokio::spawn(async move {
                let discarding = discard(parts, limit.saturating_mul(DISCARD_TIMES));
                let _: Result<(), Elapsed> = timeout_at(deadline, discarding).await;
                drop(admitted);
            }));
        }
        let (body, room) = read?;
        shared.limits.read(admitted, body.len())?;
        Ok(Self { body, _room: room, deadline, format })
    }

    pub(crate) fn text(&self) -> Result<&str, Malformed> {
        str::from_utf8(&self.body).map_err(|_| Malformed::Encoding)
    }
}

/// Reads a body, and reserves memory for each part as it arrives, not for the announced length.
async fn read_body(
    shared: &Context,
    admitted: &Admitted,
    parts: &mut BodyDataStream,
    limit: usize,
) -> Result<(Vec<u8>, Option<Room>), Failure> {
    let (mut whole, mut room) = (Vec::new(), None);
    while let Some(part) = parts.next().await {
        let broken = |_| Failure::Refused("ERR the request body broke off".to_owned());
        let part = part.map_err(broken)?;
        if whole.len() + part.len() > limit {
            return Err(Failure::TooLarge);
        }
        shared.limits.body(admitted, &mut room, part.len())?;
        whole.extend_from_slice(&part);
    }
    Ok((whole, room))
}

/// Reads and drops up to `max` bytes of a refused body. If the connection were closed while the
/// client sends, it could not read the reason.
async fn discard(mut parts: BodyDataStream, max: usize) {
    let mut left = max;
    while let Some(Ok(part)) = parts.next().await {
        match left.checked_sub(part.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
