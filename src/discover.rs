//! From what the user points at to eval files.
//!
//! In: paths. Out: `Found`, a file and the folder its suite begins at. Never: parses a file.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use ignore::WalkState;

use crate::skill::{SKILL_FILE, tidy};

/// An eval file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub file: PathBuf,
    /// The folder below which its cases are named.
    pub root: PathBuf,
    /// The skill for whose sake it was found, where it does not lie in it.
    pub skill: Option<PathBuf>,
    pub by: By,
}

/// How a file came to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The user names it.
    Name,
    /// It lies in a folder that was searched, and looks like evals.
    Search,
}

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// What the user names: files, eval folders, skill folders, SKILL.md files.
    pub paths: Vec<PathBuf>,
    /// Where the evals of a skill are, if the user says so.
    pub evals: Option<PathBuf>,
    /// Skillet's own folder, usually `~/.skillet`: a bare name may be a folder of its evals.
    pub skillet: Option<PathBuf>,
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
        let path = skillet_folder(evals, search.skillet.as_deref()).unwrap_or_else(|| absolute(evals));
        found.extend(named(&path, &mut searched)?);
    } else {
        for path in &search.paths {
            let path = skillet_folder(path, search.skillet.as_deref()).unwrap_or_else(|| absolute(path));
            match (skill_at(&path), spec_of_command(&path)) {
                (Some(skill), _) => found.extend(of_skill(&skill, &project_of(&skill), &mut searched)?),
                (None, Some(spec)) => found.extend(named(&spec, &mut searched)?),
                (None, None) if is_command(&path) => {
                    found.extend(of_command(&path, &project_of(&path), &mut searched)?);
                }
                (None, None) => found.extend(named(&path, &mut searched)?),
            }
        }
    }
    // A file that is reached twice counts once, below the wider of two folders.
    found.sort();
    found.dedup_by(|again, first| again.file == first.file);
    searched.dedup();
    if found.is_empty() { Err(DiscoverError::Nothing(searched)) } else { Ok(found) }
}

impl Search {
    /// The skill whose evals the user says are elsewhere.
    pub fn skill_of_evals(&self) -> Option<PathBuf> {
        match (&self.evals, self.paths.as_slice()) {
            (Some(_), [path]) => given_skill(path),
            (Some(_) | None, _) => None,
        }
    }

    /// The skills among what the user names: the evals of each are about it, unless they say otherwise.
    pub fn named_skills(&self) -> Vec<PathBuf> {
        self.paths.iter().filter_map(|path| given_skill(path)).collect()
    }
}

/// The skill folder or command file that a path names.
fn given_skill(path: &Path) -> Option<PathBuf> {
    let path = absolute(path);
    skill_at(&path).or_else(|| is_command(&path).then_some(path))
}

/// Whether a path is a command file: no eval is written in Markdown.
fn is_command(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md") && path.is_file()
}

