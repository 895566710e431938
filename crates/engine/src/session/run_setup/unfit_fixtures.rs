//! Finds fixtures that no agent may be given: they would replace the skill under test, or show the skill or the
//! expected answers to an agent that must not have them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use practicum_agents::agents::COMMANDS_FOLDER;
use practicum_core::model::{Fixture, Suite};
use practicum_core::tree::read_bounded;
use practicum_skills::own_files::{EvalTexts, Unpacked};
use practicum_skills::skill::{SKILL_FILE, Skill, SkillCache, SkillForm, command_path, is_eval_file};

/// Explains why fixtures of a suite cannot be staged, by case id.
pub(crate) fn unfit_fixtures(suite: &Suite, cache: &SkillCache) -> BTreeMap<String, Vec<String>> {
    let mut problems: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if suite.cases.iter().all(|case| case.workspace.files.is_empty() && case.workspace.overlays.is_empty()) {
        return problems;
    }
    let guarded = ProtectedSkillFiles::for_suite(suite, cache);
    for case in &suite.cases {
        for why in case.workspace.files.iter().filter_map(|fixture| guarded.why_unfit(fixture)) {
            problems.entry(case.id.clone()).or_default().push(why);
        }
    }
    let known = EvalCopies::of(suite);
    let mut copies: BTreeMap<&Path, Option<String>> = BTreeMap::new();
    for case in &suite.cases {
        let given = case.workspace.files.iter().map(|fixture| &fixture.source).filter(|from| from.is_dir());
        for folder in case.workspace.overlays.iter().chain(given) {
            let why = copies.entry(folder).or_insert_with(|| known.why_unfit(folder));
            problems.entry(case.id.clone()).or_default().extend(why.clone());
        }
    }
    problems.retain(|_, why| !why.is_empty());
    problems
}

/// The most entries of a folder that are examined.
const MOST_ENTRIES: usize = 20_000;

/// The largest file that is compared with eval files byte for byte.
const LARGEST_COPY: u64 = 1024 * 1024;

/// The contents by which copies of a suite's evals are recognised.
struct EvalCopies {
    /// The contents of the eval files in the suite's folder.
    files: Vec<Vec<u8>>,
    texts: EvalTexts,
}

impl EvalCopies {
    fn of(suite: &Suite) -> Self {
        let folder = suite.origin.path.parent().unwrap_or(Path::new(""));
        let beside = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let evals = beside.filter(|path| is_eval_file(path)).chain([suite.origin.path.clone()]);
        Self {
            files: evals.filter_map(|path| read_bounded(&path, LARGEST_COPY).ok()).collect(),
            texts: EvalTexts::of([suite]),
        }
    }

    /// Names a file in a folder that is a copy of the evals.
    fn why_unfit(&self, folder: &Path) -> Option<String> {
        let walk = ignore::WalkBuilder::new(folder).standard_filters(false).follow_links(false).build();
        let files = walk.take(MOST_ENTRIES).flatten();
        let mut files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let copy = files.find(|entry| self.is_copy(entry.path()))?;
        Some(format!("the file {} would show an agent these evals", copy.path().display()))
    }

    fn is_copy(&self, file: &Path) -> bool {
        let file = Unpacked::new(file);
        let bytes = file.head(LARGEST_COPY).unwrap_or_default();
        self.files.contains(&bytes) && !bytes.is_empty() || self.texts.are_in(&file)
    }
}

/// The files of the skills under test and the evals, with which fixtures are compared.
struct ProtectedSkillFiles {
    /// The names of the skills under test and of their folders.
    names: Vec<String>,
    /// The SKILL.md and command files of the skills under test, with links resolved.
    files: Vec<PathBuf>,
    /// The paths of the command files under test in a workspace.
    commands: Vec<PathBuf>,
    /// The eval file, with links resolved.
    evals: PathBuf,
}

impl ProtectedSkillFiles {
    fn for_suite(suite: &Suite, cache: &SkillCache) -> Self {
        let paths = suite.skills.iter().filter_map(|skill| skill.path.as_deref());
        let skills: Vec<Arc<Skill>> = paths.filter_map(|path| cache.read(path).ok()).collect();
        let folders =
            skills.iter().filter(|skill| skill.form == SkillForm::Folder).map(|skill| skill.folder());
        let folder_names = folders.filter_map(|folder| folder.file_name()?.to_str().map(str::to_owned));
        let commands = skills.iter().filter(|skill| skill.form == SkillForm::Command);
        Self {
            names: suite.skills.iter().map(|skill| skill.name.clone()).chain(folder_names).collect(),
            files: skills.iter().map(|skill| resolve_links(&skill.file)).collect(),
            commands: commands.filter_map(|skill| command_path_in_workspace(&skill.name)).collect(),
            evals: resolve_links(&suite.origin.path),
        }
    }

    fn why_unfit(&self, fixture: &Fixture) -> Option<String> {
        let (from, to) = (resolve_links(&fixture.source), Path::new(fixture.destination.as_str()));
        let is_eval = |path: &Path| {
            path == self.evals || is_eval_file(path) && path.is_file() && path.parent() == self.evals.parent()
        };
        if is_eval(&from) {
            return Some(format!("the file {} would show an agent these evals", fixture.destination));
        }
        if self.is_skill_location(to) {
            return Some(format!("the file {} would replace the skill under test", fixture.destination));
        }
        if self.is_skill_file(&from) {
            return Some(format!(
                "the file {} is the skill under test, which an agent without the skill must not have",
                fixture.destination
            ));
        }
        if !from.is_dir() {
            return None;
        }
        let walk = ignore::WalkBuilder::new(&from).standard_filters(false).follow_links(false).build();
        for entry in walk.take(MOST_ENTRIES).flatten() {
            let path = entry.path();
            let place = path.strip_prefix(&from).map(|below| to.join(below)).unwrap_or_default();
            let what = if path == self.evals {
                "these evals"
            } else if self.is_skill_file(path) || self.is_skill_location(&place) {
                "the skill under test"
            } else {
                continue;
            };
            return Some(format!("the folder {} holds {what} ({})", fixture.destination, place.display()));
        }
        None
    }

    /// Says whether a file is the skill under test or a copy of it.
    fn is_skill_file(&self, path: &Path) -> bool {
        if self.files.iter().any(|file| file == path) {
            return true;
        }
        let is_copy = |folder: &Path| {
            let read = Skill::read(folder);
            read.is_ok_and(|skill| skill.form == SkillForm::Folder && self.names.contains(&skill.name))
        };
        path.file_name().is_some_and(|name| name == SKILL_FILE) && path.parent().is_some_and(is_copy)
    }

    /// Says whether a path in a workspace is where an agent looks for the skill under test: in its folder below
    /// the agent's folder of skills.
    fn is_skill_location(&self, to: &Path) -> bool {
        let parts: Vec<&str> = to
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let is_skill = |pair: &[&str]| pair[0] == "skills" && self.names.iter().any(|name| name == pair[1]);
        let is_hidden = parts.first().is_some_and(|first| first.starts_with('.'));
        is_hidden && parts.windows(2).any(is_skill) || self.commands.iter().any(|command| command == to)
    }
}

/// Gives the path of a command in a workspace.
fn command_path_in_workspace(command: &str) -> Option<PathBuf> {
    Some(Path::new(COMMANDS_FOLDER).join(command_path(command)?.as_str()))
}

/// Resolves the links of a path. A path that cannot be resolved stays as it is.
fn resolve_links(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
