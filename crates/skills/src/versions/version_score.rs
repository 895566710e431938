//! The score of a version of a skill.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::atomic_files;
use practicum_core::model::{CheckResult, ScoreScale, TrialRecord, Verdict};
use practicum_core::tree::read_regular;

/// The results of a version: `vN/score.json`. Unscored runs are in no figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "The results of a version of a skill (vN/score.json)")]
pub struct VersionScore {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run that tested the version.
    pub run: String,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// The share of runs that passed, a mean over cases.
    pub pass_rate: Option<f64>,
    /// Required checks: 0 not met, 1 fully met, a mean over cases.
    pub required_score: Option<f64>,
    /// All checks: 0 not met, 1 fully met, as a mean over cases.
    pub mean_score: Option<f64>,
    /// The share of checks that passed, a mean over cases. `None` where a case has no answer.
    #[serde(default)]
    pub expectation_pass_rate: Option<f64>,
    /// The mean over the cases of what each got, 1 to 5: for a case the mean over its runs, for a run the mean
    /// over all its criteria, with two decimals. `None` where nothing has such a score, or a case has no answer.
    pub average_score: Option<f64>,
    /// Why the version must not become the best one; `None` if it may.
    pub rejected: Option<String>,
}

const SCORE_FILE: &str = "score.json";

impl VersionScore {
    pub fn from_records<'r>(run: &str, records: impl IntoIterator<Item = &'r TrialRecord>) -> Self {
        let mut cases: BTreeMap<(&str, &str), Vec<&TrialRecord>> = BTreeMap::new();
        let (mut passed, mut failed, mut not_scored) = (0, 0, 0);
        for record in records {
            match record.verdict {
                Verdict::Pass => passed += 1,
                Verdict::Fail => failed += 1,
                Verdict::NotScored(_) => not_scored += 1,
            }
            cases.entry((&record.suite, &record.case)).or_default().push(record);
        }
        let is_scored = |record: &&TrialRecord| !matches!(record.verdict, Verdict::NotScored(_));
        // A trial without a verdict is left out, even if some of its checks passed before it was cut short.
        let over_cases = |of: &dyn Fn(&TrialRecord) -> Option<f64>| {
            let scored =
                |runs: &Vec<&TrialRecord>| mean(runs.iter().copied().filter(is_scored).filter_map(of));
            mean(cases.values().filter_map(scored))
        };
        let has_criteria = |record: &&TrialRecord| {
            record.checks.iter().any(|check| check.scale == Some(ScoreScale::OneToFive))
        };
        let has_answer = |runs: &&Vec<&TrialRecord>| runs.iter().any(&is_scored);
        // If a case has no scores there is no mean, because a mean over some cases would look like the mean over
        // all.
        let mut with_criteria = cases.values().filter(|runs| runs.iter().any(has_criteria));
        let every_case_has_scores = with_criteria.all(|runs| has_answer(&runs));
        let every_case_has_answer = cases.values().all(|runs| has_answer(&runs));
        let checks = |wanted: fn(&CheckResult) -> bool, of: fn(&CheckResult) -> Option<f64>| {
            over_cases(&|record| mean(record.checks.iter().filter(|check| wanted(check)).filter_map(of)))
        };
        Self {
            schema_version: 1,
            run: run.to_owned(),
            passed,
            failed,
            not_scored,
            pass_rate: over_cases(&|record| match record.verdict {
                Verdict::Pass => Some(1.0),
                Verdict::Fail => Some(0.0),
                Verdict::NotScored(_) => None,
            }),
            required_score: checks(|check| check.required, check_score),
            mean_score: checks(|_| true, check_score),
            expectation_pass_rate: checks(|_| true, pass_value).filter(|_| every_case_has_answer),
            average_score: checks(|check| check.scale == Some(ScoreScale::OneToFive), |check| check.score)
                .filter(|_| every_case_has_scores)
                .map(|average| (average * 100.0).round() / 100.0),
            rejected: None,
        }
    }

    /// Says whether any trial of the version has a verdict.
    pub fn is_measured(&self) -> bool {
        self.pass_rate.is_some()
    }

    /// Ranks two scores: by pass rate, then by required checks, then by all checks. An unknown figure ranks
    /// lowest.
    pub fn compare_rank(&self, other: &Self) -> Ordering {
        let figures = |score: &Self| [score.pass_rate, score.required_score, score.mean_score];
        figures(self)
            .into_iter()
            .zip(figures(other))
            .map(|(one, other)| compare_figures(one, other))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    pub fn read(version: &Path) -> Option<Self> {
        serde_json::from_slice(&read_regular(version.join(SCORE_FILE)).ok()?).ok()
    }

    pub fn write(&self, version: &Path) -> std::io::Result<()> {
        atomic_files::write_json(&version.join(SCORE_FILE), self)
    }
}

/// The tolerance for equal figures: means differ in their last digits by the order of summing.
const EQUALITY_TOLERANCE: f64 = 1e-9;

fn compare_figures(one: Option<f64>, other: Option<f64>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) if (one - other).abs() < EQUALITY_TOLERANCE => Ordering::Equal,
        (one, other) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
    }
}

/// Gives how far a check is met, between 0 and 1.
fn check_score(check: &CheckResult) -> Option<f64> {
    match (&check.verdict, check.normalised_score()) {
        (Verdict::NotScored(_), _) => None,
        (Verdict::Pass | Verdict::Fail, Some(share)) => Some(share),
        (Verdict::Pass, None) => Some(1.0),
        (Verdict::Fail, None) => Some(0.0),
    }
}

fn pass_value(check: &CheckResult) -> Option<f64> {
    match check.verdict {
        Verdict::Pass => Some(1.0),
        Verdict::Fail => Some(0.0),
        Verdict::NotScored(_) => None,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::NotScoredReason;
    use practicum_core::model::testing::{check, record};

    fn score(pass_rate: Option<f64>, required: f64, mean: f64) -> VersionScore {
        VersionScore {
            pass_rate,
            required_score: Some(required),
            mean_score: Some(mean),
            ..VersionScore::from_records("run", [])
        }
    }

    #[test]
    fn a_version_of_which_no_trial_has_a_verdict_has_no_rate() {
        let mut silent = record("a", 1, Verdict::NotScored(NotScoredReason::NotTrusted));
        silent.checks = vec![check("c", Verdict::Pass)];
        let score = VersionScore::from_records("run", [&silent]);
        assert_eq!((score.not_scored, score.is_measured()), (1, false));
        assert_eq!((score.expectation_pass_rate, score.required_score, score.mean_score), (None, None, None));
    }

    #[test]
    fn the_best_is_by_pass_rate_then_required_then_mean() {
        for (one, other, expected) in [
            (score(Some(0.5), 0.0, 0.0), score(Some(0.4), 1.0, 1.0), Ordering::Greater),
            (score(Some(0.5), 0.2, 0.9), score(Some(0.5), 0.3, 0.1), Ordering::Less),
            (score(Some(0.5), 0.3, 0.2), score(Some(0.5), 0.3, 0.1), Ordering::Greater),
            (score(Some(0.5), 0.3, 0.1), score(Some(0.5), 0.3, 0.1), Ordering::Equal),
            (score(None, 1.0, 1.0), score(Some(0.0), 0.0, 0.0), Ordering::Less),
            (score(Some(0.1 + 0.2), 0.3, 0.1), score(Some(0.3), 0.3, 0.1), Ordering::Equal),
        ] {
            assert_eq!(one.compare_rank(&other), expected, "{one:?} {other:?}");
        }
    }
}
