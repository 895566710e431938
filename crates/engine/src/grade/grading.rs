//! Grades a trial: runs the checks on what was observed and asks the judge.
//!
//! In: a case, an `Observation`, the workspace as far as it still exists, a judge if there is one. Out:
//! `TrialGrades`. New trials and regraded trials take the same path. Never: runs an agent; grades a run that did
//! not end properly, except for a wrong activation.

mod skill_text;

pub use skill_text::SkillTextToJudge;
pub(crate) use skill_text::judge_skill;

use std::collections::HashSet;

use crate::grade::judge::{
    CaseQuestions, Judge, JudgeContext, JudgeResult, JudgeVerdict, OfferedSkill, PredictionInput,
    TrialEvidence, predicted_activation,
};
use crate::workspace::mocks::{first_model_failure, first_unmocked};
use practicum_agents::gateway::{GatewayScope, PriceTable};
use practicum_core::model::{
    ActivatedSkill, ActivationCheck, ActivationExpectation, ActivationPrediction, ActivationSource, Arm,
    Case, CasePrompt, Check, CheckFinding, CheckKind, CheckNeed, CheckPermissions, CheckResult, CheckTarget,
    CheckWeight, CriteriaThresholds, GivenFile, JudgeInfo, JudgeUsage, NotScoredReason, Observation,
    ObservedActivation, PassRule, Remarks, Rule, ScoreScale, ScoreWeight, ShortenedEvidence, SkillUse, Suite,
    TokenUsage, TrialRecord, Verdict, WorkspaceView,
};
use practicum_evals::checks::{self, SkillNames};
use practicum_skills::skill::Skill;

/// The inputs for grading one trial.
pub struct TrialGrader<'s> {
    pub suite: &'s Suite,
    pub case: &'s Case,
    /// The checks of the case that apply to this trial.
    pub checks: Vec<&'s Check>,
    pub arm: Arm,
    /// The skills that were staged: each with its own name and its name in the workspace.
    pub skills: Vec<(String, String)>,
    /// Permissions of the checks.
    pub permissions: CheckPermissions<'s>,
    /// The skills that a model is offered when it predicts which of them is activated.
    pub offered_skills: Vec<OfferedSkill>,
}

/// Gives the skills of a suite and their rivals as agents are offered them; none if no check predicts.
pub(crate) fn offered_skills(suite: &Suite, checks: &[&Check]) -> Vec<OfferedSkill> {
    if !checks.iter().any(|check| predicted_activation(check).is_some()) {
        return Vec::new();
    }
    let placed = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| {
        let read = Skill::read(skill.path.as_ref()?).ok()?;
        Some(OfferedSkill { name: skill.name.clone(), description: read.description.unwrap_or_default() })
    });
    placed.collect()
}

/// The judge of a trial, and how it is reached.
pub struct JudgeAccess<'j> {
    /// The judge, or the reason why there is none.
    pub judge: Result<&'j Judge, NotScoredReason>,
    pub context: JudgeContext<'j>,
    /// Opens a gateway address for this trial alone, if a gateway stands before the judge's model.
    pub open_scope: &'j (dyn Fn() -> Option<GatewayScope> + Sync),
    /// The name of that gateway in notes.
    pub gateway_name: &'static str,
    /// The prices of models; `None` if their answers cost nothing.
    pub prices: Option<&'j PriceTable>,
}

/// The size below which text is checked on the current thread.
const QUICK_TEXT_BYTES: usize = 64 * 1024;

/// The results of grading one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialGrades {
    pub checks: Vec<CheckResult>,
    pub verdict: Verdict,
    /// Whether the skill that the case is about was activated; `None` if that is unknown.
    pub activated: Option<bool>,
    /// The skills that the run was about, and those that were activated.
    pub skills: SkillUse,
    /// The activation that a model predicted, if it was asked to.
    pub predicted: Option<ActivationPrediction>,
    /// Remarks of the judge beyond the questions.
    pub remarks: Remarks,
    /// Notes about the judge that change no verdict.
    pub notes: Vec<String>,
    /// How much the judge was not shown, if anything was left out.
    pub shortened: Option<ShortenedEvidence>,
    pub judge_usage: Option<JudgeUsage>,
    /// The judge that answered; `None` if none was asked.
    pub judge_info: Option<JudgeInfo>,
}

