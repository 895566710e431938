//! Counts of one case under one condition.

use std::collections::{BTreeMap, BTreeSet};

use super::activation::CaseActivationTally;
use super::check_tally::CheckTally;
use super::gates::worst_rate;
use super::{CaseKey, share};
use crate::model::{
    ActivatedCounts, ActivationExpectation, AgentEnding, CaseActivationRate, CaseScore, CaseStability,
    CaseSummary, ChangeNeeded, CheckResult, Digest, Estimate, FailureKind, NoisyCase, NotScoredReason,
    PassRate, Ratio, Reliability, SCORE_ROUNDING, ScoreOf, ScoreRule, TrialRecord, Verdict,
};
use crate::stats::{
    ALPHA, CasePair, Cluster, Interval, Sprt, SprtDecision, StoppedCase, clopper_pearson,
    confidence_sequence, evaluate_stopped_case, pass_at_k, pass_hat_k,
};

/// The rule of a case that passes by how often the skill is activated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivationRateRule {
    /// Whether the skill must be activated, must not be, or both are accepted.
    pub expect: ActivationExpectation,
    /// The activation rate that decides the case.
    pub threshold: Ratio,
}

impl ActivationRateRule {
    fn is_met(self, activated: u64, conclusive: u64) -> Option<bool> {
        let reached = share(activated, conclusive)? >= self.threshold.get();
        Some(match self.expect {
            ActivationExpectation::Must => reached,
            ActivationExpectation::MustNot => !reached,
            ActivationExpectation::Either => true,
        })
    }
}

/// The counts of a case under one condition.
#[derive(Debug, Default)]
pub struct CaseTally {
    passed: u64,
    failed: u64,
    not_scored: u64,
    /// The number of trials whose results come from earlier runs.
    reused: u64,
    /// The number of planned trials; 0 if it is unknown.
    pub planned: u64,
    /// Planned trials that were skipped because earlier trials had already decided the case.
    pub skipped_as_decided: u64,
    /// Whether the results so far decide how many trials run.
    pub stops_early: bool,
    /// The reasons why trials have no verdict, each once.
    not_scored_because: Vec<String>,
    /// Notes on the trials, each once.
    notes: Vec<String>,
    /// The changes needed before trials without a verdict can get one, each once. `need_a_change` counts those
    /// trials.
    changes_needed: Vec<ChangeNeeded>,
    need_a_change: u64,
    failed_teardowns: u64,
    endings: BTreeMap<AgentEnding, u64>,
    activated: ActivatedCounts,
    checks: Vec<CheckTally>,
    pub activation: CaseActivationTally,
    /// Whether the case says that a skill must, or must not, be activated. Known before any of its trials has run.
    pub is_about_activation: bool,
    /// How many of the case's checks a judge decides.
    pub planned_judged_checks: u64,
    /// Trials of which no check has a result, because they were not started or went wrong before.
    without_results: u64,
    /// Whether the case has no check, so that no run of it can be scored.
    pub has_no_check: bool,
    /// The ids of the checks that ask whether a skill was activated.
    pub activation_checks: Vec<String>,
    /// What made its trials fail.
    failure_kinds: BTreeSet<FailureKind>,
    /// What a model guessed of it.
    pub predicted_activation: CaseActivationTally,
    activation_rule: Option<ActivationRateRule>,
    /// The sum of the scores of its trials, their number, and the score that is needed.
    scores: Option<ScoreTally>,
    /// The digest of the case, as its records have it.
    pub content: Option<Digest>,
    /// The verdicts of each trial by single votes of the judge, or its one verdict.
    pub votes: Vec<Vec<bool>>,
    /// The costs of the trials; `None` if one of them is unknown.
    costs: Vec<Option<f64>>,
    /// The results of this case in runs in which nothing was changed.
    pub known_noise: Option<NoisyCase>,
    /// The outcome of each attempt, to be paired with the same attempt in the other arm.
    pub attempts: AttemptOutcomes,
}

/// The outcomes of a case by the number of the attempt. This is a sorted list and not a map, because a run may have very
/// many cases with few attempts each, and the smallest map takes far more memory.
#[derive(Debug, Default)]
pub struct AttemptOutcomes(Vec<(u32, AttemptOutcome)>);

impl AttemptOutcomes {
    /// Sets the outcome of an attempt. An earlier one is replaced.
    fn insert(&mut self, attempt: u32, outcome: AttemptOutcome) {
        match self.0.binary_search_by_key(&attempt, |(known, _)| *known) {
            Ok(at) => self.0[at].1 = outcome,
            Err(at) => {
                // Room for one more, because most cases have few attempts.
                self.0.reserve_exact(usize::from(self.0.len() < 4));
                self.0.insert(at, (attempt, outcome));
            }
        }
    }

