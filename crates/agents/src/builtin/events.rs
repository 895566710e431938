//! practicum-jsonl: the events of an agent's run, one JSON object per line.
//!
//! The builtin agent writes this format, and an agent of the user's own may (`decoder = "practicum-jsonl"`). Each
//! line has a `type`; readers skip lines and fields that they do not know.
//!
//! | type | fields | when |
//! |---|---|---|
//! | `start` | `schema_version` (1), `agent`, `version`, `model`, `skills`, `tools`, `session` | first |
//! | `text` | `text` | the model wrote text |
//! | `tool` | `id`, `name`, `input` | the model called a tool |
//! | `tool_result` | `id`, `ok`, `content` | that call returned |
//! | `skill` | `name`, `via` (`tool` or `read`) | the agent activated a skill by itself |
//! | `usage` | `input`, `output`, `cache_read`, `cache_write` | tokens of one model request |
//! | `end` | `ending`, `message`, `turns` | last |
//!
//! `ending` is `finished`, `rate_limited`, `auth_failed`, `api_failed` or `over_budget`. A stream without `end` is
//! a crash. A skill that the prompt itself invoked has no `skill` event. Only `schema_version`, `text`, `id`,
//! `name`, `ok` and `ending` are required in their events; `skills`, if given, must name every skill that the
//! agent could use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use practicum_core::model::AgentEnding;

pub const SCHEMA_VERSION: u32 = 1;

/// A line of the stream format practicum-jsonl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JsonlEvent {
    Start {
        schema_version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skills: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    Text {
        text: String,
    },
    Tool {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        id: String,
        ok: bool,
        #[serde(default)]
        content: String,
    },
    Skill {
        name: String,
        #[serde(default)]
        via: ActivationMeans,
    },
    Usage {
        #[serde(default)]
        input: u64,
        #[serde(default)]
        output: u64,
        #[serde(default)]
        cache_read: u64,
        #[serde(default)]
        cache_write: u64,
    },
    End {
        ending: JsonlEnding,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(default)]
        turns: u64,
    },
}

/// The way in which a skill was activated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationMeans {
    /// With the agent's own tool for skills.
    #[default]
    Tool,
    /// By reading its SKILL.md.
    Read,
}

/// How a run ended, as the last line of practicum-jsonl says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonlEnding {
    Finished,
    RateLimited,
    AuthFailed,
    ApiFailed,
    OverBudget,
}

impl From<JsonlEnding> for AgentEnding {
    fn from(ending: JsonlEnding) -> Self {
        match ending {
            JsonlEnding::Finished => AgentEnding::Finished,
            JsonlEnding::RateLimited => AgentEnding::RateLimited,
            JsonlEnding::AuthFailed => AgentEnding::AuthFailed,
            JsonlEnding::ApiFailed => AgentEnding::ApiFailed,
            JsonlEnding::OverBudget => AgentEnding::OverBudget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_of_the_format() {
        for (line, expected) in [
            (
                json!({"type": "start", "schema_version": 1}),
                Some(JsonlEvent::Start {
                    schema_version: 1,
                    agent: None,
                    version: None,
                    model: None,
                    skills: None,
                    tools: None,
                    session: None,
                }),
            ),
            (json!({"type": "text", "text": "x", "new": 1}), Some(JsonlEvent::Text { text: "x".to_owned() })),
            (
                json!({"type": "skill", "name": "s"}),
                Some(JsonlEvent::Skill { name: "s".to_owned(), via: ActivationMeans::Tool }),
            ),
            (
                json!({"type": "usage", "input": 1}),
                Some(JsonlEvent::Usage { input: 1, output: 0, cache_read: 0, cache_write: 0 }),
            ),
            (
                json!({"type": "end", "ending": "over_budget"}),
                Some(JsonlEvent::End { ending: JsonlEnding::OverBudget, message: None, turns: 0 }),
            ),
            (json!({"type": "end", "ending": "exploded"}), None),
            (json!({"type": "tomorrow"}), None),
            (json!({"text": "x"}), None),
        ] {
            assert_eq!(serde_json::from_value::<JsonlEvent>(line.clone()).ok(), expected, "{line}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let event = JsonlEvent::ToolResult { id: "a".to_owned(), ok: false, content: "b\nc".to_owned() };
        let line = serde_json::to_string(&event).expect("JSON");
        assert_eq!(line, r#"{"type":"tool_result","id":"a","ok":false,"content":"b\nc"}"#);
        assert_eq!(serde_json::from_str::<JsonlEvent>(&line).ok(), Some(event));
    }
}
