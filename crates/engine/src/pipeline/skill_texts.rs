//! Finds out whether the texts of the skills reached the model of a trial.

use std::path::Path;

use practicum_agents::agents::{
    DecoderKind, SessionRecord, SkillTextLines, SkillTextWatch, TextSource, read_session_files, text_findings,
};
use practicum_core::model::{Observation, SkillTextFinding, Step, TextReached};

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
