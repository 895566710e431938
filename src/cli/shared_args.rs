//! The arguments that several commands share.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::headings::{AGENT, JUDGE};
use crate::dialects;
use crate::plan::settings::{JUDGE_JOBS, project_root};
use crate::session::RunInputs;

/// Arguments that name evals and skills.
#[derive(Clone, clap::Args)]
pub struct EvalsArgs {
    /// Skill folders, SKILL.md files, eval folders or eval files
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,
    /// Where the evals of the skill are, if they are not in a usual place
    #[arg(long, value_name = "PATH")]
    evals: Option<PathBuf>,
    /// The skill to test; wins over the eval files
    #[arg(long, value_name = "PATH")]
    skill: Option<PathBuf>,
    /// Read the files as this format; by default the format is recognised
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
}

impl EvalsArgs {
    /// Gives the arguments for evals at these paths, found and read as usual.
    pub fn at_paths(paths: Vec<PathBuf>) -> Self {
        Self { paths, evals: None, skill: None, dialect: None }
    }

    /// Gives the arguments for evals at these paths, with the folder of evals and the skill that the user names.
    pub fn for_paths_and_skill(paths: Vec<PathBuf>, evals: Option<PathBuf>, skill: Option<PathBuf>) -> Self {
        Self { evals, skill, ..Self::at_paths(paths) }
    }

    /// Gives the arguments for the evals of one skill, which may lie elsewhere.
    pub fn of_skill(skill: PathBuf, evals: Option<PathBuf>) -> Self {
        Self { evals, ..Self::at_paths(vec![skill]) }
    }

    /// Gives the evals as inputs for the engine.
    pub fn inputs(&self) -> RunInputs {
        RunInputs {
            paths: self.paths.clone(),
            evals: self.evals.clone(),
            dialect: self
                .dialect
                .as_deref()
                .and_then(dialects::find_dialect)
                .map(|dialect| dialect.name().to_owned()),
            skill: self.skill.clone(),
            ..RunInputs::default()
        }
    }

    /// Gives the project of the first path. Its settings apply, and records are stored there.
    pub fn project(&self) -> PathBuf {
        let first = self.paths.first().cloned().unwrap_or_else(|| PathBuf::from("."));
        project_root(&std::path::absolute(&first).unwrap_or(first))
    }
}

/// Arguments that set how cases are run. Each wins over every other source of its setting.
#[derive(Clone, Default, clap::Args)]
pub struct SettingArgs {
    /// The agent to run: claude, codex, gemini, opencode, copilot, goose, qwen, builtin, one of practicum.toml,
    /// auto for the first that is installed, or all for those that are installed and logged in (repeatable)
    #[arg(long, alias = "harness", value_name = "NAME", help_heading = AGENT)]
    agent: Vec<String>,
    /// The model of the agent
    #[arg(long, help_heading = AGENT)]
    model: Option<String>,
    /// How many trials to run of each case
    #[arg(long, value_name = "N", help_heading = AGENT)]
    repeat: Option<String>,
    /// The time limit of a trial: seconds, or 500ms, 20s, 5m, 1h
    #[arg(long, value_name = "DURATION", help_heading = AGENT)]
    timeout: Option<String>,
    /// Run with the skill, without it, or both (repeatable)
    #[arg(long, value_name = "with|without", help_heading = AGENT)]
    arm: Vec<String>,
    /// How strongly the system prompt asks for skills: baseline, smart, forced, or one of practicum.toml
    #[arg(long, help_heading = AGENT)]
    mode: Option<String>,
    /// The share of runs that must activate the skill for a trigger query to count as activated
    #[arg(long, value_name = "RATIO", help_heading = AGENT)]
    trigger_threshold: Option<String>,
    /// The only tools that the agent may use, by its own names, separated by commas
    #[arg(long, value_name = "TOOLS", help_heading = AGENT)]
    tools: Option<String>,
    /// What workspaces start with: nothing, or a copy of the project; wins over the eval files
    #[arg(long, value_name = "empty|project", help_heading = AGENT)]
    workspace: Option<String>,
    /// Run the agent's background tasks in the foreground
    #[arg(long, help_heading = AGENT)]
    sync_tasks: bool,
    #[command(flatten)]
    judging: JudgeArgs,
}

