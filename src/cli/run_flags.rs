//! The options of every command that runs trials, and the functions that run them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;

use super::adviser::ModelAccess;
use super::gates::GateArgs;
use super::headings::{GATES, JUDGE, LIMITS, OUTPUT, STAND_INS, WORKSPACE};
use super::observer::TerminalObserver;
use super::report::ReportOptions;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{list, print_json, runtime};
use crate::model::{Gate, Outcome, Ratio};
use crate::plan::settings::{JOBS, MAX_COST, MAX_TOKENS, PROBE, RETRIES, RETRY_WAIT, SANDBOX};
use crate::plan::settings::{LIMIT_NAMES, LIMITS_PREFIX};
use crate::report::RunResults;
use crate::session::{FinishedRun, PreparedRun, RunInputs, RunLimits, RunOptions, SharedBudget, SuitesToRun};

/// Arguments of every command that runs trials.
#[derive(Clone, Default, clap::Args)]
pub struct RunFlags {
    /// Stage this skill beside the one under test in every arm, to see which of them the agent activates
    /// (repeatable)
    #[arg(long, value_name = "PATH", help_heading = WORKSPACE)]
    with_skill: Vec<PathBuf>,
    /// Stage this whole plugin for agents that load plugins: skills, commands and agents, and with --trust its
    /// hooks and MCP servers. Other agents get its skills (repeatable)
    #[arg(long, value_name = "DIR", help_heading = WORKSPACE)]
    plugin: Vec<PathBuf>,
    /// Pass this environment variable to the agent (repeatable)
    #[arg(long, value_name = "NAME", value_parser = parse_variable, help_heading = WORKSPACE)]
    env: Vec<String>,
    /// Start no more trials after one has failed
    #[arg(long, help_heading = LIMITS)]
    fail_fast: bool,
    /// The share of trials that may stay unscored without the run counting as incomplete
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, default_value = "0", help_heading = GATES)]
    allow_unscored: Ratio,
    /// Stop repeating a case when its runs show whether it mostly passes. The pass rate and its
    /// interval allow for that; other intervals are not printed
    #[arg(long, help_heading = LIMITS)]
    stop_early: bool,
    /// Let a known-flaky case fail a gate on its own
    #[arg(long, help_heading = GATES)]
    count_flaky: bool,
    /// Answer from this script in place of the model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "replay"], help_heading = STAND_INS)]
    script: Option<PathBuf>,
    /// Record all requests to the model and its answers in a new file, for --replay
    #[arg(long, value_name = "FILE", conflicts_with = "replay", help_heading = STAND_INS)]
    record: Option<PathBuf>,
    /// Answer from a recorded file in place of the model; requests that are not in it are reported
    #[arg(long, value_name = "FILE", help_heading = STAND_INS)]
    replay: Option<PathBuf>,
    /// Stop when the whole command has spent this many US dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true, help_heading = LIMITS)]
    max_cost: Option<String>,
    /// Stop when this many tokens are used, cached tokens included
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    max_tokens: Option<String>,
    /// How often to retry a trial that a rate limit or an API error ended [default: 2]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    retries: Option<String>,
    /// How long to wait before a retry; twice as long before each further one [default: 20s]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    retry_wait: Option<String>,
    /// Start no trial after this time of the day, such as 07:00, and wait no longer for a usage limit
    /// to reset [default: wait up to 6 hours]
    #[arg(long, value_name = "HH:MM", value_parser = parse_until, help_heading = LIMITS)]
    until: Option<u64>,
    /// Prices of models (TOML file); they win over the built-in prices
    #[arg(long, value_name = "FILE", env = "PRACTICUM_PRICES", help_heading = LIMITS)]
    prices: Option<PathBuf>,
    /// Ask no judge; judged checks stay unscored
    #[arg(long, help_heading = JUDGE)]
    no_judge: bool,
    /// Allow checks to open links (urls_reachable)
    #[arg(long, help_heading = WORKSPACE)]
    allow_network: bool,
    /// Allow code from eval files and plugins to run on this machine: setup, teardown and check scripts,
    /// hooks, MCP servers
    #[arg(long, help_heading = WORKSPACE)]
    pub trust: bool,
    #[command(flatten)]
    gates: GateArgs,
    /// What the gate no_regression compares with: a run, or a file that practicum baseline wrote [default:
    /// practicum-baseline.json in the project]
    #[arg(long, value_name = "RUN|FILE", help_heading = GATES)]
    baseline: Option<String>,
    /// How many trials to run at once
    #[arg(short, long, value_name = "N", help_heading = LIMITS)]
    pub jobs: Option<String>,
    /// Run every trial and ask every judge, also where an earlier result could be reused
    #[arg(long, help_heading = LIMITS)]
    no_cache: bool,
    /// Sandbox for agents. auto: the strongest available here; strict: isolate files and network, or refuse
    /// to run; off: none
    #[arg(long, value_name = "auto|off|strict", help_heading = WORKSPACE)]
    sandbox: Option<String>,
    /// Limit what the processes of one trial may use, such as memory=4GB. NAME is memory, processes, cpu, open-files,
    /// disk or files; can be given several times
    #[arg(long = "limit", value_name = "NAME=AMOUNT", help_heading = LIMITS)]
    limit: Vec<TrialLimit>,
    /// Skip the probes: one trial before the run that shows whether each agent can use each skill
    #[arg(long, help_heading = WORKSPACE)]
    no_probe: bool,
    /// Show the plan and run nothing; with --json, print it as `list` does
    #[arg(long, help_heading = OUTPUT)]
    pub dry_run: bool,
    /// Keep the agents' workspaces after the run
    #[arg(long, help_heading = WORKSPACE)]
    keep_workspaces: bool,
    /// Show only the results, no plan and no progress
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
    /// Print the summary as JSON on standard output, and nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// The money that all runs of the command share.
    #[arg(skip)]
    pub budget: SharedBudget,
}

