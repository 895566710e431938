//! Stages the workspace of a trial: the files that the agent finds when it starts.
//!
//! In: a `StagingRequest` (case, skills, arm, locations). Out: a `Workspace`, deleted when dropped. Never: reads
//! an eval file; lets an agent see one.

mod changes;
mod plugins;
mod project;
mod remove_folder;
mod staging_steps;
mod view;
mod workspace_root;

use std::path::{Path, PathBuf};

pub use changes::Snapshot;
pub(crate) use changes::{capture_changed_files, editable_file_changes};
pub use project::HiddenFiles;
pub(crate) use project::{LARGEST_STAGED_FILE, is_skill_under_test, staged_of_folder, staged_of_project};
pub use remove_folder::remove_folder;
pub use view::FolderView;
pub use workspace_root::WorkspaceRoot;
pub(crate) use workspace_root::remove_workspace;

use crate::workspace::disk_usage::DiskUsage;
use practicum_core::model::{
    Arm, Canary, Case, Digest, FileChange, FixtureAccess, GivenFile, GivenFileFate, RelPath, SkillRef,
    StagedSkillName, WorkspaceBase,
};
use practicum_core::tree::read_regular;
use practicum_skills::skill::{Skill, name_from_path};

/// The things to stage for one trial.
pub struct StagingRequest<'o> {
    pub case: &'o Case,
    /// The skills under test.
    pub skills: &'o [SkillRef],
    /// Rival skills, which are there in every arm because the agent has to choose between them and the skill under
    /// test.
    pub rivals: &'o [SkillRef],
    /// Folders of plugins that this agent loads. Their skills are staged as part of them and nowhere else.
    pub plugins: &'o [PathBuf],
    /// Whether the code of plugins (hooks, servers) may run.
    pub allow_plugin_code: bool,
    pub arm: Arm,
    /// The folder in the workspace in which this agent looks for skills.
    pub skills_dir: &'o RelPath,
    pub project: &'o Path,
    /// The files that no agent may see, such as the evals.
    pub hidden_files: &'o HiddenFiles,
    /// The root folder of this trial. It must not exist yet.
    pub root: PathBuf,
    /// The unique ending of an alias. An alias begins with the skill's own name, because agents take the name into
    /// account.
    pub alias_ending: &'o str,
    /// Whether each skill's copy gets a marker line that shows when it was read.
    pub add_canaries: bool,
}

/// An error: a workspace cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error("{0} is named as a file for this case, and does not exist")]
    MissingFixture(PathBuf),
    #[error(transparent)]
    Skill(#[from] practicum_skills::skill::SkillError),
    #[error(transparent)]
    Plugin(#[from] practicum_skills::skill::PluginError),
    #[error("cannot make the workspace: {what} {path}: {error}")]
    Io { what: &'static str, path: PathBuf, error: std::io::Error },
}

impl StageError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StageError {
        let path = path.to_owned();
        move |error| StageError::Io { what, path, error }
    }
}

/// A workspace that is ready for an agent. Dropping it deletes it, unless it is to be kept.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// The agent's working folder.
    pub folder: PathBuf,
    pub home: PathBuf,
    pub tmp: PathBuf,
    /// The names by which the skills can be activated here, in the order of the request.
    pub staged_names: Vec<String>,
    /// The names by which a user or a model calls the skills: with the plugin's name before them.
    pub call_names: Vec<String>,
    /// Further names by which skills can be activated here, each as a pair with the name in `staged_names` first.
    pub other_names: Vec<(String, String)>,
    /// The copies of the plugins that the agent loads.
    pub plugins: Vec<PathBuf>,
    /// The file that says how their MCP servers are started. `None` if there are none, or code may not run.
    pub plugin_servers: Option<PathBuf>,
    /// The names of the skills of these plugins in the agent's listing, after the plugin's name.
    pub plugin_skills: Vec<String>,
    pub canaries: Vec<Canary>,
    snapshot_before: Snapshot,
    read_only: Vec<(RelPath, Digest)>,
    keep_on_drop: bool,
}

