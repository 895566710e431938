//! A record of which run wrote what into the folder of a report of several files. The file formats have no place
//! for it, so it is kept beside their files: the results of two runs must never be mistaken for those of one.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RunResults;
use practicum_core::model::RelPath;
use practicum_core::tree::read_regular;
use practicum_engine::store::RunDir;
use practicum_skills::versions::atomic_files::write_json;

/// The record of a report's folder: `.practicum-<report>.json` in it.
pub struct FolderRecord {
    folder: PathBuf,
    file: PathBuf,
    content: Content,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    schema_version: u32,
    /// The skill whose results these are, if the folder can have the results of only one skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<String>,
    /// The files, or other parts that runs replace, each with the run that wrote it.
    written: BTreeMap<String, Source>,
}

/// The run that results come from. Ids of runs sort by time, and so do sources: by when the trials ran, then by
/// when they were graded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Source {
    /// The run whose trials these are.
    trials_of: String,
    /// The run that graded them; the same one unless they were regraded.
    run: String,
}

impl Source {
    fn of(results: &RunResults) -> Self {
        let run = results.info.run.clone();
        let (mut trials_of, mut earlier) = (run.clone(), results.info.graded_from.clone());
        // A regraded run may itself be the regrade of another.
        while let Some(id) = earlier.filter(|id| *id < trials_of) {
            let runs = results.run.path().parent().map(Path::to_owned).unwrap_or_default();
            let info = RunDir::at_path(&runs.join(&id)).and_then(|run| run.info().ok());
            trials_of = id;
            earlier = info.and_then(|info| info.graded_from);
        }
        Self { trials_of, run }
    }
}

impl FolderRecord {
    /// Reads the record of a folder; an empty one if there is none yet.
    pub fn read(folder: &Path, report: &str) -> Result<Self> {
        let file = folder.join(format!(".practicum-{report}.json"));
        let content = match read_regular(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                let shown = file.display();
                Error::other(format!(
                    "{shown} cannot be read, so the files that were written here are unknown ({error}); name another folder"
                ))
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Content { schema_version: 1, skill: None, written: BTreeMap::new() }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { folder: folder.to_owned(), file, content })
    }

    /// Gives an error if a later run wrote something that the report of this run would replace.
    pub fn refuse_later(&self, results: &RunResults, is_replaced: impl Fn(&str) -> bool) -> Result<()> {
        let source = Source::of(results);
        let replaced = self.content.written.iter().filter(|(what, _)| is_replaced(what));
        let Some(later) = replaced.map(|(_, by)| by).filter(|by| **by > source).max() else { return Ok(()) };
        let again = match source.trials_of == source.run {
            true => String::new(),
            false => format!(", which graded the trials of {} again", source.trials_of),
        };
        Err(Error::other(format!(
            "it has results of run {}, which are later than those of run {}{again}; name another folder",
            later.run, source.run
        )))
    }

    /// Says whether this run wrote it.
    pub fn is_of(&self, results: &RunResults, what: &str) -> bool {
        self.content.written.get(what) == Some(&Source::of(results))
    }

    /// Gives an error if the folder has the results of another skill.
    pub fn refuse_other_skill(&mut self, skill: Option<String>) -> Result<()> {
        match (&self.content.skill, skill) {
            (Some(known), Some(skill)) if *known != skill => Err(Error::other(format!(
                "it has the versions of the skill {known}, and not of {skill}; name another folder"
            ))),
            (None, skill) => {
                self.content.skill = skill;
                Ok(())
            }
            (Some(_), _) => Ok(()),
        }
    }

    /// Removes the files that runs wrote, and the folders that are empty without them. Gives how many files there
    /// were of other runs.
    pub fn remove_files(&mut self, results: &RunResults) -> Result<usize> {
        let source = Source::of(results);
        let root = self.folder.canonicalize()?;
        let mut of_others = 0;
        for (path, by) in std::mem::take(&mut self.content.written) {
            let Some(path) = RelPath::new(&path).map(|path| path.join_to(&self.folder)) else { continue };
            // By now, a link may lead elsewhere.
            let Some(above) = path.parent().and_then(|above| above.canonicalize().ok()) else { continue };
            if !above.starts_with(&root) || std::fs::remove_file(&path).is_err() {
                continue;
            }
            of_others += usize::from(by != source);
            for above in above.ancestors().take_while(|above| **above != *root) {
                if std::fs::remove_dir(above).is_err() {
                    break;
                }
            }
        }
        Ok(of_others)
    }

    /// Records what this run wrote, or removed, and writes the record.
    pub fn write(mut self, results: &RunResults, written: impl IntoIterator<Item = String>) -> Result<()> {
        let source = Source::of(results);
        self.content.written.extend(written.into_iter().map(|what| (what, source.clone())));
        write_json(&self.file, &self.content)
    }
}
