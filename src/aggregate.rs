//! From trials to a summary.
//!
//! In: trial records, one at a time. Out: `Summary` with its gates. Never: looks at anything else.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Arm, CaseSummary, CheckSummary, Condition, Doubts, Ended, Expect, FiredCount, Gate, GateName, GateResult,
    Ratio, Summary, Tokens, Totals, TrialRecord, Verdict, Why,
};

/// Folds records into counts. Its size depends on the number of cases, not of trials.
#[derive(Debug, Default)]
pub struct Tally {
    cases: BTreeMap<CaseKey, CaseTally>,
    /// In the order they were expected, which is the order of the plan.
    order: Vec<CaseKey>,
    totals: Totals,
    tokens: Tokens,
    cost: Cost,
    endings: BTreeMap<Ended, u64>,
    doubts: Doubts,
    /// Each counts once, however often its case was run.
    weak: BTreeSet<(String, String, String)>,
    /// Trials that were left out on purpose and count neither way.
    skipped: u64,
    /// The share of trials that may stay unscored.
    allowed_unscored: f64,
}

type CaseKey = (String, String, String, Option<String>, String, String);

/// Money adds up only while every part of it is known.
#[derive(Debug, Clone, Copy)]
enum Cost {
    Known(f64),
    Unknown,
}

impl Default for Cost {
    fn default() -> Self {
        Cost::Known(0.0)
    }
}

#[derive(Debug, Default)]
struct CaseTally {
    passed: u64,
    failed: u64,
    not_scored: u64,
    endings: BTreeMap<Ended, u64>,
    fired: FiredCount,
    checks: Vec<CheckTally>,
    confusion: Confusion,
    rate: Option<FireRate>,
}

/// A case that passes by how often the skill fires.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FireRate {
    pub expect: Expect,
    pub threshold: Ratio,
}

impl CaseTally {
    /// Whether the case passes; `None` if no run of it could tell.
    fn passes(&self) -> Option<bool> {
        let Some(FireRate { expect, threshold }) = self.rate else {
            return (self.passed + self.failed > 0).then_some(self.failed == 0);
        };
        let Confusion { tp, fp, tn, fn_ } = self.confusion;
        let (fired, told) = (tp + fp, tp + fp + tn + fn_);
        if told == 0 {
            return None;
        }
        let reached = fired as f64 / told as f64 >= threshold.get();
        Some(match expect {
            Expect::Must => reached,
            Expect::MustNot => !reached,
            Expect::Either => true,
        })
    }
}

/// Observed activation against what was wanted, a run at a time. Only runs that can tell count.
#[derive(Debug, Clone, Copy, Default)]
struct Confusion {
    tp: u64,
    fp: u64,
    tn: u64,
    fn_: u64,
}

impl Confusion {
    fn add(&mut self, record: &TrialRecord) {
        if !record.ended.can_be_marked() {
            return;
        }
        match (record.expect, record.fired) {
            (Some(Expect::Must), Some(true)) => self.tp += 1,
            (Some(Expect::Must), Some(false)) => self.fn_ += 1,
            (Some(Expect::MustNot), Some(true)) => self.fp += 1,
            (Some(Expect::MustNot), Some(false)) => self.tn += 1,
            (Some(Expect::Either) | None, _) | (_, None) => {}
        }
    }
}

#[derive(Debug)]
struct CheckTally {
    id: String,
    passed: u64,
    failed: u64,
    not_scored: u64,
    scores: u64,
    score_sum: f64,
    judged: bool,
    /// Scores on a scale from 0 to 1, and how many.
    shares: u64,
    share_sum: f64,
}

impl Tally {
    /// Makes room for a case before any of its trials is done, so that a summary has the plan's
    /// order whatever finished first.
    pub fn expect(&mut self, suite: &str, case: &str, condition: &Condition, rate: Option<FireRate>) {
        let key = key(suite, case, condition);
        if !self.cases.contains_key(&key) {
            self.order.push(key.clone());
            self.cases.insert(key, CaseTally { rate, ..CaseTally::default() });
        }
    }

