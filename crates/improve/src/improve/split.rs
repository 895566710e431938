//! Splits cases into tuning cases, which a proposer may see, and held-out cases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use practicum_core::model::{ActivationExpectation, Digest, TrialRecord, Verdict};

/// A case by its suite and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CaseId {
    pub suite: String,
    pub case: String,
}

/// The cases that a proposer may see, and those that show whether it only learnt these by heart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSplit {
    pub tuning: Vec<CaseId>,
    pub held_out: Vec<CaseId>,
}

/// One case in this many is held out.
const HELD_OUT_ONE_IN: usize = 3;

impl CaseSplit {
    /// Splits the cases of a run so that both parts are similar by suite, by expected activation, and by whether
    /// they pass. Failing cases come first and the first two are never held out, because the proposer must see
    /// what to fix.
    pub fn from_records(records: &[TrialRecord], seed: u64) -> Self {
        let mut cases: BTreeMap<CaseId, Vec<&TrialRecord>> = BTreeMap::new();
        for record in records {
            let id = CaseId { suite: record.suite.clone(), case: record.case.clone() };
            cases.entry(id).or_default().push(record);
        }
        let mut dealt: Vec<_> = cases
            .iter()
            .map(|(id, runs)| {
                let passes = runs.iter().all(|record| record.verdict == Verdict::Pass);
                let about = runs.first().and_then(|record| record.expect).map(ActivationExpectation::name);
                ((passes, &id.suite, about, shuffle_key(id, seed)), id)
            })
            .collect();
        dealt.sort();
        let mut split = Self::default();
        for (at, (_, id)) in dealt.into_iter().enumerate() {
            let part = if at % HELD_OUT_ONE_IN == HELD_OUT_ONE_IN - 1 {
                &mut split.held_out
            } else {
                &mut split.tuning
            };
            part.push(id.clone());
        }
        split.tuning.sort();
        split.held_out.sort();
        split
    }

    pub fn is_tuning(&self, suite: &str, case: &str) -> bool {
        self.tuning.iter().any(|id| id.suite == suite && id.case == case)
    }

    /// Gives the records of one part.
    pub fn records_of_part<'r>(records: &'r [TrialRecord], part: &[CaseId]) -> Vec<&'r TrialRecord> {
        let belongs =
            |record: &&TrialRecord| part.iter().any(|id| id.suite == record.suite && id.case == record.case);
        records.iter().filter(belongs).collect()
    }
}

/// Gives the sort key of a case among similar ones; it depends on the seed.
fn shuffle_key(id: &CaseId, seed: u64) -> Digest {
    Digest::of_parts([seed.to_le_bytes().as_slice(), id.suite.as_bytes(), id.case.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::improve::testing::record;

    #[test]
    fn a_third_is_held_out_alike_and_the_same_for_one_seed() {
        let records: Vec<TrialRecord> = (0..30).map(|n| record(&format!("c{n:02}"), 1, n % 2 == 0)).collect();
        let split = CaseSplit::from_records(&records, 7);
        assert_eq!((split.tuning.len(), split.held_out.len()), (20, 10));
        let failing = |part: &[CaseId]| {
            CaseSplit::records_of_part(&records, part)
                .iter()
                .filter(|record| record.verdict == Verdict::Fail)
                .count()
        };
        assert_eq!((failing(&split.tuning), failing(&split.held_out)), (10, 5));
        assert_eq!(CaseSplit::from_records(&records, 7), split);
        assert_ne!(CaseSplit::from_records(&records, 8), split);
    }

    #[test]
    fn what_fails_is_shown_before_anything_is_held_out() {
        for seed in 0..20 {
            let records = [("a", true), ("b", false), ("c", true), ("d", false), ("e", true)]
                .map(|(case, passes)| record(case, 1, passes));
            let split = CaseSplit::from_records(&records, seed);
            assert!(split.is_tuning("s", "b") && split.is_tuning("s", "d"), "{split:?}");
            assert_eq!(split.held_out.len(), 1);
        }
        assert_eq!(CaseSplit::from_records(&[record("a", 1, false), record("b", 1, true)], 0).held_out, []);
    }
}
