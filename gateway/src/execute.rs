//! Commands, pipelines and transactions.

use std::slice;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::response::IntoResponse as _;
use redis::{RedisResult, Value};
use serde::Serialize;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::arrival::Arrived;
use crate::auth::Access;
use crate::clock::now;
use crate::command::{Word, Words};
use crate::cors;
use crate::failure::{Failure, json};
use crate::limits::Admitted;
use crate::link::Step;
use crate::path;
use crate::policy::{Lane, Refusal};
use crate::reply::{Answer, ErrorText, Format};
use crate::routes::{Context, Shared};
use crate::scoped::Breach;
use crate::sync_token::{SYNC_TOKEN, sync_token};

/// After how many commands of a pipeline other requests get a turn on this thread.
const YIELD_EVERY: usize = 64;

/// `POST /`: one command, `{"result": …}` or `{"error": …}`.
pub(crate) async fn command(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let arrived = Arrived::read(&shared, &admitted, request).await?;
    shared.limits.commands(&admitted, 1)?;
    let words = Words::parse(arrived.text()?)?;
    if let Access::Scoped(scope) = &access {
        scope.command(words.as_slice(), now()).map_err(Failure::Forbidden)?;
    }
    run(&shared, &admitted, &words, &arrived).await
}

/// `/set/key/value`: one command in the address, answered as by [`command`].
///
/// An answer to `GET` could be kept by a browser or a proxy, so each forbids that.
pub(crate) async fn path_command(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Response<Body> {
    let answered = run_path(&shared, &access, &admitted, request).await;
    let mut response = answered.unwrap_or_else(Failure::into_response);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn run_path(
    shared: &Context,
    access: &Access,
    admitted: &Admitted,
    request: Request,
) -> Result<Response<Body>, Failure> {
    // Scoped tokens are for pages, which have no use for it: there is nothing to refuse call by call.
    if matches!(access, Access::Scoped(_)) {
        return Err(Failure::Forbidden(Breach::Path));
    }
    cors::refuse_foreign(request.headers(), &shared.origins)?;
    let uri = request.uri().clone();
    let request = match *request.method() {
        Method::GET | Method::HEAD => request.map(|_| Body::empty()),
        Method::POST | Method::PUT => request,
        _ => return Err(Failure::WrongMethod),
    };
    let arrived = Arrived::read(shared, admitted, request).await?;
    let words = path::words(&uri, &arrived.body)?;
    run(shared, admitted, &words, &arrived).await
}

/// Sends a command that its token allows, unless the gateway refuses it to everybody.
async fn run<T: Word + ?Sized>(
    shared: &Context,
    admitted: &Admitted,
    words: &Words<'_, T>,
    arrived: &Arrived,
) -> Result<Response<Body>, Failure> {
    let lane =
        shared.policy.lane(words.as_slice()).map_err(|refusal| Failure::Refused(refusal.text()))?;
    let _waiting = (lane == Lane::Own).then(|| shared.limits.wait(admitted)).transpose()?;
    let command = words.to_command();
    let reply = timeout_at(arrived.deadline, shared.link.command(&command, lane))
        .await
        .map_err(|_| Failure::TimedOut)??;
    let answer = Answer::Replied(reply, arrived.format);
    let status = if answer.is_result() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    write(status, arrived.format, slice::from_ref(&answer), &answer)
}

/// Writes what Redis replied: in RESP2 one answer behind the other, or in JSON.
fn write(
    status: StatusCode,
    format: Format,
    answers: &[Answer],
    in_json: &impl Serialize,
) -> Result<Response<Body>, Failure> {
    let mut response = match format {
        Format::Resp2 => {
            let mut bytes = Vec::new();
            answers.iter().try_for_each(|answer| answer.write_resp2(&mut bytes))?;
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            let kind = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Format::Base64 | Format::Text => json(status, in_json),
    };
    response.headers_mut().insert(SYNC_TOKEN, sync_token());
    Ok(response)
}

/// `POST /pipeline`: many commands in one request, each answered for itself.
pub(crate) async fn pipeline(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let arrived = Arrived::read(&shared, &admitted, request).await?;
    let commands = parse_all(&shared, arrived.text()?)?;
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
    let mut replies = send(&shared, steps, arrived.deadline).await?.into_iter();
    let answers = refusals
        .into_iter()
        .map(|refusal| match refusal {
            Some(refusal) => Some(Answer::Refused(refusal)),
            None => replies.next().map(|reply| match reply {
                Ok(reply) => Answer::Replied(reply, arrived.format),
                Err(error) => Answer::Lost(error.into()),
            }),
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(Failure::BadReply)?;
    write(StatusCode::OK, arrived.format, &answers, &answers)
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
    let arrived = Arrived::read(&shared, &admitted, request).await?;
    let commands = parse_all(&shared, arrived.text()?)?;
    let mut queue = Vec::with_capacity(commands.len());
    for words in &commands {
        // Inside a transaction a wait does not wait, so the lane makes no difference.
        shared.policy.lane(words.as_slice()).map_err(|refusal| Failure::Refused(refusal.text()))?;
        queue.push(words.to_command());
    }
    if queue.is_empty() {
        return Ok(json(StatusCode::OK, &[(); 0]));
    }
    let reply = timeout_at(arrived.deadline, shared.link.transaction(queue))
        .await
        .map_err(|_| Failure::TimedOut)??;
    match reply {
        Value::Array(replies) => {
            // Upstash answers a transaction in JSON whatever the client asks for.
            let format = match arrived.format {
                Format::Resp2 => Format::Text,
                format => format,
            };
            let answers: Vec<_> =
                replies.into_iter().map(|reply| Answer::Replied(reply, format)).collect();
            write(StatusCode::OK, format, &answers, &answers)
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
