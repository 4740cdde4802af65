//! Who may pass.

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::failure::Failure;
use crate::routes::Shared;
use crate::tokens::Tokens;

/// Stands before every route that reaches Redis, and before its body is read.
pub(crate) async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    // A preflight carries no token and runs nothing. It gets here only if no origin is allowed;
    // without the headers of CORS in the answer the browser stops by itself.
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    if !is_admitted(&shared.tokens, request.headers()) {
        return Failure::Unauthorized.into_response();
    }
    next.run(request).await
}

fn is_admitted(tokens: &Tokens, headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(AUTHORIZATION) else { return false };
    let Some((scheme, token)) = value.as_bytes().split_first_chunk::<7>() else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && tokens.admit(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_bearer_token_passes() {
        let tokens = Tokens::new(["secret"]).unwrap();
        let admits = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            is_admitted(&tokens, &headers)
        };
        assert!(admits("Bearer secret"));
        assert!(admits("bearer  secret"));
        for wrong in ["", "secret", "Bearer", "Bearer ", "Basic secret", "Bearer secret2"] {
            assert!(!admits(wrong), "{wrong}");
        }
        assert!(!is_admitted(&tokens, &HeaderMap::new()));
    }
}
