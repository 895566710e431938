use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;

/// What a judge noticed beside the statements it was asked about. It changes no verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remarks {
    /// Behaviour that matters and that no statement of the case is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// What the agent says of its own work, held against the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub claim: String,
    /// Whether the record bears it out.
    pub verified: bool,
    pub evidence: String,
}

impl Remarks {
    pub fn is_empty(&self) -> bool {
        self.uncovered.is_empty() && self.claims.is_empty()
    }
}

/// One of several answers to the same question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Vote {
    pub verdict: Verdict,
    pub score: Option<f64>,
    pub rationale: String,
}
