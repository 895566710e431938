//! Finds skills that an agent lists although they were not staged in its workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::workspace::stage::Workspace;
use practicum_agents::agents::AgentCli;
use practicum_skills::skill::SKILL_FILE;

/// The listed skills that were not staged, by whether they come from the user's own folders.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UnexpectedSkills {
    /// Skills from the user's own configuration, which must not be part of a run.
    pub leaked: Vec<String>,
    /// Skills of unknown origin. A new version of the agent may bring them.
    pub unknown: Vec<String>,
}

impl UnexpectedSkills {
    /// Finds the unexpected skills. Files are read only if a name needs an explanation.
    pub fn find(
        listed: &[String],
        agent: &AgentCli,
        workspace: &Workspace,
        user_env: &BTreeMap<String, String>,
    ) -> Self {
        let known = |name: &str| {
            let staged = workspace.staged_names.iter().chain(&workspace.plugin_skills);
            agent.own_skills.contains(&name) || staged.into_iter().any(|staged| staged == name)
        };
        let mut names: Vec<&str> =
            listed.iter().map(|name| without_plugin(name)).filter(|name| !known(name)).collect();
        if names.is_empty() {
            return Self::default();
        }
        let places = std::iter::once(&workspace.folder).chain(&workspace.plugins);
        let room: BTreeSet<String> = places.flat_map(|folder| skills_in_workspace(folder)).collect();
        names.retain(|name| !room.contains(*name));
        let theirs: BTreeSet<String> =
            users_folders(agent, workspace, user_env).iter().flat_map(|folder| skills_in(folder)).collect();
        let (leaked, unknown) = names.into_iter().map(str::to_owned).partition(|name| theirs.contains(name));
        Self { leaked, unknown }
    }

    /// Gives a note about the skills of unknown origin; `None` if there are none.
    pub fn note(&self) -> Option<String> {
        let names = self.unknown.join(", ");
        (!names.is_empty())
            .then(|| format!("the agent lists {names}, which is neither staged in its workspace nor known as a skill of the agent"))
    }
}

/// Gives a name without its plugin.
fn without_plugin(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// Gives the names of all skills and commands in a workspace, wherever a project keeps them.
fn skills_in_workspace(folder: &Path) -> BTreeSet<String> {
    let walk = ignore::WalkBuilder::new(folder).standard_filters(false).follow_links(true).build();
    let name = |path: PathBuf| match path.file_name()?.to_str()? {
        SKILL_FILE => Some(path.parent()?.file_name()?.to_str()?.to_owned()),
        _ if path.extension()? == "md" => Some(path.file_stem()?.to_str()?.to_owned()),
        _ => None,
    };
    walk.flatten().filter_map(|entry| name(entry.into_path())).collect()
}

/// Gives the folders in which an agent finds the user's skills: its own folder, the home folder, and the folders
/// above its workspace.
fn users_folders(
    agent: &AgentCli,
    workspace: &Workspace,
    user_env: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let above = workspace.root().ancestors().skip(1).map(Path::to_owned);
    let home = user_env.get("HOME").map(PathBuf::from);
    let mut folders: Vec<PathBuf> =
        above.chain(home).map(|folder| agent.skills_dir.join_to(&folder)).collect();
    folders.extend(agent.credentials.login_folder(user_env).map(|own| own.join("skills")));
    folders
}

fn skills_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().join(SKILL_FILE).is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
