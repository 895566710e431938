//! The providers of a promptfoo config: which of them are agents with skills, and what the arms, the skills and the
//! workspace are.

use std::path::{Path, PathBuf};

use super::super::reading::graders::Unsupported;
use super::super::reading::{self, SkillHint};
use super::super::{EvalFileLocation, EvalFolder};
use super::template::{TestVariables, render};
use practicum_core::model::{Arm, Diagnostics, SkillRef, Span, WorkspaceBase};
use practicum_core::tree::{ObjectReader, SourceFile, TreeNode};
use practicum_skills::skill::{Plugin, SkillCache, normalise_path};

/// What the providers of a config say about its runs.
#[derive(Default)]
pub struct ProviderSettings {
    pub agents: Vec<String>,
    pub model: Option<String>,
    pub arms: Vec<Arm>,
    pub skills: Vec<SkillRef>,
    pub plugins: Vec<PathBuf>,
    pub base: Option<WorkspaceBase>,
    /// The folder whose content the agent has around it.
    pub working_dir: Option<PathBuf>,
    /// Why no case can be run.
    pub unsupported: Unsupported,
}

/// The folders of a working folder in which agents look for skills.
const SKILL_FOLDERS: [&str; 6] =
    [".claude/skills", ".agents/skills", ".codex/skills", ".opencode/skills", ".opencode/skill", "skills"];

/// Keys of a provider that change what the agent is told or must answer, and that cannot be given to an agent here.
const UNSUPPORTED_KEYS: [&str; 12] = [
    "output_format",
    "output_schema",
    "system_prompt",
    "custom_system_prompt",
    "append_system_prompt",
    "base_instructions",
    "developer_instructions",
    "mcp",
    "mcp_servers",
    "agents",
    "additional_directories",
    "resume",
];

/// Gives the agent that a provider runs, with the model that its id names.
fn agent_of(id: &str) -> Option<(&'static str, Option<&str>)> {
    let model_after =
        |prefix: &str| id.strip_prefix(prefix)?.strip_prefix(':').filter(|model| !model.is_empty());
    for (prefix, agent) in [
        ("anthropic:claude-agent-sdk", "claude"),
        ("anthropic:claude-code", "claude"),
        ("openai:codex-app-server", "codex"),
        ("openai:codex-desktop", "codex"),
        ("openai:codex-sdk", "codex"),
        ("openai:codex", "codex"),
        ("opencode:sdk", "opencode"),
        ("opencode", "opencode"),
    ] {
        if id == prefix || id.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(':')) {
            return Some((agent, model_after(prefix)));
        }
    }
    None
}

/// Says whether a provider of a config is an agent that can have skills.
pub fn is_agent(node: &TreeNode) -> bool {
    provider_id(node).is_some_and(|id| agent_of(id).is_some())
}

/// Gives the id of a provider: a text, a mapping with an `id`, or a mapping whose only key is the id.
fn provider_id(node: &TreeNode) -> Option<&str> {
    let id = node.as_text().or_else(|| node.get("id")?.as_text());
    id.or_else(|| match node.as_map()? {
        [only] if !["id", "config", "label"].contains(&only.key.as_str()) => Some(only.key.as_str()),
        _ => None,
    })
}

/// One provider that is an agent.
struct AgentProvider {
    agent: &'static str,
    label: String,
    model: Option<String>,
    skills: Vec<SkillRef>,
    plugins: Vec<PathBuf>,
    working_dir: Option<PathBuf>,
}

/// Reads the providers. `None` if no provider has skills; that is reported.
pub fn read_providers(
    file: &mut ObjectReader<'_>,
    source: &SourceFile,
    place: &EvalFileLocation,
    diagnostics: &mut Diagnostics,
) -> Option<ProviderSettings> {
    let node = file.get_non_null("providers").or_else(|| file.get_non_null("targets"));
    let nodes: Vec<&TreeNode> = match node {
        Some(node) => node.as_list().map_or_else(|| vec![node], |nodes| nodes.iter().collect()),
        None => Vec::new(),
    };
    let reader = ProviderReader { source, place };
    let mut settings = ProviderSettings::default();
    let mut agents = Vec::new();
    let mut others = Vec::new();
    for node in nodes {
        match provider_id(node).and_then(agent_of) {
            Some((agent, model)) => {
                agents.push(reader.read(node, agent, model, &mut settings.unsupported, diagnostics));
            }
            None => others.push((provider_id(node).unwrap_or("a provider"), node.span)),
        }
    }
    if agents.is_empty() {
        refuse(source.root.span, &others, diagnostics);
        return None;
    }
    for (id, span) in &others {
        let message = format!("the provider \"{id}\" is no agent that has skills, so it is left out");
        diagnostics.warning("unread-provider", *span, message);
    }
    settings.choose(agents, source, place, diagnostics)
}

