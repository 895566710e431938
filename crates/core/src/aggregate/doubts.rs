//! What judges, and the checks of their quotes, leave in doubt.

use std::collections::BTreeSet;

use crate::model::{Doubts, EvalFinding, TrialRecord};

#[derive(Debug, Default)]
pub struct DoubtTally {
    counted: Doubts,
    /// Suite, case and check: each counts once, however often its case was run.
    weak: BTreeSet<(String, String, String)>,
    /// The first of what was said of the evals, in words.
    findings: Vec<EvalFinding>,
}

/// What judges write has no end. What is not told is still counted.
const MOST_FINDINGS: usize = 200;
const MOST_UNCOVERED: usize = 5;
const LONGEST_TEXT: usize = 600;

impl DoubtTally {
    pub fn add(&mut self, record: &TrialRecord) {
        let unverified = record.remarks.claims.iter().filter(|claim| !claim.verified).count();
        self.counted.unverified_claims += unverified as u64;
        self.counted.shortened_evidence += u64::from(record.shortened_evidence.is_some());
        self.counted.uncovered += record.remarks.uncovered.len() as u64;
        for check in &record.checks {
            self.counted.unsupported_marks += u64::from(!check.flags.is_empty());
            if let Some(why) = &check.weak {
                self.weak.insert((record.suite.clone(), record.case.clone(), check.check.clone()));
                self.find(record, Some(&check.check), why);
            }
        }
        for behaviour in &record.remarks.uncovered {
            self.find(record, None, behaviour);
        }
    }

    /// Judges put one doubt about a check in many words, so the first of them stand for it.
    fn find(&mut self, record: &TrialRecord, check: Option<&str>, said: &str) {
        let text = bounded(said);
        let of_case = |known: &&mut EvalFinding| (&known.suite, &known.case) == (&record.suite, &record.case);
        let mut of_kind: Vec<&mut EvalFinding> = self
            .findings
            .iter_mut()
            .filter(of_case)
            .filter(|known| known.weak_check.as_deref() == check)
            .collect();
        let same = of_kind.iter_mut().find(|known| check.is_some() || known.text == text);
        if let Some(same) = same {
            same.trials += 1;
            return;
        }
        let many = check.is_none() && of_kind.len() >= MOST_UNCOVERED;
        if !many && self.findings.len() < MOST_FINDINGS {
            self.findings.push(EvalFinding {
                suite: record.suite.clone(),
                case: record.case.clone(),
                weak_check: check.map(str::to_owned),
                text,
                trials: 1,
            });
        }
    }

    pub fn summary(&self) -> Doubts {
        Doubts { weak_checks: self.weak.len() as u64, ..self.counted }
    }

    pub fn findings(&self) -> Vec<EvalFinding> {
        self.findings.clone()
    }
}

fn bounded(text: &str) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(LONGEST_TEXT).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}
