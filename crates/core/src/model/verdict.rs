//! Verdicts, and the results of checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentEnding, CheckWeight, JudgeVote, Ratio, ScoreRule, ScoreScale, decimals_to_compare};

/// The result of a check or a trial. A missing answer has a variant of its own, so that it is never taken for a pass or
/// a fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What was required was found.
    Pass,
    /// What was required was not found.
    Fail,
    /// There is no answer, for this reason.
    NotScored(NotScoredReason),
}

/// The reason why a check or a trial is not scored. Reasons are decided in four places: `unstarted_record`
/// (`engine/src/pipeline.rs`) before an agent starts, `TrialGrader` (`engine/src/grade/grading.rs`) for a whole trial, the
/// rules (`evals/src/checks/`) for an exact check, and `engine/src/grade/judge/` for a judged one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotScoredReason {
    /// The agent's run ended in a way that cannot be graded.
    Ended(AgentEnding),
    /// The judge was asked and gave no usable answer.
    JudgeFailed(String),
    /// The judge was not asked, because the user said so or no judge is configured.
    NotJudged(String),
    /// The check could not be carried out, for example because its pattern needs too many steps.
    CheckFailed(String),
    /// The user did not trust the scripts of this case.
    NotTrusted,
    /// The skill was visible where it must not be, or missing where it must be.
    InvalidArm(String),
    /// The case has no check.
    NoCheck,
    /// The case has checks, and none of them is required.
    NoRequiredCheck,
    /// The check asks whether links answer, and the user did not allow the network.
    NetworkNotAllowed,
    /// The eval file asks for something that this version does not do.
    Unsupported,
    /// No check failed, because the agent said nothing and did nothing.
    NothingDone,
    /// No check failed, but the agent called a mock in a way that no rule of the mock answers. The text is the call.
    UnmockedCall(String),
    /// A model that plays a mocked server gave no answer, so the agent could not do what it would have done. The text is
    /// the reason.
    MockFailed(String),
}

/// The change that is needed before a trial can be scored, if running it again would not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeNeeded {
    /// The case needs a check.
    AddCheck,
    /// The case needs a required check.
    RequireCheck,
    /// The run needs `--allow-network`.
    AllowNetwork,
    /// The agent must see the skill with it, and not without it.
    CorrectArm,
    /// The case must not ask for what this version does not do.
    RemoveUnsupported,
    /// A mock needs an answer for a call.
    AnswerCall,
}

impl ChangeNeeded {
    /// Describes the problem and what to do about it.
    pub fn describe(self) -> &'static str {
        match self {
            ChangeNeeded::AddCheck => "it has no check; add one",
            ChangeNeeded::RequireCheck => "it has no required check; make one of its checks required",
            ChangeNeeded::AllowNetwork => "it asks whether links answer; run it with --allow-network",
            ChangeNeeded::CorrectArm => {
                "the agent saw the skill where it must not, or not where it must; correct that and start a new run"
            }
            ChangeNeeded::AnswerCall => {
                "a mock has no answer for a call of the agent; add one, or one for all other calls"
            }
            ChangeNeeded::RemoveUnsupported => {
                "its eval file asks for something that this version does not do; change that and start a new run"
            }
        }
    }
}

impl NotScoredReason {
    /// Describes the reason for people.
    pub fn describe(&self) -> String {
        match self {
            NotScoredReason::Ended(ended) => ended.describe().to_owned(),
            NotScoredReason::JudgeFailed(why) => format!("the judge gave no usable answer: {why}"),
            NotScoredReason::NotJudged(why) => format!("not judged: {why}"),
            NotScoredReason::CheckFailed(why) => format!("the check could not be carried out: {why}"),
            NotScoredReason::NotTrusted => "its scripts were not trusted".to_owned(),
            NotScoredReason::InvalidArm(why) => format!("the arm is not valid: {why}"),
            NotScoredReason::NoCheck => "the agent was not started, because the case has no check".to_owned(),
            NotScoredReason::Unsupported => AgentEnding::NotStarted.describe().to_owned(),
            NotScoredReason::UnmockedCall(call) => {
                format!("unmocked call, which no rule of the mock answers: {call}")
            }
            NotScoredReason::MockFailed(why) => {
                format!("the model that plays a mocked server gave no answer: {why}")
            }
            NotScoredReason::NothingDone => {
                "the agent said nothing and did nothing, which proves nothing".to_owned()
            }
            NotScoredReason::NoRequiredCheck => {
                "the check could not be carried out: it has no required check".to_owned()
            }
            NotScoredReason::NetworkNotAllowed => {
                "the check could not be carried out: whether links answer is asked only with --allow-network"
                    .to_owned()
            }
        }
    }

