//! Decoders of agents' streams, and the transcripts that they give.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use practicum_core::model::{ActivatedSkill, RefusedSkill, SkillRefusalSource, Step, TokenUsage, ToolCall};

/// A decoder of one process's standard output, line by line.
pub trait Decoder: Send {
    /// Reads a line. `false` if the line cannot be read, so that something is missing.
    fn read_line(&mut self, line: &str) -> bool {
        match parse_event(line) {
            Some(event) => {
                self.read_event(event);
                true
            }
            // A line that does not even begin like JSON is other output of the CLI, and says nothing about the
            // run.
            None => !line.trim_start().starts_with("{\""),
        }
    }

    /// Reads one line of JSON.
    fn read_event(&mut self, _event: Value) {}

    /// Says whether the decoder reads bytes as they come, rather than lines.
    fn wants_bytes(&self) -> bool {
        false
    }

    fn read_bytes(&mut self, _bytes: &[u8]) {}

    /// Says beforehand how many bytes will come.
    fn expect_bytes(&mut self, _bytes: u64) {}

    fn finish(self: Box<Self>) -> StreamTranscript;
}

fn parse_event(line: &str) -> Option<Value> {
    let read = |line: &str| serde_json::from_str(line).ok();
    read(line).or_else(|| read(&replace_lone_surrogates(line)?))
}

/// Replaces each lone surrogate, which some languages write and JSON parsers refuse. `None` if there is none.
fn replace_lone_surrogates(line: &str) -> Option<String> {
    static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
        let whole = r"\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}";
        Regex::new(&format!(r"{whole}|(?<half>\\u[dD][89a-fA-F][0-9a-fA-F]{{2}})")).expect("a pattern")
    });
    let mended = ESCAPES.replace_all(line, |found: &regex::Captures<'_>| match found.name("half") {
        Some(_) => r"\ufffd".to_owned(),
        None => found[0].to_owned(),
    });
    (mended != line).then(|| mended.into_owned())
}

/// A kind of decoder, with the name that `practicum.toml` uses for it.
pub struct DecoderKind {
    pub name: &'static str,
    /// Whether the stream has events that show the activation of a skill. If not, the staged copy of a skill
    /// contains a canary.
    pub shows_skills: bool,
    pub new_decoder: fn() -> Box<dyn Decoder>,
}

/// The decoded stream of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamTranscript {
    pub steps: Vec<Step>,
    /// The last assistant message.
    pub output: String,
    pub skills_listed: Option<Vec<String>>,
    pub commands_listed: Vec<String>,
    pub activations: Vec<ActivatedSkill>,
    /// Skills that the agent asked for and did not get.
    pub refused_skills: Vec<RefusedSkill>,
    /// Whether the stream does not show tool calls, so that their absence means nothing.
    pub hides_tools: bool,
    /// The reason why the stream was not read completely, if it was not.
    pub unread_reason: Option<String>,
    pub usage: TokenUsage,
    /// Whether `usage` and `cost_usd` count the whole session up to here, and not only this process.
    pub totals_of_session: bool,
    pub cost_usd: Option<f64>,
    pub api_calls: Option<u64>,
    pub model: Option<String>,
    pub version: Option<String>,
    /// The session's id, which a later turn needs.
    pub session: Option<String>,
    pub end: StreamEnd,
}

/// Gives the refused skill of a failed call of an agent's skill tool. The input names the skill under this key.
pub fn refused_skill_call(call: &ToolCall, key: &str) -> Option<RefusedSkill> {
    let named = call.input[key].as_str()?.trim_start_matches('/');
    let skill = named.rsplit(':').next().unwrap_or(named).to_owned();
    Some(RefusedSkill {
        skill,
        by: SkillRefusalSource::SkillTool,
        said: call.result.clone().unwrap_or_default(),
    })
}

/// The ending that the stream itself reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StreamEnd {
    /// No ending: the stream broke off.
    #[default]
    BrokenOff,
    Done,
    /// Done, with nothing but a question to the user.
    AskedUser,
    RateLimited(String),
    AuthFailed(String),
    ApiFailed(String),
    OverBudget(String),
    Interrupted(String),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_character_does_not_hide_an_event() {
        for (line, expected) in [
            (r#"{"a": "\ud83d\ude00"}"#, Some(json!({"a": "😀"}))),
            (r#"{"a": "x\ud83d y"}"#, Some(json!({"a": "x\u{fffd} y"}))),
            (r#"{"a": "\ude00\uD83D"}"#, Some(json!({"a": "\u{fffd}\u{fffd}"}))),
            (r#"{"a": "\ud83d\ud83d\ude00"}"#, Some(json!({"a": "\u{fffd}😀"}))),
            (r#"{"a": "\\ud83d \ud83d"}"#, Some(json!({"a": "\\ud83d \u{fffd}"}))),
            (r#"{"a": 1e999}"#, None),
            (r#"{"a": "#, None),
        ] {
            assert_eq!(parse_event(line), expected, "{line}");
        }
    }

    #[test]
    fn chatter_says_nothing_and_a_broken_event_may_have_said_anything() {
        struct Deaf;
        impl Decoder for Deaf {
            fn finish(self: Box<Self>) -> StreamTranscript {
                StreamTranscript::default()
            }
        }
        for (line, expected) in [
            ("{\"type\": \"x\"}", true),
            ("", true),
            ("warning: {\"type\"", true),
            ("{ not: json }", true),
            ("{\"type\": \"to", false),
            ("  {\"n\": 1e999}", false),
        ] {
            assert_eq!(Deaf.read_line(line), expected, "{line}");
        }
    }
}
