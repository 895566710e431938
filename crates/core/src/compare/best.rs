//! The choice of the best of several sides that ran the same cases, if there is a clear one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{SideRecords, SideSummary, side_summary};
use crate::model::{ActivationOutcome, Estimate, TrialRecord, Verdict};
use crate::stats::{self, ALPHA, Cluster, rate_difference};

/// The best of the sides of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BestSide {
    /// What the sides are compared by.
    pub by: BestMeasure,
    /// The side with the highest value; `None` where a side has none.
    pub leads: Option<String>,
    /// Whether it is clearly better than every other side: its difference from each excludes zero, and an
    /// exact test over the runs agrees.
    pub clear: bool,
    /// The leading side minus each of the others.
    pub differences: Vec<LeadOver>,
}

/// What the sides of a comparison are ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BestMeasure {
    /// The F1 of activation.
    F1,
    /// Used where cases are about activation and F1 is undefined for a side.
    Accuracy,
    /// The share of scored trials that pass.
    PassRate,
}

impl BestMeasure {
    /// Gives the name of the measure for people.
    pub fn describe(self) -> &'static str {
        match self {
            BestMeasure::F1 => "F1",
            BestMeasure::Accuracy => "accuracy",
            BestMeasure::PassRate => "pass rate",
        }
    }
}

/// How far the leading side is ahead of another one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LeadOver {
    pub other: String,
    pub difference: Estimate,
    /// The probability that chance alone makes such a difference, corrected for the number of sides.
    pub chance: f64,
}

/// Ranks the sides by F1 if cases are about activation, by accuracy if F1 is undefined for one of them, and by the
/// pass rate if that is undefined too. A side without a value is not worse than the others, so then no side leads.
pub fn find_best_side(sides: &[SideRecords<'_>]) -> BestSide {
    let summaries: Vec<_> = sides.iter().map(side_summary).collect();
    let value_of = |side: &SideSummary, by: BestMeasure| match by {
        BestMeasure::F1 => side.activation.map_or(Estimate::undefined(0), |of| of.f1),
        BestMeasure::Accuracy => side.activation.map_or(Estimate::undefined(0), |of| of.accuracy),
        BestMeasure::PassRate => side.pass_rate.rate,
    };
    let is_defined = |by: &BestMeasure| summaries.iter().all(|side| value_of(side, *by).value.is_some());
    let by = [BestMeasure::F1, BestMeasure::Accuracy].into_iter().find(is_defined);
    let by = by.unwrap_or(BestMeasure::PassRate);
    let values: Vec<Estimate> = summaries.iter().map(|side| value_of(side, by)).collect();
    let all_defined = is_defined(&by);
    let ranked = values.iter().enumerate().filter_map(|(at, value)| Some((at, value.value?)));
    // Of equal sides the first leads, in the order in which the user named them.
    let lead = ranked.fold(None, |lead: Option<(usize, f64)>, one| match lead {
        Some(lead) if lead.1 >= one.1 => Some(lead),
        Some(_) | None => Some(one),
    });
    let Some((lead, _)) = lead.filter(|_| all_defined) else {
        return BestSide { by, leads: None, clear: false, differences: Vec::new() };
    };
    let own = success_clusters(&sides[lead], by);
    let mut differences = Vec::new();
    let mut chances = Vec::new();
    for (at, other) in sides.iter().enumerate().filter(|(at, _)| *at != lead) {
        let theirs = success_clusters(other, by);
        let sides: Vec<(Cluster, Cluster)> =
            own.iter().filter_map(|(name, after)| Some((*after, *theirs.get(name)?))).collect();
        chances.push(stats::stratified_test(&sides));
        let difference = rate_difference(values[at], values[lead]);
        differences.push(LeadOver { other: other.name.clone(), difference, chance: 1.0 });
    }
    for (lead, chance) in differences.iter_mut().zip(stats::holm(&chances)) {
        lead.chance = chance;
    }
    let ahead = |of: &LeadOver| of.difference.low.is_some_and(|low| low > 0.0) && of.chance <= ALPHA;
    let clear = !differences.is_empty() && differences.iter().all(ahead);
    BestSide { by, leads: Some(sides[lead].name.clone()), clear, differences }
}

type AgentCaseKey<'r> = (&'r str, &'r str, &'r str);

/// Counts the successful trials of each case.
fn success_clusters<'r>(side: &SideRecords<'r>, by: BestMeasure) -> BTreeMap<AgentCaseKey<'r>, Cluster> {
    let mut cases: BTreeMap<AgentCaseKey<'r>, Cluster> = BTreeMap::new();
    for record in &side.records {
        let Some(right) = is_success(record, by) else { continue };
        let name = (record.suite.as_str(), record.case.as_str(), record.condition.agent.as_str());
        let known = cases.entry(name).or_default();
        *known = Cluster::new(known.passed + u64::from(right), known.runs + 1);
    }
    cases
}

/// Says whether a trial was a success; `None` if it has no result.
fn is_success(record: &TrialRecord, by: BestMeasure) -> Option<bool> {
    match by {
        BestMeasure::F1 | BestMeasure::Accuracy => match record.activation_outcome()? {
            ActivationOutcome::TruePositive | ActivationOutcome::TrueNegative => Some(true),
            ActivationOutcome::FalsePositive | ActivationOutcome::FalseNegative => Some(false),
            ActivationOutcome::Acceptable | ActivationOutcome::Error => None,
        },
        BestMeasure::PassRate => match record.verdict {
            Verdict::Pass => Some(true),
            Verdict::Fail => Some(false),
            Verdict::NotScored(_) => None,
        },
    }
}
