//! Computes a trial's key: a digest of everything that its result depends on.
//!
//! In: a plan and files on disk. Out: a key for each trial. Two trials with the same key would only repeat each
//! other. Never: runs anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::plan::{Plan, PlannedSuite};
use crate::workspace::sandbox::{MOST_SIBLINGS, is_of_system, is_program, named_files};
use crate::workspace::stage::{HiddenFiles, LARGEST_STAGED_FILE, staged_of_folder, staged_of_project};
use practicum_agents::agents::AgentCli;
use practicum_core::model::{
    Arm, Case, Check, Digest, RepeatDigests, SandboxMode, SkillRef, Suite, Trial, WorkspaceBase,
};
use practicum_core::tree::open_regular;
use practicum_evals::dialects::case_to_native;
use practicum_skills::project_files::ProjectFiles;
use practicum_skills::skill::{self, Skill};

/// Bump when the meaning of a result changes without any of its inputs changing.
const KEY_GENERATION: u32 = 8;

/// The key of a trial, and the digests that say of which trials it is a repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialKey {
    pub key: Digest,
    pub repeats: RepeatDigests,
}

/// Computes the keys of a plan's trials. Files that several trials share are read once.
pub struct TrialKeys<'k> {
    plan: &'k Plan,
    agents: &'k BTreeMap<String, AgentCli>,
    user_env: &'k BTreeMap<String, String>,
    /// The sandbox of all agents, the variables that the user passes to them, and the permissions of checks.
    run_text: String,
    /// Whether the code of plugins may run.
    allow_plugin_code: bool,
    /// Whether a judge is asked.
    has_judge: bool,
    /// The name of the independent sample that the trials belong to, if it is not the usual one.
    sample: Option<String>,
    hidden_files: &'k HiddenFiles,
    skills: HashMap<PathBuf, Digest>,
    plugins: HashMap<PathBuf, Digest>,
    files: HashMap<PathBuf, Digest>,
    folders: HashMap<PathBuf, Digest>,
    /// Digests of projects, by the project and the skills under test, which are not staged with it.
    projects: HashMap<(PathBuf, Vec<String>), Digest>,
    programs: HashMap<String, Digest>,
}

impl<'k> TrialKeys<'k> {
    pub fn new(
        plan: &'k Plan,
        agents: &'k BTreeMap<String, AgentCli>,
        user_env: &'k BTreeMap<String, String>,
        walls: SandboxMode,
        pass_env: &[String],
        allow_network: bool,
        hidden: &'k HiddenFiles,
    ) -> Self {
        Self {
            plan,
            agents,
            user_env,
            run_text: format!("{walls:?}\n{allow_network}\n{}", variable_values(pass_env, user_env)),
            allow_plugin_code: false,
            has_judge: true,
            sample: None,
            hidden_files: hidden,
            skills: HashMap::new(),
            plugins: HashMap::new(),
            files: HashMap::new(),
            folders: HashMap::new(),
            projects: HashMap::new(),
            programs: HashMap::new(),
        }
    }

    /// Sets whether the code of plugins may run.
    #[must_use]
    pub(crate) fn with_plugin_code(self, plugin_code: bool) -> Self {
        Self { allow_plugin_code: plugin_code, ..self }
    }

    /// Sets whether a judge is asked.
    #[must_use]
    pub(crate) fn with_judge(self, judged: bool) -> Self {
        Self { has_judge: judged, ..self }
    }

    /// Sets the independent sample that the trials belong to.
    #[must_use]
    pub(crate) fn with_sample(self, sample: Option<String>) -> Self {
        Self { sample, ..self }
    }

    /// Computes the key of a trial, and the digests that say of which trials it is a repeat.
    pub(crate) fn key_of(&mut self, trial: &Trial) -> TrialKey {
        let case = self.case_digest(trial);
        let setup = self.setup_digest(trial, &case);
        let id = self.plan.suite_and_case(trial).1.id.clone();
        let mut parts = vec![setup.as_str().to_owned(), id, trial.attempt.to_string()];
        parts.extend(self.sample.as_ref().map(|sample| format!("sample {sample}")));
        let key = Digest::of_parts(parts.iter().map(String::as_bytes));
        TrialKey { key, repeats: RepeatDigests { case, setup } }
    }

