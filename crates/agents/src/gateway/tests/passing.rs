//! Tests of requests that pass through the gateway: counted, limited, recorded, replayed.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::*;

const KEY: &str = "sk-very-secret-key";

fn env(base_url: &str) -> BTreeMap<String, String> {
    let rows = [
        ("ANTHROPIC_BASE_URL", base_url.to_owned()),
        ("OPENAI_BASE_URL", format!("{base_url}/v1")),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("OPENAI_API_KEY", KEY.to_owned()),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

fn scrub() -> SecretScrubber {
    Arc::new(|text| text.replace("my-password", "[secret]"))
}

fn at(root: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("workspace".to_owned(), format!("{root}/workspace"))])
}

async fn gateway(answer: impl Responder + 'static, budget: SpendingBudget) -> (Gateway, Arc<SpendingLedger>) {
    let ledger = Arc::new(SpendingLedger::new(budget, PriceTable::default()));
    let setup =
        GatewayOptions { responder: Arc::new(answer), ledger: Arc::clone(&ledger), port: 0, log: None };
    (Gateway::start_with(setup).await.expect("a gateway"), ledger)
}

/// Starts a scripted gateway as the model behind, and gives its address.
async fn model(text: &str) -> (Gateway, GatewayScope) {
    let gateway = Gateway::start(Arc::new(script(text))).await.expect("a gateway");
    let scope = gateway.register("upstream", ScopeKind::Agent, BTreeMap::new());
    (gateway, scope)
}

fn ask(
    scope: &GatewayScope,
    api: ModelApi,
    model: &str,
    text: &str,
    stream: bool,
) -> reqwest::RequestBuilder {
    let request = ModelRequest {
        model: model.to_owned(),
        system: None,
        messages: vec![ChatMessage::user(text)],
        tools: Vec::new(),
        tool_choice: None,
        max_tokens: Some(9),
        temperature: None,
        stream,
    };
    let url = format!("{}{}", scope.base_url_for(api), api.wire_format().path());
    http()
        .post(url)
        .header("x-api-key", "gateway")
        .body(api.wire_format().request_to_json(&request).to_string())
}

const HELLO: &str = "\
practicum_script: 1
scenarios:
  - when: hello
    steps: [{ text: Hello there., usage: { input: 1000000, output: 100000, cache_read: 10 } }]
";

#[tokio::test]
async fn tokens_and_money_are_counted_in_every_api_streaming_and_not() {
    let (_upstream, behind) = model(HELLO).await;
    let ids = regex::Regex::new("_[0-9a-f]{6,}[0-9a-f_]*|msg[-_a-z0-9]*").expect("a pattern");
    for api in ModelApi::ALL {
        for stream in [false, true] {
            for (model, cost) in [("claude-sonnet-4-6", Some(4.500003)), ("nobody-knows", None)] {
                let meter = Passthrough::new(Upstream::from_env(&env(behind.base_url())));
                let (gateway, ledger) = gateway(meter, SpendingBudget::default()).await;
                let scope = gateway.register("t", ScopeKind::Agent, BTreeMap::new());
                let (status, body) = outcome(ask(&scope, api, model, "hello", stream)).await;
                assert_eq!(status, 200, "{body}");
                let direct = outcome(ask(&behind, api, model, "hello", stream)).await.1;
                assert_eq!(ids.replace_all(&body, "id"), ids.replace_all(&direct, "id"), "unchanged");
                let what = format!("{api:?} {stream} {model}");
                let usage = TokenUsage { input: 1_000_000, output: 100_000, cache_read: 10, cache_write: 0 };
                assert_eq!(scope.usage(), usage, "{what}");
                let micro = |usd: f64| (usd * 1e6).round();
                assert_eq!(scope.cost().map(micro), cost.map(micro), "{what}");
                assert!(ledger.describe_used_up().is_none(), "{what}");
            }
        }
    }
}

