//! The gate `no_regression`: no case is worse than in a stored baseline.

use super::case::CaseTally;
use super::{CaseKey, RunTally};
use crate::model::{ComparisonVerdict, Gate, GateResult, NoisyCase};
use crate::stats::{ALPHA, CasePair, CaseToTest, Cluster, DEFAULT_MARGIN, compare_pairs, test_cases};

impl RunTally {
    /// Gives the result of the gate over these cases. The value is the share of the baseline's cases that were not lost. A
    /// case that fell, and of which so few runs cannot show anything, leaves the gate open.
    pub(super) fn no_regression_result(
        &self,
        suite: &str,
        gate: &Gate,
        agent: Option<String>,
        cases: &[(&CaseKey, &CaseTally)],
    ) -> GateResult {
        let compared: Vec<(&CaseKey, CasePair)> = cases
            .iter()
            .filter_map(|(key, case)| {
                let known = self.baseline_of(key, case)?;
                let before = Cluster::new(known.passed, known.runs);
                (before.runs > 0).then(|| (*key, CasePair { before, after: case.cluster() }))
            })
            .collect();
        let to_test: Vec<CaseToTest> =
            compared.iter().map(|(_, pair)| CaseToTest { pair: *pair, known_rate: None }).collect();
        let (mut lost, mut cannot_tell) = (self.cases_gone(suite, cases), Vec::new());
        let mut lost_cases = lost.len();
        for ((key, pair), test) in compared.iter().zip(test_cases(&to_test)) {
            let fell = pair.difference().is_none_or(|difference| difference < 0.0);
            if fell && test.is_clear {
                lost_cases += 1;
                lost.push(describe_pair(&key.case, *pair));
            } else if fell && (!test.could_tell || pair.after.runs == 0) {
                cannot_tell.push(describe_pair(&key.case, *pair));
            }
        }
        let pairs: Vec<CasePair> = compared.iter().map(|(_, pair)| *pair).collect();
        let together = compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA);
        if together.verdict == ComparisonVerdict::Worse && lost.is_empty() {
            lost_cases += 1;
            let difference = together.difference.value.unwrap_or_default();
            lost.push(format!("all cases together ({difference:+.2})"));
        }
        let all = (compared.len() + self.cases_gone(suite, cases).len()) as u64;
        let value = super::share(all.saturating_sub(lost_cases as u64), all);
        let reached = value.is_some_and(|value| value >= gate.threshold.get());
        let not_run = cases.iter().map(|(_, case)| case.not_run()).sum();
        let holds = reached && cannot_tell.is_empty() && not_run == 0;
        GateResult {
            ok: holds || gate.threshold.get() == 0.0,
            value,
            lost,
            cannot_tell,
            without_baseline: cases.len() as u64 - compared.len() as u64,
            not_run,
            ..GateResult::new(gate, suite, agent)
        }
    }

    fn baseline_of(&self, key: &CaseKey, case: &CaseTally) -> Option<&NoisyCase> {
        let known = self.baseline.as_ref()?.cases.iter();
        let mut known = known.filter(|known| key.has_condition_of(known));
        known.find(|known| known.is_about_case(case.content.as_ref(), &key.suite, &key.case))
    }

    /// Gives the cases of the baseline that the suite no longer has, under no name. If only a selection of the cases is
    /// run, nothing is missed.
    fn cases_gone(&self, suite: &str, cases: &[(&CaseKey, &CaseTally)]) -> Vec<String> {
        let Some(baseline) = self.baseline.as_ref().filter(|_| self.sample.is_none()) else {
            return Vec::new();
        };
        let is_gone = |known: &&NoisyCase| {
            let same_condition = cases.iter().any(|(key, _)| key.has_condition_of(known));
            let is_it = |(key, case): &(&CaseKey, &CaseTally)| {
                known.id == key.case || known.is_about_case(case.content.as_ref(), suite, &key.case)
            };
            known.suite == suite && same_condition && !cases.iter().any(is_it)
        };
        baseline.cases.iter().filter(is_gone).map(|known| format!("{} (missing)", known.id)).collect()
    }
}