    /// Gives a digest of the case: what it asks, the files that it gives, and its checks with the files that they run.
    fn case_digest(&mut self, trial: &Trial) -> Digest {
        let (planned, case) = self.plan.suite_and_case(trial);
        let mut parts = vec![case_text(&planned.suite, case, &planned.project)];
        for fixture in &case.workspace.files {
            parts.push(self.file_digest(&fixture.source).as_str().to_owned());
        }
        for overlay in &case.workspace.overlays {
            parts.push(self.folder_digest(overlay).as_str().to_owned());
        }
        parts.extend(case.scripts().flat_map(|(_, script)| script_file_stamps(&script, self.user_env)));
        Digest::of_parts(parts.iter().map(String::as_bytes))
    }

    /// Gives a digest of everything that decides the result but the number of the attempt.
    fn setup_digest(&mut self, trial: &Trial, case_digest: &Digest) -> Digest {
        let (planned, case) = self.plan.suite_and_case(trial);
        let mut parts = vec![
            KEY_GENERATION.to_string(),
            case_digest.as_str().to_owned(),
            json!(trial.condition).to_string(),
            settings_text(planned),
            self.run_text.clone(),
            self.program_digest(&trial.condition.agent).as_str().to_owned(),
        ];
        let under_test: &[SkillRef] = match trial.condition.arm {
            Arm::WithSkill | Arm::Version(_) => &planned.suite.skills,
            Arm::WithoutSkill => &[],
        };
        // Whether a skill is under test or a rival decides what a case says of activation that names no skill.
        for (role, skills) in [("skill", under_test), ("rival", &planned.suite.rivals)] {
            for skill in skills {
                // The name is part of the key because a skill without a name in its file is called after its folder.
                let content = self.skill_digest(skill);
                parts.push(format!("{role} {} {content}", skill.name));
            }
        }
        let loads_plugins = self.agents.get(&trial.condition.agent).is_some_and(AgentCli::can_load_plugins);
        for plugin in planned.suite.plugins.iter().filter(|_| loads_plugins) {
            let content = self.plugin_digest(plugin);
            // A plugin without a name in its manifest is called after its folder, and so are its skills.
            let folder = plugin.file_name().unwrap_or_default().to_string_lossy();
            parts.push(format!("plugin {} {content} {folder}", self.allow_plugin_code));
        }
        if case.workspace.base == WorkspaceBase::Project {
            parts.push(self.project_digest(planned).as_str().to_owned());
        }
        if let Some(script) = &planned.script {
            parts.push(self.file_digest(script).as_str().to_owned());
        }
        // A run without a judge must not reuse the answers that a judge gave in an earlier one.
        if !self.has_judge && case.checks.iter().any(Check::needs_model) {
            parts.push("no judge".to_owned());
        }
        Digest::of_parts(parts.iter().map(String::as_bytes))
    }

    /// Gives a digest of the agent's program, its arguments, its decoder and the variables that the user sets for
    /// it. Another version may answer differently.
    fn program_digest(&mut self, name: &str) -> Digest {
        if let Some(known) = self.programs.get(name) {
            return known.clone();
        }
        let agent = self.agents.get(name);
        let path = agent.and_then(|agent| agent.installed_path(self.user_env).ok());
        let identity = path.as_deref().and_then(stamp).unwrap_or_default();
        let passed = agent.map(|agent| agent.pass_env.clone()).unwrap_or_default();
        // For an interpreter, the files in its arguments are the actual agent.
        let words = agent
            .into_iter()
            .flat_map(|agent| agent.first_turn_args.iter().chain(&agent.later_turn_args).flatten());
        let called_with: Vec<String> =
            words.map(Path::new).filter(|word| word.is_absolute()).filter_map(stamp).collect();
        let called = agent.map(|agent| {
            let AgentCli { first_turn_args: first, later_turn_args: later, decoder, skills_dir, env, .. } =
                agent;
            format!("{first:?}\n{later:?}\n{}\n{skills_dir}\n{env:?}", decoder.name)
        });
        let env = variable_values(&passed, self.user_env);
        let parts = [name, &identity, &called_with.join("\n"), &env, &called.unwrap_or_default()];
        let digest = Digest::of_parts(parts.map(str::as_bytes));
        self.programs.insert(name.to_owned(), digest.clone());
        digest
    }

