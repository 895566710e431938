//! Aggregation of trial records into a summary.
//!
//! In: trial records, one at a time. Out: `Summary` with its gates. Never: reads anything else.

mod activation;
mod arms;
mod calibration;
mod case;
mod check_tally;
mod doubts;
mod frontier;
mod gates;
mod no_regression;
mod sequential;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use calibration::{
    AgreementCounts, CalibratedRate, Calibration, DriftRow, FEWEST_LABELS, JudgeCalibration, JudgeDrift,
    JudgedCriterion, JudgedOutput, LengthCheck, LengthSplit, VerdictPair, calibrate, count_drift,
};
pub use case::ActivationRateRule;
pub use frontier::{FrontierCandidate, find_frontier};
pub use gates::SuiteGate;

use self::case::CaseTally;
use self::doubts::DoubtTally;
use crate::model::{
    Arm, Baseline, Case, CaseSample, CaseStatus, CaseSummary, Check, CheckKind, Condition, EvalFinding,
    GateName, GateResult, JudgeUsage, JudgingSummary, Noise, NoisyCase, Outcome, PassRate, ProbeRecord,
    Ratio, Reliability, RivalSkills, SavedSpending, SkillJudgement, Summary, TokenUsage, TrialRecord,
    TrialTotals, Verdict,
};
use crate::stats::{ALPHA, Cluster, Interval, mean_of_cases, share_variance};

/// The counts of a run, to which records are added one by one. Their size depends on the number of cases, and
/// hardly on that of trials.
#[derive(Debug, Default)]
pub struct RunTally {
    cases: BTreeMap<CaseKey, CaseTally>,
    /// The cases in the order of the plan.
    order: Vec<CaseKey>,
    totals: TrialTotals,
    /// What was spent in this run.
    spent: Spending,
    /// What the reused trials had cost in their own runs, and replayed answers when they were recorded.
    saved: Spending,
    /// Whether the model's answers came from a script, or were recorded earlier.
    scripted: bool,
    replayed: bool,
    doubts: DoubtTally,
    probes: Vec<ProbeRecord>,
    rivals: Vec<RivalSkills>,
    skills_judged: Vec<SkillJudgement>,
    /// The share of trials that may stay unscored.
    allowed_unscored: f64,
    /// The number of trials that were skipped because earlier ones had decided their case. `None` if trials are
    /// never skipped in this run.
    skipped_as_decided: Option<u64>,
    /// The selection of cases that is run, if it is not all of them.
    sample: Option<CaseSample>,
    /// Files that were found and not read as evals.
    skipped_files: Vec<PathBuf>,
    /// The stored results that the run must not fall behind.
    baseline: Option<Baseline>,
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

    /// Says whether the results of a case were measured under this condition.
    fn has_condition_of(&self, known: &NoisyCase) -> bool {
        (&known.agent, &known.model) == (&self.agent, &self.model)
            && (&known.mode, &known.arm) == (&self.mode, &self.arm.name())
    }

    /// Says whether the case has to pass. The arm without the skill does not: the other arm is compared with it.
    fn is_under_test(&self) -> bool {
        self.arm != Arm::WithoutSkill
    }
}

/// The sum of all costs. It is unknown as soon as one part of it is unknown.
#[derive(Debug, Clone, Copy)]
enum TotalCost {
    Known(f64),
    Unknown,
}

impl Default for TotalCost {
    fn default() -> Self {
        TotalCost::Known(0.0)
    }
}

impl TotalCost {
    fn add(&mut self, more: Option<f64>) {
        *self = match (*self, more) {
            (TotalCost::Known(total), Some(more)) => TotalCost::Known(total + more),
            _ => TotalCost::Unknown,
        };
    }

    fn known(self) -> Option<f64> {
        match self {
            TotalCost::Known(total) => Some(total),
            TotalCost::Unknown => None,
        }
    }
}

/// Tokens and cost of agents, judges, simulated users and models that play servers.
#[derive(Debug, Default)]
struct Spending {
    tokens: TokenUsage,
    cost: TotalCost,
    judging: Option<JudgingSummary>,
    users: Option<JudgingSummary>,
    mock_models: Option<JudgingSummary>,
}

impl Spending {
    fn add_agent(&mut self, usage: TokenUsage, cost_usd: Option<f64>) {
        self.tokens.add(usage);
        self.cost.add(cost_usd);
    }

    fn add_judge(&mut self, judging: Option<&JudgeUsage>) {
        add_usage(&mut self.judging, judging);
    }

    fn add_user(&mut self, spending: Option<&JudgeUsage>) {
        add_usage(&mut self.users, spending);
    }

    fn add_mock_model(&mut self, spending: Option<&JudgeUsage>) {
        add_usage(&mut self.mock_models, spending);
    }
}

