//! Digests of the files that trusted scripts and plugins run, so that a changed file does not run on old trust.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::SessionError;
use crate::plan::Plan;
use crate::store::RunDir;
use crate::workspace::sandbox::is_of_system;
use practicum_core::model::{Case, Digest, WorkspaceBase};
use practicum_core::tree::{open_regular, read_regular};
use practicum_skills::project_files::ProjectFiles;
use practicum_skills::skill::{Plugin, normalise_path};

/// The most files that are followed.
const MOST_FILES: usize = 20_000;

/// The largest file that is searched for the names of further files.
const LARGEST_SCRIPT: u64 = 1024 * 1024;

/// The most changed files that are named.
const MOST_NAMED: usize = 5;

/// Computes a digest of each file that the scripts of the planned cases name, of the files that those name, of all
/// code in the workspaces of these cases, and of the code of staged plugins. The scripts in the eval files
/// themselves are already part of the run's record.
pub fn trusted_code(plan: &Plan) -> BTreeMap<PathBuf, Digest> {
    let mut known = BTreeMap::new();
    let mut listed = BTreeSet::new();
    let mut followed = BTreeSet::new();
    for trial in &plan.trials {
        let (planned, case) = plan.suite_and_case(trial);
        for (_, script) in case.scripts() {
            // A script may find a file in its workspace without naming it: by a pattern, a tool, another folder.
            for given in given_to(case, &planned.project).filter(|given| listed.insert(given.to_path_buf())) {
                code_below(given).into_iter().for_each(|file| add_file(&mut known, file));
            }
            for file in follow_named_files(script, case, &planned.project, &mut followed) {
                add_file(&mut known, file);
            }
        }
    }
    for root in plan.suites.iter().flat_map(|planned| &planned.suite.plugins) {
        known.extend(code_of_plugin(root));
    }
    known
}

/// Computes a digest of each file of a plugin that may run code. There is none if the plugin has neither hooks nor
/// servers: such a plugin runs nothing, and its skills may change.
pub fn code_of_plugin(root: &Path) -> BTreeMap<PathBuf, Digest> {
    let mut known = BTreeMap::new();
    if !Plugin::read(root).is_ok_and(|plugin| plugin.hooks + plugin.servers.len() > 0) {
        return known;
    }
    let walk = ignore::WalkBuilder::new(root).standard_filters(false).follow_links(false).build();
    let is_text = |path: &Path| path.extension().is_some_and(|ending| ending == "md");
    for file in walk.flatten().map(ignore::DirEntry::into_path).filter(|path| !is_text(path)) {
        add_file(&mut known, file);
    }
    known
}

/// Computes a digest of each file that a script names, and of the files that those name.
pub fn code_named_by(script: &str, case: &Case, project: &Path) -> BTreeMap<PathBuf, Digest> {
    let mut known = BTreeMap::new();
    for file in follow_named_files(script.to_owned(), case, project, &mut BTreeSet::new()) {
        add_file(&mut known, file);
    }
    known
}

/// Finds the files that a script names, and those that they name, without those that were `followed` before.
fn follow_named_files(
    script: String,
    case: &Case,
    project: &Path,
    followed: &mut BTreeSet<PathBuf>,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut texts = vec![(script, None)];
    while let Some((text, folder)) = texts.pop() {
        for file in files_named(&text, case, project, folder.as_deref()) {
            if followed.len() < MOST_FILES && followed.insert(file.clone()) {
                let text = read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                texts.extend(text.map(|text| (text, file.parent().map(Path::to_owned))));
                found.push(file);
            }
        }
    }
    found
}

fn add_file(known: &mut BTreeMap<PathBuf, Digest>, file: PathBuf) {
    if let Some(bytes) = read(&file).filter(|_| known.len() < MOST_FILES) {
        known.insert(file, Digest::of_bytes(&bytes));
    }
}

/// Gives the folders and files that make up the workspace of a case, without its skills: an agent may run their
/// code without the user's trust.
fn given_to<'c>(case: &'c Case, project: &'c Path) -> impl Iterator<Item = &'c Path> {
    let project = (case.workspace.base == WorkspaceBase::Project).then_some(project);
    let files = case.workspace.files.iter().map(|file| file.source.as_path());
    project.into_iter().chain(case.workspace.overlays.iter().map(PathBuf::as_path)).chain(files)
}

/// Gives the code in a folder, or the file itself.
fn code_below(root: &Path) -> Vec<PathBuf> {
    let files = match root.is_dir() {
        true => {
            ProjectFiles::list(root, &|_, _| false).files.into_iter().map(|file| root.join(file)).collect()
        }
        false => vec![root.to_owned()],
    };
    files.into_iter().filter(|file| file.is_file() && is_code(file)).collect()
}