    /// Gives the outcome of an attempt, if it is known.
    pub fn get(&self, attempt: u32) -> Option<&AttemptOutcome> {
        let at = self.0.binary_search_by_key(&attempt, |(known, _)| *known).ok()?;
        Some(&self.0[at].1)
    }

    /// Gives the numbers of the attempts, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(attempt, _)| *attempt)
    }
}

/// The scores of the trials of a case that passes by its score.
#[derive(Debug, Clone, Copy)]
struct ScoreTally {
    sum: f64,
    trials: u64,
    rule: ScoreRule,
}

impl ScoreTally {
    fn mean(self) -> Option<f64> {
        (self.trials > 0).then(|| self.sum / self.trials as f64)
    }

    /// Says whether the mean is high enough if this many more trials had this score.
    fn reaches(self, more: u64, score: f64) -> bool {
        let trials = (self.trials + more) as f64;
        (self.sum + more as f64 * score) / trials >= self.rule.at_least.get() - SCORE_ROUNDING
    }
}

/// The outcome of one attempt, as the comparison of arms uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptOutcome {
    Passed,
    Failed(AttemptFailure),
    /// The attempt has no verdict and says nothing about its arm.
    NoVerdict,
    /// The attempt did not have the skills that its arm should have. The text says why.
    Void(String),
}

/// The reason why an attempt failed, as the comparison of arms uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The ids of the required checks that failed.
    failed_checks: Vec<String>,
    /// The verdict of the attempt without those checks; `None` if no other check decides it.
    verdict_without_them: Option<Verdict>,
}

impl AttemptFailure {
    fn from_record(record: &TrialRecord) -> Self {
        let failed = |check: &&CheckResult| check.required && check.verdict == Verdict::Fail;
        let by = record.checks.iter().filter(failed).map(|check| check.check.clone()).collect();
        let others: Vec<CheckResult> = record.checks.iter().filter(|check| !failed(check)).cloned().collect();
        Self { failed_checks: by, verdict_without_them: TrialRecord::verdict_of_checks(&others) }
    }

    /// Gives the verdict by the checks that the other arm has too. Whether the skill was activated is checked in
    /// one arm only, so that check says nothing about the difference between the arms.
    pub fn verdict_by_shared_checks(&self, other: &CaseTally) -> Verdict {
        let is_shared = |id: &String| other.checks.iter().any(|check| check.id == *id);
        match &self.verdict_without_them {
            Some(verdict) if !self.failed_checks.is_empty() && !self.failed_checks.iter().any(is_shared) => {
                verdict.clone()
            }
            Some(_) | None => Verdict::Fail,
        }
    }
}

impl AttemptOutcome {
    fn from_record(record: &TrialRecord) -> Self {
        match &record.verdict {
            Verdict::Pass => AttemptOutcome::Passed,
            Verdict::Fail => AttemptOutcome::Failed(AttemptFailure::from_record(record)),
            Verdict::NotScored(NotScoredReason::InvalidArm(why)) => AttemptOutcome::Void(why.clone()),
            Verdict::NotScored(_) => AttemptOutcome::NoVerdict,
        }
    }
}

impl CaseTally {
    pub fn new(rule: Option<ActivationRateRule>) -> Self {
        Self { activation_rule: rule, ..Self::default() }
    }

