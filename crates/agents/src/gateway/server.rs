//! The HTTP server of the gateway, which gets its answers from a `Responder`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::bounded_listener::{BoundedListener, BoundedStream};
use super::scope::{GatewayHalt, LARGEST_BODY, OpenRequest, ScopeAccount, ScopeRegistry};
use super::token_counter::TokenCounter;
use super::{
    AnswerForm, AuxiliaryCall, BYTES_PER_TOKEN, GatewayAnswer, GatewayCall, GatewayOptions, GatewayRefusal,
    PassedResponse, SpendingDenial, error_kind_for_status,
};
use crate::llm::{ModelApi, ModelReply, ReplyCounts, SseEvent, split_gemini_path};
use practicum_core::model::TokenUsage;

/// The longest time in which a request must be there as a whole.
const LONGEST_UPLOAD: Duration = Duration::from_secs(120);

/// The most connections at once. More wait until one is closed.
const MOST_CONNECTIONS: usize = 1024;

/// The delay in which sent data can reach the client before the connection drops.
const DELAY_BEFORE_DROP: Duration = Duration::from_millis(20);

/// The longest silence of a real model. Models are silent for minutes, but not for this long.
const LONGEST_SILENCE: Duration = Duration::from_secs(900);

pub async fn serve(
    listener: TcpListener,
    registry: Arc<ScopeRegistry>,
    setup: GatewayOptions,
    mut stopped: watch::Receiver<bool>,
) {
    let shared = ServerState { registry, options: Arc::new(setup) };
    let app = Router::new().fallback(handle_request).with_state(shared);
    let listener = BoundedListener::new(listener, MOST_CONNECTIONS);
    // Events are small, and the client waits for each, so they are sent without delay.
    let listener = listener.tap_io(|stream: &mut BoundedStream| {
        let _ = stream.set_nodelay();
    });
    let until_stopped = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    // Serving ends only when it is asked to; errors of single connections do not end it.
    let _ = axum::serve(listener, app).with_graceful_shutdown(until_stopped).await;
}

#[derive(Clone)]
struct ServerState {
    registry: Arc<ScopeRegistry>,
    options: Arc<GatewayOptions>,
}

/// The target of a request, without the scope's prefix.
enum RequestTarget {
    HealthCheck,
    Models,
    CountTokens,
    /// The same in Google's API.
    GeminiTokens,
    Model(ModelApi),
    /// Google's API: the model, and whether the reply is a stream, are part of the path.
    Gemini {
        model: String,
        stream: bool,
    },
}

fn parse_target(method: &Method, path: &str) -> Option<RequestTarget> {
    let path = path.trim_matches('/');
    let path = path.strip_prefix("v1/").unwrap_or(path);
    let get = method == Method::GET || method == Method::HEAD;
    let post = method == Method::POST;
    let google = path.strip_prefix("v1beta/").and_then(split_gemini_path).filter(|_| post);
    match google {
        Some((model, method @ ("generateContent" | "streamGenerateContent"))) => {
            let stream = method == "streamGenerateContent";
            return Some(RequestTarget::Gemini { model: model.to_owned(), stream });
        }
        Some((_, "countTokens")) => return Some(RequestTarget::GeminiTokens),
        Some(_) | None => {}
    }
    match path {
        "" if get => Some(RequestTarget::HealthCheck),
        "models" if get => Some(RequestTarget::Models),
        "messages/count_tokens" if post => Some(RequestTarget::CountTokens),
        "messages" if post => Some(RequestTarget::Model(ModelApi::AnthropicMessages)),
        "responses" if post => Some(RequestTarget::Model(ModelApi::OpenAiResponses)),
        "chat/completions" if post => Some(RequestTarget::Model(ModelApi::OpenAiChat)),
        _ => None,
    }
}

