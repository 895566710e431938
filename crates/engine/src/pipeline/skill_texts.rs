//! Finds out whether the texts of the skills reached the model of a trial.

use std::path::Path;

use crate::plan::PlannedSuite;
use practicum_agents::agents::{
    DecoderKind, SessionRecord, SkillTextLines, SkillTextWatch, TextSource, read_session_files, text_findings,
};
use practicum_core::model::{Arm, Observation, SkillTextFinding, Step, TextReached};
use practicum_skills::skill::{Skill, name_from_path};

/// Reads the texts of the skills under test and of their rivals. `names` are pairs of a skill's own name and a name
/// in the workspace. In the arm without the skill, its text is looked for under its own names.
pub fn staged_skill_texts(
    planned: &PlannedSuite,
    arm: Arm,
    names: &[(String, String)],
) -> Vec<SkillTextLines> {
    let suite = &planned.suite;
    let is_rival = |name: &str| suite.skills.iter().all(|skill| skill.name != name);
    let rivals = suite.rivals.iter().filter(|rival| is_rival(&rival.name));
    let texts = suite.skills.iter().chain(rivals).filter_map(|skill| {
        let read = Skill::read(skill.path.as_ref()?).ok()?;
        let mut known: Vec<String> =
            names.iter().filter(|(own, _)| *own == skill.name).map(|(_, staged)| staged.clone()).collect();
        if known.is_empty() || arm == Arm::WithoutSkill {
            known = vec![skill.name.clone(), read.name.clone(), name_from_path(&read.file, read.form)];
            known.dedup();
        }
        Some(SkillTextLines::new(known, &read))
    });
    texts.collect()
}

/// Decides for each skill whether its text reached the model: by the requests if a gateway has them, or else by
/// the agent's session files, or else by the results of the tool calls in its stream.
pub fn find_skill_texts(
    skills: &[SkillTextLines],
    seen: &Observation,
    recorded: Option<Vec<SkillTextFinding>>,
    decoder: &DecoderKind,
    home: &Path,
) -> Vec<SkillTextFinding> {
    if recorded.is_some() {
        return text_findings(skills, &seen.steps, recorded);
    }
    match read_session_files(decoder, home) {
        SessionRecord::NotKept => text_findings(skills, &seen.steps, None),
        SessionRecord::Conversations(conversations) => {
            let mut watch = SkillTextWatch::new(skills.to_vec());
            for step in &seen.steps {
                if let Step::User(prompt) = step {
                    watch.read_text(prompt, TextSource::Written);
                }
            }
            conversations.iter().for_each(|conversation| watch.read_request(conversation));
            text_findings(skills, &seen.steps, Some(watch.findings("a session of the agent")))
        }
        // Without the files, a subagent may have done anything.
        SessionRecord::Missing(why) => {
            let mut findings = text_findings(skills, &seen.steps, None);
            for finding in findings.iter_mut().filter(|finding| finding.reached == TextReached::NotInStream) {
                finding.reached = TextReached::Unknown { why: format!("a subagent may have read it: {why}") };
            }
            findings
        }
    }
}
