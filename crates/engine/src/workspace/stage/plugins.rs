//! Stages the plugins that an agent loads.

use std::path::{Path, PathBuf};

use serde_json::{Map, json};

use super::staging_steps::copy_tree;
use super::{StageError, StagingRequest, Workspace};
use practicum_core::model::{StagedSkillName, Suite};
use practicum_core::tree::read_regular_text;
use practicum_skills::skill::{
    MANIFEST_FOLDER, Plugin, SKILL_FILE, is_manifest, normalise_path, remove_code_keys, starts_code,
};

/// Copies the plugins of a request into its workspace. Gives all of them, including those that are not copied: a
/// plugin with a skill under test is not copied in the arm without the skill.
///
/// A copy has no evals and no links that lead out. It has no skills other than those under test and rivals,
/// because another skill of the same name is already there. It has no code that starts by itself, unless that is
/// allowed.
pub fn stage_plugins(
    order: &StagingRequest<'_>,
    workspace: &mut Workspace,
) -> Result<Vec<Plugin>, StageError> {
    let mut plugins = Vec::new();
    let mut servers = Map::new();
    for (number, root) in order.plugins.iter().enumerate() {
        let plugin = Plugin::read(root)?;
        let paths = order.skills.iter().filter_map(|skill| skill.path.as_deref());
        let is_under_test = paths.into_iter().any(|path| plugin.skill_at(path).is_some());
        if order.arm.has_skill() || !is_under_test {
            let copy = copy_plugin(&plugin, number, order, workspace)?;
            servers.extend(plugin.servers_of_copy(&copy, &workspace.home, &workspace.folder));
            workspace.plugins.push(copy);
            workspace.plugin_skills.extend(plugin.skills.iter().map(|skill| skill.listed_name.clone()));
        }
        plugins.push(plugin);
    }
    // A mock stands in place of the plugin's own server.
    servers.retain(|name, _| order.case.mocks.server(&name.replace(':', "_")).is_none());
    if order.allow_plugin_code && !servers.is_empty() {
        let file = workspace.root().join("plugins/servers.json");
        let text = json!({"mcpServers": servers}).to_string();
        std::fs::write(&file, text).map_err(StageError::io("writing", &file))?;
        workspace.plugin_servers = Some(file);
    }
    Ok(plugins)
}

impl Workspace {
    /// Adds the names with the plugin's name before them of skills that are staged as plain skills, because the agent
    /// loads no plugins. A user's own agent may name them like that.
    pub(crate) fn add_names_with_plugins(&mut self, suite: &Suite) {
        // A plugin that cannot be read is not known by its name.
        let plugins: Vec<Plugin> = suite.plugins.iter().filter_map(|root| Plugin::read(root).ok()).collect();
        let paths = suite.skills.iter().filter_map(|skill| skill.path.as_deref());
        let named = paths.zip(&self.staged_names).filter_map(|(path, staged)| {
            let mut found = plugins.iter().filter_map(|plugin| Some((&plugin.name, plugin.skill_at(path)?)));
            let (plugin, skill) = found.next()?;
            Some((staged.clone(), format!("{plugin}:{}", skill.listed_name)))
        });
        self.other_names.extend(named);
    }
}

fn copy_plugin(
    plugin: &Plugin,
    number: usize,
    order: &StagingRequest<'_>,
    workspace: &Workspace,
) -> Result<PathBuf, StageError> {
    // Without a manifest, the folder's name is the plugin's name.
    let name = plugin.root.file_name().unwrap_or_default();
    let to = workspace.root().join("plugins").join(number.to_string()).join(name);
    let left_out: Vec<PathBuf> = plugin
        .skills
        .iter()
        .filter(|skill| !is_wanted(&skill.folder, order))
        .map(|skill| skill.folder.join(SKILL_FILE))
        .collect();
    copy_tree(&plugin.root, &to, &|path| {
        let code = !order.allow_plugin_code && starts_code(&plugin.root, path);
        code || order.hidden_files.hides(path) || left_out.iter().any(|file| file == path)
    })?;
    if !order.allow_plugin_code {
        remove_code(&plugin.root, &to)?;
    }
    Ok(to)
}

/// Says whether a plugin's skill belongs in its copy. A skill with an alias is staged outside the plugin.
fn is_wanted(folder: &Path, order: &StagingRequest<'_>) -> bool {
    let is_at =
        |path: &PathBuf| normalise_path(path) == folder || normalise_path(path) == folder.join(SKILL_FILE);
    let under_test = match order.case.workspace.skill_name {
        StagedSkillName::Own => order.skills,
        StagedSkillName::Alias => &[],
    };
    under_test.iter().chain(order.rivals).filter_map(|skill| skill.path.as_ref()).any(is_at)
}

fn remove_code(root: &Path, copy: &Path) -> Result<(), StageError> {
    let walk = std::fs::read_dir(copy.join(MANIFEST_FOLDER)).into_iter().flatten().flatten();
    for file in walk.map(|entry| entry.path()) {
        let in_plugin = file.strip_prefix(copy).map(|path| root.join(path)).unwrap_or_default();
        if !is_manifest(root, &in_plugin) {
            continue;
        }
        let text = read_regular_text(&file).map_err(StageError::io("reading", &file))?;
        // The manifest was read before, so it is an object.
        let kept = remove_code_keys(&text).unwrap_or_else(|| "{}".to_owned());
        std::fs::remove_file(&file).map_err(StageError::io("replacing", &file))?;
        std::fs::write(&file, kept).map_err(StageError::io("writing", &file))?;
    }
    Ok(())
}
