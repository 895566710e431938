//! Readers and writers for the eval formats that people already use.
//!
//! In: a `SourceFile`. Out: a `LoadedSuite`: the `Suite`, and diagnostics about the file.
//! Never: exposes types of one format.

mod bmad;
mod clauditor;
mod copilot_tools;
mod folder;
mod loading;
mod native;
mod plugin_eval;
mod promptfoo;
mod reading;
mod recognition;
mod refused;
mod registry;
mod rules;
mod skill_creator;
mod skill_test;
mod skill_up;
mod skillet;
mod skillgrade;
mod tessl;
#[cfg(test)]
mod testing;
mod vally;
mod waza;
mod writing;
mod writing_skills;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use clauditor::{AGENT_VARIABLE, PROVIDER_VARIABLE, TRANSPORT_VARIABLE};
pub use folder::EvalFolder;
pub use loading::{
    AMBIGUOUS_FORMAT, LoadedFile, LocatedSuite, case_id_of_file, load_eval_file, load_text, merge_folders,
};
pub use native::{
    case_value as case_to_native, decode_recording, decode_stored_suite, encode_recording,
    encode_stored_suite, encode_suite as to_native, relative_path,
};
pub use reading::graders::rubric_text;
pub use reading::trigger_schema;
pub use recognition::is_trigger_file;
pub use registry::{EvalRegistry, FormatCandidate, FormatDecision};
pub use skill_test::plugins::{PLUGINS_VARIABLE, plugins_folder};
pub use skillet::skillet_folder;
pub use writing::asks_the_same;

use practicum_core::model::{Diagnostics, Digest, Origin, Suite};
use practicum_core::tree::{SourceFile, SourceSyntax, to_yaml};
use practicum_skills::skill::SkillCache;

/// One eval format: how its files are recognised, read and written.
///
/// Inside this crate, a new format is a file and a line in `DIALECTS`. A program adds its own with
/// [`EvalRegistry::with_format`].
pub trait Dialect: Sync {
    /// Gives the name of the format, as `--dialect` takes it.
    fn name(&self) -> &'static str;

    /// Gives the names of files that only hold evals of this format, in lower case: a whole name, or `*` and an
    /// ending. Files with these names are found in folders that are searched; others must be named by the user, or
    /// lie beside evals.
    fn file_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Gives the rule by which files of this format are recognised, in one sentence for people.
    fn recognition_rule(&self) -> &'static str {
        "by its content"
    }

    /// Says how well a document fits, by its content first and its file name second. The format that fits best reads
    /// the document.
    fn recognise(&self, source: &SourceFile) -> FormatMatch;

    /// Reads a document in this format. Reports all problems, not only the first; gives a suite whenever there is
    /// enough to continue with.
    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite>;

    /// Says whether a folder can be one eval of this format. Then [`Dialect::recognise_folder`] is asked about each
    /// folder that is searched.
    fn reads_folders(&self) -> bool {
        false
    }

    /// Says how well a folder fits, for formats that write one eval as several files. All that lies below such a
    /// folder belongs to its eval.
    fn recognise_folder(&self, _folder: &EvalFolder) -> FormatMatch {
        FormatMatch::NO
    }

    /// Reads a folder that [`Dialect::recognise_folder`] recognised. Problems have no position, so each names its
    /// file.
    fn lower_folder(
        &self,
        _folder: &EvalFolder,
        _place: &EvalFileLocation,
        _diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        None
    }

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

/// How well a document or folder fits a format, and why: reasons with points. Their sum is the score; the format
/// with the highest score reads the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatMatch {
    /// What in the document speaks for the format. Empty if the document does not fit.
    pub reasons: Vec<FormatReason>,
}

/// One reason why a document fits a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatReason {
    /// How much the reason counts.
    pub points: u32,
    /// What speaks for the format, for a message: "it has the key \"practicum\"".
    pub text: Cow<'static, str>,
}

impl FormatMatch {
    /// The answer of a format that a document does not fit.
    pub const NO: Self = Self { reasons: Vec::new() };

