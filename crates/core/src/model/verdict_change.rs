//! The differences between two gradings of one trial.

use schemars::JsonSchema;
use serde::Serialize;

use super::{CheckResult, TrialId, TrialRecord, Verdict};

/// A verdict that regrading changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerdictChange {
    /// The id of the trial.
    pub trial: TrialId,
    /// The id of the case.
    pub case: String,
    /// The check; `None` for the verdict of the whole trial.
    pub check: Option<String>,
    /// The earlier verdict; `None` if the check did not exist then.
    pub old: Option<Verdict>,
    /// The new verdict; `None` if the check no longer exists.
    pub new: Option<Verdict>,
    /// Why the verdict changed.
    pub why: String,
}

/// Lists the differences between two gradings of one trial. `is_changed` says whether the check with this id is no
/// longer the same check.
pub fn changed_verdicts(
    old: &TrialRecord,
    new: &TrialRecord,
    is_changed: impl Fn(&str) -> bool,
) -> Vec<VerdictChange> {
    let change =
        |check: Option<&str>, before: Option<&Verdict>, now: Option<&Verdict>, why: String| VerdictChange {
            trial: new.trial.clone(),
            case: new.case.clone(),
            check: check.map(str::to_owned),
            old: before.cloned(),
            new: now.cloned(),
            why,
        };
    let mut changes = Vec::new();
    if old.verdict != new.verdict {
        let why = match &new.verdict {
            Verdict::NotScored(why) => why.describe(),
            Verdict::Pass | Verdict::Fail => "its checks decide so".to_owned(),
        };
        changes.push(change(None, Some(&old.verdict), Some(&new.verdict), why));
    }
    let of = |results: &[CheckResult], id: &str| results.iter().find(|result| result.check == id).cloned();
    for now in &new.checks {
        let id = now.check.as_str();
        match of(&old.checks, id) {
            None => {
                let why = format!("the check is new: {}", now.rationale);
                changes.push(change(Some(id), None, Some(&now.verdict), why));
            }
            Some(before) if before.verdict != now.verdict => {
                let why = match (&now.verdict, now.scale) {
                    (Verdict::NotScored(_), _) => now.rationale.clone(),
                    _ if is_changed(id) => format!("the check has changed: {}", now.rationale),
                    (Verdict::Pass | Verdict::Fail, Some(_)) => format!("judged anew: {}", now.rationale),
                    (Verdict::Pass | Verdict::Fail, None) => now.rationale.clone(),
                };
                changes.push(change(Some(id), Some(&before.verdict), Some(&now.verdict), why));
            }
            Some(_) => {}
        }
    }
    for before in &old.checks {
        if of(&new.checks, &before.check).is_none() {
            let why = "the eval no longer has this check".to_owned();
            changes.push(change(Some(&before.check), Some(&before.verdict), None, why));
        }
    }
    changes
}
