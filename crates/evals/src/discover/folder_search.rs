//! Finds the eval files below a folder, and lists those that were left out.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::gitignore::Gitignore;

use super::file_kind::{DataSyntax, EvalFileKind, NeighbourKind, is_broken_link, is_named_like_evals};
use super::{DiscoveryMethod, EvalFile};
use crate::checks::map_in_parallel;
use crate::dialects::EvalRegistry;
use practicum_skills::project_files::{has_unreadable_ignore_file, skip_unreadable_ignore_files};
use practicum_skills::skill::SKILL_FILE;

/// The result of searching a folder.
#[derive(Debug, Default)]
pub struct FolderSearchResult {
    pub found: Vec<EvalFile>,
    /// Files that look like evals, or lie among evals, and were left out.
    pub skipped: Vec<SkippedFile>,
}

/// A file or folder that was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedFile {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// The reason for leaving it out, for a message.
    pub why: &'static str,
}

/// The file with the schema of native eval files, which editors read. It lies beside evals and holds none.
pub const EDITOR_SCHEMA_FILE: &str = "practicum.schema.json";

/// The names of files that hold the evals of a whole folder, which may have fixtures and overlays beside them.
const FOLDER_EVAL_NAMES: [&str; 3] = ["evals.json", "triggers.json", "cases.json"];

/// Says whether a folder has eval files for the whole folder.
fn has_folder_evals(folder: &Path) -> bool {
    FOLDER_EVAL_NAMES.iter().any(|name| folder.join(name).is_file())
}

/// The reason for leaving out a file among the fixtures or overlays of evals.
const REASON_EVAL_MATERIAL: &str = "a fixture or overlay of an eval, not an eval";

impl FolderSearchResult {
    /// Leaves out the JSON files below the folders in a place that has eval files of its own.
    pub fn only_directly_in(self, place: &Path) -> Self {
        if !has_folder_evals(place) {
            return self;
        }
        self.skip_where(|file| {
            let is_json = file.extension().is_some_and(|ending| ending == "json");
            is_json && file.starts_with(place) && file.parent() != Some(place)
        })
    }

    fn skip_where(self, is_left_out: impl Fn(&Path) -> bool) -> Self {
        let (left_out, found): (Vec<EvalFile>, Vec<EvalFile>) =
            self.found.into_iter().partition(|found| is_left_out(&found.file));
        let mut skipped = self.skipped;
        skipped.extend(
            left_out.into_iter().map(|found| SkippedFile { path: found.file, why: REASON_EVAL_MATERIAL }),
        );
        Self { found, skipped }
    }
}

/// Whether a file lies in the fixtures or overlays of evals: in `files` or `setup` beside an eval file, or in the
/// `setup` of one eval. Such files are given to agents, and ask nothing.
fn is_eval_material(file: &Path, root: &Path) -> bool {
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != root);
    let mut named = folders.filter_map(|folder| Some((folder.file_name()?, folder.parent()?)));
    named.any(|(name, above)| {
        let of_one_eval = || name == "setup" && above.parent().is_some_and(has_folder_evals);
        (name == "files" || name == "setup") && has_folder_evals(above) || of_one_eval()
    })
}

/// Folders that never hold anyone's evals, unless they are named themselves.
const FOLDERS_LEFT_OUT: [&str; 4] = ["node_modules", "target", ".venv", "__pycache__"];

/// Folders of records, in which nobody looks for evals.
const RECORD_FOLDERS: [&str; 3] = [".git", ".practicum", ".clauditor"];

/// Finds every eval file below a folder, as git sees the folder. A link to a file counts unless the file itself is
/// found. A link to a folder is followed once, if the folder is elsewhere in the same project.
pub fn search_folder(folder: &Path, registry: &EvalRegistry) -> FolderSearchResult {
    let mut linked = LinkedFolders::for_folder(folder);
    let mut seen = candidate_files(folder, folder, registry, &mut linked);
    while let Some((link, target)) = linked.next() {
        let there = candidate_files(&target, folder, registry, &mut linked);
        let by_link = |found: EvalFile| match found.file.strip_prefix(&target) {
            Ok(rest) => EvalFile { file: link.join(rest), ..found },
            Err(_) => found,
        };
        seen.extend(there.into_iter().map(|(_, found, looks)| (true, by_link(found), looks)));
    }
    let (material, seen): (Vec<_>, Vec<_>) =
        without_duplicates(seen).into_iter().partition(|(found, _)| is_eval_material(&found.file, folder));
    let mut all = select_evals(folder, seen, registry);
    let material = material.into_iter().filter(|(_, looks)| looks.holds_evals());
    all.skipped
        .extend(material.map(|(found, _)| SkippedFile { path: found.file, why: REASON_EVAL_MATERIAL }));
    let ignored = ignored_evals(folder, &all, &linked.outside, registry);
    all.skipped.extend(ignored);
    all.skipped.sort();
    all
}

