//! The files that no agent may see: evals, files that reveal their answers, credentials.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::RunOptions;
use crate::plan::{Plan, PlannedSuite};
use crate::workspace::stage::HiddenFiles;
use practicum_core::model::{Suite, WorkspaceBase};
use practicum_evals::dialects::{Dialect, EvalRegistry};
use practicum_skills::own_files::{ContentKind, EvalTexts, OwnFiles};
use practicum_skills::skill::{Skill, SkillForm};

/// The most files that are named. The rest is only counted.
const MOST_NAMED: usize = 5;

/// Gives the evals of a plan and all files that reveal their answers, including reports of earlier runs.
pub fn hidden_files(
    plan: &Plan,
    options: &RunOptions,
    project: &Path,
    registry: &EvalRegistry,
) -> HiddenFiles {
    let suites = plan.suites.iter().flat_map(|planned| {
        let scripts = [&planned.suite.run_policy.script, &planned.script].into_iter().flatten();
        std::iter::once(&planned.suite.origin.path).chain(scripts).cloned()
    });
    let inputs = &options.inputs;
    let given = [&inputs.script, &inputs.record, &inputs.replay].into_iter().flatten();
    let given = given.filter_map(|path| std::path::absolute(path).ok());
    let skills = plan.suites.iter().flat_map(|planned| {
        let skills = planned.suite.skills.iter().chain(&planned.suite.rivals);
        skills.filter_map(|skill| skill.path.as_deref())
    });
    let projects = plan.suites.iter().map(|planned| planned.project.as_path());
    let own = OwnFiles::near_paths(projects.chain(skills).chain([project]));
    let own = own.and_copies_of(EvalTexts::of(plan.suites.iter().map(|planned| &planned.suite)));
    let own = own.with_skill_folders(skill_folders(plan, project));
    let folders = eval_folders(plan, inputs.evals.as_deref(), registry);
    HiddenFiles::new(suites.chain(folders).chain(given)).with_own_files(own)
}

/// Describes the files that are not staged because of their content, those that are staged although they contain
/// evals, and the folders of evals.
pub fn describe_hidden_files(
    hidden: &HiddenFiles,
    plan: &Plan,
    options: &RunOptions,
    project: &Path,
    registry: &EvalRegistry,
) -> Vec<String> {
    let [written, evals, results, archives] =
        [ContentKind::Written, ContentKind::Evals, ContentKind::Results, ContentKind::ClosedArchive]
            .map(|kind| hidden.left_out(kind));
    let named = |paths: &[PathBuf]| {
        let names = paths
            .iter()
            .take(MOST_NAMED)
            .map(|path| path.strip_prefix(project).unwrap_or(path).display().to_string());
        let names = names.collect::<Vec<String>>().join(", ");
        match paths.len().saturating_sub(MOST_NAMED) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    };
    let (credentials, given) = (hidden.credentials(), hidden.given_evals());
    let kinds = [
        (&credentials, "file or folder of credentials is not", "files or folders of credentials are not"),
        (&written, "file that practicum wrote is not", "files that practicum wrote are not"),
        (&evals, "eval file beside those of this run is not", "eval files beside those of this run are not"),
        (&results, "file with results of evals is not", "files with results of evals are not"),
        (
            &archives,
            "archive that may hold evals and cannot be looked into is not",
            "archives that may hold evals and cannot be looked into are not",
        ),
        (
            &given,
            "eval file in a folder that a case gives to agents is",
            "eval files in folders that cases give to agents are",
        ),
    ];
    let files = kinds.into_iter().filter(|(paths, ..)| !paths.is_empty()).map(|(paths, one, many)| {
        let what = if paths.len() == 1 { one } else { many };
        format!("{} {what} staged: {}", paths.len(), named(paths))
    });
    files.chain(describe_eval_folders(plan, options, registry)).collect()
}

/// The folders of the skills and plugins that agents are given. Where the project is itself a plugin, what lies in it
/// beside the skills is the project's.
fn skill_folders(plan: &Plan, project: &Path) -> Vec<PathBuf> {
    let suites = || plan.suites.iter().map(|planned| &planned.suite);
    let skills = suites().flat_map(|suite| suite.skills.iter().chain(&suite.rivals));
    let skills = skills.filter_map(|skill| Skill::read(skill.path.as_deref()?).ok());
    let folders = skills.filter(|skill| skill.form == SkillForm::Folder);
    let plugins = suites().flat_map(|suite| &suite.plugins).filter(|root| !project.starts_with(root));
    folders.map(|skill| skill.folder().to_owned()).chain(plugins.cloned()).collect()
}

/// The folders that belong to the evals, with their fixtures and notes: the one that the user names, and those
/// of the eval files whose format has a folder for its evals. None in which the project or a skill lies.
fn eval_folders(plan: &Plan, given: Option<&Path>, registry: &EvalRegistry) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let suites = || plan.suites.iter();
    let owns_folder =
        |suite: &&Suite| registry.format(&suite.origin.dialect).is_some_and(Dialect::owns_folder);
    let of_files = suites().map(|planned| &planned.suite).filter(owns_folder);
    let of_files = of_files.filter_map(|suite| suite.origin.path.parent());
    let given = given.filter(|evals| evals.is_dir());
    let folders: BTreeSet<PathBuf> = given.into_iter().chain(of_files).map(real).collect();
    let skills = suites().flat_map(|planned| planned.suite.skills.iter().chain(&planned.suite.rivals));
    let projects = suites().map(|planned| planned.project.as_path());
    let roots = skills.filter_map(|skill| skill.path.as_deref()).chain(projects);
    let roots: Vec<PathBuf> = roots.map(real).collect();
    let is_own = |folder: &PathBuf| !roots.iter().any(|root| root.starts_with(folder));
    folders.into_iter().filter(is_own).collect()
}

/// Describes the folders of evals that are left out of the copies of the project. Folders called `evals` are
/// described with the other files that are not copied.
fn describe_eval_folders(plan: &Plan, options: &RunOptions, registry: &EvalRegistry) -> Vec<String> {
    let gets_project = |planned: &&PlannedSuite| {
        planned.suite.cases.iter().any(|case| case.workspace.base == WorkspaceBase::Project)
    };
    let projects: Vec<&Path> =
        plan.suites.iter().filter(gets_project).map(|planned| planned.project.as_path()).collect();
    let describe = |folder: PathBuf| {
        let below = projects.iter().find_map(|project| {
            let real = project.canonicalize().ok()?;
            folder.strip_prefix(real).ok().map(Path::to_owned)
        })?;
        let is_named = below.components().any(|part| part.as_os_str() == "evals");
        (!is_named).then(|| format!("the folder {} belongs to the evals and is not staged", below.display()))
    };
    eval_folders(plan, options.inputs.evals.as_deref(), registry).into_iter().filter_map(describe).collect()
}
