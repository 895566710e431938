//! Files that an agent may write about its own work, as skill-creator and writing-skills ask an executor to.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use practicum_core::tree::read_bounded;

const MAX_FILE_SIZE: u64 = 64 * 1024;

/// Gives the two possible paths of such a file in a trial's folder: in the workspace, and in its folder for
/// outputs.
fn possible_paths(trial: &Path, name: &str) -> [PathBuf; 2] {
    [trial.join("files").join(name), trial.join("files/outputs").join(name)]
}

/// Says whether an agent wrote a file of this name in either place.
pub fn exists(trial: &Path, name: &str) -> bool {
    possible_paths(trial, name).iter().any(|path| path.is_file())
}

fn read(trial: &Path, name: &str) -> Option<Vec<u8>> {
    let path = possible_paths(trial, name).into_iter().find(|path| path.is_file())?;
    read_bounded(&path, MAX_FILE_SIZE).ok()
}

/// Reads the agent's own counts of its work, its `metrics.json`. `None` if there is none, or if it is not a JSON
/// object.
pub fn read_metrics(trial: &Path) -> Option<Map<String, Value>> {
    serde_json::from_slice(&read(trial, "metrics.json")?).ok()
}

/// Reads the agent's notes for the user, its `user_notes.md`.
pub fn read_user_notes(trial: &Path) -> Option<String> {
    String::from_utf8(read(trial, "user_notes.md")?).ok().filter(|text| !text.trim().is_empty())
}
