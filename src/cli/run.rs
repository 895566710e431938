use std::path::Path;

use anyhow::{anyhow, bail};

use super::evals::{Choices, Evals};
use super::exam::{Carrying, Errand, Held};
use super::going_on::Said;
use super::headings::{CASES, SHOWN};
use super::report::Reports;
use super::{Command, colour, complain, environment, print, tell, tell_notices};
use crate::dialects::{self, Loaded};
use crate::intake::{self, Ask, IntakeError, Reading};
use crate::model::{ProbeRecord, Severity};
use crate::plan::{CaseGlob, Filter, Only, Plan, Planned, plan};
use crate::report::{render_diagnostics, safe};
use crate::settings::{JOBS, JUDGE_JOBS, Layers, MAX_COST, MAX_TOKENS, PROBE, RETRIES, RETRY_WAIT, SANDBOX};
use crate::store::RunDir;

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
pub struct Args {
    #[command(flatten)]
    evals: Evals,
    #[command(flatten)]
    choices: Choices,
    /// Only cases whose id matches (* and ? are wildcards; repeatable)
    #[arg(long, value_name = "GLOB", help_heading = CASES)]
    case: Vec<String>,
    /// Only cases about what the agent does, or only about whether the skill fires
    #[arg(long, value_name = "artifact|activation", value_parser = parse_only, help_heading = CASES)]
    only: Option<Only>,
    /// Only a part of the cases, as 2/5: all parts together are the whole
    #[arg(long, value_name = "PART/PARTS", value_parser = parse_shard, help_heading = CASES)]
    shard: Option<(u32, u32)>,
    /// At most so many cases: a random sample, always the same one of the same cases
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CASES)]
    max_evals: Option<u32>,
    /// Have a model predict from the descriptions whether skills fire, instead of seeing it in runs
    #[arg(long, help_heading = CASES)]
    predicted: bool,
    #[command(flatten)]
    carrying: Carrying,
    #[command(flatten)]
    reports: Reports,
    /// Go on with a run that did not come to its end, as it was begun: only what is missing is run. Limits
    /// (--max-cost and --max-tokens count from here, --retries, --retry-wait, --prices, -j, --judge-jobs,
    /// --fail-fast, --no-cache), --trust, --keep-workspaces and what is shown may be said anew
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest", help_heading = CASES)]
    resume: Option<String>,
    /// Print every setting with where it came from, and run nothing
    #[arg(long, help_heading = SHOWN)]
    explain: bool,
}

