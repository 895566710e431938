//! The status of a run and of its cases, derived from a summary.

use std::collections::BTreeSet;

use super::{
    ActivationExpectation, CaseActivationRate, CaseStability, CaseSummary, GateResult, Outcome,
    SCORE_ROUNDING, ScoreOf, Summary, count_with_noun, decimals_to_compare,
};

/// The status of a run. It says more than the exit code, which is 0 also if no gate could fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// Every gate holds.
    Passed,
    /// Trials failed and no gate covers them; or nothing ran with the skill and there is no gate; or no case could
    /// fail.
    Ungated,
    /// A gate failed.
    Failed,
    /// The run could not be completed, or something has no answer.
    Incomplete,
    /// The limit of money or tokens was reached.
    OverBudget,
    /// The user or a signal stopped the run.
    Interrupted,
}

impl RunStatus {
    /// Derives the status from the outcome, and from whether trials failed that no gate covers.
    pub fn from_outcome(outcome: Outcome, ungated: bool) -> Self {
        match outcome {
            Outcome::Passed if ungated => RunStatus::Ungated,
            Outcome::Passed => RunStatus::Passed,
            Outcome::Failed => RunStatus::Failed,
            Outcome::OverBudget => RunStatus::OverBudget,
            Outcome::Interrupted => RunStatus::Interrupted,
            Outcome::Incomplete | Outcome::Invalid => RunStatus::Incomplete,
        }
    }

    /// Gives the word for the status in reports.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Passed => "passed",
            RunStatus::Ungated => "no gate",
            RunStatus::Failed => "failed",
            RunStatus::Incomplete => "incomplete",
            RunStatus::OverBudget => "over budget",
            RunStatus::Interrupted => "interrupted",
        }
    }
}

impl Summary {
    /// Gives the status of the run.
    pub fn status(&self) -> RunStatus {
        RunStatus::from_outcome(self.exit, self.lacks_gate())
    }

    /// Whether nothing could fail the run: a case with the skill failed and no gate of its suite measures what it
    /// failed by, or the run is a baseline without a gate, or no case of it could fail.
    pub fn lacks_gate(&self) -> bool {
        if self.tests_nothing() {
            return true;
        }
        let is_baseline = self.is_baseline();
        is_baseline && self.cases.iter().any(|case| !self.has_gate_of(&case.suite))
            || self.ungated_cases().next().is_some()
    }

    fn has_gate_of(&self, suite: &str) -> bool {
        self.gates.iter().any(|gate| gate.suite == suite && gate.can_fail())
    }

    /// Gives the cases that failed in a way that no gate measures. In records of earlier versions, any gate of the
    /// suite counts.
    fn ungated_cases(&self) -> impl Iterator<Item = &CaseSummary> {
        let lacks_any = |case: &CaseSummary| {
            case.is_under_test() && case.status() == CaseStatus::Failed && !self.has_gate_of(&case.suite)
        };
        self.cases.iter().filter(move |case| case.ungated || lacks_any(case))
    }

    /// Explains why a run without a sufficient gate could not fail.
    pub fn describe_missing_gate(&self) -> String {
        if self.tests_nothing() {
            return "nothing was tested: every case accepts that the skill is activated and that it is not"
                .to_owned();
        }
        if self.is_baseline() && !self.has_gate() {
            return "the skill was not staged, so this is a baseline".to_owned();
        }
        let names: BTreeSet<&str> = self.ungated_cases().map(|case| case.id.as_str()).collect();
        let more = match names.len().saturating_sub(MAX_NAMED_CASES) {
            0 => String::new(),
            more => format!(" and {}", count_with_noun(more, "more case")),
        };
        let names: Vec<&str> = names.into_iter().take(MAX_NAMED_CASES).collect();
        format!("no gate covers the trials that failed: {}{more}", names.join(", "))
    }

    /// Says whether no case could fail: each asks only whether the skill is activated, and accepts both answers.
    pub fn tests_nothing(&self) -> bool {
        let accepts_both = |case: &CaseSummary| {
            let expect = case.fire_rate.as_ref().map(|rate| rate.expect);
            case.is_only_about_activation() && expect == Some(ActivationExpectation::Either)
        };
        !self.cases.is_empty() && self.cases.iter().all(accepts_both)
    }

    /// Says whether the run had a gate that could fail.
    pub fn has_gate(&self) -> bool {
        self.gates.iter().any(GateResult::can_fail)
    }
}

/// How many of the cases that no gate covers are named.
const MAX_NAMED_CASES: usize = 5;

