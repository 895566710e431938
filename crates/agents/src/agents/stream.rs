//! Decoders of agents' streams, and the transcripts that they give.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use practicum_core::model::{
    ActivatedSkill, RefusedSkill, SkillRefusalSource, Step, TokenUsage, ToolCall, UncertainActivation,
};

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

    /// Reads the next bytes. Called only if the decoder wants bytes.
    fn read_bytes(&mut self, _bytes: &[u8]) {}

    /// Says beforehand how many bytes will come.
    fn expect_bytes(&mut self, _bytes: u64) {}

    /// Gives what was decoded, after the last line.
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
    /// The name of the decoder, as a settings file takes it.
    pub name: &'static str,
    /// Whether the stream has events that show the activation of a skill. If not, the staged copy of a skill
    /// contains a canary.
    pub shows_skills: bool,
    /// Makes a decoder for one process.
    pub new_decoder: fn() -> Box<dyn Decoder>,
}

/// The decoded stream of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamTranscript {
    /// The messages and tool calls, in order.
    pub steps: Vec<Step>,
    /// The last assistant message.
    pub output: String,
    /// The skills that the agent says it has; `None` if it does not say.
    pub skills_listed: Option<Vec<String>>,
    /// The slash commands that the agent says it has.
    pub commands_listed: Vec<String>,
    /// The skills that the agent activated with a tool for skills. Skills that it read as files follow from the
    /// steps.
    pub activations: Vec<ActivatedSkill>,
    /// Possible activations that the stream does not show.
    pub uncertain: Vec<UncertainActivation>,
    /// Skills that the agent asked for and did not get.
    pub refused_skills: Vec<RefusedSkill>,
    /// Whether the stream does not show tool calls, so that their absence means nothing.
    pub hides_tools: bool,
    /// The reason why the stream was not read completely, if it was not.
    pub unread_reason: Option<String>,
    /// The tokens that the agent used.
    pub usage: TokenUsage,
    /// Whether `usage` and `cost_usd` count the whole session up to here, and not only this process.
    pub totals_of_session: bool,
    /// The cost in USD, if the stream says it.
    pub cost_usd: Option<f64>,
    /// The number of requests to the model, if the stream says it.
    pub api_calls: Option<u64>,
    /// The model that answered, if the stream says it.
    pub model: Option<String>,
    /// The version of the agent, if the stream says it.
    pub version: Option<String>,
    /// When the limit of the account resets that refused the request, in seconds since 1970, if the stream says it.
    pub limit_resets_at: Option<u64>,
    /// The session's id, which a later turn needs.
    pub session: Option<String>,
    /// The ending that the stream reports.
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
    /// The agent finished its work.
    Done,
    /// Done, with nothing but a question to the user.
    AskedUser,
    /// The model API refused because of a rate limit, with this message.
    RateLimited(String),
    /// The login was refused, with this message.
    AuthFailed(String),
    /// The model API failed, with this message.
    ApiFailed(String),
    /// The agent stopped at a limit of turns or cost, with this message.
    OverBudget(String),
    /// The agent was interrupted, with this message.
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
