//! The noise of cases: results that vary although nothing was changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the results of cases vary although nothing changed: `.practicum/noise.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "How much results vary although nothing changed (noise.json, noise --json)")]
pub struct Noise {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub cases: Vec<NoisyCase>,
}

/// The results of runs of one case between which nothing changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoisyCase {
    pub suite: String,
    pub id: String,
    pub agent: String,
    pub model: Option<String>,
    pub mode: String,
    pub arm: String,
    /// The number of scored runs.
    pub runs: u64,
    pub passed: u64,
    /// The probability that two of these runs differ; `None` for fewer than two runs.
    pub flip_rate: Option<f64>,
}

impl NoisyCase {
    /// Says whether the case both passed and failed although nothing was changed.
    pub fn is_flaky(&self) -> bool {
        self.passed > 0 && self.passed < self.runs
    }
}
