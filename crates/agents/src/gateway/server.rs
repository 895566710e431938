//! HTTP on one side, `Answer` on the other.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::count::Counter;
use super::scope::{Halt, Open, Registry, TrialScope};
use super::{
    Aside, BYTES_PER_TOKEN, Call, Delivery, Denied, Outcome, Passed, Refusal, Setup, kind_of_status,
};
use crate::llm::{Api, Counted, Reply, SseEvent};
use practicum_core::model::Usage;

/// Conversations with images come near it, nothing else does.
const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// Lets what was sent reach the client before the connection drops.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// Real models are silent for minutes, but not for this long.
const LONGEST_SILENCE: Duration = Duration::from_secs(900);

pub async fn serve(
    listener: TcpListener,
    registry: Arc<Registry>,
    setup: Setup,
    mut stopped: watch::Receiver<bool>,
) {
    let shared = Shared { registry, setup: Arc::new(setup) };
    let app = Router::new().fallback(handle).with_state(shared);
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
    setup: Arc<Setup>,
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
        Route::Models => return aside(&shared, &scope, &parts, "models", None, &models()).await,
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
        Route::CountTokens => {
            let estimate = json!({"input_tokens": raw.len() / BYTES_PER_TOKEN});
            aside(&shared, &scope, &parts, "messages/count_tokens", Some(&raw), &estimate).await
        }
        Route::Alive | Route::Models | Route::Model(_) => ask(&shared, &scope, api, &parts, &raw).await,
    }
}

/// What needs no model: from upstream where there is one, else what we make of it.
async fn aside(
    shared: &Shared,
    scope: &Arc<TrialScope>,
    parts: &Parts,
    path: &str,
    body: Option<&[u8]>,
    ours: &Value,
) -> Response {
    // Both vendors have a list of models at the same place.
    let anthropic = body.is_some() || parts.headers.contains_key("anthropic-version");
    let api = if anthropic { Api::AnthropicMessages } else { Api::OpenAiResponses };
    let asked = Aside { api, path, query: parts.uri.query(), headers: &parts.headers, body };
    let found = tokio::select! {
        found = shared.setup.answer.aside(asked) => found,
        () = scope.until_closed() => None,
    };
    match found {
        None => json_response(200, ours),
        Some(Err(refusal)) => refused(api, &refusal),
        Some(Ok(passed)) => passed_response(passed, Metering::nothing(shared, Open::new(scope), api)),
    }
}

async fn read_body(headers: &HeaderMap, body: Body) -> Result<Bytes, (u16, &'static str)> {
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if encoding.is_some_and(|encoding| encoding != b"identity") {
        return Err((415, "the gateway reads no compressed requests"));
    }
    to_bytes(body, LARGEST_BODY).await.map_err(|_| (413, "the request is too large or broke off"))
}

async fn ask(shared: &Shared, scope: &Arc<TrialScope>, api: Api, parts: &Parts, raw: &[u8]) -> Response {
    let open = Open::new(scope);
    let number = scope.count_request();
    scope.keep(raw);
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
    let metering = Metering {
        shared: shared.clone(),
        open,
        counter: Counter::new(api, request.stream),
        number,
        model: request.model.clone(),
        asked: raw.len(),
        status: 0,
        api,
        counts: true,
        real: false,
    };
    if let Err(denied) = shared.setup.ledger.may_ask(&request.model) {
        return metering.deny(denied);
    }
    let (query, headers) = (parts.uri.query(), &parts.headers);
    let call = Call { scope, api, request: &request, raw, query, headers, number };
    let decided = async {
        let Outcome { wait, delivery } = shared.setup.answer.answer(call).await;
        tokio::time::sleep(wait).await;
        delivery
    };
    // If the client leaves, the server drops this future; if the scope closes, we do.
    let delivery = tokio::select! {
        delivery = decided => delivery,
        () = scope.until_closed() => Delivery::Dropped,
    };
    deliver(delivery, api, request.stream, metering)
}

/// One request's account. It is settled when the last byte has gone, or the client has.
struct Metering {
    shared: Shared,
    open: Open,
    counter: Counter,
    number: u64,
    model: String,
    /// Bytes of the request.
    asked: usize,
    status: u16,
    api: Api,
    counts: bool,
    /// Another server answers, so that nothing told does not mean nothing used.
    real: bool,
}

impl Metering {
    /// For what costs nothing.
    fn nothing(shared: &Shared, open: Open, api: Api) -> Self {
        let (shared, counter) = (shared.clone(), Counter::new(api, false));
        Self {
            shared,
            open,
            counter,
            number: 0,
            model: String::new(),
            asked: 0,
            status: 0,
            api,
            counts: false,
            real: false,
        }
    }

    fn deny(mut self, denied: Denied) -> Response {
        self.status = 402;
        let scope = self.open.scope();
        let (Denied::UsedUp(why) | Denied::NoPrice(why)) = &denied;
        let refusal = Refusal::with_status(402, why).for_good();
        scope.halt(match denied {
            Denied::UsedUp(why) => Halt::OverBudget(why),
            Denied::NoPrice(why) => Halt::Unanswered(why),
        });
        refused(self.api, &refusal)
    }

    fn spend(&self, model: &str, usage: Usage) {
        let ledger = &self.shared.setup.ledger;
        let cost = ledger.prices().cost(model, usage);
        self.open.scope().add_usage(usage, cost);
        ledger.spend(usage, cost);
    }

