//! The summary of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ActivationSummary, Arm, CaseActivationRate, ChangeNeeded, ComparisonOutlook, ComparisonVerdict,
    Condition, Estimate, EvalFinding, GateResult, GradingDoubts, Outcome, PredictedActivation, ProbeRecord,
    ScoreRule, ScoreScale, SkillJudgement, SkillUseMode, TokenUsage, count_with_noun,
};

/// The summary document: `run --json`, `report --format json` and `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Summary of a run (summary.json, run --json)")]
pub struct Summary {
    /// The version of this document's format.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run's id, which is also its folder's name.
    pub run: String,
    /// Whether the exit code is 0.
    pub ok: bool,
    /// The exit code.
    #[schemars(with = "u8")]
    pub exit: Outcome,
    /// The numbers of trials, by verdict.
    pub totals: TrialTotals,
    /// The part of the cases that was selected (`--case`, `--only`, `--shard`, `--max-evals`); `None` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<CaseSample>,
    /// Files that were found and not read, because they contain no evals, git ignores them or they are dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathBuf>,
    /// Whether the model's answers came from a script: such a run tests the evals, not a model.
    #[serde(default)]
    pub scripted: bool,
    /// Whether the model's answers were recorded earlier, and with them tokens and cost.
    #[serde(default)]
    pub replayed: bool,
    /// The cost of the agents in this run, in USD, without reused trials; `None` if the cost of any trial is unknown.
    pub cost_usd: Option<f64>,
    /// The tokens of the agents in this run, without reused trials.
    pub tokens: TokenUsage,
    /// The tokens and the cost of the judge in this run; `None` if no judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgingSummary>,
    /// The tokens and the cost of the models that played users in this run; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_users: Option<JudgingSummary>,
    /// The tokens and the cost of the models that played mocked servers in this run; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_models: Option<JudgingSummary>,
    /// What the reused trials had cost in their own runs, and did not cost again; `None` if no trial was reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedSpending>,
    /// The duration of the whole run.
    pub seconds: f64,
    /// The share of trials that passed. Trials without the skill count only if no trial ran with it.
    #[serde(default)]
    pub pass_rate: PassRate,
    /// pass@k and pass^k for each k, as means over the cases that ran at least k times. Empty if each case ran once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<Reliability>,
    /// The result of each gate. They decide the exit code.
    pub gates: Vec<GateResult>,
    /// The probes that ran before the trials. If one of them failed, no trial was run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRecord>,
    /// The results of each case under each condition, in the order of the plan.
    pub cases: Vec<CaseSummary>,
    /// Skills that were staged beside those under test, in every arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<RivalSkills>,
    /// The judgements on the texts of skills. They count in no rate and no gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills_judged: Vec<SkillJudgement>,
    /// The number of doubtful judgements, by kind.
    #[serde(default)]
    pub doubts: GradingDoubts,
    /// Remarks of judges on the evals: weak checks, and behaviour that no check covers. Only the first few, each once
    /// for its case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eval_findings: Vec<EvalFinding>,
    /// Observed activation of the skills; `None` if no case checks it.
    #[serde(default)]
    pub activation: Option<ActivationSummary>,
    /// Activation that a model predicted from descriptions; `None` if no case asks for that. It is never added to
    /// observed activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_activation: Option<PredictedActivation>,
    /// The comparison of two arms: with and without the skill, or two versions of it. `None` if there is one arm.
    #[serde(default)]
    pub arms: Option<ArmsSummary>,
    /// What the results of a single trial vary with; `None` if fewer than two cases ran, if none ran twice, or if nothing
    /// varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<VarianceShares>,
    /// Cost against quality: each agent, model, mode and version that was run. Empty if there is one only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frontier: Vec<FrontierPoint>,
    /// The number of trials that `--stop-early` left out because the earlier ones had decided their case. If this is
    /// set, only pass rates have intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// How much of what varies between single results is due to what, as shares of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VarianceShares {
    /// The share that is due to differences between cases: more cases lower it.
    pub case: f64,
    /// The share that is due to runs of one case: more repeats lower it.
    pub run: f64,
    /// The share that is due to the judge: more votes lower it. `None` if no check has several votes; what is due to the
    /// judge is then part of `run`.
    pub judge: Option<f64>,
}

