//! Random conversations for the round trips, shaped so that each API can hold them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Api, Block, Message, Reply, Request, Role, Stop, Tool};
use practicum_core::model::Usage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any block in any order, any number of messages of one role in a row.
    Blocks,
    /// Any block in any order, but roles take turns, and a result cannot be an error.
    Items,
    /// As `Items`, and: results before text, text before calls, thoughts in replies only.
    Chat,
}

pub fn check_request(api: Api, request: Request) -> Result<(), TestCaseError> {
    let json = through_text(api.wire().request_to_json(&request));
    prop_assert_eq!(api.wire().request_from_json(&json).expect("readable"), request);
    Ok(())
}

pub fn check_reply(api: Api, reply: Reply) -> Result<(), TestCaseError> {
    let json = through_text(api.wire().reply_to_json(&reply));
    prop_assert_eq!(api.wire().reply_from_json(&json).expect("readable"), reply.clone());
    let stream: String = api.wire().reply_to_events(&reply).iter().map(super::SseEvent::render).collect();
    for line in stream.lines() {
        prop_assert!(
            line.is_empty() || line.starts_with("data: ") || line.starts_with("event: "),
            "{}",
            line
        );
    }
    Ok(())
}

fn through_text(json: Value) -> Value {
    serde_json::from_str(&json.to_string()).expect("JSON")
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z_]{1,12}"
}

fn prose() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{1,120}", "[a-z\n\r\t\"\\\\ \u{2028}]{1,30}"]
}

fn input() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prose().prop_map(Value::from),
    ];
    let inner = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(word(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn call() -> impl Strategy<Value = Block> {
    (word(), word(), input()).prop_map(|(id, name, input)| Block::ToolUse { id, name, input })
}

fn said() -> impl Strategy<Value = Block> {
    prose().prop_map(|text| Block::Text { text })
}

fn thought(signed: bool) -> impl Strategy<Value = Block> {
    (prose(), word())
        .prop_map(move |(text, mark)| Block::Thinking { text, signature: signed.then_some(mark) })
}

fn result(errors: bool) -> impl Strategy<Value = Block> {
    (word(), prose(), any::<bool>()).prop_map(move |(tool_use_id, content, error)| Block::ToolResult {
        tool_use_id,
        content,
        is_error: error && errors,
    })
}

fn assistant(shape: Shape, in_reply: bool) -> BoxedStrategy<Vec<Block>> {
    match shape {
        Shape::Blocks | Shape::Items => {
            prop::collection::vec(prop_oneof![said(), thought(true), call()], 1..5).boxed()
        }
        Shape::Chat => (
            prop::option::of(thought(false)),
            prop::collection::vec(said(), 0..3),
            prop::collection::vec(call(), 0..3),
        )
            .prop_map(move |(thought, said, calls)| {
                thought.filter(|_| in_reply).into_iter().chain(said).chain(calls).collect()
            })
            .prop_filter("a message has content", |blocks: &Vec<Block>| !blocks.is_empty())
            .boxed(),
    }
}

fn user(shape: Shape) -> BoxedStrategy<Vec<Block>> {
    match shape {
        Shape::Blocks => prop::collection::vec(prop_oneof![said(), result(true)], 1..5).boxed(),
        Shape::Items => prop::collection::vec(prop_oneof![said(), result(false)], 1..5).boxed(),
        Shape::Chat => (prop::collection::vec(result(false), 0..3), prop::collection::vec(said(), 1..3))
            .prop_map(|(results, said)| results.into_iter().chain(said).collect())
            .boxed(),
    }
}

fn messages(shape: Shape) -> BoxedStrategy<Vec<Message>> {
    let user = user(shape).prop_map(|blocks| Message { role: Role::User, blocks });
    let assistant = assistant(shape, false).prop_map(|blocks| Message { role: Role::Assistant, blocks });
    match shape {
        Shape::Blocks => prop::collection::vec(prop_oneof![user, assistant], 0..5).boxed(),
        Shape::Items | Shape::Chat => prop::collection::vec((user, assistant), 0..3)
            .prop_map(|pairs| pairs.into_iter().flat_map(|(user, assistant)| [user, assistant]).collect())
            .boxed(),
    }
}

pub fn request(shape: Shape) -> impl Strategy<Value = Request> {
    let tool = (word(), prose(), input()).prop_map(|(name, description, input_schema)| Tool {
        name,
        description,
        input_schema,
    });
    (
        word(),
        prop::option::of(prose()),
        messages(shape),
        prop::collection::vec(tool, 0..3),
        prop::option::of(word()),
        1u32..100_000,
        prop::option::of(0u32..200),
        any::<bool>(),
    )
        .prop_map(|(model, system, messages, tools, tool_choice, max_tokens, hundredths, stream)| {
            Request {
                model,
                system,
                messages,
                tools,
                tool_choice,
                max_tokens: Some(max_tokens),
                temperature: hundredths.map(|n| f64::from(n) / 100.0),
                stream,
            }
        })
}

pub fn reply(shape: Shape) -> impl Strategy<Value = Reply> {
    let unusual = prop_oneof![
        Just(None),
        Just(Some(Stop::MaxTokens)),
        Just(Some(Stop::Refusal)),
        Just(Some(Stop::Other("pause_turn".to_owned()))),
    ];
    let counts = [0u64..1000, 0..1000, 0..1000, 0..1000];
    (word(), word(), assistant(shape, true), unusual, counts).prop_map(
        move |(id, model, blocks, unusual, [input, output, cache_read, cache_write])| {
            let mut reply = Reply { id, model, blocks, stop: Stop::EndTurn, usage: Usage::default() };
            let usual = if reply.calls_tools() { Stop::ToolUse } else { Stop::EndTurn };
            reply.stop = unusual.unwrap_or(usual);
            // Only one of the APIs tells what was written to its cache.
            let cache_write = if shape == Shape::Blocks { cache_write } else { 0 };
            reply.usage = Usage { input, output, cache_read, cache_write };
            reply
        },
    )
}

/// JSON that uses the APIs' words in all the wrong places.
fn nonsense() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "role",
        "content",
        "messages",
        "input",
        "output",
        "tools",
        "function",
        "choices",
        "message",
        "tool_calls",
        "system",
        "usage",
        "text",
        "thinking",
        "tool_use",
        "tool_result",
        "reasoning",
        "status",
        "function_call",
        "namespace",
        "additional_tools",
        "user",
        "assistant",
        "incomplete_details",
        "summary",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..8).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn nonsense_is_read_or_refused(json in nonsense()) {
        for api in Api::ALL {
            if let Ok(request) = api.wire().request_from_json(&json) {
                api.wire().request_to_json(&request);
            }
            if let Ok(reply) = api.wire().reply_from_json(&json) {
                api.wire().reply_to_json(&reply);
                api.wire().reply_to_events(&reply);
            }
        }
    }
}

#[test]
fn every_api_names_an_error() {
    for api in Api::ALL {
        let error = api.wire().error_to_json("overloaded_error", "busy");
        assert_eq!(error["error"]["message"], json!("busy"), "{api:?}");
    }
}
