//! Writes the settings and gates of a suite into a clauditor spec.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::super::writing::Losses;
use super::super::grading::{ClauditorThresholds, VarianceSettings, to_ratio};
use super::super::policy::HARNESSES;
use super::super::{DEFAULT_TIMEOUT, SpecParts, default_run_policy, gates_of_spec};
use super::ExportedSpec;
use practicum_core::model::{
    Case, Check, CheckNeed, Gate, GateName, JudgeTransportChoice, Provider, Ratio, Suite,
};

/// Writes the settings for running and judging a spec. Gives the suite without what was written.
pub fn write_settings(
    spec: &ExportedSpec<'_>,
    mut suite: Suite,
    alone: bool,
    map: &mut Map<String, Value>,
    losses: &mut Losses,
) -> Suite {
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    if let Some(variance) = take_variance(spec, &mut suite, alone, losses) {
        put("variance", variance);
    }
    let judge = &mut suite.judge_policy;
    for (key, text) in [("grading_model", &mut judge.model), ("user_prompt", &mut judge.user_prompt)] {
        if let Some(text) = take_nonblank(text) {
            put(key, json!(text));
        }
    }
    // `auto` is the default, and the format leaves it out.
    if let Some(provider) = judge.provider.take().filter(|provider| *provider != Provider::Auto) {
        put("grading_provider", json!(provider.name()));
    }
    if let Some(transport) =
        judge.transport.take().filter(|transport| *transport != JudgeTransportChoice::Auto)
    {
        put("transport", json!(transport.name()));
    }
    if let Some(harness) = take_harness(&mut suite) {
        put("harness", json!(harness));
    }
    let prompt = take_nonblank(&mut suite.run_policy.system_prompt);
    let default = take_nonblank(&mut suite.format_defaults.system_prompt);
    if let Some(prompt) = prompt.or(default) {
        put("system_prompt", json!(prompt));
    }
    if let Some(seconds) = take_timeout(spec, &mut suite, losses) {
        put("timeout", json!(seconds));
    }
    let (run, format) = (&mut suite.run_policy, &mut suite.format_defaults);
    let sync = (run.sync_tasks.take(), format.sync_tasks.take());
    if let (Some(sync), _) | (None, Some(sync @ true)) = sync {
        put("sync_tasks", json!(sync));
    }
    // A suite that does not mention questions treats them as ordinary endings. This format does not, so the file
    // must say it.
    let detect = (run.detect_questions.take(), format.detect_questions.take());
    match detect {
        (Some(detect), _) => put("allow_hang_heuristic", json!(detect)),
        (None, Some(true)) => {}
        (None, Some(false) | None) => put("allow_hang_heuristic", json!(false)),
    }
    suite
}

/// Takes a text that is not blank. A blank text cannot be written and stays, so that it is reported.
fn take_nonblank(text: &mut Option<String>) -> Option<String> {
    text.take_if(|text| !text.trim().is_empty())
}

/// Takes the only agent, if the format has a name for it.
fn take_harness(suite: &mut Suite) -> Option<&'static str> {
    let agents = if suite.run_policy.agents.is_empty() {
        &suite.format_defaults.agents
    } else {
        &suite.run_policy.agents
    };
    let [agent] = agents.as_slice() else { return None };
    let known = HARNESSES.iter().find(|(_, name)| name == agent).map(|(harness, _)| *harness);
    if known.is_some() || agent == "auto" {
        suite.run_policy.agents.clear();
        suite.format_defaults.agents.clear();
    }
    known
}

/// Gives the cases of queries. The invocation, if any, is the first case of a spec.
fn query_cases<'s>(spec: &ExportedSpec<'_>, suite: &'s mut Suite) -> impl Iterator<Item = &'s mut Case> {
    suite.cases.iter_mut().skip(usize::from(spec.invocation.is_some()))
}

/// Takes the time limit in whole seconds, if it differs from the format's default.
fn take_timeout(spec: &ExportedSpec<'_>, suite: &mut Suite, losses: &mut Losses) -> Option<u64> {
    let (run, default) = (suite.run_policy.timeout.take(), suite.format_defaults.timeout.take());
    let own = spec.invocation.as_ref().and_then(|(case, _)| case.timeout).or(run);
    let limit = own.or(default.filter(|limit| *limit != DEFAULT_TIMEOUT));
    for query in query_cases(spec, suite) {
        // A spec has one time limit: the invocation's.
        let wanted = query.timeout.or(run).or(default);
        query.timeout = wanted.filter(|wanted| *wanted != limit.unwrap_or(DEFAULT_TIMEOUT));
    }
    let limit = limit?;
    let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() != 0);
    if limit != Duration::from_secs(seconds) {
        losses.add_for_suite("time limits that are no whole seconds; they are rounded up");
    }
    Some(seconds)
}

