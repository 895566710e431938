//! Finds the eval files for the paths that the user gives.
//!
//! In: paths. Out: `EvalFile`, a file and the folder its suite begins at. Never: reads the cases of a file.

mod file_kind;
mod folder_search;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use self::file_kind::{EVAL_FILE_ENDINGS, EVAL_FILE_NAMES, EvalFileKind};
pub use self::folder_search::SkippedFile;
use self::folder_search::{FolderSearchResult, search_folder};
use practicum_skills::skill::{SKILL_FILE, normalise_path};

/// An eval file that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvalFile {
    pub file: PathBuf,
    /// The folder below which its cases are named.
    pub root: PathBuf,
    /// The skill for which the file was searched, if the file does not lie in the skill's folder.
    pub skill: Option<PathBuf>,
    pub found_by: DiscoveryMethod,
}

/// How a file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiscoveryMethod {
    /// The user named the file.
    Name,
    /// The file lies in a searched folder and looks like an eval file.
    Search,
}

/// The result of a search for eval files.
#[derive(Debug)]
pub struct DiscoveryResult {
    pub files: Vec<EvalFile>,
    /// Files in searched folders that look like evals, or lie among evals, and were left out.
    pub skipped: Vec<SkippedFile>,
    /// A skill that the user names beside the evals and that has no evals of its own: the evals run with it.
    pub skill: Option<PathBuf>,
}

/// Where to search for eval files.
#[derive(Debug, Clone, Default)]
pub struct EvalSearch {
    /// The paths that the user gives: files, eval folders, skill folders, SKILL.md files.
    pub paths: Vec<PathBuf>,
    /// The folder of a skill's evals, if the user gives it.
    pub evals: Option<PathBuf>,
    /// Skillet's own folder, usually `~/.skillet`: a bare name may be a folder of its evals.
    pub skillet: Option<PathBuf>,
}

/// An error: no eval files were found, or it is not clear which are meant.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    #[error("there is no {0}")]
    Missing(PathBuf),
    #[error("there is no {path}, and none in {}, which has {}", .folder.display(), .names.join(", "))]
    MissingInSkillet { path: String, folder: PathBuf, names: Vec<String> },
    #[error(
        "no eval files found; looked in {}{}\n  \
         They are called {} or *{}, or are Skillet's YAML; practicum init SKILL writes first ones",
        list_paths(.0),
        describe_missing_skill(.0),
        EVAL_FILE_NAMES.join(", "),
        EVAL_FILE_ENDINGS.join(", *")
    )]
    NoEvals(Vec<PathBuf>),
    #[error(
        "no eval files found in {}; skipped: {}\n  Name one of them, or its folder, to use it",
        list_paths(.searched),
        describe_skipped(.skipped)
    )]
    AllSkipped { searched: Vec<PathBuf>, skipped: Vec<SkippedFile> },
    #[error("{} have no evals of their own; name the skill that the evals are run with by --skill", list_paths(.0))]
    SeveralSkills(Vec<PathBuf>),
    #[error("several folders could hold the evals of {skill}: {}; choose one with --evals", list_paths(.places))]
    Ambiguous { skill: String, places: Vec<PathBuf> },
}

/// Gives a note that a folder among skills is no skill, if that may be why nothing was found.
fn describe_missing_skill(searched: &[PathBuf]) -> String {
    let is_among_skills =
        |path: &&PathBuf| path.parent().and_then(Path::file_name).is_some_and(|name| name == "skills");
    let lacks = |path: &&PathBuf| path.is_dir() && !path.join(SKILL_FILE).is_file();
    searched.iter().find(|path| is_among_skills(path) && lacks(path)).map_or_else(String::new, |path| {
        format!("; {} has no {SKILL_FILE}, so it is no skill", path.display())
    })
}

fn list_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn describe_skipped(skipped: &[SkippedFile]) -> String {
    let each = skipped.iter().map(|SkippedFile { path, why }| format!("{} ({why})", path.display()));
    each.collect::<Vec<_>>().join(", ")
}

