//! Handles commands, pipelines and transactions.

use std::slice;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::response::IntoResponse as _;
use redis::{Cmd, RedisResult, Value};
use tokio::task::yield_now;
use tokio::time::timeout_at;

use crate::auth::Access;
use crate::backend::{Backend, PipelineCommand, weight};
use crate::clock::now;
use crate::command::{MAX_WORDS, MalformedCommand, parse, parse_list, words};
use crate::cors;
use crate::dispatch::Dispatcher;
use crate::failure::{Failure, json};
use crate::limits::Admitted;
use crate::observe::Operation;
use crate::path;
use crate::policy::{ConnectionKind, Refusal};
use crate::reply::{CommandResult, ErrorText, Format};
use crate::request_body::ReceivedRequest;
use crate::routes::{Context, Shared};
use crate::scoped::ScopeViolation;
use crate::scripts::{time_of, with_text};
use crate::sync_token::{SYNC_TOKEN, sync_token};

/// The number of commands of a pipeline to parse before other tasks of this thread run.
const YIELD_EVERY: usize = 64;
/// The most words of a command with a scoped token, far more than any call of the library has. A
/// longer command is refused, and its words are not stored.
const MAX_SCOPED_WORDS: usize = 4096;

/// Handles `POST /`: runs one command, and responds with `{"result": …}` or `{"error": …}`.
pub(crate) async fn command(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let mut received = ReceivedRequest::read(&shared, &admitted, request).await?;
    shared.limits.count_commands(&admitted, 1)?;
    let parsed = parse(&received.take_text()?, max_words(&access))?;
    let command = parsed.ok_or_else(|| too_long(&access))?;
    if let Access::Scoped(scope) = &access {
        let words = texts(&command).map_err(Failure::Forbidden)?;
        let names = scope.check_command(&words, now()).map_err(Failure::Forbidden)?;
        shared.limits.count_weight(&admitted, 1, weight(words.len(), names.len()))?;
        shared.limits.count_names(&admitted, &names)?;
    }
    run(&shared, &access, &admitted, command, &received).await
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
    let result = run_path(&shared, &access, &admitted, request).await;
    let mut response = result.unwrap_or_else(Failure::into_response);
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
        return Err(Failure::Forbidden(ScopeViolation::Path));
    }
    cors::refuse_cross_origin(request.headers(), &shared.origins)?;
    let uri = request.uri().clone();
    let request = match *request.method() {
        Method::GET | Method::HEAD => request.map(|_| Body::empty()),
        Method::POST | Method::PUT => request,
        _ => return Err(Failure::WrongMethod),
    };
    let mut received = ReceivedRequest::read(shared, admitted, request).await?;
    let command = path::command(&uri, &received.take_body())?;
    run(shared, access, admitted, command, &received).await
}

/// Runs a command that its token allows, unless the gateway refuses it with every token.
async fn run(
    shared: &Context,
    access: &Access,
    admitted: &Admitted,
    command: Cmd,
    received: &ReceivedRequest,
) -> Result<Response<Body>, Failure> {
    let connection =
        shared.policy.connection(&command).map_err(|refusal| Failure::Refused(refusal.text()))?;
    let _waiting = (connection == ConnectionKind::Dedicated)
        .then(|| shared.limits.reserve_wait(admitted))
        .transpose()?;
    let (metrics, operation) = (&shared.metrics, Operation::Command);
    let dispatcher = Dispatcher::new(access, admitted, received.deadline, metrics, operation);
    let backend = Arc::clone(&shared.backend);
    metrics.count_commands(1);
    let reply = dispatcher
        .send(connection, async move { send_script(&backend, &command, connection).await })
        .await??;
    count_error_reply(shared, &reply);
    let result = CommandResult::Reply(reply, received.format);
    let status = if result.is_result() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    write(status, received.format, slice::from_ref(&result), |out| result.write_json(out))
}

/// Sends a command. If it runs one of edgelatch's scripts that Redis does not know yet, sends the
/// text of the script after it, which spares the client a request.
async fn send_script(
    backend: &Backend,
    command: &Cmd,
    connection: ConnectionKind,
) -> RedisResult<Value> {
    let reply = backend.command(command, connection).await?;
    match with_text(command, &reply) {
        Some(command) => backend.command(&command, connection).await,
        None => Ok(reply),
    }
}

