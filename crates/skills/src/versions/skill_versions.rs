//! Snapshots of a skill: making, listing and restoring them.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::history::{GRADED_DESCRIPTION, SkillVersion, VersionHistory};
use super::versions_folder::{VersionsError, VersionsFolder};
use super::{SkillContents, VersionScore, atomic_files, skill_creator, swap};
use crate::git_ref;
use crate::skill::SkillForm;
use practicum_core::tree::read_regular;

/// The versions of one skill, kept in a folder beside it.
#[derive(Debug, Clone)]
pub struct SkillVersions {
    skill: PathBuf,
    folder: VersionsFolder,
}

/// The result of taking a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotResult {
    pub version: u32,
    /// `false` if an earlier version has the same content.
    pub is_new: bool,
}

/// The result of restoring a version.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoreResult {
    /// The version with the content that was there before.
    pub backup_version: u32,
    /// Whether that version was made for this purpose.
    pub backup_is_new: bool,
    /// `false` if the skill already had that content.
    pub changed: bool,
}

/// The versions of a skill: `versions --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "The versions of a skill (versions --json)")]
pub struct VersionListing {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    /// The folder of the versions.
    pub workspace: PathBuf,
    /// The number of the version that equals the skill. If none does, the number of the last version that was saved or
    /// restored. `None` if there is no version.
    pub current_version: Option<u32>,
    /// Whether the skill differs from every version.
    pub changed: bool,
    /// The number of the best version; `None` if none was tested.
    pub best: Option<u32>,
    pub versions: Vec<ListedVersion>,
}

/// A version in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedVersion {
    #[serde(flatten)]
    pub version: SkillVersion,
    /// The results of the version; `None` if it was not tested.
    pub score: Option<VersionScore>,
}

impl SkillVersions {
    pub fn for_skill(skill: &Path) -> Result<Self, VersionsError> {
        let contents = SkillContents::scan(skill)?;
        let skill = contents.skill_path();
        Ok(Self { folder: VersionsFolder::beside_skill(&skill), skill })
    }

