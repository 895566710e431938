//! From trials to a summary.
//!
//! In: trial records, one at a time. Out: `Summary` with its gates. Never: looks at anything else.

mod activation;
mod arms;
mod case;
mod doubts;
mod gates;
mod sequential;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use case::FireRule;
pub use gates::SuiteGate;

use self::case::CaseTally;
use self::doubts::DoubtTally;
use crate::model::{
    Arm, Case, CaseSummary, Condition, EvalFinding, GateName, GateResult, Judging, JudgingSummary, Noise,
    PassRate, ProbeRecord, Ratio, Reliability, Rivals, Sample, SkillJudged, Summary, Totals, TrialRecord,
    Usage, Verdict,
};
use crate::stats::{ALPHA, Cluster, clustered_rate};

/// Folds records into counts. Its size depends on the number of cases, and hardly on that of trials.
#[derive(Debug, Default)]
pub struct Tally {
    cases: BTreeMap<CaseKey, CaseTally>,
    /// In the order they were expected, which is the order of the plan.
    order: Vec<CaseKey>,
    totals: Totals,
    tokens: Usage,
    judging: Option<JudgingSummary>,
    cost: Cost,
    doubts: DoubtTally,
    probes: Vec<ProbeRecord>,
    rivals: Vec<Rivals>,
    skills_judged: Vec<SkillJudged>,
    /// The share of trials that may stay unscored.
    allowed_unscored: f64,
    /// Trials that were not run because those before them told enough. `None` if nobody looked.
    left_out: Option<u64>,
    /// The part of the cases that is run, where it is not all of them.
    sample: Option<Sample>,
    /// Files that were found and not read as evals.
    skipped: Vec<PathBuf>,
}

/// A case under a condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CaseKey {
    suite: String,
    case: String,
    agent: String,
    model: Option<String>,
    mode: String,
    arm: Arm,
}

impl CaseKey {
    fn new(suite: &str, case: &str, condition: &Condition) -> Self {
        Self {
            suite: suite.to_owned(),
            case: case.to_owned(),
            agent: condition.agent.clone(),
            model: condition.model.clone(),
            mode: condition.mode.name().to_owned(),
            arm: condition.arm,
        }
    }

    /// The arm without the skill is what the other is compared with; it has nothing to pass.
    fn is_examined(&self) -> bool {
        self.arm != Arm::WithoutSkill
    }
}

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

impl Tally {
    /// Makes room for a case before any of its trials is done, so that a summary has the plan's
    /// order whatever finished first.
    pub fn expect(&mut self, suite: &str, case: &str, condition: &Condition, rule: Option<FireRule>) {
        let key = CaseKey::new(suite, case, condition);
        if !self.cases.contains_key(&key) {
            self.order.push(key.clone());
            self.cases.insert(key, CaseTally::new(rule));
        }
    }

    /// Counts a trial as planned. If no record of it is added, it was not run, and the run is incomplete.
    pub fn plan_trial(&mut self, suite: &str, case: &Case, condition: &Condition, rule: Option<FireRule>) {
        self.expect(suite, &case.id, condition, rule);
        let tally = self.cases.entry(CaseKey::new(suite, &case.id, condition)).or_default();
        tally.planned += 1;
        tally.is_about_activation =
            condition.arm.has_skill() && GateName::ActivationCasesPass.is_about([case]);
    }

    pub fn add(&mut self, record: &TrialRecord) {
        self.expect(&record.suite, &record.case, &record.condition, None);
        let key = CaseKey::new(&record.suite, &record.case, &record.condition);
        self.cases.entry(key).or_default().add(record);
        self.doubts.add(record);
        self.totals.trials += 1;
        match &record.verdict {
            Verdict::Pass => self.totals.passed += 1,
            Verdict::Fail => self.totals.failed += 1,
            Verdict::NotScored(_) => self.totals.not_scored += 1,
        }
        self.spend(record.usage, record.cost_usd);
        self.bill(record.judging.as_ref());
    }

