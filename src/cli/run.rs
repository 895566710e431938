//! The command `practicum run`: runs evals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use practicum_workers::{NatsAccess, NatsWorkers};

use super::headings::{CASES, OUTPUT, WORKERS};
use super::report::ReportOptions;
use super::resume::RunToResume;
use super::run_flags::RunFlags;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{command_words, environment, print, report_error};
use crate::model::{Outcome, ProbeRecord, parse_duration};
use crate::plan::PlannedSuite;
use crate::plan::settings::{
    JOBS, JUDGE_JOBS, MAX_COST, MAX_TOKENS, PROBE, RETRIES, RETRY_WAIT, SANDBOX, SettingLayers,
    explain_limits,
};
use crate::report::terminal_safe;
use crate::session::run_setup::RunSetupError;
use crate::session::{CaseKind, CaseSelection, ChangedSince, FinishedRun, RunOptions, Session, WorkerPool};

/// How long a worker may be silent if the user gives no time.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum run                             every eval below this folder
  practicum run skills/release-notes        the evals of one skill
  practicum run evals.yaml --agent claude   with Claude Code
  practicum run . --repeat 5 -j 4           each case 5 times, 4 at once
  practicum run . --max-cost 2.50           stop when $2.50 are spent
  practicum run . --report html=report.html   and a page to look at
  practicum run . --record a.cassette.jsonl   keep the answers, for --replay")]
pub struct RunArgs {
    #[command(flatten)]
    evals: EvalsArgs,
    #[command(flatten)]
    choices: SettingArgs,
    /// Only cases whose id matches this pattern (* and ? are wildcards; repeatable)
    #[arg(long, value_name = "GLOB", help_heading = CASES)]
    case: Vec<String>,
    /// Only cases about what the agent does, or only cases about activation
    #[arg(long, value_name = "artifact|activation", value_parser = parse_only, help_heading = CASES)]
    only: Option<CaseKind>,
    /// Only one part of the cases, such as 2/5; all parts together are the whole
    #[arg(long, value_name = "PART/PARTS", value_parser = parse_shard, help_heading = CASES)]
    shard: Option<(u32, u32)>,
    /// Balance the parts of --shard by how long each case takes: the lines that practicum export wrote of an earlier run.
    /// All parts need the same file
    #[arg(long, value_name = "FILE", requires = "shard", help_heading = CASES)]
    durations: Option<PathBuf>,
    /// At most N cases: a random sample, the same one for the same cases
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CASES)]
    max_evals: Option<u32>,
    /// Only suites whose skill, evals, given files or settings have changed since this branch left REF
    /// [default: the default branch]. The plan says why each is run
    #[arg(long, value_name = "REF", num_args = 0..=1, default_missing_value = "", help_heading = CASES)]
    changed: Option<String>,
    /// Let a model predict activation from the descriptions instead of observing it in runs
    #[arg(long, help_heading = CASES)]
    predicted: bool,
    /// Start the real MCP servers that the mocks of the cases name, let them answer, and write their answers to the files
    /// of the recordings. Read the commands in the eval files before
    #[arg(long, requires = "trust", conflicts_with_all = ["workers", "resume"], help_heading = CASES)]
    record_mocks: bool,
    #[command(flatten)]
    flags: RunFlags,
    #[command(flatten)]
    reports: ReportOptions,
    /// Continue a run that did not finish, with the options it was started with; only missing trials are run.
    /// These options may be given again: --max-cost and --max-tokens (they count from here), --retries,
    /// --retry-wait, --prices, -j, --judge-jobs, --fail-fast, --no-cache, --trust, --keep-workspaces, and
    /// everything about output
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest", help_heading = CASES)]
    resume: Option<String>,
    /// Let workers run the trials: the address of the NATS server that they take them from, such as
    /// nats://host:4222. practicum worker starts a worker
    #[arg(long, value_name = "URL", conflicts_with_all = ["record", "keep_workspaces"], help_heading = WORKERS)]
    workers: Option<String>,
    /// Only workers with this label run the trials, such as os=linux (repeatable)
    #[arg(long, value_name = "LABEL", requires = "workers", value_parser = parse_label, help_heading = WORKERS)]
    worker_label: Vec<String>,
    /// How long a worker may be silent before its trial is given to another [default: 30s]
    #[arg(long, value_name = "TIME", requires = "workers", value_parser = parse_lease, help_heading = WORKERS)]
    worker_lease: Option<Duration>,
    /// Print every setting and where it comes from, and run nothing
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
}

