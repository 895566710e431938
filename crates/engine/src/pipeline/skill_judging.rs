//! Asks judges about the texts of skills, independently of the trials.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Regrade, RunContext, active_suite_indexes};
use crate::grade::SuiteServices;
use crate::grade::grading::{JudgeAccess, SkillTextToJudge, judge_skill};
use crate::grade::judge::JudgeContext;
use crate::plan::{Plan, PlannedSuite};
use crate::workspace::run::CancelToken;
use practicum_agents::gateway::{PriceTable, ScopeKind};
use practicum_core::model::{AgentEnding, Digest, NotScoredReason, SkillJudgement, SkillRef, Suite};

/// Starts judging every skill with statements and without a judgement so far, while trials run.
pub fn start_judging_skills(context: &Arc<RunContext>) -> JoinSet<SkillJudgement> {
    let mut asking = JoinSet::new();
    if context.stop.is_stopping() {
        return asking;
    }
    for (index, skill) in judged_skills(&context.plan) {
        let (context, skill) = (Arc::clone(context), skill.clone());
        let suite = &context.plan.suites[index].suite;
        let text = SkillTextToJudge::read(&skill);
        let said = context.reusable.skills_judged.iter().rfind(|said| is_about_skill(said, suite, &skill));
        if said.is_some_and(|said| said.is_conclusive() && said.text == text.digest()) {
            continue;
        }
        asking.spawn(async move {
            let means = &context.suites[index];
            let question = SkillTextQuestion {
                suite: &context.plan.suites[index].suite,
                skill: &skill,
                services: means,
                skip_reason: context
                    .ledger
                    .describe_used_up()
                    .map(|_| NotScoredReason::Ended(AgentEnding::OverBudget)),
                run: context.run_dir.id(),
                cancel: &context.stop.cancel,
                prices: context.ledger.prices(),
            };
            question.ask(&text).await
        });
    }
    asking
}

impl Regrade {
    /// Judges the skills again if their texts are unchanged. For a skill that has changed since, the old judgement
    /// stays. A skill without an old judgement is left out, because its text at that time is unknown.
    pub(super) async fn judge_skills(&self) -> Vec<SkillJudgement> {
        let mut all = Vec::new();
        for (index, skill) in judged_skills(&self.plan) {
            let suite = &self.plan.suites[index].suite;
            let Some(then) = self.skills_judged.iter().rfind(|said| is_about_skill(said, suite, skill))
            else {
                continue;
            };
            let means = &self.suites[index];
            let text = SkillTextToJudge::read(skill);
            if text.digest() != then.text && means.judge.is_ok() {
                let note = "the skill has changed since it ran, and this was said of it as it was";
                all.push(SkillJudgement { notes: vec![note.to_owned()], judging: None, ..then.clone() });
                continue;
            }
            let question = SkillTextQuestion {
                suite,
                skill,
                services: means,
                skip_reason: None,
                run: self.run_dir.id(),
                cancel: &self.stop.cancel,
                prices: &self.prices,
            };
            all.push(question.ask(&text).await);
        }
        all
    }
}

/// Gives the skills of a plan whose texts are judged, each with the index of its suite.
fn judged_skills(plan: &Plan) -> impl Iterator<Item = (usize, &SkillRef)> {
    active_suite_indexes(plan).into_iter().flat_map(|index| {
        let PlannedSuite { suite, missing, .. } = &plan.suites[index];
        let can_be_read = missing.skills.is_empty();
        let skills = suite.skills.iter().filter(move |_| can_be_read && !suite.skill_statements.is_empty());
        skills.map(move |skill| (index, skill))
    })
}

fn is_about_skill(said: &SkillJudgement, suite: &Suite, skill: &SkillRef) -> bool {
    (&said.suite, &said.skill) == (&suite.name, &skill.name)
}

/// One skill, and the judge to ask about it.
struct SkillTextQuestion<'q> {
    suite: &'q Suite,
    skill: &'q SkillRef,
    services: &'q SuiteServices,
    /// The reason not to ask although there is a judge.
    skip_reason: Option<NotScoredReason>,
    run: &'q str,
    cancel: &'q CancelToken,
    prices: &'q PriceTable,
}

impl SkillTextQuestion<'_> {
    async fn ask(&self, text: &SkillTextToJudge) -> SkillJudgement {
        let digest = Digest::of_parts([self.suite.name.as_bytes(), self.skill.name.as_bytes()]);
        let address = || {
            let gateway = self.services.gateway.as_ref().map(|(gateway, _)| gateway);
            let name = format!("skill-{}", digest.short());
            gateway.map(|gateway| gateway.register(&name, ScopeKind::Judge, BTreeMap::new()))
        };
        let judge = match (&self.services.judge, &self.skip_reason) {
            _ if self.cancel.is_cancelled() => Err(NotScoredReason::Ended(AgentEnding::Cancelled)),
            (Err(why), _) => Err(NotScoredReason::NotJudged(why.clone())),
            (Ok(_), Some(why)) => Err(why.clone()),
            (Ok(judge), None) => Ok(judge.as_ref()),
        };
        let marker = format!("{}@{}", digest.short(), self.run);
        let sitting = JudgeContext { marker: &marker, cancel: self.cancel };
        let (gateway, prices) = (self.services.gateway_name(), self.services.prices(self.prices));
        let jury =
            JudgeAccess { judge, context: sitting, open_scope: &address, gateway_name: gateway, prices };
        judge_skill(self.suite, self.skill, text, &jury).await
    }
}