    /// What was said of a skill's text, and what that took. Of several answers the last one counts.
    pub fn add_skill(&mut self, judged: &SkillJudged) {
        self.bill(judged.judging.as_ref());
        let is_same = |known: &SkillJudged| (&known.suite, &known.skill) == (&judged.suite, &judged.skill);
        self.skills_judged.retain(|known| !is_same(known));
        self.skills_judged.push(judged.clone());
    }

    fn bill(&mut self, judging: Option<&Judging>) {
        let Some(judging) = judging else { return };
        let free = JudgingSummary { tokens: Usage::default(), cost_usd: Some(0.0) };
        let all = self.judging.get_or_insert(free);
        all.tokens.add(judging.usage);
        all.cost_usd = all.cost_usd.zip(judging.cost_usd).map(|(sum, more)| sum + more);
    }

    /// Says which skills are beside those under test.
    pub fn beside(&mut self, rivals: Rivals) {
        self.rivals.push(rivals);
    }

    /// Says that only a part of the cases is run.
    pub fn set_sample(&mut self, sample: Option<Sample>) {
        self.sample = sample;
    }

    /// Says which files were found and not read as evals.
    pub fn set_skipped(&mut self, skipped: Vec<PathBuf>) {
        self.skipped = skipped;
    }

    /// A probe is no trial, and costs what it costs.
    pub fn add_probe(&mut self, probe: &ProbeRecord) {
        self.probes.push(probe.clone());
        self.spend(probe.usage, probe.cost_usd);
    }

    fn spend(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.tokens.add(usage);
        self.cost = match (self.cost, cost_usd) {
            (Cost::Known(total), Some(more)) => Cost::Known(total + more),
            _ => Cost::Unknown,
        };
    }

    pub fn allow_unscored(&mut self, share: Ratio) {
        self.allowed_unscored = share.get();
    }

    /// Tells the cases what was seen of them when nothing was changed.
    pub fn know(&mut self, noise: &Noise) {
        for (key, case) in &mut self.cases {
            let known = noise.cases.iter().find(|known| {
                (&known.suite, &known.id, &known.agent) == (&key.suite, &key.case, &key.agent)
                    && (&known.model, &known.mode, &known.arm) == (&key.model, &key.mode, &key.arm.name())
            });
            case.noise = known.cloned();
        }
    }

    /// Whether the runs of a case tell whether it mostly passes, and so one more is left out. Looking
    /// after each run is what this test is made for, and what intervals are not: they are given up.
    pub fn leave_out_if_decided(&mut self, suite: &str, case: &str, condition: &Condition) -> bool {
        let left_out = self.left_out.get_or_insert_default();
        let case = self.cases.get_mut(&CaseKey::new(suite, case, condition));
        let Some(case) = case.filter(|case| case.is_decided()) else { return false };
        case.left_out += 1;
        *left_out += 1;
        true
    }

    pub fn totals(&self) -> Totals {
        Totals { not_run: self.cases.values().map(CaseTally::not_run).sum(), ..self.totals }
    }

    /// The end of a run: every gate with its value, and the exit code that follows.
    pub fn summary(self, run: &str, gates: &[SuiteGate], seconds: f64, outcome: Outcome) -> Summary {
        let results: Vec<GateResult> = gates.iter().flat_map(|gate| self.gate(gate, gates)).collect();
        let exit = self.exit(&results, outcome);
        let cost_usd = match self.cost {
            Cost::Known(total) if self.totals.trials > 0 || !self.probes.is_empty() => Some(total),
            Cost::Known(_) | Cost::Unknown => None,
        };
        let trials = self.totals.trials;
        let each = cost_usd.filter(|_| trials > 0).map(|total| total / trials as f64);
        let summary = Summary {
            schema_version: 1,
            run: run.to_owned(),
            ok: exit == 0,
            exit,
            totals: self.totals(),
            sample: self.sample.clone(),
            skipped: self.skipped.clone(),
            cost_usd,
            tokens: self.tokens,
            judging: self.judging,
            seconds,
            pass_rate: self.pass_rate(),
            reliability: self.reliability(),
            gates: results,
            probes: self.probes.clone(),
            cases: self.case_summaries(),
            rivals: self.rivals.clone(),
            skills_judged: self.skills_judged.clone(),
            doubts: self.doubts.summary(),
            eval_findings: self.eval_findings(),
            activation: activation::summary(&self.cases),
            predicted_activation: activation::predicted(&self.cases),
            arms: arms::summary(&self.cases, each),
            left_out: self.left_out,
        };
        if self.left_out.is_some() { sequential::without_intervals(summary) } else { summary }
    }

