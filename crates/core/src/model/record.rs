//! The stored record of a trial, and what follows from it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ActivationExpectation, AgentEnding, Arm, CheckResult, Condition, Digest, NotScoredReason, Observation,
    PassRule, Ratio, Remarks, ShortenedEvidence, TokenUsage, TrialId, Verdict, count_with_noun,
};

/// All that is kept of a trial beside its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    pub trial: TrialId,
    /// What decided the result; two trials with one key would only repeat each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// The run whose trial this is a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
    pub suite: String,
    pub case: String,
    pub condition: Condition,
    pub attempt: u32,
    pub ended: AgentEnding,
    pub ended_because: Option<String>,
    pub verdict: Verdict,
    pub checks: Vec<CheckResult>,
    /// What the case wants of the skill's activation, if it wants anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ActivationExpectation>,
    /// Whether the skill fired; `None` where the run cannot say or nobody asked.
    pub fired: Option<bool>,
    #[serde(default, skip_serializing_if = "SkillUse::is_empty")]
    pub skills: SkillUse,
    /// What a model guessed of activation, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<ActivationPrediction>,
    pub usage: TokenUsage,
    pub cost_usd: Option<f64>,
    pub model: Option<String>,
    pub seconds: f64,
    /// Things worth telling that change no verdict: a failed teardown, a changed fixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the judge noticed beside what it was asked.
    #[serde(default, skip_serializing_if = "Remarks::is_empty")]
    pub remarks: Remarks,
    /// What the judge was not shown; `None` where it was shown everything, or nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_evidence: Option<ShortenedEvidence>,
    /// What the judge used; `None` where nobody was asked, or an earlier answer was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgeUsage>,
    /// Who judged it; `None` where no judge was to be asked. Earlier runs did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgeInfo>,
}

/// What a model used to judge a trial, apart from what the agent used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeUsage {
    pub model: String,
    pub usage: TokenUsage,
    /// `None` if nobody knows the model's price.
    pub cost_usd: Option<f64>,
}

/// Who judged a trial, when and how long, whether a model answered now, earlier, or a script in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeInfo {
    pub model: String,
    /// When it was asked first, in UTC.
    pub started: String,
    pub seconds: f64,
}

/// Which skills a trial was about, and which were taken up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillUse {
    /// Those that the case's expectation names.
    pub about: Vec<String>,
    /// Those that the agent took up, rivals among them, by their own names.
    pub activated: Vec<String>,
    /// Whether the user named the skill, which leaves the agent nothing to decide.
    pub invoked: bool,
}

/// What a model guessed of activation from descriptions, and what was wanted. It is no observation, and is
/// never counted with any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationPrediction {
    pub expect: ActivationExpectation,
    /// The skills that it is about.
    pub about: Vec<String>,
    /// Those that the model expects to be taken up; `None` if it gave no answer.
    pub chosen: Option<Vec<String>>,
}

impl ActivationPrediction {
    /// Says whether the model predicted one of the skills that the case is about; `None` without a prediction.
    pub fn is_activated(&self) -> Option<bool> {
        let chosen = self.chosen.as_ref()?;
        Some(self.about.iter().any(|skill| chosen.contains(skill)))
    }
}

/// The outcome of a trial with respect to activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivationOutcome {
    TruePositive,
    FalsePositive,
    TrueNegative,
    FalseNegative,
    /// The case accepts both.
    Acceptable,
    /// The trial does not show whether the skill was activated.
    Error,
}

impl ActivationOutcome {
    /// Gives the outcome as skill-test writes it.
    pub fn name(self) -> &'static str {
        match self {
            ActivationOutcome::TruePositive => "tp",
            ActivationOutcome::FalsePositive => "fp",
            ActivationOutcome::TrueNegative => "tn",
            ActivationOutcome::FalseNegative => "fn",
            ActivationOutcome::Acceptable => "acceptable",
            ActivationOutcome::Error => "error",
        }
    }
}