/// Finds eval files. A file that the user names is read whatever its name; a folder is searched.
pub fn discover(
    search: &EvalSearch,
    project_of: &dyn Fn(&Path) -> PathBuf,
) -> Result<DiscoveryResult, DiscoverError> {
    let mut all = FolderSearchResult::default();
    let mut searched = Vec::new();
    let mut skills = Vec::new();
    if let Some(evals) = &search.evals {
        let path = path_in_skillet(evals, search.skillet.as_deref()).unwrap_or_else(|| absolute_path(evals));
        all = find_at_path(&path, &mut searched)?;
    } else {
        for path in &search.paths {
            refuse_unknown_name(path, search.skillet.as_deref())?;
            let path =
                path_in_skillet(path, search.skillet.as_deref()).unwrap_or_else(|| absolute_path(path));
            let before = searched.len();
            let skill = skill_folder_at(&path);
            let is_alone = search.paths.len() == 1;
            let found = match (&skill, spec_of_command(&path)) {
                (Some(skill), _) => find_for_skill(skill, &project_of(skill), &mut searched)?,
                (None, Some(spec)) => find_at_path(&spec, &mut searched)?,
                (None, None) if is_command_file(&path) => {
                    find_for_command(&path, &project_of(&path), &mut searched)?
                }
                (None, None) => find_at_path(&path, &mut searched)?,
            };
            // A path without any evals is probably a slip, even if other paths have some.
            match found.found.is_empty() {
                true if skill.is_some() || is_command_file(&path) => skills.push(path),
                true if !is_alone => return Err(no_evals_error(searched.split_off(before), found.skipped)),
                _ => {}
            }
            all.found.extend(found.found);
            all.skipped.extend(found.skipped);
        }
    }
    let FolderSearchResult { mut found, mut skipped } = all;
    // A file that is reached twice counts once, with the outer of the two root folders.
    found.sort();
    found.dedup_by(|again, first| {
        let is_same = again.file == first.file;
        if is_same && first.skill.is_none() {
            first.skill = again.skill.take();
        }
        is_same
    });
    skipped.retain(|skipped| found.iter().all(|found| found.file != skipped.path));
    skipped.dedup();
    searched.dedup();
    if found.is_empty() {
        return Err(no_evals_error(searched, skipped));
    }
    if skills.len() > 1 {
        return Err(DiscoverError::SeveralSkills(skills));
    }
    Ok(DiscoveryResult { files: found, skipped, skill: skills.pop() })
}

fn no_evals_error(searched: Vec<PathBuf>, skipped: Vec<SkippedFile>) -> DiscoverError {
    match skipped.is_empty() {
        true => DiscoverError::NoEvals(searched),
        false => DiscoverError::AllSkipped { searched, skipped },
    }
}

impl EvalSearch {
    /// Gives the skill whose evals are elsewhere, as the user says with `--evals`.
    pub fn skill_of_evals(&self) -> Option<PathBuf> {
        match (&self.evals, self.paths.as_slice()) {
            (Some(_), [path]) => skill_or_command_at(path),
            (Some(_) | None, _) => None,
        }
    }

    /// Gives the skills among the given paths. The evals of each are about it, unless they say otherwise.
    pub fn named_skills(&self) -> Vec<PathBuf> {
        self.paths.iter().filter_map(|path| skill_or_command_at(path)).collect()
    }
}

/// Gives the skill folder or command file that a path names.
fn skill_or_command_at(path: &Path) -> Option<PathBuf> {
    let path = absolute_path(path);
    skill_folder_at(&path).or_else(|| is_command_file(&path).then_some(path))
}

/// Says whether a path is a command file. It may be any Markdown file, because no eval is written in Markdown.
fn is_command_file(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "md") && path.is_file()
}

