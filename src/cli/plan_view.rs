//! Shows the plan of a run, its estimate, and its progress.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

use crate::cli::count_with_noun;
use crate::event::EventSink;
use crate::model::{Gate, GateName, Ratio, Trial, format_duration};
use crate::plan::Plan;
use crate::report::{LiveView, PlainProgress, SuiteNaming, terminal_safe};
use crate::session::PlannedRun;
use crate::stats::chance_to_pass_gate;
use crate::store::Index;
use crate::store::history::{EstimatedTrialKind, estimate_run};

/// The largest number of suites that a plan names; nobody reads a longer list.
const MOST_SUITES: usize = 12;

/// Shows the plan of a run: the numbers of trials, then the suites.
pub fn show_plan(plan: &Plan, reused: usize, probes: usize) {
    // Only the cases that the filters kept.
    let mut suites: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for trial in &plan.trials {
        suites.entry(trial.suite).or_default().insert(trial.case);
    }
    let cases: usize = suites.values().map(BTreeSet::len).sum();
    let mut agents: Vec<&str> = plan.trials.iter().map(|trial| trial.condition.agent.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    say!(
        "plan: {} of {} in {} with {}",
        count_with_noun(plan.trials.len(), "trial"),
        count_with_noun(cases, "case"),
        count_with_noun(suites.len(), "suite"),
        agents.join(", ")
    );
    if reused > 0 {
        say!(
            "  {reused} reuse, {} run: nothing that decides the others has changed (--no-cache runs all)",
            plan.trials.len() - reused
        );
    }
    if probes > 0 {
        let many = count_with_noun(probes, "probe");
        say!("  {many} before, one per agent and skill whose activation is measured (--no-probe: none)");
    }
    for (suite, cases) in suites.iter().take(MOST_SUITES) {
        let planned = &plan.suites[*suite];
        let limits = cases.iter().map(|case| planned.time_limit(&planned.suite.cases[*case]));
        let longest = limits.max().unwrap_or(planned.settings.timeout.value);
        let scripted = if planned.script.is_some() { ", the model's answers are scripted" } else { "" };
        let rivals: Vec<&str> = planned.suite.rivals.iter().map(|rival| rival.name.as_str()).collect();
        let beside =
            if rivals.is_empty() { String::new() } else { format!(", beside {}", rivals.join(", ")) };
        say!(
            "  {}: {}, at most {} each{}{scripted}",
            terminal_safe(&planned.suite.name),
            count_with_noun(cases.len(), "case"),
            format_duration(longest),
            terminal_safe(&beside)
        );
        describe_gate_chances(plan, *suite, cases.len() as u64).iter().for_each(|line| say!("    {line}"));
    }
    if suites.len() > MOST_SUITES {
        let more = count_with_noun(suites.len() - MOST_SUITES, "more suite");
        say!("  and {more}; practicum list names them all");
    }
}

/// The most cases for which the chances of a gate are simulated. With more, they hardly matter.
const MOST_SIMULATED_CASES: u64 = 500;

/// Says how likely the gates on the pass rate hold, before anything is spent.
fn describe_gate_chances(plan: &Plan, suite: usize, cases: u64) -> Vec<String> {
    let of_suite =
        || plan.trials.iter().filter(|trial| trial.suite == suite && trial.condition.arm.has_skill());
    let Some(first) = of_suite().next() else { return Vec::new() };
    let runs = of_suite().filter(|trial| trial.condition == first.condition).count() as u64;
    let gates = plan.suites[suite].suite.gates.iter();
    gates
        .filter(|gate| {
            gate.name == GateName::PassRate && gate.threshold.get() > 0.0 && cases <= MOST_SIMULATED_CASES
        })
        .map(|gate| describe_gate_chance(gate, cases, (runs / cases.max(1)).max(1)))
        .collect()
}

fn describe_gate_chance(gate: &Gate, cases: u64, repeat: u64) -> String {
    let (threshold, sure) = (gate.threshold.get(), gate.confidence.map(Ratio::get));
    let chance = |rate: f64| chance_to_pass_gate(rate, threshold, sure, cases, repeat);
    let wanted = sure.map(|sure| format!(" with {:.0} % confidence", sure * 100.0)).unwrap_or_default();
    if chance(1.0) < 1.0 {
        return format!(
            "gate pass_rate {threshold}{wanted}: cannot hold with so few cases, even if every trial passes"
        );
    }
    let better = (1.0 + threshold) / 2.0;
    format!(
        "gate pass_rate {threshold}{wanted}: a skill at {threshold} passes it in about {:.0} % of such runs, one at \
         {better:.2} in {:.0} %",
        chance(threshold) * 100.0,
        chance(better) * 100.0
    )
}

/// Shows the estimated cost and time of a run, from earlier runs. If the history cannot be read, the run still
/// starts.
pub fn show_estimate(planned: &PlannedRun<'_>) {
    let PlannedRun { plan, probes, reused, project, jobs } = *planned;
    let mut wanted: BTreeMap<EstimatedTrialKind, u64> = BTreeMap::new();
    let is_to_run =
        |trial: &&Trial| !reused.trials.contains_key(&trial.id) && plan.why_not_started(trial).is_none();
    for trial in plan.trials.iter().filter(is_to_run).chain(&probes.trials) {
        // The cases of probes are not among those of the plan, but their suites are.
        let planned = &plan.suites[trial.suite];
        let kind = EstimatedTrialKind {
            suite: planned.suite.name.clone(),
            agent: trial.condition.agent.clone(),
            model: trial.condition.model.clone(),
            scripted: planned.script.is_some(),
        };
        *wanted.entry(kind).or_default() += 1;
    }
    if wanted.is_empty() {
        return;
    }
    let text = match Index::open_updated(project).and_then(|index| estimate_run(&index, &wanted)) {
        Ok(estimate) => estimate.describe(jobs),
        Err(error) => format!("cost and time unknown: {error}"),
    };
    say!("  estimate: {}", terminal_safe(&text));
}

/// Chooses how the user sees the progress. Without a terminal, plain lines are better.
pub fn progress(
    quiet: bool,
    suites: usize,
    environment: &BTreeMap<String, String>,
) -> Option<Box<dyn EventSink>> {
    let suites = SuiteNaming::from_count(suites);
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    let dumb = environment.get("TERM").is_some_and(|term| term == "dumb");
    let looks = std::io::stderr().is_terminal() && !set("CI") && !dumb;
    match (quiet, looks) {
        (true, _) => None,
        (false, true) => Some(Box::new(LiveView::start(suites))),
        (false, false) => Some(Box::new(PlainProgress::new(std::io::stderr(), suites))),
    }
}
