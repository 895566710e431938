//! The plugins of a suite: what is staged of them, and what is not.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use practicum_agents::agents::AgentCli;
use practicum_core::model::{SkillRef, Suite, count_with_noun};
use practicum_skills::skill::{Plugin, PluginError, Skill};

/// Adds the plugins that the user names to those of the suite, and the skills of all plugins to its rivals. Gives
/// the plugins that were read.
pub fn add_plugins(suite: &mut Suite, named: &[PathBuf]) -> Result<Vec<Plugin>, PluginError> {
    for path in named {
        let path = Plugin::read(path)?.root;
        if !suite.plugins.contains(&path) {
            suite.plugins.push(path);
        }
    }
    let plugins: Vec<Plugin> =
        suite.plugins.iter().map(|root| Plugin::read(root)).collect::<Result<_, PluginError>>()?;
    for plugin in &plugins {
        for skill in &plugin.skills {
            let folder = |known: &SkillRef| plugin.skill_at(known.path.as_deref()?).map(|at| &at.folder);
            let known = || suite.skills.iter().chain(&suite.rivals);
            let name =
                Skill::read(&skill.folder).map_or_else(|_| skill.listed_name.clone(), |read| read.name);
            let is_known = known().any(|known| folder(known) == Some(&skill.folder) || known.name == name);
            if !is_known {
                let path = Some(skill.folder.clone());
                suite.rivals.push(SkillRef { name, path, plugin: Some(plugin.name.clone()) });
            }
        }
    }
    Ok(plugins)
}

/// Describes what each agent gets of the plugins of a suite.
pub fn plugin_notices<'a>(
    plugins: &[Plugin],
    suite: &Suite,
    agents: impl IntoIterator<Item = &'a AgentCli>,
    is_trusted: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let mut notices = Vec::new();
    for agent in agents {
        notices.extend(plugins.iter().map(|plugin| match agent.can_load_plugins() {
            true => describe_whole_plugin(plugin, suite, is_trusted(&plugin.root)),
            false => describe_plugin_as_skills(plugin, suite, &agent.name),
        }));
    }
    notices
}

/// Describes how many skills of a plugin are staged and how many are not, because another skill has the same name
/// or they cannot be read.
fn describe_staged_skills(plugin: &Plugin, suite: &Suite) -> String {
    let paths = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.as_deref());
    let staged: HashSet<&Path> =
        paths.filter_map(|path| plugin.skill_at(path)).map(|skill| skill.folder.as_path()).collect();
    match plugin.skills.len() - staged.len() {
        0 => count_with_noun(staged.len(), "skill"),
        others => format!("{} ({others} not staged)", count_with_noun(staged.len(), "skill")),
    }
}

fn describe_whole_plugin(plugin: &Plugin, suite: &Suite, trust: bool) -> String {
    let mut parts = vec![describe_staged_skills(plugin, suite)];
    parts.extend(describe_counts([(plugin.commands, "command"), (plugin.agents, "agent")]));
    let code = describe_counts([(plugin.hooks, "hook"), (plugin.servers.len(), "MCP server")]);
    parts.extend(code.into_iter().map(|part| match trust {
        true => part,
        false => format!("{part} (not staged: needs --trust)"),
    }));
    format!("plugin {}: {}", plugin.name, parts.join(", "))
}

fn describe_plugin_as_skills(plugin: &Plugin, suite: &Suite, agent: &str) -> String {
    let others = describe_counts([
        (plugin.commands, "command"),
        (plugin.agents, "agent"),
        (plugin.hooks, "hook"),
        (plugin.servers.len(), "MCP server"),
    ]);
    let others =
        if others.is_empty() { String::new() } else { format!("; not staged: {}", others.join(", ")) };
    let (name, skills) = (&plugin.name, describe_staged_skills(plugin, suite));
    format!("plugin {name}: {skills}, staged as plain skills, because {agent} loads no plugins{others}")
}

fn describe_counts<const N: usize>(counts: [(usize, &str); N]) -> Vec<String> {
    counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| count_with_noun(count, what))
        .collect()
}
