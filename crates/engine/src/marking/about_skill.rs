//! What a suite has judged of the texts of its skills.

use super::{Jury, found};
use crate::judge::{Mark, Marks, Statement};
use practicum_core::model::{Digest, Finding, Need, Scale, SkillJudged, SkillRef, Suite, Why};
use practicum_skills::skill::Skill;

/// The text of a skill that is judged: its SKILL.md or command file, or why that cannot be had.
pub struct SkillText(Result<String, String>);

impl SkillText {
    pub fn read(skill: &SkillRef) -> Self {
        let path = skill.path.as_ref().ok_or_else(|| format!("nobody knows where skill {} is", skill.name));
        let file = path.and_then(|path| Skill::read(path).map_err(|error| error.to_string()));
        let text = file.map(|skill| skill.file).and_then(|file| {
            std::fs::read_to_string(&file)
                .map_err(|error| format!("{} cannot be read: {error}", file.display()))
        });
        Self(text)
    }

    pub fn digest(&self) -> Option<Digest> {
        self.0.as_ref().ok().map(|text| Digest::of(text.as_bytes()))
    }
}

/// Asks about one skill. Everything that was to be said of it is in the answer, scored or not.
pub async fn judge_skill(suite: &Suite, skill: &SkillRef, text: &SkillText, jury: &Jury<'_>) -> SkillJudged {
    let statements: Vec<Statement<'_>> =
        suite.about_skill.iter().map(|about| Statement { id: &about.id, judged: &about.judged }).collect();
    let marks = match (&jury.judge, &text.0) {
        (Err(why), _) => unanswered(&statements, why),
        (Ok(_), Err(why)) => unanswered(&statements, &Why::CheckFailed(why.clone())),
        (Ok(judge), Ok(text)) => match (jury.address)() {
            None => judge.mark_skill(&statements, text, &jury.sitting).await,
            Some(scope) => {
                let judge = judge.at(|api| scope.base_url_for(api));
                let mut marks = judge.mark_skill(&statements, text, &jury.sitting).await;
                marks.notes.extend(jury.told_by(&scope));
                marks
            }
        },
    };
    let scale = |mark: &Mark| -> Option<Scale> {
        suite.about_skill.iter().find(|about| about.id == mark.id).map(|about| about.judged.scale)
    };
    SkillJudged {
        suite: suite.name.clone(),
        skill: skill.name.clone(),
        text: text.digest(),
        judging: jury.bill(marks.usage),
        checks: marks.marks.into_iter().map(|mark| found(Need::Advisory, scale(&mark), mark)).collect(),
        notes: marks.notes.into_iter().chain(marks.shortened.map(|part| part.in_words())).collect(),
    }
}

fn unanswered(statements: &[Statement<'_>], why: &Why) -> Marks {
    let unscored = |about: &Statement<'_>| Mark::new(about.id, about.id, Finding::not_scored(why.clone()));
    Marks { marks: statements.iter().map(unscored).collect(), ..Marks::default() }
}
