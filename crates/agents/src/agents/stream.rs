//! Decoders of agents' streams, and the transcripts that they give.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::AgentTurn;
use super::skill_reads::{called_skill, hidden_subagent, is_skill_tool, is_subagent_tool};
use practicum_core::model::{
    ActivatedSkill, ActivationEvidence, RefusedSkill, SkillRefusalSource, Step, TokenUsage, ToolCall,
    UncertainActivation,
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

/// Parses a line of JSON, with a replacement for each lone surrogate.
pub(super) fn parse_event(line: &str) -> Option<Value> {
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

/// Makes a client for one turn of an agent.
pub type NewClient = fn(&AgentTurn<'_>) -> Box<dyn AgentClient>;

/// A kind of decoder, with the name that `practicum.toml` uses for it.
pub struct DecoderKind {
    /// The name of the decoder, as a settings file takes it.
    pub name: &'static str,
    /// Whether the stream has events that show the activation of a skill. If not, the staged copy of a skill
    /// contains a canary.
    pub shows_skills: bool,
    /// Makes a decoder for one process.
    pub new_decoder: fn() -> Box<dyn Decoder>,
    /// Makes the client that talks with the process of one turn; `None` if the process needs no answers.
    pub new_client: Option<NewClient>,
}

/// A client that talks with an agent's process: it writes to the standard input of the process, and answers the lines
/// of its standard output. The decoder reads the same lines afterwards.
pub trait AgentClient: Send {
    /// Gives the text to write before the process has said anything.
    fn first_text(&mut self) -> String;

    /// Reads a line that the process wrote, and gives the answer to it.
    fn answer_line(&mut self, line: &str) -> ClientAnswer;
}

/// The answer of a client to one line of the agent's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientAnswer {
    /// The text to write to the process; may be empty.
    pub text: String,
    /// Whether the turn is over, so that the process can be ended. An error says why it could not begin.
    pub end: Option<Result<(), String>>,
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
    /// Whether `cost_usd` counts the whole session up to here, although `usage` may not.
    pub cost_of_session: bool,
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

impl StreamTranscript {
    /// Records the result of the call at this step, and what it says about skills: an activation or a refusal by the
    /// agent's skill tool, or the actions of a subagent that the stream does not show.
    pub(super) fn record_call_result(&mut self, at: usize, ok: bool, result: Option<String>) {
        let Some(Step::Tool(call)) = self.steps.get_mut(at) else { return };
        call.ok = Some(ok);
        call.result = result;
        self.uncertain.extend(is_subagent_tool(&call.name).then(hidden_subagent));
        match called_skill(call) {
            Some(named) if ok => {
                let (plugin, skill) = match named.rsplit_once(':') {
                    Some((plugin, skill)) => (Some(plugin.to_owned()), skill.to_owned()),
                    None => (None, named.to_owned()),
                };
                let evidence = ActivationEvidence::SkillTool;
                self.activations.push(ActivatedSkill { skill, plugin, evidence });
            }
            Some(_) => self.refused_skills.extend(refused_skill_call(call)),
            None if ok && is_skill_tool(&call.name) => self.uncertain.push(UncertainActivation {
                skill: None,
                why: "the agent's stream does not show which skill it has loaded".to_owned(),
            }),
            None => {}
        }
    }

    /// Ends the transcript of an agent that has finished: it may have done nothing but ask the user a question.
    pub(super) fn set_finished(&mut self) {
        let only_asked =
            matches!(self.steps.as_slice(), [Step::Text(text)] if text.trim_end().ends_with('?'));
        self.end = if only_asked { StreamEnd::AskedUser } else { StreamEnd::Done };
    }
}

/// Classifies the error message of a model API that an agent quotes, by the HTTP status or the words in it.
pub fn classify_api_error(message: &str) -> StreamEnd {
    static REFUSED_LOGIN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)\b(401|403)\b|authentica|unauthori").expect("a pattern"));
    static RATE_LIMIT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)\b429\b|rate.?limit|too many requests").expect("a pattern"));
    let why = message.to_owned();
    if RATE_LIMIT.is_match(message) {
        StreamEnd::RateLimited(why)
    } else if REFUSED_LOGIN.is_match(message) {
        StreamEnd::AuthFailed(why)
    } else {
        StreamEnd::ApiFailed(why)
    }
}

/// Gives the refused skill of a failed call of an agent's skill tool.
pub fn refused_skill_call(call: &ToolCall) -> Option<RefusedSkill> {
    let named = called_skill(call)?;
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
