//! Finds the eval files for the paths that the user gives.
//!
//! In: paths. Out: `EvalFile`, a file and the folder its suite begins at. Never: reads the cases of a file.

mod file_kind;
mod folder_search;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use self::file_kind::EvalFileKind;
pub use self::folder_search::{EDITOR_SCHEMA_FILE, SkippedFile};
use self::folder_search::{FolderSearchResult, search_folder};
use crate::dialects::EvalRegistry;
use practicum_skills::skill::{SKILL_FILE, normalise_path};

/// An eval file that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvalFile {
    /// The path of the file.
    pub file: PathBuf,
    /// The folder below which its cases are named.
    pub root: PathBuf,
    /// The skill for which the file was searched, if the file does not lie in the skill's folder.
    pub skill: Option<PathBuf>,
    /// How the file was found.
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
    /// The eval files that were found.
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
    /// The formats whose files are searched.
    pub registry: EvalRegistry,
}

/// An error: no eval files were found, or it is not clear which are meant.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// A path that does not exist.
    #[error("there is no {0}")]
    Missing(PathBuf),
    /// A name that exists neither here nor among Skillet's own evals.
    #[error("there is no {path}, and none in {}, which has {}", .folder.display(), .names.join(", "))]
    MissingInSkillet {
        /// The name that was given.
        path: String,
        /// Skillet's own folder of evals.
        folder: PathBuf,
        /// The names of what is in that folder.
        names: Vec<String>,
    },
    /// No eval file was found.
    #[error(
        "no eval files found; looked in {}{}\n  \
         They are called {}, or are Skillet's YAML; practicum init SKILL writes first ones",
        list_paths(.searched),
        describe_missing_skill(.searched),
        .names.join(", ")
    )]
    NoEvals {
        /// The places that were searched.
        searched: Vec<PathBuf>,
        /// The names that eval files have.
        names: Vec<&'static str>,
    },
    /// All files that look like evals were left out.
    #[error(
        "no eval files found in {}; skipped: {}\n  Name one of them, or its folder, to use it",
        list_paths(.searched),
        describe_skipped(.skipped)
    )]
    AllSkipped {
        /// The places that were searched.
        searched: Vec<PathBuf>,
        /// The files that were left out.
        skipped: Vec<SkippedFile>,
    },
    /// Several skills were named that have no evals.
    #[error("{} have no evals of their own; name the skill that the evals are run with by --skill", list_paths(.0))]
    SeveralSkills(Vec<PathBuf>),
    /// A skill without evals was named beside the evals of another skill.
    #[error(
        "{} has no evals of its own, and {} is about another skill; leave the first out, or run those evals with it by --skill",
        .skill.display(), .evals.display()
    )]
    EvalsOfAnotherSkill {
        /// The skill without evals.
        skill: PathBuf,
        /// A file about another skill.
        evals: PathBuf,
    },
    /// It is not clear which folder holds the evals of a skill.
    #[error("several folders could hold the evals of {skill}: {}; choose one with --evals", list_paths(.places))]
    Ambiguous {
        /// The name of the skill.
        skill: String,
        /// The folders that could hold its evals.
        places: Vec<PathBuf>,
    },
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
    let registry = &search.registry;
    let mut evals_of_skills = Vec::new();
    if let Some(evals) = &search.evals {
        let path = path_in_skillet(evals, search.skillet.as_deref()).unwrap_or_else(|| absolute_path(evals));
        all = find_at_path(&path, registry, &mut searched)?;
    } else {
        for given in &search.paths {
            refuse_unknown_name(given, search.skillet.as_deref())?;
            let path =
                path_in_skillet(given, search.skillet.as_deref()).unwrap_or_else(|| absolute_path(given));
            let before = searched.len();
            let skill = skill_folder_at(&path);
            let is_alone = search.paths.len() == 1;
            let mut found = match (&skill, spec_of_command(&path)) {
                (Some(skill), _) => find_for_skill(skill, &project_of(skill), registry, &mut searched)?,
                (None, Some(spec)) => find_at_path(&spec, registry, &mut searched)?,
                (None, None) if is_command_file(&path) => {
                    find_for_command(&path, &project_of(&path), registry, &mut searched)?
                }
                (None, None) => find_at_path(&path, registry, &mut searched)?,
            };
            if let (true, Some(skill), Some(evals)) =
                (found.found.is_empty(), &skill, evals_in_skillet(given, search.skillet.as_deref()))
            {
                found = find_at_path(&evals, registry, &mut searched)?;
                found.found.iter_mut().for_each(|found| found.skill = Some(skill.clone()));
            }
            // A path without any evals is probably a slip, even if other paths have some.
            let is_skill = skill.is_some() || is_command_file(&path);
            let belongs_to_skill = |found: &&EvalFile| is_skill || is_found_in_skill(found);
            evals_of_skills.extend(found.found.iter().find(belongs_to_skill).map(|found| found.file.clone()));
            match found.found.is_empty() {
                true if is_skill => skills.push(path),
                true if !is_alone => {
                    return Err(no_evals_error(searched.split_off(before), found.skipped, registry));
                }
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
        return Err(no_evals_error(searched, skipped, registry));
    }
    // The evals of one skill must not be run with another skill only because both are named.
    if let (Some(skill), Some(evals)) = (skills.first(), evals_of_skills.first()) {
        return Err(DiscoverError::EvalsOfAnotherSkill { skill: skill.clone(), evals: evals.clone() });
    }
    if skills.len() > 1 {
        return Err(DiscoverError::SeveralSkills(skills));
    }
    Ok(DiscoveryResult { files: found, skipped, skill: skills.pop() })
}

/// Says whether a search found this file in the folder of a skill, so that the file is about that skill. If the user
/// names the file itself, it may be run with any skill.
fn is_found_in_skill(found: &EvalFile) -> bool {
    let mut above = found.file.ancestors().skip(1);
    found.found_by == DiscoveryMethod::Search && above.any(|folder| folder.join(SKILL_FILE).is_file())
}

fn no_evals_error(
    searched: Vec<PathBuf>,
    skipped: Vec<SkippedFile>,
    registry: &EvalRegistry,
) -> DiscoverError {
    match skipped.is_empty() {
        true => DiscoverError::NoEvals { searched, names: registry.eval_file_names() },
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
    evals_in_skillet(path, skillet).filter(|_| !path.exists())
}

/// Gives the folder or file of Skillet's own evals that a bare name is the name of.
fn evals_in_skillet(path: &Path, skillet: Option<&Path>) -> Option<PathBuf> {
    let is_bare = path.components().all(|part| matches!(part, Component::Normal(_)));
    let folder = absolute_path(&skillet?.join("evals").join(path));
    (is_bare && folder.exists()).then_some(folder)
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

fn find_at_path(
    path: &Path,
    registry: &EvalRegistry,
    searched: &mut Vec<PathBuf>,
) -> Result<FolderSearchResult, DiscoverError> {
    let is_folder = path.is_dir();
    if is_folder && !registry.knows_folder(path) {
        searched.push(path.to_owned());
        return Ok(search_folder(path, registry));
    }
    // A broken link exists. Reading it will report what is wrong with it.
    if is_folder || path.symlink_metadata().is_ok() {
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
    registry: &EvalRegistry,
    searched: &mut Vec<PathBuf>,
) -> Result<FolderSearchResult, DiscoverError> {
    searched.push(skill.to_owned());
    let FolderSearchResult { found, mut skipped } = search_folder(skill, registry);
    let (usual, unusual): (Vec<EvalFile>, Vec<EvalFile>) =
        found.into_iter().partition(|found| is_usual_place(&found.file, skill, registry));
    let passed_over = |found: &EvalFile| SkippedFile { path: found.file.clone(), why: REASON_OUTSIDE_EVALS };
    let left_over: Vec<SkippedFile> = unusual.iter().map(passed_over).collect();
    if !usual.is_empty() {
        skipped.extend(left_over);
        return Ok(FolderSearchResult { found: usual, skipped });
    }
    let mut there = find_outside_skill(skill, project, skipped, registry, searched)?;
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
fn is_usual_place(file: &Path, skill: &Path, registry: &EvalRegistry) -> bool {
    const EVAL_FOLDERS: [&str; 4] = ["evals", "eval", "evaluations", "tests"];
    let Ok(below) = file.strip_prefix(skill) else { return true };
    let mut parts = below.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(folder)), Some(_)) => EVAL_FOLDERS.iter().any(|known| folder == *known),
        _ => file.is_dir() || EvalFileKind::detect(file, registry).holds_evals(),
    }
}

/// Finds the evals of a skill outside its folder.
fn find_outside_skill(
    skill: &Path,
    project: &Path,
    mut skipped: Vec<SkippedFile>,
    registry: &EvalRegistry,
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
        let there = search_folder(&place, registry).only_directly_in(&place);
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
    for found in search_folder(&all_evals, registry).found {
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
    registry: &EvalRegistry,
    searched: &mut Vec<PathBuf>,
) -> Result<FolderSearchResult, DiscoverError> {
    let folder = file.parent().unwrap_or(file);
    let mut skipped = Vec::new();
    let Some(name) = file.file_stem().and_then(|stem| stem.to_str()) else {
        return Ok(FolderSearchResult::default());
    };
    for place in [folder.to_owned(), folder.join("evals"), project.join("evals")] {
        let endings = registry.eval_file_names().into_iter().filter_map(|known| known.strip_prefix('*'));
        let files: Vec<PathBuf> = endings.map(|ending| place.join(format!("{name}{ending}"))).collect();
        let own_folder = place.join(name);
        searched.push(place);
        let mut there = if own_folder.is_dir() {
            search_folder(&own_folder, registry)
        } else {
            FolderSearchResult::default()
        };
        for suite in files.iter().filter(|file| file.is_file()) {
            there.found.extend(find_at_path(suite, registry, searched)?.found);
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
