//! A planned run that is ready to start, and its execution.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::changed_evals::refuse_changed_evals;
use super::hidden_files::{describe_hidden_files, hidden_files};
use super::record::{keep_graded_skills, run_info};
use super::shared_budget::shared_services;
use super::shared_run::files_of_plan;
use super::trust::TrustDecision;
use super::trusted_code::{refuse_changed_code, trusted_code};
use super::{
    PlannedRun, ResumedRun, RunDescription, RunLimits, RunObserver, SessionError, SharedRun, SuitesToRun,
    WorkerPool,
};
use crate::pipeline::probes::choose_probes;
use crate::pipeline::{RetryPolicy, ReusableResults, RunContext, StopSignal, execute_run};
use crate::plan::options::RunOptions;
use crate::plan::settings::{
    JOBS, JUDGE_JOBS, PROBE, RETRIES, RETRY_WAIT, SANDBOX, SettingDefinition, SettingLayers, resource_limits,
};
use crate::plan::trial_key::{TrialKey, TrialKeys};
use crate::plan::{Plan, set_gates};
use crate::session::run_setup::{self, SharedServices};
use crate::store::{
    IndexSink, RecordKey, RunDir, RunInfo, RunLock, Scrubber, TrialCache, has_foreign_noise, read_baseline,
    read_noise,
};
use crate::workspace::limits::ResourceLimits;
use crate::workspace::mocks::MockRecorder;
use crate::workspace::run::{TranscriptMemory, kill_run_processes};
use crate::workspace::sandbox::Sandbox;
use crate::workspace::stage::{HiddenFiles, WorkspaceRoot};
use practicum_agents::agents::{AgentCli, AgentLogin};
use practicum_core::event::{EventSink, EventSinks};
use practicum_core::model::{Baseline, Gate, GateName, Noise, SandboxMode, Summary, TrialId};
use practicum_evals::url_check::HttpUrlChecker;
use practicum_skills::own_files;

/// How long a run waits until the limit of an account resets, if the user gives no time: longer than the five hours of
/// the usual one.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 3600);

/// A run that is planned and has not started: nothing is spent, and nothing is on disk.
pub struct PreparedRun {
    pub(super) plan: Plan,
    probes: Plan,
    options: RunOptions,
    trust: TrustDecision,
    workers: Option<Arc<dyn WorkerPool>>,
    agents: BTreeMap<String, AgentCli>,
    project: PathBuf,
    environment: BTreeMap<String, String>,
    /// Notices that the user was shown so far. They are stored in the record.
    notices: Vec<String>,
    limits: RunLimits,
    run_id: Option<String>,
    command: Vec<String>,
    resumed: Option<ResumedRun>,
    reusable: ReusableResults,
    record_key: RecordKey,
    hidden: HiddenFiles,
    scrubber: Scrubber,
    shared: SharedServices,
    sandbox_mode: SandboxMode,
    /// What the processes of one trial may use.
    trial_limits: ResourceLimits,
    jobs: usize,
    judge_jobs: usize,
    retry: RetryPolicy,
}

/// A run whose record exists and whose trials can start.
pub(super) struct OpenedRun {
    pub context: RunContext,
    pub sinks: EventSinks,
    pub workspaces: WorkspaceRoot,
    /// The lock of the record, which is held until the run ends.
    pub lock: Option<std::fs::File>,
}

/// A run that ended, with its results and the folder of its record.
pub struct FinishedRun {
    /// The results of the run.
    pub summary: Summary,
    /// The folder with the record of the run.
    pub run_dir: RunDir,
    /// The folder of the agents' workspaces, if they were to be kept.
    pub workspaces: Option<PathBuf>,
}

