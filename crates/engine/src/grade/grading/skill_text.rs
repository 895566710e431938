//! Judges the statements that a suite makes about the texts of its skills.

use super::{JudgeAccess, verdict_to_result};
use crate::grade::judge::{JudgeResult, JudgeVerdict, StatementQuestion};
use practicum_core::model::{
    CheckFinding, CheckNeed, Digest, NotScoredReason, ScoreScale, SkillJudgement, SkillRef, Suite,
};
use practicum_core::tree::read_regular_text;
use practicum_skills::skill::Skill;

/// The text of a skill to judge (its SKILL.md or command file), or the reason why it cannot be read.
pub struct SkillTextToJudge(Result<String, String>);

impl SkillTextToJudge {
    pub fn read(skill: &SkillRef) -> Self {
        let path =
            skill.path.as_ref().ok_or_else(|| format!("the folder of skill {} is unknown", skill.name));
        let file = path.and_then(|path| Skill::read(path).map_err(|error| error.to_string()));
        let text = file.map(|skill| skill.file).and_then(|file| {
            read_regular_text(&file).map_err(|error| format!("{} cannot be read: {error}", file.display()))
        });
        Self(text)
    }

    pub fn digest(&self) -> Option<Digest> {
        self.0.as_ref().ok().map(|text| Digest::of_bytes(text.as_bytes()))
    }
}

/// Has one skill judged. The result has a verdict for every statement, scored or not.
pub(crate) async fn judge_skill(
    suite: &Suite,
    skill: &SkillRef,
    text: &SkillTextToJudge,
    jury: &JudgeAccess<'_>,
) -> SkillJudgement {
    let statements: Vec<StatementQuestion<'_>> = suite
        .skill_statements
        .iter()
        .map(|about| StatementQuestion { id: &about.id, statement: &about.judged })
        .collect();
    let judge_result = match (&jury.judge, &text.0) {
        (Err(why), _) => unanswered(&statements, why),
        (Ok(_), Err(why)) => unanswered(&statements, &NotScoredReason::CheckFailed(why.clone())),
        (Ok(judge), Ok(text)) => match (jury.open_scope)() {
            None => judge.judge_skill_text(&statements, text, &jury.context).await,
            Some(scope) => {
                let judge = judge.at_address(|api| scope.base_url_for(api));
                let mut judge_result = judge.judge_skill_text(&statements, text, &jury.context).await;
                judge_result.notes.extend(jury.gateway_notes(&scope));
                judge_result
            }
        },
    };
    let scale = |judge_verdict: &JudgeVerdict| -> Option<ScoreScale> {
        suite
            .skill_statements
            .iter()
            .find(|about| about.id == judge_verdict.id)
            .map(|about| about.judged.scale)
    };
    SkillJudgement {
        suite: suite.name.clone(),
        skill: skill.name.clone(),
        text: text.digest(),
        judging: jury.judge_usage(judge_result.usage),
        checks: judge_result
            .verdicts
            .into_iter()
            .map(|judge_verdict| verdict_to_result(CheckNeed::Advisory, scale(&judge_verdict), judge_verdict))
            .collect(),
        notes: judge_result
            .notes
            .into_iter()
            .chain(judge_result.shortened.map(|part| part.describe()))
            .collect(),
    }
}

fn unanswered(statements: &[StatementQuestion<'_>], why: &NotScoredReason) -> JudgeResult {
    let unscored = |about: &StatementQuestion<'_>| {
        JudgeVerdict::new(about.id, about.id, CheckFinding::not_scored(why.clone()))
    };
    JudgeResult { verdicts: statements.iter().map(unscored).collect(), ..JudgeResult::default() }
}
