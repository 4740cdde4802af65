//! A Worker in Rust that pays each order once: `POST /orders/42/pay` with the card.

use std::time::Duration;

use edgelatch::client::{Guard, GuardedWrite, RunError, UserScript};
use edgelatch::error::AcquireError;
use edgelatch::host::JsHost;
use edgelatch::timing::GuardMemory;
use edgelatch::transport::HostFetch;
use edgelatch::{AcquireOptions, Client, Error, Gateway, Lease};
use worker::{Context, Env, Request, Response, RouteContext, Router, console_error, event};

type Locks = Client<HostFetch, JsHost>;
type Failure = Box<dyn std::error::Error>;

/// The longest wait of a request for the lock.
const WAIT: Duration = Duration::from_secs(5);

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> worker::Result<Response> {
    Router::new().post_async("/orders/:id/pay", pay).run(request, env).await
}

async fn pay(request: Request, context: RouteContext<()>) -> worker::Result<Response> {
    let Some(id) = context.param("id").and_then(|id| id.parse::<u64>().ok()) else {
        return Response::error("not found", 404);
    };
    pay_once(&context.env, id, request).await.or_else(|error| {
        console_error!("order {id}: {error}");
        Response::error("internal error", 500)
    })
}

/// Pays an order under its lock.
async fn pay_once(env: &Env, id: u64, request: Request) -> Result<Response, Failure> {
    // A client of each request: in a Worker, I/O belongs to the request that began it.
    let secret = |name: &str| env.secret(name).ok().map(|secret| secret.to_string());
    let locks = Locks::connect(Gateway::from_variables(secret)?);
    let lock = locks.lock(&format!("order:{id}"))?;
    let payment = locks.guard(&format!("{{order:{id}}}:payment"), GuardMemory::FOR_EVER)?;
    let options = AcquireOptions::new().wait(WAIT);
    match lock.run_with(options, async |lease| pay_under(lease, &payment, request).await).await {
        Ok(result) | Err(RunError::Lost { result: result @ Ok(_), .. }) => result,
        // The payment is not recorded: the guard rejects the writes of a former holder.
        Err(RunError::Lost { .. }) => {
            Ok(Response::error("another request handles this order", 409)?)
        }
        Err(RunError::Acquire(Error { kind: AcquireError::Busy { .. }, .. })) => {
            Ok(Response::error("another request is being handled", 503)?)
        }
        Err(error) => Err(error.to_string().into()),
    }
}

async fn pay_under(
    lease: &Lease<HostFetch, JsHost>,
    payment: &Guard<HostFetch, JsHost>,
    mut request: Request,
) -> Result<Response, Failure> {
    // From now on no former holder can record a payment, so the next line reads the last one.
    payment.write(lease, None, &GuardedWrite::claim()).await?;
    let keys = vec![payment.key().as_str().into()];
    let is_paid = UserScript::new("return redis.call('EXISTS', KEYS[1])", keys, vec![])?;
    if lease.eval(&is_paid.repeatable()).await? == "1" {
        return Ok(Response::error("this order was paid before", 409)?);
    }
    // Charge the card here, with the order's number as idempotency key. That may take longer than
    // the lease lasts; in this example the client takes its time to send the card.
    let card = request.text().await?;
    payment.write(lease, None, &GuardedWrite::set(card, None)).await?;
    Ok(Response::ok(format!("paid under token {}", lease.token().as_u64()))?)
}