impl PreparedRun {
    /// Looks up which results can be reused, and shows the plan.
    pub(super) fn prepare(
        mut plan: Plan,
        run: SuitesToRun,
        observer: &mut dyn RunObserver,
    ) -> Result<Self, SessionError> {
        let SuitesToRun { options, mut layers, project, environment, agents, mut notices, .. } = run;
        let (limits, run_id, command, resumed) = (run.limits, run.run_id, run.command, run.resumed);
        set_gates(&mut plan.suites, &options.gates);
        if let Some(ResumedRun { run_dir, trusted_at_start }) = &resumed {
            refuse_changed_evals(run_dir, &plan)?;
            if *trusted_at_start {
                refuse_changed_code(run_dir, &plan)?;
            }
        }
        let (workers, policy) = (run.workers, run.policy);
        let trust = match &policy {
            Some(policy) => policy.trust.clone(),
            None => run.trust.decide(&plan, &layers, options.inputs.only_shown, observer)?,
        };
        trust.notice.iter().for_each(|notice| observer.on_notice(notice));
        notices.extend(trust.notice.clone());
        if !trust.weaker_settings {
            layers.ignore_weakened_settings();
        }
        let sandbox_mode = setting(&layers, &SANDBOX)?;
        let sandbox_mode = policy.as_ref().map_or(sandbox_mode, |policy| policy.sandbox(sandbox_mode));
        let hidden = hidden_files(&plan, &options, &project, &run.registry.evals).and_hiding(&trust.hidden);
        let keys =
            trial_keys(&plan, &agents, &environment, sandbox_mode, &options, &hidden, trust.plugin_code);
        let trial_limits = resource_limits(&layers)?;
        // With a cassette nothing is taken from the cache, because every request must really be made to be
        // recorded or replayed.
        let has_cassette = options.inputs.record.is_some() || options.inputs.replay.is_some();
        let record_key = RecordKey::of_user(&environment).unwrap_or_else(|why| {
            observer.on_notice(&why);
            notices.push(why);
            RecordKey::temporary()
        });
        let resumed = resumed.map(|ResumedRun { run_dir, trusted_at_start }| ResumedRun {
            run_dir: run_dir.with_key(record_key.clone()),
            trusted_at_start,
        });
        let cache = (!has_cassette).then(|| TrialCache::for_project(&project).with_key(record_key.clone()));
        let mut reusable = ReusableResults::look_up(
            &plan,
            keys,
            resumed.as_ref().map(|resumed| &resumed.run_dir),
            cache,
            !options.no_reuse && !options.record_mocks,
        );
        if let Some(notice) = foreign_notice(&reusable) {
            observer.on_notice(&notice);
            notices.push(notice);
        }
        // The hidden files are known only after the keys have listed the staged files.
        let left_out = describe_hidden_files(&hidden, &plan, &options, &project, &run.registry.evals);
        left_out.iter().for_each(|note| observer.on_notice(note));
        notices.extend(left_out);
        let scrubber = scrubber(&agents, &environment);
        let mut tell = |text: &str| observer.on_notice(text);
        let shared = shared_services(&options, &limits, &layers, &project, &scrubber, &mut tell)?;
        let retry = RetryPolicy {
            times: setting(&layers, &RETRIES)?,
            wait: setting(&layers, &RETRY_WAIT)?,
            longest_pause: LONGEST_PAUSE,
        };
        let (jobs, judge_jobs) = (setting(&layers, &JOBS)?, setting(&layers, &JUDGE_JOBS)?);
        let probes = match setting(&layers, &PROBE)? {
            true => choose_probes(&plan, &mut reusable, |planned| {
                run_setup::can_answer_probes(planned, &options.inputs)
            })?,
            // Without probes, stored ones do not count either.
            false => {
                reusable.probes.clear();
                Plan::default()
            }
        };
        observer.on_plan(&PlannedRun {
            plan: &plan,
            probes: &probes,
            reused: &reusable,
            project: &project,
            jobs,
        });
        Ok(Self {
            plan,
            probes,
            options,
            trust,
            workers,
            agents,
            project,
            environment,
            notices,
            limits,
            run_id,
            command,
            resumed,
            reusable,
            record_key,
            hidden,
            scrubber,
            shared,
            sandbox_mode,
            trial_limits,
            jobs,
            judge_jobs,
            retry,
        })
    }

