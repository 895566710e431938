//! The command `practicum grade RUN`: regrades a stored run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};

use super::GradeArgs;
use super::changed_since::changed_since;
use super::output::shared_services;
use crate::agents::AgentRegistry;
use crate::cli::report::ReportOptions;
use crate::cli::{
    command_words, environment, global_setting, interrupts, print, print_json, runtime, tell_notices,
};
use crate::dialects::{EvalRegistry, LocatedSuite};
use crate::model::{
    Case, Outcome, Suite, Trial, TrialId, TrialRecord, VerdictChange, changed_verdicts, count_with_noun,
};
use crate::pipeline::{Regrade, StopSignal, regrade_run};
use crate::plan::settings::{JUDGE_JOBS, SettingLayers, project_root};
use crate::plan::{Plan, PlannedSuite, leave_out_unmeasured_gates, set_gates};
use crate::report::{PlainProgress, RegradeDocument, RunResults, SuiteNaming, render_changes};
use crate::session::run_setup::{self, RunSetupError, StoredSuite};
use crate::session::{RunInputs, run_info};
use crate::store::{
    PlannedTrial, RecordKey, RunDir, RunInfo, RunLock, Scrubber, read_baseline, read_noise, read_records,
    read_skill_judgements,
};
use crate::url_check::HttpUrlChecker;
use crate::workspace::stage::WorkspaceRoot;

/// The settings that affect grading. The flags of the original run apply unless a flag of this command replaces
/// them.
const GRADING_SETTINGS: [&str; 6] = [
    "trigger-threshold",
    "judge.model",
    "judge.provider",
    "judge.transport",
    "judge.votes",
    "judge.unsupported",
];

