//! Prepares a run from what the user asked for.
//!
//! In: paths, options, settings. Out: `EvalFiles`, then planned suites, services and a sandbox. Never: starts an
//! agent.

mod agents_here;
mod arms;
mod catalogue;
mod criteria_selection;
mod derived_system_prompt;
mod eval_files;
mod fixture_paths;
mod judges;
mod plugins;
mod services;
mod skill_problems;
mod slash_commands;
mod stored_suites;
mod suite_names;
mod unfit_fixtures;
mod unstaged_files;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

pub use catalogue::{CatalogueError, SkillCatalogue};
pub use criteria_selection::{leave_other_criteria_open, remove_other_criteria};
pub use eval_files::{EvalFiles, read_eval_files, single_command_evals, single_prompt_evals};
pub use judges::{JudgePool, require_judges};
pub use services::{SharedServices, connect_adviser, connect_services, read_script};
pub use skill_problems::{
    leave_out_unfit_rivals, mismatched_name_notices, missing_description_notices, skill_warnings,
    uncallable_skill_notices, unreadable_skills,
};
pub(crate) use skill_problems::{meaningless_negative_cases, unread_command_notices};
pub use stored_suites::{StoredSuite, stored_suites};
pub(crate) use unfit_fixtures::unfit_fixtures;
pub use unstaged_files::{overlay_link_notices, skill_link_notices};

use self::agents_here::find_agents_here;
use self::eval_files::skill_ref_at;
use self::skill_problems::{commands_not_offered, same_name_notice, servers_not_accepted};
use crate::plan::options::RunInputs;
use crate::plan::settings::{
    Setting, SettingLayers, SettingSource as SaidBy, Settings, SettingsError, own_agents, project_root,
};
use crate::plan::system_prompt;
use crate::plan::{CaseFilter, MissingRequirements, Plan, PlannedSuite};
use crate::workspace::limits::ResourceLimits;
use crate::workspace::sandbox::Sandbox;
use practicum_agents::agents::{AgentCli, AgentRegistry, LaunchError, is_tool_name, tool_names};
use practicum_agents::gateway::{Cassette, CassetteError, ScopeKind};
use practicum_core::model::{
    Case, CheckKind, Diagnostics, GateName, PassRule, SandboxMode, SkillRef, SkillUseMode, Suite,
    WorkspaceBase,
};
use practicum_core::tree::closest_word;
use practicum_evals::dialects::{LocatedSuite, PLUGINS_VARIABLE};
use practicum_evals::discover::DiscoverError;
use practicum_skills::skill::{Skill, SkillCache};

/// An error: a run cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum RunSetupError {
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Skill(#[from] practicum_skills::skill::SkillError),
    #[error(transparent)]
    Plugin(#[from] practicum_skills::skill::PluginError),
    #[error(
        "no skill at {0}, and none of that name in the plugins or skills folders of this project; name its \
         folder, or say where the plugins are with {variable} (default ../plugins)",
        variable = PLUGINS_VARIABLE
    )]
    NoSkillNamed(String),
    #[error(
        "the eval file names no agent, which for its format means claude or codex, and neither is installed; install \
         one of them, or choose an agent with --agent (builtin is this program's own)"
    )]
    NoAgentInstalled,
    #[error("no agent is installed and logged in ({0}); practicum doctor shows what is missing")]
    NoAgentsHere(String),
    #[error("several skills are called {name}; say {choices}")]
    SeveralSkillsNamed { name: String, choices: String },
    #[error("suite {suite} is about several skills, and {skill} is none of them")]
    SkillNotInSuite { skill: String, suite: String },
    #[error("the skill {skill} is under test in suite {suite}, so it cannot be staged beside itself")]
    SkillIsOwnRival { skill: String, suite: String },
    #[error("there is no agent \"{name}\"; {hint}")]
    UnknownAgent { name: String, hint: String },
    #[error("{0}")]
    UnknownMode(String),
    #[error("{0}; install it, or name another with --agent (practicum doctor shows which are installed)")]
    AgentNotInstalled(LaunchError),
    #[error("the script {path} cannot be used")]
    Script { path: PathBuf, text: String, diagnostics: Diagnostics },
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error("no criterion has \"{wanted}\" in its id, name or text; there are: {known}")]
    UnknownCriterion { wanted: String, known: String },
    #[error("{}", .0.join("\n"))]
    CannotRun(Vec<String>),
    #[error(
        "no judge can be reached, so nothing was started: {}\n  --no-judge leaves judged checks unscored",
        .0.join("; ")
    )]
    NoJudge(Vec<String>),
    #[error(transparent)]
    Sandbox(#[from] crate::workspace::sandbox::SandboxError),
    #[error("cannot start the gateway: {0}")]
    Gateway(std::io::Error),
}