/// A rate that decides a case, in place of each run by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidingRate {
    /// The name of the rate: `activation rate`, `mean score` or `stability`.
    pub name: &'static str,
    /// Whether the rate is high or low enough to pass; `None` if it was not measured.
    pub passes: Option<bool>,
    /// A description in one line: `2 of 3 runs passed, and 0.50 or more is wanted`.
    pub description: String,
}

/// The result of a case under one condition, ordered from the worst to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseStatus {
    /// The case failed.
    Failed,
    /// The case has no answer.
    Unscored,
    /// The case passed.
    Passed,
}

impl CaseSummary {
    /// Gives the verdict of the case as every report shows it. If a rate decides the case, single trials do not.
    pub fn status(&self) -> CaseStatus {
        if let Some(rate) = self.deciding_rate() {
            return match rate.passes {
                Some(true) if self.not_run > 0 || self.missing_runs_can_fail_rate() => CaseStatus::Unscored,
                Some(true) => CaseStatus::Passed,
                Some(false) => CaseStatus::Failed,
                None => CaseStatus::Unscored,
            };
        }
        match (self.failed, self.not_scored, self.passed) {
            (1.., _, _) => CaseStatus::Failed,
            (0, 0, 1..) if self.not_run == 0 => CaseStatus::Passed,
            (0, _, _) => CaseStatus::Unscored,
        }
    }

    /// Whether the case would miss its rate if every run without an answer had gone wrong.
    fn missing_runs_can_fail_rate(&self) -> bool {
        if let Some(of) = self.deciding_activation_rate() {
            let (Some(threshold), Some(rate)) = (of.threshold, of.rate.value) else { return true };
            let (conclusive, unknown) = (of.rate.n as f64, self.fired.unknown as f64);
            let fired = (rate * conclusive).round();
            return match of.expect {
                ActivationExpectation::Must => fired / (conclusive + unknown) < threshold,
                ActivationExpectation::MustNot => (fired + unknown) / (conclusive + unknown) >= threshold,
                ActivationExpectation::Either => false,
            };
        }
        let all = (self.passed + self.failed + self.not_scored) as f64;
        if let Some(score) = self.score.filter(|score| score.rule.of == ScoreOf::MeanOfTrials) {
            let sum = score.mean * score.trials as f64;
            return sum / all < score.rule.at_least.get() - SCORE_ROUNDING;
        }
        self.stability.is_some_and(|of| (self.passed as f64 / all) < of.threshold)
    }

    /// Gives the activation rate, if the rate decides the case and not each run by itself.
    pub fn deciding_activation_rate(&self) -> Option<&CaseActivationRate> {
        self.fire_rate
            .as_ref()
            .filter(|rate| rate.threshold.is_some() && rate.expect != ActivationExpectation::Either)
    }

    /// Gives the rate that decides the case: the activation rate or the share of passing runs. `None` if each run is
    /// decided by itself.
    pub fn deciding_rate(&self) -> Option<DecidingRate> {
        if let Some(rate) = self.deciding_activation_rate() {
            return Some(DecidingRate {
                name: "activation rate",
                passes: rate.passes,
                description: rate.describe(),
            });
        }
        if let Some(score) = self.score.filter(|score| score.rule.of == ScoreOf::MeanOfTrials) {
            let least = score.rule.at_least.get();
            let digits = decimals_to_compare([score.mean], least);
            let runs = count_with_noun(score.trials, "run");
            return Some(DecidingRate {
                name: "mean score",
                passes: score.passes,
                description: format!(
                    "mean score {:.digits$} over {runs}, and {least:.digits$} or more is wanted",
                    score.mean
                ),
            });
        }
        let CaseStability { threshold, passes } = self.stability?;
        let scored = self.passed + self.failed;
        let digits = decimals_to_compare([self.passed as f64 / scored.max(1) as f64], threshold);
        let description = format!(
            "{} of {} passed, and a share of {threshold:.digits$} or more is wanted",
            self.passed,
            count_with_noun(scored, "run"),
        );
        Some(DecidingRate { name: "stability", passes, description })
    }

    /// Says whether reports should explain the case: it did not pass, or some of its trials are not scored.
    pub fn needs_attention(&self) -> bool {
        self.status() != CaseStatus::Passed || self.not_scored > 0
    }
}