/// Takes the number of runs and the required stability.
fn take_variance(
    spec: &ExportedSpec<'_>,
    suite: &mut Suite,
    alone: bool,
    losses: &mut Losses,
) -> Option<Value> {
    let repeat = suite.run_policy.repeat.take().or(suite.format_defaults.repeat.take());
    let invoked = spec.invocation.as_ref();
    let runs = invoked.and_then(|(case, _)| case.repeat).or(repeat);
    for query in query_cases(spec, suite) {
        // The format runs a query once, whatever the other settings are.
        query.repeat = query.repeat.or(repeat).filter(|runs| *runs != 1);
    }
    let graded = invoked.and_then(|(_, invocation)| invocation.thresholds);
    let is_required = |check: &Check| check.need == CheckNeed::Required;
    let parts = SpecParts {
        is_invoked: invoked.is_some(),
        has_required: invoked.is_some_and(|(case, _)| case.checks.iter().any(is_required)),
        has_queries: query_cases(spec, suite).next().is_some(),
    };
    let wanted = GateDemands::from_gates(&suite.gates, graded, parts);
    let plain = suite.gates.iter().any(|gate| gate.name == GateName::AllCasesPass)
        && !suite.gates.iter().any(|gate| gate.name == GateName::Stability);
    let often = invoked.is_some() && runs.is_some_and(|runs| runs != 1);
    let variance = (!plain || often).then(|| VarianceSettings {
        runs: runs.or(default_run_policy().repeat).unwrap_or(1),
        stability: wanted.stability,
    });
    let written =
        GateDemands::from_gates(&gates_of_spec(graded.as_ref(), variance.as_ref(), parts), graded, parts);
    // A share over all cases is not the same as that share in every spec.
    if wanted != written || !alone && !wanted.others.is_empty() {
        losses.add_for_suite("the gates");
    }
    suite.gates.clear();
    variance.map(|variance| json!({"n_runs": variance.runs, "min_stability": variance.stability.get()}))
}

/// The requirements of a list of gates, for comparing lists that express the same requirements differently.
#[derive(PartialEq)]
struct GateDemands {
    /// The required stability. "Every case passes" means that every run of every case passes: 1.
    stability: Ratio,
    /// Whether every query must pass, whatever the stability.
    queries_pass: bool,
    others: Vec<Gate>,
}

impl GateDemands {
    fn from_gates(gates: &[Gate], graded: Option<ClauditorThresholds>, parts: SpecParts) -> Self {
        let mut stability = to_ratio(0.0);
        let mut queries_pass = !parts.has_queries;
        let mut others = Vec::new();
        for gate in gates {
            match gate.name {
                GateName::AllCasesPass => stability = to_ratio(1.0),
                GateName::Stability if gate.threshold > stability => stability = gate.threshold,
                GateName::Stability => {}
                GateName::ActivationCasesPass if gate.threshold == Ratio::ONE || !parts.has_queries => {
                    queries_pass = true;
                }
                GateName::PassRate
                | GateName::CriteriaPassRate
                | GateName::MeanScore
                | GateName::ActivationCasesPass
                | GateName::Precision
                | GateName::Recall
                | GateName::F1
                | GateName::Accuracy
                | GateName::NoRegression => others.push(*gate),
            }
        }
        others.retain(|gate| {
            let reached = match (gate.name, graded) {
                (GateName::CriteriaPassRate, Some(graded)) => graded.pass_rate,
                (GateName::MeanScore, Some(graded)) => graded.mean_score,
                _ => return true,
            };
            // If every run must reach this threshold, all runs together reach it too.
            gate.threshold > to_ratio(0.0) && (stability < to_ratio(1.0) || gate.threshold > reached)
        });
        others.sort_by_key(|gate| gate.name);
        queries_pass |= stability == Ratio::ONE;
        Self { stability, queries_pass, others }
    }
}