// This is written by hand because `#[from]` would report the source of the error a second time.
impl From<LaunchError> for RunSetupError {
    fn from(error: LaunchError) -> Self {
        Self::AgentNotInstalled(error)
    }
}

/// Finds what a suite names and this machine does not have. The cases that need it are not run and stay unscored.
pub(crate) fn find_missing_requirements(suite: &Suite, cache: &SkillCache) -> MissingRequirements {
    let mut missing = MissingRequirements::default();
    for skill in &suite.skills {
        match &skill.path {
            Some(path) => missing.skills.extend(match cache.read(path) {
                Ok(skill) => skill.describe_unusable_name(),
                Err(error) => Some(error.to_string()),
            }),
            None => missing.skills.push(format!(
                "the skill {} of suite {} was not found; name it with --skill",
                skill.name, suite.name
            )),
        }
    }
    for case in &suite.cases {
        let files = case.workspace.files.iter().map(|file| &file.source).chain(&case.workspace.overlays);
        for path in files {
            let why = match path.metadata() {
                Err(_) => "does not exist",
                // A copy of a pipe or a device would never end.
                Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                    "is neither a regular file nor a folder"
                }
                Ok(_) => continue,
            };
            let why = format!("{} {why}", path.display());
            missing.files.entry(case.id.clone()).or_default().push(why);
        }
    }
    missing
}

/// Gives all agents by name: the known ones, and those of the project and user files, which win.
pub fn all_agents(
    layers: &SettingLayers,
    known: &AgentRegistry,
) -> Result<BTreeMap<String, AgentCli>, SettingsError> {
    let own = own_agents(layers, known)?;
    Ok(known.agents().iter().cloned().chain(own).map(|agent| (agent.name.clone(), agent)).collect())
}