/// Counts a reply if it is an error of Redis.
fn count_error_reply(shared: &Context, reply: &Value) {
    if let Value::ServerError(error) = reply {
        shared.metrics.count_error_reply(error.code());
    }
}

/// Encodes the replies of Redis: in RESP2 one after the other, or by `in_json`.
fn write(
    status: StatusCode,
    format: Format,
    results: &[CommandResult],
    in_json: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
) -> Result<Response<Body>, Failure> {
    let mut bytes = Vec::new();
    let kind = match format {
        Format::Resp2 => {
            results.iter().try_for_each(|result| result.write_resp2(&mut bytes))?;
            "application/octet-stream"
        }
        Format::Base64 | Format::Text => {
            in_json(&mut bytes)?;
            "application/json"
        }
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(SYNC_TOKEN, sync_token());
    Ok(response)
}

fn write_list(format: Format, results: &[CommandResult]) -> Result<Response<Body>, Failure> {
    let in_json = |out: &mut Vec<u8>| CommandResult::write_json_list(results, out);
    write(StatusCode::OK, format, results, in_json)
}

/// Handles `POST /pipeline`: runs many commands, each with its own result or error.
pub(crate) async fn pipeline(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Extension(admitted): Extension<Arc<Admitted>>,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let mut received = ReceivedRequest::read(&shared, &admitted, request).await?;
    let (metrics, operation) = (&shared.metrics, Operation::Pipeline);
    let dispatcher = Dispatcher::new(&access, &admitted, received.deadline, metrics, operation);
    dispatcher.check()?;
    let commands = parse_commands(&shared, &access, &received.take_text()?)?;
    shared.limits.count_commands(&admitted, commands.len())?;
    let mut to_send: Vec<PipelineCommand> = Vec::with_capacity(commands.len());
    // A refused command is not sent, and has its error at its place in the response.
    let mut refusals: Vec<Option<String>> = Vec::with_capacity(commands.len());
    let mut names = Vec::new();
    for (number, command) in commands.into_iter().enumerate() {
        if number % YIELD_EVERY == YIELD_EVERY - 1 {
            yield_now().await;
        }
        let was_accepted = refusals.last().is_some_and(Option::is_none);
        let follows = was_accepted
            && to_send.last().is_some_and(|last| last.connection == ConnectionKind::Shared);
        refusals.push(match check_command(&shared, &access, command, follows, &mut names) {
            Ok(checked) => {
                to_send.push(checked);
                None
            }
            Err(refusal) => Some(refusal),
        });
    }
    let total = to_send.iter().map(|command| command.weight).sum();
    shared.limits.count_weight(&admitted, to_send.len(), total)?;
    shared.limits.count_names(&admitted, &names)?;
    let waits = to_send.iter().any(|command| command.connection == ConnectionKind::Dedicated);
    let _waiting = waits.then(|| shared.limits.reserve_wait(&admitted)).transpose()?;
    let mut replies = send(&shared, to_send, &dispatcher).await?.into_iter();
    let results = refusals
        .into_iter()
        .map(|refusal| match refusal {
            Some(refusal) => Some(CommandResult::Refused(refusal)),
            None => replies.next().map(|reply| match reply {
                Ok(reply) => {
                    count_error_reply(&shared, &reply);
                    CommandResult::Reply(reply, received.format)
                }
                Err(error) => {
                    let failure = Failure::from(error);
                    shared.metrics.count_failure(failure.kind());
                    CommandResult::NoReply(failure)
                }
            }),
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(Failure::BadReply)?;
    write_list(received.format, &results)
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
        return Err(Failure::Forbidden(ScopeViolation::Path));
    }
    let mut received = ReceivedRequest::read(&shared, &admitted, request).await?;
    let commands = parse_commands(&shared, &access, &received.take_text()?)?;
    let queue: Vec<Cmd> = commands.into_iter().flatten().collect();
    for command in &queue {
        // Inside a transaction `WAIT` does not wait, so the kind of connection does not matter.
        shared.policy.connection(command).map_err(|refusal| Failure::Refused(refusal.text()))?;
    }
    if queue.is_empty() {
        return Ok(json(StatusCode::OK, &[(); 0]));
    }
    shared.metrics.count_commands(queue.len());
    let sending = shared.backend.transaction(queue);
    let sending = shared.metrics.time_redis(Operation::Transaction, sending);
    let reply = timeout_at(received.deadline, sending).await.map_err(|_| Failure::TimedOut)??;
    count_error_reply(&shared, &reply);
    match reply {
        Value::Array(replies) => {
            // Upstash responds to a transaction in JSON, whatever format the client requests.
            let format = match received.format {
                Format::Resp2 => Format::Text,
                format => format,
            };
            let results: Vec<_> =
                replies.into_iter().map(|reply| CommandResult::Reply(reply, format)).collect();
            write_list(format, &results)
        }
        Value::ServerError(error) => Err(Failure::Refused(ErrorText(&error).to_string())),
        _ => Err(Failure::BadReply),
    }
}

/// Parses the commands of a pipeline. `None` is a command of a scoped token that has more than
/// [`MAX_SCOPED_WORDS`] words.
fn parse_commands(
    shared: &Context,
    access: &Access,
    text: &str,
) -> Result<Vec<Option<Cmd>>, Failure> {
    let parsed = parse_list(text, shared.pipeline_limit, max_words(access))?;
    let commands = parsed.ok_or(Failure::TooMany)?;
    let is_full = matches!(access, Access::Full);
    if is_full && commands.iter().any(Option::is_none) {
        Err(too_long(access))
    } else {
        Ok(commands)
    }
}

/// Returns the most words of a command.
fn max_words(access: &Access) -> usize {
    match access {
        Access::Full => MAX_WORDS,
        Access::Scoped(_) => MAX_SCOPED_WORDS,
    }
}

/// Returns the failure for a command with more than [`max_words`] words.
fn too_long(access: &Access) -> Failure {
    match access {
        Access::Full => MalformedCommand::TooLong.into(),
        Access::Scoped(_) => Failure::Forbidden(ScopeViolation::Call),
    }
}

/// Returns the words of a command from a JSON body, which are text.
fn texts(command: &Cmd) -> Result<Vec<&str>, ScopeViolation> {
    words(command).map(str::from_utf8).collect::<Result<_, _>>().map_err(|_| ScopeViolation::Call)
}

/// Checks a command of a pipeline. Returns the command to send, or the text of its refusal.
/// Adds the names that the command uses to `names`.
fn check_command(
    shared: &Context,
    access: &Access,
    command: Option<Cmd>,
    follows: bool,
    names: &mut Vec<String>,
) -> Result<PipelineCommand, String> {
    let refuse = |violation: ScopeViolation| {
        shared.metrics.count_violation(violation);
        violation.text().to_owned()
    };
    let command = command.ok_or_else(|| refuse(ScopeViolation::Call))?;
    let mut used_names = Vec::new();
    if let Access::Scoped(scope) = access {
        let checked = texts(&command).and_then(|words| match follows {
            true => scope.check_following(&words, now()),
            false => scope.check_command(&words, now()),
        });
        used_names = checked.map_err(refuse)?;
    }
    let connection = shared.policy.connection(&command).map_err(Refusal::text)?;
    let weight = weight(command.args_iter().len(), used_names.len());
    let portion_weight = weight + time_of(&command) - 1;
    names.append(&mut used_names);
    Ok(PipelineCommand { command, connection, weight, portion_weight })
}

/// Sends the commands, and returns the reply of each. If no command has a reply, the whole request
/// fails.
async fn send(
    shared: &Context,
    commands: Vec<PipelineCommand>,
    dispatcher: &Dispatcher,
) -> Result<Vec<RedisResult<Value>>, Failure> {
    if commands.is_empty() {
        return Ok(Vec::new());
    }
    shared.metrics.count_commands(commands.len());
    let replies = shared.backend.pipeline(commands, dispatcher).await;
    if replies.iter().any(Result::is_ok) {
        return Ok(replies);
    }
    let error = replies.into_iter().find_map(Result::err);
    Err(error.map_or(Failure::BadReply, Failure::from))
}
