//! From what a user asks to an exam that can begin.
//!
//! In: paths, choices, settings. Out: `Reading`, then `Exam`. Never: starts an agent.

mod given_away;
mod judges;
mod names;
mod stored;
mod system_prompt;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

pub use stored::{Stored, stored_suites};

use crate::agents::{AGENTS, Agent, LaunchError};
use crate::dialects::{self, Dialect, Loaded, Place, Placed};
use crate::discover::{self, By, DiscoverError, Found, Search};
use crate::gateway::{
    Answer, Cassette, CassetteError, Gateway, Ledger, Meter, Record, Replay, ScopeKind, Script, Scrub, Setup,
    Upstream,
};
use crate::judge::Judge;
use crate::model::{Diagnostics, Expect, GateName, SandboxMode, SkillRef, Suite, Trial};
use crate::pipeline::{Prior, Stand, SuiteMeans};
use crate::plan::{Plan, Planned};
use crate::sandbox::Sandbox;
use crate::settings::{Layers, Projects, Setting, Settings, SettingsError, own_agents, project_root};
use crate::skill::Skill;
use crate::tree::closest;
use crate::{modes, quality};

use given_away::GivenAway;
pub use judges::Bench;

/// What the user wants to be examined.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    pub paths: Vec<PathBuf>,
    /// Where the evals of a skill are, if not where they usually are.
    pub evals: Option<PathBuf>,
    pub dialect: Option<&'static str>,
    /// The skill under test, whatever the files say.
    pub skill: Option<PathBuf>,
    /// Skills that are staged beside it in every arm.
    pub with_skills: Vec<PathBuf>,
    /// A script in place of the model, whatever the files say.
    pub script: Option<PathBuf>,
    /// A cassette to write what the model is asked and answers.
    pub record: Option<PathBuf>,
    /// A cassette in place of the model.
    pub replay: Option<PathBuf>,
    pub no_judge: bool,
}

/// The files that were found, read.
pub struct Reading {
    pub files: Vec<Loaded>,
    /// For each file, the project it belongs to.
    projects: Vec<PathBuf>,
    /// The skill under test, if the user names one.
    skill: Option<SkillRef>,
}

impl Reading {
    pub fn has_errors(&self) -> bool {
        self.files.iter().any(|file| file.lowered.diagnostics.has_errors())
    }