    fn skill_digest(&mut self, skill: &SkillRef) -> Digest {
        let Some(path) = &skill.path else { return Digest::of_bytes(skill.name.as_bytes()) };
        if let Some(known) = self.skills.get(path) {
            return known.clone();
        }
        let hidden = self.hidden_files.clone();
        let given = |skill: Skill| skill::skill_digest(&skill, move |path| hidden.hides(path)).ok();
        let read = Skill::read(path).ok().and_then(given);
        let digest = read.unwrap_or_else(|| Digest::of_bytes(path.to_string_lossy().as_bytes()));
        self.skills.insert(path.clone(), digest.clone());
        digest
    }

    /// Gives a digest of the contents of a plugin's folder.
    fn plugin_digest(&mut self, root: &Path) -> String {
        let unread = || Digest::of_bytes(root.to_string_lossy().as_bytes());
        let hidden = self.hidden_files.clone();
        let read = || skill::folder_digest(root, move |path| hidden.hides(path)).unwrap_or_else(|_| unread());
        self.plugins.entry(root.to_owned()).or_insert_with(read).as_str().to_owned()
    }

    fn file_digest(&mut self, path: &Path) -> Digest {
        if path.is_dir() {
            return self.folder_digest(path);
        }
        // A link that a case names stands for its target.
        let read = || digest_of_file(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        self.files.entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// Gives a digest of the staged files of a folder that the case gives to the agent.
    fn folder_digest(&mut self, folder: &Path) -> Digest {
        let read = || {
            let files = staged_of_folder(folder, self.hidden_files);
            let files = files.filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
            digest_of_files(folder, files.map(ignore::DirEntry::into_path))
        };
        self.folders.entry(folder.to_owned()).or_insert_with(read).clone()
    }

    /// Gives a digest of the staged files of the project. Folders do not count, because a folder may contain
    /// nothing but a report.
    fn project_digest(&mut self, planned: &PlannedSuite) -> Digest {
        let (project, skills) = (&planned.project, &planned.suite.skills);
        let names = skills.iter().map(|skill| skill.name.clone()).collect();
        let read = || {
            let ProjectFiles { files, .. } = staged_of_project(project, self.hidden_files, skills, None);
            digest_of_files(project, files.iter().map(|path| project.join(path)))
        };
        self.projects.entry((project.clone(), names)).or_insert_with(read).clone()
    }
}

/// Gives a digest of the names and contents of files below a folder. File times and the folder's location do not
/// count, because a project may be copied, cloned or moved.
fn digest_of_files(folder: &Path, paths: impl Iterator<Item = PathBuf>) -> Digest {
    let named = |path: PathBuf| {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        format!("{name}\n{}", digest_of_file(&path))
    };
    let mut files: Vec<String> = paths.map(named).collect();
    files.sort();
    Digest::of_parts(files.iter().map(String::as_bytes))
}

/// Computes the digest of a file, or of all files in a folder.
pub(crate) fn digest_of_path(path: &Path) -> Digest {
    // A link that a case names is what it leads to.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if !path.is_dir() {
        return digest_of_file(&path);
    }
    let walk = ignore::WalkBuilder::new(&path).standard_filters(false).follow_links(false).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
    digest_of_files(&path, files.map(ignore::DirEntry::into_path))
}

/// So much of a file is read at once.
const PIECE: usize = 1024 * 1024;

/// Gives a digest of a file's content and whether it is executable, or of the target of a link.
fn digest_of_file(path: &Path) -> Digest {
    if let Ok(target) = std::fs::read_link(path) {
        return Digest::of_parts([b"link".as_slice(), target.as_os_str().as_encoded_bytes()]);
    }
    let mut parts = Vec::new();
    // Reading a pipe or a device would never end.
    if let Ok(metadata) = path.metadata()
        && metadata.is_file()
        && let Ok(mut file) = open_regular(path)
    {
        let can_be_executed = metadata.mode() & 0o111 != 0;
        parts.push(Digest::of_bytes(if can_be_executed { b"program" } else { b"file" }));
        // A file that is too large to be staged ends its trials, whatever is in it.
        if metadata.len() > LARGEST_STAGED_FILE {
            return Digest::of_bytes(stamp(path).unwrap_or_default().as_bytes());
        }
        let mut piece = Vec::with_capacity(PIECE);
        while let Ok(1..) = (&mut file).take(PIECE as u64).read_to_end(&mut piece) {
            parts.push(Digest::of_bytes(&piece));
            piece.clear();
        }
    }
    Digest::of_parts(parts.iter().map(|part| part.as_str().as_bytes()))
}

/// Gives the files outside the workspace that a script runs, with digests of their contents: those that it names by an
/// absolute path, also in quotes, and scripts that it calls by name and that are found on the user's path. A check that
/// runs such a file may decide differently when the file changes.
fn script_file_stamps(script: &str, environment: &BTreeMap<String, String>) -> Vec<String> {
    let is_end = |c: char| c.is_whitespace() || "\"'`;|&<>()=:\\".contains(c);
    let words: BTreeSet<&str> = script.split(is_end).filter(|word| !word.is_empty()).collect();
    let search_path = environment.get("PATH").map(String::as_str).unwrap_or_default();
    let called = words.iter().filter(|word| !word.contains('/')).filter_map(|word| {
        let mut places = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
        places.find_map(|folder| Some(folder.join(word)).filter(|path| is_script(path)))
    });
    let mut files: BTreeSet<PathBuf> = named_files(script).into_iter().chain(called).collect();
    let folders: BTreeSet<PathBuf> = files
        .iter()
        .filter(|file| is_program(file))
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .collect();
    // A program may import those beside it. Folders of the system have far too many, and none of them is edited.
    let own = folders.iter().filter(|folder| !is_of_system(folder));
    let beside = own
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().take(MOST_SIBLINGS));
    files.extend(beside.map(|entry| entry.path()).filter(|path| path.is_file() && is_program(path)));
    files.iter().map(|file| format!("{}\n{}", file.display(), digest_of_path(file))).collect()
}

