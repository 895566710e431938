//! From what the user points at to eval files.
//!
//! In: paths. Out: `Found`, a file and the folder its suite begins at. Never: parses a file.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ignore::WalkState;

use crate::skill::{SKILL_FILE, tidy};

/// An eval file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub file: PathBuf,
    /// The folder below which its cases are named.
    pub root: PathBuf,
}

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// What the user names: files, eval folders, skill folders, SKILL.md files.
    pub paths: Vec<PathBuf>,
    /// Where the evals of a skill are, if the user says so.
    pub evals: Option<PathBuf>,
    pub home: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    #[error("there is no {0}")]
    Missing(PathBuf),
    #[error(
        "no eval files found; looked in {}\n  \
         They are called {} or *{}, or are Skillet's YAML; practicum init SKILL writes first ones",
        list(.0),
        NAMES.join(", "),
        ENDINGS.join(", *")
    )]
    Nothing(Vec<PathBuf>),
    #[error("several folders could hold the evals of {skill}: {}; choose one with --evals", list(.places))]
    Ambiguous { skill: String, places: Vec<PathBuf> },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Files named here are read whatever they are called; folders are searched.
pub fn discover(search: &Search, project_of: &dyn Fn(&Path) -> PathBuf) -> Result<Vec<Found>, DiscoverError> {
    let mut found = Vec::new();
    let mut searched = Vec::new();
    if let Some(evals) = &search.evals {
        let path = absolute(evals);
        found.extend(named(&path, &mut searched)?);
    } else {
        for path in &search.paths {
            let path = skillet_folder(path, search.home.as_deref()).unwrap_or_else(|| absolute(path));
            match skill_at(&path) {
                Some(skill) => found.extend(of_skill(&skill, &project_of(&skill), &mut searched)?),
                None => found.extend(named(&path, &mut searched)?),
            }
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() { Err(DiscoverError::Nothing(searched)) } else { Ok(found) }
}

fn absolute(path: &Path) -> PathBuf {
    tidy(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// A bare word that is nothing here may be a folder of `~/.skillet/evals`.
fn skillet_folder(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let bare = path.components().count() == 1 && !path.exists();
    let folder = home?.join(".skillet/evals").join(path);
    (bare && folder.is_dir()).then_some(folder)
}

/// The skill folder that a path names, if it names one.
fn skill_at(path: &Path) -> Option<PathBuf> {
    if path.file_name().is_some_and(|name| name == SKILL_FILE) && path.is_file() {
        return path.parent().map(Path::to_owned);
    }
    path.join(SKILL_FILE).is_file().then(|| path.to_owned())
}

fn named(path: &Path, searched: &mut Vec<PathBuf>) -> Result<Vec<Found>, DiscoverError> {
    if path.is_dir() {
        searched.push(path.to_owned());
        return Ok(below(path));
    }
    // A broken link is there, and reading it will say what is wrong with it.
    if path.symlink_metadata().is_ok() {
        let root = path.parent().unwrap_or(path).to_owned();
        return Ok(vec![Found { file: path.to_owned(), root }]);
    }
    Err(DiscoverError::Missing(path.to_owned()))
}

/// The evals of a skill: the first place that has any.
fn of_skill(skill: &Path, project: &Path, searched: &mut Vec<PathBuf>) -> Result<Vec<Found>, DiscoverError> {
    searched.push(skill.to_owned());
    let own = below(skill);
    if !own.is_empty() {
        return Ok(own);
    }
    let Some(name) = skill.file_name() else { return Ok(Vec::new()) };
    let beside = skill.parent().and_then(Path::parent).map(|above| above.join("evals").join(name));
    let in_project = project.join("evals").join(name);
    let mut places = vec![in_project];
    places.extend(beside);
    places.dedup();
    for place in places.into_iter().rev() {
        searched.push(place.clone());
        let found = below(&place);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let all_evals = project.join("evals");
    searched.push(all_evals.join("**").join(name));
    let mut places: BTreeMap<PathBuf, Vec<Found>> = BTreeMap::new();
    for found in below(&all_evals) {
        let place = found.file.ancestors().find(|above| above.file_name() == Some(name)).map(Path::to_owned);
        if let Some(place) = place {
            places.entry(place.clone()).or_default().push(Found { file: found.file, root: place });
        }
    }
    if places.len() > 1 {
        let skill = name.to_string_lossy().into_owned();
        return Err(DiscoverError::Ambiguous { skill, places: places.into_keys().collect() });
    }
    Ok(places.into_values().flatten().collect())
}

/// Folders that never hold anyone's evals.
const LEFT_OUT: [&str; 6] = [".git", ".practicum", "node_modules", "target", ".venv", "__pycache__"];

/// Every eval file below a folder, as git sees the folder. Links are not followed, so that none
/// can lead in circles.
fn below(folder: &Path) -> Vec<Found> {
    let found = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let walk = ignore::WalkBuilder::new(folder)
        .hidden(false)
        .require_git(false)
        // Only what the project itself commits decides, not what this machine happens to ignore.
        .ignore(false)
        .git_global(false)
        .git_exclude(false)
        .follow_links(false)
        .threads(threads)
        .filter_entry(|entry| entry.depth() == 0 || !LEFT_OUT.iter().any(|name| entry.file_name() == *name))
        .build_parallel();
    walk.run(|| {
        Box::new(|entry| {
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
                && holds_evals(entry.path())
                && let Ok(mut found) = found.lock()
            {
                found.push(Found { file: entry.into_path(), root: folder.to_owned() });
            }
            WalkState::Continue
        })
    });
    found.into_inner().unwrap_or_default()
}

/// Names that say what a file is.
const NAMES: [&str; 5] = ["evals.json", "triggers.json", "trigger-queries.json", "eval.json", "cases.json"];
const ENDINGS: [&str; 3] = [".practicum.yaml", ".practicum.yml", ".eval.json"];

/// Whether a file's name says that it holds evals, or, where names are free, its first words.
fn holds_evals(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    if NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return true;
    }
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        return head(path).is_some_and(|text| {
            let text = text.trim_start_matches('\u{feff}');
            let has_key = |key: &str| text.lines().any(|line| line.starts_with(key));
            let (prompt, expected) = (has_key("prompt:"), has_key("expected:"));
            // One of the two may be misspelt, and must not take its eval out of the suite unseen.
            prompt && expected || has_key("timestamp:") && (prompt || expected)
        });
    }
    name.ends_with(".json")
        && head(path).is_some_and(|text| {
            let has_key = |key: &str| text.contains(&format!("\"{key}\""));
            has_key("test_cases")
                || has_key("negative_cases")
                || has_key("should_trigger") && has_key("query")
                || has_key("expected_skill")
                || has_key("expectation") && has_key("prompt")
                || has_key("expectations") && has_key("prompt")
        })
}

/// How much of a file is looked at before deciding whether it is worth reading.
const HEAD: u64 = 16 * 1024;

fn head(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "practicum: 1\n";
    const EVAL: &str = "timestamp: x\nname: n\nprompt: p\nexpected: e\n";

    /// The files found when asking for `ask` in a tree, relative to it, or the error's kind.
    fn check(files: &[(&str, &str)], ask: &str, evals: Option<&str>) -> Result<Vec<String>, &'static str> {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path().canonicalize().expect("real");
        for (path, content) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, content).expect("write");
        }
        let search = Search {
            paths: vec![if ask == "bare" { ask.into() } else { root.join(ask) }],
            evals: evals.map(|evals| root.join(evals)),
            home: Some(root.join("home")),
        };
        let relative = |path: &Path| path.strip_prefix(&root).expect("below").display().to_string();
        match discover(&search, &|_| root.clone()) {
            Ok(found) => Ok(found
                .iter()
                .map(|found| format!("{} @{}", relative(&found.file), relative(&found.root)))
                .collect()),
            Err(DiscoverError::Missing(_)) => Err("missing"),
            Err(DiscoverError::Nothing(_)) => Err("nothing"),
            Err(DiscoverError::Ambiguous { .. }) => Err("ambiguous"),
        }
    }

    #[test]
    fn places() {
        let skill = ("skills/s/SKILL.md", "x");
        let ok = |paths: &[&str]| {
            Ok::<Vec<String>, &'static str>(paths.iter().map(|path| (*path).to_owned()).collect())
        };
        for (files, ask, evals, expected) in [
            (vec![("a/x.practicum.yaml", SUITE)], "a", None, ok(&["a/x.practicum.yaml @a"])),
            (vec![("a/odd.txt", SUITE)], "a/odd.txt", None, ok(&["a/odd.txt @a"])),
            (
                vec![("a/1.yaml", EVAL), ("a/b/2.yml", EVAL), ("a/other.yaml", "x: 1")],
                "a",
                None,
                ok(&["a/1.yaml @a", "a/b/2.yml @a"]),
            ),
            (
                vec![skill, ("skills/s/evals/evals.json", "{}"), ("evals/s/evals.json", "{}")],
                "skills/s",
                None,
                ok(&["skills/s/evals/evals.json @skills/s"]),
            ),
            (
                vec![skill, ("evals/s/evals.json", "{}")],
                "skills/s/SKILL.md",
                None,
                ok(&["evals/s/evals.json @evals/s"]),
            ),
            (
                vec![("deep/skills/s/SKILL.md", "x"), ("evals/s/triggers.json", "[]")],
                "deep/skills/s",
                None,
                ok(&["evals/s/triggers.json @evals/s"]),
            ),
            (
                vec![skill, ("evals/group/s/evals.json", "{}")],
                "skills/s",
                None,
                ok(&["evals/group/s/evals.json @evals/group/s"]),
            ),
            (
                vec![skill, ("evals/g/s/evals.json", "{}"), ("evals/h/s/evals.json", "{}")],
                "skills/s",
                None,
                Err("ambiguous"),
            ),
            (
                vec![skill, ("other/evals.json", "{}"), ("evals/s/evals.json", "{}")],
                "skills/s",
                Some("other"),
                ok(&["other/evals.json @other"]),
            ),
            (
                vec![("home/.skillet/evals/bare/1.yaml", EVAL)],
                "bare",
                None,
                ok(&["home/.skillet/evals/bare/1.yaml @home/.skillet/evals/bare"]),
            ),
            (
                vec![
                    ("a/.gitignore", "x.eval.json"),
                    ("a/x.eval.json", "{}"),
                    ("a/node_modules/evals.json", "{}"),
                ],
                "a",
                None,
                Err("nothing"),
            ),
            (
                vec![("a/s.json", "{\"test_cases\": []}"), ("a/package.json", "{}")],
                "a",
                None,
                ok(&["a/s.json @a"]),
            ),
            (
                vec![
                    ("a/1.yaml", "timestamp: x\nname: n\npromt: p\nexpected: e\n"),
                    ("a/2.yaml", "timestamp: x\nname: n\nprompt: p\nexpcted: e\n"),
                    ("a/3.yaml", "\u{feff}timestamp: x\nprompt: p\n"),
                    ("a/other.yaml", "name: n\nprompt: p\n"),
                ],
                "a",
                None,
                ok(&["a/1.yaml @a", "a/2.yaml @a", "a/3.yaml @a"]),
            ),
            (vec![], "nowhere", None, Err("missing")),
        ] {
            assert_eq!(check(&files, ask, evals), expected, "{files:?} {ask}");
        }
    }

    #[test]
    fn a_circle_of_links_ends() {
        let tree = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(tree.path(), tree.path().join("again")).expect("link");
        std::fs::write(tree.path().join("x.practicum.yaml"), SUITE).expect("write");
        let search = Search { paths: vec![tree.path().to_owned()], ..Search::default() };
        assert_eq!(discover(&search, &|path| path.to_owned()).expect("found").len(), 1);
    }
}
