use std::fs::File;
use std::path::{Path, PathBuf};

use super::Contents;
use super::history::{GRADED, History, Version};
use super::workspace::{VersionsError, Workspace, skill_in};
use crate::git_ref;
use practicum_core::model::Digest;

/// A skill as a run found it.
#[derive(Debug, Clone)]
pub struct GradedSkill {
    /// Where it lies. `None` if nothing says.
    pub path: Option<PathBuf>,
    pub digest: Digest,
    /// The folder in which the run kept a copy of it. There may be none.
    pub kept: Option<PathBuf>,
    /// When the run began.
    pub when: String,
}

/// The history in a folder of gradings, while they are written.
#[derive(Debug)]
pub struct Ledger {
    workspace: Workspace,
    history: History,
    _lock: File,
}

impl Ledger {
    pub fn open(folder: &Path) -> Result<Self, VersionsError> {
        let workspace = Workspace::at(folder);
        let lock = workspace.lock()?;
        Ok(Self { history: workspace.history()?, workspace, _lock: lock })
    }

    /// The version that was graded: one that this folder knows, else one that is kept beside the skill, else
    /// a new one. Its files are kept where they can still be had: the skill is as it was graded, its own workspace
    /// keeps that version, or the run does. Else it is known again by its digest.
    pub fn version_of(&mut self, skill: &GradedSkill) -> Result<u32, VersionsError> {
        let number = self.number_of(skill)?;
        if let (Some(version), Some(contents)) = (self.history.version(number), files_of(skill)) {
            self.workspace.put_away(&contents, &skill.digest, version)?;
        }
        if skill.path.as_deref().is_some_and(|path| holds(path, &skill.digest).is_some()) {
            self.history.current_version = number;
        }
        Ok(number)
    }

    fn number_of(&mut self, skill: &GradedSkill) -> Result<u32, VersionsError> {
        if let Some(known) = self.workspace.find(&self.history, &skill.digest) {
            return Ok(known);
        }
        let beside = skill.path.as_deref().map(Workspace::of);
        let theirs = beside.as_ref().map(Workspace::history).transpose()?.unwrap_or_default();
        let kept = beside.and_then(|beside| theirs.version(beside.find(&theirs, &skill.digest)?));
        let kept = kept.filter(|kept| self.may_be(kept.version));
        if let Some(kept) = kept
            && self.history.version(kept.version).is_some()
        {
            return Ok(kept.version);
        }
        let is_now = skill.path.as_deref().filter(|path| holds(path, &skill.digest).is_some());
        let version = match kept {
            Some(kept) => Version { average_score: None, ..kept.clone() },
            None => {
                let least = self.history.next_number().max(theirs.next_number());
                let number = self.workspace.free_number(least, &skill.digest);
                let number = number.ok_or(VersionsError::NoVersion(u32::MAX))?;
                let entry = entry(number, &skill.when)?;
                let description = match is_now {
                    Some(_) if number > 0 => GRADED.to_owned(),
                    Some(_) | None => entry.description.clone(),
                };
                Version { git_hash: is_now.and_then(commit_of), description, ..entry }
            }
        };
        self.workspace.note(&version, &skill.digest)?;
        if self.history.versions.is_empty() {
            self.history.current_version = version.version;
        }
        let number = version.version;
        // The versions before it are listed with it, because the current version is found by its place.
        let before = theirs.versions.iter().filter(|before| before.version < number);
        let unlisted = before.filter(|before| self.history.version(before.version).is_none());
        let unlisted: Vec<Version> =
            unlisted.map(|before| Version { average_score: None, ..before.clone() }).collect();
        self.history.versions.extend(unlisted);
        self.history.versions.push(version);
        self.history.versions.sort_by_key(|version| version.version);
        Ok(number)
    }

    /// Whether nothing speaks against this number's being a version that others keep under it.
    fn may_be(&self, number: u32) -> bool {
        let ours = self.history.version(number);
        ours.is_none_or(|ours| self.workspace.digest_of(ours).is_none())
    }

