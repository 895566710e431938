//! Tests of the script's diagnostics, and of the gateway as a client sees it.

mod passing;

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::llm::{ApiRetryPolicy, ChatMessage, Endpoint, ModelClient};
use practicum_core::model::{Diagnostics, TokenUsage};
use practicum_core::tree::{SourceFile, SourceSyntax};

fn read(text: &str) -> Result<ModelScript, Vec<(&'static str, Option<String>)>> {
    let mut diagnostics = Diagnostics::default();
    let source =
        SourceFile::parse(Path::new("s.yaml"), text.to_owned(), SourceSyntax::Yaml, &mut diagnostics);
    source
        .and_then(|source| ModelScript::from_source(&source, &mut diagnostics))
        .ok_or_else(|| diagnostics.iter().map(|found| (found.code, found.help.clone())).collect())
}

pub(super) fn script(text: &str) -> ModelScript {
    read(text).expect("a valid script")
}

#[test]
fn mistakes_in_a_script_are_named() {
    let scenario = |scenario: &str| format!("practicum_script: 1\nscenarios: [{scenario}]");
    let step = |step: &str| scenario(&format!("{{ when: x, steps: [{step}] }}"));
    for (text, code, help) in [
        ("scenarios: [{ steps: [x] }]".to_owned(), "missing-key", None),
        ("practicum_script: 2\ndefault: x".to_owned(), "out-of-range", None),
        ("practicum_script: 1".to_owned(), "empty-script", None),
        ("practicum_script: 1\nscenarios: []".to_owned(), "empty-script", None),
        (
            "practicum_script: 1\ndefualt: x\nscenarios: [{ steps: [x] }]".to_owned(),
            "unknown-key",
            Some("default"),
        ),
        (
            "practicum_script: 1\ndefault: { tools: [{ name: A }] }".to_owned(),
            "default-calls-tools",
            Some("scenario"),
        ),
        ("practicum_script: 1\ndefault: { error: 529, times: 1 }".to_owned(), "default-with-times", None),
        (scenario("{ steps: [] }"), "empty-scenario", None),
        (scenario("{ when: x }"), "missing-key", None),
        (scenario("{ steps: x }"), "wrong-type", None),
        (scenario("{ to: jugde, steps: [x] }"), "unknown-value", Some("judge")),
        (scenario("{ when: ' ', steps: [x] }"), "empty-text", Some("leave")),
        (scenario("{ when: { regex: '(' }, steps: [x] }"), "invalid-regex", None),
        (scenario("{ when: { regex: a, marker: b }, steps: [x] }"), "wrong-when", None),
        (scenario("{ when: { markre: b }, steps: [x] }"), "unknown-key", Some("marker")),
        (step("{}"), "empty-step", None),
        (step("{ txt: x }"), "unknown-key", Some("text")),
        (step("{ text: x, tools: [{ nam: A }] }"), "missing-key", None),
        (step("{ tools: [{ name: A, input: 3 }] }"), "wrong-type", None),
        (step("{ error: 200 }"), "out-of-range", None),
        (step("{ error: 429, headers: { 'a b': 1 } }"), "invalid-header", None),
        (step("{ text: x, headers: { a: b } }"), "only-with-error", None),
        (step("{ text: x, times: 2 }"), "times-without-fault", None),
        (step("{ error: 500, then: x }"), "then-without-times", Some("times")),
        (step("{ error: 500, truncate: true }"), "two-faults", None),
        (step("{ hang: soon }"), "invalid-duration", Some("20s")),
        (step("{ text: x, stop: end_trun }"), "unknown-value", Some("end_turn")),
        (step("{ text: x, usage: { inptu: 1 } }"), "unknown-key", Some("input")),
    ] {
        let found = read(&text).expect_err(&text);
        let fits = found.iter().any(|(found, hint)| {
            *found == code && help.is_none_or(|help| hint.as_ref().is_some_and(|hint| hint.contains(help)))
        });
        assert!(fits, "{text}\nexpected {code} {help:?}, found {found:?}");
    }
}

const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: hello
    steps:
      - thinking: Hm.
        text: "Hello from {{place}}, long enough for more than one piece of text to be sent."
        tools: [{ name: Write, input: { file_path: "{{place}}/x", content: "a\nb" } }]
        usage: { input: 10, output: 20, cache_read: 3, cache_write: 4 }
      - Goodbye.
  - { when: once, steps: [{ error: 529, message: busy, headers: { retry-after: 7, x-place: "{{place}}" }, times: 2 }, fine] }
  - { when: nested, steps: [{ error: 429, times: 1, then: { hang: 1ms, times: 1, then: fine } }] }
  - { when: hang, steps: [{ hang: 1h }] }
  - { when: silent, steps: [{ hang_before_headers: 1h }] }
  - { when: gone, steps: [{ hang_before_headers: 1ms }] }
  - { when: stall, steps: [{ hang: 1ms }] }
  - { when: slow, steps: [{ text: slow, delay: 50ms }] }
  - { when: cut, steps: [{ text: "a text that is cut off somewhere in the middle of it all", truncate: true }] }
  - { when: broken, steps: [{ sse_error: overloaded_error, message: busy }] }