impl JudgeAccess<'_> {
    fn judge_usage(&self, usage: TokenUsage) -> Option<JudgeUsage> {
        let (judge, prices) = (self.judge.as_ref().ok()?, self.prices?);
        let model = judge.model().to_owned();
        (!usage.is_none()).then(|| JudgeUsage { cost_usd: prices.cost(&model, usage), model, usage })
    }

    /// Describes the judge and how long it has worked since `started`. `None` if there is no judge.
    fn judge_info(&self, started: jiff::Timestamp) -> Option<JudgeInfo> {
        let model = self.judge.as_ref().ok()?.model().to_owned();
        let seconds = jiff::Timestamp::now().duration_since(started).as_secs_f64().max(0.0);
        Some(JudgeInfo { model, started: started.to_string(), seconds })
    }

    /// Closes the gateway scope of the judge and gives its notes.
    fn gateway_notes(&self, scope: &GatewayScope) -> impl Iterator<Item = String> {
        scope.finish().into_iter().map(|note| format!("judge: {}: {note}", self.gateway_name))
    }
}

impl TrialGrader<'_> {
    /// Runs the checks, then asks the judge the remaining questions.
    pub async fn grade(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        given: &[GivenFile],
        jury: &JudgeAccess<'_>,
    ) -> TrialGrades {
        let findings = self.run_checks_in_background(seen, workspace);
        self.grade_with_findings(seen, workspace, given, jury, findings).await
    }

    /// Asks the judge the questions that the checks left open.
    pub(crate) async fn grade_with_findings(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        given: &[GivenFile],
        jury: &JudgeAccess<'_>,
        findings: Vec<Option<CheckFinding>>,
    ) -> TrialGrades {
        let started = jiff::Timestamp::now();
        let judge_result = self.ask_judge(seen, workspace, given, jury, &findings).await;
        let judging = jury.judge_usage(judge_result.usage);
        let judged_by = self.needs_judge(seen).then(|| jury.judge_info(started)).flatten();
        TrialGrades {
            judge_usage: judging,
            judge_info: judged_by,
            ..self.combine_results(seen, findings, judge_result)
        }
    }

    /// Runs all deterministic checks without holding up other tasks: checks may run programs and read large files.
    /// Short work stays on the current thread, because moving it would take longer.
    pub(crate) fn run_checks_in_background(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
    ) -> Vec<Option<CheckFinding>> {
        let decide = || self.run_checks(seen, workspace);
        if self.is_quick(seen) { decide() } else { crate::workspace::run::run_blocking(decide) }
    }

    fn is_quick(&self, seen: &Observation) -> bool {
        let waits = |rule: &dyn Rule| rule.runs_code() || rule.uses_network();
        let code = |check: &&Check| matches!(&check.kind, CheckKind::Rule(rule) if waits(rule.as_ref()));
        let short = seen.output.len() < QUICK_TEXT_BYTES
            && seen.files.is_empty()
            && seen.steps.len() < QUICK_TEXT_BYTES / 1024;
        short && !self.checks.iter().any(code)
    }

    /// Says whether a judge must be asked about this observation.
    pub(crate) fn needs_judge(&self, seen: &Observation) -> bool {
        seen.ended.can_be_graded() && !CaseQuestions::from_checks(self.checks.iter().copied()).is_empty()
    }

    /// Runs only the checks. Questions for a judge stay unscored, with `why` as the reason.
    pub(crate) fn grade_without_judge(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        why: &NotScoredReason,
    ) -> TrialGrades {
        let unanswered = CaseQuestions::from_checks(self.checks.iter().copied()).unanswered(why);
        self.combine_results(seen, self.run_checks(seen, workspace), unanswered)
    }

    /// Runs the deterministic checks; `None` for each check that needs a judge.
    pub fn run_checks(&self, seen: &Observation, workspace: &dyn WorkspaceView) -> Vec<Option<CheckFinding>> {
        if !seen.ended.can_be_graded() {
            let broken_off = || CheckFinding::not_scored(NotScoredReason::Ended(seen.ended));
            let known = |check: &&Check| {
                self.grade_activation(check, seen).filter(|finding| finding.verdict == Verdict::Fail)
            };
            return self.checks.iter().map(|check| known(check).or_else(|| Some(broken_off()))).collect();
        }
        let mut findings = checks::run_checks(&self.checks, seen, workspace, self.permissions);
        for (check, finding) in self.checks.iter().zip(&mut findings) {
            if let Some(found) = self.grade_activation(check, seen) {
                *finding = Some(found);
            }
            if let CheckKind::Judged(judged) = &check.kind {
                *finding = missing_text(check, judged.scale, seen, workspace);
            }
        }
        findings
    }

    /// Checks what was observed of the skills of an activation check. `None` for other checks, and for
    /// predictions, which a model makes.
    fn grade_activation(&self, check: &Check, seen: &Observation) -> Option<CheckFinding> {
        let CheckKind::Activation(activation) = &check.kind else { return None };
        let is_known = self.can_tell_activation(&activation.skills, seen);
        let unknown = || CheckFinding::not_scored(NotScoredReason::CheckFailed(INVOKED_NOTE.to_owned()));
        let found = || checks::check_activation(activation, seen, &self.skill_names());
        (activation.source == ActivationSource::Observed).then(|| if is_known { found() } else { unknown() })
    }

    async fn ask_judge(
        &self,
        seen: &Observation,
        workspace: &dyn WorkspaceView,
        given: &[GivenFile],
        jury: &JudgeAccess<'_>,
        findings: &[Option<CheckFinding>],
    ) -> JudgeResult {
        let is_open = |check: &Check, finding: &Option<CheckFinding>| {
            finding.is_none() || !matches!(check.kind, CheckKind::Judged(_))
        };
        let open = self.checks.iter().zip(findings).filter(|(check, finding)| is_open(check, finding));
        let questions = CaseQuestions::from_checks(open.map(|(check, _)| *check))
            .with_prediction_input(self.prediction_input());
        if questions.is_empty() || !seen.ended.can_be_graded() {
            return questions.unanswered(&NotScoredReason::Ended(seen.ended));
        }
        let judge = match &jury.judge {
            Err(why) => return questions.unanswered(why),
            Ok(judge) => judge,
        };
        let context = self.case.context.as_deref();
        let exhibit = TrialEvidence { observation: seen, context, workspace, given_files: given };
        let Some(scope) = (jury.open_scope)() else {
            return judge.judge_trial(&questions, &exhibit, &jury.context).await;
        };
        let judge = judge.at_address(|api| scope.base_url_for(api));
        let mut judge_result = judge.judge_trial(&questions, &exhibit, &jury.context).await;
        judge_result.notes.extend(jury.gateway_notes(&scope));
        judge_result
    }

    /// Names the patterns for files to check that matched nothing although others did: the checks then read only a
    /// part.
    fn unmatched_outputs(&self, seen: &Observation) -> Option<String> {
        let globs = self.checks.iter().find_map(|check| match &check.target {
            CheckTarget::Files(globs) | CheckTarget::Pictures(globs) => Some(globs),
            CheckTarget::Output
            | CheckTarget::LastTurn
            | CheckTarget::AllText
            | CheckTarget::WholeRun
            | CheckTarget::File(_) => None,
        })?;
        let unmatched = checks::unmatched_globs(seen, globs);
        let is_part = seen.ended.can_be_graded() && !unmatched.is_empty() && unmatched.len() < globs.len();
        is_part.then(|| format!("no file was created or changed that matches {}", unmatched.join(", ")))
    }

    /// Combines the findings of the checks and the judge.
    fn combine_results(
        &self,
        seen: &Observation,
        findings: Vec<Option<CheckFinding>>,
        mut judge_result: JudgeResult,
    ) -> TrialGrades {
        let mut checks = Vec::new();
        for (check, finding) in self.checks.iter().zip(findings) {
            match finding {
                Some(finding) => {
                    let result = judged_result(check, JudgeVerdict::new(&check.id, &check.id, finding));
                    checks.push(with_pass_rule(result, self.case.pass_rule, check.weight));
                }
                None => {
                    let verdicts = judge_result.take_verdicts_of(&check.id);
                    // The parts of a check share its weight.
                    let weight = CheckWeight::new(check.weight.get() / verdicts.len().max(1) as f64);
                    let results =
                        verdicts.into_iter().map(|judge_verdict| judged_result(check, judge_verdict));
                    checks.extend(results.map(|result| {
                        with_pass_rule(result, self.case.pass_rule, weight.unwrap_or(check.weight))
                    }));
                }
            }
        }
        TrialGrades {
            verdict: self.verdict(seen, &checks),
            activated: self.was_activated(seen),
            skills: self.skill_use(seen),
            predicted: requested_prediction(self.case).map(|wanted| ActivationPrediction {
                chosen: judge_result.predicted_skills.take(),
                ..wanted
            }),
            checks,
            remarks: judge_result.remarks,
            notes: judge_result
                .notes
                .into_iter()
                .chain(judge_result.shortened.map(|part| part.describe()))
                .chain(self.unmatched_outputs(seen))
                .collect(),
            shortened: judge_result.shortened,
            judge_usage: None,
            judge_info: None,
        }
    }

    fn skill_use(&self, seen: &Observation) -> SkillUse {
        let about = match observed_activation(self.case) {
            Some(activation) => activation.skills.clone(),
            None => Vec::new(),
        };
        let names = self.skill_names();
        let own_name = |activated: &ActivatedSkill| {
            let full = activated.full_name();
            let known = if names.is_tested(&full) { &full } else { &activated.skill };
            names.own_name(known).to_owned()
        };
        let mut activated: Vec<String> = seen.activated.iter().map(own_name).collect();
        activated.sort_unstable();
        activated.dedup();
        SkillUse { about, activated, invoked: self.is_invoked(&self.skills_meant()) }
    }

    /// Says whether the user's prompt names one of these skills, so that the agent has nothing to decide.
    fn is_invoked(&self, skills: &[String]) -> bool {
        let names = self.skill_names();
        let is_meant = |name: &str| {
            names.is_tested(name) && skills.iter().any(|skill| names.own_name(skill) == names.own_name(name))
        };
        match &self.case.prompt {
            CasePrompt::SkillCommand { .. } => true,
            CasePrompt::Turns(turns) => {
                let bare = |name: &str| name.rsplit(':').next().is_some_and(is_meant);
                turns
                    .iter()
                    .flat_map(|turn| skills_named_in_prompt(turn))
                    .any(|name| is_meant(name) || bare(name))
            }
        }
    }

    /// Says whether the run can show that a skill was not activated. A skill that the user named may have been
    /// used without leaving a trace.
    fn can_tell_activation(&self, skills: &[String], seen: &Observation) -> bool {
        !self.is_invoked(skills)
            || checks::any_activated(skills, seen, &self.skill_names()) != ObservedActivation::No
    }

    fn prediction_input(&self) -> PredictionInput {
        let turns = match &self.case.prompt {
            CasePrompt::Turns(turns) => turns.clone(),
            CasePrompt::SkillCommand { args } => vec![args.clone()],
        };
        PredictionInput { skills: self.offered_skills.clone(), turns }
    }

    fn skill_names(&self) -> SkillNames {
        SkillNames::new(self.skills.clone())
    }

    fn verdict(&self, seen: &Observation, checks: &[CheckResult]) -> Verdict {
        let own: Vec<String> = self.suite.skills.iter().map(|skill| skill.name.clone()).collect();
        // The first name of each skill is the one in the agent's listing.
        let mut listed = HashSet::new();
        let first_names = self.skills.iter().filter(|(own, _)| listed.insert(own));
        let staged: Vec<String> = first_names.map(|(_, staged)| staged.clone()).collect();
        let model_failure = seen.mock_calls.as_deref().and_then(first_model_failure);
        match checks::arm_problem(self.arm, &staged, &own, seen) {
            Some(problem) if seen.ended.can_be_graded() => {
                Verdict::NotScored(NotScoredReason::InvalidArm(problem))
            }
            Some(_) | None => match TrialRecord::verdict_of(seen, checks, self.case.pass_rule) {
                // Neither a pass nor a fail shows anything, because a server of the case did not answer.
                Verdict::Pass | Verdict::Fail if model_failure.is_some() => {
                    let why = model_failure.unwrap_or_default().to_owned();
                    Verdict::NotScored(NotScoredReason::MockFailed(why))
                }
                // Checks of what must not occur pass where nothing occurred.
                Verdict::Pass if seen.shows_nothing() && needs_agent(&self.checks) => {
                    Verdict::NotScored(NotScoredReason::NothingDone)
                }
                // The world of the case was not complete, so the agent could not do what it would have done.
                Verdict::Pass => match seen.mock_calls.as_deref().and_then(first_unmocked) {
                    Some(call) => Verdict::NotScored(NotScoredReason::UnmockedCall(call)),
                    None => Verdict::Pass,
                },
                verdict => verdict,
            },
        }
    }

    /// Gives the skills that an activation check is about; `None` if the case has no such check.
    fn skills_asked(&self) -> Option<&[String]> {
        self.checks.iter().find_map(|check| match &check.kind {
            CheckKind::Activation(activation) => Some(activation.skills.as_slice()),
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
        })
    }

    /// Gives the skills that the case is about: those of its activation check, or else those under test.
    fn skills_meant(&self) -> Vec<String> {
        let tested = || self.suite.skills.iter().map(|skill| skill.name.clone()).collect();
        self.skills_asked().map_or_else(tested, <[String]>::to_vec)
    }

    /// Says whether the skill that the case is about was activated. A skill that was invoked by its command says
    /// nothing about activation, unless a check asks for it.
    fn was_activated(&self, seen: &Observation) -> Option<bool> {
        let by_command = matches!(self.case.prompt, CasePrompt::SkillCommand { .. });
        let nobody_asks = by_command && self.skills_asked().is_none();
        if nobody_asks || self.skills.is_empty() || !needs_agent(&self.checks) {
            return None;
        }
        let skills = self.skills_meant();
        match checks::any_activated(&skills, seen, &self.skill_names()) {
            ObservedActivation::Yes(_) => Some(true),
            // An agent that did nothing at all does not show that it would leave the skill alone.
            ObservedActivation::No if seen.shows_nothing() && !self.must_activate() => None,
            ObservedActivation::No if !self.is_invoked(&skills) => Some(false),
            ObservedActivation::No | ObservedActivation::Unknown(_) => None,
        }
    }

    fn must_activate(&self) -> bool {
        expected_activation(self.case) == Some(ActivationExpectation::Must)
    }
}