    /// The points of a mark that only one format has.
    pub const SURE: u32 = 100;

    /// The points of a form that other formats have too.
    pub const POSSIBLE: u32 = 40;

    /// Makes the answer that a document fits, with points for one reason.
    pub fn with_points(points: u32, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reasons: vec![FormatReason { points, text: reason.into() }] }
    }

    /// Makes the answer that a document fits, but could be in another format too.
    pub fn possible(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::with_points(Self::POSSIBLE, reason)
    }

    /// Makes the answer that a document is in this format.
    pub fn sure(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::with_points(Self::SURE, reason)
    }

    /// Adds a reason if it holds.
    #[must_use]
    pub fn and(mut self, holds: bool, points: u32, reason: &'static str) -> Self {
        if holds {
            self.reasons.push(FormatReason { points, text: Cow::Borrowed(reason) });
        }
        self
    }

    /// Gives the sum of the points; 0 if the document does not fit.
    pub fn score(&self) -> u32 {
        self.reasons.iter().map(|reason| reason.points).sum()
    }

    /// Gives the reasons in one line.
    pub fn describe(&self) -> String {
        let texts: Vec<&str> = self.reasons.iter().map(|reason| reason.text.as_ref()).collect();
        texts.join("; ")
    }
}

/// The location of an eval file, and the formats and checks that it may use. All paths are absolute.
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
    /// The formats and checks that are known.
    pub registry: EvalRegistry,
    /// The skills that were read for this file and for others.
    pub skills: SkillCache,
}

impl EvalFileLocation {
    /// Makes the location of a file whose cases are named below `root`, with the built-in formats and checks.
    pub fn new(root: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            project: project.into(),
            plugins: None,
            skill: None,
            registry: EvalRegistry::default(),
            skills: SkillCache::default(),
        }
    }

    /// Replaces the formats and checks that are known.
    #[must_use]
    pub fn with_registry(self, registry: EvalRegistry) -> Self {
        Self { registry, ..self }
    }
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

/// A file of an exported suite.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedFile {
    /// A file name that the format would recognise, relative to the output folder.
    pub name: String,
    /// The syntax in which the document is written; `None` if the document is a text that is written as it is.
    pub syntax: Option<SourceSyntax>,
    /// The content of the file.
    pub document: Value,
}

impl ExportedFile {
    /// Gives the text of the file.
    pub fn text(&self) -> String {
        match self.syntax {
            Some(SourceSyntax::Yaml) => to_yaml(&self.document),
            Some(SourceSyntax::Json) => format!("{:#}\n", self.document),
            Some(SourceSyntax::JsonLines) => {
                let lines = self.document.as_array().map(Vec::as_slice).unwrap_or_default();
                lines.iter().map(|line| format!("{line}\n")).collect()
            }
            None => self.document.as_str().unwrap_or_default().to_owned(),
        }
    }
}

/// The built-in formats. To add one, add a file and a line here.
pub static DIALECTS: &[&dyn Dialect] = &[
    &native::Native,
    &skillet::Skillet,
    &skill_test::SkillTest,
    &bmad::Bmad,
    &clauditor::Clauditor,
    &writing_skills::WritingSkills,
    &skill_creator::SkillCreator,
    &plugin_eval::PluginEval,
    &waza::Waza,
    &tessl::Tessl,
    &vally::Vally,
    &skillgrade::Skillgrade,
    &promptfoo::Promptfoo,
    &skill_up::SkillUp,
    &refused::Harbor,
    &refused::SkillValidator,
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

/// Gives the help for the author of a case without checks, by the name of the file's format.
pub fn missing_checks_help(format: &str) -> &'static str {
    match format {
        "clauditor" => clauditor::MISSING_CHECKS_HELP,
        _ => "add a check",
    }
}

/// Gives the built-in format of this name.
pub fn find_dialect(name: &str) -> Option<&'static dyn Dialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.name() == name)
}

/// Gives the names of the built-in formats.
pub fn dialect_names() -> Vec<&'static str> {
    DIALECTS.iter().map(|dialect| dialect.name()).collect()
}