    /// Gives the change that is needed before there can be an answer; `None` if running the trial again may give
    /// one.
    pub fn change_needed(&self) -> Option<ChangeNeeded> {
        match self {
            NotScoredReason::NoCheck => Some(ChangeNeeded::AddCheck),
            NotScoredReason::NoRequiredCheck => Some(ChangeNeeded::RequireCheck),
            NotScoredReason::NetworkNotAllowed => Some(ChangeNeeded::AllowNetwork),
            NotScoredReason::InvalidArm(_) => Some(ChangeNeeded::CorrectArm),
            NotScoredReason::Unsupported => Some(ChangeNeeded::RemoveUnsupported),
            NotScoredReason::UnmockedCall(_) => Some(ChangeNeeded::AnswerCall),
            NotScoredReason::NothingDone
            | NotScoredReason::Ended(_)
            | NotScoredReason::JudgeFailed(_)
            | NotScoredReason::NotJudged(_)
            | NotScoredReason::CheckFailed(_)
            | NotScoredReason::MockFailed(_)
            | NotScoredReason::NotTrusted => None,
        }
    }
}

impl Verdict {
    /// Answers whether all verdicts are passes. Any failure is a failure; otherwise any missing answer is a
    /// missing answer. `None` for an empty list, because passing nothing is not a pass.
    pub fn combine<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Option<Verdict> {
        let mut answer = None;
        for verdict in verdicts {
            match (verdict, &answer) {
                (Verdict::Fail, _) => return Some(Verdict::Fail),
                (Verdict::NotScored(why), None | Some(Verdict::Pass)) => {
                    answer = Some(Verdict::NotScored(why.clone()));
                }
                (Verdict::NotScored(_), _) => {}
                (Verdict::Pass, None) => answer = Some(Verdict::Pass),
                (Verdict::Pass, Some(_)) => {}
            }
        }
        answer
    }

    /// Gives the word for the verdict in documents.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::NotScored(_) => "not_scored",
        }
    }
}

/// The result of grading one check, before it gets the check's id.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckFinding {
    /// Whether the check passed, failed or has no answer.
    pub verdict: Verdict,
    /// The score, on the check's own scale; `None` if the check has none.
    pub score: Option<f64>,
    /// The reason for the verdict.
    pub rationale: String,
    /// Quotes that show it.
    pub evidence: Vec<String>,
}

impl CheckFinding {
    /// Makes a pass or a fail with its reason.
    pub fn new(passed: bool, rationale: impl Into<String>) -> Self {
        Self {
            verdict: if passed { Verdict::Pass } else { Verdict::Fail },
            score: None,
            rationale: rationale.into(),
            evidence: Vec::new(),
        }
    }

    /// Makes a finding without an answer.
    pub fn not_scored(why: NotScoredReason) -> Self {
        Self {
            rationale: why.describe(),
            verdict: Verdict::NotScored(why),
            score: None,
            evidence: Vec::new(),
        }
    }

    /// Adds a quote that shows the verdict.
    #[must_use]
    pub fn with_evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }
}

/// The result of one check in one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The id of the check.
    pub check: String,
    /// The name of the check for people; `None` if that is its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the check must pass for the trial to pass.
    pub required: bool,
    /// Whether the check passed, failed or has no answer.
    pub verdict: Verdict,
    /// The score, on the check's own scale; `None` if the check has none.
    pub score: Option<f64>,
    /// The scale of a judged check; `None` for a deterministic check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScoreScale>,
    /// The reason for the verdict.
    pub rationale: String,
    /// Quotes that show it.
    pub evidence: Vec<String>,
    /// Why the judge thinks that the check passes too easily; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weak: Option<String>,
    /// Doubts about the verdict, such as a quote that is not in the evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// All answers, if the judge was asked several times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<JudgeVote>,
    /// The thresholds that the judged checks of the case must reach together. With them, an optional check can
    /// contribute to the failure of a trial. `None` if each check decides by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<CriteriaThresholds>,
    /// How much the check counts in the score of the trial, in cases that pass by their score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<ScoreWeight>,
}

/// How much a check counts in the score of a trial, and the score that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreWeight {
    /// The weight of the check.
    pub weight: CheckWeight,
    /// The rule of the case.
    pub rule: ScoreRule,
}

/// Gives a check's title for people: its id, and its name if that differs.
pub fn title(id: &str, name: Option<&str>) -> String {
    match name.filter(|name| *name != id) {
        Some(name) => format!("{id} ({name})"),
        None => id.to_owned(),
    }
}

