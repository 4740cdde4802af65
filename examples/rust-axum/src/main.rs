//! An axum server that pays each order once: `POST /orders/42/pay` with the card.

use std::env;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use edgelatch::client::{Guard, GuardedWrite, RunError, UserScript};
use edgelatch::error::AcquireError;
use edgelatch::host::TokioHost;
use edgelatch::timing::GuardMemory;
use edgelatch::transport::Reqwest;
use edgelatch::{AcquireOptions, Client, Error, Lease};
use tokio::net::TcpListener;

type Locks = Client<Reqwest, TokioHost>;
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The longest wait of a request for the lock.
const WAIT: Duration = Duration::from_secs(5);
/// The largest number of bytes of a request.
const BODY_MAX: usize = 1024;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let port = env::var("PORT").unwrap_or_else(|_| "3000".into()).parse()?;
    let app = Router::new().route("/orders/{id}/pay", post(pay)).with_state(Locks::from_env()?);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

async fn pay(State(locks): State<Locks>, Path(id): Path<u64>, body: Body) -> Response {
    // A task of its own: axum drops the future of a handler when the client disconnects, and a
    // dropped lease blocks the lock until it ends.
    let paid = match tokio::spawn(async move { pay_once(&locks, id, body).await }).await {
        Ok(paid) => paid,
        Err(error) => Err(error.into()),
    };
    paid.unwrap_or_else(|error| {
        eprintln!("order {id}: {error}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    })
}

/// Pays an order under its lock.
async fn pay_once(locks: &Locks, id: u64, body: Body) -> Result<Response, Failure> {
    let lock = locks.lock(&format!("order:{id}"))?;
    let payment = locks.guard(&format!("{{order:{id}}}:payment"), GuardMemory::FOR_EVER)?;
    let options = AcquireOptions::new().wait(WAIT);
    let rejected = |status: StatusCode, text: &'static str| Ok((status, text).into_response());
    match lock.run_with(options, async |lease| pay_under(lease, &payment, body).await).await {
        Ok(result) | Err(RunError::Lost { result: result @ Ok(_), .. }) => result,
        // The payment is not recorded: the guard rejects the writes of a former holder.
        Err(RunError::Lost { .. }) => {
            rejected(StatusCode::CONFLICT, "another request handles this order")
        }
        Err(RunError::Acquire(Error { kind: AcquireError::Busy { .. }, .. })) => {
            rejected(StatusCode::SERVICE_UNAVAILABLE, "another request is being handled")
        }
        Err(error) => Err(error.to_string().into()),
    }
}

async fn pay_under(
    lease: &Lease<Reqwest, TokioHost>,
    payment: &Guard<Reqwest, TokioHost>,
    body: Body,
) -> Result<Response, Failure> {
    // From now on no former holder can record a payment, so the next line reads the last one.
    payment.write(lease, None, &GuardedWrite::claim()).await?;
    let keys = vec![payment.key().as_str().into()];
    let is_paid = UserScript::new("return redis.call('EXISTS', KEYS[1])", keys, vec![])?;
    if lease.eval(&is_paid.repeatable()).await? == "1" {
        return Ok((StatusCode::CONFLICT, "this order was paid before").into_response());
    }
    // Charge the card here, with the order's number as idempotency key. That may take longer than
    // the lease lasts; in this example the client takes its time to send the card.
    let card = String::from_utf8(to_bytes(body, BODY_MAX).await?.into())?;
    payment.write(lease, None, &GuardedWrite::set(card, None)).await?;
    Ok(format!("paid under token {}", lease.token().as_u64()).into_response())
}
