//! The summary of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ActivationExpectation, Arm, ChangeNeeded, ComparisonVerdict, Condition, Estimate, EvalFinding,
    GateResult, GradingDoubts, ProbeRecord, ScoreScale, SkillJudgement, SkillUseMode, TokenUsage,
    count_with_noun,
};

/// The summary document: `run --json`, `report --format json` and `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Summary of a run (summary.json, run --json)")]
pub struct Summary {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run's id, which is also its folder's name.
    pub run: String,
    /// Whether the exit code is 0.
    pub ok: bool,
    /// The exit code.
    pub exit: u8,
    pub totals: TrialTotals,
    /// Set where only a part of the cases was to be run (`--max-evals`, `--shard`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<CaseSample>,
    /// Files that were found and not read: they hold no evals, git ignores them, or they are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathBuf>,
    /// `None` when any trial's cost is not known.
    pub cost_usd: Option<f64>,
    pub tokens: TokenUsage,
    /// What the judge used beside that; `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgingSummary>,
    /// How long the whole run took.
    pub seconds: f64,
    /// The share of trials that pass, those without the skill left out unless nothing ran with it.
    #[serde(default)]
    pub pass_rate: PassRate,
    /// Means over the cases that ran at least so often. Empty where each ran once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<Reliability>,
    pub gates: Vec<GateResult>,
    /// What was tried before anything was measured. One that did not fire ended the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRecord>,
    /// One for each case under each condition, in the order of the plan.
    pub cases: Vec<CaseSummary>,
    /// Skills that were staged beside those under test, in every arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<RivalSkills>,
    /// What a judge said of the texts of skills. It is in no rate and no gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills_judged: Vec<SkillJudgement>,
    /// What the judges themselves, and the checks of their quotes, leave in doubt.
    #[serde(default)]
    pub doubts: GradingDoubts,
    /// The same in words, as far as it is about the evals: weak checks, and behaviour that no check is about.
    /// The first few of them, each once for its case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eval_findings: Vec<EvalFinding>,
    /// Whether skills fired where they should; `None` if no case is about that.
    #[serde(default)]
    pub activation: Option<ActivationSummary>,
    /// What a model guessed of that from descriptions; `None` if nobody asked it to. The two are never
    /// added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_activation: Option<PredictedActivation>,
    /// With the skill against without it, or a version against an earlier one; `None` with one arm.
    #[serde(default)]
    pub arms: Option<ArmsSummary>,
    /// With `--stop-early`: trials that were not run because those before them told enough. Then
    /// nothing has an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// The part of the cases that a run was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSample {
    /// How many cases were to be run.
    pub cases: u64,
    /// How many cases there were to choose from.
    pub of: u64,
    /// The options that chose them.
    pub by: String,
}

impl CaseSample {
    /// Describes the sample in one line: `sample of 5 of 20 cases (--max-evals 5)`.
    pub fn describe(&self) -> String {
        format!("sample of {} of {} ({})", self.cases, count_with_noun(self.of, "case"), self.by)
    }
}

/// What judging the trials of a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgingSummary {
    pub tokens: TokenUsage,
    /// `None` when the price of any model is not known.
    pub cost_usd: Option<f64>,
}

/// The skills beside those under test in the rooms of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RivalSkills {
    pub suite: String,
    pub skills: Vec<String>,
}

impl RivalSkills {
    /// Describes the rival skills in one line for people.
    pub fn describe(&self) -> String {
        format!("staged beside the skill in {}: {}", self.suite, self.skills.join(", "))
    }
}

/// A pass rate, never without what is not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassRate {
    #[serde(flatten)]
    pub rate: Estimate,
    /// What it would be if every trial without a verdict had failed.
    pub worst: Option<f64>,
    /// How many those are.
    pub not_scored: u64,
}

/// What can be expected of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reliability {
    pub k: u64,
    /// The chance that at least one of k runs passes (pass@k).
    pub pass_at_k: f64,
    /// The chance that all of k runs pass (pass^k).
    pub pass_hat_k: f64,
}

