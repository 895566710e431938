//! Warns about prompts that begin with a slash command which is not staged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::plan::suite_quality::SuitePositions;
use practicum_agents::agents::{COMMANDS_FOLDER, is_own_command, skill_and_command_folders};
use practicum_core::model::{
    ActivationExpectation, Case, CasePrompt, CheckKind, SkillRef, Span, Suite, WorkspaceBase, count_with_noun,
};
use practicum_core::tree::closest_word;
use practicum_evals::dialects::LoadedFile;
use practicum_skills::skill::{Plugin, SKILL_FILE, Skill, SkillForm, name_from_path};

/// Warns about each slash command that is not staged, once, where it is first used: the agent gets it as plain
/// text. `more` are skills that the user adds to those of the files.
pub fn warn_unstaged_commands(files: &mut [LoadedFile], more: &[SkillRef]) {
    let mut staged_in = StagedNames::default();
    let mut uses: BTreeMap<String, (usize, String, usize)> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        let Some(suite) = &file.lowered.suite else { continue };
        for case in &suite.cases {
            for (command, turn) in commands_of(case) {
                if is_own_command(command) || Path::new("/").join(command).exists() {
                    continue;
                }
                if !staged_in.has(command, suite, case, &file.project, more) {
                    uses.entry(command.to_owned()).or_insert_with(|| (at, turn.to_owned(), 0)).2 += 1;
                }
            }
        }
    }
    for (command, (at, turn, count)) in uses {
        let file = &mut files[at];
        let span = SuitePositions::new(&file.text).find_text(&turn);
        let times =
            if count > 1 { format!(" ({} use it)", count_with_noun(count, "prompt")) } else { String::new() };
        file.lowered.diagnostics.warning_with_help(
            "unknown-command",
            span,
            format!("there will be no command /{command}, so an agent gets it as plain text{times}"),
            "name the command's file or the skill with --skill; commands/a/b.md is called /a:b",
        );
        file.lowered.diagnostics.sort();
    }
}

/// Warns about each skill that a case expects or forbids and that is not staged: it cannot be activated, so the
/// check shows nothing.
pub fn warn_unstaged_skills(files: &mut [LoadedFile], more: &[SkillRef]) {
    let mut staged_in = StagedNames::default();
    for file in files {
        let Some(suite) = &file.lowered.suite else { continue };
        // Some formats report this for all their cases at once.
        if file.lowered.diagnostics.iter().any(|known| known.code == "skill-not-staged") {
            continue;
        }
        let places = SuitePositions::new(&file.text);
        let mut problems: Vec<(String, String, Option<Span>)> = Vec::new();
        let of_plugins = suite.plugins.iter().flat_map(|root| skills_of_plugin(root));
        let more: Vec<SkillRef> = more.iter().cloned().chain(of_plugins).collect();
        for case in &suite.cases {
            let activations = case.checks.iter().filter_map(|check| match &check.kind {
                CheckKind::Activation(activation) => Some(activation),
                CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
            });
            for activation in activations {
                for name in &activation.skills {
                    let is_reported = problems.iter().any(|(known, ..)| known == name);
                    if is_reported || staged_in.has(name, suite, case, &file.project, &more) {
                        continue;
                    }
                    let so = match activation.expect {
                        ActivationExpectation::Must => "it cannot be activated, so this check always fails",
                        ActivationExpectation::MustNot => {
                            "it cannot be activated, so this check can never fail"
                        }
                        ActivationExpectation::Either => "it cannot be activated",
                    };
                    let message =
                        format!("case {} names the skill \"{name}\", which is not staged: {so}", case.id);
                    problems.push((name.clone(), message, places.case_span(case)));
                }
            }
        }
        let skills: Vec<String> =
            suite.skills.iter().chain(&suite.rivals).chain(&more).map(|skill| skill.name.clone()).collect();
        let known: Vec<&str> = skills.iter().map(String::as_str).collect();
        for (name, message, span) in problems {
            let help = match closest_word(&name, &known) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => "name the skill with --skill, or stage it with --with-skill".to_owned(),
            };
            file.lowered.diagnostics.warning_with_help("expected-skill-not-staged", span, message, help);
        }
        file.lowered.diagnostics.sort();
    }
}

/// Gives the skills of a plugin; none if it cannot be read, which is reported elsewhere.
pub fn skills_of_plugin(root: &Path) -> Vec<SkillRef> {
    let Ok(plugin) = Plugin::read(root) else { return Vec::new() };
    let named = |name: String, path: PathBuf| SkillRef { name, path: Some(path), plugin: None };
    plugin.skills.into_iter().map(|skill| named(skill.listed_name, skill.folder)).collect()
}