/// The links to folders that a search has met.
struct LinkedFolders {
    project: PathBuf,
    /// The real folders that were searched, including their subfolders.
    searched: Vec<PathBuf>,
    /// Links that are not yet searched, each with its real folder.
    unsearched: Vec<(PathBuf, PathBuf)>,
    /// Links that lead out of the project.
    outside: Vec<PathBuf>,
}

impl LinkedFolders {
    /// Starts the list for a search of this folder. Its project is the nearest folder at or above it that has
    /// `.git` or `practicum.toml`.
    fn for_folder(folder: &Path) -> Self {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let is_project =
            |above: &&Path| [".git", "practicum.toml"].iter().any(|name| above.join(name).exists());
        let project = real.ancestors().find(is_project).unwrap_or(&real).to_owned();
        Self { project, searched: vec![real], unsearched: Vec::new(), outside: Vec::new() }
    }

    fn add(&mut self, link: PathBuf) {
        match link.canonicalize() {
            Ok(target) if target.starts_with(&self.project) => self.unsearched.push((link, target)),
            Ok(_) | Err(_) => self.outside.push(link),
        }
    }

    /// Gives the next folder to search. A folder that contains a searched one, or lies in one, is skipped, because
    /// files would be found twice.
    fn next(&mut self) -> Option<(PathBuf, PathBuf)> {
        while let Some((link, target)) = self.unsearched.pop() {
            let is_searched = |known: &PathBuf| target.starts_with(known) || known.starts_with(&target);
            if !self.searched.iter().any(is_searched) {
                self.searched.push(target.clone());
                return Some((link, target));
            }
        }
        None
    }
}

/// How many folders inside each other are searched. The time for each grows with the length of its path, and no project
/// has so many.
const DEEPEST_FOLDER: usize = 100;

/// Gives the files below a folder that may hold evals, each with whether it is reached by a link.
fn candidate_files(
    folder: &Path,
    root: &Path,
    registry: &EvalRegistry,
    linked: &mut LinkedFolders,
) -> Vec<(bool, EvalFile, EvalFileKind)> {
    let eval_folders = Arc::new(Mutex::new(Vec::new()));
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.hidden(false)
        .require_git(false)
        // Only the project's own ignore files count, not those of this machine.
        .ignore(false)
        .git_global(false)
        .git_exclude(false)
        // A user who names an ignored folder wants what is in it.
        .parents(!is_ignored(folder))
        .follow_links(false)
        .max_depth(Some(DEEPEST_FOLDER));
    skip_unreadable_ignore_files(&mut walk, folder);
    // The parallel walk of this crate waits for ever if one of its threads cannot be started, so folders are listed on
    // this thread. Reading the files takes longer, and that is shared.
    let walk = walk.filter_entry(entry_filter(registry.clone(), Arc::clone(&eval_folders))).build();
    let mut files: Vec<(bool, PathBuf)> = Vec::new();
    for entry in walk.flatten() {
        if is_link_to_folder(&entry) {
            linked.add(entry.into_path());
        } else if is_file(&entry) {
            files.push((entry.path_is_symlink(), entry.into_path()));
        }
    }
    let kinds = map_in_parallel(&files, |(_, path)| EvalFileKind::detect(path, registry));
    let evals = files.into_iter().zip(kinds).filter(|(_, looks)| *looks != EvalFileKind::Other);
    let mut seen: Vec<(bool, EvalFile, EvalFileKind)> = evals
        .map(|((linked, file), looks)| {
            let root = root.to_owned();
            (linked, EvalFile { file, root, skill: None, found_by: DiscoveryMethod::Search }, looks)
        })
        .collect();
    let folders = eval_folders.lock().map(|mut folders| std::mem::take(&mut *folders)).unwrap_or_default();
    seen.extend(folders.into_iter().map(|file| {
        let found = EvalFile { file, root: root.to_owned(), skill: None, found_by: DiscoveryMethod::Search };
        (false, found, EvalFileKind::NamedAsEvals)
    }));
    seen
}