    pub fn add(&mut self, record: &TrialRecord) {
        self.expect(&record.suite, &record.case, &record.condition, None);
        let case = self.cases.entry(key(&record.suite, &record.case, &record.condition)).or_default();
        self.totals.trials += 1;
        match &record.verdict {
            Verdict::Pass => {
                case.passed += 1;
                self.totals.passed += 1;
            }
            Verdict::Fail => {
                case.failed += 1;
                self.totals.failed += 1;
            }
            Verdict::NotScored(why) => {
                case.not_scored += 1;
                self.totals.not_scored += 1;
                self.skipped += u64::from(is_skip(why));
            }
        }
        *case.endings.entry(record.ended).or_default() += 1;
        *self.endings.entry(record.ended).or_default() += 1;
        case.confusion.add(record);
        match record.fired {
            Some(true) => case.fired.yes += 1,
            Some(false) => case.fired.no += 1,
            None => case.fired.unknown += 1,
        }
        let unverified = record.remarks.claims.iter().filter(|claim| !claim.verified).count();
        self.doubts.unverified_claims += unverified as u64;
        self.doubts.uncovered += record.remarks.uncovered.len() as u64;
        for result in &record.checks {
            self.doubts.unsupported_marks += u64::from(!result.flags.is_empty());
            if result.weak.is_some() {
                self.weak.insert((record.suite.clone(), record.case.clone(), result.check.clone()));
            }
            let at = match case.checks.iter().position(|check| check.id == result.check) {
                Some(at) => at,
                None => {
                    let (id, judged) = (result.check.clone(), result.scale.is_some());
                    case.checks.push(CheckTally {
                        judged,
                        shares: 0,
                        share_sum: 0.0,
                        id,
                        passed: 0,
                        failed: 0,
                        not_scored: 0,
                        scores: 0,
                        score_sum: 0.0,
                    });
                    case.checks.len() - 1
                }
            };
            let check = &mut case.checks[at];
            match result.verdict {
                Verdict::Pass => check.passed += 1,
                Verdict::Fail => check.failed += 1,
                Verdict::NotScored(_) => check.not_scored += 1,
            }
            if let Some(share) = result.share() {
                check.shares += 1;
                check.share_sum += share;
            }
            if let Some(score) = result.score {
                check.scores += 1;
                check.score_sum += score;
            }
        }
        self.tokens.input += record.usage.input;
        self.tokens.output += record.usage.output;
        self.tokens.cache_read += record.usage.cache_read;
        self.tokens.cache_write += record.usage.cache_write;
        self.cost = match (self.cost, record.cost_usd) {
            (Cost::Known(total), Some(more)) => Cost::Known(total + more),
            _ => Cost::Unknown,
        };
    }