/// Decides how each suite with a selected case is run. Gives also notices about what was chosen for the user.
pub(crate) fn resolve_suites(
    reading: EvalFiles,
    ask: &RunInputs,
    layers: &SettingLayers,
    agents: &BTreeMap<String, AgentCli>,
    filter: &CaseFilter,
    trusts_plugin: &dyn Fn(&Path) -> bool,
) -> Result<(Vec<PlannedSuite>, Vec<String>), RunSetupError> {
    let mut planned = Vec::new();
    let mut notices = Vec::new();
    let mut problems = Vec::new();
    // The skills are read anew, because some may have been edited since the eval files were read.
    let cache = SkillCache::default();
    let mut project_notices = unstaged_files::ProjectNotices::default();
    let rivals: Vec<SkillRef> =
        ask.with_skills.iter().map(|path| skill_ref_at(path)).collect::<Result<_, RunSetupError>>()?;
    let mut suites = reading.into_suites()?;
    notices.extend(suite_names::make_names_unique(&mut suites));
    // Problems of a suite that nobody selected must not stop the others.
    suites.retain(|placed| filter.wants_some_of(&placed.suite));
    for LocatedSuite { mut suite, mut project, .. } in suites {
        let mut left_out = Vec::new();
        for rival in &rivals {
            left_out.extend(replaced_rival(&suite, rival));
            if !suite.add_rival(rival.clone()) {
                let tested = suite.skills.iter().find(|skill| skill.name == rival.name);
                let (skill, suite) = (rival.name.clone(), suite.name.clone());
                match tested.and_then(|tested| same_name_notice(&read_skill(tested)?, &read_skill(rival)?)) {
                    // The skill under test is clear, so another skill of the same name is only left out.
                    Some(notice) => left_out.push(notice),
                    None => return Err(RunSetupError::SkillIsOwnRival { skill, suite }),
                }
            }
        }
        let plugins = plugins::add_plugins(&mut suite, &ask.plugins)?;
        left_out.extend(leave_out_unfit_rivals(&mut suite, &cache));
        let mut missing = find_missing_requirements(&suite, &cache);
        for (case, why) in unfit_fixtures(&suite, &cache) {
            missing.files.entry(case).or_default().extend(why);
        }
        for (case, why) in meaningless_negative_cases(&suite, &cache) {
            missing.files.entry(case).or_default().push(why);
        }
        let settings = Settings::resolve(layers, &suite)?;
        if settings.trigger_threshold.source == SaidBy::Flag {
            suite.cases.iter_mut().for_each(decide_by_threshold);
        }
        problems.extend(judges::unknown_provider_reason(&settings, &suite).filter(|_| !ask.no_judge));
        let is_answered = ask.script.is_some() || ask.replay.is_some();
        let is_needed = !ask.only_shown && !ask.runs_elsewhere;
        let wanted = &settings.agents;
        let names = choose_agents(wanted, agents, layers, (is_needed, is_answered), &mut notices)?;
        problems.extend(agents_without_gateway(ask, &suite, &names, agents));
        let selected = filter.wanted_cases(&suite);
        problems.extend(arms::problems(&suite, &selected, &settings.arms.value));
        notices.extend(arms::left_out_cases_notice(&suite, &selected, &settings.arms.value));
        let chosen: Vec<&AgentCli> = names.iter().filter_map(|name| agents.get(name)).collect();
        missing.for_agents = commands_not_offered(&suite, &cache, &chosen);
        missing.for_agents.extend(servers_not_accepted(&suite, &chosen));
        if let Some(tools) = &settings.tools.value {
            let unknown = tools.iter().filter(|tool| !is_tool_name(tool));
            let notices = unknown.map(|tool| {
                let meant =
                    closest_word(tool, tool_names()).map(|meant| format!("; did you mean \"{meant}\"?"));
                format!(
                    "--tools names \"{tool}\", a tool that no known agent has{}",
                    meant.unwrap_or_default()
                )
            });
            notices.for_each(|notice| left_out.push(notice));
            let cannot =
                names.iter().filter(|name| agents.get(*name).is_some_and(|agent| !agent.can_limit_tools()));
            problems.extend(cannot.map(|name| {
                format!(
                    "agent {name} cannot be limited to some tools; leave --tools off, or choose another agent"
                )
            }));
        }
        if let Some(base) = chosen_workspace(&settings.workspace, &suite) {
            project = project_of_workspace(base, &suite, project);
            suite.cases.iter_mut().for_each(|case| case.workspace.base = base);
        }
        if suite.cases.iter().any(|case| case.workspace.base == WorkspaceBase::Project)
            && is_bare_home(&project, layers)
        {
            problems.push("the project is your home folder, which is not copied for agents".to_owned());
        }
        if suite.skills.is_empty() {
            notices.push(format!(
                "suite {} names no skill, so none is staged; name one with --skill",
                suite.name
            ));
        }
        let canaries = names.iter().filter_map(|name| canary_notice(agents.get(name)?, &suite));
        let chosen = || names.iter().filter_map(|name| agents.get(name));
        left_out.extend(plugins::plugin_notices(&plugins, &suite, chosen(), trusts_plugin));
        left_out.extend(unread_command_notices(&suite, &cache, chosen()));
        let of_skills = left_out.into_iter().chain(skill_warnings(&suite, &cache));
        let of_skills = of_skills.chain(skill_link_notices(&suite, &cache));
        let of_skills = of_skills.chain(uncallable_skill_notices(&suite, &cache));
        let of_skills = of_skills.chain(missing_description_notices(&suite, &cache));
        let of_project = project_notices.uncopied_files_notice(&suite, &cache, &project);
        let overlays = unstaged_files::outside_overlay_notices(&suite, &project);
        for notice in
            canaries.chain(of_skills).chain(of_project).chain(overlays).chain(overlay_link_notices(&suite))
        {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        let script = choose_script(ask, &suite, &names);
        let mode_text = mode_text(&settings.mode.value, layers).map_err(RunSetupError::UnknownMode)?;
        let derived_system = match derived_system_prompt::derive_system_prompt(&suite, &project, chosen()) {
            Ok(text) => text,
            Err(problem) => {
                if missing.skills.is_empty() {
                    missing.skills.push(problem);
                }
                None
            }
        };
        planned.push(PlannedSuite {
            suite,
            settings,
            agents: names,
            project,
            script,
            mode_text,
            derived_system,
            missing,
        });
    }
    // A suite without its skill does not stop the others. If all suites lack theirs, nothing can run.
    if planned.iter().all(|planned| !planned.missing.skills.is_empty()) {
        for problem in planned.iter().flat_map(|planned| &planned.missing.skills) {
            if !problems.contains(problem) {
                problems.push(problem.clone());
            }
        }
    }
    // Several suites may name the same broken skill. It is reported once.
    let mut seen = HashSet::new();
    problems.retain(|problem: &String| seen.insert(problem.clone()));
    if problems.is_empty() { Ok((planned, notices)) } else { Err(RunSetupError::CannotRun(problems)) }
}

/// Gives a notice if a skill that the user names replaces a rival of the same name.
fn replaced_rival(suite: &Suite, rival: &SkillRef) -> Option<String> {
    let known = suite.rivals.iter().find(|known| known.name == rival.name)?;
    same_name_notice(&read_skill(rival)?, &read_skill(known)?)
}

fn read_skill(skill: &SkillRef) -> Option<Skill> {
    Skill::read(skill.path.as_deref()?).ok()
}

/// Lets the activation rate decide a case that checks only activation: the user gave a threshold, even if the
/// format has none.
fn decide_by_threshold(case: &mut Case) {
    let asks_once =
        matches!(case.checks.as_slice(), [check] if matches!(check.kind, CheckKind::Activation(_)));
    if asks_once && case.pass_rule == PassRule::EveryRequiredCheck {
        case.pass_rule = PassRule::ActivationRate(None);
    }
}

/// Gives the text of a mode; the settings may replace it. An unknown name is an error that lists the known ones.
pub fn mode_text(mode: &SkillUseMode, layers: &SettingLayers) -> Result<Option<String>, String> {
    let table = layers.table("modes");
    let own = table.filter_map(|(name, text, _)| Some((name.clone(), text.as_str()?.to_owned())));
    Ok(system_prompt::mode_text(mode, &own.collect())?.map(str::to_owned))
}

/// Gives the base of all workspaces of a suite, if the settings decide it rather than each case. A project file
/// decides it only for formats that leave it open.
fn chosen_workspace(setting: &Setting<Option<WorkspaceBase>>, suite: &Suite) -> Option<WorkspaceBase> {
    let decides = match setting.source {
        SaidBy::Flag | SaidBy::Environment(_) | SaidBy::EvalFile => true,
        SaidBy::Project(_) | SaidBy::User(_) | SaidBy::Format(_) | SaidBy::Default => {
            suite.format_defaults.workspace.is_some()
        }
    };
    setting.value.filter(|_| decides)
}

/// Says whether a project is the user's home folder without anything that makes it a project.
fn is_bare_home(project: &Path, layers: &SettingLayers) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let home = layers.environment().get("HOME");
    let is_home = home.is_some_and(|home| real(Path::new(home)) == real(project));
    is_home && !["practicum.toml", ".git"].iter().any(|name| project.join(name).exists())
}