/// Gives the slash commands of a case, each with the turn that begins with it.
fn commands_of(case: &Case) -> impl Iterator<Item = (&str, &str)> {
    let turns = match &case.prompt {
        CasePrompt::Turns(turns) => turns.as_slice(),
        CasePrompt::SkillCommand { .. } => &[],
    };
    turns.iter().filter_map(|turn| Some((command_in(turn)?, turn.as_str())))
}

/// Finds the command that a prompt begins with. A word with more slashes is a path.
fn command_in(prompt: &str) -> Option<&str> {
    let word = prompt.split_whitespace().next()?.strip_prefix('/')?;
    let name = word.trim_end_matches(['.', ',', '!', '?', ';', ':']);
    let begins = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
    (begins && name.chars().all(is_plain)).then_some(name)
}

/// The names by which skills and commands can be called, cached for each folder that was searched.
#[derive(Default)]
struct StagedNames {
    folders: BTreeMap<PathBuf, BTreeSet<String>>,
    skills: BTreeMap<PathBuf, Option<String>>,
}

impl StagedNames {
    fn has(&mut self, name: &str, suite: &Suite, case: &Case, project: &Path, more: &[SkillRef]) -> bool {
        if case.workspace.setup.as_ref().is_some_and(|script| may_stage_commands(script)) {
            return true;
        }
        let skills = suite.skills.iter().chain(&suite.rivals).chain(more);
        if skills.into_iter().any(|skill| self.is_called(skill, name)) {
            return true;
        }
        let project = (case.workspace.base == WorkspaceBase::Project).then_some(project);
        let folders = project.into_iter().chain(case.workspace.overlays.iter().map(PathBuf::as_path));
        let fixtures = case
            .workspace
            .files
            .iter()
            .filter_map(|file| command_or_skill_name(Path::new(file.destination.as_str())));
        folders.into_iter().any(|folder| self.names_in_folder(folder).contains(name))
            || fixtures.into_iter().any(|known| known == name)
    }

    /// Says whether a skill can be called by this name: its own, or one with its plugin's prefix.
    fn is_called(&mut self, skill: &SkillRef, name: &str) -> bool {
        let of_plugin =
            |plugin: &String| name.strip_prefix(plugin.as_str()).is_some_and(|rest| rest.starts_with(':'));
        if skill.name == name || skill.plugin.as_ref().is_some_and(of_plugin) {
            return true;
        }
        let Some(path) = &skill.path else { return false };
        let read = || Skill::read(path).ok().map(|skill| skill.name);
        self.skills.entry(path.clone()).or_insert_with(read).as_deref() == Some(name)
    }

    fn names_in_folder(&mut self, folder: &Path) -> &BTreeSet<String> {
        self.folders.entry(folder.to_owned()).or_insert_with(|| names_in_project(folder))
    }
}

const MAX_FOLDER_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 2000;

/// Says whether a script may put commands where agents look for them.
fn may_stage_commands(script: &str) -> bool {
    let agent_folder = Path::new(COMMANDS_FOLDER).iter().next().and_then(|folder| folder.to_str());
    script.contains("commands/") || agent_folder.is_some_and(|folder| script.contains(folder))
}

/// Gives the commands and skills that an agent finds in a project.
fn names_in_project(project: &Path) -> BTreeSet<String> {
    let places = skill_and_command_folders().into_iter().map(|place| place.join_to(project));
    let walks = places.flat_map(|place| {
        let walk = ignore::WalkBuilder::new(place)
            .standard_filters(false)
            .follow_links(false)
            .max_depth(Some(MAX_FOLDER_DEPTH))
            .build();
        walk.flatten()
    });
    walks.take(MAX_ENTRIES).filter_map(|entry| command_or_skill_name(entry.path())).collect()
}

/// Gives the name by which a file in an agent's folder can be called, if it is a command or a skill.
fn command_or_skill_name(file: &Path) -> Option<String> {
    let folders = || file.components().map(|part| part.as_os_str());
    if file.file_name()? == SKILL_FILE {
        return Some(name_from_path(file, SkillForm::Folder));
    }
    let is_command = file.extension()? == "md" && folders().any(|folder| folder == "commands");
    is_command.then(|| name_from_path(file, SkillForm::Command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        for (prompt, expected) in [
            ("/skillet:add", Some("skillet:add")),
            ("  /add now", Some("add")),
            ("/a:b:c\nmore", Some("a:b:c")),
            ("/speckit.plan, please", Some("speckit.plan")),
            ("/etc/hosts is wrong", None),
            ("/ nothing", None),
            ("/2 of it", None),
            ("use /add", None),
            ("", None),
        ] {
            assert_eq!(command_in(prompt), expected, "{prompt:?}");
        }
    }
}
