//! Commands, pipelines and transactions.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use futures_util::StreamExt as _;
use redis::{RedisResult, Value};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::auth::Access;
use crate::clock::now;
use crate::command::{Malformed, Words};
use crate::failure::{Failure, json};
use crate::limits::{Admitted, Room};
use crate::link::Step;
use crate::policy::{Lane, Refusal};
use crate::reply::{Answer, Encoding, ErrorText};
use crate::routes::{Context, Shared};
use crate::scoped::Breach;

/// After how many commands of a pipeline other requests get a turn on this thread.
const YIELD_EVERY: usize = 64;

/// `POST /`: one command, `{"result": …}` or `{"error": …}`.
pub(crate) async fn command(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let Arrived { body, deadline, encoding, _room } = arrive(&shared, &admitted, request).await?;
    shared.limits.commands(&admitted, 1)?;
    let words = Words::parse(text(&body)?)?;
    if let Access::Scoped(scope) = &access {
        scope.command(words.as_slice(), now()).map_err(Failure::Forbidden)?;
    }
    let lane =
        shared.policy.lane(words.as_slice()).map_err(|refusal| Failure::Refused(refusal.text()))?;
    let _waiting = (lane == Lane::Own).then(|| shared.limits.wait(&admitted)).transpose()?;
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
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let Arrived { body, deadline, encoding, _room } = arrive(&shared, &admitted, request).await?;
    let commands = parse_all(&shared, text(&body)?)?;
    shared.limits.commands(&admitted, commands.len())?;
    let mut steps: Vec<Step> = Vec::with_capacity(commands.len());
    // A refused command keeps its place among the answers and is left out of what is sent.
    let mut refusals: Vec<Option<String>> = Vec::with_capacity(commands.len());
    for (number, words) in commands.iter().enumerate() {
        if number % YIELD_EVERY == YIELD_EVERY - 1 {
            yield_now().await;
        }
        let has_passed = refusals.last().is_some_and(Option::is_none);
        let follows = has_passed && steps.last().is_some_and(|step| step.lane == Lane::Shared);
        match lane_of(&shared, &access, words, follows) {
            Ok(lane) => {
                steps.push(Step { command: words.to_command(), lane });
                refusals.push(None);
            }
            Err(refusal) => refusals.push(Some(refusal)),
        }
    }
    let waits = steps.iter().any(|step| step.lane == Lane::Own);
    let _waiting = waits.then(|| shared.limits.wait(&admitted)).transpose()?;
    let mut replies = send(&shared, steps, deadline).await?.into_iter();
    let answers = refusals
        .into_iter()
        .map(|refusal| match refusal {
            Some(refusal) => Some(Answer::Refused(refusal)),
            None => replies.next().map(|reply| match reply {
                Ok(reply) => Answer::Replied(reply, encoding),
                Err(error) => Answer::Lost(error.into()),
            }),
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
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    // The library sends none, and what comes between is nobody's business then.
    if matches!(access, Access::Scoped(_)) {
        return Err(Failure::Forbidden(Breach::Path));
    }
    let Arrived { body, deadline, encoding, _room } = arrive(&shared, &admitted, request).await?;
    let commands = parse_all(&shared, text(&body)?)?;
    let mut queue = Vec::with_capacity(commands.len());
    for words in &commands {
        // Inside a transaction a wait does not wait, so the lane makes no difference.
        shared.policy.lane(words.as_slice()).map_err(|refusal| Failure::Refused(refusal.text()))?;
        queue.push(words.to_command());
    }
    if queue.is_empty() {
        return Ok(json(StatusCode::OK, &[(); 0]));
    }
    let reply = timeout_at(deadline, shared.link.transaction(queue))
        .await
        .map_err(|_| Failure::TimedOut)??;
    match reply {
        Value::Array(replies) => {
            let answers: Vec<_> =
                replies.into_iter().map(|reply| Answer::Replied(reply, encoding)).collect();
            Ok(json(StatusCode::OK, &answers))
        }
        Value::ServerError(error) => Err(Failure::Refused(ErrorText(&error).to_string())),
        _ => Err(Failure::BadReply),
    }
}

/// How a command of a pipeline travels, or why it does not.
fn lane_of(
    shared: &Context,
    access: &Access,
    words: &Words<'_>,
    follows: bool,
) -> Result<Lane, String> {
    if let Access::Scoped(scope) = access {
        let words = words.as_slice();
        let looked = if follows { scope.next(words, now()) } else { scope.command(words, now()) };
        looked.map_err(|breach| breach.text().to_owned())?;
    }
    shared.policy.lane(words.as_slice()).map_err(Refusal::text)
}

fn parse_all<'a>(shared: &Context, body: &'a str) -> Result<Vec<Words<'a>>, Failure> {
    let commands = Words::parse_all(body)?;
    if commands.len() > shared.pipeline_limit { Err(Failure::TooMany) } else { Ok(commands) }
}

/// A request whose body is there.
struct Arrived {
    body: Vec<u8>,
    /// The memory that the body takes, counted while the request is under way.
    _room: Option<Room>,
    /// When the answer is due.
    deadline: Instant,
    encoding: Encoding,
}

async fn arrive(
    shared: &Context,
    admitted: &Admitted,
    request: Request,
) -> Result<Arrived, Failure> {
    let deadline = Instant::now() + shared.request_time;
    speaks_json(request.headers())?;
    let encoding = Encoding::asked(request.headers());
    // What announces itself as too large need not be read to be refused.
    let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
    if announced > shared.body_limit {
        return Err(Failure::TooLarge);
    }
    let reading = read_body(shared, admitted, request.into_body());
    let (body, room) = timeout_at(deadline, reading).await.map_err(|_| Failure::SlowBody)??;
    shared.limits.read(admitted, body.len())?;
    Ok(Arrived { body, _room: room, deadline, encoding })
}

/// Reads a body, and makes room for each part of it as it comes: what was only announced takes no memory.
async fn read_body(
    shared: &Context,
    admitted: &Admitted,
    body: Body,
) -> Result<(Vec<u8>, Option<Room>), Failure> {
    let (mut whole, mut room) = (Vec::new(), None);
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let broken = |_| Failure::Refused("ERR the request body broke off".to_owned());
        let part = part.map_err(broken)?;
        if whole.len() + part.len() > shared.body_limit {
            return Err(Failure::TooLarge);
        }
        shared.limits.body(admitted, &mut room, part.len())?;
        whole.extend_from_slice(&part);
    }
    Ok((whole, room))
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

/// If nothing came back at all, it is the request that failed.
async fn send(
    shared: &Context,
    steps: Vec<Step>,
    deadline: Instant,
) -> Result<Vec<RedisResult<Value>>, Failure> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let replies = shared.link.pipeline(steps, deadline).await;
    if replies.iter().any(Result::is_ok) {
        return Ok(replies);
    }
    let error = replies.into_iter().find_map(Result::err);
    Err(error.map_or(Failure::BadReply, Failure::from))
}