/// Gives the project of a suite's workspaces. Evals that are stored elsewhere run in the project of their skill.
fn project_of_workspace(base: WorkspaceBase, suite: &Suite, project: PathBuf) -> PathBuf {
    let skill = suite.skills.iter().find_map(|skill| skill.path.as_deref());
    match (base, skill) {
        (WorkspaceBase::Project, Some(skill)) if suite.format_defaults.workspace.is_some() => {
            project_root(skill)
        }
        _ => project,
    }
}

/// Gives a notice if an agent does not show activations and the suite has checks for them.
fn canary_notice(agent: &AgentCli, suite: &Suite) -> Option<String> {
    let asks = suite.has_checks_for(GateName::Recall) && !agent.decoder.shows_skills;
    asks.then(|| {
        format!(
            "the output of agent {} does not show activations, so staged skills have a marker line; if the \
             line does not appear in the output, activation is unknown",
            agent.name
        )
    })
}

/// Plans suites for display only: nothing has to be installed or to exist.
pub fn outline_eval_files(
    reading: EvalFiles,
    layers: &SettingLayers,
) -> Result<Vec<PlannedSuite>, RunSetupError> {
    outline_suites(reading.into_suites()?, layers)
}

/// Plans suites that were already read, for display only.
pub fn outline_suites(
    mut suites: Vec<LocatedSuite>,
    layers: &SettingLayers,
) -> Result<Vec<PlannedSuite>, RunSetupError> {
    suite_names::make_names_unique(&mut suites);
    let mut planned = Vec::new();
    for LocatedSuite { mut suite, project, .. } in suites {
        let settings = Settings::resolve(layers, &suite)?;
        if settings.trigger_threshold.source == SaidBy::Flag {
            suite.cases.iter_mut().for_each(decide_by_threshold);
        }
        let agents = settings.agents.value.clone();
        planned.push(PlannedSuite {
            suite,
            settings,
            agents,
            project,
            script: None,
            mode_text: None,
            derived_system: None,
            missing: MissingRequirements::default(),
        });
    }
    Ok(planned)
}

