//! Readers and writers for the eval formats that people already use.
//!
//! In: a `SourceFile`. Out: a `LoadedSuite`: the `Suite`, and diagnostics about the file.
//! Never: exposes types of one format.

mod bmad;
mod clauditor;
mod loading;
mod native;
mod reading;
mod recognition;
mod rules;
mod skill_creator;
mod skill_test;
mod skillet;
#[cfg(test)]
mod testing;
mod writing;
mod writing_skills;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use loading::{
    LoadedFile, LocatedSuite, case_id_of_file, is_known_format, load_eval_file, load_text, merge_folders,
};
pub use native::{case_value as case_to_native, encode_suite as to_native};
pub use reading::trigger_schema;
pub use recognition::is_trigger_file;

use practicum_core::model::{Diagnostics, Digest, Origin, Suite};
use practicum_core::tree::{SourceFile, SourceSyntax};

/// One eval format. To add one, add a file and a line in `DIALECTS`.
pub trait Dialect: Sync {
    fn name(&self) -> &'static str;

    /// Says how well a document fits, by its content first and its file name second.
    fn recognise(&self, source: &SourceFile) -> FormatFit;

    /// Reads a document in this format. Reports all problems, not only the first; gives a suite whenever there is
    /// enough to continue with.
    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite>;

    /// Gives the JSON Schema of a file in this format.
    fn schema(&self) -> Value;

    /// Writes a suite in this format. Reports everything that the format cannot express.
    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite;

    /// Says whether the folder of a file belongs to its evals, with fixtures, overlays and notes.
    fn owns_folder(&self) -> bool {
        false
    }

    /// Says whether the files of one folder are the cases of one suite.
    fn folder_is_suite(&self) -> bool {
        false
    }
}

/// How certain a dialect is that a document is in its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatFit {
    No,
    /// The form fits, but it fits other formats too.
    Possible,
    Sure,
}

/// The location of an eval file. All paths are absolute.
#[derive(Debug, Clone)]
pub struct EvalFileLocation {
    /// The folder below which case ids are made.
    pub root: PathBuf,
    /// The project that the file belongs to.
    pub project: PathBuf,
    /// The folder in which plugins are searched first, if the user gives one.
    pub plugins: Option<PathBuf>,
    /// The skill under test, if the user names it.
    pub skill: Option<PathBuf>,
}

/// A suite written in some format.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedSuite {
    /// One file, or one for each case if the format requires it.
    pub files: Vec<ExportedFile>,
    /// Sentences about what the format cannot express.
    pub losses: Vec<String>,
    /// The ids of the cases of which the format can express nothing.
    pub lost_cases: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFile {
    /// A file name that the format would recognise, relative to the output folder.
    pub name: String,
    pub syntax: SourceSyntax,
    pub document: Value,
}

pub static DIALECTS: &[&dyn Dialect] = &[
    &native::Native,
    &skillet::Skillet,
    &skill_test::SkillTest,
    &bmad::Bmad,
    &clauditor::Clauditor,
    &writing_skills::WritingSkills,
    &skill_creator::SkillCreator,
];

/// Finds a skill by name where skill-test suites look for their skills. Gives a suite about this skill alone, with
/// its rivals and plugins. If not exactly one skill has the name, gives all that have it.
pub fn suite_for_skill_name(
    name: &str,
    folder: &Path,
    place: &EvalFileLocation,
) -> Result<Suite, Vec<String>> {
    let found = skill_test::plugins::find_skill_by_name(name, folder, place)?;
    let origin =
        Origin { dialect: "native".to_owned(), path: folder.to_owned(), digest: Digest::of_bytes(b"") };
    let blank = Suite::empty(name, origin);
    Ok(Suite { skills: found.skills, rivals: found.rivals, plugins: found.plugins, ..blank })
}

pub fn find_dialect(name: &str) -> Option<&'static dyn Dialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.name() == name)
}

pub fn dialect_names() -> Vec<&'static str> {
    DIALECTS.iter().map(|dialect| dialect.name()).collect()
}
