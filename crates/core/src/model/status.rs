//! The status of a run and of a case, as reports show it.
use super::{ActivationExpectation, CaseActivationRate, CaseSummary, GateResult, Summary};

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

    /// Says whether nothing could fail the run: a case with the skill failed in a suite without a gate that can
    /// fail; or the run is a baseline without a gate; or none of its cases could fail.
    pub fn lacks_gate(&self) -> bool {
        if self.tests_nothing() {
            return true;
        }
        let is_gated = |suite: &str| self.gates.iter().any(|gate| gate.suite == suite && gate.can_fail());
        let failed = |case: &CaseSummary| case.status() == CaseStatus::Failed;
        let is_baseline = self.is_baseline();
        let counts = |case: &CaseSummary| is_baseline || case.is_under_test() && failed(case);
        self.cases.iter().any(|case| counts(case) && !is_gated(&case.suite))
    }

    /// Says why a run that lacks a gate could not fail.
    pub fn describe_missing_gate(&self) -> &'static str {
        match (self.tests_nothing(), self.is_baseline()) {
            (true, _) => {
                "nothing was tested: every case accepts that the skill is activated and that it is not"
            }
            (false, true) => "the skill was not staged, so this is a baseline",
            (false, false) => "no gate covers the trials that failed",
        }
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

/// The status of a case under one condition, the worst first.
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

    /// Gives the activation rate if it decides the case, rather than each trial by itself.
    pub fn deciding_rate(&self) -> Option<&CaseActivationRate> {
        self.fire_rate
            .as_ref()
            .filter(|rate| rate.threshold.is_some() && rate.expect != ActivationExpectation::Either)
    }

    /// Says whether a report should show details of the case: it did not pass, or some trials have no answer.
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
