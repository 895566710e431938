//! What must be reached.

use std::collections::BTreeMap;

use super::case::CaseTally;
use super::{CaseKey, Tally, share};
use crate::model::{Estimate, Gate, GateName, GateResult};
use crate::stats::{
    ALPHA, Cluster, Confusion, Rates, as_few, bootstrap_ratio, clustered_rate, rates, wilson,
};

/// A gate and the suite whose cases it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteGate {
    pub suite: String,
    pub gate: Gate,
}

/// What a gate looks at.
struct Figure {
    value: Option<f64>,
    interval: Option<(f64, f64)>,
    /// The value if everything without an answer had gone wrong.
    worst: Option<f64>,
    /// How much has no answer, of how much.
    missing: (u64, u64),
}

/// Cases with what was counted of them.
type Cases<'t> = Vec<(&'t CaseKey, &'t CaseTally)>;

impl Tally {
    /// The results of a gate: one for each agent and model that the suite ran with, so that a good agent cannot hide
    /// a bad one. `gates` are those of the whole run.
    pub(super) fn gate(&self, SuiteGate { suite, gate }: &SuiteGate, gates: &[SuiteGate]) -> Vec<GateResult> {
        let of_suite: Cases<'_> = self.cases.iter().filter(|(key, _)| key.suite == *suite).collect();
        // A suite that ran only without its skill has a gate only if the user asked for one.
        let is_baseline = !of_suite.iter().any(|(key, _)| key.is_examined());
        let has_own_gate = gates
            .iter()
            .any(|other| other.suite == *suite && other.gate.name == GateName::ActivationCasesPass);
        let mut by_agent: BTreeMap<(&str, Option<&str>), Cases<'_>> = BTreeMap::new();
        for (key, case) in of_suite.into_iter().filter(|(key, _)| is_baseline || key.is_examined()) {
            by_agent.entry((&key.agent, key.model.as_deref())).or_default().push((key, case));
        }
        match by_agent.len() {
            // Nothing of the suite is known, so nothing is measured.
            0 => vec![self.gate_over(suite, gate, None, Vec::new(), has_own_gate)],
            1 => by_agent
                .into_values()
                .map(|cases| self.gate_over(suite, gate, None, cases, has_own_gate))
                .collect(),
            _ => by_agent
                .into_iter()
                .map(|((agent, model), cases)| {
                    let model = model.map(|model| format!(" ({model})")).unwrap_or_default();
                    self.gate_over(suite, gate, Some(format!("{agent}{model}")), cases, has_own_gate)
                })
                .collect(),
        }
    }

    /// The result of a gate over these cases. `has_own_gate`: the suite's activation cases have a gate of their own.
    fn gate_over(
        &self,
        suite: &str,
        gate: &Gate,
        agent: Option<String>,
        cases: Cases<'_>,
        has_own_gate: bool,
    ) -> GateResult {
        let cases = match gate.name {
            GateName::ActivationCasesPass => only(cases, true),
            GateName::Stability if has_own_gate => only(cases, false),
            _ => cases,
        };
        // Nobody knows what trials would have shown that were not run.
        let not_run = cases.iter().map(|(_, case)| case.not_run()).sum();
        let all: Vec<&CaseTally> = cases.iter().map(|(_, case)| *case).collect();
        let found = figure(gate.name, &all);
        let mut ok = self.holds(&found, gate.threshold.get());
        let (mut spared, mut too_many_flaky) = (Vec::new(), Vec::new());
        if !ok {
            let (flaky, steady): (Vec<_>, Vec<_>) = cases.iter().partition(|(_, case)| case.is_only_flaky());
            let steady: Vec<&CaseTally> = steady.iter().map(|(_, case)| *case).collect();
            if !flaky.is_empty() && self.holds(&figure(gate.name, &steady), gate.threshold.get()) {
                let names = flaky.iter().map(|(key, _)| key.case.clone()).collect();
                // One alone has been asked already.
                ok = flaky.len() == 1 || are_as_flaky_as_ever(&all);
                *(if ok { &mut spared } else { &mut too_many_flaky }) = names;
            }
        }
        ok &= not_run == 0 || gate.threshold.get() == 0.0;
        let (low, high) = found.interval.unzip();
        GateResult {
            name: gate.name,
            suite: suite.to_owned(),
            agent,
            value: found.value,
            low,
            high,
            worst: found.worst.filter(|_| not_run == 0),
            threshold: gate.threshold.get(),
            spared,
            too_many_flaky,
            not_run,
            ok,
        }
    }

    fn holds(&self, figure: &Figure, threshold: f64) -> bool {
        let reached = |value: Option<f64>| value.is_some_and(|value| value >= threshold);
        let (missing, whole) = figure.missing;
        let forgiven = missing as f64 <= self.allowed_unscored * whole as f64;
        reached(figure.value) && (forgiven || reached(figure.worst))
    }
}

/// The cases that say whether a skill must be activated, or the others. Where there are none, nothing is measured:
/// other cases do not stand in for them.
fn only<'c>(cases: Cases<'c>, about_activation: bool) -> Cases<'c> {
    cases.into_iter().filter(|(_, case)| case.is_about_activation == about_activation).collect()
}

