//! The command `practicum compare`: compares runs, parts of a run, modes, or a skill with an earlier version.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use super::blind::BlindCompareArgs;
use super::run_flags::{RunFlags, refuse_stopped};
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{compare_texts, environment, open_index, print, print_json, record_key, report_error, run};
use crate::compare::{
    CaseHistory, ComparisonDocument, ComparisonRules, Dimension, SideRecords, compare, confirm_losses,
    find_best_side, plan_confirmation, split_by_dimension,
};
use crate::git_ref;
use crate::model::{Digest, Outcome, SkillUseMode, TrialRecord, count_with_noun};
use crate::own_files;
use crate::plan::settings::{REPEAT, SettingLayers, project_root};
use crate::report::{comparison, terminal_safe};
use crate::session::run_setup::{self, EvalFiles, RunSetupError};
use crate::session::{CaseSelection, FinishedRun, RunOptions, Session, SessionError};
use crate::stats::DEFAULT_MARGIN;
use crate::store::{RunDir, read_noise, read_records};

#[derive(clap::Args)]
#[command(after_help = "\
Cases are paired by their ids. A loss counts when chance alone would hardly make it; what may be noise is \
listed as a flip. A case that is gone or renamed counts as a loss unless --allow-missing is given. One run \
of each case shows little: see practicum power.

What --modes and --against run is several runs. If they are interrupted or killed, the same command continues: \
what finished is not run again (unless --no-cache is given).

Exit codes: 0 nothing was lost, 1 something was, 3 it cannot be told: a case is not measured on both sides, or \
it fell and so few runs cannot show whether that is a loss (--repeat 5 or --confirm-losses decides it, --strict counts \
it). Agents, models and modes are only described.

Examples:
  practicum compare 20261114-09 latest           two runs
  practicum compare latest --by arm              with the skill and without it
  practicum compare evals.json --modes -o modes.md
  practicum compare skills/release-notes --against main --repeat 5
  practicum compare old.txt new.txt --spec x.eval.json   which checks flipped
  practicum compare evals --skill skills/release-notes --against main
  practicum compare 20261114-09 latest --blind   which outputs a judge prefers
  practicum compare v0 v2 --blind --of skills/release-notes")]
pub struct CompareArgs {
    /// Two runs (ids, parts of them, folders, or latest); one with --by; eval files or skills with
    /// --modes or --against; two captured texts with --spec; two runs, versions, files or folders with
    /// --blind
    #[arg(required = true)]
    what: Vec<String>,
    /// Compare the parts of one run
    #[arg(long, value_name = "arm|agent|model|mode", value_parser = parse_dimension)]
    by: Option<Dimension>,
    /// Run in each of these modes, compare the others with the first, and name the best [default: baseline
    /// smart forced]
    #[arg(long, value_name = "MODE", num_args = 0.., default_missing_values = ["baseline", "smart", "forced"], conflicts_with_all = ["by", "against", "mode"])]
    modes: Vec<String>,
    /// Run with the skill as it is at this git ref, then as it is now
    #[arg(long, value_name = "REF", conflicts_with = "by")]
    against: Option<String>,
    /// With --modes or --against: where the evals of the skill are, if not where they usually are
    #[arg(long, value_name = "PATH", conflicts_with_all = ["by", "blind"])]
    evals: Option<PathBuf>,
    /// With --modes or --against: the skill under test, in place of the one that the files name
    #[arg(long, value_name = "PATH", conflicts_with_all = ["by", "blind"])]
    skill: Option<PathBuf>,
    /// Have a judge compare the outputs of two runs, versions, files or folders, without knowing whose they
    /// are
    #[arg(long, conflicts_with_all = ["by", "modes", "against"])]
    blind: bool,
    /// Differences of the pass rate smaller than this do not matter
    #[arg(long, value_name = "RATIO", default_value_t = DEFAULT_MARGIN)]
    margin: f64,
    /// Count every loss, also one that may be noise
    #[arg(long)]
    strict: bool,
    /// With --against: run cases that seem to have got worse again on both sides, with at most this many runs in all,
    /// and let the fresh runs decide
    #[arg(long, value_name = "RUNS", num_args = 0..=1, default_missing_value = "100")]
    confirm_losses: Option<u64>,
    /// Do not count cases that are gone
    #[arg(long)]
    allow_missing: bool,
    /// Write the comparison to this file, as Markdown
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
    #[command(flatten, next_help_heading = "With --blind")]
    unseeing: BlindCompareArgs,
    #[command(flatten, next_help_heading = "With --modes, --against or --blind")]
    choices: SettingArgs,
    #[command(flatten, next_help_heading = "With --modes, --against or --blind")]
    flags: RunFlags,
}