fn refuse(span: Span, others: &[(&str, Span)], diagnostics: &mut Diagnostics) {
    let ids: Vec<&str> = others.iter().map(|(id, _)| *id).collect();
    let ids = if ids.is_empty() { "it names none".to_owned() } else { format!("it has {}", ids.join(", ")) };
    diagnostics.error_with_help(
        "no-skill-mechanism",
        span,
        format!("no provider of this promptfoo config runs an agent that loads skills ({ids}), so it tests no skill"),
        "skills reach an agent through anthropic:claude-agent-sdk, openai:codex-sdk or opencode:sdk; run other \
         configs with promptfoo",
    );
}

impl ProviderSettings {
    /// Decides agents, arms and skills by the providers.
    fn choose(
        mut self,
        providers: Vec<AgentProvider>,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        for provider in &providers {
            if !self.agents.iter().any(|agent| agent == provider.agent) {
                self.agents.push(provider.agent.to_owned());
            }
        }
        let models: Vec<&String> = providers.iter().filter_map(|provider| provider.model.as_ref()).collect();
        let same = models.windows(2).all(|pair| pair[0] == pair[1]) && models.len() == providers.len();
        match (same, models.first()) {
            (true, Some(model)) if self.agents.len() == 1 => self.model = Some((*model).clone()),
            (_, Some(_)) => diagnostics.notice(
                "unused-setting",
                source.root.span,
                "the providers have different models; choose one with --model",
            ),
            (_, None) => {}
        }
        let (with, without): (Vec<&AgentProvider>, Vec<&AgentProvider>) =
            providers.iter().partition(|provider| !provider.skills.is_empty());
        let named = place.skill.as_deref().map(|path| reading::skill_at(path, &place.skills, diagnostics));
        let chosen = match &named {
            Some(skill) => {
                with.iter().find(|provider| provider.skills.iter().any(|own| own.path == skill.path))
            }
            None => None,
        };
        let Some(chosen) = chosen.or(with.first()).copied().or(providers.first().filter(|_| named.is_some()))
        else {
            diagnostics.error_with_help(
                "no-skill-mechanism",
                source.root.span,
                "no provider of this promptfoo config gives its agent a skill: none was found in the working folders \
                 or the plugins that it names",
                "name the skill with --skill",
            );
            return None;
        };
        let names = |provider: &AgentProvider| {
            let mut paths: Vec<Option<PathBuf>> =
                provider.skills.iter().map(|skill| skill.path.clone()).collect();
            paths.sort();
            paths
        };
        let rivals = with.iter().filter(|other| other.agent == chosen.agent && names(other) != names(chosen));
        let rivals: Vec<&str> = rivals.map(|other| other.label.as_str()).collect();
        if named.is_none() && !rivals.is_empty() {
            self.unsupported.add(format!(
                "the providers \"{}\" and \"{}\" have different skills; name one of them with --skill",
                chosen.label,
                rivals.join("\", \"")
            ));
        }
        self.arms = match without.is_empty() {
            true => vec![Arm::WithSkill],
            false => vec![Arm::WithSkill, Arm::WithoutSkill],
        };
        self.skills = named.map_or_else(|| chosen.skills.clone(), |skill| vec![skill]);
        self.plugins.clone_from(&chosen.plugins);
        self.working_dir.clone_from(&chosen.working_dir);
        // A working folder around the config is the project; its evals are left out when it is copied.
        let holds_config =
            |folder: &PathBuf| normalise_path(source.folder()).starts_with(normalise_path(folder));
        if self.working_dir.as_ref().is_some_and(holds_config) {
            self.working_dir = None;
            self.base = Some(WorkspaceBase::Project);
        }
        Some(self)
    }
}

struct ProviderReader<'r> {
    source: &'r SourceFile,
    place: &'r EvalFileLocation,
}

