//! Doubts about grades: what judges say about the evals, and quotes that could not be confirmed.

use std::collections::BTreeSet;

use crate::model::{EvalFinding, GradingDoubts, TrialRecord};

/// The counts of doubtful judgements, and the remarks of judges on the evals.
#[derive(Debug, Default)]
pub struct DoubtTally {
    counts: GradingDoubts,
    /// Suite, case and check. Each counts once, however often its case was run.
    weak_checks: BTreeSet<(String, String, String)>,
    /// The first findings about the evals, in the judges' words.
    findings: Vec<EvalFinding>,
}

/// The greatest number of findings that are kept. Judges may write any number; the rest is only counted.
const MAX_FINDINGS: usize = 200;
const MAX_UNCOVERED: usize = 5;
const MAX_TEXT_LENGTH: usize = 600;

impl DoubtTally {
    pub fn add(&mut self, record: &TrialRecord) {
        let unverified = record.remarks.claims.iter().filter(|claim| !claim.verified).count();
        self.counts.unverified_claims += unverified as u64;
        self.counts.shortened_evidence += u64::from(record.shortened_evidence.is_some());
        self.counts.uncovered += record.remarks.uncovered.len() as u64;
        for check in &record.checks {
            self.counts.unsupported_marks += u64::from(!check.flags.is_empty());
            if let Some(why) = &check.weak {
                self.weak_checks.insert((record.suite.clone(), record.case.clone(), check.check.clone()));
                self.add_finding(record, Some(&check.check), why);
            }
        }
        for behaviour in &record.remarks.uncovered {
            self.add_finding(record, None, behaviour);
        }
    }

    /// Adds a finding. Judges put one doubt about a check in many different words, so only the first is kept for
    /// each check.
    fn add_finding(&mut self, record: &TrialRecord, check: Option<&str>, said: &str) {
        let text = truncate_text(said);
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
        let many = check.is_none() && of_kind.len() >= MAX_UNCOVERED;
        if !many && self.findings.len() < MAX_FINDINGS {
            self.findings.push(EvalFinding {
                suite: record.suite.clone(),
                case: record.case.clone(),
                weak_check: check.map(str::to_owned),
                text,
                trials: 1,
            });
        }
    }

    pub fn summary(&self) -> GradingDoubts {
        GradingDoubts { weak_checks: self.weak_checks.len() as u64, ..self.counts }
    }

    pub fn findings(&self) -> Vec<EvalFinding> {
        self.findings.clone()
    }
}

fn truncate_text(text: &str) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(MAX_TEXT_LENGTH).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}
