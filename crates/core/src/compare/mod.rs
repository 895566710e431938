//! The comparison of two sets of records, case by case.
//!
//! In: the records of two runs, or of one run in two parts. Out: what got worse, what got better, what may be
//! noise.
//! Never: runs anything; pairs cases by anything but their ids.

mod best;
mod case;
mod confirmation;
mod dimension;
mod document;
mod noise;

pub use best::{BestMeasure, BestSide, find_best_side};
pub use case::CaseIdentity;
pub use confirmation::{ConfirmationPlan, confirm_losses, plan_confirmation};
pub use dimension::{Dimension, split_by_dimension};
pub use document::{
    ActivationDifference, CaseChange, CaseConfirmation, ComparedCase, ComparisonDocument, MeanDelta,
    RunCounts, SideComparison, SideSummary,
};
pub use noise::measure_noise;

use std::collections::{BTreeMap, BTreeSet};

use self::case::{ComparedCaseRuns, group_runs_by_case};
use crate::aggregate::{FrontierCandidate, RunCompletion, RunTally, find_frontier};
use crate::model::{Digest, Noise, TrialRecord, Verdict};
use crate::stats::{self, ALPHA, CasePair, CaseToTest, Cluster, mean_difference};

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct SideRecords<'r> {
    /// The name of the side in reports: a run, an arm, an agent, a model or a mode.
    pub name: String,
    /// The trials of the side.
    pub records: Vec<&'r TrialRecord>,
    /// Whether the model's answers came from a script.
    pub scripted: bool,
    /// Whether the model's answers came from a recording.
    pub replayed: bool,
}

impl<'r> SideRecords<'r> {
    /// Makes a side whose answers came from a model.
    pub fn new(name: impl Into<String>, records: Vec<&'r TrialRecord>) -> Self {
        Self { name: name.into(), records, scripted: false, replayed: false }
    }

    /// Sets where the model's answers came from, if not from a model.
    #[must_use]
    pub fn with_stand_ins(self, scripted: bool, replayed: bool) -> Self {
        Self { scripted, replayed, ..self }
    }
}

/// The results of earlier runs, by the setup that they are repeats of.
pub type CaseHistory = BTreeMap<Digest, Cluster>;

/// The rules that decide which differences count.
#[derive(Debug, Clone, Copy)]
pub struct ComparisonRules<'n> {
    /// The margin: smaller differences do not matter.
    pub margin: f64,
    /// Whether every loss counts, even one that may be noise.
    pub count_every_loss: bool,
    /// Whether cases may disappear without counting as a loss.
    pub allow_missing: bool,
    /// The known results of cases in runs in which nothing was changed.
    pub noise: Option<&'n Noise>,
    /// The results of other runs of the same setups. They count in the tests of single cases.
    pub history: Option<&'n CaseHistory>,
}

