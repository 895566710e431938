//! Restricts judging to some of the criteria.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RunSetupError;
use crate::plan::PlannedSuite;
use practicum_core::model::{
    Case, Check, CheckEvidence, CheckFinding, CheckKind, CheckNeed, GateName, JudgedStatement,
    NotScoredReason, Rule, count_with_noun,
};

/// The selected criteria, if some were named.
pub struct CriteriaSelection {
    /// A note that says what is judged, and how much is not.
    pub note: String,
    pub left_out: usize,
}

/// A judged check about which no judge is asked.
#[derive(Debug)]
struct UnaskedCriterion(JudgedStatement);

impl Rule for UnaskedCriterion {
    fn key(&self) -> &'static str {
        "judge"
    }

    fn value(&self) -> Value {
        let JudgedStatement { statement, context, scale } = &self.0;
        json!({"statement": statement, "context": context, "scale": scale.name()})
    }

    fn check(&self, _evidence: &CheckEvidence<'_>) -> CheckFinding {
        CheckFinding::not_scored(NotScoredReason::NotJudged("left out by --only-criterion".to_owned()))
    }
}

/// Removes every judged check whose id, name or statement contains none of the wanted words, in any case. Other
/// checks stay. It is an error if nothing is left to judge, because then the command would do nothing.
pub fn remove_other_criteria(
    suites: &mut [PlannedSuite],
    wanted: &[String],
) -> Result<Option<CriteriaSelection>, RunSetupError> {
    select_criteria(suites, wanted, |case, is_wanted| case.checks.retain(is_wanted))
}

/// Keeps the matching judged checks and leaves the others without an answer, so that a case with one of these
/// cannot pass.
pub fn leave_other_criteria_open(
    suites: &mut [PlannedSuite],
    wanted: &[String],
) -> Result<Option<CriteriaSelection>, RunSetupError> {
    select_criteria(suites, wanted, |case, is_wanted| {
        for check in &mut case.checks {
            if !is_wanted(check)
                && let CheckKind::Judged(judged) = &check.kind
            {
                // Only a required check keeps a case from passing.
                check.need = CheckNeed::Required;
                check.kind = CheckKind::Rule(Arc::new(UnaskedCriterion(judged.clone())));
            }
        }
    })
}

/// A function that removes checks from a case. Its second argument says whether a check is wanted.
type ChecksRemover = fn(&mut Case, &mut dyn FnMut(&Check) -> bool);

fn select_criteria(
    suites: &mut [PlannedSuite],
    wanted: &[String],
    leave_out: ChecksRemover,
) -> Result<Option<CriteriaSelection>, RunSetupError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = wanted.iter().map(|word| word.to_lowercase()).collect();
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for PlannedSuite { suite, .. } in suites.iter_mut() {
        for case in &mut suite.cases {
            leave_out(case, &mut |check| {
                let CheckKind::Judged(judged) = &check.kind else { return true };
                let name = check.name.as_deref().unwrap_or_default();
                let text = format!("{}\n{name}\n{}", check.id, judged.statement).to_lowercase();
                let is_wanted = words.iter().any(|word| text.contains(word.as_str()));
                if is_wanted { &mut kept } else { &mut left_out }.push(check.id.clone());
                is_wanted
            });
        }
        let judged = |check: &Check| matches!(check.kind, CheckKind::Judged(_));
        if !suite.cases.iter().any(|case| case.checks.iter().any(judged)) {
            suite.gates.retain(|gate| !matches!(gate.name, GateName::CriteriaPassRate | GateName::MeanScore));
        }
    }
    if kept.is_empty() {
        return Err(RunSetupError::UnknownCriterion {
            wanted: wanted.join(", "),
            known: if left_out.is_empty() { "none".to_owned() } else { left_out.join(", ") },
        });
    }
    let rest = match left_out.len() {
        0 => "no other was left out".to_owned(),
        count => {
            format!("{} left out, so this says nothing about the whole", count_with_noun(count, "other"))
        }
    };
    let note = format!("only these criteria are judged: {} ({rest})", kept.join(", "));
    Ok(Some(CriteriaSelection { note, left_out: left_out.len() }))
}
