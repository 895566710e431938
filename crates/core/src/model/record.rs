//! The stored record of a trial, and what follows from it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ActivationExpectation, ActivationOutcome, ActivationPrediction, AgentEnding, Arm, CheckResult, Condition,
    CriteriaThresholds, Digest, NotScoredReason, Observation, PassRule, Ratio, Remarks, ScoreRule,
    ShortenedEvidence, SkillUse, TokenUsage, TrialId, UserRecord, Verdict, count_with_noun,
    decimals_to_compare,
};

/// The stored result of a trial. Its transcript and files are stored beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// The id of the trial, which is also the name of its folder.
    pub trial: TrialId,
    /// The digest of everything that decides the result. A trial with the same key can be reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// The run that this result was copied from; `None` if the trial ran in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
    /// The digests of what is repeated. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RepeatDigests>,
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The agent, model, arm and mode.
    pub condition: Condition,
    /// The number of the repetition, from 1.
    pub attempt: u32,
    /// How the agent's process ended.
    pub ended: AgentEnding,
    /// The message of the process about its ending; `None` if there is none.
    pub ended_because: Option<String>,
    /// When the limit of the account resets that ended the trial, in seconds since 1970; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_resets_at: Option<u64>,
    /// The result of the trial.
    pub verdict: Verdict,
    /// The weighted mean of the scores of all checks, in a case that passes by its score. `None` if a check has no
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The result of each check.
    pub checks: Vec<CheckResult>,
    /// Whether the case requires activation of the skill, forbids it or accepts both; `None` if it does not check that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ActivationExpectation>,
    /// Whether the skill was activated; `None` if that is unknown or no check asks for it.
    pub fired: Option<bool>,
    /// The skills that the trial tests, and those that were activated.
    #[serde(default, skip_serializing_if = "SkillUse::is_empty")]
    pub skills: SkillUse,
    /// The activation that a model predicted, if it was asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<ActivationPrediction>,
    /// The tokens that the agent used.
    pub usage: TokenUsage,
    /// The cost of the agent in USD; `None` if it is unknown.
    pub cost_usd: Option<f64>,
    /// The model that the agent reports; `None` if it reports none.
    pub model: Option<String>,
    /// The duration of the agent's run.
    pub seconds: f64,
    /// Remarks that change no verdict, such as a failed teardown or a changed fixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Remarks of the judge beyond its answers.
    #[serde(default, skip_serializing_if = "Remarks::is_empty")]
    pub remarks: Remarks,
    /// What was left out of the evidence for the judge; `None` if nothing was, or no judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_evidence: Option<ShortenedEvidence>,
    /// The tokens that the judge used; `None` if no judge was asked or a stored answer was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgeUsage>,
    /// The judge; `None` if no check needs one. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgeInfo>,
    /// The simulated user that answered the agent; `None` if the case has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRecord>,
    /// The tokens and the cost of the model that played mocked servers; `None` if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_model: Option<JudgeUsage>,
}

/// The digests that say of which trials a trial is a repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatDigests {
    /// The digest of the case alone: its prompt, files and checks, whatever it is called.
    pub case: Digest,
    /// The digest of everything that decides the result but the number of the attempt. Trials with the same are repeats
    /// of each other, also in different runs.
    pub setup: Digest,
}

/// The tokens and the cost of a model that judges a trial, or plays its user or its servers. The agent's own are not included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeUsage {
    /// The model.
    pub model: String,
    /// The tokens that it used.
    pub usage: TokenUsage,
    /// `None` if the price of the model is unknown.
    pub cost_usd: Option<f64>,
}