/// Compares each of the later sides with the first.
pub fn compare(sides: &[SideRecords<'_>], rules: &ComparisonRules<'_>) -> ComparisonDocument {
    let Some((before, later)) = sides.split_first() else {
        return ComparisonDocument::from_comparisons(Vec::new());
    };
    let mut found: Vec<stats::PairedComparison> = Vec::new();
    let mut comparisons: Vec<(SideComparison, Vec<CasePair>)> = Vec::new();
    for after in later {
        let (comparison, pairs) = compare_two_sides(before, after, rules);
        found.push(stats::compare_pairs(&pairs, rules.margin, ALPHA));
        comparisons.push((comparison, pairs));
    }
    stats::correct_comparisons(&mut found, ALPHA);
    for ((comparison, pairs), overall) in comparisons.iter_mut().zip(found) {
        comparison.conclude(pairs, overall, rules);
    }
    let comparisons = comparisons.into_iter().map(|(comparison, _)| comparison).collect();
    let frontier = find_frontier(&sides.iter().map(frontier_candidate).collect::<Vec<_>>());
    ComparisonDocument { frontier, ..ComparisonDocument::from_comparisons(comparisons) }
}

/// Adds up the runs of each case of a side, whatever agent ran them.
fn frontier_candidate(side: &SideRecords<'_>) -> FrontierCandidate {
    /// The name of a suite and the id of a case.
    type CaseName = (String, String);
    let mut cases: BTreeMap<CaseName, (Cluster, Vec<Option<f64>>)> = BTreeMap::new();
    for record in &side.records {
        let passed = match record.verdict {
            Verdict::Pass => true,
            Verdict::Fail => false,
            Verdict::NotScored(_) => continue,
        };
        let (cluster, costs) = cases.entry((record.suite.clone(), record.case.clone())).or_default();
        *cluster = Cluster::new(cluster.passed + u64::from(passed), cluster.runs + 1);
        costs.push(record.cost_usd);
    }
    let mean = |costs: Vec<Option<f64>>| {
        let (count, sum) = (costs.len() as f64, costs.into_iter().sum::<Option<f64>>()?);
        Some(sum / count)
    };
    let cases = cases.into_iter().map(|(name, (cluster, costs))| (name, (cluster, mean(costs)))).collect();
    FrontierCandidate { name: side.name.clone(), cases }
}

fn compare_two_sides(
    before: &SideRecords<'_>,
    after: &SideRecords<'_>,
    rules: &ComparisonRules<'_>,
) -> (SideComparison, Vec<CasePair>) {
    let (dropped, differs) = differing_dimensions(before, after);
    let (old, new) =
        (group_runs_by_case(&before.records, &dropped), group_runs_by_case(&after.records, &dropped));
    let both: Vec<(&CaseIdentity, &ComparedCaseRuns, &ComparedCaseRuns)> =
        old.iter().filter_map(|(name, runs)| Some((name, runs, new.get(name)?))).collect();
    let pairs: Vec<CasePair> =
        both.iter().map(|(_, old, new)| CasePair { before: old.cluster, after: new.cluster }).collect();
    let incomplete = both.is_empty() || pairs.iter().any(|pair| pair.difference().is_none());
    let (summary_before, summary_after) = (side_summary(before), side_summary(after));
    let comparison = SideComparison {
        activation: activation_difference(&summary_before, &summary_after),
        before: summary_before,
        after: summary_after,
        differs,
        cost_usd: mean_delta(&both, |runs| runs.mean_cost()),
        seconds: mean_delta(&both, |runs| runs.mean_seconds()),
        cases: compared_cases(&both, &pairs, rules),
        missing: cases_missing_in(&old, &new),
        new: cases_missing_in(&new, &old),
        incomplete,
        ..SideComparison::default()
    };
    (comparison, pairs)
}

/// Finds the dimensions in which each side has a single value and the two values differ. These are what is
/// compared, so they are no part of a case's identity.
fn differing_dimensions(before: &SideRecords<'_>, after: &SideRecords<'_>) -> (Vec<Dimension>, Vec<String>) {
    let mut dropped = Vec::new();
    let mut words = Vec::new();
    for dimension in Dimension::ALL {
        let values = |side: &SideRecords<'_>| -> BTreeSet<String> {
            side.records.iter().map(|record| dimension.value_in(record)).collect()
        };
        let (old, new) = (values(before), values(after));
        if let (1, 1, Some(old), Some(new)) = (old.len(), new.len(), old.first(), new.first())
            && old != new
        {
            dropped.push(dimension);
            words.push(format!("{}: {old} → {new}", dimension.name()));
        }
    }
    (dropped, words)
}

fn side_summary(side: &SideRecords<'_>) -> SideSummary {
    let mut tally = RunTally::default();
    for record in &side.records {
        tally.add(record);
    }
    let every_arm = tally.pass_rate_of_every_arm();
    let is_examined = side.records.iter().any(|record| record.condition.arm.has_skill());
    // The sides of a comparison have no gates, so the exit code is not used.
    let summary = tally.summary(&side.name, &[], 0.0, RunCompletion::Completed);
    let runs = side.records.len() as f64;
    let costs: Option<f64> = side.records.iter().map(|record| record.cost_usd).sum();
    SideSummary {
        name: side.name.clone(),
        runs: side.records.len() as u64,
        // A side without the skill has nothing to pass, but the comparison needs its rate.
        pass_rate: if is_examined { summary.pass_rate } else { every_arm },
        activation: summary.activation.map(|activation| activation.all),
        reused: summary.totals.reused,
        scripted: side.scripted,
        replayed: side.replayed,
        usd_per_run: costs.filter(|_| runs > 0.0).map(|usd| usd / runs),
        seconds_per_run: (runs > 0.0)
            .then(|| side.records.iter().map(|record| record.seconds).sum::<f64>() / runs),
    }
}

