//! The user's list of what they trust, in their own settings folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::TrustItem;
use crate::plan::settings::user_config_folder;
use practicum_core::tree::{read_regular, write_private};

/// The user's trust in items of projects: `trust.json` in the folder of the user's own settings. Nothing in a project
/// can change it.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
    document: TrustDocument,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TrustDocument {
    schema_version: u32,
    /// For each project, by its path, the items that the user trusts: digest and description.
    projects: BTreeMap<PathBuf, BTreeMap<String, String>>,
}

impl TrustStore {
    /// Reads the store of the user whose environment this is. `None` if the environment names no settings folder. A file
    /// that cannot be read is an error: treating it as empty would lose it with the next change.
    pub fn read(environment: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let Some(folder) = user_config_folder(environment) else { return Ok(None) };
        let path = folder.join("trust.json");
        let document = match read_regular(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => TrustDocument::default(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        Ok(Some(Self { path, document }))
    }

    /// Says whether the user trusts this item of a project, with exactly this content.
    pub fn has(&self, project: &Path, item: &TrustItem) -> bool {
        let items = self.document.projects.get(&real_path(project));
        items.is_some_and(|items| items.contains_key(item.digest.as_str()))
    }

    /// Counts the trusted items of a project.
    pub fn count(&self, project: &Path) -> usize {
        self.document.projects.get(&real_path(project)).map_or(0, BTreeMap::len)
    }

    /// Adds items of a project.
    pub fn add(&mut self, project: &Path, items: &[TrustItem]) -> Result<(), String> {
        let known = self.document.projects.entry(real_path(project)).or_default();
        known.extend(items.iter().map(|item| (item.digest.to_string(), item.what.clone())));
        self.write()
    }

    /// Removes everything about a project. Says how many items there were.
    pub fn revoke(&mut self, project: &Path) -> Result<usize, String> {
        let removed = self.document.projects.remove(&real_path(project)).map_or(0, |items| items.len());
        self.write().map(|()| removed)
    }

    fn write(&self) -> Result<(), String> {
        let document = TrustDocument { schema_version: 1, ..self.document.clone() };
        let told = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let bytes = serde_json::to_vec_pretty(&document).map_err(|error| told(error.into()))?;
        write_private(&self.path, &bytes).map_err(told)
    }
}

/// Gives the path of a project without links, so that it has one name.
fn real_path(project: &Path) -> PathBuf {
    project.canonicalize().unwrap_or_else(|_| project.to_owned())
}