/// Refuses to resume a run with the trust given at its start if code has changed since.
pub fn refuse_changed_code(run: &RunDir, plan: &Plan) -> Result<(), SessionError> {
    let now = trusted_code(plan);
    let info = run.info().map_err(SessionError::Refused)?;
    let runs_code =
        || plan.trials.iter().any(|trial| plan.suite_and_case(trial).1.scripts().next().is_some());
    let Some(then) = info.trusted_code else {
        if now.is_empty() && !runs_code() {
            return Ok(());
        }
        return Err(SessionError::Refused(format!(
            "run {} does not say which code was trusted at its start; read the scripts, then use --trust",
            run.id()
        )));
    };
    match changed_files(&then, &now) {
        None => Ok(()),
        Some(names) => Err(SessionError::Refused(format!(
            "run {} cannot be resumed without new trust, because code that it runs has changed since it was trusted: \
             {names}; read what it does now, then say --trust",
            run.id(),
        ))),
    }
}

/// Names the files that were changed or added, up to a limit. `None` if there are none.
pub fn changed_files(then: &BTreeMap<PathBuf, Digest>, now: &BTreeMap<PathBuf, Digest>) -> Option<String> {
    let changed = now.iter().filter(|(file, digest)| match then.get(*file) {
        Some(known) => known != *digest,
        // A new data file or tool that a script waits for is accepted. A new script was not there to be trusted.
        None => is_code(file),
    });
    let names: Vec<String> = changed.map(|(file, _)| file.display().to_string()).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = names[..names.len().min(MOST_NAMED)].join(", ");
    (!names.is_empty()).then(|| format!("{named}{more}"))
}

/// Finds the regular files that a script names: by absolute path, below the folders of its workspace, below a
/// folder that it names, or beside the file that names them as a module without extension.
fn files_named(text: &str, case: &Case, project: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
    let is_part = |c: char| c.is_alphanumeric() || "/._-+@~%,".contains(c);
    // Names with spaces are in quotes.
    let words = text.split(|c: char| !is_part(c)).chain(text.split(['"', '\'']));
    let words: BTreeSet<&str> = words.filter(|word| !word.trim_matches(['.', '/']).is_empty()).collect();
    let whole = |word: &str| word.starts_with('/').then(|| normalise_path(Path::new(word)));
    let named_folders = words.iter().filter_map(|word| whole(word)).filter(|path| path.is_dir());
    let roots: BTreeSet<PathBuf> = given_to(case, project)
        .chain(folder)
        .map(Path::to_owned)
        .chain(named_folders.filter(|path| path.components().count() > 1))
        .collect();
    let mut found = Vec::new();
    for word in words {
        // `$folder/tool.sh` leaves `/tool.sh`, which may be a file below one of the roots.
        let below = word.trim_start_matches('/');
        let module = below.trim_start_matches("./").replace('.', "/");
        let of_roots = roots.iter().map(|root| normalise_path(&root.join(below)));
        let modules = folder.into_iter().flat_map(|folder| {
            ["py", "js", "mjs", "cjs"]
                .map(|ending| normalise_path(&folder.join(format!("{module}.{ending}"))))
        });
        let is_fixture = |path: &Path| normalise_path(path) == normalise_path(Path::new(below));
        let fixtures =
            case.workspace.files.iter().filter(|file| is_fixture(Path::new(file.destination.as_str())));
        let paths = whole(word).into_iter().chain(of_roots).chain(modules);
        let paths = paths.chain(fixtures.map(|file| file.source.clone()));
        found.extend(paths.filter(|path| path.is_file() && !is_of_system(path)));
    }
    found
}

/// Says whether a file looks like code: it is executable, begins with `#!`, or has the name of a script or of a
/// file that a build tool runs.
fn is_code(file: &Path) -> bool {
    let may_run = file.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    let endings = ["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua"];
    let has_ending = file
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| endings.contains(&ending.to_lowercase().as_str()));
    let tools =
        ["Makefile", "makefile", "GNUmakefile", "justfile", "package.json", "Rakefile", "Taskfile.yml"];
    let is_of_tool =
        file.file_name().and_then(|name| name.to_str()).is_some_and(|name| tools.contains(&name));
    may_run || has_ending || is_of_tool || begins_with_interpreter(file)
}

fn begins_with_interpreter(file: &Path) -> bool {
    let mut begin = [0; 2];
    let read = open_regular(file).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"#!"
}

/// Reads a file. For a very large one, gives only its length and time.
fn read(file: &Path) -> Option<Vec<u8>> {
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
    if metadata.len() > LARGEST_SCRIPT {
        return Some(format!("{} {:?}", metadata.len(), metadata.modified().ok()).into_bytes());
    }
    read_regular(file).ok()
}
