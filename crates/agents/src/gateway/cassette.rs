//! A cassette: recorded requests and responses, as JSON lines that can be read, compared and kept.
//!
//! The first line says what the file is. `text` lines contain texts of requests, each once, because a conversation
//! repeats everything before; `exchange` lines refer to them by their digests.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ScopeKind;
use crate::llm::{ModelApi, SseEvent};
use practicum_core::model::Digest;
use practicum_core::tree::open_regular;

pub const SCHEMA_VERSION: u32 = 1;

/// The largest cassette that is read. Hours of conversation stay far below it.
const LARGEST_CASSETTE: u64 = 1024 * 1024 * 1024;

/// A line of a cassette file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum CassetteLine {
    Cassette { schema_version: u32, practicum: String, recorded: String },
    Text { digest: Digest, text: String },
    Exchange(CassetteExchange),
}

/// A recorded request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CassetteExchange {
    pub trial: String,
    pub kind: ScopeKind,
    /// The number of the exchange, from 1, within trial and kind.
    pub number: u64,
    #[serde(with = "api_name")]
    pub api: ModelApi,
    /// The digest of all parts.
    pub digest: Digest,
    pub request: Vec<RequestPart>,
    pub response: RecordedResponse,
}

/// A part of a recorded request, with its position and the digest of its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPart {
    pub at: String,
    pub digest: Digest,
}

/// A recorded answer of a model API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedResponse {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: RecordedBody,
    /// Whether the response broke off, or the agent did not wait for its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// The body of a recorded answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedBody {
    Events(Vec<SseEvent>),
    Json(Value),
    Text(String),
    /// The reason why the body was not recorded.
    Withheld(String),
}