/// A limit on the command line: its name and its amount.
#[derive(Debug, Clone)]
struct TrialLimit {
    name: String,
    amount: String,
}

impl std::str::FromStr for TrialLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, amount) = text.split_once('=').ok_or("it must be NAME=AMOUNT, such as memory=4GB")?;
        if !LIMIT_NAMES.contains(&name) {
            return Err(format!("there is no limit \"{name}\"; there are {}", LIMIT_NAMES.join(", ")));
        }
        Ok(Self { name: name.to_owned(), amount: amount.to_owned() })
    }
}

/// An error: a run was stopped before its end, so nothing can be concluded from it.
#[derive(Debug, thiserror::Error)]
#[error("{why}; {way_on}")]
pub struct StoppedRun {
    why: &'static str,
    way_on: String,
    pub outcome: Outcome,
}

/// Gives the run if it was not stopped; for commands that can conclude nothing from a part of a run.
pub fn refuse_stopped(finished: FinishedRun) -> anyhow::Result<FinishedRun> {
    let outcome = finished.summary.exit;
    let why = match outcome {
        Outcome::Interrupted => "interrupted",
        Outcome::OverBudget => "stopped by its budget",
        Outcome::Passed | Outcome::Failed | Outcome::Invalid | Outcome::Incomplete => return Ok(finished),
    };
    let way_on = finished.run_dir.info().map_err(|why| anyhow!(why))?.resume_hint();
    Err(StoppedRun { why, way_on, outcome }.into())
}

pub fn parse_ratio(text: &str) -> Result<Ratio, String> {
    text.parse().ok().and_then(Ratio::new).ok_or_else(|| "it must be between 0 and 1".to_owned())
}

fn parse_variable(name: &str) -> Result<String, String> {
    match name.split_once('=') {
        Some((name, _)) => Err(format!(
            "give only the name; the value is taken from your environment: {name}=… practicum run --env {name}"
        )),
        None => Ok(name.to_owned()),
    }
}

impl RunFlags {
    /// Gives the options of a run of these evals.
    pub fn options(&self, evals: &EvalsArgs, choices: &SettingArgs) -> RunOptions {
        let inputs = RunInputs {
            script: self.script.clone(),
            record: self.record.clone(),
            replay: self.replay.clone(),
            no_judge: self.no_judge,
            with_skills: self.with_skill.clone(),
            plugins: self.plugin.clone(),
            trust: self.trust,
            only_shown: self.dry_run,
            ..evals.inputs()
        };
        RunOptions {
            inputs,
            settings: self.settings(choices),
            prices: self.prices.clone(),
            gates: self.gates.requested().to_vec(),
            allow_unscored: self.allow_unscored,
            count_flaky: self.count_flaky,
            baseline: self.baseline.clone(),
            pass_env: self.env.clone(),
            allow_network: self.allow_network,
            fail_fast: self.fail_fast,
            until: self.until,
            stop_early: self.stop_early,
            no_reuse: self.no_cache,
            keep_workspaces: self.keep_workspaces,
            ..RunOptions::default()
        }
    }

    /// Gives the settings that these flags and the choices set, by name.
    pub fn settings(&self, choices: &SettingArgs) -> BTreeMap<String, String> {
        let own = [
            (JOBS.name, self.jobs.clone()),
            (SANDBOX.name, self.sandbox.clone()),
            (PROBE.name, self.no_probe.then(|| "false".to_owned())),
            (MAX_COST.name, self.max_cost.clone()),
            (MAX_TOKENS.name, self.max_tokens.clone()),
            (RETRIES.name, self.retries.clone()),
            (RETRY_WAIT.name, self.retry_wait.clone()),
        ];
        let own = own.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        let limits =
            self.limit.iter().map(|limit| (format!("{LIMITS_PREFIX}{}", limit.name), limit.amount.clone()));
        let named = choices.flags().into_iter().chain(own).map(|(name, value)| (name.to_owned(), value));
        named.chain(limits).collect()
    }