pub fn regrade_stored_run(args: &GradeArgs, wanted: &str) -> anyhow::Result<Outcome> {
    let environment = environment();
    let here = project_root(&std::path::absolute(&args.project)?);
    let from = RunDir::find(&here, wanted).map_err(|why| anyhow!(why))?;
    if RunLock::read(from.path()).is_some_and(|live| live.is_running()) {
        bail!("run {} is still going on", from.id());
    }
    let made = from.info().map_err(|why| anyhow!(why))?;
    let old = read_records(from.path())
        .with_context(|| format!("run {} has no record of its trials", from.id()))?;
    let project = project_of(&from).unwrap_or(here);

    let layers = SettingLayers::read(merged_flags(args, &made), environment.clone(), &project)
        .map_err(RunSetupError::from)?;
    let (stored, mut notices) = run_setup::stored_suites(&made, &environment, &EvalRegistry::default())?;
    let (then, mut today): (Vec<Suite>, Vec<_>) =
        stored.into_iter().map(|StoredSuite { original: then, current: today }| (then, today)).unzip();
    for (then, LocatedSuite { suite, .. }) in then.iter().zip(&mut today) {
        notices.extend(added_cases_note(then, suite));
        notices.extend(restore_removed_cases(then, suite, &made));
    }
    let agents: Vec<String> = made.trials.iter().map(|trial| trial.condition.agent.clone()).collect();
    let ask = RunInputs { script: args.script.clone(), no_judge: args.no_judge, ..RunInputs::default() };
    let mut suites = run_setup::outline_suites(today, &layers)?;
    // Only the judge needs a script here, because no agent runs.
    for planned in suites.iter_mut().filter(|_| !args.no_judge) {
        planned.script = run_setup::choose_script(&ask, &planned.suite, &agents);
    }
    let only = run_setup::leave_other_criteria_open(&mut suites, &args.only_criterion)?;
    let not_in_history = only.as_ref().filter(|only| only.left_out > 0).map(|only| only.note.clone());
    notices.extend(only.map(|only| only.note));
    let RemainingTrials { trials, not_run, notice } = remaining_trials(&made, &suites, &old)?;
    leave_out_unmeasured_gates(&mut suites, &[&trials[..], &not_run].concat());
    set_gates(&mut suites, &made.gates);
    args.gates.apply(&mut suites);
    notices.extend(notice);
    let asked_otherwise = trials_with_changed_prompt(&then, &suites, &trials);
    notices.extend(asked_otherwise.values().cloned().collect::<BTreeSet<String>>());
    let skipped = from.summary().map(|summary| summary.skipped).unwrap_or_default();
    notices.extend(files_skipped(&skipped));
    let plan = Plan { suites, trials, sample: made.sample.clone(), skipped };
    notices.extend(changed_since(&made, &then, &plan));
    tell_notices(&notices);
    if plan.trials.is_empty() {
        bail!("today's evals have no case of run {}; there is nothing to grade", from.id());
    }

    let runtime = runtime().context("cannot start")?;
    // The services are connected before the record is created, so that a failed start leaves no record.
    let shared = shared_services(args, &layers, &project)?;
    let means = runtime.block_on(run_setup::connect_services(&plan.suites, &ask, &environment, &shared))?;
    if !args.no_judge {
        let gradable = plan.trials.iter().filter(|trial| old[&trial.id].ended.can_be_graded());
        run_setup::require_judges(
            gradable.map(|trial| (trial.suite, plan.suite_and_case(trial).1)),
            &plan.suites,
            &means,
        )?;
    }
    let key = RecordKey::of_user(&environment).unwrap_or_else(|_| RecordKey::temporary());
    let run_dir = RunDir::create(&project, RunDir::new_id(jiff::Timestamp::now()))?.with_key(key.clone());
    let graded_from = Some(from.id().to_owned());
    let (scripted, replayed) = (made.scripted, made.replayed);
    let earlier_skill = made.earlier_skill.clone();
    let again = run_info(&plan, &run_dir, scripted, notices);
    let gates = args.gates.merged_with(&made.gates);
    let not_in_history = not_in_history.or_else(|| made.not_in_history.clone());
    let mut again = RunInfo {
        graded_from,
        replayed,
        earlier_skill,
        not_in_history,
        gates,
        count_flaky: made.count_flaky,
        trusted_code: made.trusted_code.clone(),
        command: command_words(),
        ..again
    };
    // The record keeps the skill and the prompts of the original run, even if they have changed. If this run is
    // regraded, the changes must still be noticed.
    for suite in again.suites.iter_mut() {
        let Some(ran) = made.suite(&suite.suite.name) else { continue };
        suite.skill.clone_from(&ran.skill);
        suite.given_files.clone_from(&ran.given_files);
        put_back_prompts(&ran.suite, &mut suite.suite);
    }
    run_dir.write_info(&again)?;
    RunLock::write(run_dir.path(), &WorkspaceRoot::path_for_run(run_dir.id()))
        .context("cannot mark the run as running")?;
    let scrubber = Scrubber::new(&environment);
    let progress = PlainProgress::new(std::io::stderr(), SuiteNaming::from_count(plan.suites.len()));
    let sinks = run_dir.open_log(scrubber.clone(), vec![Box::new(progress)])?;
    let stop = StopSignal::default();
    let again = Arc::new(Regrade {
        agents: AgentRegistry::default(),
        plan,
        not_run,
        stopped_early: from.summary().is_some_and(|summary| summary.left_out.is_some()),
        suites: means,
        source_run: from.clone(),
        old_records: old,
        changed_trials: asked_otherwise.into_keys().collect(),
        skills_judged: read_skill_judgements(from.path())
            .context("cannot read what was said of its skills")?,
        run_dir: run_dir.clone(),
        scrubber,
        allow_unscored: args.allow_unscored,
        noise: match made.count_flaky {
            true => None,
            false => read_noise(&project, &key).map_err(|why| anyhow!(why))?,
        },
        baseline: read_baseline(&project, made.options.as_ref().and_then(|then| then.baseline.as_deref()))
            .map_err(|why| anyhow!(why))?,
        stop: stop.clone(),
        prices: shared.ledger.prices().clone(),
        judge_jobs: global_setting(&layers, &JUDGE_JOBS)?,
        web: args.allow_network.then(|| HttpUrlChecker::with_runtime(runtime.handle().clone())),
    });
    let (summary, records) = runtime.block_on(async {
        tokio::spawn(interrupts::stop_on_requests(stop));
        regrade_run(&again, sinks).await
    })?;
    RunLock::remove(run_dir.path());
    let mut changes = verdict_changes(&again, &then, &records);
    if !args.only_criterion.is_empty() {
        // The other criteria still exist in the eval; they were only not asked. The notice names those that were.
        changes.retain(|change| change.new.is_some());
    }
    let document = RegradeDocument {
        schema_version: 1,
        run: run_dir.id().to_owned(),
        graded_from: from.id().to_owned(),
        changes,
        summary,
    };
    run_dir.write_json("changes.json", &document)?;
    if args.json {
        print_json(&document)?;
    } else {
        let results = RunResults::open(run_dir).map_err(|why| anyhow!(why))?;
        ReportOptions::default().show(&results, false)?;
        print(&render_changes(&document))?;
    }
    Ok(document.summary.exit)
}

/// Gives the project in which a run is stored; `None` for a run that was copied elsewhere.
fn project_of(run: &RunDir) -> Option<PathBuf> {
    let runs = run.path().parent()?;
    let is_store = runs.ends_with(".practicum/runs");
    is_store.then(|| runs.ancestors().nth(2).map(Path::to_owned)).flatten()
}

/// Gives the flags of the original run, replaced by the flags of this command where it has them.
fn merged_flags(args: &GradeArgs, made: &RunInfo) -> BTreeMap<&'static str, String> {
    let said = |name: &str| match &made.options {
        Some(options) => options.settings.get(name).cloned(),
        // The record of a regraded run, or of an earlier version, has only the values that applied.
        None => {
            let row = made.suites.iter().find_map(|of| of.settings.get(name));
            row.filter(|row| row.from == "flag").map(|row| row.value.clone())
        }
    };
    let then = GRADING_SETTINGS.into_iter().filter_map(|name| Some((name, said(name)?)));
    then.chain(args.judging.flags()).collect()
}