/// Reads a label of workers. Labels are joined with commas at the server.
pub fn parse_label(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(',') {
        true => Err("it must not be empty and must not have a comma".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn parse_lease(text: &str) -> Result<Duration, String> {
    let shortest = Duration::from_secs(1);
    parse_duration(text)
        .filter(|lease| *lease >= shortest)
        .ok_or_else(|| "it must be a time of at least one second, such as 30s".to_owned())
}

fn parse_only(text: &str) -> Result<CaseKind, String> {
    match text {
        "artifact" => Ok(CaseKind::Artifact),
        "activation" => Ok(CaseKind::Activation),
        _ => Err("it may be artifact or activation".to_owned()),
    }
}

fn parse_shard(text: &str) -> Result<(u32, u32), String> {
    let numbers =
        text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    numbers
        .filter(|(part, parts)| (1..=*parts).contains(part))
        .ok_or_else(|| "it must be like 2/5".to_owned())
}

pub fn main(args: RunArgs) -> Outcome {
    run(args).unwrap_or_else(|error| report_error(&error))
}

/// Gives the names of the arguments that may be given beside `--resume`.
pub fn resumable_arguments() -> Vec<&'static str> {
    [
        &RunFlags::RESUMABLE[..],
        &SettingArgs::RESUMABLE,
        &["orders", "explain", "resume", "workers", "worker_label", "worker_lease"],
    ]
    .concat()
}

impl RunArgs {
    /// Gives the options that the arguments set.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            selection: CaseSelection {
                cases: self.case.clone(),
                only: self.only,
                shard: self.shard,
                durations: self.durations.clone(),
                max_cases: self.max_evals,
                changed_since: self.changed.clone().map(|reference| match reference.is_empty() {
                    true => ChangedSince::DefaultBranch,
                    false => ChangedSince::Reference(reference),
                }),
                exactly: Vec::new(),
            },
            predict_activation: self.predicted,
            record_mocks: self.record_mocks,
            reports: self.reports.as_text(),
            ..self.flags.options(&self.evals, &self.choices)
        }
    }
}

impl RunArgs {
    /// Gives the workers that run the trials, if the arguments name any.
    fn worker_pool(&self) -> Option<Arc<dyn WorkerPool>> {
        let access = NatsAccess::new(self.workers.as_deref()?, &environment());
        let labels = self.worker_label.iter().cloned().collect();
        Some(Arc::new(NatsWorkers::new(access, labels, self.worker_lease.unwrap_or(DEFAULT_LEASE))))
    }

    /// Gives the words of the command for the record of the run, without a password in the address of a server.
    fn stored_command(&self) -> Vec<String> {
        let Some(url) = &self.workers else { return command_words() };
        let shown = NatsAccess::new(url, &environment()).shown_url();
        command_words().into_iter().map(|word| word.replace(url.as_str(), &shown)).collect()
    }
}

fn run(args: RunArgs) -> anyhow::Result<Outcome> {
    let project = args.evals.project();
    let session = match &args.resume {
        None => Session::new(project).with_options(args.options()),
        Some(wanted) => {
            let now = args.options().made_absolute(&std::env::current_dir()?);
            let resumed = RunToResume::find(&project, wanted, "run", now, &resumable_arguments())?;
            let project = resumed.run_dir.project().unwrap_or(project);
            Session::new(project)
                .with_options(resumed.options)
                .resuming(resumed.run_dir, resumed.trusted_at_start)
        }
    };
    let session = session.showing_only(args.flags.dry_run || args.explain);
    let session = match args.worker_pool() {
        Some(workers) => session.with_workers(workers),
        None => session,
    };
    let reports = ReportOptions::from_text(session.options().reports.iter())?;
    let session = session.with_limits(args.flags.limits()).with_command(args.stored_command());
    let suites = session.read_suites(&mut args.flags.observer())?;
    if args.explain {
        print(&explain(&suites.suites, &suites.layers)?)?;
        return Ok(Outcome::Passed);
    }
    args.flags.run_and_report(suites, &reports)
}

/// Runs evals for another command, without showing the results. Gives `None` if there was nothing to run. If a
/// probe shows that nothing can be measured, that is an error.
pub fn run_for_command(flags: &RunFlags, session: Session<'_>) -> anyhow::Result<Option<FinishedRun>> {
    let session = session.with_command(command_words()).with_environment(environment());
    let finished = flags.run(session.read_suites(&mut flags.observer())?)?;
    let probes = finished.iter().flat_map(|finished| &finished.summary.probes);
    let failed: Vec<String> = probes.filter(|probe| !probe.fired).map(ProbeRecord::describe).collect();
    if failed.is_empty() { Ok(finished) } else { Err(NotReady(failed.join("\n")).into()) }
}

/// An error: nothing was measured, because a probe showed that it is not possible.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotReady(String);

fn explain(planned: &[PlannedSuite], layers: &SettingLayers) -> Result<String, RunSetupError> {
    let none = || "none".to_owned();
    let whole_run = [
        layers.explain_global(&JOBS, |jobs| jobs.to_string())?,
        layers.explain_global(&JUDGE_JOBS, |jobs| jobs.to_string())?,
        layers.explain_global(&SANDBOX, |mode| mode.name().to_owned())?,
        layers.explain_global(&PROBE, bool::to_string)?,
        layers.explain_global(&MAX_COST, |usd| usd.map_or_else(none, |usd| format!("${usd}")))?,
        layers.explain_global(&MAX_TOKENS, |most| most.map_or_else(none, |most| most.to_string()))?,
        layers.explain_global(&RETRIES, |times| times.to_string())?,
        layers.explain_global(&RETRY_WAIT, |wait| format!("{}s", wait.as_secs_f64()))?,
    ];
    let mut out = "the whole run\n".to_owned();
    for (name, value, from) in whole_run.into_iter().chain(explain_limits(layers)?) {
        out.push_str(&format!("  {name:<18} {value:<24} {from}\n"));
    }
    for suite in planned {
        let origin = &suite.suite.origin;
        let (name, path) =
            (terminal_safe(&suite.suite.name), terminal_safe(&origin.path.display().to_string()));
        out.push_str(&format!("{name} ({}, {path})\n", origin.dialect));
        for (name, value, from) in suite.settings.explain() {
            out.push_str(&format!("  {name:<18} {:<24} {from}\n", terminal_safe(&value)));
        }
    }
    Ok(out)
}
