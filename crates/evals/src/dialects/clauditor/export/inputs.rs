//! Writes the input files of a case into a clauditor spec.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::super::native::relative_path;
use super::super::super::writing::Losses;
use super::super::files::is_named_like;
use practicum_core::model::{Case, CheckTarget, Fixture, FixtureAccess, RelPath};

/// Gives the files of a case that a spec in `folder` can list: regular files below it. All of them land directly
/// in the workspace's root.
pub fn write_inputs(case: &Case, looks_at: &CheckTarget, folder: &Path, losses: &mut Losses) -> Vec<String> {
    let mut inputs = Vec::new();
    let mut taken = HashSet::new();
    let outputs: &[String] = match looks_at {
        CheckTarget::Files(globs) => globs,
        CheckTarget::Output
        | CheckTarget::LastTurn
        | CheckTarget::AllText
        | CheckTarget::WholeRun
        | CheckTarget::File(_)
        | CheckTarget::Pictures(_) => &[],
    };
    for Fixture { source: from, destination: to, access } in &case.workspace.files {
        let mut lose = |what: String| losses.add_for_case(&case.id, what);
        let Some((path, name)) = path_below(folder, from) else {
            let from = relative_path(from, folder);
            lose(format!("its file {to} (copy {from} beside the spec and name it in \"input_files\")"));
            continue;
        };
        if outputs.iter().any(|output| is_named_like(output, &name)) {
            lose(format!("its file {to}, because an output has that name"));
            continue;
        }
        if !taken.insert(name.clone()) {
            lose(format!("its file {to}, because another of its files has that name"));
            continue;
        }
        if name != to.as_str() {
            lose(format!("where its file {to} lies; here it is {name}"));
        }
        if *access == FixtureAccess::ReadOnly {
            lose("that its files must not be changed".to_owned());
        }
        inputs.push(path);
    }
    inputs
}

/// Gives the path from the folder to a regular file in it, and the file's name in the workspace's root.
fn path_below(folder: &Path, file: &Path) -> Option<(String, String)> {
    let file: PathBuf = file.canonicalize().ok().filter(|file| file.is_file())?;
    let path = file.strip_prefix(folder.canonicalize().ok()?).ok()?.to_str()?.to_owned();
    let name = RelPath::new(file.file_name()?.to_str()?)?;
    Some((path, name.into()))
}