    /// The names of the arguments that may be given beside `--resume`: limits and display. What is run and what
    /// counts must not change, because that would make it another run.
    pub const RESUMABLE: [&str; 14] = [
        "limit",
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

    /// Gives the limits of a run that shares its budget with the other runs of the command.
    pub fn limits(&self) -> RunLimits {
        RunLimits { budget: self.budget.clone(), ..RunLimits::default() }
    }

    /// Gives the observer that shows the run to the user.
    pub fn observer(&self) -> TerminalObserver {
        TerminalObserver { quiet: self.quiet, dry_run: self.dry_run }
    }

    /// Plans and runs. Gives `None` if there was nothing to run.
    pub fn run(&self, suites: SuitesToRun) -> anyhow::Result<Option<FinishedRun>> {
        self.run_with(suites, &mut self.observer())
    }

    /// Plans and runs with another observer.
    pub fn run_with(
        &self,
        suites: SuitesToRun,
        observer: &mut TerminalObserver,
    ) -> anyhow::Result<Option<FinishedRun>> {
        match suites.prepare(observer)? {
            Some(prepared) if !self.dry_run => self.run_prepared(prepared, observer).map(Some),
            _ => Ok(None),
        }
    }

    fn run_prepared(
        &self,
        prepared: PreparedRun,
        observer: &mut TerminalObserver,
    ) -> anyhow::Result<FinishedRun> {
        let finished = runtime()?.block_on(prepared.run(observer))?;
        if let Some(folder) = &finished.workspaces {
            say!("workspaces kept in {}", folder.display());
        }
        Ok(finished)
    }

    /// Plans and runs, writes the reports, and shows the results. Gives the outcome.
    pub fn run_and_report(&self, suites: SuitesToRun, reports: &ReportOptions) -> anyhow::Result<Outcome> {
        reports.require_one_for_stdout(self.json)?;
        let mut observer = self.observer();
        let Some(prepared) = suites.prepare(&mut observer)? else { return Ok(Outcome::Passed) };
        if self.dry_run {
            if self.json {
                print_json(&list::list_document(prepared.plan()))?;
            }
            return Ok(Outcome::Passed);
        }
        let environment = super::environment();
        let finished = self.run_prepared(prepared, &mut observer)?;
        let outcome = finished.summary.exit;
        let mut results = RunResults::open(finished.run_dir).map_err(|why| anyhow!(why))?;
        let all_written = reports.write(&mut results, &environment);
        reports.show(&results, self.json)?;
        // The run itself is stored, but a missing report must not go unnoticed.
        Ok(if all_written || outcome != Outcome::Passed { outcome } else { Outcome::Incomplete })
    }

    /// Gives the gates of the command line.
    pub fn gates_asked(&self) -> &[Gate] {
        self.gates.requested()
    }

    /// Says whether the run records or replays a cassette.
    pub fn has_cassette(&self) -> bool {
        self.record.is_some() || self.replay.is_some()
    }

    /// Gives the access to a model that is asked outside of a run.
    pub fn model_access(&self) -> ModelAccess {
        let options = self.options(&EvalsArgs::at_paths(Vec::new()), &SettingArgs::default());
        ModelAccess { options, limits: self.limits() }
    }
}
/// Reads a time of the day. Gives the next moment with that time here, in seconds since 1970.
fn parse_until(text: &str) -> Result<u64, String> {
    next_time_of_day(text, &jiff::Zoned::now()).ok_or_else(|| "expected a time such as 07:00".to_owned())
}

fn next_time_of_day(text: &str, now: &jiff::Zoned) -> Option<u64> {
    let (hour, minute) = text.split_once(':')?;
    let time = jiff::civil::Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone()).ok()?;
    let next = if today > *now {
        today
    } else {
        now.date().tomorrow().ok()?.to_datetime(time).to_zoned(now.time_zone().clone()).ok()?
    };
    u64::try_from(next.timestamp().as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::next_time_of_day;

    #[test]
    fn a_time_of_the_day_is_the_next_one() {
        let now: jiff::Timestamp = "2026-11-17T22:30:00Z".parse().expect("a time");
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        let hours =
            |text| next_time_of_day(text, &now).map(|at| (at as i64 - now.timestamp().as_second()) / 60);
        assert_eq!(hours("23:00"), Some(30));
        assert_eq!(hours("07:00"), Some(8 * 60 + 30));
        assert_eq!(hours("22:30"), Some(24 * 60));
        for bad in ["", "7", "25:00", "07:60", "noon", "-1:00"] {
            assert_eq!(hours(bad), None, "{bad}");
        }
    }
}