fn parse_dimension(text: &str) -> Result<Dimension, String> {
    Dimension::parse(text).ok_or_else(|| "it may be arm, agent, model or mode".to_owned())
}

pub fn main(args: CompareArgs) -> Outcome {
    run_compare(&args).unwrap_or_else(|error| report_error(&error))
}

fn run_compare(args: &CompareArgs) -> anyhow::Result<Outcome> {
    if !args.flags.gates_asked().is_empty() {
        bail!(
            "--gate cannot be given to compare, which says what was lost and has no gates; practicum run \
             enforces gates"
        );
    }
    if args.unseeing.case.is_some() && !args.blind && args.unseeing.spec.is_none() {
        bail!(
            "--case can be given to compare only with --blind or --spec; without them every case is compared"
        );
    }
    if args.blind {
        let [first, second] = args.what.as_slice() else { bail!("name two sides to compare blindly") };
        let project = project(args)?;
        return args.unseeing.compare(first, second, &project, &args.choices, &args.flags);
    }
    if let Some(spec) = &args.unseeing.spec {
        let [before, after] = args.what.as_slice() else { bail!("name two texts to compare by the spec") };
        let texts = (Path::new(before), Path::new(after));
        return compare_texts::compare(texts, spec, args.unseeing.case.as_deref(), args.flags.json);
    }
    let noise = read_noise(&project(args)?, &record_key()).map_err(|why| anyhow!(why))?;
    if args.confirm_losses.is_some() && args.against.is_none() {
        bail!(
            "--confirm-losses runs cases of both sides again, so it needs --against; stored runs stay as they are"
        );
    }
    let rules = ComparisonRules {
        margin: args.margin,
        count_every_loss: args.strict,
        allow_missing: args.allow_missing,
        noise: noise.as_ref(),
        history: None,
    };
    let compared = match (&args.by, args.modes.is_empty(), &args.against) {
        (Some(dimension), ..) => Some(compare_parts(args, *dimension, &rules)?),
        (None, false, _) => compare_modes(args, &rules)?,
        (None, true, Some(reference)) => compare_with_ref(args, reference, &rules)?,
        (None, true, None) => Some(compare_runs(args, &rules)?),
    };
    let Some(TitledComparisons { title, comparisons: found }) = compared else { return Ok(Outcome::Passed) };
    if args.flags.json {
        print_json(&found)?;
    } else {
        print(&comparison::render_text(&found))?;
    }
    // What was paid for is printed first, also if the file cannot be written.
    if let Some(path) = &args.output {
        let text = comparison::render_markdown(&title, &found);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
        own_files::record_written_files(std::slice::from_ref(path));
    }
    Ok(found.exit)
}

/// The stored records of a run.
struct RunRecords {
    name: String,
    /// The id of the run.
    run: String,
    records: Vec<TrialRecord>,
    scripted: bool,
    replayed: bool,
}

impl RunRecords {
    fn from_run(run: &RunDir) -> anyhow::Result<Self> {
        let records = read_records(run.path()).with_context(|| format!("cannot read run {}", run.id()))?;
        let (scripted, replayed) =
            run.info().map(|info| (info.scripted, info.replayed)).map_err(|why| anyhow!(why))?;
        let (name, run) = (run.id().to_owned(), run.id().to_owned());
        Ok(Self { name, run, records: records.into_values().collect(), scripted, replayed })
    }

