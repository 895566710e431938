use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentEnding, RelPath};

/// What was seen of one run, the same for every agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    pub ended: AgentEnding,
    /// What the process or the stream itself said about an ending that is not `RunFinishedEvent`.
    pub ended_because: Option<String>,
    /// Everything the agent said and did, in order, over all turns.
    pub steps: Vec<Step>,
    /// The last assistant message of the last turn.
    pub output: String,
    /// The skills the agent itself said it could use; `None` if it does not say.
    pub skills_listed: Option<Vec<String>>,
    /// The commands it said a user could give, its own among them. A command file is one of these.
    #[serde(default)]
    pub commands_listed: Vec<String>,
    pub activated: Vec<ActivatedSkill>,
    /// Skills that it tried to take up and was not given.
    #[serde(default)]
    pub refused: Vec<RefusedSkill>,
    /// Whether the agent's stream would not have shown a tool call.
    #[serde(default)]
    pub hides_tools: bool,
    /// Why not all that the agent said is known, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    pub files: Vec<FileChange>,
    pub usage: TokenUsage,
    pub cost_usd: Option<f64>,
    /// Skills of the user's own that the agent lists.
    pub leaked: Vec<String>,
    pub api_calls: Option<u64>,
    /// How many user messages were sent.
    pub turns: usize,
    pub model: Option<String>,
    pub agent_version: Option<String>,
    pub seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A user message of ours, which begins a turn.
    User(String),
    Text(String),
    Tool(ToolCall),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub name: String,
    pub input: Value,
    pub result: Option<String>,
    /// `None` while no result was seen.
    pub ok: Option<bool>,
}

/// A skill that the agent took up by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivatedSkill {
    /// As the agent named it, without a plugin's namespace.
    pub skill: String,
    /// What stands before its colon: a plugin, or the folders of a command.
    pub plugin: Option<String>,
    pub evidence: ActivationEvidence,
}

impl ActivatedSkill {
    /// Whether it is known by this name, with or without what stands before the colon.
    pub fn has_name(&self, name: &str) -> bool {
        self.skill == name || self.full_name() == name
    }

    /// The name with what stands before its colon.
    pub fn full_name(&self) -> String {
        match &self.plugin {
            Some(plugin) => format!("{plugin}:{}", self.skill),
            None => self.skill.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationEvidence {
    /// The agent's own skill tool, called with success.
    SkillTool,
    /// The skill's SKILL.md was read.
    ReadSkillFile { tool: String },
    /// The canary of its staged copy turned up.
    Canary { seen_in: String },
}

/// A line in the staged copy of a skill that stands nowhere else and cannot be guessed: where it turns
/// up, the copy was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Canary {
    /// The name that the skill has in the room.
    pub skill: String,
    pub marker: String,
}

impl ActivationEvidence {
    pub fn describe(&self) -> String {
        match self {
            ActivationEvidence::SkillTool => "called the skill tool".to_owned(),
            ActivationEvidence::ReadSkillFile { tool } => format!("read its SKILL.md with {tool}"),
            ActivationEvidence::Canary { seen_in } => format!("showed a line of its SKILL.md in {seen_in}"),
        }
    }
}

/// A skill that the agent called for and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSkill {
    /// As the agent named it, without a plugin's namespace.
    pub skill: String,
    pub by: SkillRefusalSource,
    /// What the agent was told.
    pub said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillRefusalSource {
    /// The skill tool: it knows no such skill, or cannot give it.
    SkillTool,
    /// The agent's own rules of what may be done unasked.
    Permissions,
}

/// Whether a skill fired in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedActivation {
    Yes(ActivationEvidence),
    No,
    /// The run did not get far enough, or was not seen well enough, to say no.
    Unknown(String),
}

impl Observation {
    /// A run of which nothing was seen but its end.
    pub fn with_ending(ended: AgentEnding) -> Self {
        Self {
            ended,
            ended_because: None,
            steps: Vec::new(),
            output: String::new(),
            skills_listed: None,
            commands_listed: Vec::new(),
            activated: Vec::new(),
            refused: Vec::new(),
            hides_tools: false,
            unread: None,
            files: Vec::new(),
            usage: TokenUsage::default(),
            cost_usd: None,
            leaked: Vec::new(),
            api_calls: None,
            turns: 0,
            model: None,
            agent_version: None,
            seconds: 0.0,
        }
    }

