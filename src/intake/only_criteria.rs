//! Judging only some of the criteria.

use super::IntakeError;
use crate::model::{CheckKind, GateName, counted};
use crate::plan::Planned;

/// Leaves out every judged check whose id, name or statement has none of the wanted words, whatever
/// their case. Other checks stay. Gives a note that says what was left out; an error where nothing
/// is left to judge, because then nothing that was asked for would be done.
pub fn keep_criteria(suites: &mut [Planned], wanted: &[String]) -> Result<Option<String>, IntakeError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = wanted.iter().map(|word| word.to_lowercase()).collect();
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for Planned { suite, .. } in suites.iter_mut() {
        for case in &mut suite.cases {
            case.checks.retain(|check| {
                let CheckKind::Judged(judged) = &check.kind else { return true };
                let name = check.name.as_deref().unwrap_or_default();
                let text = format!("{}\n{name}\n{}", check.id, judged.statement).to_lowercase();
                let is_wanted = words.iter().any(|word| text.contains(word.as_str()));
                if is_wanted { &mut kept } else { &mut left_out }.push(check.id.clone());
                is_wanted
            });
        }
        let judged = |check: &crate::model::Check| matches!(check.kind, CheckKind::Judged(_));
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
    Ok(Some(format!("only these criteria are judged: {} ({rest})", kept.join(", "))))
}
