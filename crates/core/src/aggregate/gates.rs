//! The results of gates: whether a suite reached what it must reach.

use std::collections::BTreeMap;

use super::case::CaseTally;
use super::{CaseKey, RunTally, rate_over_cases, share};
use crate::model::{Estimate, FailureKind, Gate, GateName, GateResult};
use crate::stats::{
    ALPHA, Cluster, Confusion, ConfusionRates, Interval, chance_of_so_few, clopper_pearson, clustered_rate,
    mean_of_cases, rates,
};

/// A gate and the suite whose cases it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteGate {
    /// The name of the suite.
    pub suite: String,
    /// The condition that the cases of the suite have to reach.
    pub gate: Gate,
}

/// The figure that a gate compares with its threshold.
struct GateFigure {
    value: Option<f64>,
    interval: Option<(f64, f64)>,
    /// The value if everything without an answer had gone wrong.
    worst_value: Option<f64>,
    /// How many answers are missing, and of how many.
    missing: (u64, u64),
}

/// Cases, each with its counts.
type KeyedCaseTallies<'t> = Vec<(&'t CaseKey, &'t CaseTally)>;

impl RunTally {
    /// Gives the results of a gate, one for each agent and model that the suite ran with, so that a good agent
    /// cannot hide a bad one. `gates` are those of the whole run.
    pub(super) fn gate_results(
        &self,
        SuiteGate { suite, gate }: &SuiteGate,
        gates: &[SuiteGate],
    ) -> Vec<GateResult> {
        let of_suite: KeyedCaseTallies<'_> =
            self.cases.iter().filter(|(key, _)| key.suite == *suite).collect();
        // A suite that ran only without its skill has a gate only if the user asked for one.
        let is_baseline = !of_suite.iter().any(|(key, _)| key.is_under_test());
        let has_own_gate = gates_activation_cases(suite, gates);
        let mut by_agent: BTreeMap<(&str, Option<&str>), KeyedCaseTallies<'_>> = BTreeMap::new();
        for (key, case) in of_suite.into_iter().filter(|(key, _)| is_baseline || key.is_under_test()) {
            by_agent.entry((&key.agent, key.model.as_deref())).or_default().push((key, case));
        }
        match by_agent.len() {
            // There are no results of this suite, so nothing is measured.
            0 => vec![self.gate_result_over(suite, gate, None, Vec::new(), has_own_gate)],
            1 => by_agent
                .into_values()
                .map(|cases| self.gate_result_over(suite, gate, None, cases, has_own_gate))
                .collect(),
            _ => by_agent
                .into_iter()
                .map(|((agent, model), cases)| {
                    let model = model.map(|model| format!(" ({model})")).unwrap_or_default();
                    self.gate_result_over(suite, gate, Some(format!("{agent}{model}")), cases, has_own_gate)
                })
                .collect(),
        }
    }

    /// Gives the result of a gate over these cases. `has_own_gate`: the suite's activation cases have a gate of
    /// their own.
    fn gate_result_over(
        &self,
        suite: &str,
        gate: &Gate,
        agent: Option<String>,
        cases: KeyedCaseTallies<'_>,
        has_own_gate: bool,
    ) -> GateResult {
        // Where a gate looks at no case, nothing is measured: other cases do not stand in for them.
        let cases: KeyedCaseTallies<'_> =
            cases.into_iter().filter(|(_, case)| looks_at_case(gate.name, case, has_own_gate)).collect();
        if gate.name == GateName::NoRegression {
            return self.no_regression_result(suite, gate, agent, &cases);
        }
        // Nobody knows what trials would have shown that were not run.
        let not_run = cases.iter().map(|(_, case)| case.not_run()).sum();
        let all: Vec<&CaseTally> = cases.iter().map(|(_, case)| *case).collect();
        let found = figure_for_gate(gate.name, &all, ALPHA);
        let bound = gate.confidence.and_then(|sure| lower_bound(gate.name, &all, sure.get()));
        let mut ok = self.reaches_threshold(&found, gate, &all);
        let (mut spared, mut too_many_flaky) = (Vec::new(), Vec::new());
        if !ok {
            let (flaky, steady): (Vec<_>, Vec<_>) = cases.iter().partition(|(_, case)| case.is_only_flaky());
            let steady: Vec<&CaseTally> = steady.iter().map(|(_, case)| *case).collect();
            let without_flaky = figure_for_gate(gate.name, &steady, ALPHA);
            if !flaky.is_empty() && self.reaches_threshold(&without_flaky, gate, &steady) {
                let names = flaky.iter().map(|(key, _)| key.case.clone()).collect();
                // `is_only_flaky` has already tested a single case.
                ok = flaky.len() == 1 || are_as_flaky_as_usual(&all);
                *(if ok { &mut spared } else { &mut too_many_flaky }) = names;
            }
        }
        ok &= not_run == 0 || gate.threshold.get() == 0.0;
        let (low, high) = found.interval.unzip();
        GateResult {
            value: found.value,
            low,
            high,
            worst: found.worst_value.filter(|_| not_run == 0),
            bound,
            spared,
            too_many_flaky,
            not_run,
            ok,
            ..GateResult::new(gate, suite, agent)
        }
    }

