//! The history of graded versions in a folder of gradings.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::SkillContents;
use super::history::{GRADED_DESCRIPTION, SkillVersion, VersionHistory};
use super::versions_folder::{VersionsError, VersionsFolder, skill_in};
use crate::git_ref;
use practicum_core::model::Digest;

/// The state of a skill that a run graded.
#[derive(Debug, Clone)]
pub struct GradedSkill {
    /// The path of the skill. `None` if it is unknown.
    pub path: Option<PathBuf>,
    pub digest: Digest,
    /// The folder of a copy that the run kept, if it kept one.
    pub run_copy: Option<PathBuf>,
    /// The time at which the run began.
    pub run_started: String,
}

/// The history in a folder of gradings, locked while gradings are written.
#[derive(Debug)]
pub struct GradingHistory {
    folder: VersionsFolder,
    history: VersionHistory,
    _lock: File,
}

impl GradingHistory {
    pub fn open(folder: &Path) -> Result<Self, VersionsError> {
        let workspace = VersionsFolder::new(folder);
        let lock = workspace.lock()?;
        Ok(Self { history: workspace.history()?, folder: workspace, _lock: lock })
    }

    /// Gives the number of the version that was graded: one that this folder knows, else one that is kept beside
    /// the skill, else a new one. Stores its files if they are still available: in the skill, if it is unchanged;
    /// among the versions beside it; or in the run's copy. Otherwise the version is recognised by its digest.
    pub fn version_of(&mut self, skill: &GradedSkill) -> Result<u32, VersionsError> {
        let number = self.assign_number(skill)?;
        if let (Some(version), Some(contents)) = (self.history.version(number), find_graded_files(skill)) {
            self.folder.store_files(&contents, &skill.digest, version)?;
        }
        if skill.path.as_deref().is_some_and(|path| contents_with_digest(path, &skill.digest).is_some()) {
            self.history.current_version = number;
        }
        Ok(number)
    }

    fn assign_number(&mut self, skill: &GradedSkill) -> Result<u32, VersionsError> {
        if let Some(known) = self.folder.find_version(&self.history, &skill.digest) {
            return Ok(known);
        }
        let beside = skill.path.as_deref().map(VersionsFolder::beside_skill);
        let theirs = beside.as_ref().map(VersionsFolder::history).transpose()?.unwrap_or_default();
        let kept = beside.and_then(|beside| theirs.version(beside.find_version(&theirs, &skill.digest)?));
        let kept = kept.filter(|kept| self.can_be_number(kept.version));
        if let Some(kept) = kept
            && self.history.version(kept.version).is_some()
        {
            return Ok(kept.version);
        }
        let is_now = skill.path.as_deref().filter(|path| contents_with_digest(path, &skill.digest).is_some());
        let version = match kept {
            Some(kept) => SkillVersion { average_score: None, ..kept.clone() },
            None => {
                let least = self.history.next_number().max(theirs.next_number());
                let number = self.folder.free_number(least, &skill.digest);
                let number = number.ok_or(VersionsError::NoVersion(u32::MAX))?;
                let entry = new_version_entry(number, &skill.run_started)?;
                let description = match is_now {
                    Some(_) if number > 0 => GRADED_DESCRIPTION.to_owned(),
                    Some(_) | None => entry.description.clone(),
                };
                SkillVersion { git_hash: is_now.and_then(find_skill_commit), description, ..entry }
            }
        };
        self.folder.record_digest(&version, &skill.digest)?;
        if self.history.versions.is_empty() {
            self.history.current_version = version.version;
        }
        let number = version.version;
        // Earlier versions are listed too, because the current version is found by its position in the list.
        let before = theirs.versions.iter().filter(|before| before.version < number);
        let unlisted = before.filter(|before| self.history.version(before.version).is_none());
        let unlisted: Vec<SkillVersion> =
            unlisted.map(|before| SkillVersion { average_score: None, ..before.clone() }).collect();
        self.history.versions.extend(unlisted);
        self.history.versions.push(version);
        self.history.versions.sort_by_key(|version| version.version);
        Ok(number)
    }

    /// Says whether this number is free here for a version that is kept under it beside the skill.
    fn can_be_number(&self, number: u32) -> bool {
        let ours = self.history.version(number);
        ours.is_none_or(|ours| self.folder.digest_of(ours).is_none())
    }