"#;

async fn start() -> (Gateway, GatewayScope) {
    let gateway = Gateway::start(Arc::new(script(SCRIPT))).await.expect("a gateway");
    let vars = BTreeMap::from([("place".to_owned(), "/here".to_owned())]);
    let scope = gateway.register("trial-1", ScopeKind::Agent, vars);
    (gateway, scope)
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client")
}

fn post(scope: &GatewayScope, text: &str, stream: bool) -> reqwest::RequestBuilder {
    let body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]});
    http().post(format!("{}/v1/messages?beta=true", scope.base_url())).body(body.to_string())
}

/// Gives status and body; if the connection dropped, what came before and "cut".
async fn outcome(request: reqwest::RequestBuilder) -> (u16, String) {
    let Ok(mut response) = request.send().await else { return (0, "cut".to_owned()) };
    let mut body = String::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => body.push_str(&String::from_utf8_lossy(&chunk)),
            Ok(None) => return (response.status().as_u16(), body),
            Err(_) => return (response.status().as_u16(), body + "cut"),
        }
    }
}

/// Reads the events of a stream, each with its data.
fn events(stream: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
        (field("event: ").to_owned(), serde_json::from_str(field("data: ")).expect("JSON"))
    };
    stream.split_terminator("\n\n").map(event).collect()
}

#[tokio::test]
async fn a_stream_tells_the_whole_reply() {
    let (_gateway, scope) = start().await;
    let (status, body) = outcome(post(&scope, "hello", true)).await;
    assert_eq!(status, 200);
    let events = events(&body);
    let joined = |kind: &str, field: &str| -> String {
        events
            .iter()
            .filter(|(_, data)| data["delta"]["type"] == kind)
            .filter_map(|(_, data)| data["delta"][field].as_str())
            .collect()
    };
    assert!(events.iter().all(|(name, data)| data["type"] == name.as_str()));
    assert_eq!(events.first().map(|(name, _)| name.as_str()), Some("message_start"));
    assert_eq!(events.last().map(|(name, _)| name.as_str()), Some("message_stop"));
    assert_eq!(joined("thinking_delta", "thinking"), "Hm.");
    assert!(joined("text_delta", "text").starts_with("Hello from /here, long"));
    let input: Value = serde_json::from_str(&joined("input_json_delta", "partial_json")).expect("JSON");
    assert_eq!(input, json!({"file_path": "/here/x", "content": "a\nb"}));
    let (_, last) = events.iter().find(|(name, _)| name == "message_delta").expect("a delta");
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    assert_eq!(scope.usage(), TokenUsage { input: 10, output: 20, cache_read: 3, cache_write: 4 });
    assert_eq!(scope.requests(), 1);
}

#[tokio::test]
async fn every_api_is_answered() {
    let (_gateway, scope) = start().await;
    for api in ModelApi::ALL {
        let endpoint = Endpoint { api, base_url: scope.base_url_for(api), credential: None };
        let client = ModelClient::new(endpoint).expect("a client");
        let mut request = ModelRequest {
            model: "m".to_owned(),
            system: None,
            messages: vec![ChatMessage::user("hello")],
            tools: Vec::new(),
            tool_choice: None,
            max_tokens: Some(9),
            temperature: None,
            stream: false,
        };
        let reply = client.send(&request).await.expect("a reply");
        assert!(reply.text().starts_with("Hello from /here"), "{api:?}: {reply:?}");
        assert_eq!(reply.blocks.len(), 3, "{api:?}: {reply:?}");
        assert_eq!(reply.usage.output, 20, "{api:?}");
        request.messages.push(ChatMessage { role: crate::llm::Role::Assistant, blocks: reply.blocks });
        request.messages.push(ChatMessage::user("and now?"));
        assert_eq!(client.send(&request).await.expect("a reply").text(), "Goodbye.", "{api:?}");
    }
    assert_eq!(scope.requests(), 6);
}