    fn side(&self) -> SideRecords<'_> {
        let side = SideRecords::new(self.name.clone(), self.records.iter().collect());
        side.with_stand_ins(self.scripted, self.replayed)
    }
}

/// Reads what other runs of the project say of the setups of these runs. A history that cannot be read is not used.
fn known_results(args: &CompareArgs, runs: &[&RunRecords]) -> CaseHistory {
    let records = || runs.iter().flat_map(|run| &run.records);
    let setups: BTreeSet<Digest> =
        records().filter_map(|record| Some(record.repeats.as_ref()?.setup.clone())).collect();
    // What a run reused is in the other run too, and must not count twice.
    let own = runs.iter().map(|run| run.run.clone());
    let left_out: BTreeSet<String> =
        own.chain(records().filter_map(|record| record.reused_from.clone())).collect();
    let read = || -> anyhow::Result<CaseHistory> {
        let index = open_index(&project(args)?)?;
        Ok(index.results_of_setups(&setups, &left_out)?)
    };
    read().unwrap_or_else(|error| {
        say!("note: results of earlier runs are not used: {error:#}");
        CaseHistory::default()
    })
}

fn project(args: &CompareArgs) -> anyhow::Result<PathBuf> {
    Ok(project_root(&std::path::absolute(&args.project)?))
}

fn find(args: &CompareArgs, wanted: &str) -> anyhow::Result<RunRecords> {
    RunRecords::from_run(&RunDir::find(&project(args)?, wanted).map_err(|why| anyhow!(why))?)
}

struct TitledComparisons {
    title: String,
    comparisons: ComparisonDocument,
}

fn compare_runs(args: &CompareArgs, rules: &ComparisonRules<'_>) -> anyhow::Result<TitledComparisons> {
    let [before, after] = args.what.as_slice() else {
        bail!("name two runs, or say what to compare with --by, --modes or --against");
    };
    let (before, after) = (find(args, before)?, find(args, after)?);
    let title = format!("{} and {}", before.name, after.name);
    let history = known_results(args, &[&before, &after]);
    let rules = ComparisonRules { history: Some(&history), ..*rules };
    Ok(TitledComparisons { title, comparisons: compare(&[before.side(), after.side()], &rules) })
}

fn compare_parts(
    args: &CompareArgs,
    dimension: Dimension,
    rules: &ComparisonRules<'_>,
) -> anyhow::Result<TitledComparisons> {
    let [wanted] = args.what.as_slice() else { bail!("name one run to compare the parts of") };
    let kept = find(args, wanted)?;
    let all: Vec<&TrialRecord> = kept.records.iter().collect();
    let sides = split_by_dimension(&all, dimension).into_iter();
    let sides: Vec<SideRecords<'_>> =
        sides.map(|side| side.with_stand_ins(kept.scripted, kept.replayed)).collect();
    if sides.len() < 2 {
        let only = sides.first().map_or("none", |side| side.name.as_str());
        bail!("run {} has one {} only: {}", kept.name, dimension.name(), terminal_safe(only));
    }
    let mut found = compare(&sides, rules);
    match dimension {
        Dimension::Arm => {}
        Dimension::Agent | Dimension::Model => found.ignore_losses(),
        Dimension::Mode => {
            found.ignore_losses();
            found.best = Some(find_best_side(&sides));
        }
    }
    Ok(TitledComparisons { title: format!("{} by {}", kept.name, dimension.name()), comparisons: found })
}

