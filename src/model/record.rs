use serde::{Deserialize, Serialize};

use super::{CheckResult, Condition, Ended, Observation, TrialId, Usage, Verdict};

/// All that is kept of a trial beside its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    pub trial: TrialId,
    pub suite: String,
    pub case: String,
    pub condition: Condition,
    pub attempt: u32,
    pub ended: Ended,
    pub ended_because: Option<String>,
    pub verdict: Verdict,
    pub checks: Vec<CheckResult>,
    /// Whether the skill fired; `None` where the run cannot say or nobody asked.
    pub fired: Option<bool>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub model: Option<String>,
    pub seconds: f64,
    /// Things worth telling that change no verdict: a failed teardown, a changed fixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl TrialRecord {
    /// The verdict of a trial: the run must have finished, and then every required check holds.
    /// A trial without a required check has nothing that could fail, so it is not a pass.
    pub fn verdict_of(observation: &Observation, checks: &[CheckResult]) -> Verdict {
        use super::Why;
        if !observation.ended.can_be_marked() {
            return Verdict::NotScored(Why::Ended(observation.ended));
        }
        let required = checks.iter().filter(|check| check.required).map(|check| &check.verdict);
        Verdict::all(required)
            .unwrap_or_else(|| Verdict::NotScored(Why::CheckFailed("it has no required check".to_owned())))
    }
}
