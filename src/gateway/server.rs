//! HTTP on one side, `Answer` on the other.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::scope::{Open, Registry, TrialScope};
use super::{Answer, BYTES_PER_TOKEN, Call, Delivery, Outcome, Refusal, kind_of_status};
use crate::llm::{Api, Reply, SseEvent};

/// Conversations with images come near it, nothing else does.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// Lets what was sent reach the client before the connection drops.
const BEFORE_CUT: Duration = Duration::from_millis(20);

pub async fn serve(
    listener: TcpListener,
    registry: Arc<Registry>,
    answer: Arc<dyn Answer>,
    mut stopped: watch::Receiver<bool>,
) {
    let app = Router::new().fallback(handle).with_state(Shared { registry, answer });
    // Events are small, and each is waited for.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let until_stopped = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    // Serving ends only when asked to; errors of single connections are theirs.
    let _ = axum::serve(listener, app).with_graceful_shutdown(until_stopped).await;
}

#[derive(Clone)]
struct Shared {
    registry: Arc<Registry>,
    answer: Arc<dyn Answer>,
}

/// What is asked for, once the scope's prefix is taken off.
enum Route {
    Alive,
    Models,
    CountTokens,
    Model(Api),
}

fn route(method: &Method, path: &str) -> Option<Route> {
    let path = path.trim_matches('/');
    let path = path.strip_prefix("v1/").unwrap_or(path);
    let get = method == Method::GET || method == Method::HEAD;
    let post = method == Method::POST;
    match path {
        "" if get => Some(Route::Alive),
        "models" if get => Some(Route::Models),
        "messages/count_tokens" if post => Some(Route::CountTokens),
        "messages" if post => Some(Route::Model(Api::AnthropicMessages)),
        "responses" if post => Some(Route::Model(Api::OpenAiResponses)),
        "chat/completions" if post => Some(Route::Model(Api::OpenAiChat)),
        _ => None,
    }
}

async fn handle(State(shared): State<Shared>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let found = parts.uri.path().strip_prefix("/t/").and_then(|rest| {
        let (token, path) = rest.split_once('/').unwrap_or((rest, ""));
        Some((shared.registry.find(token)?, path))
    });
    let Some((scope, path)) = found else {
        return failure(Api::AnthropicMessages, 404, "no trial has this address");
    };
    let Some(route) = route(&parts.method, path) else {
        scope.note(format!("asked for {} /{path}, which the gateway does not have", parts.method));
        return failure(Api::AnthropicMessages, 404, "the gateway has no such endpoint");
    };
    let api = match route {
        Route::Alive => return json_response(200, &json!({"ok": true})),
        Route::Models => return json_response(200, &models()),
        Route::CountTokens => Api::AnthropicMessages,
        Route::Model(api) => api,
    };
    let raw = match read_body(&parts.headers, body).await {
        Ok(raw) => raw,
        Err((status, message)) => {
            scope.note(message);
            return failure(api, status, message);
        }
    };
    match route {
        Route::CountTokens => json_response(200, &json!({"input_tokens": raw.len() / BYTES_PER_TOKEN})),
        Route::Alive | Route::Models | Route::Model(_) => ask(&shared, &scope, api, &raw).await,
    }
}

async fn read_body(headers: &HeaderMap, body: Body) -> Result<Bytes, (u16, &'static str)> {
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if encoding.is_some_and(|encoding| encoding != b"identity") {
        return Err((415, "the gateway reads no compressed requests"));
    }
    to_bytes(body, LARGEST_BODY).await.map_err(|_| (413, "the request is too large or broke off"))
}

async fn ask(shared: &Shared, scope: &Arc<TrialScope>, api: Api, raw: &[u8]) -> Response {
    let open = Open::new(scope);
    let number = scope.count_request();
    let parsed = serde_json::from_slice::<Value>(raw)
        .map_err(|error| error.to_string())
        .and_then(|json| api.wire().request_from_json(&json).map_err(|problem| problem.0));
    let request = match parsed {
        Ok(request) => request,
        Err(problem) => {
            scope.note(format!("sent a request that cannot be read: {problem}"));
            return failure(api, 400, &problem);
        }
    };
    let call = Call { scope, api, request: &request, raw, number };
    let decided = async {
        let Outcome { wait, delivery } = shared.answer.answer(call).await;
        tokio::time::sleep(wait).await;
        delivery
    };
    // If the client leaves, the server drops this future; if the scope closes, we do.
    let delivery = tokio::select! {
        delivery = decided => delivery,
        () = scope.until_closed() => Delivery::Dropped,
    };
    deliver(delivery, api, request.stream, open)
}