/// Runs each mode and compares the runs. Gives `None` if there was nothing to run, as do the functions below.
fn compare_modes(
    args: &CompareArgs,
    rules: &ComparisonRules<'_>,
) -> anyhow::Result<Option<TitledComparisons>> {
    let mut kept = Vec::new();
    refuse_unknown_modes(args)?;
    if let [only] = args.modes.as_slice() {
        bail!(
            "--modes compares at least two modes, and {} is one; --modes alone means baseline smart forced",
            terminal_safe(only)
        );
    }
    for (at, mode) in args.modes.iter().enumerate() {
        if args.modes[..at].contains(mode) {
            bail!("the mode {} is named twice", terminal_safe(mode));
        }
    }
    for mode in &args.modes {
        say!("mode {}", terminal_safe(mode));
        let options = options(args, &args.choices.clone().with_mode(mode));
        let Some(finished) = run_side(args, options, |_| Ok(()))? else { continue };
        kept.push(RunRecords { name: mode.clone(), ..RunRecords::from_run(&finished.run_dir)? });
    }
    if kept.is_empty() {
        return Ok(None);
    }
    let sides: Vec<SideRecords<'_>> = kept.iter().map(RunRecords::side).collect();
    let mut found = compare(&sides, rules);
    found.ignore_losses();
    found.best = Some(find_best_side(&sides));
    Ok(Some(TitledComparisons { title: format!("Modes of {}", args.what.join(", ")), comparisons: found }))
}

/// Refuses unknown modes before the first mode is run and paid for.
fn refuse_unknown_modes(args: &CompareArgs) -> anyhow::Result<()> {
    let project =
        EvalsArgs::for_paths_and_skill(args.what.iter().map(PathBuf::from).collect(), None, None).project();
    let layers = SettingLayers::without_flags(environment(), &project).map_err(RunSetupError::from)?;
    for mode in &args.modes {
        if mode.contains(',') {
            bail!("separate modes with spaces: --modes {}", terminal_safe(&mode.replace(',', " ")));
        }
        run_setup::mode_text(&SkillUseMode::from(mode.clone()), &layers)
            .map_err(RunSetupError::UnknownMode)?;
    }
    Ok(())
}

fn compare_with_ref(
    args: &CompareArgs,
    reference: &str,
    rules: &ComparisonRules<'_>,
) -> anyhow::Result<Option<TitledComparisons>> {
    let aside = tempfile::tempdir().context("cannot make a folder for the earlier skill")?;
    let now = options(args, &args.choices);
    let earlier = RunOptions { earlier_skill: Some(reference.to_owned()), ..now.clone() };
    let Some((before, after)) = run_both_sides(args, reference, (&earlier, &now), aside.path())? else {
        return Ok(None);
    };
    let title = format!("{}: {reference} and now", args.what.join(", "));
    let history = known_results(args, &[&before, &after]);
    let rules = ComparisonRules { history: Some(&history), ..*rules };
    let mut found = compare(&[before.side(), after.side()], &rules);
    if let Some(most_runs) = args.confirm_losses {
        confirm_suspicious_cases(args, &mut found, most_runs, reference, (earlier, now))?;
    }
    Ok(Some(TitledComparisons { title, comparisons: found }))
}

/// Runs the earlier version of the skill, then the present one.
fn run_both_sides(
    args: &CompareArgs,
    reference: &str,
    (earlier, now): (&RunOptions, &RunOptions),
    aside: &Path,
) -> anyhow::Result<Option<(RunRecords, RunRecords)>> {
    say!("the skill at {}", terminal_safe(reference));
    let before = run_side(args, earlier.clone(), |reading| use_skills_at_ref(reading, reference, aside))?;
    say!("the skill as it is");
    let after = run_side(args, now.clone(), |_| Ok(()))?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(None) };
    let before = RunRecords { name: reference.to_owned(), ..RunRecords::from_run(&before.run_dir)? };
    let after = RunRecords { name: "now".to_owned(), ..RunRecords::from_run(&after.run_dir)? };
    Ok(Some((before, after)))
}

/// The sample that fresh runs belong to: none of the trials that made a case suspicious is reused.
const CONFIRMATION_SAMPLE: &str = "confirm losses";

