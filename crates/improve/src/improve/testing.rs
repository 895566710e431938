//! Records for tests.

use practicum_core::model::{
    AgentEnding, Arm, CheckResult, Condition, SkillUse, SkillUseMode, TokenUsage, TrialId, TrialRecord,
    Verdict,
};

/// Makes one trial of a case of the suite `s`, with one check.
pub fn record(case: &str, attempt: u32, passes: bool) -> TrialRecord {
    let condition =
        Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: SkillUseMode::Baseline };
    let verdict = if passes { Verdict::Pass } else { Verdict::Fail };
    let check = serde_json::json!({
        "check": "c", "required": true, "verdict": verdict, "score": null, "scale": null,
        "rationale": "r", "evidence": [], "flags": [],
    });
    let check: CheckResult = serde_json::from_value(check).expect("a check");
    let record = serde_json::json!({
        "trial": TrialId::new("s", case, &condition, attempt),
        "suite": "s", "case": case, "condition": condition, "attempt": attempt,
        "ended": AgentEnding::Finished, "ended_because": null, "verdict": verdict, "checks": [check],
        "fired": null, "skills": SkillUse::default(), "usage": TokenUsage::default(), "cost_usd": 0.0,
        "model": null, "seconds": 1.0,
    });
    serde_json::from_value(record).expect("a record")
}
