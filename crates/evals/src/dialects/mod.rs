//! The eval files people already have.
//!
//! In: a `SourceFile`. Out: `LoadedSuite`, a `Suite` and everything worth saying about the file.
//! Never: lets a format's own shapes out.

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

/// One eval format. A new one is a file and a line in `DIALECTS`.
pub trait Dialect: Sync {
    fn name(&self) -> &'static str;

    /// How well a document fits, by its content first and its name second.
    fn recognise(&self, source: &SourceFile) -> FormatFit;

    /// Reads a document that is taken to be of this format. All problems are told, not only the
    /// first; a suite is given whenever there is anything to go on with.
    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite>;

    /// What a file of this format may hold, as JSON Schema.
    fn schema(&self) -> Value;

    /// Writes a suite in this format. What the format cannot say is told, never dropped in silence.
    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite;

    /// Whether the folder of a file belongs to its evals, with fixtures, overlays and notes.
    fn owns_folder(&self) -> bool {
        false
    }

    /// Whether the files of one folder are the cases of one suite.
    fn folder_is_suite(&self) -> bool {
        false
    }
}

/// How sure a dialect is that a document is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatFit {
    No,
    /// The shape fits, and fits others too.
    Possible,
    Sure,
}

/// Where a file stands. All paths are absolute.
#[derive(Debug, Clone)]
pub struct EvalFileLocation {
    /// The folder below which case ids are made.
    pub root: PathBuf,
    /// The project the file belongs to.
    pub project: PathBuf,
    /// Where plugins are looked for first, if the user said so.
    pub plugins: Option<PathBuf>,
    /// The skill whose evals these are, if the user says so.
    pub skill: Option<PathBuf>,
}

/// A suite written in some format.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedSuite {
    /// One file, except where the format wants one for each case.
    pub files: Vec<ExportedFile>,
    /// What the format cannot express, a sentence each.
    pub losses: Vec<String>,
    /// The ids of the cases of which the format can say nothing.
    pub lost_cases: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFile {
    /// A file name that the format would recognise, relative to where the user wants the output.
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

/// A skill by its name, where skill-test suites look for theirs, as a suite that is about it and about
/// nothing else: with its rivals and plugins. Where not exactly one is called so, those that are.
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