async fn handle_request(State(shared): State<ServerState>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let found = parts.uri.path().strip_prefix("/t/").and_then(|rest| {
        let (token, path) = rest.split_once('/').unwrap_or((rest, ""));
        Some((shared.registry.find(token)?, path))
    });
    let Some((scope, path)) = found else {
        return error_response(ModelApi::AnthropicMessages, 404, "no trial has this address");
    };
    let Some(route) = parse_target(&parts.method, path) else {
        scope.add_note(format!("asked for {} /{path}, which the gateway does not have", parts.method));
        return error_response(ModelApi::AnthropicMessages, 404, "the gateway has no such endpoint");
    };
    let api = match route {
        RequestTarget::HealthCheck => return json_response(200, &json!({"ok": true})),
        RequestTarget::Models => {
            return answer_auxiliary(&shared, &scope, &parts, "models", None, &model_list()).await;
        }
        RequestTarget::CountTokens => ModelApi::AnthropicMessages,
        RequestTarget::Model(api) => api,
        RequestTarget::Gemini { .. } | RequestTarget::GeminiTokens => ModelApi::Gemini,
    };
    // The room is held until the answer is decided.
    let (raw, _room) = match read_body(&scope, &parts.headers, body).await {
        Ok(read) => read,
        Err((status, message)) => {
            scope.watch_request(None);
            scope.add_note(message);
            return error_response(api, status, message);
        }
    };
    match route {
        RequestTarget::CountTokens => {
            let estimate = json!({"input_tokens": raw.len() / BYTES_PER_TOKEN});
            answer_auxiliary(&shared, &scope, &parts, "messages/count_tokens", Some(&raw), &estimate).await
        }
        RequestTarget::GeminiTokens => {
            json_response(200, &json!({"totalTokens": raw.len() / BYTES_PER_TOKEN}))
        }
        RequestTarget::Gemini { model, stream } => {
            let in_path = Some((model.as_str(), stream));
            answer_model_request(&shared, &scope, api, in_path, &parts, &raw).await
        }
        RequestTarget::HealthCheck | RequestTarget::Models | RequestTarget::Model(_) => {
            answer_model_request(&shared, &scope, api, None, &parts, &raw).await
        }
    }
}

/// Answers a request that needs no model: from upstream if there is one, otherwise by the gateway itself.
async fn answer_auxiliary(
    shared: &ServerState,
    scope: &Arc<ScopeAccount>,
    parts: &Parts,
    path: &str,
    body: Option<&[u8]>,
    ours: &Value,
) -> Response {
    // Both vendors have a list of models at the same path.
    let anthropic = body.is_some() || parts.headers.contains_key("anthropic-version");
    let api = if anthropic { ModelApi::AnthropicMessages } else { ModelApi::OpenAiResponses };
    let asked = AuxiliaryCall { api, path, query: parts.uri.query(), headers: &parts.headers, body };
    let found = tokio::select! {
        found = shared.options.responder.answer_auxiliary(asked) => found,
        () = scope.wait_until_closed() => None,
    };
    match found {
        None => json_response(200, ours),
        Some(Err(refusal)) => refusal_response(api, &refusal),
        Some(Ok(passed)) => {
            passed_response(passed, RequestMeter::for_free_request(shared, OpenRequest::new(scope), api))
        }
    }
}