/// Gives the difference of the activation rates. `None` if a side has no case about activation.
fn activation_difference(before: &SideSummary, after: &SideSummary) -> Option<ActivationDifference> {
    let (old, new) = (before.activation?, after.activation?);
    Some(ActivationDifference {
        precision: stats::rate_difference(old.precision, new.precision),
        recall: stats::rate_difference(old.recall, new.recall),
        f1: stats::rate_difference(old.f1, new.f1),
        accuracy: stats::rate_difference(old.accuracy, new.accuracy),
    })
}

type SharedCases<'b> = [(&'b CaseIdentity, &'b ComparedCaseRuns, &'b ComparedCaseRuns)];

fn mean_delta(both: &SharedCases<'_>, of: fn(&ComparedCaseRuns) -> Option<f64>) -> MeanDelta {
    let measured: Vec<(f64, f64)> = both.iter().filter_map(|(_, old, new)| of(old).zip(of(new))).collect();
    let mean =
        |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let differences: Vec<f64> = measured.iter().map(|(old, new)| new - old).collect();
    MeanDelta {
        before: mean(measured.iter().map(|(old, _)| *old).collect()),
        after: mean(measured.iter().map(|(_, new)| *new).collect()),
        difference: mean_difference(&differences, ALPHA),
    }
}

/// Compares every case that both sides have. The more cases could differ by chance, the clearer a change must be.
fn compared_cases(
    both: &SharedCases<'_>,
    pairs: &[CasePair],
    rules: &ComparisonRules<'_>,
) -> Vec<ComparedCase> {
    let to_test: Vec<CaseToTest> = both
        .iter()
        .zip(pairs)
        .map(|((name, old, new), pair)| case_to_test(name, old, new, *pair, rules))
        .collect();
    let bound = stats::bound_of_cases(&to_test);
    let tests = stats::test_cases(&to_test);
    let mut cases = Vec::new();
    for (((name, old, new), pair), (tested, test)) in both.iter().zip(pairs).zip(to_test.iter().zip(tests)) {
        let change = match pair.difference() {
            None => CaseChange::Unmeasured,
            Some(difference) if difference < 0.0 && (test.is_clear || rules.count_every_loss) => {
                CaseChange::Regression
            }
            Some(difference) if difference > 0.0 && test.is_clear => CaseChange::Fix,
            Some(0.0) => CaseChange::Same,
            Some(_) => CaseChange::Flip,
        };
        let is_open = change == CaseChange::Flip;
        let known = |tested: Cluster, own: Cluster| {
            let runs = tested.runs - own.runs;
            (runs > 0).then(|| RunCounts { passed: tested.passed - own.passed, runs, ..RunCounts::default() })
        };
        cases.push(ComparedCase {
            name: (*name).clone(),
            before: old.counts(),
            after: new.counts(),
            known_before: known(tested.pair.before, pair.before),
            known_after: known(tested.pair.after, pair.after),
            difference: pair.difference(),
            chance: test.chance,
            change,
            could_tell: test.could_tell,
            smallest_loss: is_open
                .then(|| stats::smallest_loss_of_case(tested.pair.before, tested.pair.after.runs, bound))
                .flatten(),
            confirmation: None,
            flip_rate: rules.noise.and_then(|noise| case::known_flip_rate(noise, name, new)),
        });
    }
    cases
}

/// Adds to the runs of a case what is known of it from other runs: of the same setup, or of runs without a change.
fn case_to_test(
    name: &CaseIdentity,
    old: &ComparedCaseRuns,
    new: &ComparedCaseRuns,
    pair: CasePair,
    rules: &ComparisonRules<'_>,
) -> CaseToTest {
    let known =
        |runs: &ComparedCaseRuns| rules.history.map(|all| runs.known_results(all)).unwrap_or_default();
    let add = |own: Cluster, more: Cluster| Cluster::new(own.passed + more.passed, own.runs + more.runs);
    let (before, after) = (known(old), known(new));
    let known_rate = match before.runs + after.runs {
        0 => rules.noise.and_then(|noise| case::known_pass_rate(noise, name, new)),
        _ => None,
    };
    // A side without a verdict of its own is not measured, whatever is known from other runs.
    let pair = match pair.difference() {
        Some(_) => CasePair { before: add(pair.before, before), after: add(pair.after, after) },
        None => pair,
    };
    CaseToTest { pair, known_rate }
}

fn cases_missing_in(
    one: &BTreeMap<CaseIdentity, ComparedCaseRuns>,
    other: &BTreeMap<CaseIdentity, ComparedCaseRuns>,
) -> Vec<CaseIdentity> {
    one.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
}

#[cfg(test)]
mod tests;