/// Makes the function that says which entries below a folder are searched. A folder that is one eval is kept in
/// `eval_folders` and not searched, because all that lies below it belongs to the eval.
fn entry_filter(
    registry: EvalRegistry,
    eval_folders: Arc<Mutex<Vec<PathBuf>>>,
) -> impl Fn(&ignore::DirEntry) -> bool + Send + Sync {
    move |entry| {
        let name = entry.file_name();
        let left_out = FOLDERS_LEFT_OUT.iter().chain(&RECORD_FOLDERS).any(|known| name == *known);
        if entry.depth() == 0 {
            return true;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let is_schema = name == EDITOR_SCHEMA_FILE;
        if left_out
            || is_schema
            || is_for_review(name)
            || is_folder && has_unreadable_ignore_file(entry.path())
        {
            return false;
        }
        let is_eval = is_folder && registry.knows_folder(entry.path());
        if is_eval && let Ok(mut folders) = eval_folders.lock() {
            folders.push(entry.path().to_owned());
        }
        !is_eval
    }
}

/// Says whether an entry below the folder is a link to another folder.
fn is_link_to_folder(entry: &ignore::DirEntry) -> bool {
    entry.depth() > 0 && entry.path_is_symlink() && entry.path().is_dir()
}

/// Says whether a file or folder holds cases that a model proposed and nobody has accepted yet, or rewordings of prompts.
fn is_for_review(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.contains(".candidates") || name.contains(".rewordings")
}

/// Says whether an entry is a file. A link counts as its target; a broken link to evals counts as a file that
/// cannot be read.
fn is_file(entry: &ignore::DirEntry) -> bool {
    let leads_to_file = || entry.path().is_file() || is_broken_eval_link(entry.path());
    entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink() && leads_to_file())
}

/// Keeps each file once: under a name for evals if there is one, as the file itself before a link, otherwise the
/// first link.
fn without_duplicates(mut seen: Vec<(bool, EvalFile, EvalFileKind)>) -> Vec<(EvalFile, EvalFileKind)> {
    // Only a link can lead to a file that was already found.
    if seen.iter().any(|(linked, ..)| *linked) {
        seen.sort_by(|(linked, found, looks), (other_linked, other, other_looks)| {
            let place = |looks: &EvalFileKind, linked: bool| (!looks.holds_evals(), linked);
            place(looks, *linked).cmp(&place(other_looks, *other_linked)).then_with(|| found.cmp(other))
        });
        let mut real = HashSet::new();
        let mut once = |found: &EvalFile| {
            real.insert(std::fs::canonicalize(&found.file).unwrap_or_else(|_| found.file.clone()))
        };
        seen.retain(|(_, found, _)| once(found));
    }
    seen.into_iter().map(|(_, found, looks)| (found, looks)).collect()
}

/// Separates the evals from the other files. An incomplete eval among evals is read, because its author probably
/// forgot something; the reader then reports what is missing.
fn select_evals(
    folder: &Path,
    seen: Vec<(EvalFile, EvalFileKind)>,
    registry: &EvalRegistry,
) -> FolderSearchResult {
    let neighbours = EvalFolders::of_files(&seen);
    let yaml = &neighbours.yaml_cases;
    let mut yaml_root = eval_folder(folder, yaml);
    // Where nothing else is found, half an eval is what the user means.
    if !seen.iter().any(|(_, looks)| looks.holds_evals()) && !is_more_than_evals(folder) {
        yaml_root = Some(folder.to_owned());
    }
    let among = |file: &Path| yaml_root.as_ref().is_some_and(|root| file.starts_with(root));
    let mut all = FolderSearchResult::default();
    for (found, looks) in seen {
        let file = &found.file;
        let is_taken = match looks {
            EvalFileKind::NamedAsEvals | EvalFileKind::Evals(_) => true,
            EvalFileKind::PartialEval(DataSyntax::Yaml) if among(file) => true,
            EvalFileKind::PartialEval(syntax) => neighbours.has(file, syntax),
            EvalFileKind::Unfinished(_) | EvalFileKind::Data(_) => {
                neighbours.should_read(file, looks, registry)
            }
            EvalFileKind::Other => false,
        };
        if is_taken {
            all.found.push(found);
        } else if !yaml.is_empty() && among(file) && is_yaml(looks)
            || neighbours.should_name(file)
            || is_named_like_evals(file, registry) && looks != EvalFileKind::Data(DataSyntax::Yaml)
        {
            let why = match looks {
                EvalFileKind::Data(DataSyntax::Unsupported) => "evals are written in JSON or YAML",
                _ => "it holds no eval",
            };
            all.skipped.push(SkippedFile { path: found.file, why });
        }
    }
    all
}

