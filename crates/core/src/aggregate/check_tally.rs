//! Counts of one check in one case.

use super::share;
use crate::model::{CheckResult, CheckSummary, ScoreScale, Verdict};

/// The counts of a check in one case.
#[derive(Debug, Default)]
pub struct CheckTally {
    pub id: String,
    pub name: Option<String>,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    scores: u64,
    score_sum: f64,
    /// The lowest and the highest score.
    score_range: Option<(f64, f64)>,
    scale: Option<ScoreScale>,
    /// The reason why the first trial without an answer has none.
    not_scored_because: Option<String>,
    pub judged: bool,
    /// The number of scores that were converted to a scale from 0 to 1; `share_sum` is their sum.
    pub shares: u64,
    pub share_sum: f64,
}

impl CheckTally {
    pub fn new(id: String, name: Option<String>, judged: bool) -> Self {
        Self { id, name, judged, ..Self::default() }
    }

    pub fn add(&mut self, result: &CheckResult) {
        match result.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::NotScored(_) => {
                self.not_scored += 1;
                self.not_scored_because.get_or_insert_with(|| result.rationale.clone());
            }
        }
        self.scale = self.scale.or(result.scale);
        if let Some(share) = result.normalised_score() {
            self.shares += 1;
            self.share_sum += share;
        }
        if let Some(score) = result.score {
            self.scores += 1;
            self.score_sum += score;
            let (low, high) = self.score_range.unwrap_or((score, score));
            self.score_range = Some((low.min(score), high.max(score)));
        }
    }

    pub fn summary(&self) -> CheckSummary {
        let answered = self.passed + self.failed;
        CheckSummary {
            id: self.id.clone(),
            name: self.name.clone(),
            passed: self.passed,
            failed: self.failed,
            not_scored: self.not_scored,
            agreement: share(self.passed.max(self.failed), answered).filter(|_| answered > 1),
            not_scored_because: self.not_scored_because.clone(),
            scale: self.scale,
            mean_score: (self.scores > 0).then(|| self.score_sum / self.scores as f64),
            min_score: self.score_range.map(|(low, _)| low),
            max_score: self.score_range.map(|(_, high)| high),
        }
    }
}