/// Adds what one trial used to the sum of all.
fn add_usage(sum: &mut Option<JudgingSummary>, more: Option<&JudgeUsage>) {
    let Some(more) = more else { return };
    let free = JudgingSummary { tokens: TokenUsage::default(), cost_usd: Some(0.0) };
    let all = sum.get_or_insert(free);
    all.tokens.add(more.usage);
    all.cost_usd = all.cost_usd.zip(more.cost_usd).map(|(sum, more)| sum + more);
}

impl RunTally {
    /// Adds a case before any of its trials is done, so that the summary has the order of the plan whatever
    /// finishes first.
    pub fn expect_case(
        &mut self,
        suite: &str,
        case: &str,
        condition: &Condition,
        rule: Option<ActivationRateRule>,
    ) {
        let key = CaseKey::new(suite, case, condition);
        if !self.cases.contains_key(&key) {
            self.order.push(key.clone());
            self.cases.insert(key, CaseTally::new(rule));
        }
    }

    /// Counts a trial as planned. If no record of it is added, it was not run, and the run is incomplete.
    pub fn plan_trial(
        &mut self,
        suite: &str,
        case: &Case,
        condition: &Condition,
        rule: Option<ActivationRateRule>,
    ) {
        self.expect_case(suite, &case.id, condition, rule);
        let tally = self.cases.entry(CaseKey::new(suite, &case.id, condition)).or_default();
        tally.planned += 1;
        tally.is_about_activation =
            condition.arm.has_skill() && GateName::ActivationCasesPass.applies_to([case]);
        tally.has_no_check = case.checks.is_empty();
        let is_judged = |check: &&Check| matches!(check.kind, CheckKind::Judged(_));
        tally.planned_judged_checks = case.checks.iter().filter(is_judged).count() as u64;
        let about_activation = |check: &&Check| matches!(check.kind, CheckKind::Activation(_));
        tally.activation_checks =
            case.checks.iter().filter(about_activation).map(|check| check.id.clone()).collect();
    }

    /// Adds the record of a finished trial.
    pub fn add(&mut self, record: &TrialRecord) {
        self.expect_case(&record.suite, &record.case, &record.condition, None);
        let key = CaseKey::new(&record.suite, &record.case, &record.condition);
        self.cases.entry(key).or_default().add(record);
        self.doubts.add(record);
        self.totals.trials += 1;
        match &record.verdict {
            Verdict::Pass => self.totals.passed += 1,
            Verdict::Fail => self.totals.failed += 1,
            Verdict::NotScored(_) => self.totals.not_scored += 1,
        }
        self.totals.reused += u64::from(record.is_reused());
        self.spending(record.is_reused()).add_agent(record.usage, record.cost_usd);
        let user = record.user.as_ref().and_then(|user| user.spending.as_ref());
        self.spending(record.is_reused()).add_user(user);
        self.spending(record.is_reused()).add_mock_model(record.mock_model.as_ref());
        // The judge of a trial that is graded again is asked now, also if its agent was replayed.
        let is_graded_again = record.is_reused() && !record.is_judging_reused();
        let judge = if is_graded_again { &mut self.spent } else { self.spending(record.is_judging_reused()) };
        judge.add_judge(record.judging.as_ref());
    }

    /// Gives where to count tokens and cost: answers that were recorded earlier cost nothing now.
    fn spending(&mut self, is_reused: bool) -> &mut Spending {
        if is_reused || self.replayed { &mut self.saved } else { &mut self.spent }
    }

    /// Adds the judgement of a skill's text, and what it cost. If a skill is judged several times, the last
    /// judgement counts.
    pub fn add_skill_judgement(&mut self, judged: &SkillJudgement) {
        self.spending(false).add_judge(judged.judging.as_ref());
        let is_same = |known: &SkillJudgement| (&known.suite, &known.skill) == (&judged.suite, &judged.skill);
        self.skills_judged.retain(|known| !is_same(known));
        self.skills_judged.push(judged.clone());
        // Judges answer in any order, and equal runs must have equal summaries.
        self.skills_judged.sort_by(|one, other| (&one.suite, &one.skill).cmp(&(&other.suite, &other.skill)));
    }

    /// Sets which skills are installed beside those under test.
    pub fn add_rival_skills(&mut self, rivals: RivalSkills) {
        self.rivals.push(rivals);
    }

    /// Sets that only a selection of the cases is run.
    pub fn set_sample(&mut self, sample: Option<CaseSample>) {
        self.sample = sample;
    }

    /// Sets which files were found and not read as evals.
    pub fn set_skipped_files(&mut self, skipped: Vec<PathBuf>) {
        self.skipped_files = skipped;
    }

    /// Adds the result of a probe. A probe is not a trial, but its cost counts.
    pub fn add_probe(&mut self, probe: &ProbeRecord) {
        self.probes.push(probe.clone());
        self.spending(false).add_agent(probe.usage, probe.cost_usd);
    }

