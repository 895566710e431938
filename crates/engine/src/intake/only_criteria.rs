//! Judging only some of the criteria.

use std::sync::Arc;

use serde_json::{Value, json};

use super::IntakeError;
use crate::plan::Planned;
use practicum_core::model::{
    Case, Check, CheckKind, Evidence, Finding, GateName, Judged, Need, Rule, Why, counted,
};

/// Which criteria are judged, where some were named.
pub struct OnlyCriteria {
    /// Says what is judged, and how much is not.
    pub note: String,
    pub left_out: usize,
}

/// A judged check that nobody is asked about.
#[derive(Debug)]
struct LeftOut(Judged);

impl Rule for LeftOut {
    fn key(&self) -> &'static str {
        "judge"
    }

    fn value(&self) -> Value {
        let Judged { statement, context, scale } = &self.0;
        json!({"statement": statement, "context": context, "scale": scale.name()})
    }

    fn mark(&self, _evidence: &Evidence<'_>) -> Finding {
        Finding::not_scored(Why::NotJudged("left out by --only-criterion".to_owned()))
    }
}

/// Leaves out every judged check whose id, name or statement has none of the wanted words, whatever
/// their case. Other checks stay. An error where nothing is left to judge, because then nothing that was
/// asked for would be done.
pub fn keep_criteria(suites: &mut [Planned], wanted: &[String]) -> Result<Option<OnlyCriteria>, IntakeError> {
    choose(suites, wanted, |case, is_wanted| case.checks.retain(is_wanted))
}

/// Keeps the same checks, and leaves the others without an answer, so that a case with one of them cannot
/// pass.
pub fn leave_criteria_open(
    suites: &mut [Planned],
    wanted: &[String],
) -> Result<Option<OnlyCriteria>, IntakeError> {
    choose(suites, wanted, |case, is_wanted| {
        for check in &mut case.checks {
            if !is_wanted(check)
                && let CheckKind::Judged(judged) = &check.kind
            {
                // Only what is required keeps a case from passing.
                check.need = Need::Required;
                check.kind = CheckKind::Exact(Arc::new(LeftOut(judged.clone())));
            }
        }
    })
}

/// Leaves checks out of a case; the second argument says of each check whether it is wanted.
type LeaveOut = fn(&mut Case, &mut dyn FnMut(&Check) -> bool);

fn choose(
    suites: &mut [Planned],
    wanted: &[String],
    leave_out: LeaveOut,
) -> Result<Option<OnlyCriteria>, IntakeError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = wanted.iter().map(|word| word.to_lowercase()).collect();
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for Planned { suite, .. } in suites.iter_mut() {
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
        return Err(IntakeError::NoSuchCriterion {
            wanted: wanted.join(", "),
            known: if left_out.is_empty() { "none".to_owned() } else { left_out.join(", ") },
        });
    }
    let rest = match left_out.len() {
        0 => "no other was left out".to_owned(),
        count => format!("{} left out, so this says nothing about the whole", counted(count, "other")),
    };
    let note = format!("only these criteria are judged: {} ({rest})", kept.join(", "));
    Ok(Some(OnlyCriteria { note, left_out: left_out.len() }))
}
