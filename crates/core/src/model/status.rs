use std::collections::BTreeSet;

use super::{
    ActivationExpectation, CaseActivationRate, CaseStability, CaseSummary, GateResult, Summary,
    count_with_noun, decimals_to_compare,
};

/// The status of a run. It says more than the exit code, which is 0 also if no gate could fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Passed,
    /// Trials failed and no gate covers them; or nothing ran with the skill and there is no gate; or no case could
    /// fail.
    Ungated,
    Failed,
    Incomplete,
    OverBudget,
    Interrupted,
}

impl RunStatus {
    /// Derives the status from the exit code, and from whether trials failed that no gate covers.
    pub fn from_exit(exit: u8, ungated: bool) -> Self {
        match exit {
            0 if ungated => RunStatus::Ungated,
            0 => RunStatus::Passed,
            1 => RunStatus::Failed,
            4 => RunStatus::OverBudget,
            130 => RunStatus::Interrupted,
            _ => RunStatus::Incomplete,
        }
    }

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
    pub fn status(&self) -> RunStatus {
        RunStatus::from_exit(self.exit, self.lacks_gate())
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

    /// The cases that failed in a way that no gate measures. Earlier runs kept only whether their suites have gates.
    fn ungated_cases(&self) -> impl Iterator<Item = &CaseSummary> {
        let lacks_any = |case: &CaseSummary| {
            case.is_under_test() && case.status() == CaseStatus::Failed && !self.has_gate_of(&case.suite)
        };
        self.cases.iter().filter(move |case| case.ungated || lacks_any(case))
    }

    /// Why a run that lacks a gate could not fail.
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
    /// What it is the rate of: `fire rate` or `stability`.
    pub name: &'static str,
    /// Whether the rate is where it should be; `None` if it was not measured.
    pub passes: Option<bool>,
    /// One line for people: `2 of 3 runs passed, and 0.50 or more is wanted`.
    pub description: String,
}

/// What a case came to under one condition, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseStatus {
    Failed,
    Unscored,
    Passed,
}

impl CaseSummary {
    /// Gives the verdict of the case as every report shows it. If a rate decides the case, single trials do not.
    pub fn status(&self) -> CaseStatus {
        if let Some(rate) = self.deciding_rate() {
            return match rate.passes {
                Some(true) if self.not_run > 0 => CaseStatus::Unscored,
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

    /// How often the skill is activated, where that and not each run by itself decides the case.
    pub fn deciding_activation_rate(&self) -> Option<&CaseActivationRate> {
        self.fire_rate
            .as_ref()
            .filter(|rate| rate.threshold.is_some() && rate.expect != ActivationExpectation::Either)
    }

    /// The rate that decides the case, where not each run does by itself: how often the skill is activated, or how
    /// many runs pass.
    pub fn deciding_rate(&self) -> Option<DecidingRate> {
        if let Some(rate) = self.deciding_activation_rate() {
            return Some(DecidingRate {
                name: "fire rate",
                passes: rate.passes,
                description: rate.describe(),
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

    /// Whether there is something to be told of it: it did not pass, or runs of it have no answer.
    pub fn needs_attention(&self) -> bool {
        self.status() != CaseStatus::Passed || self.not_scored > 0
    }
}

impl CaseActivationRate {
    /// Describes the rate in one line: `the skill fired in 2 of 3 runs, and 0.50 or more is wanted`.
    pub fn describe(&self) -> String {
        let (Some(rate), runs) = (self.rate.value, self.rate.n) else {
            return "no run can tell whether the skill fires".to_owned();
        };
        let fired = (rate * runs as f64).round();
        let wanted = self
            .describe_passing_rates()
            .map(|wanted| format!(", and {wanted} is wanted"))
            .unwrap_or_default();
        format!("the skill fired in {fired} of {runs} runs{wanted}")
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
    use crate::model::Estimate;

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
        let words = "the skill fired in 2 of 3 runs";
        for (of, wanted) in [
            (rate(must, Some(0.5), None), ", and 0.50 or more is wanted"),
            (rate(must_not, Some(0.5), None), ", and less than 0.50 is wanted"),
            (rate(must, None, None), ""),
        ] {
            assert_eq!(of.describe(), format!("{words}{wanted}"));
        }
    }
}
