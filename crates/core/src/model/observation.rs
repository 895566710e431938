//! An observation: what one execution of an agent did, in the same form for every agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentEnding, MockCall, RelPath, SkillTextFinding, UncertainActivation};

/// Everything that was observed of one execution of an agent, in the same form for every agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// How the agent's process ended.
    pub ended: AgentEnding,
    /// The message of the process or of its stream about an ending that is not `AgentEnding::Finished`.
    pub ended_because: Option<String>,
    /// When the limit of the account resets that ended the run, in seconds since 1970; `None` if that is not known.
    pub limit_resets_at: Option<u64>,
    /// Everything the agent said and did, in order, over all turns.
    pub steps: Vec<Step>,
    /// The last assistant message of the last turn.
    pub output: String,
    /// The skills that the agent says it can use; `None` if it does not say.
    pub skills_listed: Option<Vec<String>>,
    /// The commands that the agent says a user can give, including its own. A command file is one of these.
    #[serde(default)]
    pub commands_listed: Vec<String>,
    /// The skills that the agent activated, with the evidence for each.
    pub activated: Vec<ActivatedSkill>,
    /// Skills that the agent tried to activate and did not get.
    #[serde(default)]
    pub refused: Vec<RefusedSkill>,
    /// Possible activations that the stream does not show well enough.
    #[serde(default)]
    pub uncertain: Vec<UncertainActivation>,
    /// What the texts that the model received show about the skills.
    #[serde(default)]
    pub text_findings: Vec<SkillTextFinding>,
    /// Whether the agent's stream does not show tool calls.
    #[serde(default)]
    pub hides_tools: bool,
    /// The reason why the agent's stream was not read completely, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// The files that the agent created, changed or deleted.
    pub files: Vec<FileChange>,
    /// The calls that mocks got, in order; `None` if nothing was mocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_calls: Option<Vec<MockCall>>,
    /// The tokens that the agent used.
    pub usage: TokenUsage,
    /// The cost in USD; `None` if it is unknown.
    pub cost_usd: Option<f64>,
    /// Skills from the user's own folders that the agent lists.
    pub leaked: Vec<String>,
    /// The number of requests to the model; `None` if it is unknown.
    pub api_calls: Option<u64>,
    /// The number of user messages that were sent.
    pub turns: usize,
    /// The model that the agent reports; `None` if it reports none.
    pub model: Option<String>,
    /// The version that the agent reports; `None` if it reports none.
    pub agent_version: Option<String>,
    /// The duration of the run.
    pub seconds: f64,
    /// What nobody observed, so that its absence above means nothing.
    #[serde(default, skip_serializing_if = "MissingEvidence::is_none")]
    pub missing: MissingEvidence,
}

/// The parts of an observation that its source cannot show. A trial in a workspace shows all of them; a session that an
/// agent recorded elsewhere does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingEvidence {
    /// Whether it is not known which files the agent created, changed or deleted.
    pub files: bool,
    /// Whether it is not known how long the agent worked.
    pub seconds: bool,
}

impl MissingEvidence {
    /// Says whether nothing is missing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Observation {
    /// Whether the agent said nothing, called no tool and changed no file.
    pub fn shows_nothing(&self) -> bool {
        let is_nothing = |step: &Step| match step {
            Step::User(_) => true,
            Step::Text(text) => text.trim().is_empty(),
            Step::Tool(_) => false,
        };
        self.output.trim().is_empty()
            && self.files.is_empty()
            && self.activated.is_empty()
            && self.steps.iter().all(is_nothing)
    }
}

/// A step of an agent's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A user message that the program sent, which begins a turn.
    User(String),
    /// A text that the agent wrote.
    Text(String),
    /// A tool call of the agent.
    Tool(ToolCall),
}

/// A tool call of an agent, with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments of the call.
    pub input: Value,
    /// The result of the call; `None` if no result was seen.
    pub result: Option<String>,
    /// Whether the call succeeded; `None` while no result was seen.
    pub ok: Option<bool>,
}

/// A skill that the agent activated by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivatedSkill {
    /// The name as the agent gave it, without a plugin's namespace.
    pub skill: String,
    /// The part before the colon: a plugin, or the folders of a command.
    pub plugin: Option<String>,
    /// What shows that the skill was activated.
    pub evidence: ActivationEvidence,
}

impl ActivatedSkill {
    /// Gives the name with the part before the colon.
    pub fn full_name(&self) -> String {
        match &self.plugin {
            Some(plugin) => format!("{plugin}:{}", self.skill),
            None => self.skill.clone(),
        }
    }
}

/// What shows that a skill was activated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationEvidence {
    /// The agent called its own skill tool with success.
    SkillTool,
    /// The agent read the skill's SKILL.md.
    ReadSkillFile {
        /// The tool that read the file.
        tool: String,
    },
    /// The text of the skill was among what the model received.
    TextReached {
        /// Where the text appeared: a request to the model, or the result of a tool.
        seen_in: String,
    },
    /// The canary of the staged copy appeared in the agent's output.
    Canary {
        /// Where the canary appeared: the agent's answer, or the result of a tool.
        seen_in: String,
    },
}