    /// A reply that says nothing of its tokens has an unknown cost; a budget still has to hold, so
    /// for it they are estimated.
    fn spend_unknown(&self) {
        let tokens = |bytes: u64| bytes.div_ceil(BYTES_PER_TOKEN as u64);
        let output = tokens(self.counter.bytes);
        let usage = Usage { input: tokens(self.asked as u64), output, ..Usage::default() };
        let ledger = &self.shared.setup.ledger;
        ledger.spend(usage, ledger.prices().cost(&self.model, usage));
        self.open.scope().add_usage(Usage::default(), None);
        self.open
            .scope()
            .note(format!("the reply to request {} does not say how many tokens it took", self.number));
    }
}

impl Drop for Metering {
    fn drop(&mut self) {
        if !self.counts {
            return;
        }
        let Counted { model, usage } = self.counter.finish();
        let model = model.unwrap_or_else(|| self.model.clone());
        match usage {
            Some(usage) => self.spend(&model, usage),
            None if self.real && (200..300).contains(&self.status) => self.spend_unknown(),
            None => {}
        }
        let Some(log) = &self.shared.setup.log else { return };
        let tokens = usage.map_or_else(
            || "tokens unknown".to_owned(),
            |usage| {
                format!("{} + {} tokens", usage.input + usage.cache_read + usage.cache_write, usage.output)
            },
        );
        let cost = usage
            .and_then(|usage| self.shared.setup.ledger.prices().cost(&model, usage))
            .map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.6}"));
        let (name, status) = (self.api.name(), self.status);
        log(&format!("{} {name} {model} {status} {tokens} {cost}", self.number));
    }
}

fn deliver(delivery: Delivery, api: Api, streaming: bool, mut metering: Metering) -> Response {
    let wire = api.wire();
    metering.status = match &delivery {
        Delivery::Refused(refusal) => refusal.status,
        Delivery::BrokenOff { .. } if !streaming => 500,
        Delivery::Passed(passed) => passed.status,
        Delivery::Dropped => 0,
        Delivery::Whole(_) | Delivery::Truncated(_) | Delivery::Stalled(_) | Delivery::BrokenOff { .. } => {
            200
        }
    };
    match delivery {
        Delivery::Whole(reply) => body_response(streaming, whole(api, streaming, &reply), metering),
        Delivery::Passed(passed) => passed_response(passed, metering),
        Delivery::Truncated(reply) => {
            let mut pieces = whole(api, streaming, &reply);
            pieces.truncate(pieces.len().div_ceil(2));
            if let ([Piece::Bytes(only)], false) = (pieces.as_mut_slice(), streaming) {
                let half = (0..=only.len() / 2).rev().find(|at| only.is_char_boundary(*at));
                only.truncate(half.unwrap_or(0));
            }
            pieces.extend([Piece::Wait(BEFORE_CUT), Piece::Cut]);
            body_response(streaming, pieces, metering)
        }
        Delivery::Stalled(wait) => body_response(streaming, vec![Piece::Wait(wait), Piece::Cut], metering),
        Delivery::BrokenOff { reply, kind, message } if streaming => {
            let opening = wire.reply_to_events(&reply).into_iter().take(1);
            let events = opening.chain([wire.error_to_event(&reply, &kind, &message)]);
            let pieces = events.map(|event| Piece::Bytes(event.render())).collect();
            body_response(streaming, pieces, metering)
        }
        Delivery::BrokenOff { kind, message, .. } => json_response(500, &wire.error_to_json(&kind, &message)),
        Delivery::Refused(refusal) => refused(api, &refusal),
        // A body that fails at once keeps the server from sending even the headers.
        Delivery::Dropped => body_response(streaming, vec![Piece::Cut], metering),
    }
}

/// Chunk by chunk, as it comes, and each looked at on its way.
fn passed_response(passed: Passed, mut metering: Metering) -> Response {
    let status = StatusCode::from_u16(passed.status).unwrap_or(StatusCode::BAD_GATEWAY);
    metering.counter = Counter::new(metering.api, passed.is_stream());
    metering.real = true;
    let state = Some((passed.body, metering));
    let body = Body::from_stream(stream::unfold(state, |state| async move {
        let (mut body, mut metering) = state?;
        let next = tokio::select! {
            next = tokio::time::timeout(LONGEST_SILENCE, body.next()) => next,
            () = metering.open.scope().until_closed() => Ok(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
        };
        match next {
            Ok(None) => None,
            Ok(Some(Ok(chunk))) => {
                metering.counter.feed(&chunk);
                Some((Ok(chunk), Some((body, metering))))
            }
            Ok(Some(Err(error))) => Some((Err(error), None)),
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
        }
    }));
    (status, passed.headers, body).into_response()
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

fn body_response(streaming: bool, pieces: Vec<Piece>, metering: Metering) -> Response {
    // The account travels with the body: it is open until the last byte or the disconnect.
    let state = (VecDeque::from(pieces), metering);
    let body = Body::from_stream(stream::unfold(state, |(mut pieces, mut metering)| async move {
        loop {
            match pieces.pop_front()? {
                Piece::Bytes(text) => {
                    metering.counter.feed(text.as_bytes());
                    return Some((Ok(Bytes::from(text)), (pieces, metering)));
                }
                Piece::Wait(wait) => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = metering.open.scope().until_closed() => pieces = VecDeque::from([Piece::Cut]),
                },
                Piece::Cut => {
                    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "dropped on purpose");
                    return Some((Err(cut), (VecDeque::new(), metering)));
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
