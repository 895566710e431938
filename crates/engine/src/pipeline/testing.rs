use practicum_core::model::testing::record;
use practicum_core::model::{Ended, TrialRecord, Verdict, Why};

/// A record of which only the ending matters.
pub fn ended_record(ended: Ended) -> TrialRecord {
    let verdict = Verdict::NotScored(Why::Ended(ended));
    TrialRecord { ended, cost_usd: None, seconds: 0.0, ..record("c", 1, verdict) }
}