    pub fn activation_of(&self, skill: &str) -> ObservedActivation {
        let seen = self.activated.iter().find(|activated| activated.has_name(skill));
        match seen {
            Some(activated) => ObservedActivation::Yes(activated.evidence.clone()),
            None if !self.ended.can_be_graded() => {
                ObservedActivation::Unknown(self.ended.describe().to_owned())
            }
            None if self.hides_tools => {
                ObservedActivation::Unknown("the agent's stream shows no tool calls".to_owned())
            }
            None => ObservedActivation::No,
        }
    }

    /// Takes the canaries that turned up as evidence. That one did not says nothing: an agent need not
    /// repeat what it reads.
    pub fn add_canary_evidence(&mut self, canaries: &[Canary]) {
        for Canary { skill, marker } in canaries {
            let in_step = self.steps.iter().find_map(|step| match step {
                Step::User(_) => None,
                Step::Text(text) => text.contains(marker).then(|| "its answer".to_owned()),
                Step::Tool(call) => {
                    let result = call.result.as_ref().filter(|result| result.contains(marker));
                    result.map(|_| format!("the result of {}", call.name))
                }
            });
            let in_output = || self.output.contains(marker).then(|| "its answer".to_owned());
            if let Some(seen_in) = in_step.or_else(in_output) {
                let evidence = ActivationEvidence::Canary { seen_in };
                self.activated.push(ActivatedSkill { skill: skill.clone(), plugin: None, evidence });
            }
        }
    }

    /// All assistant text, in order, a blank line between messages.
    pub fn all_text(&self) -> String {
        self.join_texts(&self.steps)
    }

    /// All assistant text after the last user message, in order, a blank line between messages.
    pub fn last_turn_text(&self) -> String {
        let start = self.steps.iter().rposition(|step| matches!(step, Step::User(_))).map_or(0, |at| at + 1);
        self.join_texts(&self.steps[start..])
    }

    fn join_texts(&self, steps: &[Step]) -> String {
        let texts = steps.iter().filter_map(|step| match step {
            Step::Text(text) => Some(text.as_str()),
            Step::User(_) | Step::Tool(_) => None,
        });
        texts.chain(self.output_outside_steps()).collect::<Vec<&str>>().join("\n\n")
    }

    /// The last answer where it stands only in `output`: a stream that is nothing but an answer is
    /// not kept twice.
    pub fn output_outside_steps(&self) -> Option<&str> {
        let last_turn = self.steps.iter().rev().take_while(|step| !matches!(step, Step::User(_)));
        let said = last_turn.into_iter().any(|step| matches!(step, Step::Text(_)));
        (!said && !self.output.is_empty()).then_some(self.output.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    pub path: RelPath,
    pub change: FileChangeKind,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChangeKind {
    Created,
    Changed,
    Deleted,
}

/// A file that the agent was given to read, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenFile {
    pub path: RelPath,
    pub fate: GivenFileFate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GivenFileFate {
    Unchanged,
    Changed,
    Deleted,
}

impl GivenFileFate {
    pub fn name(self) -> &'static str {
        match self {
            GivenFileFate::Unchanged => "unchanged",
            GivenFileFate::Changed => "changed",
            GivenFileFate::Deleted => "deleted",
        }
    }
}

impl GivenFile {
    /// What a reader of the results has to know of it.
    pub fn describe_problem(&self) -> Option<String> {
        let word = self.fate.name();
        (self.fate != GivenFileFate::Unchanged)
            .then(|| format!("the agent {word} {}, which was given as read-only", self.path))
    }
}

/// Tokens, as the agent or the API counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl TokenUsage {
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    pub fn add(&mut self, other: TokenUsage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}