/// The judge of a trial, and when and how long it was asked. The same for a stored or scripted answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeInfo {
    /// The model of the judge.
    pub model: String,
    /// The time of the first question, in UTC.
    pub started: String,
    /// The time from the first question to the last answer.
    pub seconds: f64,
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

    /// Gives what the agent, the judge and the models that played the user and servers cost; `None` is unknown.
    pub fn spending(&self) -> impl Iterator<Item = (TokenUsage, Option<f64>)> + '_ {
        let user = self.user.as_ref().and_then(|user| user.spending.as_ref());
        let models = self
            .judging
            .iter()
            .chain(user)
            .chain(&self.mock_model)
            .map(|model| (model.usage, model.cost_usd));
        std::iter::once((self.usage, self.cost_usd)).chain(models)
    }

    /// Gives the verdicts that the trial would have by each single vote of the judge, or its own verdict where checks do
    /// not have the same number of votes or do not decide by themselves. `None` without a verdict.
    pub fn verdicts_by_votes(&self) -> Option<Vec<bool>> {
        let own = match &self.verdict {
            Verdict::Pass => true,
            Verdict::Fail => false,
            Verdict::NotScored(_) => return None,
        };
        let voted = || self.checks.iter().filter(|check| !check.votes.is_empty());
        let votes = voted().map(|check| check.votes.len()).max().unwrap_or(0);
        let are_simple = self.checks.iter().all(|check| check.criteria.is_none() && check.weight.is_none());
        if votes < 2 || !are_simple || voted().any(|check| check.votes.len() != votes) {
            return Some(vec![own]);
        }
        let required = || self.checks.iter().filter(|check| check.required);
        let passes = |vote: usize| {
            required().all(|check| {
                check.votes.get(vote).map_or(&check.verdict, |vote| &vote.verdict) == &Verdict::Pass
            })
        };
        Some((0..votes).map(passes).collect())
    }

    /// Says whether the agent ran in an earlier run, so that its tokens and cost were spent there.
    pub fn is_reused(&self) -> bool {
        self.reused_from.is_some()
    }

    /// Gives the notes on the trial. The first of a reused trial says which run it is from, because its time, tokens and
    /// cost are of that run.
    pub fn notes_with_origin(&self) -> impl Iterator<Item = String> {
        let origin = self.reused_from.as_ref().map(|run| format!("reused from run {run}"));
        origin.into_iter().chain(self.notes.iter().cloned())
    }

    /// Says whether the judge was asked in an earlier run. A trial that is graded again has no key: its agent ran
    /// earlier, and its judge is asked now.
    pub fn is_judging_reused(&self) -> bool {
        self.is_reused() && self.key.is_some()
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
                | NotScoredReason::NetworkNotAllowed
                | NotScoredReason::Unsupported
                | NotScoredReason::NothingDone
                | NotScoredReason::UnmockedCall(_)
                | NotScoredReason::MockFailed(_),
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
            PassRule::Score(_) => verdict_by_score(checks),
            PassRule::EveryRequiredCheck | PassRule::ActivationRate(_) | PassRule::CountOnly => None,
        };
        let nothing = || Verdict::NotScored(NotScoredReason::NoRequiredCheck);
        Verdict::combine(required.iter().chain(&judged)).unwrap_or_else(nothing)
    }
}

/// A kind of failure, as far as gates distinguish failures.
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
    /// Gives the kinds of failures of the trial; empty if it did not fail. `activation_checks` are the ids of the checks that ask
    /// whether a skill was activated.
    pub(crate) fn failure_kinds(&self, activation_checks: &[String]) -> BTreeSet<FailureKind> {
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
    /// Combines the results of checks of a finished trial into a verdict: by the required checks, and by the
    /// thresholds of the judged checks if there are any. `None` if none of these checks can fail.
    pub(crate) fn verdict_of_checks(checks: &[CheckResult]) -> Option<Verdict> {
        let required =
            Verdict::combine(checks.iter().filter(|check| check.required).map(|check| &check.verdict));
        let thresholds = checks.iter().find_map(|check| check.criteria);
        let judged =
            thresholds.and_then(|of| verdict_by_thresholds(checks, of.min_pass_rate, of.min_mean_score));
        let score = verdict_by_score(checks);
        Verdict::combine(required.iter().chain(&judged).chain(&score))
    }

    /// Describes what the checks of a trial reached together, beside what they had to reach. `None` if each check
    /// decides by itself, or if answers are missing.
    pub fn describe_total(checks: &[CheckResult]) -> Option<String> {
        let by_score = || {
            let (score, rule) = (Self::score_of(checks)?, checks.iter().find_map(|check| check.weight)?.rule);
            let (least, word) =
                (rule.at_least.get(), if reaches(score, rule) { "enough for" } else { "below" });
            let digits = decimals_to_compare([score], least);
            Some(format!("score {score:.digits$}, {word} the required {least:.digits$}"))
        };
        CriteriaThresholds::describe_result(checks).or_else(by_score)
    }

    /// Gives the score of a trial by its checks. `None` if the case does not pass by its score, or if a check that
    /// counts has no answer.
    pub fn score_of(checks: &[CheckResult]) -> Option<f64> {
        let (worst, best, _) = score_bounds(checks)?;
        (worst == best).then_some(worst)
    }
}

