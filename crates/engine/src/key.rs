//! What decides a trial's result, as one digest.
//!
//! In: a plan and what is on disk. Out: a key for each trial. Two trials with one key would only
//! repeat each other. Never: runs anything.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::plan::{Plan, Planned};
use crate::stage::{Hidden, staged_of_folder, staged_of_project};
use practicum_agents::agents::Agent;
use practicum_core::model::{Arm, Base, Case, Check, Digest, SandboxMode, SkillRef, Suite, Trial};
use practicum_evals::dialects::case_to_native;
use practicum_skills::project_files::ProjectFiles;
use practicum_skills::skill::{self, Skill};

/// Bump when the meaning of a result changes without any of its inputs changing.
const GENERATION: u32 = 5;

/// Keys for the trials of a plan. Whatever several trials share is read once.
pub struct Keys<'k> {
    plan: &'k Plan,
    agents: &'k BTreeMap<String, Agent>,
    user_env: &'k BTreeMap<String, String>,
    /// The walls around every agent, what the user lets through to it, and what checks may do.
    shared: String,
    /// Whether the code of plugins may run.
    plugin_code: bool,
    /// Whether a model is asked what checks leave to it.
    judged: bool,
    hidden: &'k Hidden,
    skills: HashMap<PathBuf, Digest>,
    plugins: HashMap<PathBuf, Digest>,
    files: HashMap<PathBuf, Digest>,
    folders: HashMap<PathBuf, Digest>,
    /// By the project and the skills under test, which are not staged with it.
    projects: HashMap<(PathBuf, Vec<String>), Digest>,
    programs: HashMap<String, Digest>,
}

impl<'k> Keys<'k> {
    pub fn new(
        plan: &'k Plan,
        agents: &'k BTreeMap<String, Agent>,
        user_env: &'k BTreeMap<String, String>,
        walls: SandboxMode,
        pass_env: &[String],
        allow_network: bool,
        hidden: &'k Hidden,
    ) -> Self {
        Self {
            plan,
            agents,
            user_env,
            shared: format!("{walls:?}\n{allow_network}\n{}", values(pass_env, user_env)),
            plugin_code: false,
            judged: true,
            hidden,
            skills: HashMap::new(),
            plugins: HashMap::new(),
            files: HashMap::new(),
            folders: HashMap::new(),
            projects: HashMap::new(),
            programs: HashMap::new(),
        }
    }

    /// The same where the code of plugins may run, or may not.
    #[must_use]
    pub fn with_plugin_code(self, plugin_code: bool) -> Self {
        Self { plugin_code, ..self }
    }

    /// The same where no model is asked about what checks leave to it, or one is.
    #[must_use]
    pub fn with_judge(self, judged: bool) -> Self {
        Self { judged, ..self }
    }

    pub fn of(&mut self, trial: &Trial) -> Digest {
        let (planned, case) = self.plan.case(trial);
        let mut parts = vec![
            GENERATION.to_string(),
            case_text(&planned.suite, case, &planned.project),
            json!(trial.condition).to_string(),
            trial.attempt.to_string(),
            settings_text(planned),
            self.shared.clone(),
            self.program(&trial.condition.agent).as_str().to_owned(),
        ];
        let under_test: &[SkillRef] = match trial.condition.arm {
            Arm::WithSkill | Arm::Version(_) => &planned.suite.skills,
            Arm::WithoutSkill => &[],
        };
        for skill in under_test.iter().chain(&planned.suite.rivals) {
            // A skill that does not say its name is called by its place.
            parts.extend([skill.name.clone(), self.skill(skill).as_str().to_owned()]);
        }
        let loads_plugins = self.agents.get(&trial.condition.agent).is_some_and(Agent::loads_plugins);
        for plugin in planned.suite.plugins.iter().filter(|_| loads_plugins) {
            let content = self.plugin(plugin);
            parts.push(format!("plugin {} {content}", self.plugin_code));
        }
        for fixture in &case.room.files {
            parts.push(self.content(&fixture.from).as_str().to_owned());
        }
        for overlay in &case.room.overlays {
            parts.push(self.folder(overlay).as_str().to_owned());
        }
        if case.room.base == Base::Project {
            parts.push(self.project(planned).as_str().to_owned());
        }
        if let Some(script) = &planned.script {
            parts.push(self.content(script).as_str().to_owned());
        }
        parts.extend(case.scripts().flat_map(|(_, script)| named_files(&script)));
        // A run without a judge cannot say what an earlier one was told by a judge.
        if !self.judged && case.checks.iter().any(Check::asks_model) {
            parts.push("no judge".to_owned());
        }
        Digest::of_parts(parts.iter().map(String::as_bytes))
    }