/// The thresholds that the judged checks of a case must reach together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriteriaThresholds {
    /// The least share of these checks that must pass.
    #[schemars(with = "f64")]
    pub min_pass_rate: Ratio,
    /// The least mean of their scores, each between 0 and 1.
    #[schemars(with = "f64")]
    pub min_mean_score: Ratio,
}

impl CriteriaThresholds {
    /// Describes what the judged checks of a trial reached together, beside their thresholds; `None` if they do
    /// not decide together or one has no answer.
    pub fn describe_result(checks: &[CheckResult]) -> Option<String> {
        let judged: Vec<&CheckResult> = checks.iter().filter(|check| check.criteria.is_some()).collect();
        let Self { min_pass_rate, min_mean_score } = judged.first()?.criteria?;
        let shares: Vec<f64> = judged.iter().map(|check| check.normalised_score()).collect::<Option<_>>()?;
        let (count, mean) = (judged.len(), shares.iter().sum::<f64>() / shares.len() as f64);
        let passed = judged.iter().filter(|check| check.verdict == Verdict::Pass).count();
        let word = |holds: bool| if holds { "enough for" } else { "below" };
        let (share, least) = (passed as f64 / count as f64, min_pass_rate.get());
        let digits = decimals_to_compare([mean], min_mean_score.get());
        Some(format!(
            "{passed} of {count} passed, {} the required share of {least}; mean score {mean:.digits$}, {} the required {}",
            word(share >= least),
            word(mean >= min_mean_score.get()),
            min_mean_score.get()
        ))
    }
}

impl CheckResult {
    /// Gives the check's title for people: its id, and its name if it has one. `has_title (Has a title)`.
    pub fn title(&self) -> String {
        title(&self.check, self.name.as_deref())
    }

    /// Gives the check's name, or its id if it has none.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.check)
    }

    /// Describes how the check counts for the trial, as words to follow its name: whether it is optional or one of
    /// several criteria that count together, and its score if it has one.
    pub fn describe_weight(&self) -> String {
        let kind = match (self.criteria, self.weight, self.required) {
            (Some(_), _, _) => Some("criterion".to_owned()),
            (None, Some(ScoreWeight { weight, .. }), _) if weight == CheckWeight::ZERO => {
                Some("does not count".to_owned())
            }
            (None, Some(ScoreWeight { weight, .. }), _) => Some(format!("weight {}", weight.get())),
            (None, None, true) => None,
            (None, None, false) => Some("optional".to_owned()),
        };
        let score = self.scale.zip(self.score).filter(|(scale, _)| *scale != ScoreScale::PassFail);
        let score = score.map(|(scale, score)| {
            let digits = if scale == ScoreScale::Unit { 2 } else { 0 };
            format!("score {score:.digits$}, passes from {}", scale.lowest_passing_score())
        });
        let words: Vec<String> = kind.into_iter().chain(score).collect();
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }

    /// Gives the share of the check's weight that the trial earned, between 0 and 1. A check that only passes or
    /// fails earns all or nothing. `None` if the check has no answer.
    pub(crate) fn earned_share(&self) -> Option<f64> {
        match (&self.verdict, self.scale, self.score) {
            (Verdict::NotScored(_), _, _) => None,
            (_, Some(_), _) => self.normalised_score(),
            (_, None, Some(score)) => Some(score.clamp(0.0, 1.0)),
            (Verdict::Pass, None, None) => Some(1.0),
            (Verdict::Fail, None, None) => Some(0.0),
        }
    }

    /// Gives a judged check's score between 0 and 1, whatever its scale. `None` if it has none.
    pub fn normalised_score(&self) -> Option<f64> {
        match (self.scale?, &self.verdict, self.score) {
            (_, Verdict::NotScored(_), _) => None,
            (ScoreScale::PassFail, Verdict::Pass, _) => Some(1.0),
            (ScoreScale::PassFail, Verdict::Fail, _) => Some(0.0),
            (ScoreScale::OneToFive, _, score) => score.map(|score| (score - 1.0) / 4.0),
            (ScoreScale::Unit, _, score) => score,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_answer_is_neither_pass_nor_fail() {
        let none = Verdict::NotScored(NotScoredReason::NotTrusted);
        for (verdicts, expected) in [
            (vec![], None),
            (vec![Verdict::Pass], Some(Verdict::Pass)),
            (vec![Verdict::Pass, none.clone()], Some(none.clone())),
            (vec![none.clone(), Verdict::Pass], Some(none.clone())),
            (vec![none.clone(), Verdict::Fail], Some(Verdict::Fail)),
            (vec![Verdict::Fail, none.clone()], Some(Verdict::Fail)),
        ] {
            assert_eq!(Verdict::combine(&verdicts), expected, "{verdicts:?}");
        }
    }
}
