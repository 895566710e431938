//! Records for the tests of the pipeline.

use practicum_core::model::testing::record;
use practicum_core::model::{AgentEnding, NotScoredReason, TrialRecord, Verdict};

/// Makes a record of which only the ending matters.
pub fn ended_record(ended: AgentEnding) -> TrialRecord {
    let verdict = Verdict::NotScored(NotScoredReason::Ended(ended));
    TrialRecord { ended, cost_usd: None, seconds: 0.0, ..record("c", 1, verdict) }
}