fn deliver(delivery: Delivery, api: Api, streaming: bool, open: Open) -> Response {
    let wire = api.wire();
    match delivery {
        Delivery::Whole(reply) => {
            open.scope().add_usage(reply.usage);
            body_response(streaming, whole(api, streaming, &reply), open)
        }
        Delivery::Truncated(reply) => {
            let mut pieces = whole(api, streaming, &reply);
            pieces.truncate(pieces.len().div_ceil(2));
            if let ([Piece::Bytes(only)], false) = (pieces.as_mut_slice(), streaming) {
                let half = (0..=only.len() / 2).rev().find(|at| only.is_char_boundary(*at));
                only.truncate(half.unwrap_or(0));
            }
            pieces.extend([Piece::Wait(BEFORE_CUT), Piece::Cut]);
            body_response(streaming, pieces, open)
        }
        Delivery::Stalled(wait) => body_response(streaming, vec![Piece::Wait(wait), Piece::Cut], open),
        Delivery::BrokenOff { reply, kind, message } if streaming => {
            let opening = wire.reply_to_events(&reply).into_iter().take(1);
            let events = opening.chain([wire.error_to_event(&reply, &kind, &message)]);
            let pieces = events.map(|event| Piece::Bytes(event.render())).collect();
            body_response(streaming, pieces, open)
        }
        Delivery::BrokenOff { kind, message, .. } => json_response(500, &wire.error_to_json(&kind, &message)),
        Delivery::Refused(refusal) => refused(api, &refusal),
        // A body that fails at once keeps the server from sending even the headers.
        Delivery::Dropped => body_response(streaming, vec![Piece::Cut], open),
    }
}

fn whole(api: Api, streaming: bool, reply: &Reply) -> Vec<Piece> {
    if streaming {
        api.wire().reply_to_events(reply).iter().map(SseEvent::render).map(Piece::Bytes).collect()
    } else {
        vec![Piece::Bytes(api.wire().reply_to_json(reply).to_string())]
    }
}

/// What a body is made of, in time.
enum Piece {
    Bytes(String),
    Wait(Duration),
    Cut,
}

fn body_response(streaming: bool, pieces: Vec<Piece>, open: Open) -> Response {
    // `open` travels with the body: the request is open until the last byte or the disconnect.
    let state = (VecDeque::from(pieces), open);
    let body = Body::from_stream(stream::unfold(state, |(mut pieces, open)| async move {
        loop {
            match pieces.pop_front()? {
                Piece::Bytes(text) => return Some((Ok(Bytes::from(text)), (pieces, open))),
                Piece::Wait(wait) => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = open.scope().until_closed() => pieces = VecDeque::from([Piece::Cut]),
                },
                Piece::Cut => {
                    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "dropped on purpose");
                    return Some((Err(cut), (VecDeque::new(), open)));
                }
            }
        }
    }));
    let kind = if streaming { "text/event-stream; charset=utf-8" } else { "application/json" };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], body).into_response()
}

fn refused(api: Api, refusal: &Refusal) -> Response {
    let mut response =
        json_response(refusal.status, &api.wire().error_to_json(&refusal.kind, &refusal.message));
    for (name, value) in &refusal.headers {
        // Names were checked when the script was read; a variable can still spoil a value.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn failure(api: Api, status: u16, message: &str) -> Response {
    json_response(status, &api.wire().error_to_json(kind_of_status(status), message))
}

fn json_response(status: u16, json: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}

/// One model, in the words of both vendors.
fn models() -> Value {
    let id = "practicum";
    json!({
        "object": "list",
        "data": [{
            "id": id,
            "type": "model",
            "object": "model",
            "display_name": id,
            "owned_by": id,
            "created": 0,
            "created_at": "1970-01-01T00:00:00Z",
        }],
        "has_more": false,
        "first_id": id,
        "last_id": id,
    })
}
