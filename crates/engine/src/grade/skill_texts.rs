//! Reads the texts of skills, so that they are recognised in what a model received.

use crate::plan::PlannedSuite;
use practicum_agents::agents::SkillTextLines;
use practicum_core::model::Arm;
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
