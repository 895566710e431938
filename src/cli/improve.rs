//! The command `practicum improve`: improves a skill in a loop over its evals.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};

use super::run_flags::RunFlags;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{
    environment, global_setting, interrupts, print, print_json, record_key, report_error, run, runtime,
};
use crate::dialects::EvalRegistry;
use crate::dialects::{LocatedSuite, to_native};
use crate::improve::{
    self, Adviser, BlindOpinions, CaseSplit, EditProposal, ImproveGoal, ImproveLoop, ImproveReport, LoopEnd,
    LoopJournal, LoopOptions, LoopServices, LoopStart, LoopStop, RemainingBudget, SideOutputs, StepAnalysis,
    StepResult, StoredRun, TestedVersion,
};
use crate::model::{Case, CheckKind, Digest, Outcome, TrialRecord, count_with_noun, parse_duration};
use crate::plan::settings::{MAX_COST, SettingLayers, project_root};
use crate::report::{terminal_safe, write_version_gradings};
use crate::session::run_setup::{self, EvalFiles, RunSetupError};
use crate::session::{RunLimits, RunOptions, Session, SessionError};
use crate::skill::{SkillForm, command_path, name_from_path};
use crate::stats::ImprovementDesign;
use crate::store::{RunDir, read_noise};
use crate::versions::{SkillContents, SkillVersions};
use crate::workspace::run::CancelToken;

#[derive(clap::Args)]
#[command(after_help = "\
Each round edits a copy of the best version so far, runs every case with it (three times, unless --repeat \
says otherwise), and has the outputs compared blindly. A version that looks better is a candidate. It replaces the \
best version only if fresh runs of both confirm it, and if the cases held out from the proposer have not got worse. \
Over a whole loop, a version that is no better replaces the skill with a chance of at most 5 %. The loop ends when \
everything passes, after two rounds without a candidate, or at a limit; then the best version is put in the skill's place, and every version is kept (see \
practicum versions and restore). The same command again continues a loop that was stopped.

Exit codes: 0 finished, 3 failed, 4 the budget was used up, 130 interrupted.

Examples:
  practicum improve skills/release-notes --max-cost 5
  practicum improve skills/release-notes --rounds 3 --repeat 5 --max-time 1h
  practicum improve skills/release-notes --description-only")]
pub struct ImproveArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// Where the evals of the skill are, if not where they usually are
    #[arg(long, value_name = "PATH")]
    evals: Option<PathBuf>,
    /// How many versions are tried at most; of a description never more than 5
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The pass rate that is good enough
    #[arg(long, value_name = "RATE", default_value_t = 1.0, value_parser = parse_rate)]
    target: f64,
    /// Stop after so much time: seconds, or 20s, 5m, 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    max_time: Option<f64>,
    /// Go on even if the skill passes everything
    #[arg(long)]
    force: bool,
    /// Tune only the description, by the cases that check activation
    #[arg(long)]
    description_only: bool,
    /// Deals the cases into shown and held out, and the labels of comparisons
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Begin anew instead of going on with a loop that was stopped
    #[arg(long)]
    anew: bool,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
}

/// The default number of trials of each case.
const DEFAULT_RUNS: u32 = 3;

/// The largest number of rounds for a description. More rounds would only fit one sentence to these cases.
const MOST_DESCRIPTION_ROUNDS: u32 = 5;

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "it must be between 0 and 1".to_owned())
}

fn parse_time(text: &str) -> Result<f64, String> {
    let time = parse_duration(text).map(|time| time.as_secs_f64());
    time.ok_or_else(|| "a duration is a number of seconds, or like 20s, 5m, 1h".to_owned())
}

pub fn main(args: ImproveArgs) -> Outcome {
    improve(&args).unwrap_or_else(|error| report_error(&error))
}