    /// In the order of the plan, whatever finished first.
    fn eval_findings(&self) -> Vec<EvalFinding> {
        let mut findings = self.doubts.findings();
        let place = |of: &EvalFinding| {
            self.order.iter().position(|key| (&key.suite, &key.case) == (&of.suite, &of.case))
        };
        findings.sort_by_cached_key(place);
        findings
    }

    fn case_summaries(&self) -> Vec<CaseSummary> {
        self.order.iter().filter_map(|key| self.cases.get(key).map(|case| case.summary(key))).collect()
    }

    /// The cases with the skill. Where nothing ran with it, the run is a baseline, and all cases are meant.
    fn examined(&self) -> impl Iterator<Item = &CaseTally> {
        let is_baseline = !self.cases.keys().any(CaseKey::is_examined);
        self.cases.iter().filter(move |(key, _)| is_baseline || key.is_examined()).map(|(_, case)| case)
    }

    fn pass_rate(&self) -> PassRate {
        rate_of(&self.examined().collect::<Vec<_>>())
    }

    /// The pass rate of every case, also of those without the skill: for whoever compares with them.
    pub fn pass_rate_of_every_arm(&self) -> PassRate {
        rate_of(&self.cases.values().collect::<Vec<_>>())
    }

    /// Each case counts once, however often it ran.
    fn reliability(&self) -> Vec<Reliability> {
        let of_cases: Vec<Vec<Reliability>> = self.examined().map(CaseTally::reliability).collect();
        let most = of_cases.iter().flatten().map(|of| of.k).max().unwrap_or(0);
        let mean = |k: u64| {
            let all: Vec<&Reliability> = of_cases.iter().flatten().filter(|of| of.k == k).collect();
            let count = all.len() as f64;
            (!all.is_empty()).then(|| Reliability {
                k,
                pass_at_k: all.iter().map(|of| of.pass_at_k).sum::<f64>() / count,
                pass_hat_k: all.iter().map(|of| of.pass_hat_k).sum::<f64>() / count,
            })
        };
        (1..=most).filter_map(mean).collect()
    }

    fn exit(&self, gates: &[GateResult], outcome: Outcome) -> u8 {
        match outcome {
            Outcome::Interrupted => return 130,
            Outcome::OverBudget => return 4,
            Outcome::NotReady => return 3,
            Outcome::Completed => {}
        }
        // A gate that lacks answers has not failed; whether that is fatal is said below.
        if gates.iter().any(GateResult::fails) {
            return 1;
        }
        if self.totals.not_scored as f64 > self.allowed_unscored * self.totals.trials as f64
            || self.totals.trials == 0
            || self.totals().not_run > 0
            || gates.iter().any(|gate| !gate.ok)
        {
            return 3;
        }
        0
    }
}

fn rate_of(cases: &[&CaseTally]) -> PassRate {
    let clusters: Vec<Cluster> = cases.iter().map(|case| case.cluster()).collect();
    case::pass_rate(
        clustered_rate(&clusters, ALPHA),
        clusters.iter().map(|cluster| cluster.passed).sum(),
        clusters.iter().map(|cluster| cluster.runs).sum(),
        cases.iter().map(|case| case.unscored()).sum(),
    )
}

/// Whether the run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Interrupted,
    OverBudget,
    /// A probe showed that what was to be measured cannot be, so that nothing was begun.
    NotReady,
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests;
