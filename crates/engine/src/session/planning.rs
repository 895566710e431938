//! Makes the plan of a run from its options: reads the eval files and decides how each suite is run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::changed_suites::keep_changed_suites;
use super::trust::{ProjectTrust, TrustItem};
use super::{
    PreparedRun, ResumedRun, RunLimits, RunObserver, RunRegistry, Session, SessionError, WorkerPolicy,
    WorkerPool,
};
use crate::plan::options::{CaseSelection, RunOptions};
use crate::plan::settings::SettingLayers;
use crate::plan::shard_balance::read_durations;
use crate::plan::{CaseFilter, CaseGlob, Plan, PlannedSuite, build_plan};
use crate::session::run_setup;
use practicum_agents::agents::AgentCli;

/// The suites of a session that were read, with the settings of each. `--explain` shows them.
pub struct SuitesToRun {
    /// The suites, each with its settings.
    pub suites: Vec<PlannedSuite>,
    /// The settings of all sources.
    pub layers: SettingLayers,
    pub(super) options: RunOptions,
    pub(super) project: PathBuf,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) agents: BTreeMap<String, AgentCli>,
    pub(super) notices: Vec<String>,
    pub(super) limits: RunLimits,
    pub(super) run_id: Option<String>,
    pub(super) command: Vec<String>,
    pub(super) resumed: Option<ResumedRun>,
    pub(super) registry: RunRegistry,
    pub(super) trust: ProjectTrust,
    pub(super) workers: Option<Arc<dyn WorkerPool>>,
    pub(super) policy: Option<WorkerPolicy>,
    filter: CaseFilter,
    skipped: Vec<PathBuf>,
}

impl Session<'_> {
    /// Reads the eval files and the settings, and decides how each suite is run.
    pub fn read_suites(self, observer: &mut dyn RunObserver) -> Result<SuitesToRun, SessionError> {
        let Session { project, environment, options, limits, registry, .. } = self;
        let (run_id, command, resumed) = (self.run_id, self.command, self.resumed);
        let (reading, change) = (self.reading, self.change);
        let (workers, policy) = (self.workers, self.policy);
        let flags = options.settings.clone();
        let mut layers = match &policy {
            Some(policy) => policy.settings.layers(flags, &environment, &project)?,
            None => SettingLayers::read(flags, environment.clone(), &project)?,
        };
        let trust = ProjectTrust::read(&project, &environment, options.inputs.trust)?;
        let filter = case_filter(&options.selection);
        let mut notices = Vec::new();
        if options.inputs.only_shown {
            notices.extend(trust.restrict_settings(&mut layers));
        }
        let (mut reading, is_given) = match reading {
            Some(reading) => (reading, true),
            None => (run_setup::read_eval_files(&options.inputs, &environment, &registry.evals)?, false),
        };
        if !is_given {
            reading.leave_out_unselected(&filter);
            let (any_invalid, not_selected) = reading.invalid_files(&filter);
            reading.refuse_missing_skills();
            reading.refuse_missing_files(&filter);
            observer.on_eval_files(&reading, &filter);
            if any_invalid {
                return Err(SessionError::Refused(
                    "some eval files cannot be understood; nothing was run".to_owned(),
                ));
            }
            if let Some(glob) = options.selection.cases.iter().find(|glob| reading.has_no_case(glob)) {
                return Err(SessionError::Refused(format!(
                    "--case {glob} matches no case; practicum list shows all"
                )));
            }
            notices.extend(std::mem::take(&mut reading.notices));
            notices.extend(not_selected);
        }
        let skipped = std::mem::take(&mut reading.skipped);
        if let Some(change) = change {
            change(&mut reading)?;
        }
        let agents = run_setup::all_agents(&layers, &registry.agents)?;
        let (mut suites, chosen) =
            run_setup::resolve_suites(reading, &options.inputs, &layers, &agents, &filter, &|root| {
                trust.has_plugin(root)
            })?;
        notices.splice(0..0, chosen);
        if options.predict_activation {
            for planned in &mut suites {
                planned.suite.switch_to_predicted_activation();
                // No agent has to offer a skill that a model reads the description of.
                planned.missing.for_agents.clear();
            }
            notices.push(
                "activation is predicted by a model from the descriptions of the skills, not observed"
                    .to_owned(),
            );
        }
        notices.iter().for_each(|notice| observer.on_notice(notice));
        Ok(SuitesToRun {
            suites,
            layers,
            options,
            project,
            environment,
            agents,
            notices,
            limits,
            run_id,
            command,
            resumed,
            registry,
            trust,
            workers,
            policy,
            filter,
            skipped,
        })
    }
}

