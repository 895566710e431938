//! The file that lists the versions of a skill.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::atomic_files;
use practicum_core::model::RelPath;
use practicum_core::tree::read_regular;

/// The versions of a skill, in the shape that writing-skills documents. Keys that others added are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "The versions of a skill (history.json)")]
pub struct VersionHistory {
    /// The versions, the oldest first.
    pub versions: Vec<SkillVersion>,
    /// The number of the version that is worked on, which is its place in `versions`, from 0.
    pub current_version: u32,
    /// Keys that this program does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Map<String, Value>,
}

/// One version of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillVersion {
    /// The version's number, from 0.
    pub version: u32,
    /// When it was taken, ISO 8601 in UTC.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$"))]
    pub timestamp: String,
    /// What this version represents.
    pub description: String,
    /// The commit it was taken at; null if the skill differed from it.
    pub git_hash: Option<String>,
    /// The folder with this version's files, relative to the workspace.
    #[schemars(with = "String")]
    pub path: RelPath,
    /// The mean over the cases of what each got, 1 to 5: for a case the mean over its runs, for a run the mean
    /// over all its criteria, required or not. Null if there are no scores.
    pub average_score: Option<f64>,
    /// Keys that this program does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: Map<String, Value>,
}

impl SkillVersion {
    /// Gives the default path of a version's files.
    pub fn default_path(number: u32) -> Option<RelPath> {
        RelPath::new(&format!("v{number}/skill"))
    }
}

pub const HISTORY_FILE: &str = "history.json";

/// The description of a version that was graded and kept before a user described it.
pub const GRADED_DESCRIPTION: &str = "graded";

impl VersionHistory {
    /// Reads the history in a versions folder; an empty one if there is none yet.
    pub fn read(workspace: &Path) -> Result<Self, String> {
        let path = workspace.join(HISTORY_FILE);
        let bytes = match read_regular(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let shown = path.display();
        let document: Value =
            serde_json::from_slice(&bytes).map_err(|error| format!("{shown} is not JSON: {error}"))?;
        let kind = match &document {
            Value::Object(_) => None,
            Value::Array(_) => Some("a list"),
            Value::String(_) => Some("a text"),
            Value::Number(_) => Some("a number"),
            Value::Bool(_) => Some("true or false"),
            Value::Null => Some("null"),
        };
        if let Some(kind) = kind {
            return Err(format!(
                "{shown} must be an object with `versions` and `current_version`; it is {kind}"
            ));
        }
        serde_json::from_value(document).map_err(|error| {
            format!("{shown} is not a history of versions: {error}; see practicum schema history")
        })
    }

    /// Gives the keys that this program does not know, each once.
    pub fn unknown_keys(&self) -> BTreeSet<&str> {
        let of_versions = self.versions.iter().flat_map(|version| version.unknown.keys());
        self.unknown.keys().chain(of_versions).map(String::as_str).collect()
    }

    pub fn write(&self, workspace: &Path) -> std::io::Result<()> {
        atomic_files::write_json(&workspace.join(HISTORY_FILE), self)
    }

    pub fn version(&self, number: u32) -> Option<&SkillVersion> {
        self.versions.iter().find(|version| version.version == number)
    }

    pub fn next_number(&self) -> u32 {
        self.versions.iter().map(|version| version.version.saturating_add(1)).max().unwrap_or(0)
    }
}
