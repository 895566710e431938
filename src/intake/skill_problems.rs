//! What is wrong with the texts of a suite's skills, and what is done about it.

use crate::model::Suite;
use crate::skill::{Plugin, Skill, SkillError};

/// What is not valid in the frontmatter of a suite's skills and their rivals although agents read it: each
/// with file, line and what to do.
pub fn skill_warnings(suite: &Suite) -> Vec<String> {
    let paths = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.as_deref());
    paths.filter_map(|path| Skill::read(path).ok()).flat_map(|skill| skill.warnings).collect()
}

/// Takes the rivals out of a suite that cannot be staged, and says which and why. A rival is somebody
/// else's skill: that it is broken is no reason to measure nothing.
pub fn leave_out_unreadable_rivals(suite: &mut Suite) -> Vec<String> {
    let mut told = Vec::new();
    suite.rivals.retain(|rival| match rival.path.as_deref().map(Skill::read) {
        Some(Err(error)) => {
            told.push(format!("the skill {} is not staged beside the others: {error}", rival.name));
            false
        }
        Some(Ok(_)) | None => true,
    });
    told
}

/// Why skills under test and plugins cannot be staged, for skills that are there: each is told once, whole.
pub fn unreadable_skills(suite: &Suite) -> Vec<String> {
    let paths = suite.skills.iter().filter_map(|skill| skill.path.as_deref());
    let problems = paths.filter_map(|path| Skill::read(path).err());
    let problems = problems.filter(|problem| !matches!(problem, SkillError::Missing(_)));
    let plugins = suite.plugins.iter().filter_map(|root| Plugin::read(root).err());
    problems.map(|problem| problem.to_string()).chain(plugins.map(|problem| problem.to_string())).collect()
}