/// What one agent, model, mode and version reached at which cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrontierPoint {
    /// The name: the agent, and model, mode and arm where they are not the usual ones.
    pub name: String,
    /// The share of trials that passed, as a mean over cases.
    pub pass_rate: Estimate,
    /// The mean cost of a trial in USD, as a mean over cases; `value` is `None` if it is unknown.
    pub cost_usd: Estimate,
    /// Where it stands; `None` if its cost or its pass rate is unknown.
    pub standing: Option<FrontierStanding>,
    /// The one that it is behind; `None` on the frontier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
}

/// Whether something else is better and no dearer, or cheaper and no worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrontierStanding {
    /// Nothing else that was run is at least as good at no higher cost.
    OnFrontier,
    /// Something else looks better or cheaper, but chance could explain that.
    Unclear,
    /// Something else is clearly better at no higher cost, or clearly cheaper and at least equivalent.
    Behind,
}

impl FrontierStanding {
    /// Describes the standing in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            FrontierStanding::OnFrontier => "on the frontier",
            FrontierStanding::Unclear => "perhaps behind",
            FrontierStanding::Behind => "behind",
        }
    }
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

/// The tokens and the cost of the models that judge a run or play its users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgingSummary {
    /// The tokens that they used.
    pub tokens: TokenUsage,
    /// `None` if the price of any model is unknown.
    pub cost_usd: Option<f64>,
}

/// The tokens and the cost of reused trials, which were spent in earlier runs, and of replayed answers, which were spent
/// when they were recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedSpending {
    /// The cost of the agents in USD; `None` if the cost of any reused trial is unknown.
    pub cost_usd: Option<f64>,
    /// The tokens of the agents.
    pub tokens: TokenUsage,
    /// The tokens and the cost of the judge; `None` if no judge had been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgingSummary>,
    /// The tokens and the cost of the models that played users; `None` if none had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_users: Option<JudgingSummary>,
    /// The tokens and the cost of the models that played mocked servers; `None` if none had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_models: Option<JudgingSummary>,
}

/// The skills that are staged beside those under test in every workspace of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RivalSkills {
    /// The name of the suite.
    pub suite: String,
    /// The names of the skills.
    pub skills: Vec<String>,
}

impl RivalSkills {
    /// Describes the rival skills in one line for people.
    pub fn describe(&self) -> String {
        format!("staged beside the skill in {}: {}", self.suite, self.skills.join(", "))
    }
}

/// A pass rate, with the number of trials that it leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassRate {
    /// The share of scored trials that passed.
    #[serde(flatten)]
    pub rate: Estimate,
    /// The rate if every trial that is not scored had failed.
    pub worst: Option<f64>,
    /// The number of trials that are not scored.
    pub not_scored: u64,
}

/// The chances that k runs of a case pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reliability {
    /// The number of runs.
    pub k: u64,
    /// The chance that at least one of k runs passes (pass@k).
    pub pass_at_k: f64,
    /// The chance that all of k runs pass (pass^k).
    pub pass_hat_k: f64,
}

/// The share of runs that must pass for a case to pass, if a gate on stability decides the case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseStability {
    /// The least share of runs that must pass.
    pub threshold: f64,
    /// Whether enough of the scored runs pass; `None` if none is scored.
    pub passes: Option<bool>,
}

/// The score of a case that passes by its score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseScore {
    /// The mean of the scores of its trials, between 0 and 1.
    pub mean: f64,
    /// The number of trials that have a score.
    pub trials: u64,
    /// The rule that decides the case by its score.
    pub rule: ScoreRule,
    /// Whether the mean is high enough, if the mean decides the case; `None` if unscored trials could change that.
    pub passes: Option<bool>,
}

/// The comparison of two arms on the same cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmsSummary {
    /// The name of the first arm, which `after` is compared with.
    pub before: String,
    /// The name of the second arm.
    pub after: String,
    /// The difference over all suites.
    #[serde(flatten)]
    pub result: ArmsResult,
    /// The number of pairs in which one trial was not valid in its arm. Neither trial of such a pair counts.
    pub void_pairs: u64,
    /// The first of these pairs, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voided: Vec<VoidPair>,
    /// The result of each suite, with verdicts corrected for the number of suites. Empty if there is one suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<SuiteArmsResult>,
}

/// The difference between two arms, and how certain it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmsResult {
    /// The pass rate of `after` minus that of `before`, as a mean over cases.
    pub difference: Estimate,
    /// Whether the second arm is better, worse, equivalent, or that is not clear.
    pub verdict: ComparisonVerdict,
    /// The probability that chance alone makes such a difference.
    pub chance: f64,
    /// What would settle the comparison, if these runs do not.
    #[serde(flatten)]
    pub outlook: ComparisonOutlook,
}

