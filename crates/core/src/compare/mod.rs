//! The comparison of two sets of records, case by case.
//!
//! In: the records of two runs, or of one run in two parts. Out: what got worse, what got better, what may be
//! noise.
//! Never: runs anything; pairs cases by anything but their ids.

mod best;
mod case;
mod dimension;
mod document;
mod noise;

pub use best::{BestMeasure, BestSide, find_best_side};
pub use case::CaseIdentity;
pub use dimension::{Dimension, split_by_dimension};
pub use document::{
    ActivationDifference, CaseChange, ComparedCase, ComparisonDocument, MeanDelta, RunCounts, SideComparison,
    SideSummary,
};
pub use noise::measure_noise;

use std::collections::{BTreeMap, BTreeSet};

use self::case::{ComparedCaseRuns, group_runs_by_case};
use crate::aggregate::{RunCompletion, RunTally};
use crate::model::{Noise, TrialRecord};
use crate::stats::{self, ALPHA, CasePair, mean_difference, tarone};

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct SideRecords<'r> {
    /// The name of the side in reports: a run, an arm, an agent, a model or a mode.
    pub name: String,
    /// The trials of the side.
    pub records: Vec<&'r TrialRecord>,
}

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
    ComparisonDocument::from_comparisons(comparisons.into_iter().map(|(comparison, _)| comparison).collect())
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
    SideSummary {
        name: side.name.clone(),
        runs: side.records.len() as u64,
        // A side without the skill has nothing to pass, but the comparison needs its rate.
        pass_rate: if is_examined { summary.pass_rate } else { every_arm },
        activation: summary.activation.map(|activation| activation.all),
        usd_per_run: summary.cost_usd.map(|usd| usd / runs),
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
    let rates: Vec<Option<f64>> = both
        .iter()
        .map(|(name, ..)| rules.noise.and_then(|noise| case::known_pass_rate(noise, name)))
        .collect();
    let least: Vec<f64> = pairs
        .iter()
        .zip(&rates)
        .filter(|(pair, _)| pair.difference().is_some())
        .map(|(pair, rate)| rate.map_or_else(|| pair.least_chance(), |_| 0.0))
        .collect();
    let bound = tarone(&least, ALPHA);
    let mut cases = Vec::new();
    for (((name, old, new), pair), rate) in both.iter().zip(pairs).zip(rates) {
        let chance = rate.map_or_else(|| pair.chance(), |rate| pair.chance_at_rate(rate));
        let clear = chance <= bound || rules.count_every_loss;
        let change = match pair.difference() {
            None => CaseChange::Unmeasured,
            Some(difference) if difference < 0.0 && clear => CaseChange::Regression,
            Some(difference) if difference > 0.0 && chance <= bound => CaseChange::Fix,
            Some(0.0) => CaseChange::Same,
            Some(_) => CaseChange::Flip,
        };
        cases.push(ComparedCase {
            name: (*name).clone(),
            before: old.counts(),
            after: new.counts(),
            difference: pair.difference(),
            chance,
            change,
            could_tell: rate.is_some() || pair.least_chance() <= bound,
            flip_rate: rules.noise.and_then(|noise| case::known_flip_rate(noise, name)),
        });
    }
    cases
}

fn cases_missing_in(
    one: &BTreeMap<CaseIdentity, ComparedCaseRuns>,
    other: &BTreeMap<CaseIdentity, ComparedCaseRuns>,
) -> Vec<CaseIdentity> {
    one.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
}

#[cfg(test)]
mod tests;
