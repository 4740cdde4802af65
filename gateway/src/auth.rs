//! Who may pass.

use std::sync::{Arc, Once};

use axum::Extension;
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
use crate::limits::Source;
use crate::path;
use crate::routes::{Context, Shared};
use crate::scoped::{Rejection, Scope};

/// What a request may do.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Whatever the gateway lets anybody do.
    Full,
    /// What its scoped token allows.
    Scoped(Arc<Scope>),
}

/// Stands before every route that reaches Redis, and before its body is read. Those behind it find
/// an [`Access`] in the request, and an [`Admitted`](crate::limits::Admitted) that counts it.
pub(crate) async fn guard(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    // A preflight carries no token and runs nothing. It gets here only if no origin is allowed;
    // without the headers of CORS in the answer the browser stops by itself.
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let admitted = access(&shared, request.headers(), request.uri()).and_then(|access| {
        let source = source(&shared, &access, peer, request.headers());
        Ok((shared.limits.request(source)?, access))
    });
    match admitted {
        Ok((admitted, access)) => {
            request.extensions_mut().insert(access);
            request.extensions_mut().insert(Arc::new(admitted));
            next.run(request).await
        }
        Err(failure) => failure.into_response(),
    }
}

/// Whose limits apply: nobody's to a full token.
fn source(shared: &Context, access: &Access, peer: Peer, headers: &HeaderMap) -> Option<Source> {
    let Access::Scoped(scope) = access else { return None };
    if shared.trusted_proxies == 0 && headers.contains_key(FORWARDED_FOR) {
        warn_of_a_proxy();
    }
    let address = network(peer.client(headers, shared.trusted_proxies));
    Some(Source { client: scope.client().clone(), address })
}

/// Behind a reverse proxy that the gateway does not know of, all clients share the limits of one address.
fn warn_of_a_proxy() {
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
        cors::refuse_foreign(headers, &shared.origins)?;
        // Scoped tokens are for pages, which can send a header; an address is kept in too many places.
        let is_known = shared.tokens.admit(&token);
        return is_known.then_some(Access::Full).ok_or(Failure::Unauthorized(Rejection::Unknown));
    }
    in_header(shared, headers).map_err(Failure::Unauthorized)
}

fn in_header(shared: &Context, headers: &HeaderMap) -> Result<Access, Rejection> {
    let token = bearer(headers).ok_or(Rejection::Unknown)?;
    if shared.tokens.admit(token) {
        return Ok(Access::Full);
    }
    let keys = shared.scope_keys.as_ref().ok_or(Rejection::Unknown)?;
    let scope = keys.admit(token, now(), shared.scope_time)?;
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
