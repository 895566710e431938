//! From a plan to an exit code, for every command that runs trials.

mod changed_evals;
mod hold;
mod info;
mod shown;
mod trust;
mod trusted_code;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;

pub use info::{info, native_suite, skill_under_test};
pub use trusted_code::{changed_files, trusted_code};

use super::advising::Asking;
use super::gates::Gates;
use super::going_on::Said;
use super::headings::{GATES, JUDGE, LIMITS, ROOM, SHOWN, STAND_INS};
use super::purse::Purse;
use super::report::Reports;
use super::{list, print_json};
use crate::agents::Agent;
use crate::improve::Left;
use crate::intake::Ask;
use crate::model::{Gate, Ratio, Summary};
use crate::plan::Plan;
use crate::report::Results;
use crate::settings::{JOBS, Layers, MAX_COST, MAX_TOKENS, PROBE, RETRIES, RETRY_WAIT, SANDBOX};
use crate::store::RunDir;

/// How trials are carried out, whichever they are.
#[derive(Clone, clap::Args)]
pub struct Carrying {
    /// Stage this skill beside the one under test, with it and without it: which of them the agent takes
    /// up is the question (repeatable)
    #[arg(long, value_name = "PATH", help_heading = ROOM)]
    with_skill: Vec<PathBuf>,
    /// Stage this plugin whole for agents that load plugins, in place of a skill of it alone: its commands
    /// and agents too, its hooks and MCP servers with --trust; agents without plugins get its skills (repeatable)
    #[arg(long, value_name = "DIR", help_heading = ROOM)]
    plugin: Vec<PathBuf>,
    /// Pass this variable on to the agent (repeatable)
    #[arg(long, value_name = "NAME", value_parser = parse_variable, help_heading = ROOM)]
    env: Vec<String>,
    /// Start no more trials once one has failed
    #[arg(long, help_heading = LIMITS)]
    fail_fast: bool,
    /// The share of trials that may stay unscored without the run counting as incomplete
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, default_value = "0", help_heading = GATES)]
    allow_unscored: Ratio,
    /// Run no more of a case once its runs tell whether it mostly passes (a sequential test, so that no
    /// intervals are given)
    #[arg(long, help_heading = LIMITS)]
    stop_early: bool,
    /// Let a case that is known to be flaky fail a gate alone
    #[arg(long, help_heading = GATES)]
    count_flaky: bool,
    /// A script that answers in place of the model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "replay"], help_heading = STAND_INS)]
    script: Option<PathBuf>,
    /// Write what the model is asked and answers to a new file, to be replayed later
    #[arg(long, value_name = "FILE", conflicts_with = "replay", help_heading = STAND_INS)]
    record: Option<PathBuf>,
    /// Answer from such a file in place of the model; what is asked otherwise is reported
    #[arg(long, value_name = "FILE", help_heading = STAND_INS)]
    replay: Option<PathBuf>,
    /// Stop when this much is spent, in USD, by all that the command runs
    #[arg(long, value_name = "USD", allow_negative_numbers = true, help_heading = LIMITS)]
    max_cost: Option<String>,
    /// Stop when this many tokens are used, those from a cache included
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    max_tokens: Option<String>,
    /// How often a trial is tried again that a rate limit or a failed API broke [default: 2]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    retries: Option<String>,
    /// How long to wait before that; twice as long before each further try [default: 20s]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    retry_wait: Option<String>,
    /// Prices of models, before those that are known (TOML)
    #[arg(long, value_name = "FILE", env = "PRACTICUM_PRICES", help_heading = LIMITS)]
    prices: Option<PathBuf>,
    /// Leave judged checks unscored
    #[arg(long, help_heading = JUDGE)]
    no_judge: bool,
    /// Let checks ask whether links answer (urls_reachable)
    #[arg(long, help_heading = ROOM)]
    allow_network: bool,
    /// Let the evals' setup and teardown scripts run, and the hooks and MCP servers of plugins
    #[arg(long, help_heading = ROOM)]
    trust: bool,
    /// Whether only the command that began a resumed run said `--trust`.
    #[arg(skip)]
    trusted_before: bool,
    #[command(flatten)]
    gates: Gates,
    /// How many trials run at once
    #[arg(short, long, value_name = "N", help_heading = LIMITS)]
    pub jobs: Option<String>,
    /// Run every trial and ask every judge, even if nothing that decides the answer has changed
    #[arg(long, help_heading = LIMITS)]
    no_cache: bool,
    /// Walls around the agents: as good as this machine can, none, or files and network or no run
    #[arg(long, value_name = "auto|off|strict", help_heading = ROOM)]
    sandbox: Option<String>,
    /// Measure activation without first telling each agent once to use each skill
    #[arg(long, help_heading = ROOM)]
    no_probe: bool,
    /// Show what would run, and run nothing; with --json, as `list` does
    #[arg(long, help_heading = SHOWN)]
    pub dry_run: bool,
    /// Leave the agents' workspaces where they are
    #[arg(long, help_heading = ROOM)]
    keep_workspaces: bool,
    /// Show no plan and no progress, only the results
    #[arg(short, long, help_heading = SHOWN)]
    quiet: bool,
    /// Print the summary document, and nothing else, on standard output
    #[arg(long, help_heading = SHOWN)]
    pub json: bool,
    /// When no more trials are started.
    #[arg(skip)]
    until: Option<Instant>,
    /// The id of the run, if it was decided before.
    #[arg(skip)]
    id: Option<String>,
    /// The earlier version of the skill that is under test, where a comparison put it back.
    #[arg(skip)]
    earlier_skill: Option<String>,
    /// Why the run is in no trend and no badge, if so.
    #[arg(skip)]
    not_in_history: Option<String>,
    #[arg(skip)]
    purse: Purse,
}