/// The trials of a run whose cases still exist today.
struct RemainingTrials {
    /// The trials that have a record.
    trials: Vec<Trial>,
    /// The trials that were planned and have no record.
    not_run: Vec<Trial>,
    /// A message about the trials that are not graded.
    notice: Option<String>,
}

fn remaining_trials(
    made: &RunInfo,
    suites: &[PlannedSuite],
    old: &BTreeMap<TrialId, TrialRecord>,
) -> anyhow::Result<RemainingTrials> {
    let place = |planned: &PlannedTrial| {
        let suite = suites.iter().position(|suite| suite.suite.name == planned.suite)?;
        let case = suites[suite].suite.cases.iter().position(|case| case.id == planned.case)?;
        Some((suite, case))
    };
    let (mut trials, mut not_run) = (Vec::new(), Vec::new());
    for planned in &made.trials {
        let Some((suite, case)) = place(planned) else {
            // Without this case, the rest would look like the whole run.
            bail!("case {} is neither in the evals nor in the run's copy of them", planned.case);
        };
        let PlannedTrial { id, condition, attempt, .. } = planned.clone();
        let of = if old.contains_key(&id) { &mut trials } else { &mut not_run };
        of.push(Trial { id, suite, case, condition, attempt });
    }
    let notice = (!not_run.is_empty())
        .then(|| format!("not graded: {}, never finished", count_with_noun(not_run.len(), "trial")));
    Ok(RemainingTrials { trials, not_run, notice })
}

/// Puts the cases that are no longer in the evals back into the suite, as they were in the run. Without them, the
/// rest would look like the whole run. Gives a note for each.
fn restore_removed_cases(then: &Suite, today: &mut Suite, made: &RunInfo) -> Vec<String> {
    let was_planned =
        |case: &Case| made.trials.iter().any(|trial| trial.suite == today.name && trial.case == case.id);
    let is_there = |case: &Case| today.cases.iter().any(|now| now.id == case.id);
    let removed: Vec<Case> =
        then.cases.iter().filter(|case| !is_there(case) && was_planned(case)).cloned().collect();
    let note = |case: &Case| {
        format!("case {} is no longer in the evals, so its checks are those of the run", case.id)
    };
    let notes = removed.iter().map(note).collect();
    today.cases.extend(removed);
    notes
}

/// Gives a note that names the cases that were added since the run.
fn added_cases_note(then: &Suite, today: &Suite) -> Option<String> {
    let is_new = |case: &&Case| then.cases.iter().all(|old| old.id != case.id);
    let new: Vec<&str> = today.cases.iter().filter(is_new).map(|case| case.id.as_str()).collect();
    let (what, is) = if new.len() == 1 { ("case", "is") } else { ("cases", "are") };
    (!new.is_empty()).then(|| {
        format!("{what} {} came into the evals after this run, and {is} not in it; practicum run runs what is new", new.join(", "))
    })
}

/// Finds the trials whose prompt has changed since the run, each with a note. The old answer says nothing about
/// today's prompt.
fn trials_with_changed_prompt(
    then: &[Suite],
    today: &[PlannedSuite],
    trials: &[Trial],
) -> BTreeMap<TrialId, String> {
    let mut changed = BTreeMap::new();
    for trial in trials {
        let case = &today[trial.suite].suite.cases[trial.case];
        let before = then[trial.suite].case(&case.id);
        if before.is_some_and(|before| before.prompt != case.prompt) {
            let note =
                format!("case {} asks something else today, so its old answers are not scored", case.id);
            changed.insert(trial.id.clone(), note);
        }
    }
    changed
}

/// Gives a suite the prompts and workspaces that it had in the run.
fn put_back_prompts(then: &Suite, suite: &mut Suite) {
    suite.run_policy.system_prompt.clone_from(&then.run_policy.system_prompt);
    for case in &mut suite.cases {
        if let Some(old) = then.case(&case.id) {
            case.prompt.clone_from(&old.prompt);
            case.workspace.clone_from(&old.workspace);
        }
    }
}

/// Gives a note about the files that were skipped as evals in the run.
fn files_skipped(skipped: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = skipped.iter().map(|path| path.display().to_string()).collect();
    let files = count_with_noun(names.len(), "file");
    (!names.is_empty()).then(|| format!("this run skipped {files}: {}", names.join(", ")))
}

fn verdict_changes(
    again: &Regrade,
    then: &[Suite],
    records: &BTreeMap<TrialId, TrialRecord>,
) -> Vec<VerdictChange> {
    let mut changes = Vec::new();
    for trial in &again.plan.trials {
        let Some(record) = records.get(&trial.id) else { continue };
        let (_, case) = again.plan.suite_and_case(trial);
        let before = then[trial.suite].case(&case.id);
        let is_changed = |id: &str| {
            let was = before.and_then(|before| before.checks.iter().find(|check| check.id == id));
            was.is_some_and(|was| case.checks.iter().all(|check| check != was))
        };
        changes.extend(changed_verdicts(&again.old_records[&trial.id], record, is_changed));
    }
    changes
}
