//! Finds the skills of a suite, and the other skills in the same place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::EvalFileLocation;
use super::super::reading::{self, is_skill};
use practicum_core::model::{Diagnostics, SkillRef, Span};
use practicum_core::tree::{SourceFile, TreeNode};
use practicum_skills::skill::{Plugin, PluginError, SkillCache, normalise_path, plugins_in};

/// The variable that names the folder of plugins.
pub const PLUGINS_VARIABLE: &str = "CLAUDE_1337_PLUGINS";

/// Gives the folder in which plugins are searched first, if the user names one.
pub fn plugins_folder(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    env.get(PLUGINS_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The skills, rivals and plugins that a skill-test suite names.
pub struct FoundSkills {
    pub skills: Vec<SkillRef>,
    /// The listed skills that are not staged, because another skill of the same name is.
    pub left_out: Vec<SkillRef>,
    /// The other skills in the same place. They are staged too, because the suite measures which skill the agent
    /// picks.
    pub rivals: Vec<SkillRef>,
    /// The folders of the plugins that hold the skills.
    pub plugins: Vec<PathBuf>,
}

/// The skills in one place, and the plugins that hold them, if there are any.
#[derive(Default)]
struct SkillCollection {
    skills: Vec<CollectedSkill>,
    plugins: Vec<PathBuf>,
    /// Messages about plugins that cannot be loaded.
    broken_plugins: Vec<String>,
}

/// A skill with all names that a suite may use for it and for its plugin.
struct CollectedSkill {
    skill: SkillRef,
    names: Vec<String>,
    plugins: Vec<String>,
}

impl CollectedSkill {
    fn is_named_by(&self, wanted: &SkillRef) -> bool {
        self.names.contains(&wanted.name)
            && wanted.plugin.as_ref().is_none_or(|plugin| self.plugins.contains(plugin))
    }
}

/// The largest number of folders in one place that are tried as plugins.
const MOST_FOLDERS: usize = 1000;

pub fn find_skills(
    wanted: Vec<SkillRef>,
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> FoundSkills {
    let SkillCollection { skills: here, plugins, broken_plugins: broken } =
        collect_skills(source.folder(), place);
    for problem in broken {
        diagnostics.warning("broken-plugin", None, problem);
    }
    let mut skills = Vec::new();
    for skill in wanted {
        let fits = |on_shelf: &&CollectedSkill| on_shelf.is_named_by(&skill);
        // A folder of skills has no plugins, so the name alone decides there.
        let by_name = |on_shelf: &&CollectedSkill| {
            on_shelf.names.contains(&skill.name) && on_shelf.skill.plugin.is_none()
        };
        if let Some(path) = named_by_user(&skill.name, place) {
            skills.push(SkillRef { path: Some(path), ..skill });
            continue;
        }
        match here.iter().find(fits).or_else(|| here.iter().find(by_name)) {
            Some(on_shelf) => skills.push(SkillRef { path: on_shelf.skill.path.clone(), ..skill }),
            // The file lies in this skill's folder.
            None if skill.path.is_some() => skills.push(skill),
            None => {
                let of = skill
                    .plugin
                    .as_ref()
                    .map_or_else(String::new, |plugin| format!(" of plugin \"{plugin}\""));
                let help = match &place.plugins {
                    Some(named) => {
                        format!("{PLUGINS_VARIABLE} says that plugins are in {}", named.display())
                    }
                    None => {
                        format!("say where the plugins are with {PLUGINS_VARIABLE} (default ../plugins)")
                    }
                };
                let message = format!("the skill \"{}\"{of} was not found", skill.name);
                diagnostics.warning_with_help(
                    "skill-not-found",
                    first_mention(&source.root, &skill.name),
                    message,
                    help,
                );
                skills.push(skill);
            }
        }
    }
    let left_out = leave_out_namesakes(&mut skills, &source.root, &place.skills, diagnostics);
    let (mut rivals, mut namesakes): (Vec<SkillRef>, Vec<SkillRef>) = Default::default();
    let here = here.into_iter().map(|on_shelf| on_shelf.skill);
    for other in here.filter(|other| !skills.iter().any(|skill| skill.path == other.path)) {
        let taken = skills.iter().chain(&rivals).any(|skill| skill.name == other.name);
        if taken { namesakes.push(other) } else { rivals.push(other) }
    }
    // The listed ones have already been reported.
    namesakes.retain(|rival| left_out.iter().all(|skill| skill.path != rival.path));
    report_namesakes(&namesakes, &source.root, diagnostics);
    FoundSkills { skills, left_out, rivals, plugins }
}

/// Finds a skill where skill-test suites look for their skills: by its name, or by `plugin:skill`. Also gives the
/// other skills there. If not exactly one skill has the name, gives the full names of all that have it.
pub fn find_skill_by_name(
    name: &str,
    folder: &Path,
    place: &EvalFileLocation,
) -> Result<FoundSkills, Vec<String>> {
    let SkillCollection { skills: here, plugins, .. } = collect_skills(folder, place);
    let (plugin, bare) = match name.split_once(':') {
        Some((plugin, bare)) => (Some(plugin.to_owned()), bare),
        None => (None, name),
    };
    let wanted = SkillRef { name: bare.to_owned(), path: None, plugin };
    let found: Vec<usize> = here
        .iter()
        .enumerate()
        .filter(|(_, on_shelf)| on_shelf.is_named_by(&wanted))
        .map(|(at, _)| at)
        .collect();
    let [at] = found.as_slice() else {
        let full_name = |at: &usize| match &here[*at].skill {
            SkillRef { plugin: Some(plugin), .. } => format!("{plugin}:{bare}"),
            SkillRef { plugin: None, .. } => bare.to_owned(),
        };
        return Err(found.iter().map(full_name).collect());
    };
    let at = *at;
    let mut here: Vec<SkillRef> = here.into_iter().map(|on_shelf| on_shelf.skill).collect();
    let skill = here.remove(at);
    let mut names = vec![skill.name.clone()];
    here.retain(|rival| {
        let is_new = !names.contains(&rival.name);
        names.push(rival.name.clone());
        is_new
    });
    Ok(FoundSkills { skills: vec![skill], left_out: Vec::new(), rivals: here, plugins })
}

/// Removes each listed skill that has the name of an earlier one, because a workspace can hold only one skill of
/// each name, and reports which one is staged. Gives the removed skills that are no copies of the staged one:
/// nothing can be said about their cases.
fn leave_out_namesakes(
    skills: &mut Vec<SkillRef>,
    root: &TreeNode,
    cache: &SkillCache,
    diagnostics: &mut Diagnostics,
) -> Vec<SkillRef> {
    let read = |skill: &SkillRef| cache.read(skill.path.as_deref()?).ok();
    let (mut kept, mut left_out): (Vec<SkillRef>, Vec<SkillRef>) = Default::default();
    for skill in std::mem::take(skills) {
        let is_namesake = |earlier: &&SkillRef| earlier.name == skill.name && earlier.path != skill.path;
        let Some(earlier) = kept.iter().find(is_namesake) else {
            kept.push(skill);
            continue;
        };
        let both = format!("two skills are called \"{}\"", skill.name);
        let said = first_mention(root, &skill.name);
        if read(earlier).zip(read(&skill)).is_some_and(|(one, other)| one.is_copy_of(&other)) {
            let staged = earlier.path.as_deref().unwrap_or(Path::new("")).display();
            diagnostics.warning(
                "same-name-skills",
                said,
                format!("{both} and hold the same: {staged} is staged"),
            );
            continue;
        }
        diagnostics.warning_with_help(
            "same-name-skills",
            said,
            format!(
                "{both}: the one of {} is staged, and the cases of the one of {} are not run",
                plugin_of(earlier),
                plugin_of(&skill)
            ),
            "an agent cannot be given both; write a suite for each",
        );
        left_out.push(skill);
    }
    *skills = kept;
    left_out
}

fn plugin_of(skill: &SkillRef) -> String {
    skill.plugin.clone().unwrap_or_else(|| "no plugin".to_owned())
}

/// Reports the skills that are not staged because another has their name.
fn report_namesakes(namesakes: &[SkillRef], root: &TreeNode, diagnostics: &mut Diagnostics) {
    for rival in namesakes {
        let message =
            format!("there is another skill \"{}\", of {}; it is not staged", rival.name, plugin_of(rival));
        diagnostics.notice("same-name-rival", first_mention(root, &rival.name), message);
    }
}

/// Gives the skill that the user names, if the suite means that one.
fn named_by_user(name: &str, place: &EvalFileLocation) -> Option<PathBuf> {
    let path = place.skill.as_deref()?;
    place.skills.read(path).is_ok_and(|skill| skill.name == name).then(|| normalise_path(path))
}

/// Gives the position where a suite first names a skill, in any of its forms.
fn first_mention(root: &TreeNode, name: &str) -> Option<Span> {
    let below = |key: &str| root.get(key).and_then(TreeNode::as_list).unwrap_or_default().iter();
    let nested = below("skills").filter_map(|skill| skill.get("name"));
    let cases = below("cases").chain(root.as_list().unwrap_or_default());
    let flat = cases.filter_map(|case| case.get("expected_skill").or_else(|| case.get("skill")));
    let mut named = nested.chain(root.get("skill")).chain(flat);
    named.find(|node| node.as_text().is_some_and(|text| text.trim() == name)).map(|node| node.span)
}

/// Collects the skills in the plugin folder that the user gives, relative to the suite's folder or the current
/// folder. If the user gives none, takes the first place that has skills: `plugins` beside either of the two
/// folders, beside the project or in it, the project itself if it is a marketplace, or a folder of skills.
fn collect_skills(folder: &Path, place: &EvalFileLocation) -> SkillCollection {
    let filled = |shelf: &SkillCollection| !shelf.skills.is_empty();
    if let Some(named) = &place.plugins {
        let mut places = [folder.join(named), named.clone()]
            .map(|root| collect_from_plugins(&normalise_path(&root), &place.skills))
            .into_iter();
        return places.find(filled).unwrap_or_default();
    }
    let here = std::path::absolute("../plugins").ok();
    let beside = [folder.join("../plugins")].into_iter().chain(here);
    let of_project = [place.project.join("../plugins"), place.project.join("plugins")];
    let plugins =
        beside.chain(of_project).map(|root| collect_from_plugins(&normalise_path(&root), &place.skills));
    let marketplace = place.project.join(".claude-plugin/marketplace.json").is_file();
    let plugins = plugins
        .chain(marketplace.then(|| collect_from_plugins(&normalise_path(&place.project), &place.skills)));
    let homes = [
        folder.join("skills"),
        folder.join("../skills"),
        place.project.join("skills"),
        place.project.join(".claude/skills"),
    ];
    let skills = homes.iter().map(|home| collect_from_skills(&normalise_path(home), &place.skills));
    plugins.chain(skills).find(filled).unwrap_or_default()
}

fn collect_from_plugins(root: &Path, cache: &SkillCache) -> SkillCollection {
    let mut shelf = SkillCollection::default();
    for (name, path) in plugins_in(root) {
        let folder = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut plugins = vec![folder, name];
        let found: Vec<(PathBuf, Option<String>)> = match Plugin::read(&path) {
            Ok(plugin) => {
                plugins.insert(0, plugin.name.clone());
                let linked = plugin.linked_skills().into_iter().map(|folder| (folder, None));
                shelf.plugins.push(plugin.root);
                let own = plugin.skills.into_iter().map(|skill| (skill.folder, Some(skill.listed_name)));
                own.chain(linked).collect()
            }
            Err(PluginError::Missing(_)) => continue,
            Err(error) => {
                shelf.broken_plugins.push(error.to_string());
                subfolders(&path.join("skills")).into_iter().map(|folder| (folder, None)).collect()
            }
        };
        for (path, listed) in found.into_iter().filter(|(path, _)| is_skill(path)) {
            let skill = skill_ref(&path, plugins.first().cloned(), cache);
            let bare: Vec<String> = std::iter::once(skill.name.clone()).chain(listed).collect();
            // Claude Code lists the skill of a plugin by both names.
            let full =
                plugins.iter().flat_map(|plugin| bare.iter().map(move |name| format!("{plugin}:{name}")));
            let names = full.chain(bare.clone()).collect();
            shelf.skills.push(CollectedSkill { skill, names, plugins: plugins.clone() });
        }
    }
    shelf
}

fn collect_from_skills(home: &Path, cache: &SkillCache) -> SkillCollection {
    let skills =
        subfolders(home).into_iter().filter(|path| is_skill(path)).map(|path| skill_ref(&path, None, cache));
    let shelved =
        |skill: SkillRef| CollectedSkill { names: vec![skill.name.clone()], skill, plugins: Vec::new() };
    SkillCollection { skills: skills.map(shelved).collect(), ..SkillCollection::default() }
}

/// Describes a skill. A rival that cannot be read is still a rival, under its folder's name.
fn skill_ref(path: &Path, plugin: Option<String>, cache: &SkillCache) -> SkillRef {
    SkillRef { plugin, ..reading::skill_at(path, cache, &mut Diagnostics::default()) }
}

fn subfolders(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.flatten().take(MOST_FOLDERS).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