/// Serves one connection with the given bytes, and gives the request that it got. `rest` is sent after `go_on`.
async fn raw_server(first: String, rest: String, go_on: Arc<Notify>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            assert!(stream.read_buf(&mut request).await.expect("a request") > 0, "it broke off");
        }
        stream.write_all(first.as_bytes()).await.expect("written");
        go_on.notified().await;
        stream.write_all(rest.as_bytes()).await.expect("written");
        String::from_utf8_lossy(&request).into_owned()
    });
    (address, served)
}

#[tokio::test]
async fn a_stream_passes_as_it_comes_with_the_users_key_and_without_the_agents() {
    let go_on = Arc::new(Notify::new());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: r-1\r\nset-cookie: a=b\r\n\
                connection: close\r\n\r\n";
    let one = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"gpt-5.4\",\
               \"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n";
    let two = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
    let (address, served) = raw_server(format!("{head}{one}"), two.to_owned(), Arc::clone(&go_on)).await;
    let meter = Passthrough::new(Upstream::from_env(&env(&address)));
    let (gateway, _) = gateway(meter, SpendingBudget::default()).await;
    let scope = gateway.register("t", ScopeKind::Agent, BTreeMap::new());
    let body = json!({"model": "m", "stream": true, "messages": []}).to_string();
    let request = http()
        .post(format!("{}/v1/messages?beta=true", scope.base_url()))
        .header("x-api-key", "gateway")
        .header("authorization", "Bearer gateway")
        .header("anthropic-beta", "some-beta")
        .header("accept-encoding", "gzip")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .body(body.clone());
    let mut response = request.send().await.expect("headers, before the end");
    assert_eq!(response.headers()["request-id"], "r-1");
    assert!(!response.headers().contains_key("set-cookie"));
    let first = response.chunk().await.expect("a chunk").expect("a first event, before the end");
    assert_eq!(first, one.as_bytes());
    assert_eq!(scope.open_requests(), 1);
    go_on.notify_one();
    assert_eq!(response.chunk().await.expect("a chunk").expect("the rest"), two.as_bytes());
    assert_eq!(response.chunk().await.expect("an end"), None);
    assert_eq!(scope.usage(), TokenUsage { input: 7, output: 9, ..TokenUsage::default() });
    let sent = served.await.expect("no panic").to_lowercase();
    assert!(sent.starts_with("post /v1/messages?beta=true http/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("x-api-key: {KEY}\r\n")), "{sent}");
    assert!(sent.contains("anthropic-beta: some-beta\r\n") && sent.ends_with(&body), "{sent}");
    for part in ["gateway", "accept-encoding", "x-hop"] {
        assert!(!sent.contains(part), "{part}: {sent}");
    }
}

#[tokio::test]
async fn failures_pass_through_without_the_key_and_nobody_there_is_said() {
    let body = format!("{{\"error\":{{\"message\":\"bad key {KEY}\"}}}}");
    let head = format!("HTTP/1.1 401 X\r\nretry-after: 3\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let go_on = Arc::new(Notify::new());
    go_on.notify_one();
    let (address, served) = raw_server(head, String::new(), go_on).await;
    let (gateway, _) =
        gateway(Passthrough::new(Upstream::from_env(&env(&address))), SpendingBudget::default()).await;
    let scope = gateway.register("t", ScopeKind::Agent, BTreeMap::new());
    let response = ask(&scope, ModelApi::OpenAiChat, "m", "x", false).send().await.expect("a response");
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (401, &"3".parse().expect("3"))
    );
    let body = response.text().await.expect("a body");
    assert!(body.contains("bad key [secret]"), "{body}");
    assert_eq!(scope.cost(), Some(0.0), "a refused request costs nothing");
    served.await.expect("no panic");
    let (status, body) = outcome(ask(&scope, ModelApi::OpenAiChat, "m", "x", false)).await;
    assert_eq!(status, 502, "{body}");
    assert!(scope.notes()[0].contains("cannot be reached"), "{:?}", scope.notes());
}

#[tokio::test]
async fn a_reply_that_tells_no_tokens_is_unknown_and_not_free() {
    let body = "{\"choices\":[]}";
    let answer = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let go_on = Arc::new(Notify::new());
    go_on.notify_one();
    let (address, _served) = raw_server(answer, String::new(), go_on).await;
    let budget = SpendingBudget { max_tokens: Some(5), max_cost: None };
    let (gateway, ledger) = gateway(Passthrough::new(Upstream::from_env(&env(&address))), budget).await;
    let scope = gateway.register("t", ScopeKind::Agent, BTreeMap::new());
    assert_eq!(outcome(ask(&scope, ModelApi::OpenAiChat, "gpt-5.4", "x", false)).await.0, 200);
    assert_eq!(scope.cost(), None);
    assert!(scope.notes()[0].contains("does not say how many tokens"), "{:?}", scope.notes());
    assert!(ledger.describe_used_up().is_some(), "a budget cannot be evaded by silence");
}

#[tokio::test]
async fn a_used_up_budget_refuses_in_every_api() {
    for api in ModelApi::ALL {
        for (budget, model, expected, over) in [
            (
                SpendingBudget { max_cost: None, max_tokens: Some(1_100_010) },
                "m",
                "1100010 of 1100010 tokens",
                true,
            ),
            (
                SpendingBudget { max_cost: Some(4.5), max_tokens: None },
                "claude-sonnet-4-6",
                "of $4.5 are spent",
                true,
            ),
            (
                SpendingBudget { max_cost: Some(4.5), max_tokens: None },
                "m",
                "price of \\\"m\\\" is unknown",
                false,
            ),
        ] {
            let (gateway, ledger) = gateway(script(HELLO), budget).await;
            let scope = gateway.register("t", ScopeKind::Agent, BTreeMap::new());
            if over {
                assert_eq!(outcome(ask(&scope, api, model, "hello", true)).await.0, 200);
            }
            let response = ask(&scope, api, model, "hello", true).send().await.expect("a response");
            assert_eq!(response.status().as_u16(), 402);
            assert_eq!(response.headers()["x-should-retry"], "false");
            let body = response.text().await.expect("a body");
            assert!(body.contains(expected) && body.contains("\"billing_error\""), "{body}");
            assert_eq!(matches!(scope.halt_reason(), Some(GatewayHalt::OverBudget(_))), over);
            assert_eq!(ledger.has_refused_requests(), over);
        }
    }
}

const TALK: &str = r#"
practicum_script: 1
scenarios:
  - when: greet
    steps:
      - thinking: Where is it?
        text: "A text that is sent in several pieces, and my-password is cut in two by that."
        tools: [{ name: Write, input: { content: "in -record-room-workspace, and some more of the words", file_path: "/record/room/workspace/and/a/long/way/down/x.txt" } }]
      - Done.
  - { when: busy, steps: [{ error: 529, message: "busy sk-very-secret-key", times: 1 }, fine] }
"#;

/// Records two requests and a failure that was retried, and gives the responses.
async fn recorded(path: &Path, api: ModelApi, stream: bool) -> Vec<(u16, String)> {
    let (_upstream, behind) = model(TALK).await;
    let record =
        CassetteRecorder::create(path, Upstream::from_env(&env(behind.base_url())), scrub()).expect("a file");
    let (gateway, _) = gateway(record, SpendingBudget::default()).await;
    let scope = gateway.register("t-1", ScopeKind::Agent, at("/record/room"));
    let mut answers = Vec::new();
    for text in ["greet my-password in /record/room/workspace on 2026-01-01", "busy", "busy"] {
        answers.push(outcome(ask(&scope, api, "m", text, stream)).await);
    }
    answers
}

#[tokio::test]
async fn what_was_recorded_is_replayed_elsewhere_without_the_model() {
    for api in ModelApi::ALL {
        for stream in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("c.jsonl");
            let first = recorded(&path, api, stream).await;
            assert_eq!(first.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 529, 200]);
            if stream && api != ModelApi::OpenAiResponses {
                // This API repeats every text in one piece; the others show what is tested here.
                assert!(
                    !first[0].1.contains("my-password") && !first[0].1.contains("/record/room/workspace")
                );
            }
            let text = std::fs::read_to_string(&path).expect("a cassette");
            for secret in [KEY, "my-password", "/record/room", "-record-room"] {
                assert!(!text.contains(secret), "{secret}: {text}");
            }
            let cassette = Cassette::read(&path).expect("readable");
            assert_eq!(cassette.recorded_scopes(), [(ScopeKind::Agent, "t-1".to_owned())]);
            let (gateway, _) =
                gateway(CassetteReplay::new(cassette, scrub()), SpendingBudget::default()).await;
            let scope = gateway.register("t-1", ScopeKind::Agent, at("/elsewhere"));
            // Another order is no difference.
            let asked = ["busy", "greet my-password in /elsewhere/workspace on 2027-02-02", "busy"];
            let mut again = Vec::new();
            for text in asked {
                again.push(outcome(ask(&scope, api, "m", text, stream)).await);
            }
            assert_eq!(again.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [529, 200, 200]);
            assert!(again[1].1.contains("/elsewhere/workspace/and/a/long/way"), "{}", again[1].1);
            assert!(again[1].1.contains("-elsewhere-workspace"), "{}", again[1].1);
            let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
            assert_eq!(again[2].1, first[2].1.replace(ping, ""), "{api:?} {stream}");
            assert_eq!(scope.finish(), [""; 0]);
            assert_eq!(scope.halt_reason(), None);
        }
    }
}