fn absolute_path(path: &Path) -> PathBuf {
    normalise_path(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Gives the folder or file of Skillet's own evals for a path that does not exist here.
fn path_in_skillet(path: &Path, skillet: Option<&Path>) -> Option<PathBuf> {
    let bare = path.components().all(|part| matches!(part, Component::Normal(_))) && !path.exists();
    let folder = absolute_path(&skillet?.join("evals").join(path));
    (bare && folder.exists()).then_some(folder)
}

/// Gives an error that lists the evals in Skillet's own folder, for a bare name that exists neither here nor
/// there.
fn refuse_unknown_name(path: &Path, skillet: Option<&Path>) -> Result<(), DiscoverError> {
    let is_bare = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_known = path.symlink_metadata().is_ok() || path_in_skillet(path, skillet).is_some();
    let (names, folder) = (names_in_skillet(skillet), skillet.map(|skillet| skillet.join("evals")));
    match folder {
        Some(folder) if is_bare && !is_known && !names.is_empty() => {
            Err(DiscoverError::MissingInSkillet { path: path.display().to_string(), folder, names })
        }
        _ => Ok(()),
    }
}

/// Lists the names in the folder of Skillet's own evals.
fn names_in_skillet(skillet: Option<&Path>) -> Vec<String> {
    let entries = skillet.and_then(|skillet| std::fs::read_dir(skillet.join("evals")).ok());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Gives the skill folder that a path names, if it names one.
fn skill_folder_at(path: &Path) -> Option<PathBuf> {
    if path.file_name().is_some_and(|name| name == SKILL_FILE) && path.is_file() {
        return path.parent().map(Path::to_owned);
    }
    path.join(SKILL_FILE).is_file().then(|| path.to_owned())
}

/// Gives the spec that lies beside a command file.
fn spec_of_command(path: &Path) -> Option<PathBuf> {
    let spec = path.with_extension("eval.json");
    (is_command_file(path) && spec.is_file()).then_some(spec)
}

fn find_at_path(path: &Path, searched: &mut Vec<PathBuf>) -> Result<FolderSearchResult, DiscoverError> {
    if path.is_dir() {
        searched.push(path.to_owned());
        return Ok(search_folder(path));
    }
    // A broken link exists. Reading it will report what is wrong with it.
    if path.symlink_metadata().is_ok() {
        let root = path.parent().unwrap_or(path).to_owned();
        let file = EvalFile { file: path.to_owned(), root, skill: None, found_by: DiscoveryMethod::Name };
        return Ok(FolderSearchResult { found: vec![file], skipped: Vec::new() });
    }
    Err(DiscoverError::Missing(path.to_owned()))
}

/// Finds the evals of a skill in the first place that has any. A file among the skill's own files that only looks
/// like evals (an example, data for its scripts) counts only if there are no others.
fn find_for_skill(
    skill: &Path,
    project: &Path,
    searched: &mut Vec<PathBuf>,
) -> Result<FolderSearchResult, DiscoverError> {
    searched.push(skill.to_owned());
    let FolderSearchResult { found, mut skipped } = search_folder(skill);
    let (usual, unusual): (Vec<EvalFile>, Vec<EvalFile>) =
        found.into_iter().partition(|found| is_usual_place(&found.file, skill));
    let passed_over = |found: &EvalFile| SkippedFile { path: found.file.clone(), why: REASON_OUTSIDE_EVALS };
    let left_over: Vec<SkippedFile> = unusual.iter().map(passed_over).collect();
    if !usual.is_empty() {
        skipped.extend(left_over);
        return Ok(FolderSearchResult { found: usual, skipped });
    }
    let mut there = find_outside_skill(skill, project, skipped, searched)?;
    if there.found.is_empty() {
        there.found = unusual;
    } else {
        there.skipped.extend(left_over);
    }
    Ok(there)
}

/// The reason for skipping a file inside a skill that looks like evals.
const REASON_OUTSIDE_EVALS: &str = "among the files of the skill, not in its folder of evals";

/// Says whether a file lies where the evals of a skill usually are: directly beside its SKILL.md with an eval
/// file's name, or in a folder for evals.
fn is_usual_place(file: &Path, skill: &Path) -> bool {
    const EVAL_FOLDERS: [&str; 4] = ["evals", "eval", "evaluations", "tests"];
    let Ok(below) = file.strip_prefix(skill) else { return true };
    let mut parts = below.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(folder)), Some(_)) => EVAL_FOLDERS.iter().any(|known| folder == *known),
        _ => EvalFileKind::detect(file).holds_evals(),
    }
}

