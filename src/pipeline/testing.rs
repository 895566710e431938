use crate::model::{Arm, Condition, Ended, Mode, TrialId, TrialRecord, Usage, Verdict, Why};

/// A record of which only the ending matters.
pub fn ended_record(ended: Ended) -> TrialRecord {
    let condition = Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: Mode::Baseline };
    TrialRecord {
        trial: TrialId::new("s", "c", &condition, 1),
        key: None,
        reused_from: None,
        suite: "s".into(),
        case: "c".into(),
        condition,
        attempt: 1,
        ended,
        ended_because: None,
        verdict: Verdict::NotScored(Why::Ended(ended)),
        checks: Vec::new(),
        expect: None,
        fired: None,
        skills: Default::default(),
        usage: Usage::default(),
        cost_usd: None,
        model: None,
        seconds: 0.0,
        notes: Vec::new(),
        remarks: Default::default(),
        judging: None,
    }
}