    pub fn add(&mut self, record: &TrialRecord) {
        match &record.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::NotScored(_) => self.not_scored += 1,
        }
        self.reused += u64::from(record.is_reused());
        self.failed_teardowns += u64::from(record.failed_teardowns().next().is_some());
        if let Some(why) = record.not_scored_reason()
            && self.not_scored_because.len() < MAX_REASONS
            && !self.not_scored_because.contains(&why)
        {
            self.not_scored_because.push(why);
        }
        let teardowns: Vec<&String> = record.failed_teardowns().collect();
        let notes = record.notes.iter().filter(|note| !teardowns.contains(note)).cloned();
        for note in notes.chain(record.unanswered_note()) {
            if self.notes.len() < MAX_REASONS && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        if let Verdict::NotScored(why) = &record.verdict
            && let Some(change) = why.change_needed()
        {
            self.need_a_change += 1;
            if !self.changes_needed.contains(&change) {
                self.changes_needed.push(change);
            }
        }
        self.content = record.repeats.as_ref().map(|repeats| repeats.case.clone()).or(self.content.take());
        self.votes.extend(record.verdicts_by_votes());
        self.costs.push(record.cost_usd);
        *self.endings.entry(record.ended).or_default() += 1;
        self.is_about_activation |= record.is_about_activation();
        self.without_results += u64::from(record.checks.is_empty());
        self.failure_kinds.extend(record.failure_kinds(&self.activation_checks));
        self.activation.add(record);
        self.predicted_activation.add_predicted(record);
        self.attempts.insert(record.attempt, AttemptOutcome::from_record(record));
        match record.was_activated() {
            Some(true) => self.activated.yes += 1,
            Some(false) => self.activated.no += 1,
            None => self.activated.unknown += 1,
        }
        if let Some(weight) = record.checks.iter().find_map(|check| check.weight) {
            let empty = ScoreTally { sum: 0.0, trials: 0, rule: weight.rule };
            let scores = self.scores.get_or_insert(empty);
            if let Some(score) = record.score.filter(|_| !matches!(record.verdict, Verdict::NotScored(_))) {
                scores.sum += score;
                scores.trials += 1;
            }
        }
        for result in &record.checks {
            self.check_tally(result).add(result);
        }
    }

    fn check_tally(&mut self, result: &CheckResult) -> &mut CheckTally {
        let at = match self.checks.iter().position(|check| check.id == result.check) {
            Some(at) => at,
            None => {
                let judged = result.scale.is_some();
                let (id, name) = (result.check.clone(), result.name.clone());
                self.checks.push(CheckTally::new(id, name, judged));
                self.checks.len() - 1
            }
        };
        &mut self.checks[at]
    }