/// Gives the score of a trial if all missing answers were 0, and if all were 1, with the rule that it must reach.
/// `None` if no check counts.
fn score_bounds(checks: &[CheckResult]) -> Option<(f64, f64, ScoreRule)> {
    let rule = checks.iter().find_map(|check| check.weight)?.rule;
    let weight = |check: &CheckResult| check.weight.map_or(0.0, |of| of.weight.get());
    let total: f64 = checks.iter().map(weight).sum();
    if total <= 0.0 {
        return None;
    }
    let earned = |missing: f64| {
        let sum: f64 =
            checks.iter().map(|check| weight(check) * check.earned_share().unwrap_or(missing)).sum();
        sum / total
    };
    let is_missing = |check: &CheckResult| weight(check) > 0.0 && check.earned_share().is_none();
    let worst = earned(0.0);
    Some((worst, if checks.iter().any(is_missing) { earned(1.0) } else { worst }, rule))
}

/// Says whether the score of a trial is high enough. If checks have no answer, there is a verdict only if it is the
/// same whatever they would have said.
fn verdict_by_score(checks: &[CheckResult]) -> Option<Verdict> {
    let (worst, best, rule) = score_bounds(checks)?;
    if reaches(worst, rule) == reaches(best, rule) {
        return Some(if reaches(worst, rule) { Verdict::Pass } else { Verdict::Fail });
    }
    let missing = checks.iter().filter(|check| check.weight.is_some_and(|of| of.weight.get() > 0.0));
    missing.map(|check| &check.verdict).find(|verdict| matches!(verdict, Verdict::NotScored(_))).cloned()
}

/// Says whether a score is high enough.
fn reaches(score: f64, rule: ScoreRule) -> bool {
    score >= rule.at_least.get() - SCORE_ROUNDING
}

/// The most by which sums of weights may be off because computers round: 0.1 + 0.2 reaches 0.3.
pub(crate) const SCORE_ROUNDING: f64 = 1e-9;

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
    use crate::model::{CheckWeight, ScoreOf, ScoreScale, ScoreWeight, testing};

    fn result(required: bool, verdict: Verdict, score: Option<f64>) -> CheckResult {
        let scale = score.is_some().then_some(ScoreScale::Unit);
        CheckResult { required, scale, score, ..testing::check("c", verdict) }
    }

    #[test]
    fn a_score_is_the_weighted_mean_and_a_missing_answer_never_decides() {
        let seen = Observation::with_ending(AgentEnding::Finished);
        let rule = ScoreRule { at_least: Ratio::new(0.6).expect("a share"), of: ScoreOf::EachTrial };
        let weighted = |weight: f64, verdict: Verdict, score: Option<f64>| CheckResult {
            required: false,
            score,
            weight: Some(ScoreWeight { weight: CheckWeight::new(weight).expect("a weight"), rule }),
            ..testing::check("c", verdict)
        };
        let none = || Verdict::NotScored(NotScoredReason::NotTrusted);
        let (pass, fail) = (|| Verdict::Pass, || Verdict::Fail);
        for (checks, score, expected) in [
            (vec![weighted(3.0, pass(), None), weighted(2.0, fail(), None)], Some(0.6), "pass"),
            (vec![weighted(2.0, pass(), None), weighted(2.0, fail(), None)], Some(0.5), "fail"),
            // Partial credit of a check that gives a score.
            (vec![weighted(1.0, fail(), Some(0.4)), weighted(1.0, pass(), Some(0.8))], Some(0.6), "pass"),
            // A check without weight is reported and does not count.
            (vec![weighted(1.0, pass(), None), weighted(0.0, fail(), None)], Some(1.0), "pass"),
            (vec![weighted(0.0, pass(), None)], None, "not_scored"),
            // A missing answer leaves the verdict open, unless the others decide.
            (vec![weighted(1.0, pass(), None), weighted(1.0, none(), None)], None, "not_scored"),
            (vec![weighted(3.0, pass(), None), weighted(1.0, none(), None)], None, "pass"),
            (vec![weighted(3.0, fail(), None), weighted(1.0, none(), None)], None, "fail"),
            // A required check fails the trial whatever the score is.
            (
                vec![
                    weighted(9.0, pass(), None),
                    CheckResult { required: true, ..weighted(1.0, fail(), None) },
                ],
                Some(0.9),
                "fail",
            ),
        ] {
            let rounded = TrialRecord::score_of(&checks).map(|score| (score * 1e6).round() / 1e6);
            assert_eq!(rounded, score, "{checks:?}");
            let verdict = TrialRecord::verdict_of(&seen, &checks, PassRule::Score(rule));
            assert_eq!(verdict.name(), expected, "{checks:?}");
        }
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