/// Whether the flaky cases together do what they do anyway. Those that passed are asked too: to look
/// only at what failed would find failures.
fn are_as_flaky_as_ever(cases: &[&CaseTally]) -> bool {
    let pairs = cases.iter().filter_map(|case| case.as_flaky_as_ever());
    as_few(&pairs.map(|pair| (pair.before, pair.after)).collect::<Vec<_>>()) > ALPHA
}

fn figure(name: GateName, cases: &[&CaseTally]) -> Figure {
    match name {
        GateName::AllCasesPass | GateName::ActivationCasesPass => all_pass(cases),
        GateName::PassRate => {
            let clusters: Vec<Cluster> = cases.iter().map(|case| case.cluster()).collect();
            rate(&clusters, unscored(cases))
        }
        GateName::CriteriaPassRate => {
            let judged = |case: &&CaseTally| {
                let (passed, failed) =
                    case.judged().fold((0, 0), |(p, f), check| (p + check.passed, f + check.failed));
                Cluster::new(passed, passed + failed)
            };
            let clusters: Vec<Cluster> = cases.iter().map(judged).collect();
            rate(&clusters, unscored_checks(cases))
        }
        GateName::MeanScore => mean_score(cases),
        GateName::Stability => Figure {
            value: least(cases.iter().filter_map(|case| case.cluster().share())),
            // The least of several has no interval that could be believed.
            interval: None,
            worst: least(cases.iter().filter_map(|case| share(case.cluster().passed, case.trials()))),
            missing: (unscored(cases), trials(cases)),
        },
        GateName::Precision => activation(cases, |rates| rates.precision),
        GateName::Recall => activation(cases, |rates| rates.recall),
        GateName::F1 => activation(cases, |rates| rates.f1),
        GateName::Accuracy => activation(cases, |rates| rates.accuracy),
    }
}

fn unscored(cases: &[&CaseTally]) -> u64 {
    cases.iter().map(|case| case.unscored()).sum()
}

fn trials(cases: &[&CaseTally]) -> u64 {
    cases.iter().map(|case| case.trials()).sum()
}

fn unscored_checks(cases: &[&CaseTally]) -> u64 {
    cases.iter().flat_map(|case| case.judged()).map(|check| check.not_scored).sum()
}

fn least(shares: impl Iterator<Item = f64>) -> Option<f64> {
    shares.min_by(f64::total_cmp)
}

fn all_pass(cases: &[&CaseTally]) -> Figure {
    let count =
        |verdicts: &[bool]| (verdicts.iter().filter(|passes| **passes).count() as u64, verdicts.len() as u64);
    let (passed, told) = count(&cases.iter().filter_map(|case| case.passes()).collect::<Vec<_>>());
    let (surely, all) = count(&cases.iter().filter_map(|case| case.passes_at_worst()).collect::<Vec<_>>());
    Figure {
        value: share(passed, told),
        interval: wilson(passed, told, ALPHA).map(|at| (at.low, at.high)),
        worst: share(surely, all),
        missing: (unscored(cases), trials(cases)),
    }
}

fn rate(clusters: &[Cluster], missing: u64) -> Figure {
    let passed: u64 = clusters.iter().map(|cluster| cluster.passed).sum();
    let runs: u64 = clusters.iter().map(|cluster| cluster.runs).sum();
    Figure {
        value: share(passed, runs),
        interval: clustered_rate(clusters, ALPHA).map(|(_, at)| (at.low, at.high)),
        worst: share(passed, runs + missing),
        missing: (missing, runs + missing),
    }
}

fn mean_score(cases: &[&CaseTally]) -> Figure {
    let scores = |case: &&CaseTally| {
        case.judged().fold((0.0, 0), |(sum, n), check| (sum + check.share_sum, n + check.shares))
    };
    let of_cases: Vec<(f64, u64)> = cases.iter().map(scores).filter(|(_, count)| *count > 0).collect();
    let mean = |of: &mut dyn Iterator<Item = &(f64, u64)>| {
        let (sum, count) = of.fold((0.0, 0), |(sum, count), (s, n)| (sum + s, count + n));
        (count > 0).then(|| sum / count as f64)
    };
    let missing = unscored_checks(cases);
    let (sum, count) = of_cases.iter().fold((0.0, 0), |(sum, count), (s, n)| (sum + s, count + n));
    Figure {
        value: mean(&mut of_cases.iter()),
        interval: bootstrap_ratio(&of_cases, mean, ALPHA, 1).map(|at| (at.low, at.high)),
        worst: (count + missing > 0).then(|| sum / (count + missing) as f64),
        missing: (missing, count + missing),
    }
}

fn activation(cases: &[&CaseTally], pick: fn(Rates) -> Estimate) -> Figure {
    let seen: Vec<Confusion> = cases.iter().map(|case| case.activity.all.seen).collect();
    let worst: Vec<Confusion> = cases.iter().map(|case| case.activity.all.worst()).collect();
    let runs = |of: &[Confusion]| of.iter().map(|case| case.runs()).sum::<u64>();
    let found = pick(rates(&seen, ALPHA));
    Figure {
        value: found.value,
        interval: found.low.zip(found.high),
        worst: pick(rates(&worst, ALPHA)).value,
        missing: (runs(&worst) - runs(&seen), runs(&worst)),
    }
}
