//! What each run of a version got, in the files that writing-skills documents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::files;
use practicum_core::model::{SkillJudged, TYPE_ALIGNMENT, TrialRecord};
use practicum_results::report::{Grading, free};
use practicum_skills::lint::{Draft, convention_compliance};
use practicum_skills::skill::SKILL_FILE;

/// Writes `grading/<case>_v<version>_run<run>.json` for the runs that have scores from 1 to 5. Each comes
/// with the folder that it left. What a judge said of the skill itself is the same for all of them.
pub fn write<'r>(
    workspace: &Path,
    version: u32,
    skill: &Path,
    said: &[SkillJudged],
    trials: impl IntoIterator<Item = (&'r TrialRecord, PathBuf)>,
) -> std::io::Result<()> {
    let file = if skill.is_file() { skill.to_owned() } else { skill.join(SKILL_FILE) };
    let conventions = convention_compliance(&Draft::read(&file));
    let folder = workspace.join("grading");
    let mut names = BTreeSet::new();
    for (record, left) in trials {
        let said = said.iter().rfind(|said| said.suite == record.suite);
        let conventions = conventions.clone().judged(said.and_then(|said| said.check(TYPE_ALIGNMENT)));
        let Some(grading) = Grading::of(record, version, &conventions) else { continue };
        let grading = grading.measured_in(&left);
        std::fs::create_dir_all(&folder)?;
        files::write_json(
            &folder.join(format!("{}.json", free(&grading.file_stem(), &mut names))),
            &grading,
        )?;
    }
    Ok(())
}
