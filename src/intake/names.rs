//! Suites are known by their names, in a run and from run to run, so no two of a run may share one.

use std::collections::HashMap;
use std::path::Path;

use crate::dialects::Placed;

/// Puts the folder before the names that several suites have. It is seen from the project, so that a
/// name does not depend on where the command was given. Tells of what was renamed.
pub fn tell_apart(suites: &mut [Placed]) -> Vec<String> {
    let shared = |suites: &[Placed]| -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        suites.iter().for_each(|placed| *counts.entry(placed.suite.name.clone()).or_default() += 1);
        counts.retain(|_, count| *count > 1);
        counts
    };
    let first = shared(suites);
    let rename = |suites: &mut [Placed], of: &HashMap<String, usize>, name: fn(&Placed) -> String| {
        for placed in suites.iter_mut().filter(|placed| of.contains_key(&placed.suite.name)) {
            placed.suite.name = name(placed);
        }
    };
    rename(suites, &first, with_folder);
    // Two files of one folder, or of a project's own.
    let again = shared(suites);
    rename(suites, &again, with_file);
    let mut names: Vec<(&String, &usize)> = first.iter().collect();
    names.sort();
    let told = names.into_iter().map(|(name, count)| {
        format!("{count} suites are called {name}, so each has its folder before its name")
    });
    told.collect()
}

/// The name a suite goes by where it is alone.
pub fn is_called(placed: &Placed, name: &str) -> bool {
    let own = &placed.suite.name;
    own == name || with_folder(placed) == name || with_file(placed) == name
}

fn with_folder(placed: &Placed) -> String {
    let file = &placed.suite.origin.path;
    let folder = if file.is_dir() { Some(file.as_path()) } else { file.parent() };
    // What evals are about is said by the folder around theirs.
    let folder = folder
        .map(|folder| if folder.ends_with("evals") { folder.parent().unwrap_or(folder) } else { folder });
    match folder.map(|folder| within(folder, &placed.project)).filter(|folder| !folder.is_empty()) {
        Some(folder) => format!("{folder}/{}", placed.suite.name),
        None => placed.suite.name.clone(),
    }
}

fn with_file(placed: &Placed) -> String {
    within(&placed.suite.origin.path, &placed.project)
}

fn within(path: &Path, project: &Path) -> String {
    path.strip_prefix(project).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Place, load_text};

    fn placed(file: &str, name: &str) -> Placed {
        let path = Path::new("/p").join(file);
        let place = Place { root: "/p".into(), project: "/p".into(), plugins: None };
        let text =
            format!("practicum: 1\nname: {name}\ncases: [{{id: a, prompt: p, checks: [{{contains: x}}]}}]");
        let suite = load_text(&path, text, &place).lowered.suite.expect("a suite");
        Placed { suite, root: "/p".into(), project: "/p".into() }
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
            // What a folder makes of a name may be a name already.
            (
                vec![("a/s.yaml", "s"), ("b/s.yaml", "s"), ("t.yaml", "a/s")],
                vec!["a/s.yaml", "b/s", "t.yaml"],
            ),
        ] {
            let mut suites: Vec<Placed> = files.iter().map(|(file, name)| placed(file, name)).collect();
            let before = suites.clone();
            tell_apart(&mut suites);
            let now: Vec<&str> = suites.iter().map(|placed| placed.suite.name.as_str()).collect();
            assert_eq!(now, names);
            for (before, now) in before.iter().zip(now) {
                assert!(is_called(before, now), "{now}");
            }
        }
    }
}