/// The comparison of two arms in one suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteArmsResult {
    /// The name of the suite.
    pub suite: String,
    /// The difference in this suite.
    #[serde(flatten)]
    pub result: ArmsResult,
}

/// A pair of trials that does not count, because one of them was not valid in its arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VoidPair {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The agent.
    pub agent: String,
    /// The number of the repetition, from 1.
    pub attempt: u32,
    /// Why the pair does not count.
    pub why: String,
}

/// The numbers of trials of a run, by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialTotals {
    /// The number of trials that ended.
    pub trials: u64,
    /// The number of trials that passed.
    pub passed: u64,
    /// The number of trials that failed.
    pub failed: u64,
    /// The number of trials that are not scored.
    pub not_scored: u64,
    /// Planned trials that were not run, for example because `--fail-fast` or an interrupt ended the run. They are
    /// not among `trials`. Trials that `--stop-early` left out are not counted here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Trials whose agent did not run in this run: their results come from earlier runs. They are among `trials`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reused: u64,
}

/// The results of one case under one condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSummary {
    /// The id of the case.
    pub id: String,
    /// The name of the suite.
    pub suite: String,
    /// The agent.
    pub agent: String,
    /// The requested model; `None` leaves the choice to the agent.
    pub model: Option<String>,
    /// The arm: `with` or `without` the skill, or a version such as `v2`.
    pub arm: String,
    /// The mode: how strongly the system prompt urges the agent to use skills.
    pub mode: String,
    /// The number of passed trials; `failed` and `not_scored` count the others.
    pub passed: u64,
    /// The number of failed trials.
    pub failed: u64,
    /// The number of trials that are not scored.
    pub not_scored: u64,
    /// Planned trials of the case that were not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Trials of the case whose results come from earlier runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reused: u64,
    /// The reasons why trials are not scored, each once. At most the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_scored_because: Vec<String>,
    /// Remarks on its trials, each once, such as a changed read-only file. At most the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The changes that are needed before unscored trials can be scored, if running them again does not help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes_needed: Vec<ChangeNeeded>,
    /// The number of trials that need such a change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub need_a_change: u64,
    /// The number of trials whose teardown script failed. That changes no verdict.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_teardowns: u64,
    /// The number of trials by how the agent's process ended.
    pub endings: BTreeMap<String, u64>,
    /// The share of scored trials that passed.
    #[serde(default)]
    pub pass_rate: PassRate,
    /// pass@k and pass^k for each k. Empty if the case ran once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<Reliability>,
    /// The numbers of trials in which the agent activated the skill, did not, or in which that is unknown.
    pub fired: ActivatedCounts,
    /// The activation rate; `None` if the case does not check activation.
    #[serde(default)]
    pub fire_rate: Option<CaseActivationRate>,
    /// The score, in a case that passes by its score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<CaseScore>,
    /// The required share of passing runs; `None` if no gate on stability decides the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<CaseStability>,
    /// Whether the case failed in a way that no gate of its suite measures.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ungated: bool,
    /// The results of each check.
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
            reused: sum.reused + case.reused,
        })
    }
}

impl CaseSummary {
    /// Says whether the case's trials have to pass. Trials without the skill do not: the others are compared with
    /// them.
    pub fn is_under_test(&self) -> bool {
        self.arm != Arm::WithoutSkill.name()
    }

    /// Gives the number of trials that ended.
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

/// The numbers of trials by whether the skill was activated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivatedCounts {
    /// The number of trials in which the skill was activated.
    pub yes: u64,
    /// The number of trials in which the skill was not activated.
    pub no: u64,
    /// The number of trials that do not show whether the skill was activated.
    pub unknown: u64,
}

/// The results of one check over the trials of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckSummary {
    /// The id of the check.
    pub id: String,
    /// The name of the check for people; `None` if that is its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number of trials in which the check passed.
    pub passed: u64,
    /// The number of trials in which the check failed.
    pub failed: u64,
    /// The number of trials in which the check is not scored.
    pub not_scored: u64,
    /// The reason why the check is not scored, from the first such trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_scored_because: Option<String>,
    /// The share of scored trials that have the most frequent verdict; `None` for fewer than two scored trials.
    #[serde(default)]
    pub agreement: Option<f64>,
    /// The scale of a judged check; `None` for a deterministic check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScoreScale>,
    /// The mean score of the trials that have one, on the check's own scale.
    pub mean_score: Option<f64>,
    /// The lowest score; `max_score` is the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// The highest score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_score: Option<f64>,
}