    /// Sets where the model's answers came from, if not from a model. It must be known before trials are added.
    pub fn set_stand_ins(&mut self, scripted: bool, replayed: bool) {
        (self.scripted, self.replayed) = (scripted, replayed);
    }

    /// Sets the share of trials that may be without a score before the run counts as incomplete.
    pub fn allow_unscored(&mut self, share: Ratio) {
        self.allowed_unscored = share.get();
    }

    /// Gives each case its known results from runs in which nothing was changed.
    pub fn set_known_noise(&mut self, noise: &Noise) {
        for (key, case) in &mut self.cases {
            let known = noise.cases.iter().find(|known| {
                known.is_about_case(case.content.as_ref(), &key.suite, &key.case)
                    && key.has_condition_of(known)
            });
            case.known_noise = known.cloned();
        }
    }

    /// Sets the stored results that the run must not fall behind.
    pub fn set_baseline(&mut self, baseline: Option<Baseline>) {
        self.baseline = baseline;
    }

    /// Says whether a case is already decided, and then counts one more trial as skipped. The sequential test
    /// allows a look after every trial. Most intervals do not, so the summary then has only those that do.
    pub fn skip_if_decided(&mut self, suite: &str, case: &str, condition: &Condition) -> bool {
        let left_out = self.skipped_as_decided.get_or_insert_default();
        let case = self.cases.get_mut(&CaseKey::new(suite, case, condition));
        let Some(case) = case else { return false };
        case.stops_early = true;
        if !case.is_decided() {
            return false;
        }
        case.skipped_as_decided += 1;
        *left_out += 1;
        true
    }

    /// Gives the numbers of trials so far, by verdict.
    pub fn totals(&self) -> TrialTotals {
        TrialTotals { not_run: self.cases.values().map(CaseTally::not_run).sum(), ..self.totals }
    }

    /// Ends the counting: gives every gate with its value, and the exit code that follows.
    pub fn summary(self, run: &str, gates: &[SuiteGate], seconds: f64, outcome: RunCompletion) -> Summary {
        let results: Vec<GateResult> = gates.iter().flat_map(|gate| self.gate_results(gate, gates)).collect();
        let exit = self.outcome(&results, outcome);
        let has_run = self.totals.trials > 0 || !self.probes.is_empty();
        let cost_usd = self.spent.cost.known().filter(|_| has_run);
        let saved = (self.totals.reused > 0 || self.replayed).then_some(SavedSpending {
            cost_usd: self.saved.cost.known(),
            tokens: self.saved.tokens,
            judging: self.saved.judging,
            simulated_users: self.saved.users,
            mock_models: self.saved.mock_models,
        });
        let trials = self.totals.trials;
        let whole = self.spent.cost.known().zip(self.saved.cost.known()).map(|(spent, saved)| spent + saved);
        let each = whole.filter(|_| trials > 0).map(|total| total / trials as f64);
        let summary = Summary {
            schema_version: 1,
            run: run.to_owned(),
            ok: exit == Outcome::Passed,
            exit,
            totals: self.totals(),
            sample: self.sample.clone(),
            skipped: self.skipped_files.clone(),
            scripted: self.scripted,
            replayed: self.replayed,
            cost_usd,
            tokens: self.spent.tokens,
            judging: self.spent.judging,
            simulated_users: self.spent.users,
            mock_models: self.spent.mock_models,
            saved,
            seconds,
            pass_rate: self.pass_rate(),
            reliability: self.reliability(),
            gates: results,
            probes: self.probes.clone(),
            cases: self.case_summaries(gates),
            rivals: self.rivals.clone(),
            skills_judged: self.skills_judged.clone(),
            doubts: self.doubts.summary(),
            eval_findings: self.eval_findings(),
            activation: activation::summarise_observed(&self.cases),
            predicted_activation: activation::summarise_predicted(&self.cases),
            arms: arms::summarise_arms(&self.cases, each),
            variance: share_variance(
                &self.cases_under_test().map(|case| case.votes.clone()).collect::<Vec<_>>(),
            ),
            frontier: frontier::summarise_frontier(&self.cases),
            left_out: self.skipped_as_decided,
        };
        if self.skipped_as_decided.is_some() { sequential::without_fixed_intervals(summary) } else { summary }
    }

    /// Gives the findings in the order of the plan, whatever finished first.
    fn eval_findings(&self) -> Vec<EvalFinding> {
        let mut findings = self.doubts.findings();
        let place = |of: &EvalFinding| {
            self.order.iter().position(|key| (&key.suite, &key.case) == (&of.suite, &of.case))
        };
        findings.sort_by_cached_key(place);
        findings
    }