    /// The program itself, how it is called and read, and what the user sets for it: another version may
    /// answer otherwise.
    fn program(&mut self, name: &str) -> Digest {
        if let Some(known) = self.programs.get(name) {
            return known.clone();
        }
        let agent = self.agents.get(name);
        let path = agent.and_then(|agent| agent.installed(self.user_env).ok());
        let identity = path.as_deref().and_then(stamp).unwrap_or_default();
        let passed = agent.map(|agent| agent.pass_env.clone()).unwrap_or_default();
        // What an interpreter is called with is the agent.
        let words = agent.into_iter().flat_map(|agent| agent.first.iter().chain(&agent.later).flatten());
        let called_with: Vec<String> =
            words.map(Path::new).filter(|word| word.is_absolute()).filter_map(stamp).collect();
        let called = agent.map(|agent| {
            let Agent { first, later, decoder, skills_dir, env, .. } = agent;
            format!("{first:?}\n{later:?}\n{}\n{skills_dir}\n{env:?}", decoder.name)
        });
        let env = values(&passed, self.user_env);
        let parts = [name, &identity, &called_with.join("\n"), &env, &called.unwrap_or_default()];
        let digest = Digest::of_parts(parts.map(str::as_bytes));
        self.programs.insert(name.to_owned(), digest.clone());
        digest
    }

    fn skill(&mut self, skill: &SkillRef) -> Digest {
        let Some(path) = &skill.path else { return Digest::of(skill.name.as_bytes()) };
        if let Some(known) = self.skills.get(path) {
            return known.clone();
        }
        let hidden = self.hidden.clone();
        let given = |skill: Skill| skill::digest(&skill, move |path| hidden.covers(path)).ok();
        let read = Skill::read(path).ok().and_then(given);
        let digest = read.unwrap_or_else(|| Digest::of(path.to_string_lossy().as_bytes()));
        self.skills.insert(path.clone(), digest.clone());
        digest
    }

    /// All that a plugin's folder holds.
    fn plugin(&mut self, root: &Path) -> String {
        let unread = || Digest::of(root.to_string_lossy().as_bytes());
        let hidden = self.hidden.clone();
        let read =
            || skill::folder_digest(root, move |path| hidden.covers(path)).unwrap_or_else(|_| unread());
        self.plugins.entry(root.to_owned()).or_insert_with(read).as_str().to_owned()
    }