    /// Stores the score of a version with that version.
    pub fn record_score(
        &mut self,
        number: u32,
        average: Option<f64>,
        when: &str,
    ) -> Result<(), VersionsError> {
        if self.history.version(number).is_none() {
            self.history.versions.push(new_version_entry(number, when)?);
            self.history.versions.sort_by_key(|version| version.version);
        }
        let of_it = self.history.versions.iter_mut().filter(|version| version.version == number);
        of_it.for_each(|version| version.average_score = average);
        Ok(())
    }

    pub fn close(self) -> Result<(), VersionsError> {
        self.folder.write_history(&self.history)
    }
}

/// Makes the entry of a version that was graded before it was kept.
fn new_version_entry(number: u32, when: &str) -> Result<SkillVersion, VersionsError> {
    Ok(SkillVersion {
        version: number,
        timestamp: when.to_owned(),
        description: if number == 0 { "baseline" } else { "graded, not kept" }.to_owned(),
        git_hash: None,
        path: SkillVersion::default_path(number).ok_or(VersionsError::NoVersion(number))?,
        average_score: None,
        unknown: serde_json::Map::new(),
    })
}

/// Gives a skill's files if they have this digest.
fn contents_with_digest(folder: &Path, wanted: &Digest) -> Option<SkillContents> {
    let contents = SkillContents::scan(folder).ok()?;
    contents.digest().is_ok_and(|digest| digest == *wanted).then_some(contents)
}

/// Finds the files that were graded: the skill's own, else those of a version beside it, else those that the run
/// kept.
fn find_graded_files(skill: &GradedSkill) -> Option<SkillContents> {
    let of_version = |path: &Path| {
        let beside = VersionsFolder::beside_skill(path);
        let history = beside.history().ok()?;
        let kept = history.version(beside.find_version(&history, &skill.digest)?)?;
        contents_with_digest(&beside.files_of(kept).ok()?, &skill.digest)
    };
    let now = skill
        .path
        .as_deref()
        .and_then(|path| contents_with_digest(path, &skill.digest).or_else(|| of_version(path)));
    now.or_else(|| contents_with_digest(&skill_in(skill.run_copy.as_deref()?), &skill.digest))
}

/// Finds the commit that contains the skill in its present state.
fn find_skill_commit(skill: &Path) -> Option<String> {
    git_ref::find_matching_commit(&SkillContents::scan(skill).ok()?.skill_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::SKILL_FILE;
    use crate::versions::SkillVersions;

    /// A folder may list other skills under the numbers that this skill's versions have beside it.
    #[test]
    fn one_number_is_never_given_to_two_skills() {
        let room = tempfile::tempdir().expect("a folder");
        let skill = room.path().join("gull");
        std::fs::create_dir(&skill).expect("create");
        std::fs::write(skill.join(SKILL_FILE), "one").expect("write");
        SkillVersions::for_skill(&skill).and_then(|versions| versions.snapshot("kept")).expect("taken");
        let digest = SkillContents::scan(&skill).and_then(|contents| contents.digest()).expect("a digest");
        let gull = GradedSkill {
            path: Some(skill),
            digest,
            run_copy: None,
            run_started: "2026-01-01T00:00:00Z".into(),
        };
        let other = GradedSkill { path: None, digest: Digest::of_bytes(b"other"), ..gull.clone() };

        let graded_in = |name: &str, before: &dyn Fn(&mut GradingHistory)| {
            let folder = room.path().join(name);
            let mut ledger = GradingHistory::open(&folder).expect("a history");
            before(&mut ledger);
            let number = ledger.version_of(&gull).expect("a number");
            assert_eq!(ledger.version_of(&gull).expect("known again"), number);
            ledger.close().expect("written");
            let history = VersionsFolder::new(&folder).history().expect("a history");
            (number, history.versions.into_iter().map(|version| version.description).collect::<Vec<_>>())
        };
        assert_eq!(graded_in("empty", &|_| ()), (0, vec!["kept".to_owned()]));
        let with_other = graded_in("other", &|ledger| {
            assert_eq!(ledger.version_of(&other).expect("a number"), 0);
        });
        assert_eq!(with_other, (1, vec!["baseline".to_owned(), "graded".to_owned()]));
        let untold = graded_in("untold", &|ledger| ledger.record_score(0, Some(3.0), "").expect("kept"));
        assert_eq!(untold, (0, vec!["baseline".to_owned()]), "nothing speaks against it");
    }
}