fn describe_pair(case: &str, pair: CasePair) -> String {
    let CasePair { before, after } = pair;
    format!("{case} ({}/{} → {}/{})", before.passed, before.runs, after.passed, after.runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{RunCompletion, SuiteGate};
    use crate::model::{Baseline, GateName, Ratio, Verdict, testing};

    #[test]
    fn nothing_may_fall_behind_the_baseline() {
        let known = |id: &str, passed, runs| NoisyCase {
            suite: "s".into(),
            id: id.into(),
            agent: "a".into(),
            model: None,
            mode: "baseline".into(),
            arm: "with".into(),
            content: None,
            runs,
            passed,
            flip_rate: None,
        };
        let gate = SuiteGate { suite: "s".into(), gate: Gate::new(GateName::NoRegression, Ratio::ONE) };
        // Each case comes with its results in the baseline, if it is there, and now.
        type Case = (&'static str, Option<(u64, u64)>, (u64, u64));
        let judge = |cases: &[Case], baseline: bool| {
            let mut tally = RunTally::default();
            let mut stored = Baseline { schema_version: 1, run: "r0".into(), cases: Vec::new() };
            for (id, before, (passed, runs)) in cases {
                stored.cases.extend(before.map(|(passed, runs)| known(id, passed, runs)));
                for at in 0..*runs {
                    let verdict = if at < *passed { Verdict::Pass } else { Verdict::Fail };
                    let attempt = u32::try_from(at + 1).expect("few");
                    tally.add(&testing::record(id, attempt, verdict));
                }
            }
            tally.set_baseline(baseline.then_some(stored));
            tally.summary("r", std::slice::from_ref(&gate), 1.0, RunCompletion::Completed)
        };
        for (cases, exit, status) in [
            (vec![("x", Some((5, 5)), (5, 5)), ("y", Some((0, 5)), (0, 5))], 0, "holds"),
            (vec![("x", Some((5, 5)), (0, 5)), ("y", Some((5, 5)), (5, 5))], 1, "fails"),
            // Three runs of a case cannot show anything: neither green nor red.
            (vec![("x", Some((3, 3)), (0, 3)), ("y", Some((3, 3)), (3, 3))], 3, "open"),
            // A long baseline makes up for few runs now.
            (vec![("x", Some((30, 30)), (0, 3)), ("y", Some((3, 3)), (3, 3))], 1, "fails"),
            (vec![("x", Some((5, 5)), (4, 5)), ("y", Some((5, 5)), (5, 5))], 0, "holds"),
            (vec![("x", Some((5, 5)), (0, 0)), ("y", Some((5, 5)), (5, 5))], 1, "fails"),
            (vec![("new", None, (0, 5)), ("y", Some((5, 5)), (5, 5))], 0, "holds"),
            (vec![("new", None, (5, 5))], 3, "not measured"),
        ] {
            let found = judge(&cases, true);
            assert_eq!((found.gates[0].status(), u8::from(found.exit)), (status, exit), "{cases:?}");
        }
        let found = judge(&[("x", Some((5, 5)), (0, 5)), ("y", Some((5, 5)), (5, 5))], true);
        assert_eq!(
            (found.gates[0].lost.as_slice(), found.gates[0].value),
            (&["x (5/5 → 0/5)".to_owned()][..], Some(0.5))
        );
        // No case alone is clear, all together are.
        let cases = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|id| (id, Some((2, 2)), (0, 2)));
        let together = judge(&cases, true);
        assert_eq!(together.gates[0].lost, ["all cases together (-1.00)"]);
        assert_eq!(judge(&[("x", Some((5, 5)), (5, 5))], false).gates[0].status(), "not measured");
    }
}
