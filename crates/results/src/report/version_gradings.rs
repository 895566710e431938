//! Writes the grading files of a version, in the form that writing-skills documents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::grading::GradingDocument;
use super::writing_skills::unused_name;
use practicum_core::model::{SkillJudgement, TYPE_ALIGNMENT_ID, TrialRecord};
use practicum_skills::lint::{SkillFileDraft, convention_compliance};
use practicum_skills::skill::SKILL_FILE;
use practicum_skills::versions::atomic_files;

/// Writes `grading/<case>_v<version>_run<run>.json` for the trials that have scores from 1 to 5. Each trial comes
/// with the folder of its files. A judge's statements about the skill itself are the same in all of them.
pub fn write_version_gradings<'r>(
    workspace: &Path,
    version: u32,
    skill: &Path,
    said: &[SkillJudgement],
    trials: impl IntoIterator<Item = (&'r TrialRecord, PathBuf)>,
) -> std::io::Result<()> {
    let file = if skill.is_file() { skill.to_owned() } else { skill.join(SKILL_FILE) };
    let conventions = convention_compliance(&SkillFileDraft::read(&file));
    let folder = workspace.join("grading");
    let mut names = BTreeSet::new();
    for (record, left) in trials {
        let said = said.iter().rfind(|said| said.suite == record.suite);
        let conventions =
            conventions.clone().with_judge_answer(said.and_then(|said| said.check(TYPE_ALIGNMENT_ID)));
        let Some(grading) = GradingDocument::from_record(record, version, &conventions) else { continue };
        let grading = grading.with_agent_files(&left);
        std::fs::create_dir_all(&folder)?;
        atomic_files::write_json(
            &folder.join(format!("{}.json", unused_name(&grading.file_stem(), &mut names))),
            &grading,
        )?;
    }
    Ok(())
}