/// Arguments that set the judge. Each wins over every other source of its setting.
#[derive(Clone, Default, clap::Args)]
pub struct JudgeArgs {
    /// The model of the judge
    #[arg(long, value_name = "MODEL", help_heading = JUDGE)]
    judge_model: Option<String>,
    /// The provider of the judge: anthropic, openai or auto
    #[arg(long, value_name = "PROVIDER", help_heading = JUDGE)]
    grading_provider: Option<String>,
    /// How to reach the judge: an API, the claude or codex program on this machine, or auto
    #[arg(long, value_name = "api|cli|auto", help_heading = JUDGE)]
    transport: Option<String>,
    /// How often to judge each statement; an odd number, the majority decides
    #[arg(long, value_name = "N", help_heading = JUDGE)]
    judge_votes: Option<String>,
    /// What to do with a pass that the judge cannot support with a quote, also when asked again: leave it
    /// unscored, or accept it with a flag [default: not-scored]
    #[arg(long, value_name = "not-scored|accept", help_heading = JUDGE)]
    judge_unsupported: Option<String>,
    /// How many judges to ask at once
    #[arg(long, value_name = "N", help_heading = JUDGE)]
    judge_jobs: Option<String>,
}

impl JudgeArgs {
    /// Gives the settings that the user set, by name.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, String)> {
        let said = [
            ("judge.model", self.judge_model.clone()),
            ("judge.provider", self.grading_provider.clone()),
            ("judge.transport", self.transport.clone()),
            ("judge.votes", self.judge_votes.clone()),
            ("judge.unsupported", self.judge_unsupported.clone()),
            (JUDGE_JOBS.name, self.judge_jobs.clone()),
        ];
        said.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }
}

impl SettingArgs {
    #[must_use]
    pub fn with_mode(self, mode: &str) -> Self {
        Self { mode: Some(mode.to_owned()), ..self }
    }

    /// Chooses only the arm with the skill, unless the user chose arms: results without the skill cannot improve.
    #[must_use]
    pub fn with_skill(self) -> Self {
        let arm = if self.arm.is_empty() { vec!["with".to_owned()] } else { self.arm };
        Self { arm, ..self }
    }

    /// Says whether the user wants only the arm without the skill.
    pub fn is_only_without_skill(&self) -> bool {
        !self.arm.is_empty()
            && self.arm.iter().flat_map(|arms| arms.split(',')).all(|arm| arm.trim() == "without")
    }

    /// Sets the number of trials of each case, unless the user set it.
    #[must_use]
    pub fn with_repeat(self, runs: u32) -> Self {
        Self { repeat: self.repeat.or_else(|| Some(runs.to_string())), ..self }
    }

    /// Gives the number of trials of each case that the user set, or a default.
    pub fn repeat(&self, default: u32) -> anyhow::Result<u32> {
        let Some(text) = &self.repeat else { return Ok(default) };
        let times = text.trim().parse().ok().filter(|times| (1..=1000).contains(times));
        times.ok_or_else(|| anyhow::anyhow!("--repeat {text}: it must be a number from 1 to 1000"))
    }

    /// The names of the arguments that may be given beside `--resume`.
    pub const RESUMABLE: [&str; 1] = ["judge_jobs"];

    /// Gives the settings that the user set, by name.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let joined = |list: &[String]| (!list.is_empty()).then(|| list.join(","));
        let said = [
            ("agent", joined(&self.agent)),
            ("model", self.model.clone()),
            ("repeat", self.repeat.clone()),
            ("timeout", self.timeout.clone()),
            ("arm", joined(&self.arm)),
            ("mode", self.mode.clone()),
            ("trigger-threshold", self.trigger_threshold.clone()),
            ("tools", self.tools.clone()),
            ("workspace", self.workspace.clone()),
            ("sync-tasks", self.sync_tasks.then(|| "true".to_owned())),
        ];
        let said = said.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        said.chain(self.judging.flags()).collect()
    }
}