/// Reads the body of a request into the memory of its trial. A body of unknown length needs room for the largest one.
async fn read_body(
    scope: &ScopeAccount,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, OwnedSemaphorePermit), (u16, &'static str)> {
    let encoding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if encoding.is_some_and(|encoding| encoding != b"identity") {
        return Err((415, "the gateway reads no compressed requests"));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let length = length.unwrap_or(LARGEST_BODY);
    if length > LARGEST_BODY {
        return Err((413, "the request is too large or broke off"));
    }
    let read = async {
        let mut room = scope.reserve_body(length).await.ok_or((503, "the gateway is closed"))?;
        let bytes = to_bytes(body, length).await;
        let bytes = bytes.map_err(|_| (413, "the request is too large or broke off"))?;
        // What the body does not need is free for others.
        let used = room.split(bytes.len().div_ceil(1024));
        Ok((bytes, used.unwrap_or(room)))
    };
    let read = tokio::time::timeout(LONGEST_UPLOAD, read).await;
    read.unwrap_or(Err((408, "the request did not come in time, or too many came at once")))
}

async fn answer_model_request(
    shared: &ServerState,
    scope: &Arc<ScopeAccount>,
    api: ModelApi,
    in_path: Option<(&str, bool)>,
    parts: &Parts,
    raw: &[u8],
) -> Response {
    let open = OpenRequest::new(scope);
    let number = scope.count_request();
    scope.keep_probe_request(raw);
    let parsed = serde_json::from_slice::<Value>(raw)
        .map_err(|error| error.to_string())
        .map(|json| with_path_values(json, in_path))
        .and_then(|json| api.wire_format().request_from_json(&json).map_err(|problem| problem.0));
    let request = match parsed {
        Ok(request) => request,
        Err(problem) => {
            scope.watch_request(None);
            scope.add_note(format!("sent a request that cannot be read: {problem}"));
            return error_response(api, 400, &problem);
        }
    };
    scope.watch_request(Some(&request));
    scope.keep_first_request(raw, &request);
    let metering = RequestMeter {
        state: shared.clone(),
        open_request: open,
        counter: TokenCounter::new(api, request.stream),
        number,
        model: request.model.clone(),
        request_bytes: raw.len(),
        status: 0,
        api,
        counts_tokens: true,
        from_upstream: false,
    };
    if let Err(denied) = shared.options.ledger.check_request_allowed(&request.model) {
        return metering.deny(denied);
    }
    let (query, headers) = (parts.uri.query(), &parts.headers);
    let call = GatewayCall { scope, api, request: &request, raw_body: raw, query, headers, number };
    let decided = async {
        let GatewayAnswer { wait, form } = shared.options.responder.answer(call).await;
        tokio::time::sleep(wait).await;
        form
    };
    // If the client disconnects, the server drops this future; if the scope closes, this code does.
    let form = tokio::select! {
        form = decided => form,
        () = scope.wait_until_closed() => AnswerForm::Dropped,
    };
    send_answer(form, api, request.stream, metering)
}

/// Puts the model and whether the reply is a stream into a request, if its path has them.
fn with_path_values(mut json: Value, in_path: Option<(&str, bool)>) -> Value {
    if let (Some(body), Some((model, stream))) = (json.as_object_mut(), in_path) {
        body.insert("model".to_owned(), model.into());
        body.insert("stream".to_owned(), stream.into());
    }
    json
}

/// The meter of one request. It records the spending when the last byte has been sent, or the client has
/// disconnected.
struct RequestMeter {
    state: ServerState,
    open_request: OpenRequest,
    counter: TokenCounter,
    number: u64,
    model: String,
    /// The size of the request in bytes.
    request_bytes: usize,
    status: u16,
    api: ModelApi,
    counts_tokens: bool,
    /// Whether another server answers. Then missing token counts do not mean that no tokens were used.
    from_upstream: bool,
}

impl RequestMeter {
    /// Makes a meter for a request that costs nothing.
    fn for_free_request(shared: &ServerState, open: OpenRequest, api: ModelApi) -> Self {
        let (shared, counter) = (shared.clone(), TokenCounter::new(api, false));
        Self {
            state: shared,
            open_request: open,
            counter,
            number: 0,
            model: String::new(),
            request_bytes: 0,
            status: 0,
            api,
            counts_tokens: false,
            from_upstream: false,
        }
    }

    fn deny(mut self, denied: SpendingDenial) -> Response {
        self.status = 402;
        let scope = self.open_request.account();
        let (SpendingDenial::BudgetUsedUp(why) | SpendingDenial::UnknownPrice(why)) = &denied;
        let refusal = GatewayRefusal::with_status(402, why).without_retry();
        scope.record_halt(match denied {
            SpendingDenial::BudgetUsedUp(why) => GatewayHalt::OverBudget(why),
            SpendingDenial::UnknownPrice(why) => GatewayHalt::Unanswered(why),
        });
        refusal_response(self.api, &refusal)
    }

    fn record_spending(&self, model: &str, usage: TokenUsage) {
        let ledger = &self.state.options.ledger;
        let cost = ledger.prices().cost(model, usage);
        self.open_request.account().add_usage(usage, cost);
        ledger.record_spending(usage, cost);
    }

    /// Records a reply that does not report its tokens. Its cost is unknown; for the budget, the tokens are
    /// estimated.
    fn record_unknown_spending(&self) {
        let tokens = |bytes: u64| bytes.div_ceil(BYTES_PER_TOKEN as u64);
        let output = tokens(self.counter.bytes);
        let usage = TokenUsage { input: tokens(self.request_bytes as u64), output, ..TokenUsage::default() };
        let ledger = &self.state.options.ledger;
        ledger.record_spending(usage, ledger.prices().cost(&self.model, usage));
        self.open_request.account().add_usage(TokenUsage::default(), None);
        self.open_request
            .account()
            .add_note(format!("the reply to request {} does not say how many tokens it took", self.number));
    }
}

impl Drop for RequestMeter {
    fn drop(&mut self) {
        if !self.counts_tokens {
            return;
        }
        let ReplyCounts { model, usage } = self.counter.finish();
        let model = model.unwrap_or_else(|| self.model.clone());
        match usage {
            Some(usage) => self.record_spending(&model, usage),
            None if self.from_upstream && (200..300).contains(&self.status) => self.record_unknown_spending(),
            None => {}
        }
        let Some(log) = &self.state.options.log else { return };
        let tokens = usage.map_or_else(
            || "tokens unknown".to_owned(),
            |usage| {
                format!("{} + {} tokens", usage.input + usage.cache_read + usage.cache_write, usage.output)
            },
        );
        let cost = usage
            .and_then(|usage| self.state.options.ledger.prices().cost(&model, usage))
            .map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.6}"));
        let (name, status) = (self.api.name(), self.status);
        log(&format!("{} {name} {model} {status} {tokens} {cost}", self.number));
    }
}

