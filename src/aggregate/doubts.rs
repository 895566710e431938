//! What judges, and the checks of their quotes, leave in doubt.

use std::collections::BTreeSet;

use crate::model::{Doubts, TrialRecord};

#[derive(Debug, Default)]
pub struct DoubtTally {
    counted: Doubts,
    /// Suite, case and check: each counts once, however often its case was run.
    weak: BTreeSet<(String, String, String)>,
}

impl DoubtTally {
    pub fn add(&mut self, record: &TrialRecord) {
        let unverified = record.remarks.claims.iter().filter(|claim| !claim.verified).count();
        self.counted.unverified_claims += unverified as u64;
        self.counted.uncovered += record.remarks.uncovered.len() as u64;
        for check in &record.checks {
            self.counted.unsupported_marks += u64::from(!check.flags.is_empty());
            if check.weak.is_some() {
                self.weak.insert((record.suite.clone(), record.case.clone(), check.check.clone()));
            }
        }
    }

    pub fn summary(&self) -> Doubts {
        Doubts { weak_checks: self.weak.len() as u64, ..self.counted }
    }
}
