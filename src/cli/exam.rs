//! From a plan to an exit code, for every command that runs trials.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};

use super::advising::Asking;
use super::gates::Gates;
use super::headings::{GATES, JUDGE, LIMITS, ROOM, SHOWN, STAND_INS};
use super::report::Reports;
use super::{counted, list, print_json, runtime, sweep_up};
use crate::agents::{Agent, Login};
use crate::dialects;
use crate::event::{Sink, Sinks};
use crate::gateway::{Budget, Ledger, Prices};
use crate::history::{Wanted, estimate};
use crate::improve::Left;
use crate::intake::{self, Ask, IntakeError};
use crate::key::Keys;
use crate::model::{CheckKind, Ratio, Summary, format_duration};
use crate::pipeline::{Exam, Prior, Retry, Stop, examine};
use crate::plan::Plan;
use crate::report::{LiveView, Progress, Results, safe};
use crate::run::Memory;
use crate::settings::{JOBS, JUDGE_JOBS, Layers, MAX_COST, MAX_TOKENS, PROBE, RETRIES, RETRY_WAIT, SANDBOX};
use crate::stage::{Hidden, Rooms};
use crate::store::{
    Cache, Index, IndexSink, Live, PlannedTrial, RunDir, RunInfo, RunSetting, RunSuite, Scrubber, read_noise,
};
use crate::web::Web;

/// How trials are carried out, whichever they are.
#[derive(Clone, clap::Args)]
pub struct Carrying {
    /// Stage this skill beside the one under test, with it and without it: which of them the agent takes
    /// up is the question (repeatable)
    #[arg(long, value_name = "PATH", help_heading = ROOM)]
    with_skill: Vec<PathBuf>,
    /// Pass this variable on to the agent (repeatable)
    #[arg(long, value_name = "NAME", help_heading = ROOM)]
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
    /// Stop when the run has spent this much, in USD
    #[arg(long, value_name = "USD", help_heading = LIMITS)]
    max_cost: Option<String>,
    /// Stop when the run has used this many tokens, those from a cache included
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
    /// Let the evals' setup and teardown scripts run
    #[arg(long, help_heading = ROOM)]
    trust: bool,
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

pub fn parse_ratio(text: &str) -> Result<Ratio, String> {
    text.parse().ok().and_then(Ratio::new).ok_or_else(|| "it must be between 0 and 1".to_owned())
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

    /// The same for at most so much money and time.
    #[must_use]
    pub fn within(self, left: Left) -> Self {
        let until = left.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        let until = until.and_then(|left| Instant::now().checked_add(left)).or(self.until);
        Self { max_cost: left.usd.map(|usd| usd.to_string()).or(self.max_cost), until, ..self }
    }

    /// Whether it writes a cassette or plays one.
    pub fn is_taped(&self) -> bool {
        self.record.is_some() || self.replay.is_some()
    }

    pub fn asking(&self) -> Asking {
        Asking { ask: self.ask(Ask::default()), prices: self.prices.clone(), cached: !self.no_cache }
    }

    /// Carries it out. `None` if nothing was to be run.
    pub fn hold(&self, errand: Errand) -> anyhow::Result<Option<Held>> {
        let Errand { mut plan, agents, ask, layers, project, environment, mut notices, resumed } = errand;
        self.gates.apply(&mut plan.suites);
        let mut keys = Keys::new(&plan, &agents, &environment);
        let keys = plan.trials.iter().map(|trial| keys.of(trial)).collect();
        // A cassette is made, and played, by what is asked now.
        let taped = ask.record.is_some() || ask.replay.is_some();
        let cache = (!taped).then(|| Cache::of(&project));
        let prior = Prior::look_up(&plan, keys, resumed.as_ref(), cache, !self.no_cache);
        let logins = agents.values().filter_map(|agent| agent.credentials.login(&environment));
        let scrubber = logins.fold(Scrubber::new(&environment), |scrubber, login| match login {
            Login::Variable(_) => scrubber,
            Login::File(path) => scrubber.and_in(&path),
        });
        let shared = self.asking().shared(&layers, &project, &scrubber)?;
        let jobs = layers.pick_global(&JOBS).map_err(IntakeError::from)?.value;
        let judge_jobs = layers.pick_global(&JUDGE_JOBS).map_err(IntakeError::from)?.value;
        let probes = match layers.pick_global(&PROBE).map_err(IntakeError::from)?.value {
            true => intake::probes(&plan, &prior, &ask)?,
            false => Plan::default(),
        };
        if !self.quiet || self.dry_run {
            show_plan(&plan, prior.count(), probes.trials.len());
            show_estimate(&plan, &probes, &prior, &project, jobs);
        }
        if self.dry_run {
            return Ok(None);
        }
        let trusted = trust(&plan, self.trust)?;
        let noise = match self.count_flaky {
            true => None,
            false => read_noise(&project).map_err(|why| anyhow!(why))?,
        };
        let retry = Retry {
            times: layers.pick_global(&RETRIES).map_err(IntakeError::from)?.value,
            wait: layers.pick_global(&RETRY_WAIT).map_err(IntakeError::from)?.value,
        };
        let id = resumed
            .as_ref()
            .map_or_else(|| RunDir::new_id(jiff::Timestamp::now()), |run| run.id().to_owned());
        let rooms = Rooms::place(&id);
        // Before there is a record: a run that may not begin leaves none.
        let sandbox = intake::sandbox(&layers, &plan, [rooms.clone(), project.clone()])?;
        notices.extend(sandbox.notice().map(str::to_owned));
        let runtime = runtime().context("cannot start")?;
        let scripted = plan.suites.iter().any(|suite| suite.script.is_some());
        let run_dir = match resumed {
            Some(run) => {
                if Live::read(run.path()).is_some_and(|live| live.is_running()) {
                    bail!("run {} is still going on", run.id());
                }
                sweep_up(&run);
                run
            }
            None => {
                let run = RunDir::create(&project, id)?;
                let replayed = ask.replay.is_some();
                run.write_info(&RunInfo { replayed, ..info(&plan, &run, scripted, notices) })?;
                run
            }
        };
        Live::mark(run_dir.path(), &rooms).context("cannot mark the run")?;
        let rooms = Rooms::make(rooms).context("cannot make rooms")?;
        let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(run_dir.log(scrubber.clone())?)];
        sinks.push(Box::new(IndexSink::new(&project, &run_dir)));
        sinks.extend(progress(self.quiet, &environment));
        let summary = runtime.block_on(async {
            let suites = intake::means(&plan.suites, &ask, &environment, &shared).await?;
            let stop = Stop::default();
            tokio::spawn(heed_interrupts(stop.clone()));
            if let Some(until) = self.until {
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::time::sleep_until(until.into()).await;
                    stop.after_running();
                });
            }
            let hidden = Hidden::new(
                plan.suites
                    .iter()
                    .map(|planned| planned.suite.origin.path.clone())
                    .chain(plan.suites.iter().filter_map(|planned| planned.suite.run.script.clone()))
                    .chain(plan.suites.iter().filter_map(|planned| planned.script.clone()))
                    .chain(
                        [&ask.script, &ask.record, &ask.replay].into_iter().flatten().filter_map(absolute),
                    ),
            );
            let exam = Exam {
                plan,
                probes,
                agents,
                suites,
                user_env: environment,
                hidden,
                sandbox,
                rooms: rooms.path().to_owned(),
                keep_workspaces: self.keep_workspaces,
                trusted,
                web: self.allow_network.then(|| Web::on(tokio::runtime::Handle::current())),
                jobs,
                judge_jobs,
                memory: Memory::default(),
                run_dir: run_dir.clone(),
                scrubber,
                ledger: Arc::clone(&shared.ledger),
                stop,
                prior,
                pass_env: self.env.clone(),
                fail_fast: self.fail_fast,
                retry,
                allow_unscored: self.allow_unscored,
                noise,
                stop_early: self.stop_early,
            };
            Ok::<Summary, anyhow::Error>(examine(exam, Sinks::new(sinks)).await?)
        })?;
        Live::clear(run_dir.path());
        if self.keep_workspaces {
            eprintln!("workspaces kept in {}", rooms.keep().display());
        }
        Ok(Some(Held { summary, run_dir }))
    }
}

