//! The records of probes, which test before the trials whether a measurement is possible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentEnding, TokenUsage, TrialId, TrialRecord};

/// The result of a probe: before the trials, an agent was asked to activate one skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// The id of the probe, which is also the name of its folder in `probes/`.
    pub trial: TrialId,
    /// The first suite that tests the skill.
    pub suite: String,
    /// The agent that was asked.
    pub agent: String,
    /// The requested model; `None` leaves the choice to the agent.
    pub model: Option<String>,
    /// The skill that the agent was asked to activate.
    pub skill: String,
    /// Whether the skill was activated.
    pub fired: bool,
    /// Why the skill was not activated; `None` if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ProbeFailure>,
    /// How the agent's process ended.
    pub ended: AgentEnding,
    /// The tokens that the agent used.
    pub usage: TokenUsage,
    /// The cost in USD; `None` if it is unknown.
    pub cost_usd: Option<f64>,
    /// The duration of the probe.
    pub seconds: f64,
}

impl ProbeRecord {
    /// Makes the record of a probe from the record of its run. Without a failure, the skill was activated.
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
            None => format!("probe of {whose}: it can be activated"),
            Some(trouble) => format!("probe of {whose}: {}; {}", trouble.why, trouble.hint),
        }
    }
}

/// Why a probe did not show that the skill can be activated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeFailure {
    /// The kind of the reason.
    pub kind: ProbeFailureKind,
    /// What was observed, as one sentence.
    pub why: String,
    /// What the user can do about it.
    pub hint: String,
}

/// The kinds of reasons why a probe failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeFailureKind {
    /// The agent does not list the skill.
    NotVisible,
    /// The agent asked for the skill, and got the answer that no skill has this name.
    NameRejected,
    /// The agent asked for the skill, and the agent's permissions forbid it.
    PermissionDenied,
    /// The frontmatter of the skill does not let the model activate it.
    KeptFromModel,
    /// The model did not get the skill's description.
    DescriptionMissing,
    /// The model got only a part of the skill's description.
    DescriptionCut,
    /// The agent is not logged in.
    NotLoggedIn,
    /// The provider of the model refused requests because there were too many.
    RateLimited,
    /// The model API failed or could not be reached.
    ApiFailed,
    /// The time limit ended the agent.
    TimedOut,
    /// A limit of turns, tokens or money ended the agent.
    OverBudget,
    /// The agent did not start or did not finish.
    AgentFailed,
    /// The agent's output cannot show whether a skill was activated.
    NotSeen,
    /// The skill was available, and the agent did not activate it.
    NotTaken,
}