/// Runs the cases that seem to have got worse again on both sides, as far as the budget goes.
fn confirm_suspicious_cases(
    args: &CompareArgs,
    found: &mut ComparisonDocument,
    most_runs: u64,
    reference: &str,
    (earlier, now): (RunOptions, RunOptions),
) -> anyhow::Result<()> {
    let plan = plan_confirmation(found, most_runs);
    if plan.left_out > 0 {
        let cases = count_with_noun(plan.left_out, "case");
        say!("{cases} more may have got worse; --confirm-losses={most_runs} is too few runs to confirm that");
    }
    if plan.cases.is_empty() {
        return Ok(());
    }
    let cases = count_with_noun(plan.cases.len(), "case");
    say!("{cases} may have got worse: {} fresh runs of each on each side decide", plan.repeat);
    let fresh = |options: RunOptions| {
        let exactly = plan.cases.iter().map(|case| (case.suite.clone(), case.id.clone())).collect();
        let mut settings = options.settings;
        settings.insert(REPEAT.name.to_owned(), plan.repeat.to_string());
        RunOptions {
            selection: CaseSelection { exactly, ..options.selection },
            settings,
            sample: Some(CONFIRMATION_SAMPLE.to_owned()),
            not_in_history: Some("only cases that seemed to have got worse were run".to_owned()),
            ..options
        }
    };
    let aside = tempfile::tempdir().context("cannot make a folder for the earlier skill")?;
    let sides = (&fresh(earlier), &fresh(now));
    let Some((before, after)) = run_both_sides(args, reference, sides, aside.path())? else { return Ok(()) };
    confirm_losses(found, &before.side(), &after.side());
    Ok(())
}

fn evals(args: &CompareArgs) -> EvalsArgs {
    EvalsArgs::for_paths_and_skill(
        args.what.iter().map(PathBuf::from).collect(),
        args.evals.clone(),
        args.skill.clone(),
    )
}

fn options(args: &CompareArgs, choices: &SettingArgs) -> RunOptions {
    args.flags.options(&evals(args), choices)
}

/// Runs one side of the comparison. A stopped run is an error, because a part of a run cannot be compared and no
/// other run may begin after Ctrl-C.
fn run_side(
    args: &CompareArgs,
    options: RunOptions,
    change: impl FnOnce(&mut EvalFiles) -> anyhow::Result<()>,
) -> anyhow::Result<Option<FinishedRun>> {
    let change = |reading: &mut EvalFiles| {
        change(reading).map_err(|error| SessionError::Refused(format!("{error:#}")))
    };
    let session = Session::new(evals(args).project()).with_options(options);
    let session = session.with_limits(args.flags.limits()).changing_reading(change);
    run::run_for_command(&args.flags, session)?.map(refuse_stopped).transpose()
}

/// Replaces the skills under test by their versions at a git ref.
fn use_skills_at_ref(
    reading: &mut EvalFiles,
    reference: &str,
    aside: &std::path::Path,
) -> anyhow::Result<()> {
    let evals: Vec<PathBuf> = reading.files.iter().filter_map(|file| file.path.canonicalize().ok()).collect();
    let mut made: Vec<(PathBuf, PathBuf)> = Vec::new();
    let number = reading.redirect_skills(|path| {
        // Many files may name the same skill.
        if let Some((_, copy)) = made.iter().find(|(known, _)| known == path) {
            return anyhow::Ok(Some(copy.clone()));
        }
        let folder = aside.join(made.len().to_string());
        std::fs::create_dir(&folder)?;
        let copy = git_ref::write_skill_at_ref(path, reference, &folder, &evals)?;
        made.push((path.to_owned(), copy.clone()));
        Ok(Some(copy))
    })?;
    if number == 0 {
        bail!("the evals name no skill, so none can be put back to {reference}; name one with --skill");
    }
    Ok(())
}
