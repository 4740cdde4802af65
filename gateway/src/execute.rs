//! Handles commands, pipelines and transactions.

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
use tokio::time::timeout_at;

use crate::arrival::Arrived;
use crate::auth::Access;
use crate::clock::now;
use crate::command::{Malformed, Word, Words, split};
use crate::cors;
use crate::failure::{Failure, json};
use crate::limits::Admitted;
use crate::link::{Step, weight};
use crate::path;
use crate::policy::{Lane, Refusal};
use crate::reply::{Answer, ErrorText, Format};
use crate::routes::{Context, Shared};
use crate::scoped::Breach;
use crate::sync_token::{SYNC_TOKEN, sync_token};
use crate::turns::Turns;

/// The number of commands of a pipeline to parse before other tasks of this thread run.
const YIELD_EVERY: usize = 64;
/// The most words of a command with a scoped token, far more than any call of the library has. A
/// longer command is refused, and its words are not stored.
const SCOPED_WORDS_MAX: usize = 4096;

/// Handles `POST /`: runs one command, and responds with `{"result": …}` or `{"error": …}`.
pub(crate) async fn command(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let arrived = Arrived::read(&shared, &admitted, request).await?;
    shared.limits.commands(&admitted, 1)?;
    let words = read(&access, arrived.text()?)?.ok_or(Failure::Forbidden(Breach::Call))?;
    if let Access::Scoped(scope) = &access {
        let names = scope.command(words.as_slice(), now()).map_err(Failure::Forbidden)?;
        shared.limits.weight(&admitted, 1, weight(words.as_slice().len(), names.len()))?;
        shared.limits.names(&admitted, &names)?;
    }
    run(&shared, &access, &admitted, &words, &arrived).await
}

/// Handles paths such as `/set/key/value`: runs one command in the address, and responds as
/// [`command`] does.
///
/// Each response has `Cache-Control: no-store`, since a browser or a proxy could store one to
/// `GET`.
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
    admitted: &Arc<Admitted>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    // Pages with scoped tokens use the library, which sends no command to this gateway in the
    // address.
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
    run(shared, access, admitted, &words, &arrived).await
}

/// Runs a command that its token allows, unless the gateway refuses it with every token.
async fn run<T: Word + ?Sized>(
    shared: &Context,
    access: &Access,
    admitted: &Admitted,
    words: &Words<'_, T>,
    arrived: &Arrived,
) -> Result<Response<Body>, Failure> {
    let lane =
        shared.policy.lane(words.as_slice()).map_err(|refusal| Failure::Refused(refusal.text()))?;
    let _waiting = (lane == Lane::Own).then(|| shared.limits.wait(admitted)).transpose()?;
    let turns = Turns::new(access, admitted, arrived.deadline);
    let (link, command) = (Arc::clone(&shared.link), words.to_command());
    let reply = turns.send(lane, async move { link.command(&command, lane).await }).await??;
    let answer = Answer::Replied(reply, arrived.format);
    let status = if answer.is_result() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    write(status, arrived.format, slice::from_ref(&answer), &answer)
}

/// Encodes the replies of Redis: in RESP2 one behind the other, or in JSON.
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

/// Handles `POST /pipeline`: runs many commands, each with its own result or error.
pub(crate) async fn pipeline(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let arrived = Arrived::read(&shared, &admitted, request).await?;
    let turns = Turns::new(&access, &admitted, arrived.deadline);
    turns.check()?;
    let commands = split(arrived.text()?, shared.pipeline_limit)?.ok_or(Failure::TooMany)?;
    shared.limits.commands(&admitted, commands.len())?;
    let mut steps: Vec<Step> = Vec::with_capacity(commands.len());
    // A refused command is not sent, and has its error at its place in the response.
    let mut refusals: Vec<Option<String>> = Vec::with_capacity(commands.len());
    let mut names = Vec::new();
    for (number, command) in commands.into_iter().enumerate() {
        if number % YIELD_EVERY == YIELD_EVERY - 1 {
            yield_now().await;
        }
        let has_passed = refusals.last().is_some_and(Option::is_none);
        let follows = has_passed && steps.last().is_some_and(|step| step.lane == Lane::Shared);
        let words = read(&access, command.get())?;
        refusals.push(match step(&shared, &access, words, follows, &mut names) {
            Ok(step) => {
                steps.push(step);
                None
            }
            Err(refusal) => Some(refusal),
        });
    }
    let total = steps.iter().map(|step| step.weight).sum();
    shared.limits.weight(&admitted, steps.len(), total)?;
    shared.limits.names(&admitted, &names)?;
    let waits = steps.iter().any(|step| step.lane == Lane::Own);
    let _waiting = waits.then(|| shared.limits.wait(&admitted)).transpose()?;
    let mut replies = send(&shared, steps, &turns).await?.into_iter();
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

/// Handles `POST /multi-exec`: runs all commands or none, and no other client's command between
/// them.
///
/// The whole transaction goes out as one write on one connection, from `MULTI` to `EXEC`.
pub(crate) async fn multi_exec(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    // The library never sends a transaction, so scoped tokens allow none.
    if matches!(access, Access::Scoped(_)) {
        return Err(Failure::Forbidden(Breach::Path));
    }
    let arrived = Arrived::read(&shared, &admitted, request).await?;
    let commands = split(arrived.text()?, shared.pipeline_limit)?.ok_or(Failure::TooMany)?;
    let mut queue = Vec::with_capacity(commands.len());
    for command in commands {
        let Some(words) = Words::parse(command.get(), usize::MAX)? else { continue };
        // Inside a transaction `WAIT` does not wait, so the lane does not matter.
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
            // Upstash responds to a transaction in JSON, whatever format the client requests.
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

/// Parses a command; `None` if a scoped token's command has more than [`SCOPED_WORDS_MAX`] words.
fn read<'a>(access: &Access, command: &'a str) -> Result<Option<Words<'a>>, Malformed> {
    let max = match access {
        Access::Full => usize::MAX,
        Access::Scoped(_) => SCOPED_WORDS_MAX,
    };
    Words::parse(command, max)
}

/// Checks a command of a pipeline. Returns the step that sends it, or the text of its refusal. Adds
/// the names that the command uses to `names`.
fn step(
    shared: &Context,
    access: &Access,
    words: Option<Words<'_>>,
    follows: bool,
    names: &mut Vec<String>,
) -> Result<Step, String> {
    let words = words.ok_or_else(|| Breach::Call.text().to_owned())?;
    let slice = words.as_slice();
    let mut its_names = Vec::new();
    if let Access::Scoped(scope) = access {
        let looked = if follows { scope.next(slice, now()) } else { scope.command(slice, now()) };
        its_names = looked.map_err(|breach| breach.text().to_owned())?;
    }
    let lane = shared.policy.lane(slice).map_err(Refusal::text)?;
    let weight = weight(slice.len(), its_names.len());
    names.append(&mut its_names);
    Ok(Step { command: words.to_command(), lane, weight })
}

/// Sends the commands, and returns the reply of each. If no command has a reply, the whole request
/// fails.
async fn send(
    shared: &Context,
    steps: Vec<Step>,
    turns: &Turns,
) -> Result<Vec<RedisResult<Value>>, Failure> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let replies = shared.link.pipeline(steps, turns).await;
    if replies.iter().any(Result::is_ok) {
        return Ok(replies);
    }
    let error = replies.into_iter().find_map(Result::err);
    Err(error.map_or(Failure::BadReply, Failure::from))
}
