//! Skills that are read once, however many eval files and questions are about them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Skill, SkillError};

/// The skills that one command has read, by path. A clone shares them.
///
/// Eval files of one project often name the same skills, and each of many questions about a suite needs them. A cache
/// is made for one command and dropped with it, because a skill may be edited afterwards.
///
/// ```
/// use practicum_skills::skill::SkillCache;
///
/// let skills = SkillCache::default();
/// assert!(skills.read(std::path::Path::new("no/such/skill")).is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct SkillCache {
    by_path: Arc<Mutex<HashMap<PathBuf, SkillReading>>>,
}

/// What reading a skill gave.
type SkillReading = Result<Arc<Skill>, SkillError>;

impl SkillCache {
    /// Gives the skill at a path, as [`Skill::read`] does. Its files are read only the first time.
    pub fn read(&self, path: &Path) -> Result<Arc<Skill>, SkillError> {
        let mut by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_path.get(path) {
            return known.clone();
        }
        // The lock is not held while a file is read, so that other threads can read theirs.
        drop(by_path);
        let read = Skill::read(path).map(Arc::new);
        by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        by_path.entry(path.to_owned()).or_insert(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_read_once_and_so_is_a_missing_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let (skills, others) = (SkillCache::default(), SkillCache::default());
        assert!(matches!(skills.read(&path), Err(SkillError::Missing(_))));
        std::fs::create_dir(&path).expect("create");
        std::fs::write(path.join("SKILL.md"), "First.").expect("write");
        assert!(skills.clone().read(&path).is_err(), "a clone shares what was read");
        assert_eq!(others.read(&path).expect("a skill").body, "First.");
        std::fs::write(path.join("SKILL.md"), "Second.").expect("write");
        assert_eq!(others.read(&path).expect("a skill").body, "First.");
        assert_eq!(SkillCache::default().read(&path).expect("a skill").body, "Second.");
    }
}
