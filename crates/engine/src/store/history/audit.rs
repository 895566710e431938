//! Finds checks whose results over many runs make them doubtful.

use schemars::JsonSchema;
use serde::Serialize;

use crate::store::{CheckCounts, Index, IndexError};
use practicum_core::model::count_with_noun;

/// Checks that may not measure what they should: `audit --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Doubtful checks (audit --json)")]
pub struct AuditReport {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The number of checks.
    pub checks: usize,
    /// The number of checks with too few results for a conclusion.
    pub too_few: usize,
    pub doubts: Vec<DoubtfulCheck>,
}

/// A check that may not measure what it should, with the counts that show it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DoubtfulCheck {
    pub suite: String,
    pub case: String,
    pub check: String,
    pub concern: DoubtReason,
    /// The number of runs with this check.
    pub runs: u64,
    /// The number of passes in all arms; `failed` and `not_scored` count the other results.
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// The number of passes without the skill; `failed_without` counts the failures.
    pub passed_without: u64,
    pub failed_without: u64,
    /// How often a case was repeated within a run; `divided` says how often the results then differed.
    pub repeated: u64,
    pub divided: u64,
}

/// Why a check is doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoubtReason {
    /// The check has never failed, so it may be unable to fail.
    NeverFails,
    /// The check gives the same results with and without the skill, so it says nothing about the skill.
    SameWithoutSkill,
    /// Repeats of the same case in one run give different results.
    Flaky,
}

impl DoubtReason {
    pub fn name(self) -> &'static str {
        match self {
            DoubtReason::NeverFails => "never fails",
            DoubtReason::SameWithoutSkill => "same without the skill",
            DoubtReason::Flaky => "flaky",
        }
    }
}

impl DoubtfulCheck {
    /// Gives the counts that support the doubt.
    pub fn evidence(&self) -> String {
        match self.concern {
            DoubtReason::NeverFails => {
                format!(
                    "passed {} of {} in {}",
                    self.passed,
                    self.answers(),
                    count_with_noun(self.runs, "run")
                )
            }
            DoubtReason::SameWithoutSkill => {
                let (passed, scored) = self.counts_with_skill();
                let scored_without = self.passed_without + self.failed_without;
                format!(
                    "passed {passed} of {scored} with it, {} of {scored_without} without",
                    self.passed_without
                )
            }
            DoubtReason::Flaky => format!(
                "in {} of {} repetitions the answers differed; passed {} of {}",
                self.divided,
                self.repeated,
                self.passed,
                self.answers()
            ),
        }
    }

    fn answers(&self) -> u64 {
        self.passed + self.failed
    }

    /// Gives the number of passes with the skill, and the number of answers with the skill.
    fn counts_with_skill(&self) -> (u64, u64) {
        let passed = self.passed - self.passed_without;
        (passed, passed + self.failed - self.failed_without)
    }
}

/// Rates that differ by less than this count as equal.
const SAME_RATE_TOLERANCE: f64 = 0.05;

/// Finds checks that never fail, that give the same result without the skill, or that are flaky. A doubt needs at
/// least `least` answers, in each arm if arms are compared.
pub fn audit(index: &Index, suite: Option<&str>, runs: usize, least: u64) -> Result<AuditReport, IndexError> {
    let counts = index.check_counts(suite, runs)?;
    let too_few = counts.iter().filter(|check| check.passed + check.failed < least).count();
    let doubts = counts.iter().flat_map(|check| find_doubts(check, least)).collect();
    Ok(AuditReport { schema_version: 1, checks: counts.len(), too_few, doubts })
}

fn find_doubts(check: &CheckCounts, least: u64) -> Vec<DoubtfulCheck> {
    let scored = check.passed + check.failed;
    let without = check.passed_without + check.failed_without;
    let with = scored - without;
    let rate = |passed: u64, scored: u64| passed as f64 / scored as f64;
    let compared = without >= least && with >= least;
    let same = compared
        && (rate(check.passed - check.passed_without, with) - rate(check.passed_without, without)).abs()
            < SAME_RATE_TOLERANCE;
    let never_fails = scored >= least && check.failed == 0;
    let flaky = scored >= least && check.divided > 0;
    let found = [
        (never_fails, DoubtReason::NeverFails),
        (same, DoubtReason::SameWithoutSkill),
        (flaky, DoubtReason::Flaky),
    ];
    let doubt = |concern: DoubtReason| DoubtfulCheck {
        suite: check.suite.clone(),
        case: check.case.clone(),
        check: check.check.clone(),
        concern,
        runs: check.runs,
        passed: check.passed,
        failed: check.failed,
        not_scored: check.not_scored,
        passed_without: check.passed_without,
        failed_without: check.failed_without,
        repeated: check.repeated,
        divided: check.divided,
    };
    found.into_iter().filter(|(holds, _)| *holds).map(|(_, concern)| doubt(concern)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concerns(passed: [u64; 2], failed: [u64; 2], divided: u64) -> Vec<DoubtReason> {
        let check = CheckCounts {
            passed: passed[0] + passed[1],
            failed: failed[0] + failed[1],
            passed_without: passed[1],
            failed_without: failed[1],
            repeated: 3,
            divided,
            ..CheckCounts::default()
        };
        find_doubts(&check, 5).iter().map(|doubt| doubt.concern).collect()
    }

    #[test]
    fn a_check_is_doubted_only_with_enough_answers() {
        use DoubtReason::{Flaky, NeverFails, SameWithoutSkill};
        // Each pair is with and without the skill.
        for (passed, failed, divided, expected) in [
            ([4, 0], [0, 0], 0, vec![]),
            ([5, 0], [0, 0], 0, vec![NeverFails]),
            ([5, 0], [1, 0], 0, vec![]),
            ([5, 5], [0, 0], 0, vec![NeverFails, SameWithoutSkill]),
            ([5, 0], [0, 5], 0, vec![]),
            ([0, 0], [5, 5], 0, vec![SameWithoutSkill]),
            ([5, 4], [0, 0], 0, vec![NeverFails]),
            ([3, 3], [3, 3], 2, vec![SameWithoutSkill, Flaky]),
            ([2, 0], [1, 0], 1, vec![]),
        ] {
            assert_eq!(concerns(passed, failed, divided), expected, "{passed:?} {failed:?}");
        }
    }
}