    fn reaches_threshold(&self, figure: &GateFigure, gate: &Gate, cases: &[&CaseTally]) -> bool {
        let reached = |value: Option<f64>| value.is_some_and(|value| value >= gate.threshold.get());
        let (missing, whole) = figure.missing;
        let forgiven = missing as f64 <= self.allowed_unscored * whole as f64;
        let Some(sure) = gate.confidence else {
            return reached(figure.value) && (forgiven || reached(figure.worst_value));
        };
        let bound = lower_bound(gate.name, cases, sure.get());
        // What is missing lowers the bound as much as the value.
        let lowered = figure.value.zip(figure.worst_value).map(|(value, worst)| value - worst);
        reached(bound) && (forgiven || reached(bound.zip(lowered).map(|(bound, less)| bound - less)))
    }
}

/// Gives what the true figure reaches with this confidence.
fn lower_bound(name: GateName, cases: &[&CaseTally], confidence: f64) -> Option<f64> {
    // An interval leaves out as much on each side.
    figure_for_gate(name, cases, 2.0 * (1.0 - confidence)).interval.map(|(low, _)| low)
}

/// Whether the activation cases of a suite have a gate of their own.
fn gates_activation_cases(suite: &str, gates: &[SuiteGate]) -> bool {
    gates.iter().any(|other| other.suite == suite && other.gate.name == GateName::ActivationCasesPass)
}

/// Whether a gate looks at a case. `has_own_gate`: the suite's activation cases have a gate of their own.
fn looks_at_case(gate: GateName, case: &CaseTally, has_own_gate: bool) -> bool {
    match gate {
        GateName::ActivationCasesPass => case.is_about_activation,
        GateName::Stability => !(has_own_gate && case.is_about_activation),
        _ => true,
    }
}

/// Gives the gates that measure a case and that it could fail.
fn gates_of_case<'g>(
    key: &CaseKey,
    case: &CaseTally,
    gates: &'g [SuiteGate],
) -> impl Iterator<Item = &'g Gate> {
    let has_own_gate = gates_activation_cases(&key.suite, gates);
    gates
        .iter()
        .filter(|of| of.suite == key.suite && of.gate.threshold.get() > 0.0)
        .filter(move |of| looks_at_case(of.gate.name, case, has_own_gate))
        .map(|of| &of.gate)
}

/// Whether a case failed in a way that no gate of its suite measures.
pub(super) fn fails_outside_gates(key: &CaseKey, case: &CaseTally, gates: &[SuiteGate]) -> bool {
    let is_measured =
        |kind: &FailureKind| gates_of_case(key, case, gates).any(|gate| gate.name.measures(*kind));
    !case.failure_kinds().iter().all(is_measured)
}

/// The share of its runs that a case must pass, where a gate on stability asks for that and no other gate asks for
/// every run.
pub(super) fn required_stability(key: &CaseKey, case: &CaseTally, gates: &[SuiteGate]) -> Option<f64> {
    let every_run = |gate: &Gate| matches!(gate.name, GateName::AllCasesPass | GateName::ActivationCasesPass);
    if gates_of_case(key, case, gates).any(every_run) {
        return None;
    }
    let stability = gates_of_case(key, case, gates).find(|gate| gate.name == GateName::Stability);
    stability.map(|gate| gate.threshold.get())
}