impl CaseActivationRate {
    /// Describes the rate in one line: `the skill was activated in 2 of 3 runs, and
    /// 0.50 or more is wanted`.
    pub fn describe(&self) -> String {
        let (Some(rate), runs) = (self.rate.value, self.rate.n) else {
            return "no run shows whether the skill was activated".to_owned();
        };
        let fired = (rate * runs as f64).round();
        let wanted = self
            .describe_passing_rates()
            .map(|wanted| format!(", and {wanted} is wanted"))
            .unwrap_or_default();
        format!("the skill was activated in {fired} of {runs} runs{wanted}")
    }

    /// Describes the rates that pass; `None` if the rate decides nothing.
    pub fn describe_passing_rates(&self) -> Option<String> {
        let threshold = self.threshold?;
        match self.expect {
            ActivationExpectation::Must => Some(format!("{threshold:.2} or more")),
            ActivationExpectation::MustNot => Some(format!("less than {threshold:.2}")),
            ActivationExpectation::Either => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ActivatedCounts, CaseScore, Estimate, Ratio, ScoreRule};

    #[test]
    fn a_case_stands_as_its_rate_says_where_one_decides() {
        let rate = |expect, threshold, passes| CaseActivationRate {
            rate: Estimate::new(Some(2.0 / 3.0), None, 3),
            expect,
            threshold,
            passes,
        };
        let (must, must_not) = (ActivationExpectation::Must, ActivationExpectation::MustNot);
        use CaseStatus::{Failed, Passed, Unscored};
        for ([passed, failed, not_scored], fire_rate, expected) in [
            ([3, 0, 0], None, Passed),
            ([2, 1, 0], None, Failed),
            ([2, 0, 1], None, Unscored),
            ([0, 0, 0], None, Unscored),
            // Each trial by itself decides.
            ([2, 1, 0], Some(rate(must, None, None)), Failed),
            ([3, 0, 0], Some(rate(ActivationExpectation::Either, Some(0.5), None)), Passed),
            // The rate decides, whatever the verdicts of the trials are.
            ([2, 1, 0], Some(rate(must, Some(0.5), Some(true))), Passed),
            ([3, 0, 0], Some(rate(must_not, Some(0.0), Some(false))), Failed),
            ([2, 0, 1], Some(rate(must, Some(0.5), Some(true))), Passed),
            ([0, 0, 3], Some(rate(must, Some(0.5), None)), Unscored),
        ] {
            let case = CaseSummary { passed, failed, not_scored, fire_rate, ..CaseSummary::default() };
            assert_eq!(case.status(), expected, "{case:?}");
        }
        // Runs without an answer leave a rate open that they could spoil.
        let of_one = |expect, value| {
            let rate = Estimate::new(Some(value), None, 1);
            Some(CaseActivationRate { rate, expect, threshold: Some(0.5), passes: Some(true) })
        };
        for (fire_rate, unknown, expected) in [
            (of_one(must, 1.0), 1, Passed),
            (of_one(must, 1.0), 2, Unscored),
            (of_one(must_not, 0.0), 0, Passed),
            (of_one(must_not, 0.0), 1, Unscored),
        ] {
            let fired = ActivatedCounts { unknown, ..ActivatedCounts::default() };
            let case =
                CaseSummary { passed: 1, not_scored: unknown, fired, fire_rate, ..CaseSummary::default() };
            assert_eq!(case.status(), expected, "{case:?}");
        }
        for ([passed, failed, not_scored], expected) in
            [([4, 1, 0], Passed), ([4, 0, 1], Passed), ([3, 0, 2], Unscored), ([1, 0, 4], Unscored)]
        {
            let stability = Some(CaseStability { threshold: 0.8, passes: Some(true) });
            let case = CaseSummary { passed, failed, not_scored, stability, ..CaseSummary::default() };
            assert_eq!(case.status(), expected, "{case:?}");
        }
        let rule = ScoreRule { at_least: Ratio::new(0.5).expect("a share"), of: ScoreOf::MeanOfTrials };
        for (mean, not_scored, expected) in [(0.8, 0, Passed), (1.0, 1, Passed), (0.8, 1, Unscored)] {
            let score = Some(CaseScore { mean, trials: 1, rule, passes: Some(true) });
            let case = CaseSummary { passed: 1, not_scored, score, ..CaseSummary::default() };
            assert_eq!(case.status(), expected, "{case:?}");
        }
        let words = "the skill was activated in 2 of 3 runs";
        for (of, wanted) in [
            (rate(must, Some(0.5), None), ", and 0.50 or more is wanted"),
            (rate(must_not, Some(0.5), None), ", and less than 0.50 is wanted"),
            (rate(must, None, None), ""),
        ] {
            assert_eq!(of.describe(), format!("{words}{wanted}"));
        }
    }
}