    pub fn skill(&self) -> &Path {
        &self.skill
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn history(&self) -> Result<VersionHistory, VersionsError> {
        self.folder.history()
    }

    /// Gives a notice about keys in the history that this program does not know, if there are any.
    pub fn unknown_keys_notice(&self) -> Option<String> {
        let history = self.history().ok()?;
        let keys: Vec<String> = history.unknown_keys().into_iter().map(|key| format!("`{key}`")).collect();
        let keys = Some(keys).filter(|keys| !keys.is_empty())?.join(", ");
        Some(format!(
            "note: {}/history.json has keys that are unknown here and kept: {keys}",
            self.folder().display()
        ))
    }

    /// Takes a snapshot of the skill, unless a version has the same content.
    pub fn snapshot(&self, description: &str) -> Result<SnapshotResult, VersionsError> {
        let git_hash = git_ref::find_matching_commit(&self.skill);
        let _lock = self.folder.lock()?;
        let mut history = self.history()?;
        let taken =
            self.add_snapshot(&mut history, &SkillContents::scan(&self.skill)?, description, git_hash)?;
        history.current_version = taken.version;
        self.folder.write_history(&history)?;
        self.write_for_skill_creator()?;
        Ok(taken)
    }

    /// Takes a snapshot of another state of the skill, which was made elsewhere. The skill itself does not change.
    pub fn snapshot_from(&self, skill: &Path, description: &str) -> Result<SnapshotResult, VersionsError> {
        let _lock = self.folder.lock()?;
        let mut history = self.history()?;
        let taken = self.add_snapshot(&mut history, &SkillContents::scan(skill)?, description, None)?;
        self.folder.write_history(&history)?;
        Ok(taken)
    }

    fn add_snapshot(
        &self,
        history: &mut VersionHistory,
        contents: &SkillContents,
        description: &str,
        git_hash: Option<String>,
    ) -> Result<SnapshotResult, VersionsError> {
        let digest = contents.digest()?;
        let known = self.folder.find_version(history, &digest);
        let next = history.next_number();
        let known = known.and_then(|number| history.versions.iter_mut().find(|kept| kept.version == number));
        // A version that only a report kept has no real description. The first user who gives one replaces it.
        let is_named =
            |known: &SkillVersion| known.description != GRADED_DESCRIPTION || description.is_empty();
        if let Some(known) = &known
            && is_named(known)
            && self.folder.files_of(known).is_ok()
        {
            return Ok(SnapshotResult { version: known.version, is_new: false });
        }
        let (number, path) = match &known {
            Some(graded) => (graded.version, graded.path.clone()),
            None => {
                let number = self.folder.free_number(next, &digest);
                number
                    .and_then(|number| Some((number, SkillVersion::default_path(number)?)))
                    .ok_or(VersionsError::NoVersion(u32::MAX))?
            }
        };
        let version = SkillVersion {
            version: number,
            timestamp: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            description: description.to_owned(),
            git_hash,
            average_score: known.as_ref().and_then(|graded| graded.average_score),
            unknown: known.as_ref().map(|graded| graded.unknown.clone()).unwrap_or_default(),
            path,
        };
        self.folder.store_files(contents, &digest, &version)?;
        match known {
            Some(graded) => *graded = version,
            None => history.versions.push(version),
        }
        Ok(SnapshotResult { version: number, is_new: true })
    }

    /// Gives the version that the skill now has the content of, if there is one.
    pub fn current_version(&self) -> Result<Option<u32>, VersionsError> {
        Ok(self.folder.find_version(&self.history()?, &SkillContents::scan(&self.skill)?.digest()?))
    }

    /// Gives the path of a version's files: their folder, or the command file. A path in a history from elsewhere
    /// must not lead out of the versions folder.
    pub fn version_files(&self, number: u32) -> Result<PathBuf, VersionsError> {
        let history = self.history()?;
        self.folder.files_of(history.version(number).ok_or(VersionsError::NoVersion(number))?)
    }

    /// Restores a version of the skill. The present content is kept as a version first; evals stay as they are.
    pub fn restore(&self, number: u32) -> Result<RestoreResult, VersionsError> {
        let from = SkillContents::scan(&self.version_files(number)?)?;
        let kept = self.snapshot(&format!("as it was before v{number} was restored"))?;
        let _lock = self.folder.lock()?;
        let now = SkillContents::scan(&self.skill)?;
        let changed = now.digest()? != from.digest()?;
        if changed {
            self.replace_skill_files(&from, &now)?;
        }
        let mut history = self.history()?;
        history.current_version = number;
        self.folder.write_history(&history)?;
        Ok(RestoreResult { backup_version: kept.version, backup_is_new: kept.is_new, changed })
    }

    fn replace_skill_files(&self, from: &SkillContents, now: &SkillContents) -> Result<(), VersionsError> {
        if from.form() == SkillForm::Command {
            let bytes = read_regular(from.skill_path()).map_err(self.folder.io_error())?;
            return atomic_files::write_bytes(&self.skill, &bytes).map_err(self.folder.io_error());
        }
        let aside = self.folder.temp_folder()?;
        let new = aside.path().join("skill");
        let made = std::fs::create_dir(&new)
            .and_then(|()| std::fs::set_permissions(&new, std::fs::metadata(&self.skill)?.permissions()));
        made.map_err(self.folder.io_error())?;
        from.copy_to(&new)?;
        for other in now.other_files() {
            swap::hard_link_tree(&self.skill.join(other), &new.join(other))
                .map_err(self.folder.io_error())?;
        }
        swap::swap_folders(&new, &self.skill).map_err(self.folder.io_error())
    }

    /// Stores the score of a version with that version.
    pub fn record_score(&self, number: u32, score: &VersionScore) -> Result<(), VersionsError> {
        let _lock = self.folder.lock()?;
        let mut history = self.history()?;
        let version = history.versions.iter_mut().find(|version| version.version == number);
        let version = version.ok_or(VersionsError::NoVersion(number))?;
        version.average_score = score.average_score;
        self.folder.files_of(version)?;
        let place = self.folder.version_folder(version).ok_or(VersionsError::NoVersion(number))?;
        score.write(&place).map_err(self.folder.io_error())?;
        self.folder.write_history(&history)?;
        self.write_for_skill_creator()
    }

    /// Writes the history a second time, in skill-creator's format. It goes into a folder of its own, because the
    /// name `history.json` is taken.
    fn write_for_skill_creator(&self) -> Result<(), VersionsError> {
        let folder = self.folder().join("skill-creator");
        let document = skill_creator::history_document(&self.list()?);
        std::fs::create_dir_all(&folder)
            .and_then(|()| atomic_files::write_json(&folder.join("history.json"), &document))
            .map_err(self.folder.io_error())
    }

    pub fn score(&self, version: &SkillVersion) -> Option<VersionScore> {
        self.folder.files_of(version).ok()?;
        VersionScore::read(&self.folder.version_folder(version)?)
    }

    pub fn list(&self) -> Result<VersionListing, VersionsError> {
        let history = self.history()?;
        let holding = self.current_version()?;
        let versions: Vec<ListedVersion> = history
            .versions
            .iter()
            .map(|version| ListedVersion { version: version.clone(), score: self.score(version) })
            .collect();
        Ok(VersionListing {
            schema_version: 1,
            skill: self.skill.clone(),
            workspace: self.folder().to_owned(),
            // The files on the disk decide, because a user may have restored a version by hand.
            current_version: holding.or((!versions.is_empty()).then_some(history.current_version)),
            changed: holding.is_none(),
            best: best_version(&versions),
            versions,
        })
    }
}

/// Finds the measured version that ranks highest. Of equal ones the earlier wins, because a change must prove its
/// worth.
fn best_version(versions: &[ListedVersion]) -> Option<u32> {
    let mut best: Option<(&VersionScore, u32)> = None;
    for ListedVersion { version, score } in versions {
        let counts = |score: &&VersionScore| score.rejected.is_none() && score.is_measured();
        let Some(score) = score.as_ref().filter(counts) else { continue };
        if best.is_none_or(|(known, _)| score.compare_rank(known) == Ordering::Greater) {
            best = Some((score, version.version));
        }
    }
    best.map(|(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::SKILL_FILE;

    struct TestSkill {
        room: tempfile::TempDir,
        versions: SkillVersions,
    }

    impl TestSkill {
        fn new() -> Self {
            let room = tempfile::tempdir().expect("a folder");
            let skill = room.path().join("greeter");
            std::fs::create_dir_all(skill.join("evals")).expect("create");
            std::fs::write(skill.join("evals/evals.json"), "the answers").expect("write");
            std::fs::write(skill.join(SKILL_FILE), "one").expect("write");
            let versions = SkillVersions::for_skill(&skill).expect("a skill");
            Self { room, versions }
        }

        fn write(&self, path: &str, text: &str) {
            std::fs::write(self.room.path().join("greeter").join(path), text).expect("write");
        }

        fn read(&self, path: &str) -> Option<String> {
            std::fs::read_to_string(self.room.path().join("greeter").join(path)).ok()
        }
    }

    #[test]
    fn a_version_is_the_skill_without_its_evals_and_the_same_is_not_kept_twice() {
        let skill = TestSkill::new();
        assert_eq!(
            skill.versions.snapshot("baseline").expect("taken"),
            SnapshotResult { version: 0, is_new: true }
        );
        assert_eq!(
            skill.versions.snapshot("again").expect("taken"),
            SnapshotResult { version: 0, is_new: false }
        );
        skill.write(SKILL_FILE, "two");
        // The state after a kill between writing the files and the history.
        std::fs::create_dir_all(skill.versions.folder().join("v1/skill")).expect("create");
        std::fs::write(skill.versions.folder().join("v1/skill").join(SKILL_FILE), "two").expect("write");
        std::fs::create_dir(skill.versions.folder().join(".aside-x")).expect("create");
        assert_eq!(
            skill.versions.snapshot("better").expect("taken"),
            SnapshotResult { version: 1, is_new: true }
        );
        assert!(!skill.versions.folder().join(".aside-x").exists());
        let files = |number: u32| {
            let folder = skill.versions.version_files(number).expect("files");
            let mut names: Vec<String> = std::fs::read_dir(folder)
                .expect("a folder")
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        assert_eq!((files(0), files(1)), (vec![SKILL_FILE.to_owned()], vec![SKILL_FILE.to_owned()]));
        let history = skill.versions.history().expect("a history");
        assert_eq!(history.current_version, 1);
        let kept: Vec<(u32, &str, &str)> = history
            .versions
            .iter()
            .map(|kept| (kept.version, kept.description.as_str(), kept.path.as_str()))
            .collect();
        assert_eq!(kept, [(0, "baseline", "v0/skill"), (1, "better", "v1/skill")]);
    }

    #[test]
    fn a_version_that_the_history_does_not_list_is_not_taken_away() {
        let skill = TestSkill::new();
        for text in ["one", "two"] {
            skill.write(SKILL_FILE, text);
            skill.versions.snapshot(text).expect("taken");
        }
        let path = skill.versions.folder().join("history.json");
        let mut history = skill.versions.history().expect("a history");
        history.versions.pop();
        std::fs::write(&path, serde_json::to_vec(&history).expect("JSON")).expect("write");
        std::fs::create_dir(skill.versions.folder().join("v2")).expect("create");
        skill.write(SKILL_FILE, "three");
        assert_eq!(
            skill.versions.snapshot("three").expect("taken"),
            SnapshotResult { version: 2, is_new: true }
        );
        let kept = std::fs::read_to_string(skill.versions.folder().join("v1/skill").join(SKILL_FILE));
        assert_eq!(kept.expect("still there"), "two");
        skill.write(SKILL_FILE, "two");
        assert_eq!(
            skill.versions.snapshot("two").expect("taken"),
            SnapshotResult { version: 3, is_new: true }
        );
    }

    #[test]
    fn restoring_keeps_what_was_there_and_the_evals() {
        let skill = TestSkill::new();
        skill.versions.snapshot("baseline").expect("taken");
        skill.write(SKILL_FILE, "two");
        skill.write("new.md", "new");
        let restored = skill.versions.restore(0).expect("restored");
        assert_eq!(restored, RestoreResult { backup_version: 1, backup_is_new: true, changed: true });
        assert_eq!(skill.read(SKILL_FILE).as_deref(), Some("one"));
        assert_eq!(skill.read("new.md"), None);
        assert_eq!(skill.read("evals/evals.json").as_deref(), Some("the answers"));
        let restored = skill.versions.restore(1).expect("restored");
        assert_eq!(restored, RestoreResult { backup_version: 0, backup_is_new: false, changed: true });
        assert_eq!(skill.read("new.md").as_deref(), Some("new"));
        assert_eq!(skill.versions.history().expect("one").current_version, 1);
        assert!(!skill.versions.restore(1).expect("restored").changed);
        assert!(matches!(skill.versions.restore(7), Err(VersionsError::NoVersion(7))));
        let left: Vec<String> = std::fs::read_dir(skill.room.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with("greeter"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }

    #[test]
    fn a_history_cannot_lead_out_of_its_workspace() {
        let skill = TestSkill::new();
        skill.versions.snapshot("baseline").expect("taken");
        let path = skill.versions.folder().join("history.json");
        let text = std::fs::read_to_string(&path).expect("a history");
        std::fs::write(&path, text.replace("v0/skill", "../greeter")).expect("write");
        assert!(matches!(skill.versions.restore(0), Err(VersionsError::History(_))));
        std::fs::write(&path, text).expect("write");
        let place = skill.versions.folder().join("v0/skill");
        std::fs::remove_dir_all(&place).expect("removed");
        std::os::unix::fs::symlink(skill.room.path().join("greeter"), &place).expect("linked");
        assert!(matches!(skill.versions.restore(0), Err(VersionsError::FilesMissing { .. })));
    }

    #[test]
    fn a_score_belongs_to_its_own_version_and_of_equals_the_earlier_is_best() {
        let skill = TestSkill::new();
        for text in ["one", "two", "three", "four"] {
            skill.write(SKILL_FILE, text);
            skill.versions.snapshot(text).expect("taken");
        }
        let score = |rate: f64| VersionScore {
            pass_rate: Some(rate),
            average_score: Some(1.0 + 4.0 * rate),
            ..VersionScore::from_records("r", [])
        };
        skill.versions.record_score(1, &score(0.5)).expect("kept");
        skill.versions.record_score(2, &score(0.5)).expect("kept");
        let overfit = VersionScore { rejected: Some("held-out cases got worse".into()), ..score(1.0) };
        skill.versions.record_score(3, &overfit).expect("kept");
        let listed = skill.versions.list().expect("listed");
        assert_eq!((listed.best, listed.current_version, listed.changed), (Some(1), Some(3), false));
        let path = skill.versions.folder().join("skill-creator/history.json");
        let text = std::fs::read_to_string(path).expect("skill-creator's history");
        let history: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(history["current_best"], "v1");
        let iterations: Vec<(&str, &str, &str)> = history["iterations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|of| ["version", "parent", "grading_result"].map(|key| of[key].as_str().unwrap_or("none")))
            .map(|[version, parent, result]| (version, parent, result))
            .collect();
        let expected =
            [("v0", "none", "baseline"), ("v1", "v0", "none"), ("v2", "v1", "tie"), ("v3", "v1", "lost")];
        assert_eq!(iterations, expected);
        let averages: Vec<Option<f64>> =
            listed.versions.iter().map(|listed| listed.version.average_score).collect();
        assert_eq!(averages, [None, Some(3.0), Some(3.0), Some(5.0)]);
    }
}
