//! Files about its own work that an agent may leave, as skill-creator and writing-skills ask an executor to.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use practicum_core::tree::read_bounded;

const MAX_FILE_SIZE: u64 = 64 * 1024;

/// The two places of such a file among what was kept of a trial: the workspace, and its folder for outputs.
fn possible_paths(trial: &Path, name: &str) -> [PathBuf; 2] {
    [trial.join("files").join(name), trial.join("files/outputs").join(name)]
}

/// Whether an agent left a file of this name in either place.
pub fn exists(trial: &Path, name: &str) -> bool {
    possible_paths(trial, name).iter().any(|path| path.is_file())
}

fn read(trial: &Path, name: &str) -> Option<Vec<u8>> {
    let path = possible_paths(trial, name).into_iter().find(|path| path.is_file())?;
    read_bounded(&path, MAX_FILE_SIZE).ok()
}

/// What the agent counted of its work: its `metrics.json`. `None` if there is none, or it is no JSON object.
pub fn read_metrics(trial: &Path) -> Option<Map<String, Value>> {
    serde_json::from_slice(&read(trial, "metrics.json")?).ok()
}

/// What the agent wrote for the user to look at: its `user_notes.md`.
pub fn read_user_notes(trial: &Path) -> Option<String> {
    String::from_utf8(read(trial, "user_notes.md")?).ok().filter(|text| !text.trim().is_empty())
}