    /// Gives the plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Executes the plan, and waits for the last trial. Works on any tokio runtime with time and I/O.
    pub async fn run(self, observer: &mut dyn RunObserver) -> Result<FinishedRun, SessionError> {
        let OpenedRun { context, sinks, workspaces: rooms, lock: _lock } = self.open(observer).await?;
        let (run_dir, keep_workspaces) = (context.run_dir.clone(), context.keep_workspaces);
        let summary = execute_run(context, sinks).await?;
        // The workspaces are deleted before the lock: a run that is killed here still says what to clean up.
        let workspaces = match keep_workspaces {
            true => Some(rooms.keep_workspaces()),
            false => {
                drop(rooms);
                None
            }
        };
        RunLock::remove(run_dir.path());
        Ok(FinishedRun { summary, run_dir, workspaces })
    }

    /// Makes the record of the run, and everything that its trials need.
    pub(super) async fn open(mut self, observer: &mut dyn RunObserver) -> Result<OpenedRun, SessionError> {
        let noise = self.known_noise(observer)?;
        let baseline = stored_baseline(&self.plan, &self.project, &self.options)?;
        let id = self.run_id();
        let rooms = WorkspaceRoot::path_for_run(&id);
        // This comes before the record is made: a run that may not start leaves none.
        let sandbox = self.sandbox(&rooms)?;
        self.notices.extend_from_slice(sandbox.notices());
        let inputs = &self.options.inputs;
        let suites =
            run_setup::connect_services(&self.plan.suites, inputs, &self.environment, &self.shared).await?;
        if !inputs.no_judge && self.workers.is_none() {
            let plan = &self.plan;
            let to_run = plan.trials.iter().filter(|trial| {
                !self.reusable.trials.contains_key(&trial.id) && plan.why_not_started(trial).is_none()
            });
            let cases = to_run.map(|trial| (trial.suite, plan.suite_and_case(trial).1));
            run_setup::require_judges(cases, &plan.suites, &suites)?;
        }
        let shared = self.workers.is_some().then(|| self.shared_run(&id));
        let (run_dir, lock) = self.open_record(id)?;
        own_files::record_output_streams();
        RunLock::write(run_dir.path(), &rooms).map_err(SessionError::io("cannot mark the run as running"))?;
        let rooms =
            WorkspaceRoot::create(rooms).map_err(SessionError::io("cannot make a folder for workspaces"))?;
        let mut sinks: Vec<Box<dyn EventSink>> = vec![Box::new(IndexSink::new(&self.project, &run_dir))];
        sinks.extend(observer.event_sinks(&self.plan));
        let sinks = run_dir.open_log(self.scrubber.clone(), sinks)?;
        let executor = match self.workers.as_ref().zip(shared) {
            Some((workers, shared)) => Some(workers.open(shared).await.map_err(SessionError::Refused)?),
            None => None,
        };
        let stop = StopSignal::default();
        observer.on_start(&stop);
        stop_at(&stop, self.limits.deadline);
        let options = self.options;
        let may_record = options.record_mocks && options.inputs.trust;
        let mock_recorder = may_record.then(|| Arc::new(MockRecorder::new(self.environment.clone())));
        let context = RunContext {
            suites,
            plan: self.plan,
            probes: self.probes,
            agents: self.agents,
            user_env: self.environment,
            hidden_files: self.hidden,
            sandbox,
            limits: self.trial_limits,
            workspace_root: rooms.path().to_owned(),
            keep_workspaces: options.keep_workspaces,
            allow_scripts: self.trust.scripts,
            allow_plugin_code: self.trust.plugin_code,
            mock_recorder,
            web: options
                .allow_network
                .then(|| HttpUrlChecker::with_runtime(tokio::runtime::Handle::current())),
            jobs: self.jobs,
            judge_jobs: self.judge_jobs,
            memory: TranscriptMemory::default(),
            run_dir: run_dir.clone(),
            scrubber: self.scrubber,
            ledger: Arc::clone(&self.shared.ledger),
            stop,
            reusable: self.reusable,
            pass_env: options.pass_env,
            fail_fast: options.fail_fast,
            until: options.until,
            retry: self.retry,
            allow_unscored: options.allow_unscored,
            noise,
            baseline,
            stop_early: options.stop_early,
            executor,
        };
        Ok(OpenedRun { context, sinks, workspaces: rooms, lock })
    }