/// Gives a finding if the files that a judged check reads are missing, empty or not written by the agent. `None`
/// if there is something to judge. Checks with another target are not affected.
fn missing_text(
    check: &Check,
    scale: ScoreScale,
    seen: &Observation,
    workspace: &dyn WorkspaceView,
) -> Option<CheckFinding> {
    let found = match &check.target {
        CheckTarget::File(_) | CheckTarget::Files(_) => checks::texts_of_check(check, seen, workspace),
        CheckTarget::Pictures(globs) => match checks::written_files(seen, globs) {
            Ok(_) => return None,
            Err(finding) => Err(finding),
        },
        CheckTarget::Output | CheckTarget::LastTurn | CheckTarget::AllText | CheckTarget::WholeRun => {
            return None;
        }
    };
    let finding = match found {
        Ok(texts) if texts.iter().any(|checked| !checked.text.trim().is_empty()) => return None,
        Ok(_) => CheckFinding::new(false, format!("{} is empty", check.target.describe())),
        Err(finding) => finding,
    };
    let lowest = match scale {
        ScoreScale::PassFail => None,
        ScoreScale::OneToFive => Some(1.0),
        ScoreScale::Unit => Some(0.0),
    };
    let score = lowest.filter(|_| finding.verdict == Verdict::Fail);
    Some(CheckFinding { score, ..finding })
}