/// The folders in which evals lie directly.
struct EvalFolders {
    /// Each folder with the syntax of evals in it.
    folders: BTreeSet<(PathBuf, DataSyntax)>,
    /// The folders with evals whose content alone says so, in YAML: one file for each case.
    yaml_cases: BTreeSet<PathBuf>,
    /// The same in JSON.
    json_cases: BTreeSet<PathBuf>,
}

impl EvalFolders {
    fn of_files(seen: &[(EvalFile, EvalFileKind)]) -> Self {
        let files = || seen.iter().filter(|(_, looks)| looks.holds_evals());
        let folder_and_syntax = |(found, _): &(EvalFile, _)| {
            Some((found.file.parent()?.to_owned(), DataSyntax::of_path(&found.file)?))
        };
        let by_content = |syntax: DataSyntax| {
            let files = files().filter(|(_, looks)| *looks == EvalFileKind::Evals(syntax));
            files.filter_map(|(found, _)| found.file.parent().map(Path::to_owned)).collect()
        };
        Self {
            folders: files().filter_map(folder_and_syntax).collect(),
            yaml_cases: by_content(DataSyntax::Yaml),
            json_cases: by_content(DataSyntax::Json),
        }
    }

    /// Whether evals in this syntax lie beside a file.
    fn has(&self, file: &Path, syntax: DataSyntax) -> bool {
        file.parent().is_some_and(|folder| self.folders.contains(&(folder.to_owned(), syntax)))
    }

    fn has_any(&self, file: &Path) -> bool {
        [DataSyntax::Yaml, DataSyntax::Json].iter().any(|syntax| self.has(file, *syntax))
    }

    /// Whether a file that does not look like evals is read because of the evals beside it: it has the keys of a
    /// format after all, or it is empty or broken and written like the evals beside it.
    fn should_read(&self, file: &Path, looks: EvalFileKind, registry: &EvalRegistry) -> bool {
        let Some(folder) = file.parent().filter(|_| self.has_any(file)) else { return false };
        match looks {
            EvalFileKind::Unfinished(DataSyntax::Yaml) if self.yaml_cases.contains(folder) => return true,
            EvalFileKind::Unfinished(DataSyntax::Json) if self.json_cases.contains(folder) => return true,
            EvalFileKind::Data(DataSyntax::Unsupported) => return false,
            _ => {}
        }
        let is_alike = DataSyntax::of_path(file).is_none_or(|syntax| self.has(file, syntax));
        match NeighbourKind::detect(file, registry) {
            NeighbourKind::Evals => true,
            NeighbourKind::Broken => is_alike && !is_more_than_evals(folder),
            NeighbourKind::Data => false,
        }
    }

    /// Whether the user is told that a file is not read: one that lies directly in a folder of evals.
    fn should_name(&self, file: &Path) -> bool {
        self.has_any(file) && !file.parent().is_some_and(is_more_than_evals)
    }
}

fn is_yaml(looks: EvalFileKind) -> bool {
    matches!(
        looks,
        EvalFileKind::PartialEval(DataSyntax::Yaml)
            | EvalFileKind::Unfinished(DataSyntax::Yaml)
            | EvalFileKind::Data(DataSyntax::Yaml)
    )
}

