//! Makes the names of suites unique. Suites are identified by their names within a run and between runs.

use std::collections::BTreeMap;
use std::path::Path;

use practicum_evals::dialects::LocatedSuite;

/// Functions that make longer and longer names for a suite. The names are relative to its project, so that they do
/// not depend on the working directory, and the last one is unique.
const NAME_BUILDERS: [fn(&LocatedSuite) -> String; 3] = [with_folder, with_file, with_path];

/// Gives longer names to suites that share one. Returns notices about it.
pub fn make_names_unique(suites: &mut [LocatedSuite]) -> Vec<String> {
    let first = shared_names(suites);
    for name in NAME_BUILDERS {
        let shared = shared_names(suites);
        for placed in suites.iter_mut().filter(|placed| shared.contains_key(&placed.suite.name)) {
            placed.suite.name = name(placed);
        }
    }
    let notices = first.into_iter().map(|(name, count)| {
        format!("{count} suites are called {name}, so each has its folder before its name")
    });
    notices.collect()
}

/// Counts the suites for each name that several have.
fn shared_names(suites: &[LocatedSuite]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    suites.iter().for_each(|placed| *counts.entry(placed.suite.name.clone()).or_default() += 1);
    counts.retain(|_, count| *count > 1);
    counts
}

/// Says whether a suite may have had this name in a run with other suites of its name.
pub fn may_have_had_name(placed: &LocatedSuite, name: &str) -> bool {
    placed.suite.name == name || NAME_BUILDERS.iter().any(|longer| longer(placed) == name)
}

fn with_folder(placed: &LocatedSuite) -> String {
    let file = &placed.suite.origin.path;
    let folder = if file.is_dir() { Some(file.as_path()) } else { file.parent() };
    // A folder called `evals` says nothing, so the folder around it is used.
    let folder = folder
        .map(|folder| if folder.ends_with("evals") { folder.parent().unwrap_or(folder) } else { folder });
    match folder
        .map(|folder| path_within_project(folder, &placed.project))
        .filter(|folder| !folder.is_empty())
    {
        Some(folder) => format!("{folder}/{}", placed.suite.name),
        None => placed.suite.name.clone(),
    }
}

fn with_file(placed: &LocatedSuite) -> String {
    path_within_project(&placed.suite.origin.path, &placed.project)
}

fn with_path(placed: &LocatedSuite) -> String {
    placed.suite.origin.path.to_string_lossy().into_owned()
}

fn path_within_project(path: &Path, project: &Path) -> String {
    path.strip_prefix(project).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_evals::dialects::{EvalFileLocation, load_text};

    fn placed(file: &str, name: &str) -> LocatedSuite {
        let project = Path::new(if file.starts_with("/q") { "/q" } else { "/p" });
        let path = project.join(file);
        let place = EvalFileLocation::new(project, project);
        let text =
            format!("practicum: 1\nname: {name}\ncases: [{{id: a, prompt: p, checks: [{{contains: x}}]}}]");
        let suite = load_text(&path, text, &place).lowered.suite.expect("a suite");
        LocatedSuite { suite, root: project.into(), project: project.into() }
    }

    #[test]
    fn no_two_suites_share_a_name() {
        for (files, names) in [
            (vec![("a/evals/s.yaml", "s"), ("b/evals/t.yaml", "t")], vec!["s", "t"]),
            (
                vec![("a/evals/s.yaml", "s"), ("b/evals/s.yaml", "s"), ("t.yaml", "t")],
                vec!["a/s", "b/s", "t"],
            ),
            (vec![("s.yaml", "s"), ("b/s.yaml", "s")], vec!["s", "b/s"]),
            (vec![("a/1.yaml", "s"), ("a/2.yaml", "s")], vec!["a/1.yaml", "a/2.yaml"]),
            // Two projects may have files at the same relative path.
            (vec![("s.yaml", "s"), ("/q/s.yaml", "s")], vec!["/p/s.yaml", "/q/s.yaml"]),
            // A name with its folder may equal the plain name of another suite.
            (
                vec![("a/s.yaml", "s"), ("b/s.yaml", "s"), ("t.yaml", "a/s")],
                vec!["a/s.yaml", "b/s", "t.yaml"],
            ),
        ] {
            let mut suites: Vec<LocatedSuite> = files.iter().map(|(file, name)| placed(file, name)).collect();
            let before = suites.clone();
            make_names_unique(&mut suites);
            let now: Vec<&str> = suites.iter().map(|placed| placed.suite.name.as_str()).collect();
            assert_eq!(now, names);
            for (before, now) in before.iter().zip(now) {
                assert!(may_have_had_name(before, now), "{now}");
            }
        }
    }
}