/// Says whether the flaky cases together fail no more often than their history predicts. Flaky cases that passed
/// count too: a look at the failed ones alone would always find too many failures.
fn are_as_flaky_as_usual(cases: &[&CaseTally]) -> bool {
    let pairs = cases.iter().filter_map(|case| case.usual_flakiness());
    chance_of_so_few(&pairs.map(|pair| (pair.before, pair.after)).collect::<Vec<_>>()) > ALPHA
}

fn figure_for_gate(name: GateName, cases: &[&CaseTally], alpha: f64) -> GateFigure {
    let figure = fixed_figure_for_gate(name, cases, alpha);
    let is_decided_by_results = cases.iter().any(|case| case.stops_early);
    match name {
        GateName::PassRate => figure,
        // The results decided how many trials ran, and only the interval of the pass rate allows for that.
        _ if is_decided_by_results => GateFigure { interval: None, ..figure },
        _ => figure,
    }
}

fn fixed_figure_for_gate(name: GateName, cases: &[&CaseTally], alpha: f64) -> GateFigure {
    match name {
        GateName::AllCasesPass | GateName::ActivationCasesPass => all_pass_figure(cases, alpha),
        GateName::PassRate => {
            let counts: Vec<_> = cases.iter().map(|case| (case.cluster(), case.unscored_runs())).collect();
            pass_rate_figure(rate_over_cases(cases, alpha), &counts)
        }
        GateName::CriteriaPassRate => {
            let judged = |case: &&CaseTally| {
                let (passed, failed) =
                    case.judged_checks().fold((0, 0), |(p, f), check| (p + check.passed, f + check.failed));
                (Cluster::new(passed, passed + failed), count_unscored_checks(&[*case]))
            };
            let counts: Vec<(Cluster, u64)> = cases.iter().map(judged).collect();
            let clusters: Vec<Cluster> = counts.iter().map(|(cluster, _)| *cluster).collect();
            pass_rate_figure(clustered_rate(&clusters, alpha), &counts)
        }
        GateName::MeanScore => mean_score_figure(cases, alpha),
        GateName::Stability => GateFigure {
            value: minimum(cases.iter().filter_map(|case| case.cluster().share())),
            // The interval of a minimum would not be reliable.
            interval: None,
            worst_value: minimum(cases.iter().filter_map(|case| share(case.cluster().passed, case.trials()))),
            missing: (count_unscored_runs(cases), count_trials(cases)),
        },
        GateName::Precision => activation_figure(cases, |rates| rates.precision, alpha),
        GateName::Recall => activation_figure(cases, |rates| rates.recall, alpha),
        GateName::F1 => activation_figure(cases, |rates| rates.f1, alpha),
        GateName::Accuracy => activation_figure(cases, |rates| rates.accuracy, alpha),
        // This gate has its own test, which needs the baseline.
        GateName::NoRegression => {
            GateFigure { value: None, interval: None, worst_value: None, missing: (0, 0) }
        }
    }
}

fn count_unscored_runs(cases: &[&CaseTally]) -> u64 {
    cases.iter().map(|case| case.unscored_runs()).sum()
}

fn count_trials(cases: &[&CaseTally]) -> u64 {
    cases.iter().map(|case| case.trials()).sum()
}

fn count_unscored_checks(cases: &[&CaseTally]) -> u64 {
    let unanswered = cases.iter().flat_map(|case| case.judged_checks()).map(|check| check.not_scored);
    unanswered.sum::<u64>() + cases.iter().map(|case| case.judged_checks_never_asked()).sum::<u64>()
}

/// Runs of cases that have no check. Nobody knows what they would have been asked, so every gate counts them as
/// runs without an answer.
fn count_runs_without_checks(cases: &[&CaseTally]) -> u64 {
    cases.iter().filter(|case| case.has_no_check).map(|case| case.trials()).sum()
}

fn minimum(shares: impl Iterator<Item = f64>) -> Option<f64> {
    shares.min_by(f64::total_cmp)
}