#[tokio::test]
async fn failures_are_as_scripted() {
    let (_gateway, scope) = start().await;
    for (text, stream, status, expected) in [
        ("once", true, 529, r#""type":"overloaded_error","message":"busy""#),
        ("once", false, 529, "busy"),
        ("once", true, 200, "fine"),
        ("once", true, 200, "fine"),
        ("nested", false, 429, "rate_limit_error"),
        ("nested", true, 200, "cut"),
        ("nested", true, 200, "fine"),
        ("stall", true, 200, "cut"),
        ("gone", true, 0, "cut"),
        ("gone", false, 0, "cut"),
        ("slow", false, 200, "slow"),
        ("broken", true, 200, "event: error"),
        ("broken", false, 500, "overloaded_error"),
        ("nothing like it", false, 400, "nothing like it"),
    ] {
        let (found, body) = outcome(post(&scope, text, stream)).await;
        assert_eq!(found, status, "{text}: {body}");
        assert!(body.contains(expected), "{text}: {body}");
    }
    for stream in [true, false] {
        let (status, body) = outcome(post(&scope, "cut", stream)).await;
        assert_eq!(status, 200);
        assert!(body.ends_with("cut") && body.len() > 10 && !body.contains("message_stop"), "{body}");
    }
    let response = post(&start().await.1, "once", true).send().await.expect("a response");
    assert_eq!(response.headers()["retry-after"], "7");
    assert_eq!(response.headers()["x-place"], "/here");
    assert_eq!(scope.notes(), ["no scenario of the script fits \"nothing like it\""]);
}

#[tokio::test]
async fn what_else_a_client_may_ask() {
    let (gateway, scope) = start().await;
    let base = scope.base_url();
    let elsewhere = format!("http://{}", gateway.address());
    let small = || "{}".to_owned();
    for (request, status) in [
        (http().head(base), 200),
        (http().head(format!("{base}/")), 200),
        (http().get(format!("{base}/v1/models?limit=5")), 200),
        (http().post(format!("{base}/v1/messages/count_tokens")).body(small()), 200),
        (http().get(format!("{base}/v1/messages")), 404),
        (http().post(format!("{base}/v1/embeddings")).body(small()), 404),
        (http().post(format!("{base}/v1/messages")).body(small()), 400),
        (http().post(format!("{base}/v1/messages")).body("not JSON"), 400),
        (http().post(format!("{base}/v1/messages")).header("content-encoding", "gzip").body(small()), 415),
        (http().get(&elsewhere), 404),
        (http().post(format!("{elsewhere}/v1/messages")).body(small()), 404),
        (http().post(format!("{elsewhere}/t/guess/v1/messages")).body(small()), 404),
        (http().post(format!("{base}x/v1/messages")).body(small()), 404),
    ] {
        let shown = format!("{request:?}");
        assert_eq!(outcome(request).await.0, status, "{shown}");
    }
    let too_much = http().post(format!("{base}/v1/messages")).body(vec![b' '; 64 * 1024 * 1024 + 1]);
    // The server may close the connection before it has received everything.
    assert!(matches!(outcome(too_much).await.0, 413 | 0));
    // A body in parts does not say its length in advance. The same body within the limit is read and refused as JSON.
    for (parts, expected) in [(63, &[400][..]), (65, &[413, 0])] {
        let part = axum::body::Bytes::from(vec![b' '; 1024 * 1024]);
        let body = futures_util::stream::iter((0..parts).map(move |_| Ok::<_, std::io::Error>(part.clone())));
        let request = http().post(format!("{base}/v1/messages")).body(reqwest::Body::wrap_stream(body));
        let status = outcome(request).await.0;
        assert!(expected.contains(&status), "{parts} MB in parts: {status}");
    }
    let address = scope.base_url().to_owned();
    drop(scope);
    assert_eq!(outcome(http().head(address)).await.0, 404);
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(5), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn hangs_end_with_the_client_the_scope_or_the_gateway() {
    for text in ["hang", "silent"] {
        let (gateway, scope) = start().await;
        let client = tokio::spawn(outcome(post(&scope, text, true)));
        until("the request arrives", || scope.open_requests() == 1).await;
        client.abort();
        until("the client left", || scope.open_requests() == 0).await;

        let client = tokio::spawn(outcome(post(&scope, text, true)));
        until("the request arrives", || scope.open_requests() == 1).await;
        drop(scope);
        let (_, body) = client.await.expect("no panic");
        assert_eq!(body, "cut", "{text}");

        let scope = gateway.register("trial-2", ScopeKind::Agent, BTreeMap::new());
        let client = tokio::spawn(outcome(post(&scope, text, true)));
        until("the request arrives", || scope.open_requests() == 1).await;
        let began = Instant::now();
        gateway.stop().await;
        assert!(began.elapsed() < STOP_WITHIN, "{text}");
        assert_eq!(client.await.expect("no panic").1, "cut", "{text}");
    }
}

#[tokio::test]
async fn the_client_tries_again_until_the_script_gives_way() {
    let (_gateway, scope) = start().await;
    let base_url = scope.base_url().to_owned();
    let endpoint = Endpoint { api: ModelApi::AnthropicMessages, base_url, credential: None };
    let retry =
        ApiRetryPolicy { max_attempts: 3, first_wait: Duration::from_millis(1), ..ApiRetryPolicy::default() };
    let client = ModelClient::new(endpoint).expect("a client").with_retry_policy(retry);
    let request = ModelRequest {
        model: "m".to_owned(),
        system: None,
        messages: vec![ChatMessage::user("nested")],
        tools: Vec::new(),
        tool_choice: None,
        max_tokens: None,
        temperature: None,
        stream: false,
    };
    assert_eq!(client.send(&request).await.map(|reply| reply.text()), Ok("fine".to_owned()));
    assert_eq!(scope.requests(), 3);
}