    /// Describes the run for workers.
    fn shared_run(&self, id: &str) -> SharedRun {
        let (plan, project) = (&self.plan, &self.project);
        let (options, trust) = (self.options.clone(), self.trust.clone());
        SharedRun {
            id: id.to_owned(),
            files: files_of_plan(plan, project, &options),
            description: RunDescription::new(plan, project, options, trust, &self.environment),
            agents: plan.trials.iter().map(|trial| trial.condition.agent.clone()).collect(),
            key: self.record_key.clone(),
            budget: self.shared.ledger.budget(),
        }
    }

    /// Reads what is known about flaky cases, unless they are to count.
    fn known_noise(&mut self, observer: &mut dyn RunObserver) -> Result<Option<Noise>, SessionError> {
        if !self.options.count_flaky && has_foreign_noise(&self.project, &self.record_key) {
            let notice = "this installation did not measure .practicum/noise.json, so no case counts as flaky; practicum \
                          noise measures it, practicum import noise takes it over";
            observer.on_notice(notice);
            self.notices.push(notice.to_owned());
        }
        match self.options.count_flaky {
            true => Ok(None),
            false => read_noise(&self.project, &self.record_key).map_err(SessionError::Refused),
        }
    }
    /// Gives the id of the resumed run, an id that was chosen before, or a new one.
    fn run_id(&self) -> String {
        let resumed = self.resumed.as_ref().map(|resumed| resumed.run_dir.id());
        match resumed.or(self.run_id.as_deref()) {
            Some(id) => id.to_owned(),
            None => RunDir::new_id(jiff::Timestamp::now()),
        }
    }

    fn sandbox(&self, rooms: &Path) -> Result<Sandbox, SessionError> {
        // A run whose trials run elsewhere starts no agent here.
        let mode = if self.workers.is_some() { SandboxMode::Off } else { self.sandbox_mode };
        let out_of_sight = [rooms.to_owned(), self.project.clone()];
        Ok(run_setup::build_sandbox(mode, &self.environment, &self.plan, out_of_sight, self.trial_limits)?)
    }

    /// Makes a new record, or opens that of the resumed run and removes what it left behind. Gives also the lock of
    /// its folder.
    fn open_record(&self, id: String) -> Result<(RunDir, Option<std::fs::File>), SessionError> {
        let options = &self.options;
        if let Some(ResumedRun { run_dir: run, trusted_at_start }) = &self.resumed {
            let lock = lock_record(run)?;
            let live = RunLock::read(run.path()).filter(RunLock::is_running);
            let Some(lock) = lock.filter(|_| live.is_none()) else {
                let holder = live.map_or_else(String::new, |live| format!(" in process {}", live.pid));
                return Err(SessionError::Refused(format!("run {} is still going on{holder}", run.id())));
            };
            remove_leftovers(run);
            if options.inputs.trust && !trusted_at_start {
                let info = run.info().map_err(SessionError::Refused)?;
                run.write_info(&RunInfo { trusted_code: Some(trusted_code(&self.plan)), ..info })?;
            }
            return Ok((run.clone(), Some(lock)));
        }
        let run = RunDir::create(&self.project, id)?.with_key(self.record_key.clone());
        let scripted = self.plan.suites.iter().any(|suite| suite.script.is_some());
        let mut notices = self.notices.clone();
        let info = run_info(&self.plan, &run, scripted, Vec::new());
        notices.extend(keep_graded_skills(&info, &run));
        let folder = info.folder.clone();
        run.write_info(&RunInfo {
            notices,
            replayed: options.inputs.replay.is_some(),
            earlier_skill: options.earlier_skill.clone(),
            not_in_history: options.not_in_history.clone(),
            gates: options.gates.clone(),
            trusted_code: options.inputs.trust.then(|| trusted_code(&self.plan)),
            count_flaky: options.count_flaky,
            options: Some(options.clone().made_absolute(&folder)),
            command: self.command.clone(),
            ..info
        })?;
        let lock = lock_record(&run)?;
        Ok((run, lock))
    }
}