impl SuitesToRun {
    /// Plans the trials, and looks up which of them need not run. `None` if no case falls into the requested
    /// shard.
    pub fn prepare(self, observer: &mut dyn RunObserver) -> Result<Option<PreparedRun>, SessionError> {
        let Some((plan, run)) = self.plan(observer)? else { return Ok(None) };
        PreparedRun::prepare(plan, run, observer).map(Some)
    }

    /// Gives everything in the selected cases and the settings that needs the user's trust, each with whether it is
    /// trusted.
    pub fn trust_items(self, observer: &mut dyn RunObserver) -> Result<Vec<(TrustItem, bool)>, SessionError> {
        let layers =
            SettingLayers::read(self.options.settings.clone(), self.environment.clone(), &self.project)?;
        let planned = self.plan(observer)?;
        Ok(planned.map(|(plan, run)| run.trust.items(&plan, &layers)).unwrap_or_default())
    }

    pub(super) fn plan(
        mut self,
        observer: &mut dyn RunObserver,
    ) -> Result<Option<(Plan, Self)>, SessionError> {
        let mut suites = std::mem::take(&mut self.suites);
        if let Some(since) = &self.options.selection.changed_since {
            let changed = keep_changed_suites(suites, since, &self.project)?;
            changed.notices.iter().for_each(|notice| observer.on_notice(notice));
            self.notices.extend(changed.notices);
            suites = changed.suites;
            if suites.is_empty() {
                return Ok(None);
            }
        }
        let mut filter = self.filter.clone();
        if let Some(path) = &self.options.selection.durations {
            let durations = read_durations(path).map_err(SessionError::Refused)?;
            filter = filter.balanced_by(&durations, &suites);
        }
        if let Some(most) = self.options.selection.max_cases {
            let cases: usize = suites.iter().map(|planned| planned.suite.cases.len()).sum();
            filter = filter.with_at_most(most as usize, &suites);
            let drawn = filter.sample.as_ref().map_or(0, |sample| sample.len());
            if drawn < cases {
                observer
                    .on_notice(&format!("{drawn} of {cases} cases are run, a sample (--max-evals {most})"));
            }
        }
        // If a few cases are split into many shards, some are empty. Together they still cover all cases.
        let is_part = filter.is_part_of(&suites);
        let plan = Plan { skipped: std::mem::take(&mut self.skipped), ..build_plan(suites, &filter) };
        if plan.trials.is_empty() && !is_part {
            let narrowed = describe_selection(&self.options.selection);
            return Err(SessionError::Refused(format!(
                "there is nothing to run: no case fits{narrowed}; practicum list shows all"
            )));
        }
        if plan.trials.is_empty() {
            observer.on_notice("no case falls into this part; nothing is run and nothing is written");
            return Ok(None);
        }
        for why in not_started(&plan) {
            observer.on_case_not_run(&why);
            self.notices.push(format!("not run: {why}"));
        }
        Ok(Some((plan, self)))
    }
}

/// Describes the cases that cannot run on this machine, and why. A suite without its skill is described once for
/// all its cases.
fn not_started(plan: &Plan) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for trial in &plan.trials {
        let (planned, case) = plan.suite_and_case(trial);
        let Some(why) = planned.why_not_started(case, &trial.condition.agent) else { continue };
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

/// Makes the filter of cases, without the sample, which needs the suites.
fn case_filter(selection: &CaseSelection) -> CaseFilter {
    CaseFilter {
        cases: selection.cases.iter().filter_map(|glob| CaseGlob::new(glob)).collect(),
        only: selection.only,
        shard: selection.shard,
        parts: None,
        sample: (!selection.exactly.is_empty()).then(|| selection.exactly.iter().cloned().collect()),
    }
}

/// Writes the options that select cases as on a command line.
fn describe_selection(selection: &CaseSelection) -> String {
    let globs = selection.cases.iter().map(|glob| format!(" --case {glob}"));
    globs.chain(selection.only.map(|only| format!(" --only {}", only.name()))).collect()
}
