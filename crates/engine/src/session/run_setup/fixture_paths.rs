//! The files that evals put into workspaces. They may look like eval files, but are not run as evals.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use practicum_evals::dialects::LoadedFile;

/// Fixtures and overlays, each with the eval files that give it to agents.
#[derive(Debug, Default)]
pub struct FixturePaths(HashMap<PathBuf, Vec<PathBuf>>);

impl FixturePaths {
    pub fn from_files(files: &[LoadedFile]) -> Self {
        let mut given: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
        for suite in files.iter().filter_map(|file| file.lowered.suite.as_ref()) {
            let rooms = suite.cases.iter().map(|case| &case.workspace);
            let paths =
                rooms.flat_map(|room| room.files.iter().map(|file| &file.source).chain(&room.overlays));
            for path in paths.collect::<BTreeSet<_>>() {
                given.entry(path.clone()).or_default().push(suite.origin.path.clone());
            }
        }
        Self(given)
    }

    /// Says whether a file is a fixture or is inside one. An eval file that gives away the folder it is in does
    /// not count, because the evals in that folder are real ones.
    pub fn has(&self, file: &Path) -> bool {
        file.ancestors().any(|above| {
            self.0.get(above).is_some_and(|givers| givers.iter().any(|giver| !giver.starts_with(above)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_not_read_as_evals() {
        let given = FixturePaths(HashMap::from([
            ("/p/evals/s/setup".into(), vec!["/p/evals/s/evals.json".into()]),
            ("/p/evals/s/files/a.yaml".into(), vec!["/p/evals/s/evals.json".into()]),
            ("/p/own".into(), vec!["/p/own/evals.json".into()]),
        ]));
        for (file, expected) in [
            ("/p/evals/s/setup/.claude/skills/d/evals/evals.json", true),
            ("/p/evals/s/files/a.yaml", true),
            ("/p/evals/s/files/b.yaml", false),
            ("/p/evals/s/evals.json", false),
            ("/p/evals/s/setup.json", false),
            ("/p/own/evals.json", false),
            ("/p/own/other.json", false),
        ] {
            assert_eq!(given.has(Path::new(file)), expected, "{file}");
        }
    }
}