/// Finds the evals of a skill outside its folder.
fn find_outside_skill(
    skill: &Path,
    project: &Path,
    mut skipped: Vec<SkippedFile>,
    searched: &mut Vec<PathBuf>,
) -> Result<FolderSearchResult, DiscoverError> {
    let Some(name) = skill.file_name() else { return Ok(FolderSearchResult { found: Vec::new(), skipped }) };
    let beside = skill.parent().and_then(Path::parent).map(|above| above.join("evals").join(name));
    let in_project = project.join("evals").join(name);
    let mut places = vec![in_project];
    places.extend(beside);
    places.dedup();
    for place in places.into_iter().rev() {
        searched.push(place.clone());
        let there = search_folder(&place).only_directly_in(&place);
        if !there.found.is_empty() {
            return Ok(FolderSearchResult {
                found: assign_skill(there.found, skill),
                skipped: there.skipped,
            });
        }
        skipped.extend(there.skipped);
    }
    let all_evals = project.join("evals");
    searched.push(all_evals.join("**").join(name));
    let mut places: BTreeMap<PathBuf, Vec<EvalFile>> = BTreeMap::new();
    for found in search_folder(&all_evals).found {
        let place = found.file.ancestors().find(|above| above.file_name() == Some(name)).map(Path::to_owned);
        if let Some(place) = place {
            places.entry(place.clone()).or_default().push(EvalFile { root: place, ..found });
        }
    }
    if places.len() > 1 {
        let skill = name.to_string_lossy().into_owned();
        return Err(DiscoverError::Ambiguous { skill, places: places.into_keys().collect() });
    }
    let Some((place, found)) = places.into_iter().next() else {
        return Ok(FolderSearchResult { found: Vec::new(), skipped });
    };
    let there = FolderSearchResult { found: assign_skill(found, skill), skipped }.only_directly_in(&place);
    Ok(there)
}

/// Finds the evals of a command file that has no spec beside it: a file or folder of the same name, beside it, in
/// `evals` beside it, or in the project's `evals`.
fn find_for_command(
    file: &Path,
    project: &Path,
    searched: &mut Vec<PathBuf>,
) -> Result<FolderSearchResult, DiscoverError> {
    let folder = file.parent().unwrap_or(file);
    let mut skipped = Vec::new();
    let Some(name) = file.file_stem().and_then(|stem| stem.to_str()) else {
        return Ok(FolderSearchResult::default());
    };
    for place in [folder.to_owned(), folder.join("evals"), project.join("evals")] {
        let files = EVAL_FILE_ENDINGS.map(|ending| place.join(format!("{name}{ending}")));
        let own_folder = place.join(name);
        searched.push(place);
        let mut there =
            if own_folder.is_dir() { search_folder(&own_folder) } else { FolderSearchResult::default() };
        for suite in files.iter().filter(|file| file.is_file()) {
            there.found.extend(find_at_path(suite, searched)?.found);
        }
        if !there.found.is_empty() {
            return Ok(FolderSearchResult { found: assign_skill(there.found, file), ..there });
        }
        skipped.extend(there.skipped);
    }
    Ok(FolderSearchResult { found: Vec::new(), skipped })
}