/// How the user sees the run go on. Where nobody looks at a terminal, lines are better.
fn progress(quiet: bool, environment: &BTreeMap<String, String>) -> Option<Box<dyn Sink>> {
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    let dumb = environment.get("TERM").is_some_and(|term| term == "dumb");
    let looks = std::io::stderr().is_terminal() && !set("CI") && !dumb;
    match (quiet, looks) {
        (true, _) => None,
        (false, true) => Some(Box::new(LiveView::begin())),
        (false, false) => Some(Box::new(Progress::new(std::io::stderr()))),
    }
}

fn show_plan(plan: &Plan, reused: usize, probes: usize) {
    let cases: usize = plan.suites.iter().map(|planned| planned.suite.cases.len()).sum();
    let mut agents: Vec<&str> = plan.trials.iter().map(|trial| trial.condition.agent.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    eprintln!(
        "plan: {} of {} in {} with {}",
        counted(plan.trials.len(), "trial"),
        counted(cases, "case"),
        counted(plan.suites.len(), "suite"),
        agents.join(", ")
    );
    if reused > 0 {
        eprintln!(
            "  {reused} reuse, {} run: nothing that decides the others has changed (--no-cache runs all)",
            plan.trials.len() - reused
        );
    }
    if probes > 0 {
        let many = counted(probes, "probe");
        eprintln!("  {many} before, one per agent and skill whose activation is measured (--no-probe: none)");
    }
    for planned in &plan.suites {
        let settings = &planned.settings;
        let scripted = if planned.script.is_some() { ", the model's answers are scripted" } else { "" };
        let rivals: Vec<&str> = planned.suite.rivals.iter().map(|rival| rival.name.as_str()).collect();
        let beside =
            if rivals.is_empty() { String::new() } else { format!(", beside {}", rivals.join(", ")) };
        eprintln!(
            "  {}: {}, at most {} each{}{scripted}",
            safe(&planned.suite.name),
            counted(planned.suite.cases.len(), "case"),
            format_duration(settings.timeout.value),
            safe(&beside)
        );
    }
}

/// What it will take, by what it took before. A history that cannot be read is no reason not to run.
fn show_estimate(plan: &Plan, probes: &Plan, prior: &Prior, project: &Path, jobs: usize) {
    let mut wanted: BTreeMap<Wanted, u64> = BTreeMap::new();
    let to_run = plan.trials.iter().enumerate().filter(|(index, _)| !prior.known.contains_key(index));
    for trial in to_run.map(|(_, trial)| trial).chain(&probes.trials) {
        let (planned, _) = plan.case(trial);
        let kind = Wanted {
            suite: planned.suite.name.clone(),
            agent: trial.condition.agent.clone(),
            model: trial.condition.model.clone(),
            scripted: planned.script.is_some(),
        };
        *wanted.entry(kind).or_default() += 1;
    }
    if wanted.is_empty() {
        return;
    }
    let text = match Index::of(project).and_then(|index| estimate(&index, &wanted)) {
        Ok(estimate) => estimate.in_words(jobs),
        Err(error) => format!("cost and time unknown: {error}"),
    };
    eprintln!("  estimate: {}", safe(&text));
}

/// Scripts of an eval file run on the user's machine, so the user must say that they may.
fn trust(plan: &Plan, trusted: bool) -> anyhow::Result<bool> {
    let mut scripts = Vec::new();
    for planned in &plan.suites {
        for case in &planned.suite.cases {
            let room = &case.room;
            let around = [("setup", &room.setup), ("teardown", &room.teardown)];
            let around = around.into_iter().filter_map(|(word, script)| Some((word, script.clone()?)));
            let commands = case.checks.iter().filter_map(|check| match &check.kind {
                CheckKind::Exact(rule) if rule.runs_code() => Some(("check", rule.value().to_string())),
                CheckKind::Exact(_)
                | CheckKind::Judged(_)
                | CheckKind::Sections(_)
                | CheckKind::Activation(_) => None,
            });
            for (word, script) in around.chain(commands) {
                scripts.push(format!("{word} of {} in suite {}:\n{script}", case.id, planned.suite.name));
            }
        }
    }
    if trusted || scripts.is_empty() {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(anyhow!(
            "the evals hold {} that would run on this machine; read what they do, then say --trust",
            counted(scripts.len(), "script")
        ));
    }
    for script in &scripts {
        eprintln!("--- {}", safe(script));
    }
    eprint!("Run {}? [y/N] ", counted(scripts.len(), "script"));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        eprintln!("not trusted: the cases with scripts are skipped");
    }
    Ok(yes)
}