const INVOKED_NOTE: &str =
    "the prompt names the skill, and then the output may not show whether it was activated";

/// Finds the skills that a prompt names: `/name` at its beginning or `$name` anywhere. A name may have its plugin or
/// folders before it.
fn skills_named_in_prompt(prompt: &str) -> impl Iterator<Item = &str> {
    let words = prompt.split_whitespace().enumerate();
    let named = words.filter_map(|(at, word)| match at {
        0 => word.strip_prefix(['/', '$']),
        _ => word.strip_prefix('$'),
    });
    named.map(|name| name.trim_end_matches(['.', ',', '!', '?', ';'])).filter(|name| !name.is_empty())
}

/// Says whether any check needs a run of an agent. A prediction needs none.
pub(crate) fn needs_agent(checks: &[&Check]) -> bool {
    checks.is_empty() || checks.iter().any(|check| predicted_activation(check).is_none())
}

/// Makes the result of a check that cannot be answered.
pub fn unanswered(check: &Check, rule: PassRule, why: &NotScoredReason) -> CheckResult {
    let finding = CheckFinding::not_scored(why.clone());
    let result = judged_result(check, JudgeVerdict::new(&check.id, &check.id, finding));
    with_pass_rule(result, rule, check.weight)
}

/// Makes the stored result of one verdict on a check.
fn judged_result(check: &Check, judge_verdict: JudgeVerdict) -> CheckResult {
    let scale = match &check.kind {
        CheckKind::Judged(judged) => Some(judged.scale),
        CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    };
    // A check with several parts has a verdict for each part, with its own id.
    let name = check.name.clone().filter(|_| judge_verdict.id == check.id);
    CheckResult { name, ..verdict_to_result(check.need, scale, judge_verdict) }
}

