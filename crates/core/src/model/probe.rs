//! The records of probes, which test before the trials whether a measurement is possible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentEnding, TokenUsage, TrialId, TrialRecord};

/// What came of telling an agent to use a skill, before it was asked anything that counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// Also the name of its folder in `probes/`.
    pub trial: TrialId,
    /// The first suite that is about the skill.
    pub suite: String,
    pub agent: String,
    /// The model that was asked for; `None` is the agent's own choice.
    pub model: Option<String>,
    pub skill: String,
    /// Whether the skill was seen to be taken up.
    pub fired: bool,
    /// Why not, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ProbeFailure>,
    pub ended: AgentEnding,
    pub usage: TokenUsage,
    pub cost_usd: Option<f64>,
    pub seconds: f64,
}

impl ProbeRecord {
    pub fn new(skill: &str, record: &TrialRecord, trouble: Option<ProbeFailure>) -> Self {
        Self {
            trial: record.trial.clone(),
            suite: record.suite.clone(),
            agent: record.condition.agent.clone(),
            model: record.condition.model.clone(),
            skill: skill.to_owned(),
            fired: trouble.is_none(),
            trouble,
            ended: record.ended,
            usage: record.usage,
            cost_usd: record.cost_usd,
            seconds: record.seconds,
        }
    }

    /// Describes the probe in one line for people.
    pub fn describe(&self) -> String {
        let whose = format!("{} with {}", self.skill, self.agent);
        match &self.trouble {
            None => format!("probe of {whose}: it can be taken up"),
            Some(trouble) => format!("probe of {whose}: {}; {}", trouble.why, trouble.hint),
        }
    }
}

/// Why a skill could not be taken up, or not be seen to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeFailure {
    pub kind: ProbeFailureKind,
    /// What was seen, in a sentence.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeFailureKind {
    /// The agent's own listing does not have it.
    NotVisible,
    /// The agent called for it, and was told that there is none of that name.
    NameRejected,
    /// The agent called for it, and its own rules forbid that.
    PermissionDenied,
    /// Its frontmatter keeps it from the model.
    KeptFromModel,
    /// The model was told nothing of what it is for.
    DescriptionMissing,
    /// The model was told only a part of what it is for.
    DescriptionCut,
    NotLoggedIn,
    RateLimited,
    ApiFailed,
    TimedOut,
    OverBudget,
    /// The agent did not run, or not to its end.
    AgentFailed,
    /// Nothing that the agent shows would tell whether it was taken up.
    NotSeen,
    /// It was there to be taken up, and was not.
    NotTaken,
}
