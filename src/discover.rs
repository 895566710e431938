//! From what the user points at to eval files.
//!
//! In: paths. Out: `Found`, a file and the folder its suite begins at. Never: parses a file.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::skill::SKILL_FILE;

/// An eval file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub file: PathBuf,
    /// The folder below which its cases are named.
    pub root: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    #[error("there is no {0}")]
    Missing(PathBuf),
    #[error("no eval files found; looked in {}", list(.0))]
    Nothing(Vec<PathBuf>),
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Files named here are read whatever they are called; folders are searched.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<Found>, DiscoverError> {
    let mut found = Vec::new();
    let mut searched = Vec::new();
    for path in paths {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let path = crate::skill::tidy(&path);
        if path.is_dir() {
            found.extend(search(&path));
            searched.push(path);
        } else if path.file_name().is_some_and(|name| name == SKILL_FILE) && path.exists() {
            let folder = path.parent().unwrap_or(&path).to_owned();
            found.extend(search(&folder));
            searched.push(folder);
        } else if path.exists() {
            let root = path.parent().unwrap_or(&path).to_owned();
            found.push(Found { file: path, root });
        } else {
            return Err(DiscoverError::Missing(path));
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(DiscoverError::Nothing(searched));
    }
    Ok(found)
}

/// Every eval file below a folder, as git sees the folder.
fn search(folder: &Path) -> Vec<Found> {
    let walk = ignore::WalkBuilder::new(folder)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| {
            let name = entry.file_name();
            entry.depth() == 0
                || !(name == ".git" || name == "node_modules" || name == ".practicum" || name == "target")
        })
        .build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files
        .filter(|entry| is_eval(entry.path()))
        .map(|entry| Found { file: entry.into_path(), root: folder.to_owned() })
        .collect()
}

/// Whether a file's name says that it holds evals, or, where names are free, its first words.
fn is_eval(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    if name.ends_with(".practicum.yaml") || name.ends_with(".practicum.yml") {
        return true;
    }
    let yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    yaml && head(path).is_some_and(|text| {
        let has_key = |key: &str| text.lines().any(|line| line.starts_with(key));
        has_key("prompt:") && has_key("expected:")
    })
}

/// How much of a file is looked at before deciding whether it is worth reading.
const HEAD: u64 = 64 * 1024;

fn head(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
