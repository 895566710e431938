//! What decides a trial's result, as one digest.
//!
//! In: a plan and what is on disk. Out: a key for each trial. Two trials with one key would only
//! repeat each other. Never: runs anything.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::agents::Agent;
use crate::dialects::case_to_native;
use crate::model::{Arm, Base, Case, Digest, SandboxMode, SkillRef, Suite, Trial};
use crate::plan::{Plan, Planned};
use crate::skill::{self, Skill};

/// Bump when the meaning of a result changes without any of its inputs changing.
const GENERATION: u32 = 3;

/// Keys for the trials of a plan. Whatever several trials share is read once.
pub struct Keys<'k> {
    plan: &'k Plan,
    agents: &'k BTreeMap<String, Agent>,
    user_env: &'k BTreeMap<String, String>,
    /// The walls around every agent, and what the user lets through to it.
    shared: String,
    skills: HashMap<PathBuf, Digest>,
    files: HashMap<PathBuf, Digest>,
    projects: HashMap<PathBuf, Digest>,
    programs: HashMap<String, Digest>,
}

impl<'k> Keys<'k> {
    pub fn new(
        plan: &'k Plan,
        agents: &'k BTreeMap<String, Agent>,
        user_env: &'k BTreeMap<String, String>,
        walls: SandboxMode,
        pass_env: &[String],
    ) -> Self {
        Self {
            plan,
            agents,
            user_env,
            shared: format!("{walls:?}\n{}", values(pass_env, user_env)),
            skills: HashMap::new(),
            files: HashMap::new(),
            projects: HashMap::new(),
            programs: HashMap::new(),
        }
    }

    pub fn of(&mut self, trial: &Trial) -> Digest {
        let (planned, case) = self.plan.case(trial);
        let mut parts = vec![
            GENERATION.to_string(),
            case_text(&planned.suite, case),
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
            parts.push(self.skill(skill).as_str().to_owned());
        }
        for fixture in &case.room.files {
            parts.push(self.content(&fixture.from).as_str().to_owned());
        }
        for overlay in &case.room.overlays {
            parts.push(self.tree(overlay).as_str().to_owned());
        }
        if case.room.base == Base::Project {
            parts.push(self.tree(&planned.project).as_str().to_owned());
        }
        if let Some(script) = &planned.script {
            parts.push(self.content(script).as_str().to_owned());
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
        let read = Skill::read(path).ok().and_then(|skill| skill::digest(&skill).ok());
        let digest = read.unwrap_or_else(|| Digest::of(path.to_string_lossy().as_bytes()));
        self.skills.insert(path.clone(), digest.clone());
        digest
    }

    fn content(&mut self, path: &Path) -> Digest {
        if path.is_dir() {
            return self.tree(path);
        }
        let read = || std::fs::read(path).map_or_else(|_| Digest::of(b""), |bytes| Digest::of(&bytes));
        self.files.entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// A folder by names, sizes and times. Cheaper than its content, and wrong only towards running
    /// once more.
    fn tree(&mut self, folder: &Path) -> Digest {
        let read = || {
            // What is never staged decides nothing, and changes with every step of practicum improve.
            let walk = ignore::WalkBuilder::new(folder)
                .hidden(false)
                .require_git(false)
                .follow_links(false)
                .filter_entry(|entry| !skill::is_workspace(entry.path()))
                .build();
            let mut stamps: Vec<String> = walk
                .flatten()
                .filter(|entry| !entry.path().components().any(|part| part.as_os_str() == ".practicum"))
                .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
                .filter_map(|entry| stamp(entry.path()))
                .collect();
            stamps.sort();
            Digest::of_parts(stamps.iter().map(String::as_bytes))
        };
        self.projects.entry(folder.to_owned()).or_insert_with(read).clone()
    }
}

/// Variables with what they are set to.
fn values(names: &[String], env: &BTreeMap<String, String>) -> String {
    let set = names.iter().filter_map(|name| Some(format!("{name}={}", env.get(name)?)));
    set.collect::<Vec<String>>().join("\n")
}

fn stamp(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    Some(format!("{}\n{}\n{}.{}", path.display(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

/// A case as a native file would say it. Where its skill lies does not matter; what the skill says
/// is a part of its own.
fn case_text(suite: &Suite, case: &Case) -> String {
    let names: Vec<String> = suite.skills.iter().map(|skill| skill.name.clone()).collect();
    case_to_native(case, &names, Path::new("/")).to_string()
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
    ];
    let rows = planned.settings.explain().into_iter().filter(|(name, ..)| deciding.contains(name));
    let mut text: Vec<String> = rows.map(|(name, value, _)| format!("{name}={value}")).collect();
    text.extend(planned.suite.run.system_prompt.clone());
    text.extend(planned.mode_text.clone());
    text.extend(planned.derived_system.clone());
    text.join("\n")
}
