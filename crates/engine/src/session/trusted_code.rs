//! What the files hold that trusted scripts and plugins run, so that a changed file is not run on old trust.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::SessionError;
use crate::plan::Plan;
use crate::store::RunDir;
use practicum_core::model::{Base, Case, Digest};
use practicum_skills::skill::{Plugin, tidy};

/// More files than this are not followed.
const MOST_FILES: usize = 2000;

/// A larger file is not read for the names of further files.
const LARGEST_SCRIPT: u64 = 1024 * 1024;

/// How many changed files are named.
const MOST_NAMED: usize = 5;

/// The digest of each file that the scripts of the planned cases name, that those files name, and of the code of
/// staged plugins. The scripts in the eval files themselves are part of the run's record already.
pub fn trusted_code(plan: &Plan) -> BTreeMap<PathBuf, Digest> {
    let mut known = BTreeMap::new();
    for trial in &plan.trials {
        let (planned, case) = plan.case(trial);
        for (_, script) in case.scripts() {
            let mut texts = vec![(script, None)];
            while let Some((text, folder)) = texts.pop() {
                for file in files_named(&text, case, &planned.project, folder.as_deref()) {
                    let Some(bytes) = read(&file).filter(|_| known.len() < MOST_FILES) else { continue };
                    if known.insert(file.clone(), Digest::of(&bytes)).is_none() {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        texts.push((text, file.parent().map(Path::to_owned)));
                    }
                }
            }
        }
    }
    for root in plan.suites.iter().flat_map(|planned| &planned.suite.plugins) {
        // A plugin without code runs nothing, and its skills may change.
        if !Plugin::read(root).is_ok_and(|plugin| plugin.hooks + plugin.servers > 0) {
            continue;
        }
        let walk = ignore::WalkBuilder::new(root).standard_filters(false).follow_links(false).build();
        let is_code = |path: &Path| path.extension().is_none_or(|ending| ending != "md");
        for file in walk.flatten().map(ignore::DirEntry::into_path).filter(|path| is_code(path)) {
            if let Some(bytes) = read(&file).filter(|_| known.len() < MOST_FILES) {
                known.insert(file, Digest::of(&bytes));
            }
        }
    }
    known
}

/// Refuses to resume a run on the trust of its beginning if code has changed since.
pub fn refuse_changed_code(run: &RunDir, plan: &Plan) -> Result<(), SessionError> {
    let now = trusted_code(plan);
    let info = run.info().map_err(SessionError::Refused)?;
    let runs_code = || plan.trials.iter().any(|trial| plan.case(trial).1.scripts().next().is_some());
    let Some(then) = info.trusted_code else {
        if now.is_empty() && !runs_code() {
            return Ok(());
        }
        return Err(SessionError::Refused(format!(
            "run {} does not say which code was trusted when it began; read what the scripts do, then say --trust",
            run.id()
        )));
    };
    let changed = now.iter().filter(|(file, digest)| match then.get(*file) {
        Some(known) => known != *digest,
        // A data file or a tool that a script waits for may be added; a script was not there to be trusted.
        None => is_script(file),
    });
    let names: Vec<String> = changed.map(|(file, _)| file.display().to_string()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = names.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(SessionError::Refused(format!(
        "run {} cannot be resumed without new trust, because code that it runs has changed since it was trusted: \
         {}{more}; read what it does now, then say --trust",
        run.id(),
        names[..names.len().min(MOST_NAMED)].join(", ")
    )))
}

/// The regular files that a script names: by their whole path, below what its workspace is made of, or beside
/// the file that names them.
fn files_named(text: &str, case: &Case, project: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
    let room = &case.room;
    let project = (room.base == Base::Project).then_some(project);
    let roots: Vec<&Path> =
        project.into_iter().chain(room.overlays.iter().map(PathBuf::as_path)).chain(folder).collect();
    let is_part = |c: char| c.is_alphanumeric() || "/._-+@~%,".contains(c);
    let words = text.split(|c: char| !is_part(c)).filter(|word| !word.trim_matches(['.', '/']).is_empty());
    let mut found = Vec::new();
    for word in words {
        // `$folder/tool.sh` leaves `/tool.sh`, which may be one of a root.
        let below = word.trim_start_matches('/');
        let of_roots = roots.iter().map(|root| tidy(&root.join(below)));
        let is_fixture = |path: &Path| tidy(path) == tidy(Path::new(below));
        let fixtures = room.files.iter().filter(|file| is_fixture(Path::new(file.to.as_str())));
        let whole = word.starts_with('/').then(|| tidy(Path::new(word)));
        let paths = whole.into_iter().chain(of_roots).chain(fixtures.map(|file| file.from.clone()));
        found.extend(paths.filter(|path| path.is_file() && !is_of_system(path)));
    }
    found
}

/// Whether a file belongs to the system, whose programs nobody is asked about.
fn is_of_system(path: &Path) -> bool {
    ["/bin", "/sbin", "/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

/// Whether a file looks like code: it may be executed, begins with `#!`, or has the ending of a script.
fn is_script(file: &Path) -> bool {
    let may_run = file.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    let endings = ["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua"];
    let has_ending = file
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| endings.contains(&ending.to_lowercase().as_str()));
    may_run || has_ending || read(file).is_some_and(|bytes| bytes.starts_with(b"#!"))
}

/// What a file holds; of a very large one only its length and time, in bytes.
fn read(file: &Path) -> Option<Vec<u8>> {
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
    if metadata.len() > LARGEST_SCRIPT {
        return Some(format!("{} {:?}", metadata.len(), metadata.modified().ok()).into_bytes());
    }
    std::fs::read(file).ok()
}