fn improve(args: &ImproveArgs) -> anyhow::Result<Outcome> {
    if args.choices.is_only_without_skill() {
        bail!("without the skill there is nothing to improve; leave out --arm without");
    }
    let versions = SkillVersions::for_skill(&args.skill)?;
    if args.flags.dry_run {
        let session = Session::new(evals(args).project()).with_options(run_options(args));
        run::run_for_command(&args.flags, session)?;
        let goal = if args.description_only { ImproveGoal::Description } else { ImproveGoal::Skill };
        say!("{}", describe_budget(args, examine_evals(args, goal)?.cases));
        return Ok(Outcome::Passed);
    }
    if args.flags.has_cassette() {
        bail!("a loop is many runs, and a cassette holds one; leave --record and --replay off");
    }
    if args.description_only && args.rounds > MOST_DESCRIPTION_ROUNDS {
        say!("note: a description is tuned in at most {MOST_DESCRIPTION_ROUNDS} rounds");
    }
    let project = project_root(versions.skill());
    let layers = SettingLayers::read(args.flags.settings(&args.choices), environment(), &project)
        .map_err(RunSetupError::from)?;
    let goal = if args.description_only { ImproveGoal::Description } else { ImproveGoal::Skill };
    let options = LoopOptions {
        goal,
        seed: args.seed,
        rounds: most_rounds(args),
        target: args.target,
        force: args.force,
        max_seconds: args.max_time,
        max_usd: global_setting(&layers, &MAX_COST)?,
        noise: read_noise(&project, &record_key()).map_err(|why| anyhow!(why))?,
    };
    let ExaminedEvals { digest: evals_digest, cases } = examine_evals(args, goal)?;
    std::fs::create_dir_all(versions.folder())
        .with_context(|| format!("cannot create {}", versions.folder().display()))?;
    let begun = LoopStart { schema_version: LOOP_RULES, goal, seed: args.seed, evals_digest };
    let journal = LoopJournal::open(versions.folder(), &begun, args.anew).context("cannot keep a journal")?;
    if journal.resumed {
        say!("going on with the loop in {}", journal.path().display());
    } else {
        say!("{}", describe_budget(args, cases));
    }
    if let Some(path) = journal.abandoned_journal.as_ref().filter(|_| !args.anew) {
        let path = path.display();
        say!("note: the loop that was stopped had other evals or settings, so another begins; see {path}");
    }
    // This also handles Ctrl-C between runs; during a run, the run handles it.
    let cancel = interrupts::cancel_on_request();
    let mut hands = LocalLoopServices {
        args,
        goal,
        layers,
        project,
        skill: versions.skill().to_owned(),
        adviser: None,
        start_error: None,
        runtime: runtime().context("cannot start")?,
        cancel,
    };
    let improved = ImproveLoop::new(&versions, journal, &options, &mut hands).run();
    let improved = improved.context("cannot write down what became of the skill")?;
    if let Some(error) = hands.start_error {
        return Err(error);
    }
    if args.flags.json {
        print_json(&improved)?;
    } else {
        print(&describe_improvement(&improved))?;
    }
    Ok(improved.outcome())
}

fn evals(args: &ImproveArgs) -> EvalsArgs {
    EvalsArgs::of_skill(args.skill.clone(), args.evals.clone())
}

/// Gives the options of each run of the loop.
fn run_options(args: &ImproveArgs) -> RunOptions {
    args.flags.options(&evals(args), &args.choices.clone().with_skill().with_repeat(DEFAULT_RUNS))
}

/// Gives the limits of a run: the money and the time that are left.
fn run_limits(left: RemainingBudget) -> RunLimits {
    let left_time = left.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    let deadline = left_time.and_then(|left| Instant::now().checked_add(left));
    RunLimits { max_cost_usd: left.usd, deadline, ..RunLimits::default() }
}

/// Gives the number of rounds that the loop may have.
fn most_rounds(args: &ImproveArgs) -> u32 {
    if args.description_only { args.rounds.min(MOST_DESCRIPTION_ROUNDS) } else { args.rounds }
}

/// Says which improvement the loop can find with its cases, repeats and rounds, before anything is spent.
fn describe_budget(args: &ImproveArgs, cases: u64) -> String {
    let repeat = args.choices.flags().get("repeat").and_then(|repeat| repeat.parse().ok());
    let repeat: u64 = repeat.unwrap_or(DEFAULT_RUNS.into());
    let design = ImprovementDesign::with_usual_cases(cases, repeat, most_rounds(args));
    let runs = format!(
        "{}, {} each, at most {}",
        count_with_noun(cases, "case"),
        count_with_noun(repeat, "run"),
        count_with_noun(design.rounds, "round")
    );
    let found = match design.smallest_found() {
        Some(effect) => format!(
            "an improvement of {:.0} percentage points or more in each round is found with a power of 80 %",
            effect * 100.0
        ),
        None => "no improvement is found with a power of 80 %; add cases, or raise --repeat".to_owned(),
    };
    let more = count_with_noun(2 * cases * repeat, "run");
    format!(
        "{runs}: {found} (simulated for a skill that passes half of its runs). A candidate takes {more} more"
    )
}

/// The version of the rules by which a loop accepts versions. A loop that began by other rules is not continued.
const LOOP_RULES: u32 = 2;