fn assign_skill(found: Vec<EvalFile>, skill: &Path) -> Vec<EvalFile> {
    found.into_iter().map(|found| EvalFile { skill: Some(skill.to_owned()), ..found }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "practicum: 1\n";
    const EVAL: &str = "timestamp: x\nname: n\nprompt: p\nexpected: e\n";

    /// Gives the files found for `ask` in a tree, relative to it, or the kind of error.
    fn check(files: &[(&str, &str)], ask: &str, evals: Option<&str>) -> Result<Vec<String>, &'static str> {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path().canonicalize().expect("real");
        for (path, content) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, content).expect("write");
        }
        let search = EvalSearch {
            paths: vec![if ask == "bare" { ask.into() } else { root.join(ask) }],
            evals: evals.map(|evals| root.join(evals)),
            skillet: Some(root.join("home/.skillet")),
        };
        let relative = |path: &Path| path.strip_prefix(&root).expect("below").display().to_string();
        match discover(&search, &|_| root.clone()) {
            Ok(found) => Ok(found
                .files
                .iter()
                .map(|found| format!("{} @{}", relative(&found.file), relative(&found.root)))
                .collect()),
            Err(DiscoverError::Missing(_) | DiscoverError::MissingInSkillet { .. }) => Err("missing"),
            Err(DiscoverError::NoEvals(_)) => Err("nothing"),
            Err(DiscoverError::AllSkipped { .. }) => Err("ignored"),
            Err(DiscoverError::SeveralSkills(_)) => Err("several skills"),
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
            // An example that a skill shows does not replace its evals.
            (
                vec![skill, ("skills/s/assets/evals.json", "{}"), ("evals/s/evals.json", "{}")],
                "skills/s",
                None,
                ok(&["evals/s/evals.json @evals/s"]),
            ),
            (
                vec![skill, ("skills/s/assets/evals.json", "{}"), ("skills/s/evals/evals.json", "{}")],
                "skills/s",
                None,
                ok(&["skills/s/evals/evals.json @skills/s"]),
            ),
            (
                vec![skill, ("skills/s/assets/evals.json", "{}")],
                "skills/s",
                None,
                ok(&["skills/s/assets/evals.json @skills/s"]),
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
                Err("ignored"),
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
                ok(&["a/1.yaml @a", "a/2.yaml @a", "a/3.yaml @a", "a/other.yaml @a"]),
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
            (vec![("commands/c.md", "x")], "commands/c.md", None, Err("nothing")),
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
        let search = EvalSearch { paths: vec![evals.join("inner"), evals.clone()], ..EvalSearch::default() };
        let found = discover(&search, &|path| path.to_owned()).expect("found");
        let places: Vec<(PathBuf, PathBuf)> =
            found.files.into_iter().map(|found| (found.file, found.root)).collect();
        // A broken link counts as an eval that cannot be read.
        let expected =
            ["broken.yaml", "inner/near.yaml", "linked.yaml"].map(|file| (evals.join(file), evals.clone()));
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
        let search = EvalSearch { paths: vec![skill.clone()], ..EvalSearch::default() };
        let found = discover(&search, &|_| root.clone()).expect("found");
        assert_eq!(found.files.iter().map(|found| found.skill.as_ref()).collect::<Vec<_>>(), [Some(&skill)]);
        assert_eq!(search.skill_of_evals(), None);
        let elsewhere = EvalSearch { evals: Some(root.join("other")), ..search };
        assert_eq!(elsewhere.skill_of_evals(), Some(skill));
    }

    #[test]
    fn a_circle_of_links_ends() {
        let tree = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(tree.path(), tree.path().join("again")).expect("link");
        std::fs::write(tree.path().join("x.practicum.yaml"), SUITE).expect("write");
        let search = EvalSearch { paths: vec![tree.path().to_owned()], ..EvalSearch::default() };
        assert_eq!(discover(&search, &|path| path.to_owned()).expect("found").files.len(), 1);
    }
}
