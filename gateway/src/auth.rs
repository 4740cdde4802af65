//! Authenticates requests, and counts them against their limits.

use std::net::IpAddr;
use std::sync::{Arc, Once};

use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::warn;

use crate::address::{FORWARDED_FOR, Peer, network};
use crate::clock::now;
use crate::cors;
use crate::failure::Failure;
use crate::limits::{Admitted, Source};
use crate::observe::TokenKind;
use crate::path;
use crate::response_body::ResponseBody;
use crate::routes::{Context, Shared};
use crate::scoped::{Rejection, Scope};

/// The access that a request's token gives.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Every command that the gateway allows.
    Full,
    /// The calls that the scoped token allows.
    Scoped(Arc<Scope>),
}

/// Middleware in front of every route that reaches Redis. Runs before the body is read. Inserts
/// into the request its [`Access`] and the [`Admitted`] that counts it.
pub(crate) async fn authenticate(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    // A preflight has no token and runs nothing. It arrives here only if no origin is allowed.
    // Without CORS headers in the response the browser does not send the request itself.
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let (access, admitted) = match admit(&shared, peer, &request) {
        Ok(admitted) => admitted,
        Err(failure) => return failure.into_response(),
    };
    let token = TokenKind(match access {
        Access::Full => "full",
        Access::Scoped(_) => "scoped",
    });
    request.extensions_mut().insert(access);
    request.extensions_mut().insert(Arc::clone(&admitted));
    let mut response = next.run(request).await;
    if shared.access_log.is_some() {
        response.extensions_mut().insert(token);
    }
    // A stream has no known length, and limits of its own.
    match response.body().size_hint().exact() {
        Some(_) => response.map(|body| Body::new(ResponseBody::new(body, admitted))),
        None => response,
    }
}

/// Middleware in front of all routes, and of the layer that responds to preflights. Counts
/// preflights as requests without a token.
pub(crate) async fn count_preflights(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if request.method() == Method::OPTIONS {
        shared.limits.count_unauthenticated(address(&shared, peer, request.headers()))?;
    }
    Ok(next.run(request).await)
}

/// Checks the token of a request, and counts the request: for its client, or without a valid token
/// for its address.
fn admit(
    shared: &Context,
    peer: Peer,
    request: &Request,
) -> Result<(Access, Arc<Admitted>), Failure> {
    let headers = request.headers();
    let access = match access(shared, headers, request.uri()) {
        Ok(access) => access,
        Err(failure) => {
            shared.limits.count_unauthenticated(address(shared, peer, headers))?;
            return Err(failure);
        }
    };
    let admitted = shared.limits.admit(source(shared, &access, peer, headers))?;
    Ok((access, Arc::new(admitted)))
}

/// Returns the address, or the network, whose limits apply.
fn address(shared: &Context, peer: Peer, headers: &HeaderMap) -> IpAddr {
    network(peer.client(headers, shared.trusted_proxies))
}

/// Returns the client and address whose limits apply; `None` for a full token.
fn source(shared: &Context, access: &Access, peer: Peer, headers: &HeaderMap) -> Option<Source> {
    let Access::Scoped(scope) = access else { return None };
    if shared.trusted_proxies == 0 && headers.contains_key(FORWARDED_FOR) {
        warn_about_proxy();
    }
    let address = address(shared, peer, headers);
    Some(Source { client: scope.client().clone(), address })
}

/// Logs a warning once that the gateway may be behind a reverse proxy that it is not configured
/// for. All clients then share the limits of one address.
fn warn_about_proxy() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        warn!(
            "requests come with X-Forwarded-For: if a reverse proxy adds it, set --trusted-proxies"
        );
    });
}

fn access(shared: &Context, headers: &HeaderMap, uri: &Uri) -> Result<Access, Failure> {
    if !headers.contains_key(AUTHORIZATION)
        && let Some(token) = path::token(uri)
    {
        cors::refuse_cross_origin(headers, &shared.origins)?;
        // Only full tokens are accepted here: scoped tokens are for pages, which can send a header,
        // and addresses are stored in histories and logs.
        let is_known = shared.tokens.contains(&token);
        return is_known.then_some(Access::Full).ok_or(Failure::Unauthorized(Rejection::Unknown));
    }
    access_from_header(shared, headers).map_err(Failure::Unauthorized)
}

fn access_from_header(shared: &Context, headers: &HeaderMap) -> Result<Access, Rejection> {
    let token = bearer(headers).ok_or(Rejection::Unknown)?;
    if shared.tokens.contains(token) {
        return Ok(Access::Full);
    }
    let keys = shared.scope_keys.as_ref().ok_or(Rejection::Unknown)?;
    let scope = keys.verify(token, now(), shared.scope_time)?;
    Ok(Access::Scoped(Arc::new(scope)))
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?;
    let (scheme, token) = value.as_bytes().split_first_chunk::<7>()?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_bearer_token_is_looked_at() {
        let token = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            bearer(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(token("Bearer secret").unwrap(), b"secret");
        assert_eq!(token("bearer  secret").unwrap(), b"secret");
        assert_eq!(token("Bearer ").unwrap(), b"");
        for wrong in ["", "secret", "Bearer", "Basic secret"] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
