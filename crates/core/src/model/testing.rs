//! Records and check results for tests.

use super::{
    AgentEnding, Arm, CheckResult, Condition, Remarks, SkillUse, SkillUseMode, TokenUsage, TrialId,
    TrialRecord, Verdict,
};

/// Makes the record of a finished trial with this verdict.
pub fn record(case: &str, attempt: u32, verdict: Verdict) -> TrialRecord {
    let condition =
        Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: SkillUseMode::Baseline };
    TrialRecord {
        trial: TrialId::new("s", case, &condition, attempt),
        key: None,
        reused_from: None,
        repeats: None,
        suite: "s".into(),
        case: case.into(),
        condition,
        attempt,
        ended: AgentEnding::Finished,
        ended_because: None,
        limit_resets_at: None,
        verdict,
        score: None,
        checks: Vec::new(),
        expect: None,
        fired: None,
        skills: SkillUse::default(),
        usage: TokenUsage::default(),
        cost_usd: Some(0.5),
        model: None,
        seconds: 2.0,
        notes: Vec::new(),
        remarks: Remarks::default(),
        predicted: None,
        shortened_evidence: None,
        judging: None,
        judged_by: None,
        user: None,
        mock_model: None,
    }
}

/// Makes a required check with this verdict.
pub fn check(id: &str, verdict: Verdict) -> CheckResult {
    CheckResult {
        check: id.into(),
        name: None,
        required: true,
        verdict,
        score: None,
        scale: None,
        rationale: String::new(),
        evidence: Vec::new(),
        weak: None,
        flags: Vec::new(),
        votes: Vec::new(),
        criteria: None,
        weight: None,
    }
}
