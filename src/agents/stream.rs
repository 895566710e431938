use crate::model::{Activated, Refused, RefusedBy, Step, ToolCall, Usage};

/// Reads one process's standard output, line by line.
pub trait Decoder: Send {
    fn line(&mut self, line: &str);

    /// Whether it would rather have the bytes as they come than lines.
    fn takes_bytes(&self) -> bool {
        false
    }

    fn bytes(&mut self, _bytes: &[u8]) {}

    /// Told beforehand how many bytes there are.
    fn expect(&mut self, _bytes: u64) {}

    fn finish(self: Box<Self>) -> Transcript;
}

/// A way to read a stream, by the name that `practicum.toml` uses for it.
pub struct DecoderKind {
    pub name: &'static str,
    /// Whether it has events in which a skill that is taken up shows. Where it has none, the staged copy
    /// of a skill carries a canary.
    pub shows_skills: bool,
    pub start: fn() -> Box<dyn Decoder>,
}

/// What one process said in its stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    pub steps: Vec<Step>,
    /// The last assistant message.
    pub output: String,
    pub skills_listed: Option<Vec<String>>,
    pub commands_listed: Vec<String>,
    pub activated: Vec<Activated>,
    /// Skills that it called for and did not get.
    pub refused: Vec<Refused>,
    /// Whether the stream would not have shown a tool call, so that none seen means nothing.
    pub hides_tools: bool,
    pub usage: Usage,
    /// Whether `usage` and `cost_usd` count the whole session up to here, and not only this process.
    pub totals_of_session: bool,
    pub cost_usd: Option<f64>,
    pub api_calls: Option<u64>,
    pub model: Option<String>,
    pub version: Option<String>,
    /// What a later turn needs to go on.
    pub session: Option<String>,
    pub said: Said,
}

/// A call of an agent's skill tool that failed; the input names the skill under this key.
pub fn refused_by_tool(call: &ToolCall, key: &str) -> Option<Refused> {
    let named = call.input[key].as_str()?.trim_start_matches('/');
    let skill = named.rsplit(':').next().unwrap_or(named).to_owned();
    Some(Refused { skill, by: RefusedBy::SkillTool, said: call.result.clone().unwrap_or_default() })
}

/// How the stream itself says that it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Said {
    /// Nothing: it broke off before its last word.
    #[default]
    Nothing,
    Done,
    /// Done, with a question to the user as the only thing said.
    Asked,
    RateLimited(String),
    AuthFailed(String),
    ApiFailed(String),
    OverBudget(String),
    Interrupted(String),
}