fn parse_only(text: &str) -> Result<Only, String> {
    match text {
        "artifact" => Ok(Only::Artifact),
        "activation" => Ok(Only::Activation),
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

pub fn main(args: Args) -> u8 {
    run(args).unwrap_or_else(|error| complain(&error))
}

/// What may be said beside `--resume`, by the names of the arguments.
pub fn may_be_said_anew() -> Vec<&'static str> {
    [&Carrying::SAID_ANEW[..], &Choices::SAID_ANEW, &["orders", "explain", "resume"]].concat()
}

/// The command that began a run, to be given again with what may be said anew.
fn as_begun(now: Args, wanted: &str) -> anyhow::Result<Args> {
    let run = RunDir::find(&now.evals.project(), wanted).map_err(|why| match Path::new(wanted).exists() {
        true => {
            anyhow!("--resume wants a run, and {wanted} is none; it goes on with what that run was about")
        }
        false => anyhow!(why),
    })?;
    let said = Said::now()?;
    said.nothing_but(&may_be_said_anew())?;
    // Before it is read where the other was given.
    let (carrying, reports) = (now.carrying.with_absolute_paths()?, now.reports.with_absolute_paths()?);
    let begun = match super::given_before(&run)? {
        (Command::Run(args), _) => *args,
        (_, info) => bail!("run {} was not begun by practicum run; {}", run.id(), info.way_on()),
    };
    Ok(Args {
        choices: begun.choices.going_on(now.choices),
        carrying: begun.carrying.going_on(carrying, &said),
        reports: begun.reports.and(reports),
        explain: now.explain,
        resume: Some(run.id().to_owned()),
        ..begun
    })
}

fn run(args: Args) -> anyhow::Result<u8> {
    let args = match args.resume.clone() {
        Some(wanted) => as_begun(args, &wanted)?,
        None => args,
    };
    match errand(&args, |_| Ok(()))? {
        Some(errand) => args.carrying.carry_out(errand, &args.reports),
        None => Ok(0),
    }
}

/// Runs evals for another command, which may change what was read, and shows nothing of the result.
/// `None` if nothing was to be run.
pub fn hold(
    evals: Evals,
    choices: Choices,
    carrying: Carrying,
    amend: impl FnOnce(&mut Reading) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Held>> {
    hold_as_asked(&for_another(evals, choices, carrying), amend)
}

/// The same, going on with a run of that command's.
pub fn hold_on(
    run: String,
    evals: Evals,
    choices: Choices,
    carrying: Carrying,
) -> anyhow::Result<Option<Held>> {
    hold_as_asked(&Args { resume: Some(run), ..for_another(evals, choices, carrying) }, |_| Ok(()))
}

fn for_another(evals: Evals, choices: Choices, carrying: Carrying) -> Args {
    Args {
        evals,
        choices,
        case: Vec::new(),
        only: None,
        shard: None,
        max_evals: None,
        predicted: false,
        carrying,
        reports: Reports::default(),
        resume: None,
        explain: false,
    }
}

fn hold_as_asked(
    args: &Args,
    amend: impl FnOnce(&mut Reading) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Held>> {
    let held = match errand(args, amend)? {
        Some(errand) => args.carrying.hold(errand)?,
        None => None,
    };
    let probes = held.iter().flat_map(|held| &held.summary.probes);
    let failed: Vec<String> = probes.filter(|probe| !probe.fired).map(ProbeRecord::in_words).collect();
    if failed.is_empty() { Ok(held) } else { Err(NotReady(failed.join("\n")).into()) }
}

/// Nothing was measured, because a probe showed that it cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotReady(String);

/// What is to be done. `None` if nothing is: it was only to be explained, or is the empty part of a whole.
fn errand(
    args: &Args,
    amend: impl FnOnce(&mut Reading) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Errand>> {
    let environment = environment();
    let only_shown = args.explain || args.carrying.dry_run;
    let ask = Ask { only_shown, ..args.carrying.ask(args.evals.ask()) };
    let project = args.evals.project();
    let mut flags = args.choices.flags();
    flags.extend(args.carrying.flags());
    let layers = Layers::read(flags, environment.clone(), &project).map_err(IntakeError::from)?;
    let filter = Filter {
        cases: args.case.iter().filter_map(|glob| CaseGlob::new(glob)).collect(),
        only: args.only,
        shard: args.shard,
        sample: None,
    };
    let mut reading = intake::read(&ask, &environment)?;
    reading.leave_out_unselected(&filter);
    let (any_invalid, unwanted) = reading.invalid(&filter);
    reading.refuse_missing_skills();
    reading.refuse_missing_files();
    show_problems(&reading, &filter);
    if any_invalid {
        bail!("some eval files cannot be understood; nothing was run");
    }
    if let Some(glob) = args.case.iter().find(|glob| reading.has_no_case(glob)) {
        bail!("--case {} matches no case; practicum list shows all", safe(glob));
    }
    let found = std::mem::take(&mut reading.notices);
    let skipped = std::mem::take(&mut reading.skipped);
    amend(&mut reading)?;
    let agents = intake::all_agents(&layers).map_err(IntakeError::from)?;
    let (mut planned, mut notices) = intake::settle(reading, &ask, &layers, &agents, &filter)?;
    notices.extend(found);
    notices.extend(unwanted);
    if args.predicted {
        planned.iter_mut().for_each(|planned| planned.suite.predict_activation());
        notices
            .push("whether skills fire is predicted by a model from their descriptions, not seen".to_owned());
    }
    tell_notices(&notices);
    if args.explain {
        print(&explain(&planned, &layers)?)?;
        return Ok(None);
    }
    let filter = match args.max_evals {
        Some(most) => sampled(filter, most, &planned),
        None => filter,
    };
    // Whoever splits a few cases into many parts has empty ones; together they are still the whole.
    let is_part = filter.is_part_of(&planned);
    let plan = Plan { skipped, ..plan(planned, &filter) };
    if plan.trials.is_empty() && !is_part {
        bail!("there is nothing to run: no case fits{}; practicum list shows all", narrowed(args));
    }
    if plan.trials.is_empty() {
        say!("note: no case falls into this part; nothing is run and nothing is written");
        return Ok(None);
    }
    for why in not_started(&plan) {
        say!("not run: {}", safe(&why));
        notices.push(format!("not run: {why}"));
    }
    let resumed = match &args.resume {
        Some(wanted) => Some(RunDir::find(&project, wanted).map_err(|why| anyhow!(why))?),
        None => None,
    };
    Ok(Some(Errand { plan, agents, ask, layers, project, environment, notices, resumed }))
}

/// The cases that cannot run on this machine, and why; a suite without its skill once for all its cases.
fn not_started(plan: &Plan) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for trial in &plan.trials {
        let (planned, case) = plan.case(trial);
        let Some(why) = planned.why_not_started(case) else { continue };
        let what = match planned.missing.skills.is_empty() {
            true => format!("case {} of {}", case.id, planned.suite.name),
            false => format!("suite {}", planned.suite.name),
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, all)) if all.contains(&what) => {}
            Some((_, all)) => all.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    reasons.into_iter().map(|(why, all)| format!("{}: {why}", all.join(", "))).collect()
}

/// Draws a sample, and tells that it is one.
fn sampled(filter: Filter, most: u32, suites: &[Planned]) -> Filter {
    let cases: usize = suites.iter().map(|planned| planned.suite.cases.len()).sum();
    let filter = filter.at_most(most as usize, suites);
    let drawn = filter.sample.as_ref().map_or(0, |sample| sample.len());
    if drawn < cases {
        say!("note: {drawn} of {cases} cases are run, a sample (--max-evals {most})");
    }
    filter
}

/// By what the cases were chosen, as it was said.
fn narrowed(args: &Args) -> String {
    let globs = args.case.iter().map(|glob| format!(" --case {glob}"));
    globs.chain(args.only.map(|only| format!(" --only {}", only.name()))).collect()
}

/// Errors and warnings of files that may hold a wanted case. Notices are for `check`, which is asked for them.
fn show_problems(reading: &Reading, filter: &Filter) {
    let is_wanted = |file: &&Loaded| match &file.lowered.suite {
        Some(suite) => filter.wants_some_of(suite),
        None => dialects::case_id_of_file(file).is_none_or(|id| filter.wants_id(&id)),
    };
    for file in reading.files.iter().filter(is_wanted) {
        let diagnostics = &file.lowered.diagnostics;
        if diagnostics.iter().any(|problem| problem.severity != Severity::Notice) {
            tell(&render_diagnostics(diagnostics, &file.path, &file.text, colour()));
        }
    }
}

fn explain(planned: &[Planned], layers: &Layers) -> Result<String, IntakeError> {
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
    for (name, value, from) in whole_run {
        out.push_str(&format!("  {name:<18} {value:<24} {from}\n"));
    }
    for suite in planned {
        let origin = &suite.suite.origin;
        let (name, path) = (safe(&suite.suite.name), safe(&origin.path.display().to_string()));
        out.push_str(&format!("{name} ({}, {path})\n", origin.dialect));
        for (name, value, from) in suite.settings.explain() {
            out.push_str(&format!("  {name:<18} {:<24} {from}\n", safe(&value)));
        }
    }
    Ok(out)
}