/// The name that stands for all agents of this machine.
const ALL_AGENTS: &str = "all";

/// Chooses the agents of a suite. Agents that are only shown need not be installed. `auto` stands for the first
/// installed agent, in the order of the registry, that may be chosen without being named. The agent that is this
/// program is skipped if `auto` comes from an eval format. `all` stands for every agent that can work here; a script or a
/// cassette replaces their logins.
fn choose_agents(
    wanted: &Setting<Vec<String>>,
    agents: &BTreeMap<String, AgentCli>,
    layers: &SettingLayers,
    (is_needed, is_answered): (bool, bool),
    notices: &mut Vec<String>,
) -> Result<Vec<String>, RunSetupError> {
    let mut names = Vec::new();
    for name in &wanted.value {
        if name == ALL_AGENTS && !agents.contains_key(ALL_AGENTS) {
            let here = find_agents_here(agents, layers.environment(), is_answered);
            if here.names.is_empty() {
                return Err(RunSetupError::NoAgentsHere(here.notice));
            }
            if !notices.contains(&here.notice) {
                notices.push(here.notice);
            }
            names.extend(here.names);
            continue;
        }
        if name == "auto" {
            // In an eval format, `auto` means an agent CLI and not an agent of this program.
            let cli_only = matches!(wanted.source, SaidBy::Format(_));
            let Some((agent, notice)) = choose_auto(cli_only, agents, layers, is_needed) else {
                return Err(RunSetupError::NoAgentInstalled);
            };
            if !notices.contains(&notice) {
                notices.push(notice);
            }
            names.push(agent.name.clone());
            continue;
        }
        let Some(agent) = agents.get(name) else {
            let known: Vec<&str> = agents.keys().map(String::as_str).collect();
            let hint = match closest_word(name, &known) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("there are {}", known.join(", ")),
            };
            return Err(RunSetupError::UnknownAgent { name: name.clone(), hint });
        };
        if is_needed {
            agent.installed_path(layers.environment())?;
        }
        names.push(name.clone());
    }
    let mut seen = HashSet::new();
    names.retain(|name: &String| seen.insert(name.clone()));
    Ok(names)
}