/// Describes the stored results that are not reused, because another installation made them.
fn foreign_notice(reusable: &ReusableResults) -> Option<String> {
    let count = reusable.cache.as_ref().map_or(0, TrialCache::foreign);
    (count > 0).then(|| {
        format!(
            "{} not reused, because this installation did not make them as they are now; practicum import takes over \
             the results of a run",
            match count {
                1 => "1 stored result is".to_owned(),
                _ => format!("{count} stored results are"),
            }
        )
    })
}

/// Reads the results that the run must not fall behind, if a gate asks for that.
pub(super) fn stored_baseline(
    plan: &Plan,
    project: &Path,
    options: &RunOptions,
) -> Result<Option<Baseline>, SessionError> {
    let gates = plan.suites.iter().flat_map(|planned| &planned.suite.gates);
    let is_asked = |gate: &Gate| gate.name == GateName::NoRegression && gate.threshold.get() > 0.0;
    if !gates.into_iter().any(is_asked) {
        return Ok(None);
    }
    read_baseline(project, options.baseline.as_deref()).map_err(SessionError::Refused)
}

fn lock_record(run: &RunDir) -> Result<Option<std::fs::File>, SessionError> {
    RunLock::lock_folder(run.path()).map_err(SessionError::io("cannot lock the record"))
}

/// Ends the processes that a killed run left, and removes its workspaces. Says whether there was anything.
///
/// The record may come from an untrusted source. What is removed follows from the run's id and not from the path in the
/// record.
pub fn remove_leftovers(run: &RunDir) -> bool {
    if RunLock::read(run.path()).is_none() || !RunDir::is_id(run.id()) {
        return false;
    }
    kill_run_processes(run.id());
    let rooms = WorkspaceRoot::path_for_run(run.id());
    if rooms.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        crate::workspace::stage::remove_workspace(&rooms);
    }
    RunLock::remove(run.path());
    true
}

/// Gives the value of a setting of the whole run.
fn setting<T>(layers: &SettingLayers, knob: &SettingDefinition<T>) -> Result<T, SessionError> {
    Ok(layers.resolve_global(knob)?.value)
}

/// Makes a scrubber that knows the secrets of the environment and of the agents' logins.
fn scrubber(agents: &BTreeMap<String, AgentCli>, environment: &BTreeMap<String, String>) -> Scrubber {
    let logins = agents.values().filter_map(|agent| agent.credentials.find_login(environment));
    let declared: Vec<String> =
        agents.values().flat_map(|agent| agent.credentials.variables.iter().cloned()).collect();
    logins.fold(Scrubber::with_declared(environment, &declared), |scrubber, login| match login {
        AgentLogin::Variable(_) => scrubber,
        AgentLogin::File(path) => scrubber.with_secrets_in_file(&path),
    })
}

/// Computes, for each planned trial, the digest of everything that its result depends on.
fn trial_keys(
    plan: &Plan,
    agents: &BTreeMap<String, AgentCli>,
    environment: &BTreeMap<String, String>,
    sandbox: SandboxMode,
    options: &RunOptions,
    hidden: &HiddenFiles,
    plugin_code: bool,
) -> HashMap<TrialId, TrialKey> {
    let keys =
        TrialKeys::new(plan, agents, environment, sandbox, &options.pass_env, options.allow_network, hidden);
    let mut keys = keys
        .with_plugin_code(plugin_code)
        .with_judge(!options.inputs.no_judge)
        .with_sample(options.sample.clone());
    plan.trials.iter().map(|trial| (trial.id.clone(), keys.key_of(trial))).collect()
}

/// Stops the start of new trials after a deadline, if there is one.
fn stop_at(stop: &StopSignal, deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        let stop = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(deadline.into()).await;
            stop.stop_after_running();
        });
    }
}