fn verdict_to_result(need: CheckNeed, scale: Option<ScoreScale>, judge_verdict: JudgeVerdict) -> CheckResult {
    let JudgeVerdict { check: _, id, finding, weak, flags, votes } = judge_verdict;
    CheckResult {
        check: id,
        name: None,
        required: need == CheckNeed::Required,
        verdict: finding.verdict,
        score: finding.score,
        scale,
        rationale: finding.rationale,
        evidence: finding.evidence,
        weak,
        flags,
        votes,
        criteria: None,
        weight: None,
    }
}

/// Adds the thresholds or the weight with which the result counts, if checks of the case decide together.
fn with_pass_rule(result: CheckResult, rule: PassRule, weight: CheckWeight) -> CheckResult {
    if let PassRule::Score(rule) = rule {
        return CheckResult { weight: Some(ScoreWeight { weight, rule }), ..result };
    }
    let criteria = match rule {
        PassRule::JudgedThresholds { pass_rate, mean_score } if result.scale.is_some() => {
            Some(CriteriaThresholds { min_pass_rate: pass_rate, min_mean_score: mean_score })
        }
        PassRule::JudgedThresholds { .. }
        | PassRule::EveryRequiredCheck
        | PassRule::ActivationRate(_)
        | PassRule::Score(_)
        | PassRule::CountOnly => None,
    };
    CheckResult { criteria, ..result }
}

