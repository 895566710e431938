//! The noise of cases: results that vary although nothing was changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Digest;

/// How much the results of cases vary although nothing changed: `.practicum/noise.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "How much results vary although nothing changed (noise.json, noise --json)")]
pub struct Noise {
    /// The version of this document's format.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The measured cases.
    pub cases: Vec<NoisyCase>,
}

/// The results of runs of one case between which nothing changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoisyCase {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub id: String,
    /// The agent.
    pub agent: String,
    /// The requested model; `None` leaves the choice to the agent.
    pub model: Option<String>,
    /// The mode: how strongly the system prompt urges the agent to use skills.
    pub mode: String,
    /// The arm: `with` or `without` the skill, or a version such as `v2`.
    pub arm: String,
    /// The digest of the case. A case of another suite or id with the same digest is the same case, and a case that was
    /// changed is another one. Measurements of earlier versions have none and are found by suite and id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
    /// The number of scored runs.
    pub runs: u64,
    /// The number of runs that passed.
    pub passed: u64,
    /// The probability that two of these runs differ; `None` for fewer than two runs.
    pub flip_rate: Option<f64>,
}

impl NoisyCase {
    /// Says whether this is about the case with this content, suite and id.
    pub fn is_about_case(&self, content: Option<&Digest>, suite: &str, id: &str) -> bool {
        match &self.content {
            Some(known) => Some(known) == content,
            None => (self.suite.as_str(), self.id.as_str()) == (suite, id),
        }
    }

    /// Says whether the case both passed and failed although nothing was changed.
    pub fn is_flaky(&self) -> bool {
        self.passed > 0 && self.passed < self.runs
    }
}

/// The results of a run that later runs must not fall behind: what `practicum baseline` stores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "The results that later runs must not fall behind (practicum-baseline.json)")]
pub struct Baseline {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run that the results come from.
    pub run: String,
    /// The results of each case.
    pub cases: Vec<NoisyCase>,
}
