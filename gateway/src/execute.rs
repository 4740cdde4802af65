//! Commands, pipelines and transactions.

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use redis::{Pipeline, Value};
use tokio::time::{Instant, timeout_at};

use crate::command::{Malformed, Words};
use crate::failure::{Failure, json};
use crate::policy::{Lane, lane};
use crate::reply::{Answer, Encoding, ErrorText};
use crate::routes::{Context, Shared};

/// `POST /`: one command, `{"result": …}` or `{"error": …}`.
pub(crate) async fn command(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let Arrived { body, deadline, encoding } = arrive(&shared, request).await?;
    let words = Words::parse(text(&body)?)?;
    let lane = lane(words.as_slice(), shared.request_time)
        .map_err(|refusal| Failure::Refused(refusal.text()))?;
    let command = words.to_command();
    let reply = timeout_at(deadline, shared.link.command(&command, lane))
        .await
        .map_err(|_| Failure::TimedOut)??;
    let answer = Answer::Replied(reply, encoding);
    let status = if answer.is_result() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok(json(status, &answer))
}

/// `POST /pipeline`: many commands in one request, each answered for itself.
pub(crate) async fn pipeline(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let Arrived { body, deadline, encoding } = arrive(&shared, request).await?;
    let commands = Words::parse_all(text(&body)?)?;
    let mut pipe = Pipeline::with_capacity(commands.len());
    let mut widest = Lane::Shared;
    // A refused command keeps its place among the answers and is left out of what is sent.
    let mut refusals = Vec::with_capacity(commands.len());
    for words in &commands {
        match lane(words.as_slice(), shared.request_time) {
            Ok(lane) => {
                if lane == Lane::Own {
                    widest = Lane::Own;
                }
                pipe.add_command(words.to_command());
                refusals.push(None);
            }
            Err(refusal) => refusals.push(Some(refusal)),
        }
    }
    let mut replies = send(&shared, &pipe, widest, deadline).await?.into_iter();
    let answers = refusals
        .into_iter()
        .map(|refusal| match refusal {
            Some(refusal) => Some(Answer::Refused(refusal.text())),
            None => replies.next().map(|reply| Answer::Replied(reply, encoding)),
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(Failure::BadReply)?;
    Ok(json(StatusCode::OK, &answers))
}

/// `POST /multi-exec`: all commands or none, and nobody else's in between.
///
/// The whole transaction goes out as one write on one connection, from `MULTI` to `EXEC`.
pub(crate) async fn multi_exec(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let Arrived { body, deadline, encoding } = arrive(&shared, request).await?;
    let commands = Words::parse_all(text(&body)?)?;
    let mut pipe = Pipeline::with_capacity(commands.len());
    pipe.atomic();
    for words in &commands {
        // Inside a transaction a wait does not wait, so the lane makes no difference.
        lane(words.as_slice(), shared.request_time)
            .map_err(|refusal| Failure::Refused(refusal.text()))?;
        pipe.add_command(words.to_command());
    }
    if pipe.is_empty() {
        return Ok(json(StatusCode::OK, &[(); 0]));
    }
    let mut replies = send(&shared, &pipe, Lane::Shared, deadline).await?;
    match replies.pop() {
        Some(Value::Array(replies)) => {
            let answers: Vec<_> =
                replies.into_iter().map(|reply| Answer::Replied(reply, encoding)).collect();
            Ok(json(StatusCode::OK, &answers))
        }
        Some(Value::ServerError(error)) => Err(Failure::Refused(ErrorText(&error).to_string())),
        _ => Err(Failure::BadReply),
    }
}

/// A request whose body is there.
struct Arrived {
    body: Bytes,
    /// When the answer is due.
    deadline: Instant,
    encoding: Encoding,
}

async fn arrive(shared: &Context, request: Request) -> Result<Arrived, Failure> {
    let deadline = Instant::now() + shared.request_time;
    speaks_json(request.headers())?;
    let encoding = Encoding::asked(request.headers());
    // What announces itself as too large need not be read to be refused.
    let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
    if announced > shared.body_limit {
        return Err(Failure::TooLarge);
    }
    match timeout_at(deadline, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(Arrived { body, deadline, encoding }),
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Failure::TooLarge)
        }
        Ok(Err(_)) => Err(Failure::Refused("ERR the request body broke off".to_owned())),
        Err(_) => Err(Failure::SlowBody),
    }
}

/// A client that wants RESP2 instead of JSON must not get JSON and take it for RESP2.
fn speaks_json(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get("upstash-response-format") {
        Some(format) if !format.as_bytes().eq_ignore_ascii_case(b"json") => Err(Failure::Refused(
            "ERR the gateway answers in JSON only; leave Upstash-Response-Format out".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn text(body: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(body).map_err(|_| Malformed::Encoding)
}

async fn send(
    shared: &Context,
    pipe: &Pipeline,
    lane: Lane,
    deadline: Instant,
) -> Result<Vec<Value>, Failure> {
    if pipe.is_empty() {
        return Ok(Vec::new());
    }
    match timeout_at(deadline, shared.link.pipeline(pipe, lane)).await {
        Ok(Ok(replies)) => Ok(replies),
        Ok(Err(error)) => Err(discarded(&error).unwrap_or_else(|| error.into())),
        Err(_) => Err(Failure::TimedOut),
    }
}

/// The first of the errors for which Redis threw a transaction away.
fn discarded(error: &redis::RedisError) -> Option<Failure> {
    let errors = error.clone().into_server_errors()?;
    let (_, first) = errors.first()?;
    Some(Failure::Refused(ErrorText(first).to_string()))
}
