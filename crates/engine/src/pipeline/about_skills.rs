//! What judges say of the texts of skills, beside what comes of running them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Again, Exam, SuiteMeans, asked_at};
use crate::judge::Sitting;
use crate::marking::{Jury, SkillText, judge_skill};
use crate::plan::{Plan, Planned};
use crate::run::Cancel;
use practicum_agents::gateway::{Prices, ScopeKind};
use practicum_core::model::{Digest, Ended, SkillJudged, SkillRef, Suite, Why};

/// Asks about every skill that something is to be said of and was not yet, while others are at work.
pub fn ask(exam: &Arc<Exam>) -> JoinSet<SkillJudged> {
    let mut asking = JoinSet::new();
    if exam.stop.is_stopping() {
        return asking;
    }
    for (index, skill) in judged_in(&exam.plan) {
        let (exam, skill) = (Arc::clone(exam), skill.clone());
        let suite = &exam.plan.suites[index].suite;
        let text = SkillText::read(&skill);
        let said = exam.prior.skills_judged.iter().rfind(|said| is_about(said, suite, &skill));
        if said.is_some_and(|said| said.is_conclusive() && said.text == text.digest()) {
            continue;
        }
        asking.spawn(async move {
            let means = &exam.suites[index];
            let question = Question {
                suite: &exam.plan.suites[index].suite,
                skill: &skill,
                means,
                unasked: exam.ledger.used_up().map(|_| Why::Ended(Ended::OverBudget)),
                run: exam.run_dir.id(),
                cancel: &exam.stop.now,
                prices: exam.ledger.prices(),
            };
            question.put(&text).await
        });
    }
    asking
}

impl Again {
    /// What is said today of the skills as they were. Of one that has changed since, what was said then
    /// still holds; of one that nothing was asked about, nobody knows what it was like.
    pub(super) async fn judge_skills(&self) -> Vec<SkillJudged> {
        let mut all = Vec::new();
        for (index, skill) in judged_in(&self.plan) {
            let suite = &self.plan.suites[index].suite;
            let Some(then) = self.skills_judged.iter().rfind(|said| is_about(said, suite, skill)) else {
                continue;
            };
            let means = &self.suites[index];
            let text = SkillText::read(skill);
            if text.digest() != then.text && means.judge.is_ok() {
                let note = "the skill has changed since it ran, and this was said of it as it was";
                all.push(SkillJudged { notes: vec![note.to_owned()], judging: None, ..then.clone() });
                continue;
            }
            let question = Question {
                suite,
                skill,
                means,
                unasked: None,
                run: self.run_dir.id(),
                cancel: &self.stop.now,
                prices: &self.prices,
            };
            all.push(question.put(&text).await);
        }
        all
    }
}

/// The skills of a plan whose texts are judged, each with where its suite stands there.
fn judged_in(plan: &Plan) -> impl Iterator<Item = (usize, &SkillRef)> {
    asked_at(plan).into_iter().flat_map(|index| {
        let Planned { suite, missing, .. } = &plan.suites[index];
        let can_be_read = missing.skills.is_empty();
        let skills = suite.skills.iter().filter(move |_| can_be_read && !suite.about_skill.is_empty());
        skills.map(move |skill| (index, skill))
    })
}

fn is_about(said: &SkillJudged, suite: &Suite, skill: &SkillRef) -> bool {
    (&said.suite, &said.skill) == (&suite.name, &skill.name)
}

/// One skill, and who may be asked about it.
struct Question<'q> {
    suite: &'q Suite,
    skill: &'q SkillRef,
    means: &'q SuiteMeans,
    /// Why nobody is, though somebody could be.
    unasked: Option<Why>,
    run: &'q str,
    cancel: &'q Cancel,
    prices: &'q Prices,
}

impl Question<'_> {
    async fn put(&self, text: &SkillText) -> SkillJudged {
        let digest = Digest::of_parts([self.suite.name.as_bytes(), self.skill.name.as_bytes()]);
        let address = || {
            let gateway = self.means.gateway.as_ref().map(|(gateway, _)| gateway);
            let name = format!("skill-{}", digest.short());
            gateway.map(|gateway| gateway.register(&name, ScopeKind::Judge, BTreeMap::new()))
        };
        let judge = match (&self.means.judge, &self.unasked) {
            _ if self.cancel.is_cancelled() => Err(Why::Ended(Ended::Cancelled)),
            (Err(why), _) => Err(Why::NotJudged(why.clone())),
            (Ok(_), Some(why)) => Err(why.clone()),
            (Ok(judge), None) => Ok(judge.as_ref()),
        };
        let marker = format!("{}@{}", digest.short(), self.run);
        let sitting = Sitting { marker: &marker, cancel: self.cancel };
        let (gateway, prices) = (self.means.stand_name(), self.means.prices(self.prices));
        let jury = Jury { judge, sitting, address: &address, gateway, prices };
        judge_skill(self.suite, self.skill, text, &jury).await
    }
}