pub fn info(plan: &Plan, run_dir: &RunDir, scripted: bool, notices: Vec<String>) -> RunInfo {
    let suites = plan.suites.iter().map(|planned| {
        let folder = planned.suite.origin.path.parent().map(PathBuf::from).unwrap_or_default();
        let suite = dialects::to_native(&planned.suite, &folder);
        RunSuite { origin: planned.suite.origin.clone(), suite }
    });
    let settings = plan.suites.iter().map(|planned| {
        let rows = planned.settings.explain().into_iter();
        rows.map(|(name, value, from)| (name.to_owned(), RunSetting { value, from: from.to_string() }))
            .collect()
    });
    let trials = plan.trials.iter().map(|trial| {
        let (planned, case) = plan.case(trial);
        PlannedTrial {
            id: trial.id.clone(),
            suite: planned.suite.name.clone(),
            case: case.id.clone(),
            condition: trial.condition.clone(),
            attempt: trial.attempt,
        }
    });
    RunInfo {
        schema_version: 1,
        run: run_dir.id().to_owned(),
        started: jiff::Timestamp::now().to_string(),
        practicum: env!("CARGO_PKG_VERSION").to_owned(),
        suites: suites.collect(),
        settings: settings.collect(),
        trials: trials.collect(),
        scripted,
        command: std::env::args().skip(1).collect(),
        folder: std::env::current_dir().unwrap_or_default(),
        notices,
        graded_from: None,
        replayed: false,
    }
}

fn absolute(path: &PathBuf) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}

/// What the run may spend, and what things cost.
pub fn ledger(layers: &Layers, prices: Option<&Path>) -> anyhow::Result<Ledger> {
    let max_cost = layers.pick_global(&MAX_COST).map_err(IntakeError::from)?.value;
    let max_tokens = layers.pick_global(&MAX_TOKENS).map_err(IntakeError::from)?.value;
    let prices = prices.map_or_else(|| Ok(Prices::default()), Prices::with_file)?;
    if let Some(usd) = max_cost {
        eprintln!("note: at most ${usd}, by prices of {}", safe(&prices.date));
    }
    Ok(Ledger::new(Budget { max_cost, max_tokens }, prices))
}

/// Once: let what runs finish. Twice: stop now. Either way the record is whole.
pub async fn heed_interrupts(stop: Stop) {
    if tokio::signal::ctrl_c().await.is_ok() {
        eprintln!("stopping after what runs now; once more to stop at once");
        stop.after_running();
    }
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.now();
    }
}
