//! What a request brings: its body, and how it is to be answered.

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use crate::command::Malformed;
use crate::failure::Failure;
use crate::limits::{Admitted, Room};
use crate::reply::Format;
use crate::routes::Context;

/// A request whose body is there.
pub(crate) struct Arrived {
    pub(crate) body: Vec<u8>,
    /// The memory that the body takes, counted while the request is under way.
    _room: Option<Room>,
    /// When the answer is due.
    pub(crate) deadline: Instant,
    pub(crate) format: Format,
}

impl Arrived {
    /// Reads the whole body, within the limits of its client.
    pub(crate) async fn read(
        shared: &Context,
        admitted: &Admitted,
        request: Request,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + shared.request_time;
        let format = Format::requested(request.headers())?;
        let limit = shared.limits.body_max(admitted);
        // What announces itself as too large need not be read to be refused.
        let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(Failure::TooLarge);
        }
        let reading = read_body(shared, admitted, request.into_body(), limit);
        let (body, room) = timeout_at(deadline, reading).await.map_err(|_| Failure::SlowBody)??;
        shared.limits.read(admitted, body.len())?;
        Ok(Self { body, _room: room, deadline, format })
    }

    pub(crate) fn text(&self) -> Result<&str, Malformed> {
        str::from_utf8(&self.body).map_err(|_| Malformed::Encoding)
    }
}

/// Reads a body, and makes room for each part of it as it comes: what was only announced takes no memory.
async fn read_body(
    shared: &Context,
    admitted: &Admitted,
    body: Body,
    limit: usize,
) -> Result<(Vec<u8>, Option<Room>), Failure> {
    let (mut whole, mut room) = (Vec::new(), None);
    let mut parts = body.into_data_stream();
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