/// Gives the agent that `auto` stands for, and a notice that names it. An agent that is only shown need not be
/// installed.
fn choose_auto<'a>(
    cli_only: bool,
    agents: &'a BTreeMap<String, AgentCli>,
    layers: &SettingLayers,
    is_needed: bool,
) -> Option<(&'a AgentCli, String)> {
    let fits = |agent: &&AgentCli| agent.auto.is_some() && !(cli_only && agent.is_this_program());
    let mut known: Vec<&AgentCli> = agents.values().filter(fits).collect();
    known.sort_by_key(|agent| agent.auto);
    let installed = known.iter().copied().find(|agent| agent.installed_path(layers.environment()).is_ok());
    let is_here = installed.is_some();
    let agent = installed.or_else(|| known.first().copied().filter(|_| !is_needed))?;
    let why = match (is_here, agent.is_this_program()) {
        (true, true) => "this program's own, because neither claude nor codex is installed",
        (true, false) => "the first that is installed",
        (false, _) => "which is not installed here",
    };
    let notice = format!("agent auto: {}, {why}", agent.name);
    Some((agent, notice))
}

/// Describes the agents that cannot be pointed at a script or a cassette although one is to answer.
fn agents_without_gateway(
    ask: &RunInputs,
    suite: &Suite,
    names: &[String],
    agents: &BTreeMap<String, AgentCli>,
) -> Vec<String> {
    let given = match (&ask.record, &ask.replay, choose_script(ask, suite, names)) {
        (Some(_), _, _) => "--record",
        (None, Some(_), _) => "--replay",
        (None, None, Some(_)) => "the script",
        (None, None, None) => return Vec::new(),
    };
    let cannot = |name: &&String| agents.get(*name).is_some_and(|agent| agent.route.is_none());
    let describe = |name: &String| {
        format!(
            "agent {name} cannot be pointed at a gateway, which {given} needs; leave it off, choose another agent, \
             or say in practicum.toml how the agent is pointed at one"
        )
    };
    names.iter().filter(cannot).map(describe).collect()
}

/// Gives the script that answers for the model, if any. A suite's script works only for the suite's own agents: a
/// user who names another agent wants a real model.
pub fn choose_script(ask: &RunInputs, suite: &Suite, agents: &[String]) -> Option<PathBuf> {
    if ask.record.is_some() || ask.replay.is_some() {
        return None;
    }
    if let Some(script) = &ask.script {
        return Some(std::path::absolute(script).unwrap_or_else(|_| script.clone()));
    }
    let own = agents.iter().all(|agent| suite.run_policy.agents.contains(agent));
    suite.run_policy.script.clone().filter(|_| own)
}

/// Says whether a probe of a suite can be answered. A script or a cassette tests the evals and not an agent, and one
/// that was made without probes must still work.
pub(crate) fn can_answer_probes(planned: &PlannedSuite, ask: &RunInputs) -> Result<bool, RunSetupError> {
    Ok(match (&planned.script, &ask.replay) {
        (Some(script), _) => read_script(script)?.has_scenario_for(ScopeKind::Probe),
        (None, Some(tape)) => {
            Cassette::read(tape)?.recorded_scopes().iter().any(|(kind, _)| *kind == ScopeKind::Probe)
        }
        (None, None) => true,
    })
}

/// Builds the sandbox of a run. It hides all files that could tell an agent what it is tested for.
pub(crate) fn build_sandbox(
    wanted: SandboxMode,
    env: &BTreeMap<String, String>,
    plan: &Plan,
    own: impl IntoIterator<Item = PathBuf>,
    limits: ResourceLimits,
) -> Result<Sandbox, RunSetupError> {
    let mut hidden: Vec<PathBuf> = own.into_iter().chain(env.get("HOME").map(PathBuf::from)).collect();
    for PlannedSuite { suite, project, script, .. } in &plan.suites {
        hidden.extend([project.clone(), suite.origin.path.clone()]);
        hidden.extend(script.iter().cloned());
        hidden.extend(suite.plugins.iter().cloned());
        hidden.extend(suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.clone()));
    }
    Ok(Sandbox::build(wanted, env, hidden, limits)?)
}