    /// Gives the trials that have a verdict: how many passed, of how many.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(self.passed, self.passed + self.failed)
    }

    /// Gives the mean cost of a trial. `None` if the cost of any trial is unknown.
    pub fn mean_cost(&self) -> Option<f64> {
        let total: Option<f64> = self.costs.iter().copied().sum();
        total.filter(|_| !self.costs.is_empty()).map(|total| total / self.costs.len() as f64)
    }

    pub fn trials(&self) -> u64 {
        self.passed + self.failed + self.not_scored
    }

    /// Gives the number of planned trials that were not run although the case was not decided.
    pub fn not_run(&self) -> u64 {
        self.planned.saturating_sub(self.trials() + self.skipped_as_decided)
    }

    /// Gives the number of trials that should have a verdict and have none.
    pub fn unscored_runs(&self) -> u64 {
        self.not_scored
    }

    /// Gives the number of judge answers that are missing because their trials have no check results. A case without
    /// checks counts as one missing answer for each trial.
    pub fn judged_checks_never_asked(&self) -> u64 {
        let in_each = if self.has_no_check { 1 } else { self.planned_judged_checks };
        self.without_results * in_each
    }

    pub fn judged_checks(&self) -> impl Iterator<Item = &CheckTally> {
        self.checks.iter().filter(|check| check.judged)
    }

    /// Gives the known and the present results of a case that is known to be flaky. `None` if the case is not
    /// flaky, or now fails clearly more often than its history predicts.
    pub fn usual_flakiness(&self) -> Option<CasePair> {
        let noise = self.known_noise.as_ref().filter(|noise| noise.is_flaky())?;
        let pair = CasePair { before: Cluster::new(noise.passed, noise.runs), after: self.cluster() };
        let is_worse = pair.difference()? < 0.0 && pair.chance() <= ALPHA;
        (!is_worse).then_some(pair)
    }

    /// Says whether the case failed, but not clearly more often than its known flakiness explains.
    pub fn is_only_flaky(&self) -> bool {
        self.failed > 0 && self.usual_flakiness().is_some()
    }

    /// Says whether the trials show that the case mostly passes or mostly fails. Only trials whose predecessors are all
    /// done count: if the quick ones decided, the estimates would be about quick trials.
    pub fn is_decided(&self) -> bool {
        let Some(test) = stopping_rule() else { return false };
        let (mut passed, mut failed) = (0, 0);
        self.outcomes_in_order().into_iter().any(|outcome| {
            if outcome {
                passed += 1
            } else {
                failed += 1
            }
            test.decide(passed, failed) != SprtDecision::Undecided
        })
    }

    /// Gives the verdicts of the trials in the order of the plan, up to the first that is not done.
    fn outcomes_in_order(&self) -> Vec<bool> {
        let in_order = self.attempts.0.iter().zip(1..).take_while(|((attempt, _), place)| attempt == place);
        in_order
            .filter_map(|((_, outcome), _)| match outcome {
                AttemptOutcome::Passed => Some(true),
                AttemptOutcome::Failed(_) => Some(false),
                AttemptOutcome::NoVerdict | AttemptOutcome::Void(_) => None,
            })
            .collect()
    }

    fn stopped_case(&self) -> Option<StoppedCase> {
        evaluate_stopped_case(&stopping_rule()?, self.outcomes_in_order())
    }

    /// Gives an estimate of the pass rate whose mean is right, and the number of runs that it is made from.
    pub fn unbiased_rate(&self) -> Option<(f64, u64)> {
        let stopped = self.stops_early.then(|| self.stopped_case()).flatten();
        let stopped = stopped.map(|stopped| (stopped.pass_rate, stopped.runs));
        stopped.or_else(|| self.cluster().share().map(|share| (share, self.cluster().runs)))
    }

    /// Gives the share of trials that passed, with an interval that is about this case alone.
    pub fn own_rate(&self, alpha: f64) -> Option<(f64, Interval)> {
        let Cluster { passed, runs } = self.cluster();
        self.cluster().share().zip(self.interval_of_share(passed, runs, alpha))
    }

    fn interval_of_share(&self, part: u64, runs: u64, alpha: f64) -> Option<Interval> {
        match self.stops_early {
            true => confidence_sequence(part, runs, alpha),
            false => clopper_pearson(part, runs, alpha),
        }
    }

    /// Gives the kinds of failures of the case; empty if it passes.
    pub fn failure_kinds(&self) -> BTreeSet<FailureKind> {
        match self.activation_rule {
            Some(rule) if self.passes() == Some(false) => BTreeSet::from([match rule.expect {
                ActivationExpectation::MustNot => FailureKind::WronglyActivated,
                ActivationExpectation::Must | ActivationExpectation::Either => FailureKind::NotActivated,
            }]),
            Some(_) => BTreeSet::new(),
            None => self.failure_kinds.clone(),
        }
    }

    /// Says whether the case passes; `None` if no run is scored, or if it fails by a rate that missing runs could still
    /// raise.
    pub fn passes(&self) -> Option<bool> {
        if let Some(scores) = self.deciding_scores() {
            let missing = self.planned.max(self.trials()) - scores.trials;
            scores.mean()?;
            return Some(scores.reaches(0, 0.0)).filter(|is_met| *is_met || !scores.reaches(missing, 1.0));
        }
        let Some(rule) = self.activation_rule else {
            return (self.passed + self.failed > 0).then_some(self.failed == 0);
        };
        let (activated, conclusive) = (self.activation.activated_runs(), self.activation.conclusive_runs());
        let missing = self.activation.all_runs.unknown_runs() + self.not_run();
        let best_activated = match rule.expect {
            ActivationExpectation::MustNot => activated,
            ActivationExpectation::Must | ActivationExpectation::Either => activated + missing,
        };
        let can_be_mended = || rule.is_met(best_activated, conclusive + missing) == Some(true);
        rule.is_met(activated, conclusive).filter(|is_met| *is_met || !can_be_mended())
    }

    /// Says whether the case would pass if every unscored run had failed; `None` if it has no runs.
    pub fn passes_at_worst(&self) -> Option<bool> {
        let missing = self.unscored_runs();
        if self.cluster().runs + missing == 0 {
            return None;
        }
        if let Some(scores) = self.deciding_scores() {
            return Some(scores.reaches(self.planned.max(self.trials()) - scores.trials, 0.0));
        }
        let Some(rule) = self.activation_rule else { return Some(self.failed + missing == 0) };
        let (activated, conclusive) =
            (self.activation.activated_runs(), self.activation.conclusive_runs() + missing);
        match rule.expect {
            ActivationExpectation::MustNot => rule.is_met(activated + missing, conclusive),
            ActivationExpectation::Must | ActivationExpectation::Either => rule.is_met(activated, conclusive),
        }
    }

    /// Gives the scores of the trials, if their mean decides the case.
    fn deciding_scores(&self) -> Option<ScoreTally> {
        self.scores.filter(|scores| scores.rule.of == ScoreOf::MeanOfTrials)
    }

    fn score(&self) -> Option<CaseScore> {
        let scores = self.scores?;
        let passes = self.deciding_scores().and_then(|_| self.passes());
        Some(CaseScore { mean: scores.mean()?, trials: scores.trials, rule: scores.rule, passes })
    }

    pub fn reliability(&self) -> Vec<Reliability> {
        let Cluster { passed, runs } = self.cluster();
        if runs < 2 {
            return Vec::new();
        }
        if self.stops_early {
            return self.stopped_reliability();
        }
        let of = |k| {
            Some(Reliability {
                k,
                pass_at_k: pass_at_k(passed, runs, k)?,
                pass_hat_k: pass_hat_k(passed, runs, k)?,
            })
        };
        (1..=runs.min(MAX_K)).filter_map(of).collect()
    }

    /// Gives what can be said of a case that stopped early: nothing about more than two runs, because a case may stop
    /// after two.
    fn stopped_reliability(&self) -> Vec<Reliability> {
        let Some(of) = self.stopped_case() else { return Vec::new() };
        let two = of.any_of_two.zip(of.both_of_two).map(|(any, both)| Reliability {
            k: 2,
            pass_at_k: any,
            pass_hat_k: both,
        });
        let one = two.map(|_| Reliability { k: 1, pass_at_k: of.pass_rate, pass_hat_k: of.pass_rate });
        one.into_iter().chain(two).collect()
    }

    pub fn summary(&self, key: &CaseKey) -> CaseSummary {
        CaseSummary {
            id: key.case.clone(),
            suite: key.suite.clone(),
            agent: key.agent.clone(),
            model: key.model.clone(),
            arm: key.arm.name(),
            mode: key.mode.clone(),
            passed: self.passed,
            failed: self.failed,
            not_scored: self.not_scored,
            not_run: self.not_run(),
            reused: self.reused,
            not_scored_because: self.not_scored_because.clone(),
            notes: self.notes.clone(),
            changes_needed: self.changes_needed.clone(),
            need_a_change: self.need_a_change,
            failed_teardowns: self.failed_teardowns,
            endings: self.endings.iter().map(|(ended, count)| (ended.name().to_owned(), *count)).collect(),
            pass_rate: pass_rate(self.own_rate(ALPHA), &[(self.cluster(), self.unscored_runs())]),
            reliability: self.reliability(),
            fired: self.activated,
            fire_rate: self.activation_rate(),
            score: self.score(),
            stability: None,
            ungated: false,
            checks: self.checks.iter().map(CheckTally::summary).collect(),
        }
    }

    /// Compares the share of passing runs with the required share. `None` if no share is required, or if the activation
    /// rate decides the case.
    pub fn stability(&self, required: Option<f64>) -> Option<CaseStability> {
        let threshold = required.filter(|_| self.activation_rule.is_none())?;
        let passes = self.cluster().share().map(|share| share >= threshold);
        Some(CaseStability { threshold, passes })
    }

    fn activation_rate(&self) -> Option<CaseActivationRate> {
        let expect = self.activation.expect?;
        let (activated, conclusive) = (self.activation.activated_runs(), self.activation.conclusive_runs());
        let interval = self.interval_of_share(activated, conclusive, ALPHA).map(|at| (at.low, at.high));
        Some(CaseActivationRate {
            rate: Estimate::new(share(activated, conclusive), interval, conclusive),
            expect,
            threshold: self.activation_rule.map(|rule| rule.threshold.get()),
            passes: self
                .activation_rule
                .filter(|_| expect != ActivationExpectation::Either)
                .and_then(|_| self.passes()),
        })
    }
}