/// Observed activation against what was wanted. Counts are of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationSummary {
    #[serde(flatten)]
    pub all: ActivationRates,
    /// The same for each skill, mode and agent alone.
    pub skills: Vec<NamedActivationRates>,
    pub modes: Vec<NamedActivationRates>,
    pub agents: Vec<NamedActivationRates>,
    /// Which skill was wanted, which was taken up, in how many runs.
    pub routing: Vec<SkillRouteCount>,
    /// Cases of which no run could tell whether the skill fires: neither passed nor failed.
    pub unmeasured: u64,
    /// Runs in which the user named the skill, so that nothing was left to be decided, and nothing went wrong.
    /// In no rate.
    pub invoked: u64,
}

/// Predicted activation against what was wanted. Counts are of predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedActivation {
    #[serde(flatten)]
    pub all: ActivationRates,
    /// The same for each skill alone.
    pub skills: Vec<NamedActivationRates>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationRates {
    pub tp: u64,
    pub fp: u64,
    pub tn: u64,
    #[serde(rename = "fn")]
    pub fn_: u64,
    /// Those in which either was fine.
    pub acceptable: u64,
    /// Those that cannot tell.
    pub error: u64,
    pub precision: Estimate,
    pub recall: Estimate,
    pub f1: Estimate,
    pub accuracy: Estimate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedActivationRates {
    pub name: String,
    #[serde(flatten)]
    pub rates: ActivationRates,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRouteCount {
    /// `None`: no skill under test was wanted.
    pub expected: Option<String>,
    /// `None`: no skill was taken up.
    pub fired: Option<String>,
    pub runs: u64,
}

/// How often the skill fires for a query.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseActivationRate {
    #[serde(flatten)]
    pub rate: Estimate,
    pub expect: ActivationExpectation,
    /// The rate that decides the case; `None` where each run is marked by itself.
    pub threshold: Option<f64>,
    /// Whether the rate is where it should be; `None` if it was not measured or nothing is wanted.
    pub passes: Option<bool>,
}

/// The share of its runs that a case must pass, where that decides it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseStability {
    pub threshold: f64,
    /// Whether enough of the runs with a verdict pass; `None` if none has one.
    pub passes: Option<bool>,
}

