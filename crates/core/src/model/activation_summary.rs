//! The activation part of a run's summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ActivationExpectation, Estimate};

/// Observed activation compared with the expected one. Each count is a number of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationSummary {
    /// The rates over all skills, modes and agents.
    #[serde(flatten)]
    pub all: ActivationRates,
    /// The rates of each skill; `modes` and `agents` have those of each mode and agent.
    pub skills: Vec<NamedActivationRates>,
    /// The rates of each mode.
    pub modes: Vec<NamedActivationRates>,
    /// The rates of each agent.
    pub agents: Vec<NamedActivationRates>,
    /// How often each expected skill led to each activated skill.
    pub routing: Vec<SkillRouteCount>,
    /// The number of cases of which no run shows whether the skill was activated. They neither pass nor fail.
    pub unmeasured: u64,
    /// The number of runs whose prompt names the skill and in which nothing went wrong. They count in no rate,
    /// because the agent had nothing to decide.
    pub invoked: u64,
}

/// Predicted activation compared with the expected one. Each count is a number of predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedActivation {
    /// The rates over all skills.
    #[serde(flatten)]
    pub all: ActivationRates,
    /// The rates of each skill.
    pub skills: Vec<NamedActivationRates>,
}

/// Counts of right and wrong activations, and the rates that follow from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationRates {
    /// The number of true positives: activated, as expected.
    pub tp: u64,
    /// The number of false positives: activated, and not expected.
    pub fp: u64,
    /// The number of true negatives: not activated, as expected.
    pub tn: u64,
    /// The number of false negatives: not activated, although expected.
    #[serde(rename = "fn")]
    pub fn_: u64,
    /// The number of runs whose case accepts both outcomes.
    pub acceptable: u64,
    /// The number of runs that do not show whether the skill was activated.
    pub error: u64,
    /// The share of activations that were expected.
    pub precision: Estimate,
    /// The share of expected activations that happened.
    pub recall: Estimate,
    /// The harmonic mean of precision and recall.
    pub f1: Estimate,
    /// The share of runs in which the skill was activated exactly as expected.
    pub accuracy: Estimate,
}

/// The activation rates of one skill, mode or agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedActivationRates {
    /// The name of the skill, mode or agent.
    pub name: String,
    /// The counts and rates.
    #[serde(flatten)]
    pub rates: ActivationRates,
}

/// How many runs activated one skill where another, or the same, was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRouteCount {
    /// The expected skill; `None` if no skill under test should be activated.
    pub expected: Option<String>,
    /// The activated skill; `None` if none was.
    pub fired: Option<String>,
    /// The number of runs.
    pub runs: u64,
}

/// The share of a case's runs in which the skill was activated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseActivationRate {
    /// The share of runs that activated the skill.
    #[serde(flatten)]
    pub rate: Estimate,
    /// Whether the case requires activation, forbids it or accepts both.
    pub expect: ActivationExpectation,
    /// The threshold of the rate, if the rate decides the case; `None` if each run is graded by itself.
    pub threshold: Option<f64>,
    /// Whether the rate passes the threshold; `None` if it was not measured or the case accepts both outcomes.
    pub passes: Option<bool>,
}