/// The evals of a loop, as far as they are known before it begins.
struct ExaminedEvals {
    /// A digest of the evals and their settings.
    digest: Digest,
    cases: u64,
}

/// Reads the evals and their settings. Refuses evals that a later step could not handle, before anything is spent.
fn examine_evals(args: &ImproveArgs, goal: ImproveGoal) -> anyhow::Result<ExaminedEvals> {
    let mut reading =
        run_setup::read_eval_files(&evals(args).inputs(), &environment(), &EvalRegistry::default())?;
    keep_goal_cases(&mut reading, goal);
    let choices = args.choices.clone().with_skill().with_repeat(DEFAULT_RUNS);
    let mut parts: Vec<String> =
        choices.flags().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let suites = reading.into_suites()?;
    if goal == ImproveGoal::Description && suites.iter().all(|placed| placed.suite.cases.is_empty()) {
        bail!("no case checks whether the skill is activated, so there is nothing to tune a description by");
    }
    let cases = suites.iter().map(|placed| placed.suite.cases.len() as u64).sum();
    SkillContents::scan(&args.skill)?.check_no_evals(suites.iter().map(|placed| &placed.suite))?;
    for LocatedSuite { suite, root, .. } in suites {
        SideOutputs::require_comparable(&suite)?;
        parts.push(to_native(&suite, &root).to_string());
    }
    Ok(ExaminedEvals { digest: Digest::of_parts(parts.iter().map(String::as_bytes)), cases })
}

/// The loop's services on this machine, with its agents and models.
struct LocalLoopServices<'h> {
    args: &'h ImproveArgs,
    goal: ImproveGoal,
    layers: SettingLayers,
    project: PathBuf,
    skill: PathBuf,
    /// The adviser, created on first use because its settings come from the first run. The field comes before the
    /// runtime, so that it is dropped first: the runtime serves its gateway.
    adviser: Option<Adviser>,
    runtime: tokio::runtime::Runtime,
    cancel: CancelToken,
    /// The error why a run could not begin.
    start_error: Option<anyhow::Error>,
}

impl LocalLoopServices<'_> {
    fn stored_run(&self, run: &str) -> Result<StoredRun, LoopStop> {
        let run = RunDir::find(&self.project, run).map_err(LoopStop::Failed)?;
        StoredRun::read(&run).map_err(LoopStop::failed)
    }

    /// Connects the adviser with the settings of a run's first suite, and with its script if the run was scripted.
    fn prepare_adviser(&mut self, run: &StoredRun) -> Result<(), LoopStop> {
        if self.adviser.is_some() {
            return Ok(());
        }
        let suite = run.suites.first().ok_or_else(|| LoopStop::failed("the run has no suite"))?;
        let script = suite.run_policy.script.as_deref().filter(|_| run.scripted);
        let access = self.args.flags.model_access();
        let adviser = access.adviser(&self.layers, &self.project, suite, script, self.cancel.clone());
        self.adviser =
            Some(self.runtime.block_on(adviser).map_err(|error| LoopStop::failed(format!("{error:#}")))?);
        Ok(())
    }

    /// Gives the adviser, or an error that there is none.
    fn adviser(&self) -> Result<&Adviser, LoopStop> {
        self.adviser.as_ref().ok_or_else(|| LoopStop::failed("no model is available to ask"))
    }

    /// Replaces the result of a question by "interrupted" if the user interrupted it, because the interruption
    /// made it fail.
    fn or_interrupted<T>(&self, asked: Result<T, LoopStop>) -> Result<T, LoopStop> {
        if self.cancel.is_cancelled() { Err(LoopStop::Interrupted) } else { asked }
    }
}

