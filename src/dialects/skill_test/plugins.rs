//! Where the skills of a suite lie, and which others lie there too.

use std::path::{Path, PathBuf};

use super::super::Place;
use super::super::reading::{self, is_skill};
use crate::model::{Diagnostics, SkillRef, Span};
use crate::skill::{Skill, tidy};
use crate::tree::{Node, Source};

pub struct Found {
    pub skills: Vec<SkillRef>,
    /// The others, which are staged too, because which one is picked is the question.
    pub rivals: Vec<SkillRef>,
}

/// More folders than this in one place are not plugins.
const MOST: usize = 1000;

pub fn find(wanted: Vec<SkillRef>, source: &Source, place: &Place, diagnostics: &mut Diagnostics) -> Found {
    let here = shelf(source.folder(), place);
    let mut skills = Vec::new();
    for skill in wanted {
        let fits = |on_shelf: &&SkillRef| {
            on_shelf.name == skill.name && (skill.plugin.is_none() || on_shelf.plugin == skill.plugin)
        };
        // A skills folder has no plugins to tell apart, so the name alone decides there.
        let by_name = |on_shelf: &&SkillRef| on_shelf.name == skill.name && on_shelf.plugin.is_none();
        if let Some(path) = named_by_user(&skill.name, place) {
            skills.push(SkillRef { path: Some(path), ..skill });
            continue;
        }
        match here.iter().find(fits).or_else(|| here.iter().find(by_name)) {
            Some(on_shelf) => skills.push(SkillRef { path: on_shelf.path.clone(), ..skill }),
            // The file lies with it.
            None if skill.path.is_some() => skills.push(skill),
            None => {
                let of = skill
                    .plugin
                    .as_ref()
                    .map_or_else(String::new, |plugin| format!(" of plugin \"{plugin}\""));
                let help = match &place.plugins {
                    Some(named) => {
                        format!("CLAUDE_1337_PLUGINS says that plugins are in {}", named.display())
                    }
                    None => {
                        "say where the plugins are with CLAUDE_1337_PLUGINS (default ../plugins)".to_owned()
                    }
                };
                let message = format!("the skill \"{}\"{of} was not found", skill.name);
                diagnostics.warning_help("skill-not-found", said(&source.root, &skill.name), message, help);
                skills.push(skill);
            }
        }
    }
    let (mut rivals, mut namesakes): (Vec<SkillRef>, Vec<SkillRef>) = Default::default();
    for other in here.into_iter().filter(|other| !skills.iter().any(|skill| skill.path == other.path)) {
        let taken = skills.iter().chain(&rivals).any(|skill| skill.name == other.name);
        if taken { namesakes.push(other) } else { rivals.push(other) }
    }
    tell_namesakes(&skills, &namesakes, &source.root, diagnostics);
    Found { skills, rivals }
}

/// A room has place for one skill of a name.
fn tell_namesakes(skills: &[SkillRef], namesakes: &[SkillRef], root: &Node, diagnostics: &mut Diagnostics) {
    let of = |skill: &SkillRef| skill.plugin.clone().unwrap_or_else(|| "no plugin".to_owned());
    for (at, skill) in skills.iter().enumerate() {
        let earlier = skills[..at].iter().find(|earlier| earlier.name == skill.name);
        if let Some(earlier) = earlier.filter(|earlier| earlier.path != skill.path) {
            diagnostics.error_help(
                "same-name-skills",
                said(root, &skill.name),
                format!("two skills are called \"{}\", of {} and of {}", skill.name, of(earlier), of(skill)),
                "an agent cannot have both; write a suite for each",
            );
        }
    }
    for rival in namesakes {
        let message =
            format!("there is another skill \"{}\", of {}; it is not staged", rival.name, of(rival));
        diagnostics.notice("same-name-rival", said(root, &rival.name), message);
    }
}

/// The skill that the user says the evals are of, if a suite means that one.
fn named_by_user(name: &str, place: &Place) -> Option<PathBuf> {
    let path = place.skill.as_deref()?;
    Skill::read(path).is_ok_and(|skill| skill.name == name).then(|| tidy(path))
}

/// Where a suite first names a skill, in any of its shapes.
fn said(root: &Node, name: &str) -> Option<Span> {
    let below = |key: &str| root.get(key).and_then(Node::as_list).unwrap_or_default().iter();
    let nested = below("skills").filter_map(|skill| skill.get("name"));
    let cases = below("cases").chain(root.as_list().unwrap_or_default());
    let flat = cases.filter_map(|case| case.get("expected_skill").or_else(|| case.get("skill")));
    let mut named = nested.chain(root.get("skill")).chain(flat);
    named.find(|node| node.as_text().is_some_and(|text| text.trim() == name)).map(|node| node.span)
}

/// All skills where the user says that the plugins are, seen from the suite's folder or the current one; else
/// in the first place that has any: beside either of them, beside or in the project, a skills folder.
fn shelf(folder: &Path, place: &Place) -> Vec<SkillRef> {
    if let Some(named) = &place.plugins {
        let places = [folder.join(named), named.clone()].map(|root| in_plugins(&tidy(&root)));
        return places.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    }
    let here = std::path::absolute("../plugins").ok();
    let beside = [folder.join("../plugins")].into_iter().chain(here);
    let of_project = [place.project.join("../plugins"), place.project.join("plugins")];
    let plugins = beside.chain(of_project).map(|root| in_plugins(&tidy(&root)));
    let homes = [
        folder.join("skills"),
        folder.join("../skills"),
        place.project.join("skills"),
        place.project.join(".claude/skills"),
    ];
    let skills = homes.iter().map(|home| in_skills(&tidy(home), None));
    plugins.chain(skills).find(|found| !found.is_empty()).unwrap_or_default()
}

fn in_plugins(root: &Path) -> Vec<SkillRef> {
    let mut found = Vec::new();
    for plugin in folders(root) {
        let name = plugin.file_name().map(|name| name.to_string_lossy().into_owned());
        found.extend(in_skills(&plugin.join("skills"), name.clone()));
        // A plugin may be a single skill.
        if is_skill(&plugin) {
            found.push(skill_ref(&plugin, name));
        }
    }
    found
}

fn in_skills(home: &Path, plugin: Option<String>) -> Vec<SkillRef> {
    let skills = folders(home).into_iter().filter(|path| is_skill(path));
    skills.map(|path| skill_ref(&path, plugin.clone())).collect()
}

/// A rival that cannot be read is still a rival, under the name of its folder.
fn skill_ref(path: &Path, plugin: Option<String>) -> SkillRef {
    match Skill::read(path) {
        Ok(skill) => SkillRef { name: skill.name, path: Some(tidy(path)), plugin },
        Err(_) => SkillRef { plugin, ..reading::skill_at(path, &mut Diagnostics::default()) },
    }
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.flatten().take(MOST).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