fn absolute(path: &Path) -> PathBuf {
    tidy(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// What is nothing here may be a folder or file of Skillet's own evals.
fn skillet_folder(path: &Path, skillet: Option<&Path>) -> Option<PathBuf> {
    let bare = path.components().all(|part| matches!(part, Component::Normal(_))) && !path.exists();
    let folder = absolute(&skillet?.join("evals").join(path));
    (bare && folder.is_dir()).then_some(folder)
}

/// The skill folder that a path names, if it names one.
fn skill_at(path: &Path) -> Option<PathBuf> {
    if path.file_name().is_some_and(|name| name == SKILL_FILE) && path.is_file() {
        return path.parent().map(Path::to_owned);
    }
    path.join(SKILL_FILE).is_file().then(|| path.to_owned())
}

/// The spec that lies beside a command file.
fn spec_of_command(path: &Path) -> Option<PathBuf> {
    let is_text = path.extension().is_some_and(|ending| ending == "md") && path.is_file();
    let spec = path.with_extension("eval.json");
    (is_text && spec.is_file()).then_some(spec)
}

fn named(path: &Path, searched: &mut Vec<PathBuf>) -> Result<Vec<Found>, DiscoverError> {
    if path.is_dir() {
        searched.push(path.to_owned());
        return Ok(below(path));
    }
    // A broken link is there, and reading it will say what is wrong with it.
    if path.symlink_metadata().is_ok() {
        let root = path.parent().unwrap_or(path).to_owned();
        return Ok(vec![Found { file: path.to_owned(), root, skill: None, by: By::Name }]);
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
            return Ok(for_skill(found, skill));
        }
    }
    let all_evals = project.join("evals");
    searched.push(all_evals.join("**").join(name));
    let mut places: BTreeMap<PathBuf, Vec<Found>> = BTreeMap::new();
    for found in below(&all_evals) {
        let place = found.file.ancestors().find(|above| above.file_name() == Some(name)).map(Path::to_owned);
        if let Some(place) = place {
            places.entry(place.clone()).or_default().push(Found { root: place, ..found });
        }
    }
    if places.len() > 1 {
        let skill = name.to_string_lossy().into_owned();
        return Err(DiscoverError::Ambiguous { skill, places: places.into_keys().collect() });
    }
    Ok(for_skill(places.into_values().flatten().collect(), skill))
}

/// The evals of a command file that has no spec beside it: a file or folder of its name, beside it, in `evals`
/// beside it, or in the project's `evals`.
fn of_command(file: &Path, project: &Path, searched: &mut Vec<PathBuf>) -> Result<Vec<Found>, DiscoverError> {
    let folder = file.parent().unwrap_or(file);
    let Some(name) = file.file_stem().and_then(|stem| stem.to_str()) else { return Ok(Vec::new()) };
    for place in [folder.to_owned(), folder.join("evals"), project.join("evals")] {
        let files = ENDINGS.map(|ending| place.join(format!("{name}{ending}")));
        let own_folder = place.join(name);
        searched.push(place);
        if let Some(suite) = files.iter().find(|file| file.is_file()) {
            return Ok(for_skill(named(suite, searched)?, file));
        }
        let found = if own_folder.is_dir() { below(&own_folder) } else { Vec::new() };
        if !found.is_empty() {
            return Ok(for_skill(found, file));
        }
    }
    Ok(Vec::new())
}

fn for_skill(found: Vec<Found>, skill: &Path) -> Vec<Found> {
    found.into_iter().map(|found| Found { skill: Some(skill.to_owned()), ..found }).collect()
}

/// Folders that never hold anyone's evals.
const LEFT_OUT: [&str; 6] = [".git", ".practicum", "node_modules", "target", ".venv", "__pycache__"];

/// Every eval file below a folder, as git sees the folder. Links to folders are not followed, so that
/// none can lead in circles; one to a file counts unless the file itself is there.
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
        .filter_entry(|entry| {
            let name = entry.file_name();
            entry.depth() == 0 || !(LEFT_OUT.iter().any(|known| name == *known) || is_for_review(name))
        })
        .build_parallel();
    walk.run(|| {
        Box::new(|entry| {
            if let Ok(entry) = entry
                && is_file(&entry)
                && holds_evals(entry.path())
                && let Ok(mut found) = found.lock()
            {
                let (linked, root) = (entry.path_is_symlink(), folder.to_owned());
                found.push((linked, Found { file: entry.into_path(), root, skill: None, by: By::Search }));
            }
            WalkState::Continue
        })
    });
    without_doubles(found.into_inner().unwrap_or_default())
}

/// Whether a file or folder holds cases that a model proposed and nobody has accepted yet.
fn is_for_review(name: &OsStr) -> bool {
    name.to_string_lossy().contains(".candidates")
}

/// A link is what it leads to.
fn is_file(entry: &ignore::DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink() && entry.path().is_file())
}

/// Each file once: itself where it is there, else the first link to it.
fn without_doubles(mut found: Vec<(bool, Found)>) -> Vec<Found> {
    // Only a link leads to what was found already.
    if found.iter().any(|(linked, _)| *linked) {
        found.sort();
        let mut real = HashSet::new();
        let mut once = |found: &Found| {
            real.insert(std::fs::canonicalize(&found.file).unwrap_or_else(|_| found.file.clone()))
        };
        found.retain(|(_, found)| once(found));
    }
    found.into_iter().map(|(_, found)| found).collect()
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
            let has_key = |key: &str| text.lines().any(|line| has_top_key(line, key));
            let (prompt, expected) = (has_key("prompt"), has_key("expected"));
            // One of the two may be misspelt, and must not take its eval out of the suite unseen.
            prompt && expected || has_key("timestamp") && (prompt || expected)
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
                || has_key("evals") && has_key("prompt")
                || has_key("rubric") && has_key("input")
        })
}