    fn content(&mut self, path: &Path) -> Digest {
        if path.is_dir() {
            return self.folder(path);
        }
        let read = || {
            // Reading a pipe or a device would never end.
            let bytes = if path.is_file() { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
            let mode = path.metadata().map_or(0, |metadata| metadata.mode());
            Digest::of_parts([format!("{mode:o}").as_bytes(), bytes.as_slice()])
        };
        self.files.entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// What is staged of a folder that the case gives to the agent.
    fn folder(&mut self, folder: &Path) -> Digest {
        let read = || {
            let files = staged_of_folder(folder, self.hidden);
            let files = files.filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
            digest_of_stamps(folder, files.map(ignore::DirEntry::into_path))
        };
        self.folders.entry(folder.to_owned()).or_insert_with(read).clone()
    }

    /// What is staged of the project. Folders do not count: a report may be all that one holds.
    fn project(&mut self, planned: &Planned) -> Digest {
        let (project, skills) = (&planned.project, &planned.suite.skills);
        let names = skills.iter().map(|skill| skill.name.clone()).collect();
        let read = || {
            let ProjectFiles { files, .. } = staged_of_project(project, self.hidden, skills, None);
            digest_of_stamps(project, files.iter().map(|path| project.join(path)))
        };
        self.projects.entry((project.clone(), names)).or_insert_with(read).clone()
    }
}

/// Files below a folder by names, sizes and times. Cheaper than their content, and wrong only towards running once
/// more. Where the folder lies decides nothing: a project may be moved.
fn digest_of_stamps(folder: &Path, paths: impl Iterator<Item = PathBuf>) -> Digest {
    let named = |path: PathBuf| stamp_as(path.strip_prefix(folder).unwrap_or(&path), &path);
    let mut stamps: Vec<String> = paths.filter_map(named).collect();
    stamps.sort();
    Digest::of_parts(stamps.iter().map(String::as_bytes))
}

/// The files outside the workspace that a script names by a whole path, with their sizes and times. A check that
/// runs one decides otherwise when the file is another.
fn named_files(script: &str) -> Vec<String> {
    let words = script.split(|c: char| c.is_whitespace() || "\"'`;|&<>()=:\\".contains(c));
    words.filter(|word| word.starts_with('/')).filter_map(|word| stamp(Path::new(word))).collect()
}

/// Variables with what they are set to.
fn values(names: &[String], env: &BTreeMap<String, String>) -> String {
    let set = names.iter().filter_map(|name| Some(format!("{name}={}", env.get(name)?)));
    set.collect::<Vec<String>>().join("\n")
}

fn stamp(path: &Path) -> Option<String> {
    stamp_as(path, path)
}

/// A file's size and time under the name that counts for it.
fn stamp_as(name: &Path, path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    let (path, mode) = (name.display(), metadata.mode());
    if metadata.is_file() && metadata.len() == 0 {
        // When it was emptied does not matter: `practicum run | tee FILE` empties it each time.
        return Some(format!("{path}\n{mode:o}\nempty"));
    }
    Some(format!("{path}\n{mode:o}\n{}\n{}.{}", metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

/// A case as a native file in the project's folder would say it. Where its skill and the project lie does not matter;
/// what the skill says is a part of its own.
fn case_text(suite: &Suite, case: &Case, project: &Path) -> String {
    let names: Vec<String> = suite.skills.iter().map(|skill| skill.name.clone()).collect();
    let is_judged = case.checks.iter().any(Check::asks_model);
    // What is for people, what no stage uses, and how often the case runs decide nothing about one trial. Only a
    // judge reads the context.
    let deciding = Case {
        group: None,
        note: None,
        context: case.context.clone().filter(|_| is_judged),
        oracle: None,
        repeat: None,
        meta: BTreeMap::new(),
        ..case.clone()
    };
    case_to_native(&deciding, &names, project).to_string()
}

fn settings_text(planned: &Planned) -> String {
    let deciding = [
        "timeout",
        "sync-tasks",
        "detect-questions",
        "tools",
        "judge.model",
        "judge.provider",
        "judge.transport",
        "judge.votes",
        "judge.unsupported",
    ];
    let rows = planned.settings.explain().into_iter().filter(|(name, ..)| deciding.contains(name));
    let mut text: Vec<String> = rows.map(|(name, value, _)| format!("{name}={value}")).collect();
    text.extend(planned.suite.run.system_prompt.clone());
    // What the user says in place of a command, without the skill.
    text.extend(planned.suite.judge.user_prompt.clone());
    text.extend(planned.mode_text.clone());
    text.extend(planned.derived_system.clone());
    text.join("\n")
}