    fn case_summaries(&self, gates: &[SuiteGate]) -> Vec<CaseSummary> {
        let is_baseline = self.is_baseline();
        let summarise = |key: &CaseKey| {
            let case = self.cases.get(key)?;
            let has_to_pass = is_baseline || key.is_under_test();
            let threshold = gates::required_stability(key, case, gates).filter(|_| has_to_pass);
            let summary = CaseSummary { stability: case.stability(threshold), ..case.summary(key) };
            let failed = has_to_pass && summary.status() == CaseStatus::Failed;
            let ungated = failed && gates::fails_outside_gates(key, case, gates);
            Some(CaseSummary { ungated, ..summary })
        };
        self.order.iter().filter_map(summarise).collect()
    }

    /// Whether nothing ran with the skill.
    fn is_baseline(&self) -> bool {
        !self.cases.keys().any(CaseKey::is_under_test)
    }

    /// Gives the cases with the skill. If nothing ran with the skill, the run is a baseline: then gives all cases.
    fn cases_under_test(&self) -> impl Iterator<Item = &CaseTally> {
        let is_baseline = self.is_baseline();
        self.cases.iter().filter(move |(key, _)| is_baseline || key.is_under_test()).map(|(_, case)| case)
    }

    fn pass_rate(&self) -> PassRate {
        pass_rate_of_cases(&self.cases_under_test().collect::<Vec<_>>())
    }

    /// Gives the pass rate over all cases, including those without the skill, for comparisons with that arm.
    pub(crate) fn pass_rate_of_every_arm(&self) -> PassRate {
        pass_rate_of_cases(&self.cases.values().collect::<Vec<_>>())
    }

    /// Gives the reliability over all cases. Each case counts once, however often it ran. Where a case has too few runs
    /// for a number, that number is unknown: the other cases do not stand in for it.
    fn reliability(&self) -> Vec<Reliability> {
        let measured = self.cases_under_test().filter(|case| case.cluster().runs > 0);
        let of_cases: Vec<Vec<Reliability>> = measured.map(CaseTally::reliability).collect();
        let most = of_cases.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at: usize| {
            let sum = |of: fn(&Reliability) -> f64| of_cases.iter().map(|case| of(&case[at])).sum::<f64>();
            let count = of_cases.len() as f64;
            Reliability {
                k: at as u64 + 1,
                pass_at_k: sum(|of| of.pass_at_k) / count,
                pass_hat_k: sum(|of| of.pass_hat_k) / count,
            }
        };
        (0..most).map(mean).collect()
    }

    fn outcome(&self, gates: &[GateResult], completion: RunCompletion) -> Outcome {
        match completion {
            RunCompletion::Interrupted => return Outcome::Interrupted,
            RunCompletion::OverBudget => return Outcome::OverBudget,
            RunCompletion::NotReady | RunCompletion::OutOfTime => return Outcome::Incomplete,
            RunCompletion::Completed => {}
        }
        // A gate that lacks answers has not failed. The next condition decides whether missing answers fail the
        // run.
        if gates.iter().any(GateResult::fails) {
            return Outcome::Failed;
        }
        if self.totals.not_scored as f64 > self.allowed_unscored * self.totals.trials as f64
            || self.totals.trials == 0
            || self.totals().not_run > 0
            || gates.iter().any(|gate| !gate.ok)
        {
            return Outcome::Incomplete;
        }
        Outcome::Passed
    }
}

fn pass_rate_of_cases(cases: &[&CaseTally]) -> PassRate {
    let counts: Vec<(Cluster, u64)> =
        cases.iter().map(|case| (case.cluster(), case.unscored_runs())).collect();
    case::pass_rate(rate_over_cases(cases, ALPHA), &counts)
}

/// Gives the pass rate, a mean over cases, with its interval. Cases that stopped early count with an estimate that
/// allows for that.
fn rate_over_cases(cases: &[&CaseTally], alpha: f64) -> Option<(f64, Interval)> {
    let scored: Vec<&&CaseTally> = cases.iter().filter(|case| case.cluster().runs > 0).collect();
    if let [one] = scored.as_slice() {
        return one.own_rate(alpha);
    }
    let values: Vec<(f64, u64)> = scored.iter().filter_map(|case| case.unbiased_rate()).collect();
    let rates: Vec<f64> = values.iter().map(|(rate, _)| *rate).collect();
    mean_of_cases(&rates, values.iter().map(|(_, runs)| runs).sum(), alpha)
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCompletion {
    /// All planned trials ended.
    Completed,
    /// The user or a signal stopped the run.
    Interrupted,
    /// The limit of money or tokens was reached before all trials had ended.
    OverBudget,
    /// A probe showed that the measurement is impossible, so no trial was started.
    NotReady,
    /// The time of the run was over, or the limit of an account resets too late, before all trials had ended.
    OutOfTime,
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod calibration_tests;
#[cfg(test)]
mod tests;
