//! Access control of the viewer: whom it answers, and what a browser may do with the answer.

use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;

/// The page's policy: only the viewer's own files, no text that becomes code, no framing by other pages.
const PAGE_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    frame-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Makes the router of a page and its routes, below a path that contains the secret token.
pub fn guarded_router(page: MethodRouter, routes: Router, token: &str, port: u16) -> Router {
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
    let check = move |request: Request, next: Next| {
        let ours = has_allowed_host(request.headers(), &hosts);
        async move {
            let mut response = match ours {
                true => next.run(request).await,
                false => (StatusCode::FORBIDDEN, "this is not the address of the viewer").into_response(),
            };
            add_security_headers(&mut response);
            response
        }
    };
    Router::new()
        .route(&format!("/{token}/"), page)
        .nest(&format!("/{token}"), routes)
        .fallback(not_found)
        .layer(from_fn(check))
}

async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "open the address that practicum view printed")
}

/// Says whether the request names this machine as its host. Anyone can make a host name point to this machine, and
/// a page of another site must not read the viewer through it.
fn has_allowed_host(headers: &HeaderMap, hosts: &[String]) -> bool {
    let named = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_owned());
    let host = named(HOST).is_some_and(|host| hosts.contains(&host));
    let origin = named(ORIGIN).is_none_or(|origin| {
        origin.strip_prefix("http://").is_some_and(|host| hosts.iter().any(|own| own == host))
    });
    host && origin
}

fn add_security_headers(response: &mut Response) {
    let headers = response.headers_mut();
    // A framed file has a stricter policy of its own.
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_SECURITY_POLICY));
    }
    let fixed = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        let hosts = ["127.0.0.1:8080".to_owned(), "localhost:8080".to_owned()];
        for (host, origin, expected) in [
            (Some("127.0.0.1:8080"), None, true),
            (Some("localhost:8080"), Some("http://localhost:8080"), true),
            (Some("127.0.0.1:8081"), None, false),
            (Some("evil.example:8080"), None, false),
            (Some("127.0.0.1:8080"), Some("http://evil.example"), false),
            (Some("127.0.0.1:8080"), Some("null"), false),
            (None, None, false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(HOST, host), (ORIGIN, origin)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(has_allowed_host(&headers, &hosts), expected, "{host:?} {origin:?}");
        }
    }
}