impl LoopServices for LocalLoopServices<'_> {
    fn run_version(
        &mut self,
        skill: &Path,
        run: &str,
        sample: Option<&str>,
        left: RemainingBudget,
    ) -> Result<StepResult<Result<(), LoopStop>>, LoopStop> {
        let aside = tempfile::tempdir().map_err(LoopStop::failed)?;
        let copy = copy_under_its_name(skill, &self.skill, aside.path()).map_err(LoopStop::failed)?;
        let evals = EvalsArgs::of_skill(self.skill.clone(), self.args.evals.clone());
        let choices = self.args.choices.clone().with_skill().with_repeat(DEFAULT_RUNS);
        let (own_skill, goal) = (&self.skill, self.goal);
        let options = self.args.flags.options(&evals, &choices);
        let session = Session::new(evals.project())
            .with_options(RunOptions { sample: sample.map(str::to_owned), ..options })
            .with_limits(run_limits(left))
            .with_run_id(run)
            .changing_reading(|reading| {
                replace_skill_under_test(reading, own_skill, &copy, goal)
                    .map_err(|error| SessionError::Refused(format!("{error:#}")))
            });
        let finished = match run::run_for_command(&self.args.flags, session) {
            Ok(finished) => finished.ok_or_else(|| LoopStop::failed("nothing was to be run"))?,
            Err(error) => {
                let halt = LoopStop::failed(format!("{error:#}"));
                self.start_error = Some(error);
                return Err(halt);
            }
        };
        let run = StoredRun::read(&finished.run_dir).map_err(LoopStop::failed)?;
        let value = match finished.summary.exit {
            Outcome::Interrupted if self.cancel.is_cancelled() => Err(LoopStop::Interrupted),
            Outcome::Interrupted => Err(LoopStop::OutOfTime),
            Outcome::OverBudget => Err(LoopStop::OutOfMoney),
            Outcome::Passed | Outcome::Failed | Outcome::Invalid | Outcome::Incomplete => Ok(()),
        };
        Ok(StepResult { value, cost_usd: run.total_cost() })
    }

    fn cost_of_killed_run(&mut self, run: &str) -> StepResult<f64> {
        // A run without a folder was killed before anything was spent on it.
        let Ok(dir) = RunDir::find(&self.project, run) else {
            return StepResult { value: 0.0, cost_usd: Some(0.0) };
        };
        let paid = StoredRun::read(&dir).map(|run| run.total_cost());
        StepResult { value: dir.run_duration().as_secs_f64(), cost_usd: paid.unwrap_or(None) }
    }

    fn records(&mut self, run: &str) -> Result<Vec<TrialRecord>, LoopStop> {
        Ok(self.stored_run(run)?.trials_with_skill().cloned().collect())
    }

    fn write_gradings(
        &mut self,
        tested: &TestedVersion,
        records: &[TrialRecord],
        folder: &Path,
    ) -> Result<(), LoopStop> {
        let TestedVersion { version, files, run } = tested;
        let dir = RunDir::find(&self.project, run).map_err(LoopStop::Failed)?;
        let trials = records.iter().map(|record| (record, dir.trial_folder(&record.trial)));
        let said = &self.stored_run(run)?.skills_judged;
        write_version_gradings(folder, *version, files, said, trials).map_err(LoopStop::failed)
    }

    fn propose_edits(
        &mut self,
        best: &TestedVersion,
        split: &CaseSplit,
        round: u32,
    ) -> Result<StepResult<EditProposal>, LoopStop> {
        let run = self.stored_run(&best.run)?;
        self.prepare_adviser(&run)?;
        let asked = improve::propose_edits(self.adviser()?, self.goal, best, &run, split, round);
        self.or_interrupted(self.runtime.block_on(asked))
    }

    fn compare_blindly(
        &mut self,
        best: &TestedVersion,
        candidate: &TestedVersion,
        split: &CaseSplit,
        folder: &Path,
    ) -> Result<StepResult<BlindOpinions>, LoopStop> {
        let (old, new) = (self.stored_run(&best.run)?, self.stored_run(&candidate.run)?);
        self.prepare_adviser(&old)?;
        let (adviser, seed) = (self.adviser()?, self.args.seed);
        let asked = improve::compare_blindly(adviser, (best, &old), (candidate, &new), split, seed, folder);
        self.or_interrupted(self.runtime.block_on(asked))
    }

    fn explain_winner(
        &mut self,
        winner: &TestedVersion,
        loser: &TestedVersion,
        said: &BlindOpinions,
        split: &CaseSplit,
        round: u32,
    ) -> Result<StepResult<Option<StepAnalysis>>, LoopStop> {
        let run = self.stored_run(&winner.run)?;
        self.prepare_adviser(&run)?;
        let asked =
            improve::explain_winner(self.adviser()?, self.goal, (winner, &run), loser, said, split, round);
        let (analysed, why_not) = self.or_interrupted(self.runtime.block_on(asked))?;
        if let Some(why) = why_not {
            let (winner, loser) = (winner.version, loser.version);
            say!("note: no analysis of why v{winner} did better than v{loser}: {}", terminal_safe(&why));
        }
        Ok(analysed)
    }

    fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn show_message(&mut self, text: &str) {
        say!("{}", terminal_safe(text));
    }
}

