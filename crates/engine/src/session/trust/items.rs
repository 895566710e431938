//! Finds what in a project the user must trust before it takes effect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::agent_files::{AgentFile, agent_files_in, concerns_agent_files};
use super::{TrustItem, TrustKind};
use crate::plan::Plan;
use crate::plan::settings::SettingLayers;
use crate::session::trusted_code::{code_named_by, code_of_plugin};
use practicum_core::model::{Case, Digest, WorkspaceBase};
use practicum_core::tree::read_regular;
use practicum_skills::skill::normalise_path;

/// The items of a plan that need trust.
pub fn items_of_plan(plan: &Plan, layers: &SettingLayers, project: &Path) -> Vec<TrustItem> {
    let used: BTreeSet<&str> = plan.trials.iter().map(|trial| trial.condition.agent.as_str()).collect();
    let mut items: Vec<TrustItem> = layers
        .project_agents()
        .filter(|(name, _)| used.contains(name.as_str()))
        .map(|(name, table)| agent_item(name, table, project))
        .collect();
    items.extend(weakening_items(layers));
    let selected: BTreeSet<(usize, usize)> =
        plan.trials.iter().map(|trial| (trial.suite, trial.case)).collect();
    for (suite, case) in selected {
        let planned = &plan.suites[suite];
        let case = &planned.suite.cases[case];
        items.extend(script_items(&planned.suite.name, case, &planned.project));
        items.extend(given_agent_files(&planned.suite.name, case));
        if case.workspace.base == WorkspaceBase::Project {
            items.extend(agent_files_in(&planned.project).iter().map(project_file_item));
        }
    }
    let plugins: BTreeSet<&PathBuf> = plan.suites.iter().flat_map(|planned| &planned.suite.plugins).collect();
    items.extend(plugins.into_iter().filter_map(|root| plugin_item(root)));
    let mut seen = BTreeSet::new();
    items.retain(|item| seen.insert(item.digest.to_string()));
    items
}

/// Gives the items of a project's sandbox and limits that protect less than without the project.
pub fn weakening_items(layers: &SettingLayers) -> Vec<TrustItem> {
    let item = |(name, value): (&str, String)| {
        let text = format!("{name} = \"{value}\"");
        let what = format!("{text} in practicum.toml");
        TrustItem::new(TrustKind::Settings, what, text, false, &BTreeMap::new())
    };
    layers.weakened_settings().into_iter().map(item).collect()
}

fn agent_item(name: &str, table: &toml::Value, project: &Path) -> TrustItem {
    let text = format!("[agents.{name}]\n{}", toml::to_string(table).unwrap_or_else(|_| table.to_string()));
    let what = format!("agent {name} in practicum.toml, which runs a command");
    TrustItem::new(TrustKind::Settings, what, text, true, &files_of_command(table, project))
}

/// Computes a digest of each file of the project that the texts of an agent's table name.
fn files_of_command(table: &toml::Value, project: &Path) -> BTreeMap<PathBuf, Digest> {
    let mut texts = Vec::new();
    let mut values = vec![table];
    while let Some(value) = values.pop() {
        match value {
            toml::Value::String(text) => texts.push(text),
            toml::Value::Array(items) => values.extend(items),
            toml::Value::Table(entries) => values.extend(entries.iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    let words =
        texts.iter().flat_map(|text| text.split(|c: char| c.is_whitespace() || "'\"=;&|".contains(c)));
    let files = words.filter(|word| !word.is_empty()).map(|word| normalise_path(&project.join(word)));
    let files = files.filter(|file| file.starts_with(project) && file.is_file());
    files.filter_map(|file| Some((file.clone(), Digest::of_bytes(&read_regular(&file).ok()?)))).collect()
}

fn script_items(suite: &str, case: &Case, project: &Path) -> Vec<TrustItem> {
    let scripts = case.scripts();
    let item = |(purpose, text): (&str, String)| {
        let what = format!("{purpose} of {} in suite {suite}", case.id);
        let code = code_named_by(&text, case, project);
        TrustItem::new(TrustKind::Scripts, what, text, true, &code)
    };
    scripts.map(item).collect()
}

/// Gives the items of files that a case puts where an agent looks for programs to start.
fn given_agent_files(suite: &str, case: &Case) -> Vec<TrustItem> {
    let mut items = Vec::new();
    let mut add = |name: &str, content: &Path| {
        let what = format!("{name} in the workspace of {} in suite {suite}", case.id);
        items.push(file_item(what, content, true));
    };
    for file in &case.workspace.files {
        let destination = normalise_path(Path::new(file.destination.as_str()));
        if concerns_agent_files(&destination.to_string_lossy()) {
            add(file.destination.as_str(), &file.source);
        }
    }
    for overlay in &case.workspace.overlays {
        agent_files_in(overlay).iter().for_each(|file| add(file.name, &file.content));
    }
    items
}

/// Gives the item of a file of the project that agents would start programs by. It is left out of workspaces if the
/// user does not trust it.
pub fn project_file_item(file: &AgentFile) -> TrustItem {
    file_item(format!("{} of the project, which can start programs", file.name), &file.content, false)
}

fn file_item(what: String, content: &Path, is_required: bool) -> TrustItem {
    let walk = ignore::WalkBuilder::new(content).standard_filters(false).follow_links(false).build();
    let paths: Vec<PathBuf> = walk.flatten().take(MOST_FILES).map(ignore::DirEntry::into_path).collect();
    let read = |path: PathBuf| Some((path.clone(), Digest::of_bytes(&read_regular(&path).ok()?)));
    let files: BTreeMap<PathBuf, Digest> = paths.into_iter().filter_map(read).collect();
    let text = read_regular(content).map_or_else(
        |_| content.display().to_string(),
        |bytes| String::from_utf8_lossy(&bytes).chars().take(MOST_SHOWN).collect(),
    );
    TrustItem::new(TrustKind::AgentFiles, what, text, is_required, &files)
}

/// The most files of one item whose content counts.
const MOST_FILES: usize = 10_000;

/// The most characters of a file that are shown.
const MOST_SHOWN: usize = 4_000;

/// Gives the item of a plugin with hooks or servers. Without trust they are not staged.
pub fn plugin_item(root: &Path) -> Option<TrustItem> {
    let code = code_of_plugin(root);
    let what = format!("hooks and servers of the plugin {}", root.display());
    let text = code.keys().map(|file| file.display().to_string()).collect::<Vec<String>>().join("\n");
    (!code.is_empty()).then(|| TrustItem::new(TrustKind::Plugins, what, text, false, &code))
}
