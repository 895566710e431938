//! The result of a comparison as a JSON document.

use schemars::JsonSchema;
use serde::Serialize;

use super::{BestSide, CaseIdentity, ComparisonRules};
use crate::model::{
    ActivationRates, ComparisonOutlook, ComparisonVerdict, Estimate, FrontierPoint, Outcome, PassRate,
};
use crate::stats;

/// The result of a comparison: `compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "The comparison of runs, or of parts of one run (compare --json)")]
pub struct ComparisonDocument {
    /// The version of this document's format.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// Whether the exit code is 0.
    pub ok: bool,
    /// The exit code: 1 for a loss that is more than noise, 3 if a case could not be measured on both sides, or fell and
    /// had too few runs to show whether that is a loss.
    #[schemars(with = "u8")]
    pub exit: Outcome,
    /// The comparison of each other side with the first one.
    pub comparisons: Vec<SideComparison>,
    /// The best mode, if modes are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestSide>,
    /// Cost against quality: where each side stands. Empty if the cost of no side is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frontier: Vec<FrontierPoint>,
}

impl ComparisonDocument {
    /// Makes the document, and decides the exit code: a loss is 1, a case without an answer is 3, and so is a case that
    /// fell and of which so few runs cannot tell anything.
    pub fn from_comparisons(comparisons: Vec<SideComparison>) -> Self {
        let mut found = Self {
            schema_version: 1,
            ok: false,
            exit: Outcome::Incomplete,
            comparisons,
            best: None,
            frontier: Vec::new(),
        };
        found.conclude();
        found
    }

    /// Sets the exit code by what was lost.
    pub(super) fn conclude(&mut self) {
        self.exit = match self.comparisons.iter().any(|one| one.lost) {
            true => Outcome::Failed,
            false if self.has_open_loss() => Outcome::Incomplete,
            false => outcome_without_loss(&self.comparisons),
        };
        self.ok = self.exit == Outcome::Passed;
    }

    /// Says whether a case fell and had too few runs to show whether that is a loss.
    pub fn has_open_loss(&self) -> bool {
        self.comparisons.iter().any(|one| one.cases.iter().any(ComparedCase::is_open_loss))
    }

    /// Makes the comparison purely descriptive, with no losses: two agents, say, are not versions of each other.
    pub fn ignore_losses(&mut self) {
        self.exit = outcome_without_loss(&self.comparisons);
        self.ok = self.exit == Outcome::Passed;
    }
}

fn outcome_without_loss(comparisons: &[SideComparison]) -> Outcome {
    let incomplete = comparisons.is_empty() || comparisons.iter().any(|one| one.incomplete);
    if incomplete { Outcome::Incomplete } else { Outcome::Passed }
}

/// The comparison of two sides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SideComparison {
    /// The figures of the side that is compared with.
    pub before: SideSummary,
    /// The figures of the side that is compared.
    pub after: SideSummary,
    /// The conditions in which the two sides differ: `agent: claude → codex`.
    pub differs: Vec<String>,
    /// The pass rate of `after` minus that of `before`, as a mean over the cases that both have.
    pub difference: Estimate,
    /// The verdict on the difference; `None` while it is not decided.
    pub verdict: Option<ComparisonVerdict>,
    /// The probability that chance alone makes such a difference, corrected if several sides are compared.
    pub chance: f64,
    /// The same by the exact test over the runs alone: it is about these cases, and not about cases like these. It is not
    /// corrected.
    pub chance_over_runs: f64,
    /// What would settle the comparison, where these runs do not.
    #[serde(flatten)]
    pub outlook: ComparisonOutlook,
    /// The activation rates of `after` minus those of `before`; `None` if no case checks activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<ActivationDifference>,
    /// Whether a case got worse by more than noise, or is missing.
    pub lost: bool,
    /// The cost of a run of a case; `seconds` is its duration.
    pub cost_usd: MeanDelta,
    /// The duration of a run of a case, in seconds.
    pub seconds: MeanDelta,
    /// The cases that both sides have.
    pub cases: Vec<ComparedCase>,
    /// Cases that only `before` has: they were removed or renamed.
    pub missing: Vec<CaseIdentity>,
    /// Cases that only `after` has.
    pub new: Vec<CaseIdentity>,
    /// Whether a case that both have was not measured on both sides.
    #[serde(skip)]
    pub(super) incomplete: bool,
}

impl SideComparison {
    /// Draws the conclusions, once the overall result is known.
    pub(super) fn conclude(
        &mut self,
        pairs: &[stats::CasePair],
        overall: stats::PairedComparison,
        rules: &ComparisonRules<'_>,
    ) {
        let usd = self.after.usd_per_run.or(self.before.usd_per_run);
        self.difference = overall.difference;
        self.verdict = Some(overall.verdict);
        self.chance = overall.chance;
        let sides: Vec<_> = pairs.iter().map(|pair| (pair.after, pair.before)).collect();
        self.chance_over_runs = stats::stratified_test(&sides);
        self.outlook = stats::comparison_outlook(pairs, overall.verdict, rules.margin, usd);
        // A case that is missing may have been renamed, and may be the one that got worse.
        let gone = !self.missing.is_empty() && !rules.allow_missing;
        self.lost = gone || self.has_regression() || overall.verdict == ComparisonVerdict::Worse;
    }

