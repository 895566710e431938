use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};

use super::evals::{Choices, Evals};
use super::{colour, complain, environment, runtime};
use crate::dialects;
use crate::event::Sinks;
use crate::gateway::{Budget, Ledger, Prices};
use crate::intake::{self, Ask, IntakeError, Reading, Shared};
use crate::model::{Severity, format_duration};
use crate::pipeline::{Exam, Examined, Stop, examine};
use crate::plan::{CaseGlob, Filter, Plan, Planned, plan};
use crate::report::{Progress, Results, render_diagnostics, report, safe};
use crate::settings::{JOBS, Layers, MAX_COST, MAX_TOKENS};
use crate::stage::Hidden;
use crate::store::{RunDir, RunInfo, Scrubber};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum run                             every eval below this folder
  practicum run skills/release-notes        the evals of one skill
  practicum run evals.yaml --agent claude   with Claude Code instead of the file's own agent
  practicum run . --repeat 5 -j 4           five runs of each case, four at a time
  practicum run . --max-cost 2.50           stop when $2.50 are spent
  practicum run . --record a.cassette.jsonl   keep what the model says, for --replay")]
pub struct Args {
    #[command(flatten)]
    evals: Evals,
    #[command(flatten)]
    choices: Choices,
    /// Only cases whose id matches (* and ? are wildcards; repeatable)
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// A script that answers in place of the model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "replay"])]
    script: Option<PathBuf>,
    /// Write what the model is asked and answers to a new file, to be replayed later
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Answer from such a file in place of the model; what is asked otherwise is reported
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Stop when the run has spent this much, in USD
    #[arg(long, value_name = "USD")]
    max_cost: Option<String>,
    /// Stop when the run has used this many tokens, those from a cache included
    #[arg(long, value_name = "N")]
    max_tokens: Option<String>,
    /// Prices of models, before those that are known (TOML)
    #[arg(long, value_name = "FILE", env = "PRACTICUM_PRICES")]
    prices: Option<PathBuf>,
    /// Leave judged checks unscored
    #[arg(long)]
    no_judge: bool,
    /// Let the evals' setup and teardown scripts run
    #[arg(long)]
    trust: bool,
    /// How many trials run at once
    #[arg(short, long, value_name = "N")]
    jobs: Option<String>,
    /// Show what would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Print every setting with where it came from, and run nothing
    #[arg(long)]
    explain: bool,
    /// Leave the agents' workspaces where they are
    #[arg(long)]
    keep_workspaces: bool,
    /// Print the summary document, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: Args) -> u8 {
    run(args).unwrap_or_else(|error| complain(&error))
}

fn run(args: Args) -> anyhow::Result<u8> {
    let environment = environment();
    let ask = Ask {
        script: args.script.clone(),
        record: args.record.clone(),
        replay: args.replay.clone(),
        no_judge: args.no_judge,
        ..args.evals.ask()
    };
    let project = args.evals.project();
    let mut flags = args.choices.flags();
    flags.extend(args.jobs.clone().map(|jobs| (JOBS.name, jobs)));
    flags.extend(args.max_cost.clone().map(|usd| (MAX_COST.name, usd)));
    flags.extend(args.max_tokens.clone().map(|tokens| (MAX_TOKENS.name, tokens)));
    let layers = Layers::read(flags, environment.clone(), &project).map_err(IntakeError::from)?;
    let reading = intake::read(&ask, &environment)?;
    show_problems(&reading);
    if reading.has_errors() {
        bail!("some eval files cannot be understood; nothing was run");
    }
    let agents = intake::all_agents(&layers).map_err(IntakeError::from)?;
    let (planned, notices) = intake::settle(reading, &ask, &layers, &agents)?;
    for notice in &notices {
        eprintln!("note: {}", safe(notice));
    }
    if args.explain {
        explain(&planned);
        return Ok(0);
    }
    let filter = Filter { cases: args.case.iter().filter_map(|glob| CaseGlob::new(glob)).collect() };
    let plan = plan(planned, &filter);
    if plan.trials.is_empty() {
        bail!("there is nothing to run: no case matches");
    }
    let ledger = Arc::new(ledger(&layers, args.prices.as_deref())?);
    show_plan(&plan);
    if args.dry_run {
        return Ok(0);
    }
    let trusted = trust(&plan, args.trust)?;
    let jobs = layers.pick_global(&JOBS).map_err(IntakeError::from)?.value;
    let runtime = runtime().context("cannot start")?;
    let scripted = plan.suites.iter().any(|suite| suite.script.is_some());
    let run_dir = RunDir::create(&project, jiff::Timestamp::now())?;
    let replayed = ask.replay.is_some();
    run_dir.write_info(&RunInfo { replayed, ..info(&plan, &run_dir, scripted) })?;
    let rooms = tempfile::Builder::new().prefix("practicum-").tempdir().context("cannot make rooms")?;
    let scrubber = Scrubber::new(&environment);
    let mut sinks: Vec<Box<dyn crate::event::Sink>> = vec![Box::new(run_dir.log(scrubber.clone())?)];
    sinks.push(Box::new(Progress::new(std::io::stderr())));
    let examined = runtime.block_on(async {
        let cleaner = scrubber.clone();
        let shared = Shared { ledger: Arc::clone(&ledger), scrub: Arc::new(move |text| cleaner.text(text)) };
        let suites = intake::means(&plan.suites, &ask, &environment, &shared).await?;
        let stop = Stop::default();
        tokio::spawn(heed_interrupts(stop.clone()));
        let hidden = Hidden::new(
            plan.suites
                .iter()
                .map(|planned| planned.suite.origin.path.clone())
                .chain(plan.suites.iter().filter_map(|planned| planned.suite.run.script.clone()))
                .chain([&ask.script, &ask.record, &ask.replay].into_iter().flatten().filter_map(absolute)),
        );
        let exam = Exam {
            plan,
            agents,
            suites,
            user_env: environment,
            hidden,
            rooms: rooms.path().to_owned(),
            keep_workspaces: args.keep_workspaces,
            trusted,
            jobs,
            run_dir: run_dir.clone(),
            scrubber,
            ledger,
            stop,
        };
        Ok::<Examined, anyhow::Error>(examine(exam, Sinks::new(sinks)).await?)
    })?;
    if args.keep_workspaces {
        eprintln!("workspaces kept in {}", rooms.keep().display());
    }
    let results = Results {
        summary: &examined.summary,
        troubles: &examined.troubles,
        run_dir: run_dir.path(),
        scripted,
        replayed,
    };
    show_results(&results, args.json)?;
    Ok(examined.summary.exit)
}

