//! Finds the suites whose skill, evals or given files have changed since a commit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::SessionError;
use crate::plan::PlannedSuite;
use crate::plan::options::ChangedSince;
use crate::plan::settings::PROJECT_FILE;
use practicum_skills::git_ref::{find_base_commit, find_default_branch, first_change_since};

/// The suites that changed, and sentences for the user about which did and why.
pub struct ChangedSuites {
    pub suites: Vec<PlannedSuite>,
    pub notices: Vec<String>,
}

/// Keeps the suites of which something changed since a ref. If git cannot tell, the suite is kept: a suite that is
/// run without need costs money, and one that is left out hides a loss.
pub fn keep_changed_suites(
    suites: Vec<PlannedSuite>,
    since: &ChangedSince,
    project: &Path,
) -> Result<ChangedSuites, SessionError> {
    let refused = |why: String| SessionError::Refused(format!("--changed: {why}"));
    let reference = match since {
        ChangedSince::Reference(reference) => reference.clone(),
        ChangedSince::DefaultBranch => find_default_branch(project).ok_or_else(|| {
            refused("no default branch was found; name a ref, such as --changed HEAD~1".to_owned())
        })?,
    };
    let base = find_base_commit(project, &reference).map_err(|error| refused(error.to_string()))?;
    let mut known = HashMap::new();
    let (mut kept, mut notices) = (Vec::new(), Vec::new());
    let all = suites.len();
    for planned in suites {
        let why = paths_of(&planned).into_iter().find_map(|path| {
            known.entry(path.clone()).or_insert_with(|| why_changed(&path, &base, project)).clone()
        });
        if let Some(why) = why {
            notices.push(format!("{} is run: {why}", planned.suite.name));
            kept.push(planned);
        }
    }
    if kept.len() < all {
        let left = all - kept.len();
        notices.push(format!("{left} of {all} suites have not changed since {reference} and are not run"));
    }
    Ok(ChangedSuites { suites: kept, notices })
}

/// Says in a sentence what changed at a path; `None` if nothing did.
fn why_changed(path: &Path, base: &str, project: &Path) -> Option<String> {
    match first_change_since(path, base) {
        Ok(None) => None,
        Ok(Some(changed)) => {
            let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
            let shown = changed.strip_prefix(&project).unwrap_or(&changed);
            Some(format!("{} has changed", shown.display()))
        }
        Err(error) => Some(format!("git cannot say whether {} has changed: {error}", path.display())),
    }
}

/// Gives everything in the repository that a suite depends on.
fn paths_of(planned: &PlannedSuite) -> Vec<PathBuf> {
    let suite = &planned.suite;
    let folder = suite.origin.path.parent().unwrap_or(&suite.origin.path);
    let skills = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.clone());
    let given = suite.cases.iter().flat_map(|case| {
        let files = case.workspace.files.iter().map(|file| file.source.clone());
        files.chain(case.workspace.overlays.iter().cloned())
    });
    let scripts = suite.cases.iter().flat_map(|case| {
        let scripts = case.scripts().flat_map(|(_, script)| files_named_by(&script, folder));
        scripts.collect::<Vec<PathBuf>>()
    });
    let settings = Some(planned.project.join(PROJECT_FILE)).filter(|settings| settings.exists());
    let mut all: Vec<PathBuf> = [suite.origin.path.clone()].into();
    all.extend(skills.chain(suite.plugins.iter().cloned()).chain(given).chain(scripts));
    all.extend(planned.script.iter().cloned().chain(settings));
    let mut seen = std::collections::HashSet::new();
    all.retain(|path| seen.insert(path.clone()));
    all
}

/// Gives the files that a script names: words that are paths of files, absolute or from the folder of the evals.
fn files_named_by(script: &str, folder: &Path) -> Vec<PathBuf> {
    let words = script.split(|c: char| c.is_whitespace() || "\"'`;|&<>()=:\\,[]{}".contains(c));
    words
        .filter(|word| word.contains(['.', '/']))
        .map(|word| folder.join(word))
        .filter(|path| path.is_file())
        .collect()
}
