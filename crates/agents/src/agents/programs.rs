//! Programs on the user's PATH.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Finds a program on the user's PATH and follows links to the real file.
pub fn find_program(name: &str, user_env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        std::env::split_paths(user_env.get("PATH")?).map(|folder| folder.join(name)).collect()
    };
    candidates.into_iter().find(|path| is_executable(path)).and_then(|path| path.canonicalize().ok())
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
