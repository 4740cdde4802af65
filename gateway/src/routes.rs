//! The paths of the gateway.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::address::{Peer, network};
use crate::auth::{authenticate, count_preflights};
use crate::backend::Backend;
use crate::config::{Config, Origin};
use crate::cors;
use crate::execute::{command, multi_exec, path_command, pipeline};
use crate::failure::{Failure, json};
use crate::framing;
use crate::limits::Limits;
use crate::observe::{AccessLog, Metrics, observe};
use crate::policy::Policy;
use crate::scoped::ScopeKeys;
use crate::subscribe::{psubscribe, ssubscribe, subscribe};
use crate::tokens::Tokens;

/// The state that all requests share.
pub(crate) type Shared = Arc<Context>;

pub(crate) struct Context {
    pub(crate) keep_alive: Duration,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) backend: Arc<Backend>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) pipeline_limit: usize,
    pub(crate) policy: Policy,
    pub(crate) request_time: Duration,
    pub(crate) scope_keys: Option<ScopeKeys>,
    pub(crate) scope_time: Duration,
    /// Cancelled when the gateway shuts down, since streams do not end by themselves.
    pub(crate) stop: CancellationToken,
    pub(crate) tokens: Tokens,
    pub(crate) trusted_proxies: usize,
}

impl Context {
    pub(crate) fn new(config: &Config, backend: Arc<Backend>, stop: CancellationToken) -> Self {
        Self {
            keep_alive: config.keep_alive,
            limits: Limits::new(config),
            metrics: Arc::new(Metrics::new(config)),
            access_log: config.access_log.clone(),
            backend,
            origins: config.origins.clone(),
            pipeline_limit: config.pipeline_limit,
            policy: Policy::new(config.request_time, &config.allowed),
            request_time: config.request_time,
            scope_keys: config.scope_keys.clone(),
            scope_time: config.scope_time,
            stop,
            tokens: config.tokens.clone(),
            trusted_proxies: config.trusted_proxies,
        }
    }
}

pub(crate) fn router(config: &Config, shared: &Shared) -> Router {
    let authenticated = Router::new()
        .route("/", post(command))
        .route("/pipeline", post(pipeline))
        .route("/multi-exec", post(multi_exec))
        // A channel may contain slashes, and the official SDK does not encode them.
        .route("/subscribe/{*channel}", get(subscribe).post(subscribe))
        .route("/psubscribe/{*pattern}", get(psubscribe).post(psubscribe))
        .route("/ssubscribe/{*channel}", get(ssubscribe).post(ssubscribe))
        .fallback(path_command)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(shared), authenticate));
    let router = Router::new()
        .route("/healthz", get(health).fallback(wrong_method))
        .merge(authenticated)
        .with_state(Arc::clone(shared));
    let router = match cors::layer(&config.origins) {
        Some(layer) => router.layer(layer),
        None => router,
    };
    router
        .layer(from_fn_with_state(Arc::clone(shared), count_preflights))
        .layer(from_fn(framing::refuse_ambiguous))
        .layer(from_fn_with_state(Arc::clone(shared), observe))
}

/// Reports to a supervisor whether Redis replies. Needs no token and reports nothing else.
async fn health(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    shared.limits.count_health_check(network(peer.client(&headers, shared.trusted_proxies)))?;
    let ok = shared.backend.is_alive().await;
    let status = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(json(status, &Health { ok }))
}

async fn wrong_method() -> Failure {
    Failure::WrongMethod
}

#[derive(Serialize)]
struct Health {
    ok: bool,
}