#[tokio::test]
async fn drift_is_reported_and_never_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.jsonl");
    recorded(&path, ModelApi::AnthropicMessages, true).await;
    let fitting = "greet [secret] in /x/workspace on 2020-01-01";
    for (scope_name, model, text, stream, expected) in [
        ("t-1", "m", "greet you", true, "messages[0] user text differs: it was \"greet [secret] in"),
        ("t-1", "other", fitting, true, "model differs: it was \"m\" and is \"other\""),
        ("t-1", "m", fitting, false, "stream differs"),
        ("t-2", "m", fitting, true, "nothing of this trial"),
    ] {
        let cassette = Cassette::read(&path).expect("readable");
        let (gateway, _) = gateway(CassetteReplay::new(cassette, scrub()), SpendingBudget::default()).await;
        let scope = gateway.register(scope_name, ScopeKind::Agent, at("/x"));
        let response =
            ask(&scope, ModelApi::AnthropicMessages, model, text, stream).send().await.expect("a response");
        assert_eq!(response.status().as_u16(), 409);
        assert_eq!(response.headers()["x-should-retry"], "false");
        let body: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(message.contains(expected), "{message}");
        assert_eq!(scope.halt_reason(), Some(GatewayHalt::Unanswered(message.to_owned())));
    }
    let cassette = Cassette::read(&path).expect("readable");
    let (gateway, _) = gateway(CassetteReplay::new(cassette, scrub()), SpendingBudget::default()).await;
    let scope = gateway.register("t-1", ScopeKind::Agent, at("/x"));
    let api = ModelApi::AnthropicMessages;
    assert_eq!(outcome(ask(&scope, api, "m", fitting, true)).await.0, 200);
    assert!(scope.finish()[0].starts_with("2 of 3 recorded requests were not asked"), "{:?}", scope.notes());
    for status in [529, 200, 409] {
        let (found, body) = outcome(ask(&scope, api, "m", "busy", true)).await;
        assert_eq!(found, status, "{body}");
    }
    assert!(
        matches!(scope.halt_reason(), Some(GatewayHalt::Unanswered(why)) if why.contains("all 3 of this trial"))
    );
}

#[tokio::test]
async fn a_cassette_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.jsonl");
    std::fs::write(&path, "dear").expect("written");
    let none = Upstream::from_env(&BTreeMap::new());
    assert!(CassetteRecorder::create(&path, none, scrub()).is_err());
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "dear");
}