    /// Writes down what a version got, on that version.
    pub fn keep_score(&mut self, number: u32, average: Option<f64>, when: &str) -> Result<(), VersionsError> {
        if self.history.version(number).is_none() {
            self.history.versions.push(entry(number, when)?);
            self.history.versions.sort_by_key(|version| version.version);
        }
        let of_it = self.history.versions.iter_mut().filter(|version| version.version == number);
        of_it.for_each(|version| version.average_score = average);
        Ok(())
    }

    pub fn close(self) -> Result<(), VersionsError> {
        self.workspace.write(&self.history)
    }
}

/// A version that was graded before anyone kept it.
fn entry(number: u32, when: &str) -> Result<Version, VersionsError> {
    Ok(Version {
        version: number,
        timestamp: when.to_owned(),
        description: if number == 0 { "baseline" } else { "graded, not kept" }.to_owned(),
        git_hash: None,
        path: Version::usual_path(number).ok_or(VersionsError::NoVersion(number))?,
        average_score: None,
        unknown: serde_json::Map::new(),
    })
}

/// A skill's files, if they are those that this digest is of.
fn holds(folder: &Path, wanted: &Digest) -> Option<Contents> {
    let contents = Contents::of(folder).ok()?;
    contents.digest().is_ok_and(|digest| digest == *wanted).then_some(contents)
}

/// The files that were graded: the skill's own, else those of a version beside it, else those that the run kept.
fn files_of(skill: &GradedSkill) -> Option<Contents> {
    let of_version = |path: &Path| {
        let beside = Workspace::of(path);
        let history = beside.history().ok()?;
        let kept = history.version(beside.find(&history, &skill.digest)?)?;
        holds(&beside.files_of(kept).ok()?, &skill.digest)
    };
    let now = skill.path.as_deref().and_then(|path| holds(path, &skill.digest).or_else(|| of_version(path)));
    now.or_else(|| holds(&skill_in(skill.kept.as_deref()?), &skill.digest))
}

/// The commit that holds a skill as it is.
fn commit_of(skill: &Path) -> Option<String> {
    git_ref::commit_of(&Contents::of(skill).ok()?.skill())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::SKILL_FILE;
    use crate::versions::Versions;

    /// A folder may know other skills by the numbers that this one's versions have beside it.
    #[test]
    fn one_number_is_never_given_to_two_skills() {
        let room = tempfile::tempdir().expect("a folder");
        let skill = room.path().join("gull");
        std::fs::create_dir(&skill).expect("create");
        std::fs::write(skill.join(SKILL_FILE), "one").expect("write");
        Versions::of(&skill).and_then(|versions| versions.snapshot("kept")).expect("taken");
        let digest = Contents::of(&skill).and_then(|contents| contents.digest()).expect("a digest");
        let gull = GradedSkill { path: Some(skill), digest, kept: None, when: "2026-01-01T00:00:00Z".into() };
        let other = GradedSkill { path: None, digest: Digest::of(b"other"), ..gull.clone() };

        let graded_in = |name: &str, before: &dyn Fn(&mut Ledger)| {
            let folder = room.path().join(name);
            let mut ledger = Ledger::open(&folder).expect("a history");
            before(&mut ledger);
            let number = ledger.version_of(&gull).expect("a number");
            assert_eq!(ledger.version_of(&gull).expect("known again"), number);
            ledger.close().expect("written");
            let history = Workspace::at(&folder).history().expect("a history");
            (number, history.versions.into_iter().map(|version| version.description).collect::<Vec<_>>())
        };
        assert_eq!(graded_in("empty", &|_| ()), (0, vec!["kept".to_owned()]));
        let with_other = graded_in("other", &|ledger| {
            assert_eq!(ledger.version_of(&other).expect("a number"), 0);
        });
        assert_eq!(with_other, (1, vec!["baseline".to_owned(), "graded".to_owned()]));
        let untold = graded_in("untold", &|ledger| ledger.keep_score(0, Some(3.0), "").expect("kept"));
        assert_eq!(untold, (0, vec!["baseline".to_owned()]), "nothing speaks against it");
    }
}