/// Two arms on the same cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmsSummary {
    /// The arm that the other is compared with, and that other.
    pub before: String,
    pub after: String,
    #[serde(flatten)]
    pub result: ArmsResult,
    /// Pairs in which one trial did not belong to its arm. Neither counts.
    pub void_pairs: u64,
    /// The first of them, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voided: Vec<VoidPair>,
    /// Each suite alone, its verdict corrected for their number. Empty with one suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<SuiteArmsResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmsResult {
    /// The pass rate after minus the one before, a mean over cases.
    pub difference: Estimate,
    pub verdict: ComparisonVerdict,
    /// How likely chance alone would make such a difference.
    pub chance: f64,
    /// About how many runs more would tell, and what they would cost, where these do not.
    pub more_runs: Option<u64>,
    pub more_usd: Option<f64>,
    /// The difference that so many runs would find: the one that was seen, or the margin if that is larger.
    #[serde(default)]
    pub sought: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteArmsResult {
    pub suite: String,
    #[serde(flatten)]
    pub result: ArmsResult,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VoidPair {
    pub suite: String,
    pub case: String,
    pub agent: String,
    pub attempt: u32,
    pub why: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialTotals {
    pub trials: u64,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Planned trials that were not run, for example because `--fail-fast` or an interrupt ended the run. They are
    /// not among `trials`. Trials that `--stop-early` left out are not counted here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSummary {
    pub id: String,
    pub suite: String,
    pub agent: String,
    /// The model that was asked for; `None` is the agent's own choice.
    pub model: Option<String>,
    /// `with` or `without` the skill, or a version of it like `v2`.
    pub arm: String,
    pub mode: String,
    /// Trials, by their verdict.
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Planned trials of the case that were not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Why trials have no verdict, each reason once. Of many reasons only the first are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_scored_because: Vec<String>,
    /// What is worth telling of its trials, each once, such as a file that was given as read-only and changed. Of
    /// many only the first are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What must be changed before trials without a verdict can have one, where running them again does not help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes_needed: Vec<ChangeNeeded>,
    /// Of how many trials that is true.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub need_a_change: u64,
    /// Trials whose teardown script failed. That changes no verdict.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_teardowns: u64,
    /// How the agent's processes ended, and how often.
    pub endings: BTreeMap<String, u64>,
    #[serde(default)]
    pub pass_rate: PassRate,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<Reliability>,
    /// In how many trials the skill fired by itself.
    pub fired: ActivatedCounts,
    /// `None` where the case asks nothing about activation.
    #[serde(default)]
    pub fire_rate: Option<CaseActivationRate>,
    /// Set where a gate on stability decides the case, and not each run by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<CaseStability>,
    /// Whether the case failed in a way that no gate of its suite measures.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ungated: bool,
    pub checks: Vec<CheckSummary>,
}

/// Says whether a count is 0, so that it need not be written to the file.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Summary {
    /// Says whether nothing ran with the skill, so that the run measures what the agent does by itself.
    pub fn is_baseline(&self) -> bool {
        !self.cases.is_empty() && !self.cases.iter().any(CaseSummary::is_under_test)
    }

    /// Says whether the trials of a case have to pass: those with the skill, and in a baseline those that the user
    /// set a gate for.
    pub fn has_to_pass(&self, case: &CaseSummary) -> bool {
        let is_gated = || self.gates.iter().any(|gate| gate.suite == case.suite && gate.can_fail());
        case.is_under_test() || self.is_baseline() && is_gated()
    }

    /// Gives the totals of the trials that have to pass.
    pub fn totals_under_test(&self) -> TrialTotals {
        TrialTotals::from_cases(self.cases.iter().filter(|case| case.is_under_test()))
    }

    /// Gives the totals of the trials that the others are only compared with.
    pub fn totals_compared_with(&self) -> TrialTotals {
        TrialTotals::from_cases(self.cases.iter().filter(|case| !case.is_under_test()))
    }
}

impl TrialTotals {
    fn from_cases<'c>(cases: impl Iterator<Item = &'c CaseSummary>) -> Self {
        cases.fold(Self::default(), |sum, case| Self {
            trials: sum.trials + case.trials(),
            passed: sum.passed + case.passed,
            failed: sum.failed + case.failed,
            not_scored: sum.not_scored + case.not_scored,
            not_run: sum.not_run + case.not_run,
        })
    }
}

impl CaseSummary {
    /// Says whether the case's trials have to pass. Trials without the skill do not: the others are compared with
    /// them.
    pub fn is_under_test(&self) -> bool {
        self.arm != Arm::WithoutSkill.name()
    }

    pub fn trials(&self) -> u64 {
        self.passed + self.failed + self.not_scored
    }

    /// Says whether the case checks only whether the skill is activated.
    pub fn is_only_about_activation(&self) -> bool {
        self.fire_rate.is_some() && self.checks.len() <= 1
    }

    /// Gives the condition under which the trials ran. `None` for an arm that this version does not know.
    pub fn condition(&self) -> Option<Condition> {
        let (agent, model, mode) =
            (self.agent.clone(), self.model.clone(), SkillUseMode::from(self.mode.clone()));
        Arm::parse(&self.arm).map(|arm| Condition { agent, model, arm, mode })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivatedCounts {
    pub yes: u64,
    pub no: u64,
    pub unknown: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckSummary {
    pub id: String,
    /// What people call it, where that is not its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Why the first trial in which it has no answer has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_scored_because: Option<String>,
    /// The share of trials that found what most of them found; `None` with fewer than two answers.
    #[serde(default)]
    pub agreement: Option<f64>,
    /// How it is judged; `None` for a check that code decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScoreScale>,
    /// Over the trials that have a score, on the check's own scale.
    pub mean_score: Option<f64>,
    /// The lowest and the highest of these scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_score: Option<f64>,
}