mod api_name {
    use super::ModelApi;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(api: &ModelApi, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(api.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ModelApi, D::Error> {
        let name = String::deserialize(from)?;
        ModelApi::from_name(&name).ok_or_else(|| D::Error::custom(format!("there is no API {name:?}")))
    }
}

/// An error: a cassette cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the cassette {path} cannot be used: {problem}")]
pub struct CassetteError {
    path: String,
    problem: String,
}

impl CassetteError {
    pub(super) fn for_path(path: &Path) -> impl Fn(String) -> Self {
        let path = path.display().to_string();
        move |problem| Self { path: path.clone(), problem }
    }
}

/// A cassette that was read.
#[derive(Debug, Default)]
pub struct Cassette {
    pub texts: HashMap<Digest, String>,
    pub exchanges: Vec<CassetteExchange>,
}

impl Cassette {
    pub fn read(path: &Path) -> Result<Self, CassetteError> {
        let error = CassetteError::for_path(path);
        let file = open_regular(path).map_err(|problem| error(problem.to_string()))?;
        let size = file.metadata().map_err(|problem| error(problem.to_string()))?.len();
        if size > LARGEST_CASSETTE {
            return Err(error("it is larger than any cassette".to_owned()));
        }
        let mut cassette = Self::default();
        let mut known = false;
        for (index, line) in BufReader::new(file.take(LARGEST_CASSETTE)).lines().enumerate() {
            let at = |problem: String| error(format!("line {}: {problem}", index + 1));
            let line = line.map_err(|problem| at(problem.to_string()))?;
            match serde_json::from_str::<CassetteLine>(&line).map_err(|problem| at(problem.to_string()))? {
                CassetteLine::Cassette { schema_version: SCHEMA_VERSION, .. } => known = true,
                CassetteLine::Cassette { schema_version, .. } => {
                    return Err(at(format!("version {schema_version} is not known here")));
                }
                CassetteLine::Text { digest, text } => {
                    cassette.texts.insert(digest, text);
                }
                CassetteLine::Exchange(exchange) => cassette.exchanges.push(exchange),
            }
            if !known {
                return Err(at("it does not say that it is a cassette".to_owned()));
            }
        }
        if known { Ok(cassette) } else { Err(error("it is empty".to_owned())) }
    }

    /// Gives the trials and judges whose requests were recorded.
    pub fn recorded_scopes(&self) -> Vec<(ScopeKind, String)> {
        let mut scopes: Vec<_> =
            self.exchanges.iter().map(|exchange| (exchange.kind, exchange.trial.clone())).collect();
        scopes.sort();
        scopes.dedup();
        scopes
    }
}

/// The fields in which the APIs put the pieces of a text that they stream.
const STREAMED_TEXT_FIELDS: [&str; 8] = [
    "/delta/text",
    "/delta/partial_json",
    "/delta/thinking",
    "/delta",
    "/choices/0/delta/content",
    "/choices/0/delta/reasoning_content",
    "/choices/0/delta/reasoning",
    "/choices/0/delta/tool_calls/0/function/arguments",
];

/// Joins the pieces of each text, so that a path or a secret in it is whole and can be found. Removes what only
/// serves the transport: pings, padding.
pub fn join_text_pieces(events: Vec<SseEvent>) -> Vec<SseEvent> {
    let mut out: Vec<SseEvent> = Vec::new();
    for mut event in events {
        if event.data.get("type").is_some_and(|kind| kind == "ping") {
            continue;
        }
        if let Some(fields) = event.data.as_object_mut() {
            fields.shift_remove("obfuscation");
        }
        let continues = out
            .last_mut()
            .is_some_and(|last| last.name == event.name && append_piece(&mut last.data, &event.data));
        if !continues {
            out.push(event);
        }
    }
    out
}

/// Appends the second event's piece to the first's, if they differ in nothing else.
fn append_piece(first: &mut Value, second: &Value) -> bool {
    let Some(at) = STREAMED_TEXT_FIELDS
        .iter()
        .find(|at| [&*first, second].iter().all(|one| one.pointer(at).is_some_and(Value::is_string)))
    else {
        return false;
    };
    let (Some(piece), Some(more)) = (first.pointer_mut(at), second.pointer(at).and_then(Value::as_str))
    else {
        return false;
    };
    // The text is taken out while the rest is compared, because it grows with every piece.
    let mut whole = piece.take();
    let same = without_piece(first.clone(), at) == without_piece(second.clone(), at);
    if let (Value::String(text), true) = (&mut whole, same) {
        text.push_str(more);
    }
    if let Some(piece) = first.pointer_mut(at) {
        *piece = whole;
    }
    same
}

fn without_piece(mut value: Value, at: &str) -> Value {
    if let Some(piece) = value.pointer_mut(at) {
        *piece = Value::Null;
    }
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("sequence_number");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{ContentBlock, ModelReply, ReplyCounts, SseEvent, StopReason};
    use practicum_core::model::TokenUsage;
    use serde_json::json;

    #[test]
    fn pieces_are_joined_in_every_api() {
        let long = format!("{{\"path\":\"/a/very/long{}/path\"}}", "/x".repeat(60));
        for api in ModelApi::ALL {
            let reply = ModelReply {
                id: "r".into(),
                model: "m".into(),
                blocks: vec![
                    ContentBlock::Text { text: "y".repeat(200) },
                    ContentBlock::ToolUse {
                        id: "t".into(),
                        name: "Write".into(),
                        input: serde_json::from_str(&long).expect("JSON"),
                    },
                ],
                stop: StopReason::ToolUse,
                usage: TokenUsage { input: 1, output: 2, ..TokenUsage::default() },
            };
            let stream: String =
                api.wire_format().reply_to_events(&reply).iter().map(SseEvent::render).collect();
            let split = SseEvent::read_all(stream.as_bytes());
            let whole = join_text_pieces(split.clone());
            assert!(whole.len() < split.len(), "{api:?}");
            let holds = |text: &str| {
                whole.iter().any(|event| {
                    STREAMED_TEXT_FIELDS
                        .iter()
                        .any(|at| event.data.pointer(at).and_then(Value::as_str) == Some(text))
                })
            };
            assert!(holds(&"y".repeat(200)) && holds(&long), "{api:?}: {whole:?}");
            let again: String = whole.iter().map(SseEvent::render).collect();
            assert_eq!(SseEvent::read_all(again.as_bytes()), whole, "{api:?}");
            let mut counted = ReplyCounts::default();
            whole.iter().for_each(|event| counted.add_json(api, &event.data));
            assert_eq!(counted.usage, Some(reply.usage), "{api:?}");
        }
    }

    #[test]
    fn different_texts_are_not_joined() {
        let delta = |index: u32, kind: &str, field: &str| SseEvent {
            name: Some("content_block_delta".to_owned()),
            data: json!({"index": index, "delta": {"type": kind, field: "a"}}),
        };
        let events = vec![
            delta(0, "text_delta", "text"),
            delta(1, "text_delta", "text"),
            delta(1, "input_json_delta", "partial_json"),
        ];
        assert_eq!(join_text_pieces(events.clone()), events);
    }

    #[test]
    fn what_is_no_cassette_is_said_to_be_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.jsonl");
        let first = |version: u32| {
            format!(
                "{{\"line\":\"cassette\",\"schema_version\":{version},\"practicum\":\"1\",\"recorded\":\"x\"}}\n"
            )
        };
        for (text, part) in [
            (String::new(), "empty"),
            ("{}\n".to_owned(), "line 1"),
            ("{\"line\":\"text\",\"digest\":\"d\",\"text\":\"t\"}\n".to_owned(), "does not say"),
            (first(2), "version 2"),
            (first(1) + "{\"line\":\"exchange\"", "line 2"),
        ] {
            std::fs::write(&path, &text).expect("written");
            let error = Cassette::read(&path).expect_err(&text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