/// Gives the activation that a case expects, if any. Predictions are never counted together with observations.
pub fn expected_activation(case: &Case) -> Option<ActivationExpectation> {
    observed_activation(case).map(|activation| activation.expect)
}

/// Gives the prediction that a case asks for, if any, still without the answer.
pub(crate) fn requested_prediction(case: &Case) -> Option<ActivationPrediction> {
    let ActivationCheck { skills, expect, .. } = case.checks.iter().find_map(predicted_activation)?;
    Some(ActivationPrediction { expect: *expect, about: skills.clone(), chosen: None })
}

fn observed_activation(case: &Case) -> Option<&ActivationCheck> {
    case.checks.iter().find_map(|check| match &check.kind {
        CheckKind::Activation(activation) => {
            Some(activation).filter(|asked| asked.source == ActivationSource::Observed)
        }
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_that_the_user_names_is_recognised() {
        for (prompt, expected) in [
            ("/greeter Alice", &["greeter"][..]),
            ("  $greeter", &["greeter"]),
            ("/harbour:greeter now", &["harbour:greeter"]),
            ("Greet Alice with $greeter, then $waver.", &["greeter", "waver"]),
            ("Look into /greeter", &[]),
            ("/ nothing", &[]),
            ("greeter", &[]),
        ] {
            assert_eq!(skills_named_in_prompt(prompt).collect::<Vec<&str>>(), expected, "{prompt}");
        }
    }
}