    /// The suites that could be understood.
    pub fn into_suites(self) -> Result<Vec<Placed>, IntakeError> {
        let placed = self.files.into_iter().zip(self.projects).filter_map(|(file, project)| {
            Some(Placed { suite: file.lowered.suite?, root: file.root, project })
        });
        let mut suites = dialects::merge_folders(placed);
        if let Some(skill) = &self.skill {
            for Placed { suite, .. } in &mut suites {
                if !suite.put_under_test(skill.clone()) {
                    let (skill, suite) = (skill.name.clone(), suite.name.clone());
                    return Err(IntakeError::NotOfSuite { skill, suite });
                }
            }
        }
        Ok(suites)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Skill(#[from] crate::skill::SkillError),
    #[error("suite {suite} is about several skills, and {skill} is none of them")]
    NotOfSuite { skill: String, suite: String },
    #[error("the skill {skill} is under test in suite {suite}, so it cannot be staged beside itself")]
    OwnRival { skill: String, suite: String },
    #[error("there is no agent \"{name}\"; {hint}")]
    UnknownAgent { name: String, hint: String },
    #[error("{0}")]
    Mode(String),
    #[error("{0}; install it, or name another with --agent (practicum doctor tells which are here)")]
    NotInstalled(LaunchError),
    #[error("the script {path} cannot be used")]
    Script { path: PathBuf, text: String, diagnostics: Diagnostics },
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error("{}", .0.join("\n"))]
    Missing(Vec<String>),
    #[error(transparent)]
    Sandbox(#[from] crate::sandbox::SandboxError),
    #[error("cannot start the gateway: {0}")]
    Gateway(std::io::Error),
}

// By hand, because a source would be told a second time.
impl From<LaunchError> for IntakeError {
    fn from(error: LaunchError) -> Self {
        Self::NotInstalled(error)
    }
}

/// Finds and reads eval files.
pub fn read(ask: &Ask, env: &BTreeMap<String, String>) -> Result<Reading, IntakeError> {
    let forced: Option<&'static dyn Dialect> = ask.dialect.and_then(dialects::dialect);
    let search = Search {
        paths: ask.paths.clone(),
        evals: ask.evals.clone(),
        home: env.get("HOME").map(PathBuf::from),
    };
    let found = discover::discover(&search, &project_root)?;
    let named_skill = ask.skill.clone().or_else(|| search.skill_of_evals());
    let plugins = env.get("CLAUDE_1337_PLUGINS").filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut projects = Projects::default();
    let skill = match &named_skill {
        Some(path) => Some(skill_at(path)?),
        None => None,
    };
    let under_test = skill.as_ref().and_then(|skill| skill.path.clone());
    let mut places = Vec::new();
    let mut sought = Vec::new();
    for Found { file, root, skill, by } in found {
        let project = projects.of(&file);
        let skill = under_test.clone().or(skill);
        places.push((file, Place { root, project, plugins: plugins.clone(), skill }));
        sought.push(by);
    }
    let files = load_all(&places, forced);
    let projects = places.into_iter().map(|(_, place)| place.project);
    let given = GivenAway::by(&files);
    let kept = files.into_iter().zip(projects).zip(sought).filter_map(|((file, project), by)| {
        let is_exam = by == By::Name || !given.has(&file.path);
        is_exam.then_some((file, project))
    });
    let (files, projects) = kept.unzip();
    Ok(Reading { files, projects, skill })
}

fn skill_at(path: &Path) -> Result<SkillRef, IntakeError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(SkillRef { name: Skill::read(&path)?.name, path: Some(path), plugin: None })
}

/// A suite that no file holds: one prompt, and whether the skill must fire.
pub fn one_prompt(prompt: &str, skill: &Path, expect: Expect, runs: u32) -> Result<Reading, IntakeError> {
    let path = std::path::absolute(skill).unwrap_or_else(|_| skill.to_owned());
    let skill = Skill::read(&path)?;
    let document = json!({
        "practicum": 1,
        "name": "try",
        "skill": {"name": skill.name, "path": path},
        "workspace": "empty",
        "run": {"repeat": runs},
        "cases": [{"id": "prompt", "prompt": prompt, "activation": expect.name()}],
    });
    let here = std::env::current_dir().unwrap_or_default();
    let place = Place { root: here.clone(), project: project_root(&here), plugins: None, skill: None };
    let file = dialects::load_text(&here.join("try.practicum.yaml"), document.to_string(), &place);
    Ok(Reading { files: vec![file], projects: vec![place.project], skill: None })
}

/// Reads the files on as many threads as there are cores, and gives them in their order.
fn load_all(places: &[(PathBuf, Place)], forced: Option<&'static dyn Dialect>) -> Vec<Loaded> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = places.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let readers: Vec<_> = places
            .chunks(share)
            .map(|chunk| {
                scope.spawn(move || {
                    chunk.iter().map(|(file, place)| load_one(file, place, forced)).collect::<Vec<_>>()
                })
            })
            .collect();
        readers
            .into_iter()
            .flat_map(|reader| reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn load_one(file: &Path, place: &Place, forced: Option<&'static dyn Dialect>) -> Loaded {
    let mut loaded = dialects::load(file, place, forced);
    if let Some(suite) = &loaded.lowered.suite {
        quality::review(suite, &loaded.text, &mut loaded.lowered.diagnostics);
    }
    loaded.lowered.diagnostics.sort();
    loaded
}

/// What a suite names and the disk does not have. Told before anything is spent.
pub fn missing(suite: &Suite) -> Vec<String> {
    let mut missing = Vec::new();
    for skill in &suite.skills {
        match &skill.path {
            Some(path) => missing.extend(Skill::read(path).err().map(|error| error.to_string())),
            None => missing.push(format!(
                "the skill {} of suite {} was not found; name it with --skill",
                skill.name, suite.name
            )),
        }
    }
    for case in &suite.cases {
        let files = case.room.files.iter().map(|file| &file.from).chain(&case.room.overlays);
        for path in files.filter(|path| !path.exists()) {
            missing.push(format!("case {}: {} does not exist", case.id, path.display()));
        }
    }
    missing
}

/// Every agent that can be named: those of the project and user files, then the known ones.
pub fn all_agents(layers: &Layers) -> Result<BTreeMap<String, Agent>, SettingsError> {
    let known = AGENTS.iter().map(|make| make());
    let own = own_agents(layers)?;
    Ok(known.chain(own).map(|agent| (agent.name.clone(), agent)).collect())
}

/// Settles how each suite is run. Gives also what was chosen for the user, in words.
pub fn settle(
    reading: Reading,
    ask: &Ask,
    layers: &Layers,
    agents: &BTreeMap<String, Agent>,
) -> Result<(Vec<Planned>, Vec<String>), IntakeError> {
    let own_modes: BTreeMap<String, String> = layers
        .table("modes")
        .filter_map(|(name, text, _)| Some((name.clone(), text.as_str()?.to_owned())))
        .collect();
    let mut planned = Vec::new();
    let mut notices = Vec::new();
    let mut problems = Vec::new();
    let rivals: Vec<SkillRef> =
        ask.with_skills.iter().map(|path| skill_at(path)).collect::<Result<_, IntakeError>>()?;
    let mut suites = reading.into_suites()?;
    notices.extend(names::tell_apart(&mut suites));
    for Placed { mut suite, project, .. } in suites {
        for rival in &rivals {
            if !suite.put_beside(rival.clone()) {
                let (skill, suite) = (rival.name.clone(), suite.name.clone());
                return Err(IntakeError::OwnRival { skill, suite });
            }
        }
        problems.extend(missing(&suite));
        let settings = Settings::resolve(layers, &suite)?;
        let names = choose_agents(&settings.agents, agents, layers, &mut notices)?;
        if suite.skills.is_empty() {
            notices.push(format!(
                "suite {} names no skill, so none is staged; name one with --skill",
                suite.name
            ));
        }
        for notice in names.iter().filter_map(|name| canary_notice(agents.get(name)?, &suite)) {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        let script = choose_script(ask, &suite, &names);
        let mode_text =
            modes::text(&settings.mode.value, &own_modes).map_err(IntakeError::Mode)?.map(str::to_owned);
        let chosen = names.iter().filter_map(|name| agents.get(name));
        let derived_system = match system_prompt::derived(&suite, &project, chosen) {
            Ok(text) => text,
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        planned.push(Planned { suite, settings, agents: names, project, script, mode_text, derived_system });
    }
    if problems.is_empty() { Ok((planned, notices)) } else { Err(IntakeError::Missing(problems)) }
}

/// What is told where an agent does not show what it takes up, and the suite asks for it.
fn canary_notice(agent: &Agent, suite: &Suite) -> Option<String> {
    let asks = suite.can_measure(GateName::Recall) && !agent.decoder.shows_skills;
    asks.then(|| {
        format!(
            "the stream of agent {} shows no skills, so their copies carry a marker line; where it does not \
             turn up, whether a skill fired stays unknown",
            agent.name
        )
    })
}

/// The same for looking at: nothing has to be installed or to exist.
pub fn outline(reading: Reading, layers: &Layers) -> Result<Vec<Planned>, IntakeError> {
    outline_of(reading.into_suites()?, layers)
}

/// The same for suites that were read.
pub fn outline_of(mut suites: Vec<Placed>, layers: &Layers) -> Result<Vec<Planned>, IntakeError> {
    names::tell_apart(&mut suites);
    let mut planned = Vec::new();
    for Placed { suite, project, .. } in suites {
        let settings = Settings::resolve(layers, &suite)?;
        let agents = settings.agents.value.clone();
        planned.push(Planned {
            suite,
            settings,
            agents,
            project,
            script: None,
            mode_text: None,
            derived_system: None,
        });
    }
    Ok(planned)
}

/// `auto` is the first agent that is installed, in the order of the registry, of those that may be
/// chosen unasked.
fn choose_agents(
    wanted: &Setting<Vec<String>>,
    agents: &BTreeMap<String, Agent>,
    layers: &Layers,
    notices: &mut Vec<String>,
) -> Result<Vec<String>, IntakeError> {
    let mut names = Vec::new();
    for name in &wanted.value {
        if name == "auto" {
            let mut known = AGENTS.iter().map(|make| make()).filter(|agent| agent.auto);
            let first = known.find(|agent| agent.installed(layers.environment()).is_ok());
            let Some(agent) = first else { continue };
            let notice = format!("agent auto: {}, the first that is installed", agent.name);
            if !notices.contains(&notice) {
                notices.push(notice);
            }
            names.push(agent.name);
            continue;
        }
        let Some(agent) = agents.get(name) else {
            let known: Vec<&str> = agents.keys().map(String::as_str).collect();
            let hint = match closest(name, &known) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("there are {}", known.join(", ")),
            };
            return Err(IntakeError::UnknownAgent { name: name.clone(), hint });
        };
        agent.installed(layers.environment())?;
        names.push(name.clone());
    }
    let mut seen = HashSet::new();
    names.retain(|name: &String| seen.insert(name.clone()));
    Ok(names)
}

/// A suite's script stands in for the model of the suite's own agent; naming another agent
/// means asking a real model.
pub fn choose_script(ask: &Ask, suite: &Suite, agents: &[String]) -> Option<PathBuf> {
    if ask.record.is_some() || ask.replay.is_some() {
        return None;
    }
    if let Some(script) = &ask.script {
        return Some(std::path::absolute(script).unwrap_or_else(|_| script.clone()));
    }
    let own = agents.iter().all(|agent| suite.run.agents.contains(agent));
    suite.run.script.clone().filter(|_| own)
}

/// What the gateways of a run share.
pub struct Shared {
    pub ledger: Arc<Ledger>,
    /// Takes secrets out of what is recorded.
    pub scrub: Scrub,
    pub bench: Bench,
}

/// What is to be tried before a plan's trials. Where answers are scripted or recorded, only what the
/// script or the cassette has an answer for: it tells of the evals and not of an agent, and one that was
/// made without probes must go on to work.
pub fn probes(plan: &Plan, prior: &Prior, ask: &Ask) -> Result<Plan, IntakeError> {
    let mut probes = plan.probes(|index| !prior.known.contains_key(&index));
    let mut answered = Vec::new();
    for (at, planned) in plan.suites.iter().enumerate() {
        let is_asked = probes.trials.iter().any(|trial| trial.suite == at);
        let answers = match (&planned.script, &ask.replay) {
            _ if !is_asked => false,
            (Some(script), _) => scripted(script)?.answers(ScopeKind::Probe),
            (None, Some(tape)) => {
                Cassette::read(tape)?.scopes().iter().any(|(kind, _)| *kind == ScopeKind::Probe)
            }
            (None, None) => true,
        };
        answered.push(answers);
    }
    let is_known = |trial: &Trial| prior.probes.iter().any(|probe| probe.trial == trial.id);
    probes.trials.retain(|trial| answered[trial.suite] && !is_known(trial));
    Ok(probes)
}

/// Gateways and judges for the planned suites, in their order.
pub async fn means(
    planned: &[Planned],
    ask: &Ask,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Vec<SuiteMeans>, IntakeError> {
    let mut gateways: BTreeMap<Option<&Path>, (Arc<Gateway>, Stand)> = BTreeMap::new();
    let mut all = Vec::new();
    for suite in planned {
        // Suites without a script of their own have one gateway together, if they have any.
        let script = suite.script.as_deref();
        let gateway = match gateways.get(&script) {
            Some((gateway, stand)) => Some((Arc::clone(gateway), *stand)),
            None => {
                let opened = open(script, ask, env, shared).await?;
                if let Some((gateway, stand)) = &opened {
                    gateways.insert(script, (Arc::clone(gateway), *stand));
                }
                opened
            }
        };
        let judge = judge_at(gateway.as_ref(), &suite.settings, ask, env, shared);
        all.push(SuiteMeans { gateway, judge });
    }
    Ok(all)
}

/// Who is asked where no suite is run: with these settings, and a script if one is to answer.
pub async fn adviser(
    settings: &Settings,
    script: Option<&Path>,
    ask: &Ask,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<SuiteMeans, IntakeError> {
    let gateway = open(script, ask, env, shared).await?;
    let judge = judge_at(gateway.as_ref(), settings, ask, env, shared);
    Ok(SuiteMeans { gateway, judge })
}

async fn open(
    script: Option<&Path>,
    ask: &Ask,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Option<(Arc<Gateway>, Stand)>, IntakeError> {
    let Some((answer, stand)) = stand_in(script, ask, env, shared)? else { return Ok(None) };
    let setup = Setup { answer, ledger: Arc::clone(&shared.ledger), port: 0, log: None };
    let gateway = Gateway::set_up(setup).await.map_err(IntakeError::Gateway)?;
    Ok(Some((Arc::new(gateway), stand)))
}

fn judge_at(
    gateway: Option<&(Arc<Gateway>, Stand)>,
    settings: &Settings,
    ask: &Ask,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Arc<Judge>, String> {
    if ask.no_judge {
        return Err("--no-judge was given".to_owned());
    }
    let (gateway, stand) = gateway.map(|(gateway, stand)| (gateway.as_ref(), *stand)).unzip();
    shared.bench.judge(settings, gateway, stand, env).map(Arc::new)
}

type StandIn = (Arc<dyn Answer>, Stand);

/// Who answers in the model's place or listens to it, if anyone does.
fn stand_in(
    script: Option<&Path>,
    ask: &Ask,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Option<StandIn>, IntakeError> {
    if let Some(path) = script {
        return Ok(Some((Arc::new(scripted(path)?), Stand::Script)));
    }
    if let Some(path) = &ask.replay {
        let replay = Replay::new(Cassette::read(path)?, Arc::clone(&shared.scrub));
        return Ok(Some((Arc::new(replay), Stand::Replay)));
    }
    if let Some(path) = &ask.record {
        let record = Record::create(path, Upstream::from_env(env), Arc::clone(&shared.scrub))?;
        return Ok(Some((Arc::new(record), Stand::Record)));
    }
    if shared.ledger.has_budget() {
        return Ok(Some((Arc::new(Meter::new(Upstream::from_env(env))), Stand::Meter)));
    }
    Ok(None)
}

/// Reads a script that must be usable.
pub fn scripted(path: &Path) -> Result<Script, IntakeError> {
    let mut diagnostics = Diagnostics::default();
    let (text, script) = Script::read(path, &mut diagnostics);
    match script {
        Some(script) if !diagnostics.has_errors() => Ok(script),
        _ => Err(IntakeError::Script { path: path.to_owned(), text, diagnostics }),
    }
}

/// The walls of a run. Behind them is all that would tell an agent what it is examined for.
pub fn sandbox(
    wanted: SandboxMode,
    env: &BTreeMap<String, String>,
    plan: &Plan,
    own: impl IntoIterator<Item = PathBuf>,
) -> Result<Sandbox, IntakeError> {
    let mut hidden: Vec<PathBuf> = own.into_iter().chain(env.get("HOME").map(PathBuf::from)).collect();
    for Planned { suite, project, script, .. } in &plan.suites {
        hidden.extend([project.clone(), suite.origin.path.clone()]);
        hidden.extend(script.iter().cloned());
        hidden.extend(suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.clone()));
    }
    Ok(Sandbox::build(wanted, env, hidden)?)
}