/// Stages a workspace: base, overlays, skills and files, in that order. The skill under test replaces whatever the
/// base and the overlays have in its place.
pub(crate) fn stage_workspace(order: &StagingRequest<'_>) -> Result<Workspace, StageError> {
    let room = order.root.clone();
    let mut workspace = Workspace {
        folder: room.join("workspace"),
        home: room.join("home"),
        tmp: room.join("tmp"),
        root: room,
        staged_names: Vec::new(),
        call_names: Vec::new(),
        other_names: Vec::new(),
        plugins: Vec::new(),
        plugin_servers: None,
        plugin_skills: Vec::new(),
        canaries: Vec::new(),
        snapshot_before: Snapshot::default(),
        read_only: Vec::new(),
        keep_on_drop: false,
    };
    workspace_root::create_workspace_root(&workspace.root)
        .map_err(StageError::io("creating", &workspace.root))?;
    for folder in [&workspace.folder, &workspace.home, &workspace.tmp] {
        std::fs::create_dir(folder).map_err(StageError::io("creating", folder))?;
    }
    if order.case.workspace.base == WorkspaceBase::Project {
        project::copy_project(order.project, &workspace.folder, order.hidden_files, order.skills)?;
    }
    for overlay in &order.case.workspace.overlays {
        project::apply_overlay(overlay, &workspace.folder, order.hidden_files, order.skills)?;
    }
    stage_skills(order, &mut workspace)?;
    for fixture in &order.case.workspace.files {
        staging_steps::stage_fixture(fixture, &workspace.folder, order.hidden_files)?;
        if fixture.access == FixtureAccess::ReadOnly {
            let path = fixture.destination.join_to(&workspace.folder);
            workspace.read_only.extend(changes::fixture_digests(&path, &fixture.destination));
        }
    }
    for file in &order.case.workspace.inline_files {
        staging_steps::write_inline_file(file, &workspace.folder)?;
        let path = file.path.join_to(&workspace.folder);
        workspace.read_only.extend(changes::fixture_digests(&path, &file.path));
    }
    workspace.snapshot_before = Snapshot::of_folder(&workspace.folder);
    Ok(workspace)
}

fn stage_skills(order: &StagingRequest<'_>, workspace: &mut Workspace) -> Result<(), StageError> {
    let visible = match order.arm {
        Arm::WithSkill | Arm::Version(_) => order.skills,
        Arm::WithoutSkill => &[],
    };
    let rivals =
        order.rivals.iter().filter(|rival| order.skills.iter().all(|skill| skill.name != rival.name));
    let plugins = plugins::stage_plugins(order, workspace)?;
    for path in rivals.filter_map(|rival| rival.path.as_ref()) {
        if !plugins.iter().any(|plugin| plugin.skill_at(path).is_some()) {
            stage_skill(path, None, order, workspace)?;
        }
    }
    for skill in visible {
        let Some(path) = &skill.path else { continue };
        let name = match order.case.workspace.skill_name {
            StagedSkillName::Own => None,
            StagedSkillName::Alias => Some(alias(&skill.name, order.alias_ending)),
        };
        let in_plugin = plugins.iter().find_map(|plugin| Some((&plugin.name, plugin.skill_at(path)?)));
        let (staged, called) = match in_plugin.filter(|_| name.is_none()) {
            Some((plugin, skill)) => (skill.listed_name.clone(), format!("{plugin}:{}", skill.listed_name)),
            None => {
                let staged = stage_skill(path, name.as_deref(), order, workspace)?;
                (staged.clone(), staged)
            }
        };
        if name.is_none() {
            let plugin = in_plugin.map(|(plugin, _)| plugin.as_str());
            workspace.other_names.extend(other_names(path, &staged, plugin, order));
        }
        workspace.staged_names.push(staged);
        workspace.call_names.push(called);
    }
    Ok(())
}