/// The pass rates that the sequential test distinguishes, and how often it may call a good case bad.
const LOW_PASS_RATE: f64 = 0.6;
const HIGH_PASS_RATE: f64 = 0.9;
const ERROR_CHANCE: f64 = 0.2;

/// The test that stops a case early.
fn stopping_rule() -> Option<Sprt> {
    Sprt::new(LOW_PASS_RATE, HIGH_PASS_RATE, ALPHA, ERROR_CHANCE)
}

/// The greatest number of different reasons that a case keeps.
const MAX_REASONS: usize = 5;

/// The largest `k` of pass@k. More repetitions are not useful in practice.
const MAX_K: u64 = 10;

/// Makes a pass rate, with the number of trials that are not scored and the rate at worst. `counts` has the answers of
/// each case and the number of its trials that are not scored.
pub fn pass_rate(rate: Option<(f64, Interval)>, counts: &[(Cluster, u64)]) -> PassRate {
    let (value, interval) = rate.unzip();
    let runs = counts.iter().map(|(cluster, _)| cluster.runs).sum();
    PassRate {
        rate: Estimate::new(value, interval.map(|at| (at.low, at.high)), runs),
        worst: worst_rate(counts),
        not_scored: counts.iter().map(|(_, missing)| missing).sum(),
    }
}