/// Copies a version to a path where it keeps the skill's name. A command file is named by the folders above it,
/// and a skill without frontmatter by its folder.
pub(super) fn copy_under_its_name(version: &Path, skill: &Path, aside: &Path) -> anyhow::Result<PathBuf> {
    let contents = SkillContents::scan(version)?;
    let folder = match contents.form() {
        SkillForm::Folder => aside.join(skill.file_name().unwrap_or_default()),
        SkillForm::Command => {
            let path = command_path(&name_from_path(skill, SkillForm::Command))
                .context("the command has no name")?;
            let file = path.join_to(&aside.join(".claude/commands"));
            file.parent().map(Path::to_owned).unwrap_or_default()
        }
    };
    std::fs::create_dir_all(&folder)?;
    Ok(contents.copy_to(&folder)?)
}

/// Puts a version in the skill's place, and keeps only the cases of the goal.
pub(super) fn replace_skill_under_test(
    reading: &mut EvalFiles,
    skill: &Path,
    version: &Path,
    goal: ImproveGoal,
) -> anyhow::Result<()> {
    let is_it = |path: &Path| SkillContents::scan(path).is_ok_and(|known| known.skill_path() == skill);
    let moved = |path: &Path| Ok::<_, anyhow::Error>(is_it(path).then(|| version.to_owned()));
    let found = reading.redirect_skills(moved)? > 0;
    keep_goal_cases(reading, goal);
    match found {
        true => Ok(()),
        false => Err(anyhow!("the evals are not about {}", skill.display())),
    }
}

/// Keeps only the cases that the goal is about.
fn keep_goal_cases(reading: &mut EvalFiles, goal: ImproveGoal) {
    let is_about = |case: &Case| match goal {
        ImproveGoal::Skill => true,
        ImproveGoal::Description => {
            case.checks.iter().any(|check| matches!(check.kind, CheckKind::Activation(_)))
        }
    };
    for suite in reading.files.iter_mut().filter_map(|file| file.lowered.suite.as_mut()) {
        suite.cases.retain(is_about);
    }
}

fn describe_improvement(improved: &ImproveReport) -> String {
    let rate =
        |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.0} %", rate * 100.0));
    let mut out = String::new();
    for round in &improved.rounds {
        let version = round.version.map_or_else(|| "–".to_owned(), |version| format!("v{version}"));
        let word = if round.accepted { "accepted" } else { "not accepted" };
        let blind =
            round.blind.map(|verdict| format!(" (blind judges: {})", verdict.name())).unwrap_or_default();
        let passed = match (round.passed, round.passed + round.failed + round.not_scored, round.not_scored) {
            (passed, runs, not_scored) if not_scored > 0 => {
                format!("{passed} of {runs} passed, {not_scored} not scored")
            }
            _ => format!("passed {}", rate(round.pass_rate)),
        };
        out.push_str(&format!(
            "round {}: {version} {passed}{blind}, {word}: {}\n",
            round.round,
            terminal_safe(&round.why)
        ));
    }
    let ended = match improved.stopped {
        LoopEnd::TooEasy => {
            "the skill passes everything: the evals are too easy to show anything better; write \
                             harder ones, or continue with --force"
        }
        LoopEnd::Target => "the target is reached",
        LoopEnd::Flat => "two rounds brought nothing that looks better",
        LoopEnd::Rounds => "all rounds are done; the same command with more --rounds continues",
        LoopEnd::Time => "the time is up; the same command with a higher --max-time continues",
        LoopEnd::Cost => "the budget is used up; the same command with a higher --max-cost continues",
        LoopEnd::Interrupted => "interrupted; the same command continues",
        LoopEnd::Failed => "the loop failed; the same command tries again",
    };
    out.push_str(&format!("{ended}\n"));
    out.extend(improved.failed.as_ref().map(|why| format!("  {}\n", terminal_safe(why))));
    if let Some((baseline, best)) = improved.baseline.zip(improved.best) {
        let (from, to) = (rate(improved.baseline_pass_rate), rate(improved.best_pass_rate));
        out.push_str(&match (baseline == best, improved.applied) {
            (true, _) => format!("v{baseline} stays: {from} passed\n"),
            (false, true) => format!("v{best} is in place: {from} → {to} passed in fresh runs\n"),
            (false, false) => format!(
                "v{best} is best ({from} → {to} passed in fresh runs), but the skill was changed meanwhile; practicum restore \
                 puts v{best} in place\n"
            ),
        });
    }
    out.push_str(&terminal_safe(&improved.diff));
    out
}