/// Errors and warnings. Notices are for `check`, which is asked for them.
fn show_problems(reading: &Reading) {
    for file in &reading.files {
        let diagnostics = &file.lowered.diagnostics;
        if diagnostics.iter().any(|problem| problem.severity != Severity::Notice) {
            eprint!("{}", render_diagnostics(diagnostics, &file.path, &file.text, colour()));
        }
    }
}

fn explain(planned: &[Planned]) {
    for suite in planned {
        println!(
            "{} ({}, {})",
            safe(&suite.suite.name),
            suite.suite.origin.dialect,
            suite.suite.origin.path.display()
        );
        for (name, value, from) in suite.settings.explain() {
            println!("  {name:<18} {:<24} {from}", safe(&value));
        }
    }
}

fn show_plan(plan: &Plan) {
    let cases: usize = plan.suites.iter().map(|planned| planned.suite.cases.len()).sum();
    let mut agents: Vec<&str> = plan.trials.iter().map(|trial| trial.condition.agent.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    eprintln!(
        "plan: {} trials of {cases} cases in {} suites with {}",
        plan.trials.len(),
        plan.suites.len(),
        agents.join(", ")
    );
    for planned in &plan.suites {
        let settings = &planned.settings;
        let scripted = if planned.script.is_some() { ", the model's answers are scripted" } else { "" };
        eprintln!(
            "  {}: {} cases, at most {} each{scripted}",
            safe(&planned.suite.name),
            planned.suite.cases.len(),
            format_duration(settings.timeout.value)
        );
    }
}

/// Scripts of an eval file run on the user's machine, so the user must say that they may.
fn trust(plan: &Plan, trusted: bool) -> anyhow::Result<bool> {
    let mut scripts = Vec::new();
    for planned in &plan.suites {
        for case in &planned.suite.cases {
            let room = &case.room;
            for (word, script) in [("setup", &room.setup), ("teardown", &room.teardown)] {
                if let Some(script) = script {
                    scripts.push(format!(
                        "{} of {} in suite {}:\n{}",
                        word, case.id, planned.suite.name, script
                    ));
                }
            }
        }
    }
    if trusted || scripts.is_empty() {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(anyhow!(
            "{} scripts want to run on this machine; read them, then say --trust",
            scripts.len()
        ));
    }
    for script in &scripts {
        eprintln!("--- {}", safe(script));
    }
    eprint!("Run these {} scripts? [y/N] ", scripts.len());
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        eprintln!("not trusted: the cases with scripts are skipped");
    }
    Ok(yes)
}

fn info(plan: &Plan, run_dir: &RunDir, scripted: bool) -> RunInfo {
    let suites = plan.suites.iter().map(|planned| {
        let folder = planned.suite.origin.path.parent().map(PathBuf::from).unwrap_or_default();
        serde_json::json!({
            "origin": planned.suite.origin,
            "suite": dialects::to_native(&planned.suite, &folder),
        })
    });
    let settings = plan.suites.iter().map(|planned| {
        let rows = planned.settings.explain().into_iter();
        rows.map(|(name, value, from)| {
            (name.to_owned(), serde_json::json!({"value": value, "from": from.to_string()}))
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
    });
    let trials = plan.trials.iter().map(|trial| {
        let (planned, case) = plan.case(trial);
        serde_json::json!({
            "id": trial.id,
            "suite": planned.suite.name,
            "case": case.id,
            "condition": trial.condition,
            "attempt": trial.attempt,
        })
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
        replayed: false,
    }
}

fn absolute(path: &PathBuf) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}

/// What the run may spend, and what things cost.
fn ledger(layers: &Layers, prices: Option<&Path>) -> anyhow::Result<Ledger> {
    let max_cost = layers.pick_global(&MAX_COST).map_err(IntakeError::from)?.value;
    let max_tokens = layers.pick_global(&MAX_TOKENS).map_err(IntakeError::from)?.value;
    let prices = prices.map_or_else(|| Ok(Prices::default()), Prices::with_file)?;
    if let Some(usd) = max_cost {
        eprintln!("note: at most ${usd}, by prices of {}", safe(&prices.date));
    }
    Ok(Ledger::new(Budget { max_cost, max_tokens }, prices))
}

/// Once: let what runs finish. Twice: stop now. Either way the record is whole.
async fn heed_interrupts(stop: Stop) {
    if tokio::signal::ctrl_c().await.is_ok() {
        eprintln!("stopping after what runs now; once more to stop at once");
        stop.after_running();
    }
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.now();
    }
}

/// A reader who went away has seen enough; that is no failure of the run.
fn show_results(results: &Results<'_>, json: bool) -> anyhow::Result<()> {
    let name = if json { "json" } else { "text" };
    let report = report(name).ok_or_else(|| anyhow!("there is no report {name}"))?;
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    match report.write(results, &mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