fn send_answer(form: AnswerForm, api: ModelApi, streaming: bool, mut metering: RequestMeter) -> Response {
    let wire = api.wire_format();
    metering.status = match &form {
        AnswerForm::Refused(refusal) => refusal.status,
        AnswerForm::BrokenOff { .. } if !streaming => 500,
        AnswerForm::PassedThrough(passed) => passed.status,
        AnswerForm::Dropped => 0,
        AnswerForm::Whole(_)
        | AnswerForm::Truncated(_)
        | AnswerForm::Stalled(_)
        | AnswerForm::BrokenOff { .. } => 200,
    };
    match form {
        AnswerForm::Whole(reply) => {
            body_response(streaming, whole_reply_pieces(api, streaming, &reply), metering)
        }
        AnswerForm::PassedThrough(passed) => passed_response(passed, metering),
        AnswerForm::Truncated(reply) => {
            let mut pieces = whole_reply_pieces(api, streaming, &reply);
            pieces.truncate(pieces.len().div_ceil(2));
            if let ([BodyPiece::Bytes(only)], false) = (pieces.as_mut_slice(), streaming) {
                let half = (0..=only.len() / 2).rev().find(|at| only.is_char_boundary(*at));
                only.truncate(half.unwrap_or(0));
            }
            pieces.extend([BodyPiece::Wait(DELAY_BEFORE_DROP), BodyPiece::DropConnection]);
            body_response(streaming, pieces, metering)
        }
        AnswerForm::Stalled(wait) => {
            body_response(streaming, vec![BodyPiece::Wait(wait), BodyPiece::DropConnection], metering)
        }
        AnswerForm::BrokenOff { reply, kind, message } if streaming => {
            let opening = wire.reply_to_events(&reply).into_iter().take(1);
            let events = opening.chain([wire.error_to_event(&reply, &kind, &message)]);
            let pieces = events.map(|event| BodyPiece::Bytes(event.render())).collect();
            body_response(streaming, pieces, metering)
        }
        AnswerForm::BrokenOff { kind, message, .. } => {
            json_response(500, &wire.error_to_json(&kind, &message))
        }
        AnswerForm::Refused(refusal) => refusal_response(api, &refusal),
        // A body that fails at once keeps the server from sending even the headers.
        AnswerForm::Dropped => body_response(streaming, vec![BodyPiece::DropConnection], metering),
    }
}