/// Gives the folder that holds evals of one file each: the innermost folder that contains all of them, or the
/// folder above it if that still belongs to evals and lies in what the user named. Gives `None` if there are no
/// such evals.
fn eval_folder(named: &Path, with_evals: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let mut folders = with_evals.iter();
    let first = folders.next()?.clone();
    let common = |above: PathBuf, folder: &PathBuf| {
        above.ancestors().find(|above| folder.starts_with(above)).map(Path::to_owned).unwrap_or_default()
    };
    let holds_all = folders.fold(first, common);
    let above = holds_all.parent().filter(|above| above.starts_with(named) && !is_more_than_evals(above));
    Some(above.map(Path::to_owned).unwrap_or(holds_all))
}

/// Says whether a folder is a whole project or a skill.
fn is_more_than_evals(folder: &Path) -> bool {
    [".git", "practicum.toml", SKILL_FILE].iter().any(|name| folder.join(name).exists())
}

/// Says whether git ignores a folder as a whole.
fn is_ignored(folder: &Path) -> bool {
    const DEEPEST_FOLDER: usize = 64;
    for above in folder.ancestors().skip(1).take(DEEPEST_FOLDER) {
        if has_unreadable_ignore_file(above) {
            continue;
        }
        let rules = Gitignore::new(above.join(".gitignore")).0;
        if rules.matched_path_or_any_parents(folder, true).is_ignore() {
            return true;
        }
        if above.join(".git").exists() {
            return false;
        }
    }
    false
}

/// The number of entries that are searched for left-out files: enough to notice a slip, but not a whole tree of
/// dependencies.
const MOST_ENTRIES: usize = 20_000;
const MOST_READ: usize = 2_000;

/// Finds the eval files that git ignores, that were only proposed, or that lie in folders of dependencies and build
/// results, beside those that were found or left out already.
fn ignored_evals(
    folder: &Path,
    known: &FolderSearchResult,
    outside: &[PathBuf],
    registry: &EvalRegistry,
) -> Vec<SkippedFile> {
    let found = || known.found.iter().map(|found| found.file.as_path());
    // All that lies below a folder that is an eval belongs to that eval.
    let eval_folders: Vec<PathBuf> = found().filter(|path| path.is_dir()).map(Path::to_owned).collect();
    let found = found();
    let known: HashSet<&Path> = found.chain(known.skipped.iter().map(|left| left.path.as_path())).collect();
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .max_depth(Some(DEEPEST_FOLDER))
        .filter_entry(move |entry| {
            let name = entry.file_name();
            let is_record = RECORD_FOLDERS.iter().any(|known| name == *known);
            let is_eval = eval_folders.iter().any(|folder| folder == entry.path());
            entry.depth() == 0 || !is_record && !is_eval
        })
        .build();
    let entries = walk.take(MOST_ENTRIES).flatten().filter(|entry| entry.depth() > 0);
    let candidates = entries.filter(|entry| match entry.file_type() {
        Some(kind) if kind.is_file() => is_data_file(entry.path()) && !known.contains(entry.path()),
        Some(kind) if kind.is_symlink() => {
            is_broken_eval_link(entry.path()) || outside.iter().any(|link| link == entry.path())
        }
        Some(_) | None => false,
    });
    let paths = candidates.take(MOST_READ).map(ignore::DirEntry::into_path);
    let evals = paths.filter(|path| path.is_symlink() || EvalFileKind::detect(path, registry).holds_evals());
    evals.map(|path| SkippedFile { why: why_ignored(folder, &path), path }).collect()
}

/// Gives the reason why a file or link that looks like evals was left out.
fn why_ignored(folder: &Path, path: &Path) -> &'static str {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let is_left_out = below.iter().any(|part| FOLDERS_LEFT_OUT.iter().any(|known| part == *known));
    match (path.is_symlink(), path.is_dir()) {
        (true, true) => "a link to a folder outside the project",
        (true, false) => "a link to nothing",
        _ if is_left_out => "in a folder of dependencies or build results",
        _ if below.iter().any(is_for_review) => "its name has .candidates or .rewordings, which are no evals",
        _ => "ignored by git",
    }
}

/// Says whether a link is broken and could have led to evals or to a folder of evals.
fn is_broken_eval_link(link: &Path) -> bool {
    (is_data_file(link) || link.extension().is_none()) && is_broken_link(link)
}

fn is_data_file(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ["json", "yaml", "yml"].contains(&ending.as_str()))
}