/// A random line in the staged copy of a skill. If the line appears in the output of the agent, the agent has read
/// the copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Canary {
    /// The name of the skill in the workspace.
    pub skill: String,
    /// The random text that the line contains.
    pub marker: String,
}

impl ActivationEvidence {
    /// Describes the evidence as the end of a sentence that begins with the agent: `read its SKILL.md with Read`.
    pub fn describe(&self) -> String {
        match self {
            ActivationEvidence::SkillTool => "called the skill tool".to_owned(),
            ActivationEvidence::ReadSkillFile { tool } => format!("read its SKILL.md with {tool}"),
            ActivationEvidence::TextReached { seen_in } => format!("got its text in {seen_in}"),
            ActivationEvidence::Canary { seen_in } => format!("showed a line of its SKILL.md in {seen_in}"),
        }
    }
}

/// A skill that the agent asked for and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSkill {
    /// The name as the agent gave it, without a plugin's namespace.
    pub skill: String,
    /// Who refused the skill.
    pub by: SkillRefusalSource,
    /// The answer that the agent got.
    pub said: String,
}

/// Who refused a skill to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillRefusalSource {
    /// The skill tool: it knows no such skill, or cannot provide it.
    SkillTool,
    /// The agent's own permission rules.
    Permissions,
}

/// Whether a skill was activated in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedActivation {
    /// The skill was activated, and this shows it.
    Yes(ActivationEvidence),
    /// The skill was not activated.
    No,
    /// The run did not get far enough, or was not observed well enough, to say no.
    Unknown(String),
}

impl Observation {
    /// Makes an observation in which nothing but the ending is known.
    pub fn with_ending(ended: AgentEnding) -> Self {
        Self {
            ended,
            ended_because: None,
            limit_resets_at: None,
            steps: Vec::new(),
            output: String::new(),
            skills_listed: None,
            commands_listed: Vec::new(),
            activated: Vec::new(),
            refused: Vec::new(),
            uncertain: Vec::new(),
            text_findings: Vec::new(),
            hides_tools: false,
            unread: None,
            files: Vec::new(),
            mock_calls: None,
            usage: TokenUsage::default(),
            cost_usd: None,
            leaked: Vec::new(),
            api_calls: None,
            turns: 0,
            model: None,
            agent_version: None,
            seconds: 0.0,
            missing: MissingEvidence::default(),
        }
    }

    /// Adds the canaries that appeared as evidence of activation. A missing canary proves nothing: an agent need
    /// not repeat what it reads.
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

    /// Gives all assistant text, in order, with a blank line between messages.
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

    /// Gives the last answer if it is only in `output` and not among the steps. Streams that consist of an answer
    /// alone are not stored twice.
    pub fn output_outside_steps(&self) -> Option<&str> {
        let last_turn = self.steps.iter().rev().take_while(|step| !matches!(step, Step::User(_)));
        let said = last_turn.into_iter().any(|step| matches!(step, Step::Text(_)));
        (!said && !self.output.is_empty()).then_some(self.output.as_str())
    }
}

/// A file that the agent created, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The path of the file in the workspace.
    pub path: RelPath,
    /// What happened to the file.
    pub change: FileChangeKind,
    /// The size of the file after the change, in bytes; 0 if it is gone.
    pub bytes: u64,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChangeKind {
    /// The file is new.
    Created,
    /// The content of the file changed.
    Changed,
    /// The file is gone.
    Deleted,
}

/// A file that the agent was given to read, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenFile {
    /// The path of the file in the workspace.
    pub path: RelPath,
    /// What became of the file.
    pub fate: GivenFileFate,
}

/// What happened to a file that the agent was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GivenFileFate {
    /// The file has the same content as before.
    Unchanged,
    /// The content of the file changed.
    Changed,
    /// The file is gone.
    Deleted,
}

impl GivenFileFate {
    /// Gives the word for what happened.
    pub fn name(self) -> &'static str {
        match self {
            GivenFileFate::Unchanged => "unchanged",
            GivenFileFate::Changed => "changed",
            GivenFileFate::Deleted => "deleted",
        }
    }
}

impl GivenFile {
    /// Gives a message for the reader of the results if the agent changed or deleted the file.
    pub fn describe_problem(&self) -> Option<String> {
        let word = self.fate.name();
        (self.fate != GivenFileFate::Unchanged)
            .then(|| format!("the agent {word} {}, which was given as read-only", self.path))
    }
}

/// Tokens, as the agent or the API counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens sent to the model that no cache had.
    pub input: u64,
    /// Tokens that the model wrote.
    pub output: u64,
    /// Tokens that the model's cache already had.
    pub cache_read: u64,
    /// Tokens that were put into the model's cache.
    pub cache_write: u64,
}

impl TokenUsage {
    /// Says whether no token is counted.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Adds the tokens of another count.
    pub fn add(&mut self, other: TokenUsage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}
