//! Random conversations for round-trip tests, in shapes that each API can express.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    ChatMessage, ContentBlock, ModelApi, ModelReply, ModelRequest, Role, StopReason, ToolDefinition,
};
use practicum_core::model::TokenUsage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationShape {
    /// Any block in any order, any number of messages of one role in a row.
    Blocks,
    /// Any block in any order, but roles take turns, and a result cannot be an error.
    Items,
    /// As `Items`, and: results before text, text before calls, thoughts in replies only.
    Chat,
}

pub fn check_request(api: ModelApi, request: ModelRequest) -> Result<(), TestCaseError> {
    let json = round_trip_text(api.wire_format().request_to_json(&request));
    prop_assert_eq!(api.wire_format().request_from_json(&json).expect("readable"), request);
    Ok(())
}

pub fn check_reply(api: ModelApi, reply: ModelReply) -> Result<(), TestCaseError> {
    let json = round_trip_text(api.wire_format().reply_to_json(&reply));
    prop_assert_eq!(api.wire_format().reply_from_json(&json).expect("readable"), reply.clone());
    let stream: String =
        api.wire_format().reply_to_events(&reply).iter().map(super::SseEvent::render).collect();
    for line in stream.lines() {
        prop_assert!(
            line.is_empty() || line.starts_with("data: ") || line.starts_with("event: "),
            "{}",
            line
        );
    }
    Ok(())
}

fn round_trip_text(json: Value) -> Value {
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

fn any_tool_call() -> impl Strategy<Value = ContentBlock> {
    (word(), word(), input()).prop_map(|(id, name, input)| ContentBlock::ToolUse { id, name, input })
}

fn any_text_block() -> impl Strategy<Value = ContentBlock> {
    prose().prop_map(|text| ContentBlock::Text { text })
}

fn any_picture() -> impl Strategy<Value = ContentBlock> {
    "[A-Za-z0-9+/]{4,16}".prop_map(|data| ContentBlock::Image { media_type: "image/png".to_owned(), data })
}

fn any_thought(signed: bool) -> impl Strategy<Value = ContentBlock> {
    (prose(), word()).prop_map(move |(text, signature_text)| ContentBlock::Thinking {
        text,
        signature: signed.then_some(signature_text),
    })
}

fn any_tool_result(errors: bool) -> impl Strategy<Value = ContentBlock> {
    (word(), prose(), any::<bool>()).prop_map(move |(tool_use_id, content, error)| ContentBlock::ToolResult {
        tool_use_id,
        content,
        is_error: error && errors,
    })
}

fn assistant(shape: ConversationShape, in_reply: bool) -> BoxedStrategy<Vec<ContentBlock>> {
    match shape {
        ConversationShape::Blocks | ConversationShape::Items => {
            prop::collection::vec(prop_oneof![any_text_block(), any_thought(true), any_tool_call()], 1..5)
                .boxed()
        }
        ConversationShape::Chat => (
            prop::option::of(any_thought(false)),
            prop::collection::vec(any_text_block(), 0..3),
            prop::collection::vec(any_tool_call(), 0..3),
        )
            .prop_map(move |(thought, said, calls)| {
                thought.filter(|_| in_reply).into_iter().chain(said).chain(calls).collect()
            })
            .prop_filter("a message has content", |blocks: &Vec<ContentBlock>| !blocks.is_empty())
            .boxed(),
    }
}

fn user(shape: ConversationShape) -> BoxedStrategy<Vec<ContentBlock>> {
    match shape {
        ConversationShape::Blocks => {
            prop::collection::vec(prop_oneof![any_text_block(), any_picture(), any_tool_result(true)], 1..5)
                .boxed()
        }
        ConversationShape::Items => {
            prop::collection::vec(prop_oneof![any_text_block(), any_picture(), any_tool_result(false)], 1..5)
                .boxed()
        }
        ConversationShape::Chat => (
            prop::collection::vec(any_tool_result(false), 0..3),
            prop::collection::vec(prop_oneof![any_text_block(), any_picture()], 1..3),
        )
            .prop_map(|(results, said)| results.into_iter().chain(said).collect())
            .boxed(),
    }
}

fn messages(shape: ConversationShape) -> BoxedStrategy<Vec<ChatMessage>> {
    let user = user(shape).prop_map(|blocks| ChatMessage { role: Role::User, blocks });
    let assistant = assistant(shape, false).prop_map(|blocks| ChatMessage { role: Role::Assistant, blocks });
    match shape {
        ConversationShape::Blocks => prop::collection::vec(prop_oneof![user, assistant], 0..5).boxed(),
        ConversationShape::Items | ConversationShape::Chat => prop::collection::vec((user, assistant), 0..3)
            .prop_map(|pairs| pairs.into_iter().flat_map(|(user, assistant)| [user, assistant]).collect())
            .boxed(),
    }
}

pub fn request(shape: ConversationShape) -> impl Strategy<Value = ModelRequest> {
    let tool = (word(), prose(), input()).prop_map(|(name, description, input_schema)| ToolDefinition {
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
            ModelRequest {
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

pub fn reply(shape: ConversationShape) -> impl Strategy<Value = ModelReply> {
    let unusual = prop_oneof![
        Just(None),
        Just(Some(StopReason::MaxTokens)),
        Just(Some(StopReason::Refusal)),
        Just(Some(StopReason::Other("pause_turn".to_owned()))),
    ];
    let counts = [0u64..1000, 0..1000, 0..1000, 0..1000];
    (word(), word(), assistant(shape, true), unusual, counts).prop_map(
        move |(id, model, blocks, unusual, [input, output, cache_read, cache_write])| {
            let mut reply =
                ModelReply { id, model, blocks, stop: StopReason::EndTurn, usage: TokenUsage::default() };
            let usual = if reply.calls_tools() { StopReason::ToolUse } else { StopReason::EndTurn };
            reply.stop = unusual.unwrap_or(usual);
            // Only one of the APIs reports what was written to its cache.
            let cache_write = if shape == ConversationShape::Blocks { cache_write } else { 0 };
            reply.usage = TokenUsage { input, output, cache_read, cache_write };
            reply
        },
    )
}

/// Gives JSON that uses the APIs' words in all the wrong places.
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
        for api in ModelApi::ALL {
            if let Ok(request) = api.wire_format().request_from_json(&json) {
                api.wire_format().request_to_json(&request);
            }
            if let Ok(reply) = api.wire_format().reply_from_json(&json) {
                api.wire_format().reply_to_json(&reply);
                api.wire_format().reply_to_events(&reply);
            }
        }
    }
}

#[test]
fn every_api_names_an_error() {
    for api in ModelApi::ALL {
        let error = api.wire_format().error_to_json("overloaded_error", "busy");
        assert_eq!(error["error"]["message"], json!("busy"), "{api:?}");
    }
}