/// What is to be carried out.
pub struct Errand {
    pub plan: Plan,
    pub agents: BTreeMap<String, Agent>,
    pub ask: Ask,
    pub layers: Layers,
    pub project: PathBuf,
    pub environment: BTreeMap<String, String>,
    /// What the user was told on the way here.
    pub notices: Vec<String>,
    /// The run that is gone on with.
    pub resumed: Option<RunDir>,
}

/// An exam that was held.
pub struct Held {
    pub summary: Summary,
    pub run_dir: RunDir,
}

/// An exam that did not come to its end, and nothing may be made of the half of it.
#[derive(Debug, thiserror::Error)]
#[error("{why}; {way_on}")]
pub struct CutShort {
    why: &'static str,
    way_on: String,
    pub exit: u8,
}

impl Held {
    /// The same, for those who can make nothing of half of it.
    pub fn if_whole(self) -> anyhow::Result<Self> {
        let exit = self.summary.exit;
        let why = match exit {
            130 => "interrupted",
            4 => "stopped by its budget",
            _ => return Ok(self),
        };
        let way_on = self.run_dir.info().map_err(|why| anyhow!(why))?.way_on();
        Err(CutShort { why, way_on, exit }.into())
    }
}

pub fn parse_ratio(text: &str) -> Result<Ratio, String> {
    text.parse().ok().and_then(Ratio::new).ok_or_else(|| "it must be between 0 and 1".to_owned())
}

fn parse_variable(name: &str) -> Result<String, String> {
    match name.split_once('=') {
        Some((name, _)) => Err(format!(
            "only its name is given, and its value is yours: {name}=… practicum run --env {name}"
        )),
        None => Ok(name.to_owned()),
    }
}

impl Carrying {
    /// Adds who answers and who judges to what is asked.
    pub fn ask(&self, ask: Ask) -> Ask {
        Ask {
            script: self.script.clone(),
            record: self.record.clone(),
            replay: self.replay.clone(),
            no_judge: self.no_judge,
            with_skills: self.with_skill.clone(),
            plugins: self.plugin.clone(),
            trust: self.trust,
            ..ask
        }
    }