impl ProviderReader<'_> {
    fn read(
        &self,
        node: &TreeNode,
        agent: &'static str,
        model: Option<&str>,
        unsupported: &mut Unsupported,
        diagnostics: &mut Diagnostics,
    ) -> AgentProvider {
        let id = provider_id(node).unwrap_or(agent);
        let body = node.as_map().and_then(|entries| match entries {
            [only] if only.key == id => Some(&only.value),
            _ => None,
        });
        let body = body.unwrap_or(node);
        let label = body.get("label").and_then(TreeNode::as_text).unwrap_or(id).to_owned();
        let mut provider = AgentProvider {
            agent,
            label,
            model: model.map(str::to_owned),
            skills: Vec::new(),
            plugins: Vec::new(),
            working_dir: None,
        };
        if body.get("transform").is_some_and(|node| !node.is_null()) {
            unsupported.add("its provider changes the output with \"transform\"");
        }
        for key in ["prompts"] {
            if body.get(key).is_some_and(|node| !node.is_null()) {
                unsupported.add("its provider gets only some of the \"prompts\"");
            }
        }
        let Some(config) = body.get("config").filter(|node| !node.is_null()) else { return provider };
        for key in UNSUPPORTED_KEYS {
            let is_empty = |node: &TreeNode| {
                node.is_null()
                    || node.as_map().is_some_and(<[_]>::is_empty)
                    || node.as_list().is_some_and(<[_]>::is_empty)
            };
            if config.get(key).is_some_and(|node| !is_empty(node)) {
                unsupported.add(format!("\"{key}\" of its provider cannot be given to the agent"));
            }
        }
        let said = config.get("model").and_then(TreeNode::as_text);
        let said = said.and_then(|model| render(model, &TestVariables::new()).ok());
        provider.model = said.filter(|model| !model.is_empty()).or(provider.model);
        provider.working_dir = config.get("working_dir").and_then(|node| self.folder(node, diagnostics));
        self.find_skills(config, &mut provider, diagnostics);
        provider
    }

    /// Gives the full path of a folder that a provider names. Reports one that leads out of the project.
    fn folder(&self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<PathBuf> {
        let text = render(node.as_text()?, &TestVariables::new());
        let Ok(text) = text else {
            let message = "this path depends on the environment, which is not read here";
            diagnostics.warning("unread-path", node.span, message);
            return None;
        };
        let path = normalise_path(&self.source.folder().join(&text));
        if reading::lies_in_none(&[&self.place.project, &self.place.root, self.source.folder()], &path) {
            diagnostics.error("escaping-path", node.span, format!("{text:?} lies outside the project"));
            return None;
        }
        if !path.is_dir() {
            diagnostics.warning("file-not-found", node.span, format!("the folder {text} does not exist"));
            return None;
        }
        Some(path)
    }

    /// Finds the skills that the agent of a provider loads.
    fn find_skills(&self, config: &TreeNode, provider: &mut AgentProvider, diagnostics: &mut Diagnostics) {
        for node in config.get("plugins").and_then(TreeNode::as_list).unwrap_or_default() {
            let Some(path) = node.get("path") else { continue };
            let Some(root) = self.folder(path, diagnostics) else { continue };
            match Plugin::read(&root) {
                Ok(plugin) => provider.add_plugin(plugin, &self.place.skills),
                Err(problem) => diagnostics.warning("broken-plugin", path.span, problem.to_string()),
            }
        }
        let sources = config.get("setting_sources").and_then(TreeNode::as_list);
        let reads_project = match provider.agent {
            // A list of sources without the project keeps Claude's SDK from loading the skills in it.
            "claude" => {
                sources.is_none_or(|sources| sources.iter().any(|source| source.as_text() == Some("project")))
            }
            _ => true,
        };
        if let Some(folder) = provider.working_dir.clone().filter(|_| reads_project) {
            for home in SKILL_FOLDERS {
                provider.add_folder(&folder.join(home), &self.place.skills, diagnostics);
            }
        }
        let filter = config.get("skills");
        let names: Vec<&str> = filter
            .and_then(TreeNode::as_list)
            .unwrap_or_default()
            .iter()
            .filter_map(TreeNode::as_text)
            .collect();
        if filter.is_some_and(|filter| filter.as_list().is_some()) {
            let own = |name: &&str, skill: &SkillRef| name.rsplit(':').next() == Some(skill.name.as_str());
            provider.skills.retain(|skill| names.iter().any(|name| own(name, skill)));
        }
        if let (true, [first, ..], Some(filter)) = (provider.skills.is_empty(), names.as_slice(), filter) {
            let name = first.rsplit(':').next().unwrap_or(first);
            let hint = SkillHint { name, span: filter.span, is_decisive: true };
            let place = EvalFileLocation { skill: None, ..self.place.clone() };
            provider.skills.push(reading::skill_beside(
                self.source.folder(),
                &place,
                Some(hint),
                diagnostics,
            ));
        }
    }
}

impl AgentProvider {
    fn add_plugin(&mut self, plugin: Plugin, skills: &SkillCache) {
        for skill in &plugin.skills {
            let read = skills.read(&skill.folder);
            let name = read.map_or_else(|_| skill.listed_name.clone(), |read| read.name.clone());
            self.add(SkillRef { name, path: Some(skill.folder.clone()), plugin: Some(plugin.name.clone()) });
        }
        self.plugins.push(plugin.root);
    }

    fn add_folder(&mut self, home: &Path, skills: &SkillCache, diagnostics: &mut Diagnostics) {
        let Ok(folder) = EvalFolder::open(home) else { return };
        for name in folder.names() {
            let path = home.join(name);
            if reading::is_skill(&path) {
                self.add(reading::skill_at(&path, skills, diagnostics));
            }
        }
    }

    fn add(&mut self, skill: SkillRef) {
        if self.skills.iter().all(|known| known.name != skill.name) {
            self.skills.push(skill);
        }
    }
}