    pub fn allow_unscored(&mut self, share: Ratio) {
        self.allowed_unscored = share.get();
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The end of a run: every gate with its value, and the exit code that follows.
    pub fn summary(self, run: &str, gates: &[SuiteGate], seconds: f64, outcome: Outcome) -> Summary {
        let results: Vec<GateResult> = gates.iter().map(|gate| self.gate(gate)).collect();
        let exit = self.exit(&results, outcome);
        let cost_usd = match self.cost {
            Cost::Known(total) if self.totals.trials > 0 => Some(total),
            Cost::Known(_) | Cost::Unknown => None,
        };
        let mut cases = self.cases;
        let cases =
            self.order.iter().filter_map(|key| cases.remove(key).map(|case| case.summary(key))).collect();
        Summary {
            schema_version: 1,
            run: run.to_owned(),
            ok: exit == 0,
            exit,
            totals: self.totals,
            cost_usd,
            tokens: self.tokens,
            seconds,
            gates: results,
            cases,
            doubts: Doubts { weak_checks: self.weak.len() as u64, ..self.doubts },
        }
    }

    fn gate(&self, SuiteGate { suite, gate }: &SuiteGate) -> GateResult {
        // The arm without the skill is what the other is compared with; it has nothing to pass.
        let without = Arm::WithoutSkill.name();
        let counts = |(of, _, _, _, arm, _): &CaseKey| of == suite && *arm != without;
        let cases = || self.cases.iter().filter(|(key, _)| counts(key)).map(|(_, case)| case);
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let value = match gate.name {
            GateName::AllCasesPass => {
                let verdicts = || cases().filter_map(CaseTally::passes);
                share(verdicts().filter(|passes| *passes).count() as u64, verdicts().count() as u64)
            }
            GateName::PassRate => {
                let passed = cases().map(|case| case.passed).sum();
                share(passed, passed + cases().map(|case| case.failed).sum::<u64>())
            }
            GateName::CriteriaPassRate => {
                let judged = || cases().flat_map(|case| &case.checks).filter(|check| check.judged);
                let passed = judged().map(|check| check.passed).sum();
                share(passed, passed + judged().map(|check| check.failed).sum::<u64>())
            }
            GateName::MeanScore => {
                let judged = || cases().flat_map(|case| &case.checks).filter(|check| check.judged);
                let count: u64 = judged().map(|check| check.shares).sum();
                (count > 0).then(|| judged().map(|check| check.share_sum).sum::<f64>() / count as f64)
            }
            GateName::Stability => {
                let shares = cases().filter_map(|case| share(case.passed, case.passed + case.failed));
                shares.min_by(f64::total_cmp)
            }
            GateName::Precision | GateName::Recall | GateName::F1 | GateName::Accuracy => {
                let mut all = Confusion::default();
                for case in cases() {
                    all.tp += case.confusion.tp;
                    all.fp += case.confusion.fp;
                    all.tn += case.confusion.tn;
                    all.fn_ += case.confusion.fn_;
                }
                let Confusion { tp, fp, tn, fn_ } = all;
                match gate.name {
                    GateName::Precision => share(tp, tp + fp),
                    GateName::Recall => share(tp, tp + fn_),
                    GateName::F1 => share(2 * tp, 2 * tp + fp + fn_),
                    _ => share(tp + tn, tp + fp + tn + fn_),
                }
            }
        };
        let threshold = gate.threshold.get();
        GateResult {
            name: gate.name,
            suite: suite.clone(),
            value,
            low: None,
            high: None,
            threshold,
            ok: value.is_some_and(|value| value >= threshold),
        }
    }

    fn exit(&self, gates: &[GateResult], outcome: Outcome) -> u8 {
        match outcome {
            Outcome::Interrupted => return 130,
            Outcome::OverBudget => return 4,
            Outcome::Completed => {}
        }
        // A gate that measured nothing has not failed; whether that is fatal is said below.
        if gates.iter().any(|gate| !gate.ok && gate.value.is_some()) {
            return 1;
        }
        let unscored = self.totals.not_scored.saturating_sub(self.skipped) as f64;
        if unscored > self.allowed_unscored * self.totals.trials as f64
            || self.totals.trials == 0
            || gates.iter().any(|gate| !gate.ok)
        {
            return 3;
        }
        0
    }
}

/// A gate and the suite whose cases it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteGate {
    pub suite: String,
    pub gate: Gate,
}

/// Whether the run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Interrupted,
    OverBudget,
}

fn is_skip(why: &Why) -> bool {
    matches!(why, Why::Ended(Ended::SetupFailed) | Why::NotTrusted)
}

fn key(suite: &str, case: &str, condition: &Condition) -> CaseKey {
    let Condition { agent, model, arm, mode } = condition;
    (suite.to_owned(), case.to_owned(), agent.clone(), model.clone(), arm.name(), mode.name().to_owned())
}

impl CaseTally {
    fn summary(self, (suite, id, agent, model, arm, mode): &CaseKey) -> CaseSummary {
        CaseSummary {
            id: id.clone(),
            suite: suite.clone(),
            agent: agent.clone(),
            model: model.clone(),
            arm: arm.clone(),
            mode: mode.clone(),
            passed: self.passed,
            failed: self.failed,
            not_scored: self.not_scored,
            endings: self.endings.iter().map(|(ended, count)| (ended.name().to_owned(), *count)).collect(),
            fired: self.fired,
            checks: self.checks.into_iter().map(CheckTally::summary).collect(),
        }
    }
}