impl SkillUse {
    /// Gives the skills that the agent activated though the case is not about them.
    pub fn activated_instead(&self) -> Vec<&str> {
        self.activated.iter().filter(|skill| !self.about.contains(skill)).map(String::as_str).collect()
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The beginning of the note on a failed teardown script.
const TEARDOWN_FAILED_PREFIX: &str = "teardown failed";

impl TrialRecord {
    /// Says why the trial has no verdict, with what is known of the cause; `None` if it has one.
    pub fn not_scored_reason(&self) -> Option<String> {
        let Verdict::NotScored(why) = &self.verdict else { return None };
        let because = self.ended_because.as_deref().filter(|because| !because.is_empty());
        Some(match because {
            Some(because) => format!("{}: {because}", why.describe()),
            None => why.describe(),
        })
    }

    /// Writes the note that says why a teardown script failed.
    pub fn teardown_note(why: &str) -> String {
        format!("{TEARDOWN_FAILED_PREFIX}: {why}")
    }

    /// Gives the notes that say why teardown scripts failed.
    pub fn failed_teardowns(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().filter(|note| note.starts_with(TEARDOWN_FAILED_PREFIX))
    }

    /// Writes a note on optional checks without an answer, for a trial that has a verdict without them. `None` if
    /// there are none.
    pub fn unanswered_note(&self) -> Option<String> {
        let is_silent =
            |check: &&CheckResult| !check.required && matches!(check.verdict, Verdict::NotScored(_));
        let silent: Vec<&CheckResult> = self.checks.iter().filter(is_silent).collect();
        let Verdict::NotScored(why) = &silent.first()?.verdict else { return None };
        if matches!(self.verdict, Verdict::NotScored(_)) {
            return None;
        }
        let (checks, verb) =
            (count_with_noun(silent.len(), "optional check"), if silent.len() == 1 { "has" } else { "have" });
        let names: Vec<&str> = silent.iter().map(|check| check.label()).collect();
        Some(format!("{checks} {verb} no answer: {} ({})", names.join(", "), why.describe()))
    }

    /// Says whether running the trial again would show nothing new: the agent came to its end and every required
    /// check has an answer.
    pub fn is_conclusive(&self) -> bool {
        self.ended.can_be_graded() && !matches!(self.verdict, Verdict::NotScored(_))
    }

    /// Says whether another run may reuse the trial: it is conclusive, and no check lacks an answer for a reason
    /// that lies in its own run alone (no judge, a judge that failed, scripts that were not trusted).
    pub fn is_reusable(&self) -> bool {
        let of_that_run = |check: &CheckResult| match &check.verdict {
            Verdict::NotScored(
                NotScoredReason::JudgeFailed(_) | NotScoredReason::NotJudged(_) | NotScoredReason::NotTrusted,
            ) => true,
            Verdict::NotScored(
                NotScoredReason::Ended(_)
                | NotScoredReason::CheckFailed(_)
                | NotScoredReason::InvalidArm(_)
                | NotScoredReason::NoCheck
                | NotScoredReason::NoRequiredCheck
                | NotScoredReason::NetworkNotAllowed,
            )
            | Verdict::Pass
            | Verdict::Fail => false,
        };
        self.is_conclusive() && !self.checks.iter().any(of_that_run)
    }

    /// Says whether the skill was activated; `None` if this trial does not show it. A trial whose agent did not
    /// have the right skills never counts. A trial that was cut short counts only if it activated a skill that
    /// must not be activated.
    pub fn was_activated(&self) -> Option<bool> {
        let is_wrong = self.expect == Some(ActivationExpectation::MustNot) && self.fired == Some(true);
        self.fired.filter(|_| self.is_valid() || (is_wrong && self.has_valid_arm()))
    }

    /// Says whether the agent came to its end and had the skills that it should have.
    fn is_valid(&self) -> bool {
        self.ended.can_be_graded() && self.has_valid_arm()
    }

    /// Says whether the agent had the skills that it should have.
    fn has_valid_arm(&self) -> bool {
        !matches!(self.verdict, Verdict::NotScored(NotScoredReason::InvalidArm(_)))
    }

    /// Says whether the case demands that a skill is, or is not, activated. In an arm without the skill, never.
    pub fn is_about_activation(&self) -> bool {
        let guessed = self.predicted.as_ref().map(|guess| guess.expect);
        let asked = self.expect.or(guessed).is_some_and(|expect| expect != ActivationExpectation::Either);
        asked && self.condition.arm.has_skill()
    }

    /// Gives the activation outcome of the trial. `None` if the case does not ask about activation, if the trial
    /// ran without the skill, and if the user named the skill and nothing went wrong, because then the agent had
    /// no choice.
    pub fn activation_outcome(&self) -> Option<ActivationOutcome> {
        let expect = self.expect.filter(|_| self.condition.arm != Arm::WithoutSkill)?;
        let outcome = match (expect, self.was_activated()) {
            (ActivationExpectation::Must, Some(true)) => ActivationOutcome::TruePositive,
            (ActivationExpectation::Must, Some(false)) => ActivationOutcome::FalseNegative,
            (ActivationExpectation::MustNot, Some(true)) => ActivationOutcome::FalsePositive,
            (ActivationExpectation::MustNot, Some(false)) => ActivationOutcome::TrueNegative,
            (ActivationExpectation::Either, Some(_)) => ActivationOutcome::Acceptable,
            (
                ActivationExpectation::Must | ActivationExpectation::MustNot | ActivationExpectation::Either,
                None,
            ) => ActivationOutcome::Error,
        };
        let went_wrong = match outcome {
            ActivationOutcome::FalsePositive | ActivationOutcome::FalseNegative => true,
            ActivationOutcome::Error => !self.is_valid(),
            ActivationOutcome::TruePositive
            | ActivationOutcome::TrueNegative
            | ActivationOutcome::Acceptable => false,
        };
        Some(outcome).filter(|_| !self.skills.invoked || went_wrong)
    }

    /// Gives the verdict of a trial. The agent must have finished; then the case's rule decides. A trial without
    /// anything that could fail is not a pass. A trial that was cut short has failed if a required check already
    /// failed, and is not scored otherwise.
    pub fn verdict_of(observation: &Observation, checks: &[CheckResult], rule: PassRule) -> Verdict {
        if !observation.ended.can_be_graded() {
            let has_failed = checks.iter().any(|check| check.required && check.verdict == Verdict::Fail);
            return if has_failed {
                Verdict::Fail
            } else {
                Verdict::NotScored(NotScoredReason::Ended(observation.ended))
            };
        }
        let required =
            Verdict::combine(checks.iter().filter(|check| check.required).map(|check| &check.verdict));
        let judged = match rule {
            PassRule::JudgedThresholds { pass_rate, mean_score } => {
                verdict_by_thresholds(checks, pass_rate, mean_score)
            }
            PassRule::EveryRequiredCheck | PassRule::ActivationRate(_) | PassRule::CountOnly => None,
        };
        let nothing = || Verdict::NotScored(NotScoredReason::NoRequiredCheck);
        Verdict::combine(required.iter().chain(&judged)).unwrap_or_else(nothing)
    }
}

/// What made a trial fail, as far as gates tell failures apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// The skill was activated, and must not be.
    WronglyActivated,
    /// The skill was not activated, and must be.
    NotActivated,
    /// A judge said no, or too often no.
    Judged,
    /// Another check failed.
    Other,
}

impl TrialRecord {
    /// What made the trial fail: nothing where it did not. `activation_checks` are the ids of the checks that ask
    /// whether a skill was activated.
    pub fn failure_kinds(&self, activation_checks: &[String]) -> BTreeSet<FailureKind> {
        if self.verdict != Verdict::Fail {
            return BTreeSet::new();
        }
        let kind = |check: &CheckResult| match self.activation_outcome() {
            Some(ActivationOutcome::FalsePositive) if activation_checks.contains(&check.check) => {
                FailureKind::WronglyActivated
            }
            Some(ActivationOutcome::FalseNegative) if activation_checks.contains(&check.check) => {
                FailureKind::NotActivated
            }
            _ if check.scale.is_some() => FailureKind::Judged,
            _ => FailureKind::Other,
        };
        let failed = |check: &&CheckResult| check.required && check.verdict == Verdict::Fail;
        let mut kinds: BTreeSet<FailureKind> = self.checks.iter().filter(failed).map(kind).collect();
        let others: Vec<CheckResult> = self.checks.iter().filter(|check| !failed(check)).cloned().collect();
        if kinds.is_empty() || Self::verdict_of_checks(&others) == Some(Verdict::Fail) {
            kinds.insert(FailureKind::Judged);
        }
        kinds
    }
}

impl TrialRecord {
    /// Gives the verdict by some checks of a trial that came to its end: by the required checks, and by the
    /// thresholds of the judged checks if there are any. `None` if none of these checks can fail.
    pub fn verdict_of_checks(checks: &[CheckResult]) -> Option<Verdict> {
        let required =
            Verdict::combine(checks.iter().filter(|check| check.required).map(|check| &check.verdict));
        let thresholds = checks.iter().find_map(|check| check.criteria);
        let judged =
            thresholds.and_then(|of| verdict_by_thresholds(checks, of.min_pass_rate, of.min_mean_score));
        Verdict::combine(required.iter().chain(&judged))
    }
}

/// Says whether enough judged checks pass, with a high enough mean score. If one has no answer, the result has
/// none either, unless the others decide it alone.
fn verdict_by_thresholds(checks: &[CheckResult], pass_rate: Ratio, mean_score: Ratio) -> Option<Verdict> {
    let judged: Vec<&CheckResult> = checks.iter().filter(|check| check.scale.is_some()).collect();
    if judged.is_empty() {
        return None;
    }
    if let Some(Verdict::NotScored(why)) =
        judged.iter().map(|check| &check.verdict).find(|verdict| matches!(verdict, Verdict::NotScored(_)))
    {
        return Some(Verdict::NotScored(why.clone()));
    }
    let count = judged.len() as f64;
    let passed = judged.iter().filter(|check| check.verdict == Verdict::Pass).count() as f64;
    let sum: f64 = judged.iter().filter_map(|check| check.normalised_score()).sum();
    let holds = passed / count >= pass_rate.get() && sum / count >= mean_score.get();
    Some(if holds { Verdict::Pass } else { Verdict::Fail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ScoreScale, testing};

    fn result(required: bool, verdict: Verdict, score: Option<f64>) -> CheckResult {
        let scale = score.is_some().then_some(ScoreScale::Unit);
        CheckResult { required, scale, score, ..testing::check("c", verdict) }
    }

    #[test]
    fn a_graded_case_needs_share_mean_and_every_required_check() {
        let seen = Observation::with_ending(AgentEnding::Finished);
        let ratio = |value| Ratio::new(value).expect("a share");
        let rule = PassRule::JudgedThresholds { pass_rate: ratio(0.7), mean_score: ratio(0.5) };
        let judged = |scores: &[f64]| -> Vec<CheckResult> {
            let verdict = |score: f64| if score >= 0.5 { Verdict::Pass } else { Verdict::Fail };
            scores.iter().map(|score| result(false, verdict(*score), Some(*score))).collect()
        };
        for (checks, expected) in [
            (judged(&[0.9, 0.9, 0.9, 0.1]), "pass"),
            (judged(&[0.9, 0.1]), "fail"),
            (judged(&[0.5, 0.5, 0.49]), "fail"),
            ([judged(&[0.9]), vec![result(true, Verdict::Fail, None)]].concat(), "fail"),
            ([judged(&[0.9]), vec![result(true, Verdict::Pass, None)]].concat(), "pass"),
            (vec![result(true, Verdict::Pass, None)], "pass"),
            (vec![result(false, Verdict::Pass, None)], "not_scored"),
            (vec![], "not_scored"),
        ] {
            assert_eq!(TrialRecord::verdict_of(&seen, &checks, rule).name(), expected, "{checks:?}");
        }
        let timed_out = Observation::with_ending(AgentEnding::TimedOut);
        assert_eq!(TrialRecord::verdict_of(&timed_out, &judged(&[0.9]), rule).name(), "not_scored");
    }
}
