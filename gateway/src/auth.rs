//! Who may pass.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::clock::now;
use crate::failure::Failure;
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
/// an [`Access`] in the request.
pub(crate) async fn guard(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    // A preflight carries no token and runs nothing. It gets here only if no origin is allowed;
    // without the headers of CORS in the answer the browser stops by itself.
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    match access(&shared, request.headers()) {
        Ok(access) => {
            request.extensions_mut().insert(access);
            next.run(request).await
        }
        Err(rejection) => Failure::Unauthorized(rejection).into_response(),
    }
}

fn access(shared: &Context, headers: &HeaderMap) -> Result<Access, Rejection> {
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