impl CheckTally {
    fn summary(self) -> CheckSummary {
        CheckSummary {
            id: self.id,
            passed: self.passed,
            failed: self.failed,
            not_scored: self.not_scored,
            mean_score: (self.scores > 0).then(|| self.score_sum / self.scores as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Mode, Remarks, TrialId, Usage};

    fn record(case: &str, verdict: Verdict) -> TrialRecord {
        let condition =
            Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: Mode::Baseline };
        let ended = match verdict {
            Verdict::NotScored(Why::Ended(ended)) => ended,
            _ => Ended::Finished,
        };
        TrialRecord {
            trial: TrialId::new("s", case, &condition, 1),
            key: None,
            reused_from: None,
            suite: "s".into(),
            case: case.into(),
            condition,
            attempt: 1,
            ended,
            ended_because: None,
            verdict,
            checks: Vec::new(),
            expect: None,
            fired: None,
            usage: Usage::default(),
            cost_usd: Some(0.5),
            model: None,
            seconds: 1.0,
            notes: Vec::new(),
            remarks: Remarks::default(),
        }
    }

    fn exit(verdicts: &[Verdict], outcome: Outcome) -> u8 {
        let mut tally = Tally::default();
        for (index, verdict) in verdicts.iter().enumerate() {
            tally.add(&record(&format!("c{index}"), verdict.clone()));
        }
        let gate = Gate { name: GateName::AllCasesPass, threshold: Ratio::new(1.0).expect("one") };
        let all = SuiteGate { suite: "s".into(), gate };
        tally.summary("r", &[all], 1.0, outcome).exit
    }

    #[test]
    fn exit_codes() {
        let timeout = || Verdict::NotScored(Why::Ended(Ended::TimedOut));
        let skipped = || Verdict::NotScored(Why::Ended(Ended::SetupFailed));
        for (verdicts, outcome, expected) in [
            (vec![Verdict::Pass], Outcome::Completed, 0),
            (vec![Verdict::Pass, Verdict::Fail], Outcome::Completed, 1),
            (vec![Verdict::Pass, timeout()], Outcome::Completed, 3),
            (vec![Verdict::Fail, timeout()], Outcome::Completed, 1),
            (vec![timeout()], Outcome::Completed, 3),
            (vec![Verdict::Pass, skipped()], Outcome::Completed, 0),
            (vec![skipped()], Outcome::Completed, 3),
            (vec![Verdict::Fail], Outcome::Interrupted, 130),
            (vec![Verdict::Fail], Outcome::OverBudget, 4),
        ] {
            assert_eq!(exit(&verdicts, outcome), expected, "{verdicts:?} {outcome:?}");
        }
    }

    /// A query passes by the rate at which the skill fired; runs that cannot tell do not count.
    #[test]
    fn fire_rates() {
        let (yes, no) = (Some(true), Some(false));
        for (expect, runs, expected) in [
            (Expect::Must, vec![yes, yes, no], 0),
            (Expect::Must, vec![yes, no, no], 1),
            (Expect::Must, vec![yes, no], 0),
            (Expect::MustNot, vec![yes, no], 1),
            (Expect::MustNot, vec![yes, no, no], 0),
            (Expect::Must, vec![None, None], 3),
        ] {
            let mut tally = Tally::default();
            for fired in &runs {
                let passed = *fired == Some(expect == Expect::Must);
                let verdict = match fired {
                    Some(_) if passed => Verdict::Pass,
                    Some(_) => Verdict::Fail,
                    None => Verdict::NotScored(Why::Ended(Ended::TimedOut)),
                };
                let record = TrialRecord { expect: Some(expect), fired: *fired, ..record("q", verdict) };
                let threshold = Ratio::new(0.5).expect("a share");
                tally.expect("s", "q", &record.condition, Some(FireRate { expect, threshold }));
                tally.add(&record);
            }
            let gate = Gate { name: GateName::AllCasesPass, threshold: Ratio::new(1.0).expect("one") };
            let gate = SuiteGate { suite: "s".into(), gate };
            let summary = tally.summary("r", &[gate], 1.0, Outcome::Completed);
            assert_eq!(summary.exit, expected, "{expect:?} {runs:?}");
        }
    }

    #[test]
    fn the_arm_without_the_skill_may_fail() {
        let mut tally = Tally::default();
        tally.add(&record("a", Verdict::Pass));
        let mut without = record("a", Verdict::Fail);
        without.condition.arm = Arm::WithoutSkill;
        tally.add(&without);
        let gate = Gate { name: GateName::AllCasesPass, threshold: Ratio::new(1.0).expect("one") };
        let gate = SuiteGate { suite: "s".into(), gate };
        let summary = tally.summary("r", &[gate], 1.0, Outcome::Completed);
        assert_eq!((summary.exit, summary.totals.failed), (0, 1));
    }

    #[test]
    fn an_empty_suite_does_not_exit_0() {
        assert_eq!(exit(&[], Outcome::Completed), 3);
    }

    #[test]
    fn an_unknown_cost_is_not_a_number() {
        let mut tally = Tally::default();
        tally.add(&record("a", Verdict::Pass));
        tally.add(&TrialRecord { cost_usd: None, ..record("b", Verdict::Pass) });
        assert_eq!(tally.summary("r", &[], 1.0, Outcome::Completed).cost_usd, None);
    }
}