/// Gives the names of a skill other than the staged one: those of its frontmatter and its folder, with and without
/// the plugin's name. A name that another skill has is left out.
fn other_names(
    path: &Path,
    staged: &str,
    plugin: Option<&str>,
    order: &StagingRequest<'_>,
) -> Vec<(String, String)> {
    let Ok(skill) = Skill::read(path) else { return Vec::new() };
    let folder = name_from_path(&skill.file, skill.form);
    let is_others = |name: &String| {
        let mut others =
            order.skills.iter().chain(order.rivals).filter(|other| other.path.as_deref() != Some(path));
        others.any(|other| other.name == *name)
    };
    let bare = [skill.name, folder].into_iter().filter(|name| !is_others(name));
    let both = bare.flat_map(|name| {
        let full = plugin.map(|plugin| format!("{plugin}:{name}"));
        std::iter::once(name).chain(full)
    });
    let mut names: Vec<String> = both.filter(|name| name != staged).collect();
    names.dedup();
    names.into_iter().map(|name| (staged.to_owned(), name)).collect()
}

/// Stages one skill, and gives its name in the workspace.
fn stage_skill(
    path: &Path,
    alias: Option<&str>,
    order: &StagingRequest<'_>,
    workspace: &mut Workspace,
) -> Result<String, StageError> {
    let marker = order.add_canaries.then(|| uuid::Uuid::new_v4().simple().to_string());
    let (folder, canary) = (&workspace.folder, marker.as_deref());
    let skill = staging_steps::copy_skill(path, alias, canary, folder, order.skills_dir, order.hidden_files)?;
    workspace.canaries.extend(marker.map(|marker| Canary { skill: skill.clone(), marker }));
    Ok(skill)
}

/// The longest allowed name of a skill.
const LONGEST_NAME: usize = 64;

fn alias(own: &str, ending: &str) -> String {
    let room = LONGEST_NAME.saturating_sub(ending.len() + 1);
    let own: String = own.chars().filter(char::is_ascii).take(room).collect();
    format!("{own}-{ending}")
}

impl Workspace {
    /// Gives the name by which a user or a model calls a skill with this staged name.
    pub(crate) fn call_name_of<'w>(&'w self, staged: &'w str) -> &'w str {
        let mut both = self.staged_names.iter().zip(&self.call_names);
        both.find(|(name, _)| *name == staged).map_or(staged, |(_, called)| called)
    }

    pub(crate) fn set_keep_on_drop(&mut self) {
        self.keep_on_drop = true;
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes a new snapshot after the setup script, so that its changes do not count as the agent's.
    pub(crate) fn reset_snapshot(&mut self) {
        self.read_only.retain_mut(|(path, digest)| match read_regular(path.join_to(&self.folder)) {
            Ok(bytes) => {
                *digest = Digest::of_bytes(&bytes);
                true
            }
            Err(_) => false,
        });
        self.take_snapshot();
    }

    /// Takes a new snapshot after the files got another owner, which changes the times that the kernel keeps.
    pub(crate) fn take_snapshot(&mut self) {
        self.snapshot_before = Snapshot::of_folder(&self.folder);
    }

    /// Gives what the folders of the trial held before its agent started, as far as staging knows it.
    pub(crate) fn staged_usage(&self) -> Option<DiskUsage> {
        // Beside the working folder there are only an empty home and an empty folder for temporary files.
        let DiskUsage { bytes, files } = self.snapshot_before.usage;
        self.plugins.is_empty().then_some(DiskUsage { bytes, files: files + 3 })
    }

    /// Lists what the agent created, changed or deleted.
    pub fn changes(&self) -> Vec<FileChange> {
        self.snapshot_before.changes(&Snapshot::of_folder(&self.folder))
    }

    /// Says for each read-only file whether the agent changed or deleted it.
    pub fn given_files(&self) -> Vec<GivenFile> {
        let now = |path: &RelPath| {
            read_regular(path.join_to(&self.folder)).ok().map(|bytes| Digest::of_bytes(&bytes))
        };
        let fate = |(path, before): &(RelPath, Digest)| match now(path) {
            Some(after) if after == *before => GivenFileFate::Unchanged,
            Some(_) => GivenFileFate::Changed,
            None => GivenFileFate::Deleted,
        };
        self.read_only.iter().map(|file| GivenFile { path: file.0.clone(), fate: fate(file) }).collect()
    }

    pub fn view(&self) -> FolderView {
        FolderView::new(&self.folder)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if !self.keep_on_drop {
            remove_workspace(&self.root);
        }
    }
}

#[cfg(test)]
mod tests;