/// Passes a response on chunk by chunk, and counts each on its way.
fn passed_response(passed: PassedResponse, mut metering: RequestMeter) -> Response {
    let status = StatusCode::from_u16(passed.status).unwrap_or(StatusCode::BAD_GATEWAY);
    metering.counter = TokenCounter::new(metering.api, passed.is_stream());
    metering.from_upstream = true;
    let state = Some((passed.body, metering));
    let body = Body::from_stream(stream::unfold(state, |state| async move {
        let (mut body, mut metering) = state?;
        let next = tokio::select! {
            next = tokio::time::timeout(LONGEST_SILENCE, body.next()) => next,
            () = metering.open_request.account().wait_until_closed() => Ok(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
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

fn whole_reply_pieces(api: ModelApi, streaming: bool, reply: &ModelReply) -> Vec<BodyPiece> {
    if streaming {
        api.wire_format().reply_to_events(reply).iter().map(SseEvent::render).map(BodyPiece::Bytes).collect()
    } else {
        vec![BodyPiece::Bytes(api.wire_format().reply_to_json(reply).to_string())]
    }
}

/// A part of a body, or an event between two parts.
enum BodyPiece {
    Bytes(String),
    Wait(Duration),
    DropConnection,
}

fn body_response(streaming: bool, pieces: Vec<BodyPiece>, metering: RequestMeter) -> Response {
    // The meter is part of the body's state: it stays open until the last byte or the disconnect.
    let state = (VecDeque::from(pieces), metering);
    let body = Body::from_stream(stream::unfold(state, |(mut pieces, mut metering)| async move {
        loop {
            match pieces.pop_front()? {
                BodyPiece::Bytes(text) => {
                    metering.counter.feed(text.as_bytes());
                    return Some((Ok(Bytes::from(text)), (pieces, metering)));
                }
                BodyPiece::Wait(wait) => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = metering.open_request.account().wait_until_closed() => pieces = VecDeque::from([BodyPiece::DropConnection]),
                },
                BodyPiece::DropConnection => {
                    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "dropped on purpose");
                    return Some((Err(cut), (VecDeque::new(), metering)));
                }
            }
        }
    }));
    let kind = if streaming { "text/event-stream; charset=utf-8" } else { "application/json" };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], body).into_response()
}

fn refusal_response(api: ModelApi, refusal: &GatewayRefusal) -> Response {
    let mut response =
        json_response(refusal.status, &api.wire_format().error_to_json(&refusal.kind, &refusal.message));
    for (name, value) in &refusal.headers {
        // The script's reader checked the names; the value of a variable can still make a header invalid.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn error_response(api: ModelApi, status: u16, message: &str) -> Response {
    json_response(status, &api.wire_format().error_to_json(error_kind_for_status(status), message))
}

fn json_response(status: u16, json: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, "application/json")], json.to_string()).into_response()
}

/// Gives a list of one model, in a form that both vendors' clients understand.
fn model_list() -> Value {
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
