//! The result of a comparison as a JSON document.

use schemars::JsonSchema;
use serde::Serialize;

use super::{BestSide, CaseIdentity, ComparisonRules};
use crate::model::{ActivationRates, ComparisonVerdict, Estimate, PassRate};
use crate::stats;

/// What was compared: `compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "Runs, or parts of one, compared (compare --json)")]
pub struct ComparisonDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// Whether the exit code is 0.
    pub ok: bool,
    /// The exit code: 1 for a loss beyond noise, 3 where cases could not be measured on both sides.
    pub exit: u8,
    /// Each of the others with the first.
    pub comparisons: Vec<SideComparison>,
    /// Which of the modes is best, where modes are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestSide>,
}

impl ComparisonDocument {
    pub fn from_comparisons(comparisons: Vec<SideComparison>) -> Self {
        let exit = match comparisons.iter().any(|one| one.lost) {
            true => 1,
            false => exit_without_loss(&comparisons),
        };
        Self { schema_version: 1, ok: exit == 0, exit, comparisons, best: None }
    }

    /// Makes the comparison purely descriptive, with no losses: two agents, say, are not versions of each other.
    pub fn ignore_losses(&mut self) {
        self.exit = exit_without_loss(&self.comparisons);
        self.ok = self.exit == 0;
    }
}

fn exit_without_loss(comparisons: &[SideComparison]) -> u8 {
    let incomplete = comparisons.is_empty() || comparisons.iter().any(|one| one.incomplete);
    if incomplete { 3 } else { 0 }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SideComparison {
    pub before: SideSummary,
    pub after: SideSummary,
    /// In what the two differ, if in one thing: `agent: claude → codex`.
    pub differs: Vec<String>,
    /// The pass rate after minus the one before, a mean over the cases that both have.
    pub difference: Estimate,
    pub verdict: Option<ComparisonVerdict>,
    /// How likely chance alone would make such a difference, corrected if several are compared.
    pub chance: f64,
    /// About how many runs more would tell, and what they would cost, where these do not.
    pub more_runs: Option<u64>,
    pub more_usd: Option<f64>,
    /// The rates of activation after minus those before; `None` if no case is about activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<ActivationDifference>,
    /// The difference that so many runs would find: the one that was seen, or the margin if that is larger.
    pub sought: Option<f64>,
    /// Whether anything got worse beyond noise, or went away.
    pub lost: bool,
    /// Per run of a case.
    pub cost_usd: MeanDelta,
    pub seconds: MeanDelta,
    pub cases: Vec<ComparedCase>,
    /// Cases that only the first has: gone, or renamed.
    pub missing: Vec<CaseIdentity>,
    /// Cases that only the second has.
    pub new: Vec<CaseIdentity>,
    /// Whether a case that both have was not measured on both sides.
    #[serde(skip)]
    pub(super) incomplete: bool,
}

impl SideComparison {
    /// Draws the conclusions, once the overall result is known.
    pub(super) fn conclude(&mut self, overall: stats::PairedComparison, rules: &ComparisonRules<'_>) {
        let usd = self.after.usd_per_run.or(self.before.usd_per_run);
        self.difference = overall.difference;
        self.verdict = Some(overall.verdict);
        self.chance = overall.chance;
        self.more_runs = overall.more_runs;
        self.sought = overall.detectable_difference;
        self.more_usd = overall.more_runs.zip(usd).map(|(runs, usd)| runs as f64 * usd);
        // A case that is missing may have been renamed, and may be the one that got worse.
        let gone = !self.missing.is_empty() && !rules.allow_missing;
        let worse = self.cases.iter().any(|case| case.change == CaseChange::Regression);
        self.lost = gone || worse || overall.verdict == ComparisonVerdict::Worse;
    }

    pub fn cases_with_change(&self, change: CaseChange) -> impl Iterator<Item = &ComparedCase> {
        self.cases.iter().filter(move |case| case.change == change)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SideSummary {
    /// A run's id, or the part of one.
    pub name: String,
    pub runs: u64,
    pub pass_rate: PassRate,
    /// `None` if no case is about activation.
    pub activation: Option<ActivationRates>,
    /// `None` where the cost of any run is not known.
    pub usd_per_run: Option<f64>,
    pub seconds_per_run: Option<f64>,
}

/// Differences of the rates of activation, after minus before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ActivationDifference {
    pub precision: Estimate,
    pub recall: Estimate,
    pub f1: Estimate,
    pub accuracy: Estimate,
}

/// A figure that is no pass rate, over the cases in which both sides know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct MeanDelta {
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// After minus before.
    pub difference: Estimate,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedCase {
    #[serde(flatten)]
    pub name: CaseIdentity,
    pub before: RunCounts,
    pub after: RunCounts,
    /// After minus before; `None` where one of them says nothing.
    pub difference: Option<f64>,
    /// How likely chance alone would make such a difference, by itself.
    pub chance: f64,
    pub change: CaseChange,
    /// How often two runs differ when nothing is changed, where that was measured.
    pub flip_rate: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunCounts {
    pub passed: u64,
    /// Those with a verdict.
    pub runs: u64,
    pub not_scored: u64,
}

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseChange {
    /// It got worse, beyond noise.
    Regression,
    /// It got better, beyond noise.
    Fix,
    /// It differs, and that may be noise.
    Flip,
    Same,
    /// One of the sides says nothing about it.
    Unmeasured,
}