    /// Says whether a case got worse by more than noise.
    pub(super) fn has_regression(&self) -> bool {
        self.cases.iter().any(|case| case.change == CaseChange::Regression)
    }

    /// Gives the cases that changed in this way.
    pub fn cases_with_change(&self, change: CaseChange) -> impl Iterator<Item = &ComparedCase> {
        self.cases.iter().filter(move |case| case.change == change)
    }
}

/// The figures of one side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SideSummary {
    /// The id of a run, or the name of a part of it.
    pub name: String,
    /// The number of trials.
    pub runs: u64,
    /// How many of the runs were reused: their results come from earlier runs.
    #[serde(default)]
    pub reused: u64,
    /// Whether the model's answers came from a script.
    #[serde(default)]
    pub scripted: bool,
    /// Whether the model's answers came from a recording.
    #[serde(default)]
    pub replayed: bool,
    /// The share of scored trials that passed.
    pub pass_rate: PassRate,
    /// The activation rates; `None` if no case checks activation.
    pub activation: Option<ActivationRates>,
    /// The mean cost of a run; `None` if the cost of any run is unknown.
    pub usd_per_run: Option<f64>,
    /// The mean duration of a run in seconds; `None` without runs.
    pub seconds_per_run: Option<f64>,
}

/// Differences of the rates of activation, after minus before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ActivationDifference {
    /// The difference of precision.
    pub precision: Estimate,
    /// The difference of recall.
    pub recall: Estimate,
    /// The difference of F1.
    pub f1: Estimate,
    /// The difference of accuracy.
    pub accuracy: Estimate,
}

/// The means of a cost or a duration on both sides, over the cases for which both sides know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct MeanDelta {
    /// The mean of `before`; `None` if no case has a known value on both sides.
    pub before: Option<f64>,
    /// The mean of `after`; `None` if no case has a known value on both sides.
    pub after: Option<f64>,
    /// The mean of `after` minus that of `before`.
    pub difference: Estimate,
}

/// A case that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedCase {
    /// The suite, the id and the condition of the case.
    #[serde(flatten)]
    pub name: CaseIdentity,
    /// The runs of the case in `before`.
    pub before: RunCounts,
    /// The runs of the case in `after`.
    pub after: RunCounts,
    /// Runs of the same setup outside the two sides. They count in the test of this case, and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_before: Option<RunCounts>,
    /// The same for `after`: runs of its setup outside the two sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_after: Option<RunCounts>,
    /// The pass rate of `after` minus that of `before`; `None` if one side has no scored run.
    pub difference: Option<f64>,
    /// The probability that chance alone makes such a difference in this case.
    pub chance: f64,
    /// Whether the case got better or worse by more than noise.
    pub change: CaseChange,
    /// Whether as many runs of the case, or the fresh runs, could have shown that it changed, had it changed completely.
    pub could_tell: bool,
    /// Where the change is not clear: the smallest loss of this case that as many runs find four times out of five.
    /// `None` if they find none so often, and where the change is clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_loss: Option<f64>,
    /// Fresh runs of both sides that were made to confirm a loss; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<CaseConfirmation>,
    /// How often two runs of the case differ although nothing changed; `None` if that was not measured.
    pub flip_rate: Option<f64>,
}

impl ComparedCase {
    /// Says whether the case fell, and so few runs could not have shown that it got worse.
    pub fn is_open_loss(&self) -> bool {
        let fell = self.difference.is_some_and(|difference| difference < 0.0);
        self.change == CaseChange::Flip && fell && !self.could_tell
    }
}

/// Fresh runs of a case that seemed to have got worse. They alone decide whether it did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CaseConfirmation {
    /// The fresh runs of the setup of `before`.
    pub before: RunCounts,
    /// The fresh runs of the setup of `after`.
    pub after: RunCounts,
    /// The probability that chance alone makes such a difference in the fresh runs.
    pub chance: f64,
    /// Whether the fresh runs show that the case got worse.
    pub is_confirmed: bool,
}

/// The numbers of runs of a case on one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunCounts {
    /// The number of runs that passed.
    pub passed: u64,
    /// The number of scored runs.
    pub runs: u64,
    /// The number of runs that are not scored.
    pub not_scored: u64,
    /// How many of the runs, scored or not, were reused from earlier runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reused: u64,
}

/// Says whether a count is 0, so that it need not be written to the file.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The change of a case between two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseChange {
    /// The case got worse by more than noise.
    Regression,
    /// The case got better by more than noise.
    Fix,
    /// The results differ, and the difference may be noise.
    Flip,
    /// Both sides have the same pass rate.
    Same,
    /// One of the sides has no scored run of the case.
    Unmeasured,
}