    /// What was said, by the settings' names.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, String)> {
        let said = [
            (JOBS.name, self.jobs.clone()),
            (SANDBOX.name, self.sandbox.clone()),
            (PROBE.name, self.no_probe.then(|| "false".to_owned())),
            (MAX_COST.name, self.max_cost.clone()),
            (MAX_TOKENS.name, self.max_tokens.clone()),
            (RETRIES.name, self.retries.clone()),
            (RETRY_WAIT.name, self.retry_wait.clone()),
        ];
        said.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }

    /// The same with nothing taken over from earlier runs.
    #[must_use]
    pub fn anew(self) -> Self {
        Self { no_cache: true, ..self }
    }

    /// The same without a plan and without progress.
    #[must_use]
    pub fn quietly(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Carries it out, writes the reports, and shows what came of it.
    pub fn carry_out(&self, errand: Errand, reports: &Reports) -> anyhow::Result<u8> {
        reports.check(self.json)?;
        let environment = errand.environment.clone();
        let planned = (self.dry_run && self.json).then(|| list::document(&errand.plan));
        let Some(held) = self.hold(errand)? else {
            if let Some(planned) = planned {
                print_json(&planned)?;
            }
            return Ok(0);
        };
        let exit = held.summary.exit;
        let mut results = Results::open(held.run_dir).map_err(|why| anyhow!(why))?;
        let all_written = reports.write(&mut results, &environment);
        reports.show(&results, self.json)?;
        // The run itself is kept; that somebody waits for a report must not go unnoticed.
        Ok(if all_written || exit != 0 { exit } else { 3 })
    }

    /// The same for at most so much money, which nobody else spends, and time.
    #[must_use]
    pub fn within(self, left: Left) -> Self {
        let until = left.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        let until = until.and_then(|left| Instant::now().checked_add(left)).or(self.until);
        let max_cost = left.usd.map(|usd| usd.to_string()).or(self.max_cost);
        Self { max_cost, until, purse: Purse::default(), ..self }
    }

    /// What may be said anew of a run that is gone on with: what it may take and how it is shown, not
    /// what is run and what counts, which would make two runs of one.
    pub const SAID_ANEW: [&str; 13] = [
        "max_cost",
        "max_tokens",
        "retries",
        "retry_wait",
        "prices",
        "jobs",
        "fail_fast",
        "no_cache",
        "trust",
        "keep_workspaces",
        "dry_run",
        "quiet",
        "json",
    ];

    /// The same with what is said anew.
    #[must_use]
    pub fn going_on(self, now: Self, said: &Said) -> Self {
        // What the environment names is there both times, and gives way to what was said at the beginning.
        let prices = now.prices.filter(|_| said.has("prices"));
        Self {
            max_cost: now.max_cost.or(self.max_cost),
            max_tokens: now.max_tokens.or(self.max_tokens),
            retries: now.retries.or(self.retries),
            retry_wait: now.retry_wait.or(self.retry_wait),
            prices: prices.or(self.prices),
            jobs: now.jobs.or(self.jobs),
            fail_fast: now.fail_fast || self.fail_fast,
            no_cache: now.no_cache || self.no_cache,
            trust: now.trust || self.trust,
            trusted_before: self.trust && !now.trust,
            keep_workspaces: now.keep_workspaces || self.keep_workspaces,
            dry_run: now.dry_run || self.dry_run,
            quiet: now.quiet || self.quiet,
            json: now.json || self.json,
            ..self
        }
    }

    /// The same, whatever folder it is read in.
    pub fn with_absolute_paths(self) -> std::io::Result<Self> {
        Ok(Self { prices: self.prices.map(std::path::absolute).transpose()?, ..self })
    }

    /// The same as a run of this id.
    #[must_use]
    pub fn with_id(self, id: &str) -> Self {
        Self { id: Some(id.to_owned()), ..self }
    }

    /// The same for a skill as it was at this ref.
    #[must_use]
    pub fn with_earlier_skill(self, reference: &str) -> Self {
        Self { earlier_skill: Some(reference.to_owned()), ..self }
    }

    /// The gates of the command line.
    pub fn gates_asked(&self) -> &[Gate] {
        self.gates.asked()
    }

    /// The same for a run that checks nothing, for this reason.
    #[must_use]
    pub fn not_in_history(self, why: &str) -> Self {
        Self { not_in_history: Some(why.to_owned()), ..self }
    }

    /// Whether it writes a cassette or plays one.
    pub fn is_taped(&self) -> bool {
        self.record.is_some() || self.replay.is_some()
    }

    pub fn asking(&self) -> Asking {
        Asking {
            ask: self.ask(Ask::default()),
            prices: self.prices.clone(),
            cached: !self.no_cache,
            purse: self.purse.clone(),
        }
    }
}