/// Says whether a file is a script, which a user may change. Other programs are installed rather than edited.
fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    path.is_file()
        && open_regular(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && &start == b"#!")
}

/// Writes variables with their values.
fn variable_values(names: &[String], env: &BTreeMap<String, String>) -> String {
    let set = names.iter().filter_map(|name| Some(format!("{name}={}", env.get(name)?)));
    set.collect::<Vec<String>>().join("\n")
}

/// Gives the path, mode, size and time of a program. Reading the whole program would take long, and programs are
/// installed rather than copied.
fn stamp(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    let (mode, length, time) = (metadata.mode(), metadata.len(), (metadata.mtime(), metadata.mtime_nsec()));
    Some(format!("{}\n{mode:o}\n{length}\n{}.{}", path.display(), time.0, time.1))
}

/// Writes a case as a native file in the project's folder would have it. The locations of its skill and the
/// project do not matter, and the skill's content is a separate part of the key.
fn case_text(suite: &Suite, case: &Case, project: &Path) -> String {
    let names: Vec<String> = suite.skills.iter().map(|skill| skill.name.clone()).collect();
    let is_judged = case.checks.iter().any(Check::needs_model);
    // Texts for people, unused fields and the number of repetitions do not affect one trial. Only a judge reads
    // the context.
    let deciding = Case {
        // What a case is called decides nothing. The key of a trial has it apart.
        id: "case".to_owned(),
        group: None,
        note: None,
        context: case.context.clone().filter(|_| is_judged),
        known_good_output: None,
        unsupported: None,
        repeat: None,
        meta: BTreeMap::new(),
        ..case.clone()
    };
    case_to_native(&deciding, &names, project).to_string()
}

fn settings_text(planned: &PlannedSuite) -> String {
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
    text.extend(planned.suite.run_policy.system_prompt.clone());
    // The user's prompt that replaces a command in trials without the skill.
    text.extend(planned.suite.judge_policy.user_prompt.clone());
    text.extend(planned.mode_text.clone());
    text.extend(planned.derived_system.clone());
    text.join("\n")
}