/// Whether a line of YAML begins with a key that nothing encloses, quoted or not.
fn has_top_key(line: &str, key: &str) -> bool {
    let plain = |line: &str| line.strip_prefix(key).map(str::to_owned);
    let quoted =
        |quote: char| line.strip_prefix(quote)?.strip_prefix(key)?.strip_prefix(quote).map(str::to_owned);
    let after = plain(line).or_else(|| quoted('"')).or_else(|| quoted('\''));
    after.is_some_and(|after| after.trim_start().starts_with(':'))
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
            skillet: Some(root.join("home/.skillet")),
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
            (
                vec![
                    ("a/1.yaml", "\"prompt\": p\n'expected' : e\n"),
                    ("a/2.yaml", "x:\n  prompt: p\n  expected: e\n"),
                ],
                "a",
                None,
                ok(&["a/1.yaml @a"]),
            ),
            (
                vec![
                    ("a/1.json", r#"{"evals": [{"prompt": "p", "assertions": []}]}"#),
                    ("a/2.json", r#"[{"input": "p", "rubric": []}]"#),
                    ("a/3.json", r#"{"input": "p"}"#),
                ],
                "a",
                None,
                ok(&["a/1.json @a", "a/2.json @a"]),
            ),
            (
                vec![("commands/c.md", "x"), ("commands/c.eval.json", "{}"), ("commands/d.eval.json", "{}")],
                "commands/c.md",
                None,
                ok(&["commands/c.eval.json @commands"]),
            ),
            (vec![("commands/c.md", "x")], "commands/c.md", None, ok(&["commands/c.md @commands"])),
            (
                vec![skill, ("deep/in/s/evals.json", "{}")],
                "skills/s",
                Some("deep/in/s/evals.json"),
                ok(&["deep/in/s/evals.json @deep/in/s"]),
            ),
            (vec![], "nowhere", None, Err("missing")),
        ] {
            assert_eq!(check(&files, ask, evals), expected, "{files:?} {ask}");
        }
    }

    #[test]
    fn a_file_is_found_once() {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path().canonicalize().expect("real");
        for folder in ["elsewhere", "evals/inner"] {
            std::fs::create_dir_all(root.join(folder)).expect("create");
        }
        for file in ["elsewhere/far.yaml", "evals/inner/near.yaml"] {
            std::fs::write(root.join(file), EVAL).expect("write");
        }
        for (target, link) in [
            ("../elsewhere/far.yaml", "evals/linked.yaml"),
            ("../elsewhere/far.yaml", "evals/twice.yaml"),
            ("inner/near.yaml", "evals/a.yaml"),
            ("../elsewhere", "evals/folder"),
            ("nowhere.yaml", "evals/broken.yaml"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).expect("link");
        }
        let evals = root.join("evals");
        let search = Search { paths: vec![evals.join("inner"), evals.clone()], ..Search::default() };
        let found = discover(&search, &|path| path.to_owned()).expect("found");
        let places: Vec<(PathBuf, PathBuf)> =
            found.into_iter().map(|found| (found.file, found.root)).collect();
        let expected = ["inner/near.yaml", "linked.yaml"].map(|file| (evals.join(file), evals.clone()));
        assert_eq!(places, expected);
    }

    #[test]
    fn the_skill_is_known_for_whose_sake_files_were_found() {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path().canonicalize().expect("real");
        for file in ["x/skills/s/SKILL.md", "evals/s/evals.json", "other/t.json"] {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("create");
            std::fs::write(file, "{}").expect("write");
        }
        let skill = root.join("x/skills/s");
        let search = Search { paths: vec![skill.clone()], ..Search::default() };
        let found = discover(&search, &|_| root.clone()).expect("found");
        assert_eq!(found.iter().map(|found| found.skill.as_ref()).collect::<Vec<_>>(), [Some(&skill)]);
        assert_eq!(search.skill_of_evals(), None);
        let elsewhere = Search { evals: Some(root.join("other")), ..search };
        assert_eq!(elsewhere.skill_of_evals(), Some(skill));
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