fn all_pass_figure(cases: &[&CaseTally], alpha: f64) -> GateFigure {
    let count =
        |verdicts: &[bool]| (verdicts.iter().filter(|passes| **passes).count() as u64, verdicts.len() as u64);
    let (passed, scored) = count(&cases.iter().filter_map(|case| case.passes()).collect::<Vec<_>>());
    let (surely, all) = count(&cases.iter().filter_map(|case| case.passes_at_worst()).collect::<Vec<_>>());
    GateFigure {
        value: share(passed, scored),
        interval: clopper_pearson(passed, scored, alpha).map(|at| (at.low, at.high)),
        worst_value: share(surely, all),
        missing: (count_unscored_runs(cases), count_trials(cases)),
    }
}

/// Gives the figure of a pass rate. Each case comes with its answers and the number of those that are missing.
fn pass_rate_figure(found: Option<(f64, Interval)>, cases: &[(Cluster, u64)]) -> GateFigure {
    let missing: u64 = cases.iter().map(|(_, missing)| missing).sum();
    let answers: u64 = cases.iter().map(|(cluster, _)| cluster.runs).sum();
    GateFigure {
        value: found.map(|(rate, _)| rate),
        interval: found.map(|(_, at)| (at.low, at.high)),
        worst_value: worst_rate(cases),
        missing: (missing, missing + answers),
    }
}

/// Gives the pass rate, a mean over cases, if every missing answer were a failure. `None` if there is no answer at all
/// and none is missing.
pub(super) fn worst_rate(cases: &[(Cluster, u64)]) -> Option<f64> {
    let with_missing = cases.iter().map(|(of, missing)| Cluster::new(of.passed, of.runs + missing));
    let shares: Vec<f64> = with_missing.filter_map(Cluster::share).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

fn mean_score_figure(cases: &[&CaseTally], alpha: f64) -> GateFigure {
    let scores = |case: &&CaseTally| {
        case.judged_checks().fold((0.0, 0), |(sum, n), check| (sum + check.share_sum, n + check.shares))
    };
    let of_cases: Vec<(f64, u64)> = cases.iter().map(scores).filter(|(_, count)| *count > 0).collect();
    let missing = count_unscored_checks(cases);
    let count = of_cases.iter().map(|(_, count)| count).sum();
    let worst = cases.iter().map(|case| (scores(case), count_unscored_checks(&[*case])));
    let worst: Vec<f64> = worst
        .filter(|((_, count), missing)| count + missing > 0)
        .map(|((sum, count), missing)| sum / (count + missing) as f64)
        .collect();
    let means: Vec<f64> = of_cases.iter().map(|(sum, count)| sum / *count as f64).collect();
    let found = mean_of_cases(&means, count, alpha);
    GateFigure {
        value: found.map(|(mean, _)| mean),
        interval: found.map(|(_, at)| (at.low, at.high)),
        worst_value: (!worst.is_empty()).then(|| worst.iter().sum::<f64>() / worst.len() as f64),
        missing: (missing, count + missing),
    }
}

fn activation_figure(cases: &[&CaseTally], pick: fn(ConfusionRates) -> Estimate, alpha: f64) -> GateFigure {
    let seen: Vec<Confusion> = cases.iter().map(|case| case.activation.all_runs.confusion).collect();
    let worst: Vec<Confusion> =
        cases.iter().map(|case| case.activation.all_runs.worst_case_confusion()).collect();
    let runs = |of: &[Confusion]| of.iter().map(|case| case.runs()).sum::<u64>();
    let found = pick(rates(&seen, alpha));
    let unasked = count_runs_without_checks(cases);
    let ways_to_go_wrong = [
        Confusion { fn_: unasked, ..Confusion::default() },
        Confusion { fp: unasked, ..Confusion::default() },
    ];
    let worst_with = |wrong: Confusion| pick(rates(&[worst.clone(), vec![wrong]].concat(), alpha)).value;
    GateFigure {
        value: found.value,
        interval: found.low.zip(found.high),
        worst_value: minimum(ways_to_go_wrong.into_iter().filter_map(worst_with)),
        missing: (runs(&worst) - runs(&seen) + unasked, runs(&worst) + unasked),
    }
}
